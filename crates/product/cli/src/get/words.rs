//! Figures as people write them.

use indicatif::HumanDuration;

/// Bytes as people write them, in powers of ten.
pub(super) fn bytes_in_words(bytes: f64) -> String {
    scaled(bytes, &["B", "kB", "MB", "GB", "TB", "PB"])
}

/// Bytes a second, as bits.
pub(super) fn rate_in_words(bytes: f64) -> String {
    scaled(bytes * 8.0, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"])
}

fn scaled(mut value: f64, units: &[&str]) -> String {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or("");
    let mut is_whole = true;
    for larger in units {
        if value < 999.5 {
            break;
        }
        value /= 1_000.0;
        unit = larger;
        is_whole = false;
    }
    match value {
        value if is_whole || value >= 99.95 => format!("{value:.0} {unit}"),
        value if value >= 9.995 => format!("{value:.1} {unit}"),
        value => format!("{value:.2} {unit}"),
    }
}

pub(super) fn seconds_in_words(seconds: f64) -> String {
    match seconds {
        s if s < 0.1 => format!("{:.1} ms", s * 1e3),
        s if s < 100.0 => format!("{s:.2} s"),
        s => HumanDuration(std::time::Duration::from_secs_f64(s.min(1e12))).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_for_people() {
        let table = [
            (0.0, "0 B"),
            (999.0, "999 B"),
            (1_000.0, "1.00 kB"),
            (12_345.0, "12.3 kB"),
            (999_600.0, "1.00 MB"),
            (2e9, "2.00 GB"),
            (1.5e14, "150 TB"),
        ];
        for (bytes, text) in table {
            assert_eq!(bytes_in_words(bytes), text);
        }
        assert_eq!(rate_in_words(1.25e9), "10.0 Gbit/s");
        assert_eq!((seconds_in_words(0.012), seconds_in_words(3.0)), ("12.0 ms".into(), "3.00 s".into()));
    }
}
