//! When a run began: a calendar date from the system's clock.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Now, in UTC, to the second: `2026-11-21T18:30:05Z`.
pub fn now() -> String {
    let now = OffsetDateTime::now_utc();
    // Only years with five digits cannot be written so.
    now.replace_nanosecond(0).unwrap_or(now).format(&Rfc3339).unwrap_or_default()
}

/// A moment as part of a file's name: `2026-11-21T18-30Z`; what is no moment is kept as far as names allow.
pub(crate) fn as_name(began: &str) -> String {
    match parse(began) {
        Some(at) => format!(
            "{:04}-{:02}-{:02}T{:02}-{:02}Z",
            at.year(),
            u8::from(at.month()),
            at.day(),
            at.hour(),
            at.minute()
        ),
        None => {
            began.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' }).collect()
        }
    }
}

/// A moment as people write it: `21 November 2026, 18:30 UTC`.
pub(crate) fn for_people(began: &str) -> String {
    match parse(began) {
        Some(at) => {
            format!("{} {} {}, {:02}:{:02} UTC", at.day(), at.month(), at.year(), at.hour(), at.minute())
        }
        None => began.to_owned(),
    }
}

/// The day of a moment: `21 November 2026`.
pub(crate) fn day(began: &str) -> String {
    parse(began).map_or_else(|| began.to_owned(), |at| format!("{} {} {}", at.day(), at.month(), at.year()))
}

fn parse(began: &str) -> Option<OffsetDateTime> {
    OffsetDateTime::parse(began, &Rfc3339).ok().map(|at| at.to_offset(time::UtcOffset::UTC))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_have_names() {
        assert_eq!(as_name("2026-11-21T19:30:05+01:00"), "2026-11-21T18-30Z");
        assert_eq!(for_people("2026-11-21T18:30:05Z"), "21 November 2026, 18:30 UTC");
        assert_eq!(day("2026-11-21T18:30:05Z"), "21 November 2026");
        assert_eq!(as_name("../a b"), "---a-b");
        assert_eq!((for_people(&now()) != now(), now().len()), (true, 20));
    }
}
