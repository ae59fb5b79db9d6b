//! What a worker's connections were like when they closed: how large their packets were in the end, and what the search for that
//! cost.

use base::time::Duration;
use transport::MtuReport;

/// A summary of connections that are closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PacketSizes {
    /// How many.
    pub connections: u64,
    /// The smallest packet size, in bytes of UDP payload; 0 without connections.
    pub smallest: u16,
    /// The largest.
    pub largest: u16,
    /// The longest search that came to its end.
    pub longest_search: Option<Duration>,
    /// Probes that were sent.
    pub probes_sent: u64,
    /// Probes that were lost.
    pub probes_lost: u64,
    /// Times that a path stopped carrying what it carried.
    pub black_holes: u64,
}

impl PacketSizes {
    /// A connection has closed.
    pub(crate) fn add(&mut self, report: &MtuReport) {
        let one = PacketSizes {
            connections: 1,
            smallest: report.size,
            largest: report.size,
            longest_search: report.took,
            probes_sent: report.probes_sent.into(),
            probes_lost: report.probes_lost.into(),
            black_holes: report.black_holes.into(),
        };
        self.merge(&one);
    }

    /// Those of another worker.
    pub fn merge(&mut self, other: &PacketSizes) {
        if other.connections == 0 {
            return;
        }
        self.smallest =
            if self.connections == 0 { other.smallest } else { self.smallest.min(other.smallest) };
        self.connections += other.connections;
        self.largest = self.largest.max(other.largest);
        self.longest_search = self.longest_search.max(other.longest_search);
        self.probes_sent += other.probes_sent;
        self.probes_lost += other.probes_lost;
        self.black_holes += other.black_holes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extremes_of_all_connections_are_kept_and_costs_are_summed() {
        let report = |size, probes_sent, took| MtuReport { size, probes_sent, took, ..MtuReport::default() };
        let (mut one, mut other) = (PacketSizes::default(), PacketSizes::default());
        one.add(&report(1_472, 3, Some(Duration::from_millis(4))));
        one.merge(&PacketSizes::default());
        other.add(&report(1_200, 2, None));
        other.add(&report(4_096, 5, Some(Duration::from_millis(9))));
        one.merge(&other);
        let expected = PacketSizes {
            connections: 3,
            smallest: 1_200,
            largest: 4_096,
            longest_search: Some(Duration::from_millis(9)),
            probes_sent: 10,
            ..PacketSizes::default()
        };
        assert_eq!(one, expected);
    }
}
