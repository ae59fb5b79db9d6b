//! Sizes, on the command line and in files. A number without its unit is refused, but for the memory of a server.

const SIZES: &[(&str, f64)] = &[
    ("b", 1.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
    ("kib", 1024.0),
    ("mib", 1024.0 * 1024.0),
    ("gib", 1024.0 * 1024.0 * 1024.0),
];

/// A size such as `256KB` or `1MiB`, in bytes; at least 1.
///
/// # Errors
/// It is none; the text says what to give.
pub fn bytes(text: &str) -> Result<u64, String> {
    whole(number(text, SIZES, "a size such as 256KB or 1MiB")?)
}

/// The memory of a server, in bytes: a size such as `512MiB`, or a number of bytes; at least 1 MiB.
///
/// # Errors
/// As [`bytes`].
pub fn memory(text: &str) -> Result<u64, String> {
    let number = text.trim().parse().or_else(|_| bytes(text));
    match number {
        Ok(number) if number >= 1 << 20 => Ok(number),
        Ok(_) => Err("give at least 1MiB; a number without a unit is one of bytes".to_owned()),
        Err(_) => Err("give a size such as 512MiB or 2GiB, or a number of bytes".to_owned()),
    }
}

/// A number from 1 on, rounded.
///
/// # Errors
/// It is less, or too large.
pub fn whole(number: f64) -> Result<u64, String> {
    if !(1.0..=1e15).contains(&number) {
        return Err("out of range".to_owned());
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "just found to be in range")]
    let number = number.round() as u64;
    Ok(number)
}

/// Digits and a unit, with or without a space between them; letters of either case.
///
/// # Errors
/// What to give instead, such as `example`.
pub fn number(text: &str, units: &[(&str, f64)], example: &str) -> Result<f64, String> {
    let text = text.trim();
    let split = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let unit = unit.trim().to_ascii_lowercase();
    let factor = units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| factor);
    match (digits.parse::<f64>(), factor) {
        (Ok(number), Some(factor)) => Ok(number * factor),
        _ => Err(format!("give {example}")),
    }
}

#[cfg(test)]
mod tests {
    use super::memory;

    #[test]
    fn memory_is_a_size_or_a_number_of_bytes() {
        for text in ["512MiB", "536870912", " 0.5 GiB"] {
            assert_eq!(memory(text), Ok(512 << 20), "{text}");
        }
        assert!(memory("512").is_err_and(|error| error.contains("bytes")));
        for text in ["", "much", "512M", "-1", "1.5"] {
            assert!(memory(text).is_err_and(|error| error.contains("such as 512MiB")), "{text}");
        }
    }
}
