//! The CRYPTO frames of one space, both ways. Source: RFC 9000 §7.5, §19.6.
//!
//! What we send is kept until all of it is acknowledged: a handshake is a few kilobytes that we made ourselves, but tickets
//! would stay for the life of the connection. What we
//! receive is put in order by the bounded reassembly buffer; bytes in order are lent to TLS and never stored.

use crate::builder::PacketBuilder;
use crate::error::TransportError;
use crate::reassembly::Reassembly;
use crate::sent::SentFrame;
use base::ranges::RangeSet;
use core::ops::Range;
use wire::error::Code;
use wire::frame;

/// How far ahead of what TLS has read a peer may send. Source: RFC 9000 §7.5 asks for at least 4,096.
const MAX_AHEAD: u64 = 64 * 1024;

/// Handshake bytes of one space. Both parts are boxed and there only while bytes are on their way: after the handshake there are hardly
/// ever any.
#[derive(Default)]
pub(crate) struct CryptoStream {
    outgoing: Option<Box<Outgoing>>,
    /// Bytes below are all acknowledged.
    acked_below: u64,
    incoming: Option<Box<Reassembly>>,
    /// Bytes below went to TLS.
    read: u64,
}

/// What is not all acknowledged.
#[derive(Default)]
struct Outgoing {
    bytes: Vec<u8>,
    /// The offset of the first byte in it.
    base: u64,
    /// Bytes of it below were sent at least once.
    sent: usize,
    /// Ranges that are acknowledged, from `base` on.
    acked: RangeSet,
    /// Ranges to be sent again.
    lost: RangeSet,
    /// The offset where sending again goes on, so that probes in a row carry different bytes; after an acknowledgement the first that
    /// lacks one.
    resend_at: u64,
}

impl Outgoing {
    fn wants(&self) -> bool {
        self.sent < self.bytes.len() || !self.lost.is_empty()
    }

    /// Where the bytes end.
    fn end(&self) -> u64 {
        self.base + self.bytes.len() as u64
    }

    /// The part of a frame that was not known to have arrived, by its offset and length.
    fn unsettled(&self, offset: u64, len: u16) -> Range<u64> {
        offset.max(self.base)..(offset + u64::from(len)).max(self.base)
    }

    /// Writes CRYPTO frames, lost bytes first.
    fn write(&mut self, packet: &mut PacketBuilder<'_>) {
        while self.wants() {
            let lost = next_from(&self.lost, self.resend_at);
            let resends = lost.is_some();
            let fresh = self.base + self.sent as u64..self.end();
            let Some(written) = self.write_range(lost.unwrap_or(fresh), packet) else { return };
            if resends {
                self.resend_at = written;
            }
        }
    }

    fn repeat(&mut self, packet: &mut PacketBuilder<'_>) {
        let mut left = RangeSet::new();
        left.insert(self.base..self.base + self.sent as u64);
        let in_packet = packet.frames().iter().filter_map(|frame| match *frame {
            SentFrame::Crypto { offset, len } => Some(offset..offset + u64::from(len)),
            _ => None,
        });
        for range in self.acked.iter().chain(in_packet) {
            left.remove(range);
        }
        while let Some(range) = next_from(&left, self.resend_at) {
            let start = range.start;
            let Some(written) = self.write_range(range, packet) else { return };
            left.remove(start..written);
            self.resend_at = written;
        }
    }

    /// Writes as much of the range as there is room for; returns where that ends, `None` when there is no room.
    fn write_range(&mut self, range: Range<u64>, packet: &mut PacketBuilder<'_>) -> Option<u64> {
        let Range { start: offset, end } = range;
        let start = usize::try_from(offset.checked_sub(self.base)?).ok()?;
        let wanted = usize::try_from(end.checked_sub(offset)?).ok()?;
        let most = packet.remaining().min(wanted);
        let room = packet.remaining().checked_sub(frame::crypto_header_size(offset, most))?;
        let len = room.min(wanted);
        let data = self.bytes.get(start..start + len).filter(|data| !data.is_empty())?;
        frame::Crypto { offset, data }.write(&mut packet.writer);
        packet.sent(SentFrame::Crypto { offset, len: len as u16 });
        let written = offset + len as u64;
        self.lost.remove(offset..written);
        self.sent = self.sent.max(start + len);
        Some(written)
    }

    fn on_lost(&mut self, offset: u64, len: u16) {
        let range = self.unsettled(offset, len);
        self.lost.insert(range.clone());
        for acked in self.acked.overlapping(range) {
            self.lost.remove(acked);
        }
    }

    /// Whether all bytes are acknowledged now.
    fn on_acked(&mut self, offset: u64, len: u16) -> bool {
        let range = self.unsettled(offset, len);
        self.lost.remove(range.clone());
        self.acked.insert(range);
        self.resend_at = self.base;
        self.acked.first().is_some_and(|acked| acked.start == self.base && acked.end == self.end())
    }
}

impl CryptoStream {
    /// TLS has something to say.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let base = self.acked_below;
        let outgoing =
            self.outgoing.get_or_insert_with(|| Box::new(Outgoing { base, ..Outgoing::default() }));
        outgoing.bytes.extend_from_slice(bytes);
    }

    #[inline]
    pub(crate) fn wants(&self) -> bool {
        self.outgoing.as_ref().is_some_and(|outgoing| outgoing.wants())
    }

    /// Bytes that are kept.
    #[cfg(test)]
    pub(crate) fn retained(&self) -> usize {
        self.outgoing.as_ref().map_or(0, |outgoing| outgoing.bytes.len())
    }

    /// Bytes that were never sent.
    pub(crate) fn unsent(&self) -> usize {
        self.outgoing.as_ref().map_or(0, |outgoing| outgoing.bytes.len() - outgoing.sent)
    }

    /// Writes CRYPTO frames, lost bytes first.
    pub(crate) fn write(&mut self, packet: &mut PacketBuilder<'_>) {
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.write(packet);
        }
    }

    /// Fills what is left of a probe with bytes that lack an acknowledgement, where padding would stand else. A ClientHello with a
    /// post-quantum key share takes two datagrams, which would both have to arrive: so any two probes of one such hello will do.
    pub(crate) fn repeat(&mut self, packet: &mut PacketBuilder<'_>) {
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.repeat(packet);
        }
    }

    pub(crate) fn on_lost(&mut self, offset: u64, len: u16) {
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.on_lost(offset, len);
        }
    }

    /// Everything sent so far must be sent again: the server asked for it by a Retry.
    pub(crate) fn resend_all(&mut self) {
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.sent = 0;
            outgoing.lost.clear();
        }
    }

    pub(crate) fn on_acked(&mut self, offset: u64, len: u16) {
        let Some(outgoing) = &mut self.outgoing else { return };
        if outgoing.on_acked(offset, len) {
            self.acked_below = outgoing.end();
            self.outgoing = None;
        }
    }

    /// Whether TLS has all of a frame that arrives.
    pub(crate) fn has_read(&self, offset: u64, len: usize) -> bool {
        offset.saturating_add(len as u64) <= self.read
    }

    /// Takes in a CRYPTO frame; `deliver` gets the bytes that are next in order.
    pub(crate) fn on_data(
        &mut self,
        offset: u64,
        data: &[u8],
        mut deliver: impl FnMut(&[u8]) -> Result<(), TransportError>,
    ) -> Result<(), TransportError> {
        let end = offset.saturating_add(data.len() as u64);
        //= rfc9000/7.5#1
        if end > self.read.saturating_add(MAX_AHEAD) {
            return Err(TransportError::new(Code::CRYPTO_BUFFER_EXCEEDED, "CRYPTO data too far ahead"));
        }
        if offset > self.read {
            return self.incoming.get_or_insert_default().insert(offset, data).map_err(|_| {
                TransportError::new(Code::CRYPTO_BUFFER_EXCEEDED, "CRYPTO data in too many pieces")
            });
        }
        if let Some(fresh) = data.get((self.read - offset) as usize..).filter(|fresh| !fresh.is_empty()) {
            deliver(fresh)?;
            self.read = end;
        }
        let Some(incoming) = &mut self.incoming else { return Ok(()) };
        while let Some(piece) = incoming.next_piece(self.read) {
            deliver(piece)?;
            self.read += piece.len() as u64;
        }
        incoming.discard_below(self.read);
        self.incoming.take_if(|incoming| incoming.is_empty());
        Ok(())
    }
}

/// The first range at or behind an offset, which may begin within it; the first of all where there is none.
fn next_from(ranges: &RangeSet, offset: u64) -> Option<Range<u64>> {
    ranges.overlapping(offset..u64::MAX).next().or_else(|| ranges.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// GHSA-9q54-f358-3fqf: a high offset must cost nothing. neqo 3896, xquic 1.9.4: nor may single bytes with gaps.
    #[test]
    fn far_and_scattered_bytes_are_refused() {
        let mut stream = CryptoStream::default();
        let mut code =
            |offset, data: &[u8]| stream.on_data(offset, data, |_| Ok(())).map_err(|error| error.code);
        assert_eq!(code(MAX_AHEAD, &[1]), Err(Code::CRYPTO_BUFFER_EXCEEDED));
        assert_eq!(code(4_096, &[1]), Ok(()), "so much must be kept (RFC 9000 §7.5)");
        let kept = (1..MAX_AHEAD).step_by(2).take_while(|&offset| code(offset, &[1]).is_ok()).count();
        assert!((1_000..1_100).contains(&kept), "{kept} pieces");
    }
}
