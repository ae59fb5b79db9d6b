//! The names by which users choose a data path.

use core::fmt;
use core::str::FromStr;
use udp::Variant;

/// A data path, or the wish to have one chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// Whatever costs least on the interface, found by measuring.
    Auto,
    /// Trains of datagrams, segmented and merged by the kernel (GSO, GRO).
    #[default]
    Gso,
    /// Many datagrams per system call (sendmmsg, recvmmsg).
    Mmsg,
    /// One datagram per system call.
    Plain,
    /// Past the kernel's network stack (AF_XDP), one queue of the interface for each worker.
    Xdp,
}

impl Choice {
    /// All of them.
    pub const ALL: [Choice; 5] = [Choice::Auto, Choice::Gso, Choice::Mmsg, Choice::Plain, Choice::Xdp];

    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Gso => "gso",
            Choice::Mmsg => "mmsg",
            Choice::Plain => "plain",
            Choice::Xdp => "xdp",
        }
    }

    /// The system calls of a path through kernel UDP; `None` for the others.
    pub const fn variant(self) -> Option<Variant> {
        match self {
            Choice::Gso => Some(Variant::Gso),
            Choice::Mmsg => Some(Variant::Mmsg),
            Choice::Plain => Some(Variant::Plain),
            Choice::Auto | Choice::Xdp => None,
        }
    }
}

impl From<Variant> for Choice {
    fn from(variant: Variant) -> Choice {
        match variant {
            Variant::Gso => Choice::Gso,
            Variant::Mmsg => Choice::Mmsg,
            Variant::Plain => Choice::Plain,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads what [`Choice::name`] writes; the error says what there is to choose from.
impl FromStr for Choice {
    type Err = String;

    fn from_str(name: &str) -> Result<Choice, String> {
        let found = Choice::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or_else(|| format!("there is no data path \"{name}\": auto, gso, mmsg, plain or xdp"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_others_say_what_there_is() {
        for choice in Choice::ALL {
            assert_eq!(choice.name().parse(), Ok(choice));
        }
        let refused = "dpdk".parse::<Choice>().unwrap_err();
        assert!(refused.contains("\"dpdk\"") && refused.contains("xdp"), "{refused}");
    }
}
