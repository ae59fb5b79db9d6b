//! What makes a connection worth keeping, and how that is written: `error,stall,loss=2%`.

use core::str::FromStr;

/// What makes a connection worth keeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Triggers {
    /// It ended in an error, of either end.
    pub error: bool,
    /// Three probe timeouts passed in a row.
    pub stall: bool,
    /// When it ended, more than this many thousandths of the packets sent had been lost.
    pub loss_per_mille: Option<u16>,
}

impl FromStr for Triggers {
    type Err = String;

    /// Names separated by commas: `error`, `stall`, `loss=N%`, with one decimal place at most.
    fn from_str(text: &str) -> Result<Triggers, String> {
        let mut triggers = Triggers::default();
        for word in text.split(',') {
            match word.trim() {
                "error" => triggers.error = true,
                "stall" => triggers.stall = true,
                other => {
                    let percent = other.strip_prefix("loss=").and_then(|rest| rest.strip_suffix('%'));
                    let per_mille = percent.and_then(per_mille);
                    triggers.loss_per_mille = Some(per_mille.ok_or_else(|| words(other))?);
                }
            }
        }
        Ok(triggers)
    }
}

fn per_mille(percent: &str) -> Option<u16> {
    let percent: f64 = percent.parse().ok()?;
    // Between 0 and a thousand.
    (0.0..=100.0).contains(&percent).then(|| (percent * 10.0).round() as u16)
}

fn words(word: &str) -> String {
    format!("{word:?} is none of error, stall and loss=N%, such as loss=2%")
}
