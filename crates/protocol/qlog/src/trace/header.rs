//! The first record of a file: which formats and schemas follow, whose trace it is, and what its times count from.
//! Source: draft-ietf-quic-qlog-main-schema §5, §6, §7.1.

use super::Beginning;

/// Event schemas of drafts carry the number of the draft (draft-ietf-quic-qlog-quic-events §1.3).
const SCHEMAS: [&str; 3] = [
    "urn:ietf:params:qlog:events:quic-13",
    "urn:ietf:params:qlog:events:http3-13",
    "urn:ietf:params:qlog:events:loglevel",
];

/// Writes the record.
pub(super) fn write(beginning: &Beginning<'_>, out: &mut Vec<u8>) {
    super::record(out, |header| {
        header
            .text("file_schema", "urn:ietf:params:qlog:file:sequential")
            .text("serialization_format", "application/qlog+json-seq")
            .text("title", "tercel")
            .object("trace", |trace| {
                trace.object("common_fields", |common| {
                    common
                        .hex("group_id", beginning.original_dcid)
                        .text("time_format", "relative_to_epoch")
                        .object("reference_time", |time| {
                            time.text("clock_type", "monotonic").text("epoch", "unknown");
                            if let Some(unix_ms) = beginning.wall_clock_ms {
                                time.text("wall_clock_time", &date_time(unix_ms));
                            }
                        });
                });
                trace.object("vantage_point", |point| {
                    point.text("type", beginning.role());
                });
                trace.array("event_schemas", |list| SCHEMAS.iter().for_each(|schema| list.text(schema)));
            });
    });
}

/// Milliseconds since 1970 as RFC 3339 has them, in UTC.
fn date_time(unix_ms: u64) -> String {
    let (days, ms) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", ms % 1_000)
}

/// Year, month and day of a day since 1970-01-01 in the Gregorian calendar, counted in years that begin in March, so that the leap
/// day is the last of its year.
fn civil(days: u64) -> (u64, u64, u64) {
    const CYCLE: u64 = 146_097;
    let shifted = days + 719_468;
    let (cycle, day_of_cycle) = (shifted / CYCLE, shifted % CYCLE);
    let leap_days = day_of_cycle / 1_460 - day_of_cycle / 36_524 + day_of_cycle / 146_096;
    let year = (day_of_cycle - leap_days) / 365;
    let day_of_year = day_of_cycle + year / 100 - year / 4 - 365 * year;
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year + 1 - (153 * month + 2) / 5;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (cycle * 400 + year + carry, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date_time(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(date_time(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(date_time(1_764_547_199_999), "2025-11-30T23:59:59.999Z");
        assert_eq!(date_time(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
    }
}
