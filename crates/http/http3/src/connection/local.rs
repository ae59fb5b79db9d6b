//! The unidirectional streams that we open: control and the two of QPACK. RFC 9114 §6.2.1, RFC 9204 §4.2.
//!
//! All three are opened at the start, which peers expect; after their first bytes the QPACK streams stay silent, because
//! we use no dynamic table.

use super::Connection;
use crate::frame;
use crate::quic::QuicConnection;
use crate::settings::Settings;
use crate::stream_type;
use crate::trace::Trace;
use bytes::Bytes;
use qlog::StreamType;
use transport::{Dir, Priority, StreamId};
use wire::{Side, varint};

/// How much of the end is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goaway {
    /// We are about to leave: the peer is to begin no more requests; those that are on their way are still answered.
    Notice,
    /// No request that begins from now on is looked at.
    Final,
}

/// Our streams, and what their control stream owes the peer.
#[derive(Debug, Default)]
pub(super) struct LocalStreams {
    control: Option<StreamId>,
    encoder: Option<StreamId>,
    decoder: Option<StreamId>,
    /// The ID of the last GOAWAY, sent or owed.
    goaway: Option<u64>,
    goaway_owed: bool,
}

impl LocalStreams {
    /// Whether the stream is one of ours, which the peer must not stop.
    pub(super) fn contains(&self, id: StreamId) -> bool {
        [self.control, self.encoder, self.decoder].contains(&Some(id))
    }

    /// From which stream ID on requests are rejected.
    pub(super) fn rejected_from(&self) -> u64 {
        self.goaway.unwrap_or(u64::MAX)
    }

    /// Opens what is not open yet. While the handshake is under way the transport allows none.
    #[inline]
    pub(super) fn open(
        &mut self,
        quic: &mut impl QuicConnection,
        settings: impl Fn() -> Settings,
        trace: &mut Option<Box<Trace>>,
    ) {
        if self.decoder.is_none() {
            self.open_next(quic, &settings(), trace);
        }
        if self.goaway_owed {
            self.write_goaway(quic, trace);
        }
    }

    #[cold]
    fn open_next(
        &mut self,
        quic: &mut impl QuicConnection,
        settings: &Settings,
        trace: &mut Option<Box<Trace>>,
    ) {
        let mut begin = |place: &mut Option<StreamId>, bytes: Vec<u8>, stream_type: StreamType| {
            if place.is_none() {
                *place = quic.open(Dir::Uni).ok();
                if let Some(id) = *place {
                    if let Some(trace) = trace {
                        trace.on_opened(quic, id, stream_type);
                        // Every type of ours is one byte.
                        trace.on_sent(quic, id, bytes.get(1..).unwrap_or(&[]));
                        if stream_type == StreamType::Control {
                            trace.on_local_settings(quic, settings);
                        }
                    }
                    // GOAWAY and SETTINGS must not wait behind content.
                    quic.set_priority(id, Priority::CONTROL);
                    // A fresh stream takes bytes unless the connection is over, and then nothing matters.
                    let _ = quic.write(id, Bytes::from(bytes));
                }
            }
            place.is_some()
        };
        let mut control = Vec::with_capacity(32);
        //= rfc9114/6.2.1#1
        varint::append(&mut control, stream_type::CONTROL);
        settings.append_frame(&mut control);
        let _ = begin(&mut self.control, control, StreamType::Control)
            && begin(&mut self.encoder, vec![stream_type::QPACK_ENCODER as u8], StreamType::QpackEncode)
            && begin(&mut self.decoder, vec![stream_type::QPACK_DECODER as u8], StreamType::QpackDecode);
    }

    fn write_goaway(&mut self, quic: &mut impl QuicConnection, trace: &mut Option<Box<Trace>>) {
        let (Some(control), Some(id)) = (self.control, self.goaway) else { return };
        let mut bytes = Vec::with_capacity(12);
        frame::append_header(&mut bytes, frame::ty::GOAWAY, varint::size(id) as u64);
        varint::append(&mut bytes, id);
        if let Some(trace) = trace {
            trace.on_sent(quic, control, &bytes);
        }
        let _ = quic.write(control, Bytes::from(bytes));
        self.goaway_owed = false;
    }
}

impl Connection {
    /// Tells the peer that we are about to leave. RFC 9114 §5.2: first [`Goaway::Notice`], a round trip later
    /// [`Goaway::Final`]. When [`Connection::open_exchanges`] is 0 and the transport's `unacknowledged_streams` too, close:
    /// an exchange is over when the peer has its response, not when the transport has it.
    pub fn goaway(&mut self, quic: &mut impl QuicConnection, goaway: Goaway) {
        let id = match (self.side, goaway) {
            // A client's GOAWAY names a push, and we allow none.
            (Side::Client, _) => 0,
            (Side::Server, Goaway::Notice) => varint::MAX - 3,
            (Side::Server, Goaway::Final) => self.exchanges.next() * 4,
        };
        // RFC 9114 §5.2: the ID never rises.
        //= rfc9114/5.2#3
        if id < self.local.rejected_from() {
            self.local.goaway = Some(id);
            self.local.goaway_owed = true;
            self.local.write_goaway(quic, &mut self.trace);
        }
    }
}
