//! What a traced connection records of HTTP/3. Source: draft-ietf-quic-qlog-h3-events.
//!
//! While the transport lends bytes its trace is not at hand: what is read then waits, encoded, and is recorded at the beginning of
//! the turn that follows, before anything that the application sends in it. A head that is sent is read back from its bytes, so that
//! no verb of the application has to know of traces. A connection without a trace has none of this, and pays a test of a pointer for
//! each frame.

use crate::frame::{FrameHeader, HeaderReader, single_integer, ty};
use crate::quic::QuicConnection;
use crate::settings::Settings;
use crate::stream_type;
use base::time::Instant;
use qlog::{
    Event, FieldText, FrameCreated, FrameParsed, Http3Frame, Http3ParametersSet, Initiator, Pending,
    PriorityUpdated, StreamType, StreamTypeSet,
};
use qpack::{FieldSection, Limits};
use transport::{Priority, StreamId};
use wire::{Reader, varint};

/// The trace of a connection.
#[derive(Debug)]
pub(crate) struct Trace {
    /// What was read since the last turn.
    pending: Pending,
    /// The time of the turn.
    now: Instant,
    /// The peer's control stream.
    peer_control: Option<StreamId>,
}

impl Trace {
    /// The trace of a connection that begins, if its transport is traced.
    #[cold]
    pub(crate) fn begin(quic: &mut impl QuicConnection, now: Instant) -> Option<Box<Trace>> {
        quic.trace()?;
        Some(Box::new(Trace { pending: Pending::default(), now, peer_control: None }))
    }

    /// A turn begins: what waits is recorded.
    #[cold]
    pub(crate) fn on_turn(&mut self, quic: &mut impl QuicConnection, now: Instant) {
        self.now = now;
        if let Some(log) = quic.trace().filter(|_| !self.pending.is_empty()) {
            log.record_pending(now, &mut self.pending);
        }
    }

    /// Records an event of this turn.
    fn record<E: Event>(&mut self, quic: &mut impl QuicConnection, event: &E) {
        if let Some(log) = quic.trace() {
            log.record_pending(self.now, &mut self.pending);
            log.record(self.now, event);
        }
    }

    /// A stream of ours is for this.
    #[cold]
    pub(crate) fn on_opened(
        &mut self,
        quic: &mut impl QuicConnection,
        id: StreamId,
        stream_type: StreamType,
    ) {
        let initiator = Initiator::Local;
        self.record(quic, &StreamTypeSet { initiator, stream_id: id.as_u64(), stream_type });
    }

    /// Our settings, which the control stream begins with.
    #[cold]
    pub(crate) fn on_local_settings(&mut self, quic: &mut impl QuicConnection, settings: &Settings) {
        self.record(quic, &parameters(Initiator::Local, settings));
    }

    /// Bytes were handed over that begin with a frame, and hold whole frames but for the content of the last.
    #[cold]
    pub(crate) fn on_sent(&mut self, quic: &mut impl QuicConnection, id: StreamId, mut bytes: &[u8]) {
        while let Some(header) = HeaderReader::default().read(&mut bytes) {
            let len = usize::try_from(header.length).unwrap_or(usize::MAX);
            let (payload, rest) = bytes.split_at_checked(len).unwrap_or((bytes, &[]));
            bytes = rest;
            let stream_id = id.as_u64();
            if header.ty == ty::HEADERS {
                let mut section = FieldSection::new();
                // What does not decode here is told by its length: tests of peers send such.
                let _ = section.decode(payload, &ANY);
                with_fields(&section, |fields| {
                    let frame = Http3Frame::Headers { len: header.length, fields };
                    self.record(quic, &FrameCreated { stream_id, frame });
                });
            } else {
                with_frame(header, payload, |frame| self.record(quic, &FrameCreated { stream_id, frame }));
            }
        }
    }

    /// A request stream is served by this priority.
    #[cold]
    pub(crate) fn on_priority(&mut self, quic: &mut impl QuicConnection, id: StreamId, priority: Priority) {
        let new = format!("u={}{}", priority.urgency, if priority.incremental { ", i" } else { "" });
        self.record(quic, &PriorityUpdated { stream_id: id.as_u64(), new: &new });
    }

    /// The peer opened a request stream.
    #[cold]
    pub(crate) fn on_request_stream(&mut self, id: StreamId) {
        let (initiator, stream_type) = (Initiator::Remote, StreamType::Request);
        self.pending.push(&StreamTypeSet { initiator, stream_id: id.as_u64(), stream_type });
    }

    /// The peer has said what a unidirectional stream is for.
    #[cold]
    pub(crate) fn on_stream_type(&mut self, id: StreamId, ty: u64) {
        let stream_type = match ty {
            stream_type::CONTROL => StreamType::Control,
            stream_type::PUSH => StreamType::Push,
            stream_type::QPACK_ENCODER => StreamType::QpackEncode,
            stream_type::QPACK_DECODER => StreamType::QpackDecode,
            _ => StreamType::Unknown(ty),
        };
        if stream_type == StreamType::Control {
            self.peer_control.get_or_insert(id);
        }
        let initiator = Initiator::Remote;
        self.pending.push(&StreamTypeSet { initiator, stream_id: id.as_u64(), stream_type });
    }

    /// A frame other than HEADERS began on a request stream.
    #[cold]
    pub(crate) fn on_frame(&mut self, id: StreamId, header: FrameHeader) {
        let stream_id = id.as_u64();
        with_frame(header, &[], |frame| self.pending.push(&FrameParsed { stream_id, frame }));
    }

    /// A field section was decoded from this many bytes.
    #[cold]
    pub(crate) fn on_section(&mut self, id: StreamId, len: usize, section: &FieldSection) {
        with_fields(section, |fields| {
            let frame = Http3Frame::Headers { len: len as u64, fields };
            self.pending.push(&FrameParsed { stream_id: id.as_u64(), frame });
        });
    }

    /// A frame of the peer's control stream is complete, or began if it has no meaning.
    #[cold]
    pub(crate) fn on_control_frame(&mut self, header: FrameHeader, payload: &[u8]) {
        let Some(stream_id) = self.peer_control.map(StreamId::as_u64) else { return };
        with_frame(header, payload, |frame| self.pending.push(&FrameParsed { stream_id, frame }));
        if let Some(settings) = Settings::parse(payload).ok().filter(|_| header.ty == ty::SETTINGS) {
            self.pending.push(&parameters(Initiator::Remote, &settings));
        }
    }
}

/// Our own heads are within every limit.
const ANY: Limits = Limits { max_field_section_size: u64::MAX, max_lines: usize::MAX };

fn parameters(initiator: Initiator, settings: &Settings) -> Http3ParametersSet {
    Http3ParametersSet {
        initiator,
        // Without the setting there is no limit. Source: RFC 9114 §7.2.4.1.
        max_field_section_size: Some(settings.max_field_section_size).filter(|&size| size < varint::MAX),
        max_table_capacity: Some(settings.qpack_max_table_capacity),
        blocked_streams_count: Some(settings.qpack_blocked_streams),
        extended_connect: Some(settings.enable_connect_protocol.into()),
        h3_datagram: Some(settings.h3_datagram.into()),
    }
}

fn with_fields(section: &FieldSection, tell: impl FnOnce(&[FieldText<'_>])) {
    let fields = section.lines().map(|line| FieldText { name: line.name, value: line.value });
    tell(&fields.collect::<Vec<_>>());
}

/// Tells a frame other than HEADERS as the schema has it; what is not as its type demands, by its length.
fn with_frame(header: FrameHeader, payload: &[u8], tell: impl FnOnce(Http3Frame<'_>)) {
    let integer = || single_integer(payload).ok();
    let mut reader = Reader::new(payload);
    let frame = match header.ty {
        ty::DATA => Some(Http3Frame::Data { len: header.length }),
        ty::SETTINGS => {
            let mut settings = Vec::new();
            while let (Ok(id), Ok(value)) = (reader.varint(), reader.varint()) {
                settings.push((id, value));
            }
            return tell(Http3Frame::Settings(&settings));
        }
        ty::GOAWAY => integer().map(|id| Http3Frame::Goaway { id }),
        ty::MAX_PUSH_ID => integer().map(|id| Http3Frame::MaxPushId { id }),
        ty::CANCEL_PUSH => integer().map(|id| Http3Frame::CancelPush { id }),
        ty::PRIORITY_UPDATE_REQUEST => {
            reader.varint().ok().map(|id| Http3Frame::PriorityUpdate { stream_id: id, value: reader.rest() })
        }
        _ => None,
    };
    tell(frame.unwrap_or(Http3Frame::Unknown { ty: header.ty, len: header.length }));
}

#[cfg(test)]
mod tests;
