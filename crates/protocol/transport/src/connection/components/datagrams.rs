//! Unreliable datagrams. Source: RFC 9221.
//!
//! What waits to be sent is bounded by count and by bytes, overhead included, so that empty datagrams cost too; when
//! the queue is full the oldest is dropped, because applications that choose datagrams prefer new data. Received ones are
//! lent to the application at once and never queued.

use crate::builder::PacketBuilder;
use crate::sent::SentFrame;
use bytes::Bytes;
use std::collections::VecDeque;
use wire::frame;
use wire::transport_parameters::TransportParameters;

/// Datagrams that wait at most.
const MAX_QUEUED: usize = 1_024;

/// Bytes that wait at most, with [`OVERHEAD`] for each datagram.
const MAX_QUEUED_BYTES: usize = 1024 * 1024;

/// What a queued datagram costs beside its payload.
const OVERHEAD: usize = core::mem::size_of::<Bytes>();

/// Why a datagram cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatagramError {
    /// The peer takes no datagrams.
    NotSupported,
    /// Larger than the peer takes.
    TooLarge,
}

impl core::fmt::Display for DatagramError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            DatagramError::NotSupported => "the peer takes no datagrams",
            DatagramError::TooLarge => "the datagram is larger than the peer takes",
        })
    }
}

impl core::error::Error for DatagramError {}

/// What the queue takes before the oldest datagrams give way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramRoom {
    /// Datagrams.
    pub datagrams: usize,
    /// Bytes: of each datagram its payload, and what it costs beside.
    pub bytes: usize,
}

impl DatagramRoom {
    /// Bytes of payload that one datagram may have.
    pub fn payload(&self) -> usize {
        if self.datagrams == 0 { 0 } else { self.bytes.saturating_sub(OVERHEAD) }
    }

    /// A datagram with a payload of `len` bytes goes into the queue.
    pub fn take(&mut self, len: usize) {
        self.datagrams = self.datagrams.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(len + OVERHEAD);
    }
}

/// Datagrams to be sent, and what each side accepts.
#[derive(Debug)]
pub(crate) struct Datagrams {
    /// The largest DATAGRAM frame we accept, type and length included; 0: none.
    local_limit: u16,
    /// The same of the peer.
    peer_limit: u64,
    /// Made by the first that is sent, because most connections send none.
    outgoing: Option<Box<Outgoing>>,
}

/// Datagrams to be sent.
#[derive(Debug, Default)]
struct Outgoing {
    queue: VecDeque<Bytes>,
    /// Payload and overhead of the queue.
    queued_bytes: usize,
    dropped: u64,
}

impl Outgoing {
    fn push(&mut self, bytes: Bytes) {
        self.queued_bytes += bytes.len() + OVERHEAD;
        self.queue.push_back(bytes);
        //= rfc9221/5.4#1
        while self.queue.len() > MAX_QUEUED || self.queued_bytes > MAX_QUEUED_BYTES {
            self.pop();
            self.dropped += 1;
        }
    }

    fn pop(&mut self) {
        if let Some(bytes) = self.queue.pop_front() {
            self.queued_bytes -= bytes.len() + OVERHEAD;
        }
    }

    /// Drops what the peer does not take.
    fn keep_below(&mut self, limit: u64) {
        let before = self.queue.len();
        self.queue.retain(|bytes| (bytes.len() as u64) < limit);
        self.dropped += (before - self.queue.len()) as u64;
        self.queued_bytes = self.queue.iter().map(|bytes| bytes.len() + OVERHEAD).sum();
    }

    /// Writes DATAGRAM frames of at most `limit` bytes as far as the packet has room. One that does not even fit an empty packet is
    /// dropped: the path has become narrower.
    fn write(&mut self, limit: u64, packet: &mut PacketBuilder<'_>) {
        while let Some(data) = self.queue.front() {
            let (room, frame) = (packet.remaining(), frame::Datagram { data });
            let may_have_length = frame.size() as u64 <= limit;
            if frame.size() <= room && may_have_length {
                frame.write(&mut packet.writer);
            } else if data.len() + 1 == room {
                frame.write_last(&mut packet.writer);
            } else if !packet.is_empty() {
                return;
            //= rfc9221/5#2
            } else if data.len() < room {
                // Fits, but neither with a length nor to the end: padding goes in front.
                packet.pad_to(room - 1 - data.len());
                frame.write_last(&mut packet.writer);
            } else {
                self.pop();
                self.dropped += 1;
                continue;
            }
            //= rfc9221/5.2#2
            packet.sent(SentFrame::Datagram);
            self.pop();
        }
    }
}

impl Datagrams {
    /// Accepts DATAGRAM frames of up to `max_frame_size` bytes; 0: none.
    pub(crate) fn new(max_frame_size: u16) -> Datagrams {
        Datagrams { local_limit: max_frame_size, peer_limit: 0, outgoing: None }
    }

    pub(crate) fn fill_parameters(&self, parameters: &mut TransportParameters) {
        parameters.max_datagram_frame_size = self.local_limit.into();
    }

    pub(crate) fn on_peer_parameters(&mut self, parameters: &TransportParameters) {
        self.peer_limit = parameters.max_datagram_frame_size;
        // Those that were to go as early data may be larger than the server takes on this connection.
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.keep_below(self.peer_limit);
        }
    }

    /// Whether a DATAGRAM frame with a payload of `len` bytes is one that we allowed.
    #[inline]
    pub(crate) fn may_receive(&self, len: usize) -> bool {
        // RFC 9221 §3: the limit counts the frame's type too. A length field, which it may lack, is let pass.
        len < usize::from(self.local_limit)
    }

    /// The largest payload, in bytes, that fits a packet with `room` bytes of frames and that the peer takes; `None`
    /// if it takes none.
    pub(crate) fn max_size(&self, room: usize) -> Option<usize> {
        let limit = usize::try_from(self.peer_limit).unwrap_or(usize::MAX).min(room);
        // The type, and no length: a datagram this large ends its packet.
        if self.peer_limit == 0 { None } else { limit.checked_sub(1) }
    }

    /// Queues a datagram; the oldest ones give way when there are too many.
    pub(crate) fn send(&mut self, bytes: Bytes) -> Result<(), DatagramError> {
        //= rfc9221/3#1
        if self.peer_limit == 0 {
            return Err(DatagramError::NotSupported);
        }
        //= rfc9221/3#2
        if bytes.len() as u64 >= self.peer_limit || bytes.len() + OVERHEAD > MAX_QUEUED_BYTES {
            return Err(DatagramError::TooLarge);
        }
        self.outgoing.get_or_insert_default().push(bytes);
        Ok(())
    }

    #[inline]
    pub(crate) fn wants(&self) -> bool {
        self.outgoing.as_ref().is_some_and(|outgoing| !outgoing.queue.is_empty())
    }

    /// Bytes that wait, with what each datagram costs beside its payload.
    #[inline]
    pub(crate) fn unsent(&self) -> u64 {
        self.outgoing.as_ref().map_or(0, |outgoing| outgoing.queued_bytes as u64)
    }

    /// What the queue takes before the oldest give way.
    pub(crate) fn room(&self) -> DatagramRoom {
        let held = |of: fn(&Outgoing) -> usize| self.outgoing.as_deref().map_or(0, of);
        DatagramRoom {
            datagrams: MAX_QUEUED.saturating_sub(held(|outgoing| outgoing.queue.len())),
            bytes: MAX_QUEUED_BYTES.saturating_sub(held(|outgoing| outgoing.queued_bytes)),
        }
    }

    /// How many datagrams gave way or never fitted a packet.
    pub(crate) fn dropped(&self) -> u64 {
        self.outgoing.as_ref().map_or(0, |outgoing| outgoing.dropped)
    }

    /// Writes DATAGRAM frames as far as the packet has room.
    pub(crate) fn write(&mut self, packet: &mut PacketBuilder<'_>) {
        if let Some(outgoing) = &mut self.outgoing {
            outgoing.write(self.peer_limit, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::writer::Writer;

    fn queue(peer_limit: u64) -> Datagrams {
        let mut datagrams = Datagrams::new(100);
        let parameters = TransportParameters { max_datagram_frame_size: peer_limit, ..Default::default() };
        datagrams.on_peer_parameters(&parameters);
        datagrams
    }

    /// Deleted, a program that waits for room could lose datagrams to its own later ones.
    #[test]
    fn what_has_room_makes_nothing_give_way() {
        for len in [0, 100, 60_000] {
            let mut datagrams = queue(65_535);
            let (mut room, mut sent) = (datagrams.room(), 0);
            while room.datagrams > 0 && room.payload() >= len {
                room.take(len);
                datagrams.send(Bytes::from(vec![0; len])).unwrap();
                sent += 1;
                assert_eq!((datagrams.room(), datagrams.dropped()), (room, 0));
            }
            assert!(sent > 0 && sent <= MAX_QUEUED);
            datagrams.send(Bytes::from(vec![0; len])).unwrap();
            assert_eq!(datagrams.dropped(), 1, "the room was used up");
        }
    }

    /// Writes one packet; returns the payload lengths that a parser finds in it.
    fn packet(datagrams: &mut Datagrams, size: usize) -> Vec<usize> {
        let (mut buffer, mut frames) = (vec![0xff; size], Vec::new());
        let mut builder = PacketBuilder::new(Writer::new(&mut buffer), &mut frames);
        datagrams.write(&mut builder);
        let len = builder.writer.position();
        let mut reader = wire::Reader::new(&buffer[..len]);
        let mut found = Vec::new();
        while !reader.is_empty() {
            match wire::Frame::parse_next(&mut reader).unwrap() {
                wire::Frame::Datagram(frame) => found.push(frame.data.len()),
                wire::Frame::Padding { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        found
    }

    #[test]
    fn a_frame_that_fills_the_packet_has_no_length_and_one_that_never_fits_goes() {
        let mut datagrams = queue(2_000);
        for len in [10, 20, 99, 98, 100, 5] {
            datagrams.send(Bytes::from(vec![7; len])).unwrap();
        }
        assert_eq!(packet(&mut datagrams, 100), [10, 20]);
        assert_eq!(packet(&mut datagrams, 100), [99]);
        assert_eq!(packet(&mut datagrams, 100), [98], "one byte of padding in front");
        assert_eq!(packet(&mut datagrams, 100), [5], "100 bytes never fit");
        assert_eq!((datagrams.dropped(), datagrams.wants(), datagrams.unsent()), (1, false, 0));
    }

    #[test]
    fn limits_hold_in_both_directions() {
        let mut datagrams = queue(11);
        assert_eq!(datagrams.max_size(1_200), Some(10));
        assert_eq!(datagrams.max_size(8), Some(7));
        assert_eq!(datagrams.send(Bytes::from(vec![0; 11])), Err(DatagramError::TooLarge));
        assert_eq!(datagrams.send(Bytes::from(vec![0; 10])), Ok(()));
        assert_eq!(
            packet(&mut datagrams, 50),
            [10],
            "without a length field, which the peer's limit would count"
        );
        assert!(datagrams.may_receive(99) && !datagrams.may_receive(100));
        assert!(!Datagrams::new(0).may_receive(0));
        assert_eq!(Datagrams::new(0).send(Bytes::new()), Err(DatagramError::NotSupported));
    }

    /// GHSA-2hv7-gw8g-gpq5: empty datagrams cost no payload and would pile up.
    #[test]
    fn the_queue_is_bounded_by_count_and_bytes_and_drops_the_oldest() {
        let mut datagrams = queue(1 << 20);
        for _ in 0..10_000 {
            datagrams.send(Bytes::new()).unwrap();
        }
        assert_eq!(datagrams.room().datagrams, 0);
        assert_eq!(datagrams.dropped(), 10_000 - MAX_QUEUED as u64);
        for _ in 0..100 {
            datagrams.send(Bytes::from(vec![0; 60_000])).unwrap();
        }
        assert!(datagrams.unsent() <= MAX_QUEUED_BYTES as u64);
        assert!(
            datagrams
                .outgoing
                .iter()
                .all(|outgoing| outgoing.queue.iter().all(|bytes| bytes.len() == 60_000))
        );
    }
}
