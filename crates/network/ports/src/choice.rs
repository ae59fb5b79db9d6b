//! The names by which users choose a data path.

use core::fmt;
use core::str::FromStr;
use udp::Variant;

/// A data path, or the wish to have one chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DataPathChoice {
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

impl DataPathChoice {
    /// All of them.
    pub const ALL: [DataPathChoice; 5] = [
        DataPathChoice::Auto,
        DataPathChoice::Gso,
        DataPathChoice::Mmsg,
        DataPathChoice::Plain,
        DataPathChoice::Xdp,
    ];

    /// The name by which users choose it.
    pub const fn name(self) -> &'static str {
        match self {
            DataPathChoice::Auto => "auto",
            DataPathChoice::Gso => "gso",
            DataPathChoice::Mmsg => "mmsg",
            DataPathChoice::Plain => "plain",
            DataPathChoice::Xdp => "xdp",
        }
    }

    /// The system calls of a path through kernel UDP; `None` for the others.
    pub const fn variant(self) -> Option<Variant> {
        match self {
            DataPathChoice::Gso => Some(Variant::Gso),
            DataPathChoice::Mmsg => Some(Variant::Mmsg),
            DataPathChoice::Plain => Some(Variant::Plain),
            DataPathChoice::Auto | DataPathChoice::Xdp => None,
        }
    }
}

impl From<Variant> for DataPathChoice {
    fn from(variant: Variant) -> DataPathChoice {
        match variant {
            Variant::Gso => DataPathChoice::Gso,
            Variant::Mmsg => DataPathChoice::Mmsg,
            Variant::Plain => DataPathChoice::Plain,
        }
    }
}

impl fmt::Display for DataPathChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Reads what [`DataPathChoice::name`] writes; the error says what there is to choose from.
impl FromStr for DataPathChoice {
    type Err = String;

    fn from_str(name: &str) -> Result<DataPathChoice, String> {
        let found = DataPathChoice::ALL.into_iter().find(|choice| choice.name() == name);
        found.ok_or_else(|| format!("there is no data path \"{name}\": auto, gso, mmsg, plain or xdp"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_others_say_what_there_is() {
        for choice in DataPathChoice::ALL {
            assert_eq!(choice.name().parse(), Ok(choice));
        }
        let refused = "dpdk".parse::<DataPathChoice>().unwrap_err();
        assert!(refused.contains("\"dpdk\"") && refused.contains("xdp"), "{refused}");
    }
}
