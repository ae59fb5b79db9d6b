//! `--without`: techniques that make tercel cheap, each of which can be left out to see what it is worth.
//!
//! This is the one table of their names. Where each of them works is told by [`DisabledTechniques`]: the sockets, the connection, the
//! server. What has a flag of its own (the data path, pacing, ACK frequency, the congestion controller, steering) is not here.

use clap::ValueEnum;
use ports::DataPathChoice;
use transport::{Technique, Without};

/// What can be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DisabledTechnique {
    /// Segmentation by the kernel: each datagram is handed over by itself, many per call. For --datapath gso.
    Gso,
    /// Merging by the kernel: each datagram is taken in by itself, many per call. For --datapath gso.
    Gro,
    /// Several trains or datagrams per system call when sending.
    Sendmmsg,
    /// Several trains or datagrams per system call when receiving.
    Recvmmsg,
    /// Taking in many packets before acting on them: one message at a time instead, be it a datagram or a merged train.
    ReceiveBatches,
    /// Departure times: the kernel does not hold trains back; the sender wakes for each.
    DepartureTimes,
    /// Header-protection masks of a train in one pass: packet by packet instead.
    TrainMasks,
    /// Merging of acknowledged ranges before a stream hears of them: frame by frame instead.
    MergedAcks,
    /// Lending of in-order data where it was decrypted: it is copied first.
    LentData,
    /// Handing over of the application's buffers: they are copied.
    SharedBuffers,
    /// Packets of a train that are alike in one step: one by one instead.
    Runs,
    /// The server's memory of encoded response heads: each is encoded anew.
    HeadCache,
}

/// Everything that is left out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DisabledTechniques<'a>(pub(crate) &'a [DisabledTechnique]);

impl DisabledTechniques<'_> {
    fn lack(self, technique: DisabledTechnique) -> bool {
        self.0.contains(&technique)
    }

    /// What connections do without.
    pub(crate) fn transport(self) -> Without {
        let techniques = [
            (DisabledTechnique::TrainMasks, Technique::TrainMasks),
            (DisabledTechnique::MergedAcks, Technique::MergedAcks),
            (DisabledTechnique::LentData, Technique::LentData),
            (DisabledTechnique::SharedBuffers, Technique::SharedBuffers),
            (DisabledTechnique::Runs, Technique::Runs),
        ];
        let lacking = techniques.into_iter().filter(|(name, _)| self.lack(*name));
        lacking.fold(Without::default(), |set, (_, technique)| set.with(technique))
    }

    /// What sockets do without.
    pub(crate) fn sockets(self) -> udp::Without {
        udp::Without {
            gso: self.lack(DisabledTechnique::Gso),
            gro: self.lack(DisabledTechnique::Gro),
            sendmmsg: self.lack(DisabledTechnique::Sendmmsg),
            recvmmsg: self.lack(DisabledTechnique::Recvmmsg),
            batches: self.lack(DisabledTechnique::ReceiveBatches),
        }
    }

    /// The same ports without what is left out.
    pub(crate) fn paths(self, options: ports::OpenOptions) -> ports::OpenOptions {
        let departure_times = !self.lack(DisabledTechnique::DepartureTimes);
        ports::OpenOptions { without: self.sockets(), departure_times, ..options }
    }

    /// Whether the server encodes each response head anew.
    pub(crate) fn heads(self) -> server::http3::HeadCache {
        if self.lack(DisabledTechnique::HeadCache) {
            server::http3::HeadCache::Off
        } else {
            server::http3::HeadCache::On
        }
    }

    /// Turns down what the data path has none of: leaving it out would show that it is worth nothing.
    pub(crate) fn check(self, datapath: DataPathChoice) -> Result<(), String> {
        let absent: &[DisabledTechnique] = match datapath {
            DataPathChoice::Gso | DataPathChoice::Uring | DataPathChoice::Auto => &[],
            DataPathChoice::Mmsg => &[DisabledTechnique::Gso, DisabledTechnique::Gro],
            DataPathChoice::Plain => &[
                DisabledTechnique::Gso,
                DisabledTechnique::Gro,
                DisabledTechnique::Sendmmsg,
                DisabledTechnique::Recvmmsg,
            ],
            DataPathChoice::Xdp => &[
                DisabledTechnique::Gso,
                DisabledTechnique::Gro,
                DisabledTechnique::Sendmmsg,
                DisabledTechnique::Recvmmsg,
                DisabledTechnique::ReceiveBatches,
                DisabledTechnique::DepartureTimes,
            ],
        };
        match absent.iter().find(|technique| self.lack(**technique)) {
            Some(technique) => {
                let name = value_name(*technique);
                Err(format!(
                    "--without {name} means nothing to --datapath {datapath}, which has none: leave it out"
                ))
            }
            None => Ok(()),
        }
    }
}

fn value_name(value: impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A name without effect would make an experiment say that the technique is worth nothing.
    #[test]
    fn every_technique_works_somewhere_and_only_where_it_is() {
        let (no_connection, no_socket) = (Without::default(), udp::Without::default());
        for technique in DisabledTechnique::value_variants() {
            let one = [*technique];
            let set = DisabledTechniques(&one);
            let ports =
                set.paths(ports::OpenOptions::new(ports::DataPathChoice::Gso, ([127, 0, 0, 1], 0).into()));
            let effects = [
                set.transport() != no_connection,
                ports.without != no_socket,
                !ports.departure_times,
                set.heads() == server::http3::HeadCache::Off,
            ];
            assert_eq!(effects.iter().filter(|effect| **effect).count(), 1, "{technique:?}");
            assert!(set.check(DataPathChoice::Gso).is_ok());
        }
        let refused = DisabledTechniques(&[DisabledTechnique::LentData, DisabledTechnique::Gro])
            .check(DataPathChoice::Mmsg);
        assert_eq!(
            refused,
            Err("--without gro means nothing to --datapath mmsg, which has none: leave it out".to_owned())
        );
    }
}
