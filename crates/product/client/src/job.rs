//! What a download is asked to do: one URL, one place, and which bytes.

use crate::error::GetError;
use crate::output::Output;
use crate::part::Resume;
use crate::target::Target;
use core::ops::Range;

/// One URL and what is to become of it.
#[derive(Clone, Debug)]
pub struct Job {
    /// From where.
    pub target: Target,
    /// To where. Not used for heads.
    pub output: Output,
    /// What of it.
    pub wanted: Wanted,
}

/// Which bytes are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// None: only the head of the answer.
    Head,
    /// All of them, or what an earlier attempt left missing.
    Whole(Resume),
    /// These, which become the whole output. `u64::MAX` as the end: up to the end of the file.
    Range(Range<u64>, Resume),
}

/// Reads `--range`: `A-B`, both ends included as in HTTP, or `A-`.
///
/// # Errors
/// What is wrong with the text.
pub fn parse_range(text: &str) -> Result<Range<u64>, GetError> {
    let wrong = || {
        GetError::Usage(format!(
            "--range {text} is no range: write FIRST-LAST, such as 0-999 for the first thousand bytes, or FIRST-"
        ))
    };
    let (first, last) = text.split_once('-').ok_or_else(wrong)?;
    let number = |digits: &str| {
        // `parse` alone would take a plus sign.
        let digits = Some(digits).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        digits.and_then(|digits| digits.parse::<u64>().ok()).ok_or_else(wrong)
    };
    let start = number(first)?;
    let end = if last.is_empty() { u64::MAX } else { number(last)?.saturating_add(1) };
    if start < end { Ok(start..end) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_as_users_write_them() {
        assert_eq!(parse_range("0-999").unwrap(), 0..1_000);
        assert_eq!(parse_range("5-5").unwrap(), 5..6);
        assert_eq!(parse_range("100-").unwrap(), 100..u64::MAX);
        for wrong in ["", "5", "-5", "9-3", "a-b", "+1-2", "1-2,4-5", "99999999999999999999-"] {
            assert_eq!(parse_range(wrong).unwrap_err().exit_code(), 2, "{wrong}");
        }
    }
}
