//! Wall-clock time: the Date field, the access log's timestamps, and dates in conditional requests.
//!
//! The one place of the server that reads the wall clock, and it does so a few times a second at most: the text of a date
//! is made once per second and lent to every response of that second. RFC 9110 §5.6.7.

use base::time::{Duration, Instant};
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// `Sat, 21 Nov 2026 04:31:20 GMT`: always 29 bytes.
pub type DateText = [u8; 29];

/// Dates end with the year 9999: the format has four digits.
const LAST_SECOND: u64 = 253_402_300_799;

/// The wall clock is read again after this long, so that a date is at most this late.
const READ_EVERY: Duration = Duration::from_millis(200);

/// Seconds since 1970, from the operating system.
pub fn unix_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    u64::try_from(now.tv_sec).unwrap_or(0)
}

/// `unix_s` as an HTTP date.
pub fn http_date(unix_s: u64) -> DateText {
    let time = UNIX_EPOCH + std::time::Duration::from_secs(unix_s.min(LAST_SECOND));
    let mut text = *b"Thu, 01 Jan 1970 00:00:00 GMT";
    // The text is exactly as long as the room; a shorter one would leave the epoch's tail.
    let written = write!(text.as_mut_slice(), "{}", httpdate::HttpDate::from(time));
    debug_assert!(written.is_ok());
    text
}

/// `unix_s` as `2026-11-21T04:31:20Z`. Source: RFC 3339 §5.6.
pub(crate) fn rfc3339(unix_s: u64) -> String {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let text = http_date(unix_s);
    // An HTTP date has the same parts in fixed places.
    let part = |from: usize, to: usize| text.get(from..to).and_then(|part| std::str::from_utf8(part).ok());
    let (day, year, time) = (part(5, 7), part(12, 16), part(17, 25));
    let month = part(8, 11).and_then(|name| MONTHS.find(name)).map_or(1, |place| place / 3 + 1);
    let [year, day, time] = [year, day, time].map(Option::unwrap_or_default);
    format!("{year}-{month:02}-{day}T{time}Z")
}

/// The seconds since 1970 of an HTTP date in any of the three formats of RFC 9110 §5.6.7; `None` for anything else.
pub fn parse(text: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(text).ok()?;
    let time: SystemTime = httpdate::parse_http_date(text.trim_matches([' ', '\t'])).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// The wall clock as responses and logs see it.
#[derive(Debug)]
pub struct Clock {
    read: fn() -> u64,
    read_at: Option<Instant>,
    unix_s: u64,
    text: DateText,
}

impl Clock {
    /// A clock that asks `read` for seconds since 1970: [`unix_now`], or a test's.
    pub fn new(read: fn() -> u64) -> Clock {
        Clock { read, read_at: None, unix_s: 0, text: http_date(0) }
    }

    /// Catches up, if `now` is far enough from the last reading.
    pub fn advance(&mut self, now: Instant) {
        if self.read_at.is_some_and(|at| now.saturating_since(at) < READ_EVERY) {
            return;
        }
        self.read_at = Some(now);
        let unix_s = (self.read)();
        if unix_s != self.unix_s {
            self.unix_s = unix_s;
            self.text = http_date(unix_s);
        }
    }

    /// What it asks.
    pub(crate) fn reader(&self) -> fn() -> u64 {
        self.read
    }

    /// Seconds since 1970 at the last `advance`.
    pub fn unix_s(&self) -> u64 {
        self.unix_s
    }

    /// The Date field at the last `advance`.
    pub fn text(&self) -> &DateText {
        &self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_go_both_ways_and_extremes_do_not_panic() {
        assert_eq!(&http_date(1_795_235_480), b"Sat, 21 Nov 2026 04:31:20 GMT");
        assert_eq!(parse(b"Sat, 21 Nov 2026 04:31:20 GMT"), Some(1_795_235_480));
        assert_eq!(parse(b"Saturday, 21-Nov-26 04:31:20 GMT"), Some(1_795_235_480));
        assert_eq!(parse(b"Sat Nov 21 04:31:20 2026"), Some(1_795_235_480));
        assert_eq!(&http_date(u64::MAX), b"Fri, 31 Dec 9999 23:59:59 GMT");
        assert_eq!(rfc3339(1_795_235_480), "2026-11-21T04:31:20Z");
        assert_eq!(
            (rfc3339(0), rfc3339(u64::MAX)),
            ("1970-01-01T00:00:00Z".into(), "9999-12-31T23:59:59Z".into())
        );
        for bad in [&b""[..], b"yesterday", b"\xff\xff", b"Sat, 99 Nov 2026 04:31:20 GMT", b"0"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn the_clock_is_read_seldom() {
        static READS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let mut clock = Clock::new(|| READS.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        for ms in 0..1_000 {
            clock.advance(Instant::from_nanos(ms * 1_000_000));
        }
        assert_eq!(READS.load(std::sync::atomic::Ordering::Relaxed), 5);
        assert_eq!(clock.unix_s(), 4);
    }
}
