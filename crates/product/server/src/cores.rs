//! How many threads a server has, and the cores that they keep.

use core::num::NonZeroU8;
use core::str::FromStr;

/// How many workers serve HTTP/3. HTTP/1.1 and 2 have as many threads of their own, which sleep while they are not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Workers {
    /// One for each core that this process may use; with AF_XDP no more than the interface has queues.
    OnePerCore,
    /// This number.
    Exactly(NonZeroU8),
}

impl Default for Workers {
    fn default() -> Workers {
        Workers::Exactly(NonZeroU8::MIN)
    }
}

/// `auto`, or a number from 1 to 255.
impl FromStr for Workers {
    type Err = String;

    fn from_str(text: &str) -> Result<Workers, String> {
        match (text, text.parse()) {
            ("auto", _) => Ok(Workers::OnePerCore),
            (_, Ok(count)) => Ok(Workers::Exactly(count)),
            (_, Err(_)) => Err("from 1 to 255, or auto for one on each core".to_owned()),
        }
    }
}

/// Which core each worker keeps. The thread of the same number for HTTP/1.1 and 2 keeps the same core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cores {
    /// The kernel chooses, and may move them.
    #[default]
    Unpinned,
    /// Each worker has a core of its own, in the order of the cores that this process may use.
    Auto,
    /// These cores in this order, and from the beginning again when they are too few.
    These(Vec<usize>),
}

/// `auto`, or cores in the notation of taskset(1): `0,2-5`.
impl FromStr for Cores {
    type Err = String;

    fn from_str(text: &str) -> Result<Cores, String> {
        if text == "auto" {
            return Ok(Cores::Auto);
        }
        let mut cores = Vec::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            match (first.parse::<usize>(), last.parse()) {
                (Ok(first), Ok(last)) if first <= last && last < MAX_CORES => cores.extend(first..=last),
                _ => return Err("auto, or cores such as 0,2-5".to_owned()),
            }
        }
        Ok(Cores::These(cores))
    }
}

/// Above the number of cores of any machine.
const MAX_CORES: usize = 4_096;

impl Cores {
    /// The cores of `threads` threads, in their order; none if they are not pinned. `allowed` are those that this process may
    /// use.
    ///
    /// # Errors
    /// A core is not among `allowed`, or no core is known.
    pub fn assign(&self, threads: usize, allowed: &[usize]) -> Result<Vec<usize>, String> {
        let cores = match self {
            Cores::Unpinned => return Ok(Vec::new()),
            Cores::Auto => allowed,
            Cores::These(cores) => cores,
        };
        if let Some(core) = cores.iter().find(|core| !allowed.contains(core)) {
            return Err(format!(
                "core {core} does not exist or is not permitted to this process; it may use {}",
                list(allowed)
            ));
        }
        if cores.is_empty() {
            return Err("this system does not say which cores there are".to_owned());
        }
        Ok(cores.iter().copied().cycle().take(threads).collect())
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
        assert_eq!("auto".parse(), Ok(Workers::OnePerCore));
        assert_eq!("255".parse(), Ok(Workers::Exactly(NonZeroU8::MAX)));
        assert!(["0", "256", "many", "-1"].iter().all(|text| text.parse::<Workers>().is_err()));
    }

    #[test]
    fn cores_are_listed_as_elsewhere_and_reused_when_they_are_few() {
        let cores: Cores = "0,2-3".parse().unwrap();
        assert_eq!(cores.assign(5, &[0, 1, 2, 3]), Ok(vec![0, 2, 3, 0, 2]));
        assert_eq!(Cores::Auto.assign(3, &[4, 7]), Ok(vec![4, 7, 4]));
        assert_eq!(Cores::Unpinned.assign(3, &[4, 7]), Ok(Vec::new()));
        assert!(["", "3-1", "a", "1,", "0-99999999"].iter().all(|text| text.parse::<Cores>().is_err()));
    }

    #[test]
    fn a_core_that_is_not_permitted_is_named_with_those_that_are() {
        let refused = Cores::These(vec![9]).assign(1, &[0, 1, 2, 5]).unwrap_err();
        assert!(refused.contains("core 9") && refused.contains("0-2,5"), "{refused}");
    }
}
