//! The peer's unidirectional streams: what each is for, and that the critical ones are unique and stay. RFC 9114 §6.2,
//! RFC 9204 §4.2.
//!
//! There is one reader for each critical stream, made with the connection and never replaced, whatever streams come. A
//! stream whose type has not arrived yet is an entry in a short list; one of unknown type is no entry at all.

use crate::control::ControlStream;
use crate::error::{Code, ConnectionError};
use crate::stream_type;
use crate::trace::Trace;
use crate::varint::PartialVarint;
use qpack::instructions::{DecoderStream, EncoderStream};
use transport::{Fin, StreamId};
use wire::Side;

/// Streams whose type is not known yet. The transport's limit on streams is usually lower.
const MAX_UNTYPED: usize = 128;

/// What a stream's bytes are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Control,
    QpackEncoder,
    QpackDecoder,
}

/// What follows from a stream's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<'a> {
    /// These bytes belong to a critical stream. Its end, if they are the last, is an error once they were taken in.
    Bytes(Purpose, &'a [u8]),
    /// Nothing now.
    Nothing,
    /// A stream turned out to be of unknown type: what still comes is discarded.
    Unknown,
}

/// The peer's unidirectional streams.
#[derive(Debug)]
pub(crate) struct PeerStreams {
    peer: Side,
    /// The lowest index that no stream has had yet.
    next: u64,
    untyped: Vec<(StreamId, PartialVarint)>,
    ids: [Option<StreamId>; 3],
    pub(crate) control: ControlStream,
    pub(crate) encoder: EncoderStream,
    pub(crate) decoder: DecoderStream,
}

const PURPOSES: [Purpose; 3] = [Purpose::Control, Purpose::QpackEncoder, Purpose::QpackDecoder];

impl PeerStreams {
    pub(crate) fn new(peer: Side) -> PeerStreams {
        PeerStreams {
            peer,
            next: 0,
            untyped: Vec::new(),
            ids: [None; 3],
            control: ControlStream::new(peer),
            encoder: EncoderStream::new(),
            decoder: DecoderStream::new(),
        }
    }

    /// Gives back what only streams to come need.
    pub(crate) fn release_memory(&mut self) {
        self.untyped.shrink_to_fit();
    }

    /// What the stream is for, if it is a critical one.
    pub(crate) fn purpose(&self, id: StreamId) -> Option<Purpose> {
        self.ids.iter().zip(PURPOSES).find(|(known, _)| **known == Some(id)).map(|(_, purpose)| purpose)
    }

    /// The next bytes of a stream.
    pub(crate) fn on_bytes<'a>(
        &mut self,
        id: StreamId,
        mut bytes: &'a [u8],
        fin: Fin,
        trace: Option<&mut Trace>,
    ) -> Result<Outcome<'a>, ConnectionError> {
        if let Some(purpose) = self.purpose(id) {
            return Ok(Outcome::Bytes(purpose, bytes));
        }
        self.note_opened(id)?;
        let Some(at) = self.untyped.iter().position(|(known, _)| *known == id) else {
            // Its type is known and means nothing to us.
            return Ok(Outcome::Nothing);
        };
        let Some(ty) = self.untyped.get_mut(at).and_then(|(_, partial)| partial.read(&mut bytes)) else {
            if fin == Fin::End {
                // RFC 9114 §6.2: a stream may end before its type is complete.
                //= rfc9114/6.2#2
                self.untyped.swap_remove(at);
            }
            return Ok(Outcome::Nothing);
        };
        self.untyped.swap_remove(at);
        if let Some(trace) = trace {
            trace.on_stream_type(id, ty);
        }
        match self.assign(id, ty)? {
            Some(purpose) => Ok(Outcome::Bytes(purpose, bytes)),
            None => Ok(Outcome::Unknown),
        }
    }

    /// The peer reset a stream.
    pub(crate) fn on_reset(&mut self, id: StreamId) -> Result<(), ConnectionError> {
        //= rfc9114/6.2.1#4
        if self.purpose(id).is_some() {
            return Err(CLOSED);
        }
        self.note_opened(id)?;
        self.untyped.retain(|(known, _)| *known != id);
        Ok(())
    }

    /// A stream's type is known. RFC 9114 §6.2.1, §6.2.2, §4.6; RFC 9204 §4.2.
    fn assign(&mut self, id: StreamId, ty: u64) -> Result<Option<Purpose>, ConnectionError> {
        const fn creation(reason: &'static str) -> ConnectionError {
            ConnectionError { code: Code::STREAM_CREATION_ERROR, reason }
        }
        let purpose = match ty {
            stream_type::CONTROL => Purpose::Control,
            stream_type::QPACK_ENCODER => Purpose::QpackEncoder,
            stream_type::QPACK_DECODER => Purpose::QpackDecoder,
            //= rfc9114/6.2.2#1
            stream_type::PUSH if self.peer.is_client() => return Err(creation("push stream from a client")),
            stream_type::PUSH => {
                let reason = "push without permission";
                return Err(ConnectionError { code: Code::ID_ERROR, reason });
            }
            _ => return Ok(None),
        };
        //= rfc9204/4.2#1
        match self.ids.get_mut(purpose as usize) {
            Some(place @ None) => {
                *place = Some(id);
                Ok(Some(purpose))
            }
            //= rfc9114/6.2.1#3
            _ => Err(creation("second control or QPACK stream")),
        }
    }

    /// All streams up to this one exist from now on. RFC 9000 §3.2.
    fn note_opened(&mut self, id: StreamId) -> Result<(), ConnectionError> {
        while self.next <= id.index() {
            if self.untyped.len() >= MAX_UNTYPED {
                let reason = "too many streams without a type";
                return Err(ConnectionError { code: Code::EXCESSIVE_LOAD, reason });
            }
            let opened = StreamId::new(self.peer, transport::Dir::Uni, self.next);
            self.untyped.push((opened, PartialVarint::default()));
            self.next += 1;
        }
        Ok(())
    }
}

/// The end of a critical stream. RFC 9114 §6.2.1, RFC 9204 §4.2.
pub(crate) const CLOSED: ConnectionError =
    ConnectionError { code: Code::CLOSED_CRITICAL_STREAM, reason: "control or QPACK stream closed" };

#[cfg(test)]
mod tests {
    use super::*;

    fn uni(index: u64) -> StreamId {
        StreamId::new(Side::Client, transport::Dir::Uni, index)
    }

    fn code<T>(outcome: Result<T, ConnectionError>) -> Option<Code> {
        outcome.err().map(|error| error.code)
    }

    /// lsquic 4.9.2, nginx CVE-2026-42530: a second critical stream, and the reset of one, are connection errors; no state
    /// is made anew.
    #[test]
    fn critical_streams_are_unique_and_stay() {
        for ty in [0x00, 0x02, 0x03] {
            let mut streams = PeerStreams::new(Side::Client);
            assert!(matches!(
                streams.on_bytes(uni(0), &[ty, 9], Fin::Open, None),
                Ok(Outcome::Bytes(_, [9]))
            ));
            assert!(matches!(streams.on_bytes(uni(0), &[8], Fin::Open, None), Ok(Outcome::Bytes(_, [8]))));
            assert_eq!(
                code(streams.on_bytes(uni(1), &[ty], Fin::Open, None)),
                Some(Code::STREAM_CREATION_ERROR)
            );
            assert_eq!(code(streams.on_reset(uni(0))), Some(Code::CLOSED_CRITICAL_STREAM));
        }
    }

    /// HAProxy aborted on one byte of a type of two.
    #[test]
    fn a_type_may_come_in_pieces_or_never() {
        let mut streams = PeerStreams::new(Side::Client);
        assert_eq!(streams.on_bytes(uni(0), &[0x40], Fin::Open, None), Ok(Outcome::Nothing));
        assert!(matches!(
            streams.on_bytes(uni(0), &[0x00, 4], Fin::Open, None),
            Ok(Outcome::Bytes(Purpose::Control, [4]))
        ));
        assert_eq!(streams.on_bytes(uni(1), &[0x40], Fin::End, None), Ok(Outcome::Nothing));
        assert_eq!(streams.on_bytes(uni(2), &[], Fin::End, None), Ok(Outcome::Nothing));
        assert_eq!(streams.on_reset(uni(3)), Ok(()));
        assert!(streams.untyped.is_empty());
    }

    #[test]
    fn unknown_types_are_asked_to_stop_and_cost_nothing() {
        let mut streams = PeerStreams::new(Side::Client);
        for index in 0..10_000 {
            assert_eq!(streams.on_bytes(uni(index), &[0x21, 1, 2, 3], Fin::Open, None), Ok(Outcome::Unknown));
            assert_eq!(streams.on_bytes(uni(index), &[4, 5, 6], Fin::End, None), Ok(Outcome::Nothing));
        }
        assert!(streams.untyped.is_empty());
        // Streams that never send a type are bounded.
        assert_eq!(code(streams.on_bytes(uni(20_000), &[], Fin::Open, None)), Some(Code::EXCESSIVE_LOAD));
    }

    /// RFC 9114 §6.2.2, §4.6.
    #[test]
    fn push_streams_are_refused() {
        let refused = PeerStreams::new(Side::Client).on_bytes(uni(0), &[0x01], Fin::Open, None).map(|_| ());
        assert_eq!(code(refused), Some(Code::STREAM_CREATION_ERROR));
        let id = StreamId::new(Side::Server, transport::Dir::Uni, 0);
        let refused = PeerStreams::new(Side::Server).on_bytes(id, &[0x01], Fin::Open, None).map(|_| ());
        assert_eq!(code(refused), Some(Code::ID_ERROR));
    }
}
