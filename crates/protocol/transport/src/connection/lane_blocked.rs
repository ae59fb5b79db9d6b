//! What keeps this end from opening a path, as the peer is told. Source: draft-ietf-quic-multipath §4.7.

use crate::announce::Announce;
use crate::builder::PacketBuilder;
use wire::frame;

/// What there is too little of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lack {
    /// Path IDs: the peer permits them up to this one.
    PathIds(u32),
    /// Connection IDs for this path.
    ConnectionIds(u32),
}

/// What the peer is told of it, or has been.
#[derive(Debug, Default)]
pub(super) struct Blocked(Announce<Lack>);

impl Blocked {
    /// A path was refused for this reason, perhaps not for the first time. The peer is told once; a loss of that does no harm, because
    /// it gives as much as it is willing to in any case.
    //= multipath/4.7#3
    pub(super) fn on_refused(&mut self, lack: Lack) {
        if self.0 != Announce::InFlight(lack) {
            self.0.request(lack);
        }
    }

    pub(super) fn wants(&self) -> bool {
        self.0.is_pending()
    }

    pub(super) fn write(&mut self, packet: &mut PacketBuilder<'_>) {
        let Some(lack) = self.0.pending() else { return };
        match *lack {
            Lack::PathIds(maximum) => {
                let frame = frame::PathsBlocked { maximum: maximum.into() };
                if packet.remaining() < frame.size() {
                    return;
                }
                frame.write(&mut packet.writer);
            }
            Lack::ConnectionIds(path) => {
                let frame = frame::PathCidsBlocked { path: path.into(), next_sequence: 0 };
                if packet.remaining() < frame.size() {
                    return;
                }
                frame.write(&mut packet.writer);
            }
        }
        packet.sent_unremembered();
        self.0.on_sent();
    }
}
