//! `--workers` and `--pin`: how many threads, which core each of them keeps, and how long it kept it busy.

use core::str::FromStr;

/// How many workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Workers {
    /// One for each core that this program may use; with xdp one for each queue of the interface.
    Auto,
    /// So many.
    Exactly(u8),
}

impl FromStr for Workers {
    type Err = String;

    fn from_str(text: &str) -> Result<Workers, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Workers::Auto),
            (_, Ok(count @ 1..)) => Ok(Workers::Exactly(count)),
            _ => Err("from 1 to 255, or auto for one on each core".to_owned()),
        }
    }
}

/// Where workers run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Pin {
    /// Each on a core of its own, in the order of the cores that this program may use.
    Auto,
    /// On these, in this order, and from the beginning again when they are too few.
    Cores(Vec<usize>),
}

/// `auto`, or cores as `taskset` has them: `0,2-5`.
impl FromStr for Pin {
    type Err = String;

    fn from_str(text: &str) -> Result<Pin, String> {
        if text == "auto" {
            return Ok(Pin::Auto);
        }
        let mut cores = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (first.parse::<usize>(), last.parse()) {
                (Ok(first), Ok(last)) if first <= last && last < MOST_CORES => cores.extend(first..=last),
                _ => return Err("auto, or cores such as 0,2-5".to_owned()),
            }
        }
        Ok(Pin::Cores(cores))
    }
}

/// More than any machine has.
const MOST_CORES: usize = 4_096;

impl Pin {
    /// The cores of `workers` workers. `allowed` are those that this program may use.
    pub(crate) fn assign(&self, workers: usize, allowed: &[usize]) -> Result<Vec<usize>, String> {
        let cores = match self {
            Pin::Auto => allowed,
            Pin::Cores(cores) => cores,
        };
        if let Some(core) = cores.iter().find(|core| !allowed.contains(core)) {
            return Err(format!("--pin: core {core} is not there, or not ours; there are {}", list(allowed)));
        }
        if cores.is_empty() {
            return Err("--pin: this system does not say which cores there are".to_owned());
        }
        Ok(cores.iter().copied().cycle().take(workers).collect())
    }
}

/// `0-3,6`.
fn list(cores: &[usize]) -> String {
    let mut text = String::new();
    let mut rest = cores;
    while let [first, ..] = rest {
        let run = rest.iter().zip(*first..).take_while(|(core, expected)| **core == *expected).count();
        let comma = if text.is_empty() { "" } else { "," };
        text += &match run {
            1 => format!("{comma}{first}"),
            _ => format!("{comma}{first}-{}", first + run - 1),
        };
        rest = rest.get(run..).unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_counted_or_left_to_the_machine() {
        assert_eq!("auto".parse(), Ok(Workers::Auto));
        assert_eq!("255".parse(), Ok(Workers::Exactly(255)));
        assert!(["0", "256", "many", "-1"].iter().all(|text| text.parse::<Workers>().is_err()));
    }

    #[test]
    fn cores_are_listed_as_elsewhere_and_reused_when_they_are_few() {
        let pin: Pin = "0,2-3".parse().unwrap();
        assert_eq!(pin.assign(5, &[0, 1, 2, 3]), Ok(vec![0, 2, 3, 0, 2]));
        assert_eq!(Pin::Auto.assign(3, &[4, 7]), Ok(vec![4, 7, 4]));
        assert!(["", "3-1", "a", "1,", "0-99999999"].iter().all(|text| text.parse::<Pin>().is_err()));
    }

    #[test]
    fn a_core_that_is_not_ours_is_named_with_those_that_are() {
        let refused = Pin::Cores(vec![9]).assign(1, &[0, 1, 2, 5]).unwrap_err();
        assert!(refused.contains("core 9") && refused.contains("0-2,5"), "{refused}");
    }
}
