//! The peer's control stream: SETTINGS first, then frames about the connection. RFC 9114 §6.2.1, §7.2; RFC 9218 §7.2.
//!
//! Frames with a meaning are short and put together before they are read; a frame that announces more than its kind can
//! hold is refused by its header. Frames without one are skipped as they come.

use crate::error::{Code, ConnectionError};
use crate::frame::{FrameHeader, HeaderReader, Kind, single_integer, ty};
use crate::priority;
use crate::settings::{self, Settings};
use crate::trace::Trace;
use transport::Priority;
use wire::{Reader, Side, varint};

/// What a control stream said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ControlFrame {
    Settings(Settings),
    /// The stream ID, from a server, or push ID, from a client, from which on nothing was or will be looked at.
    Goaway(u64),
    /// A push ID up to which a server may push; it never does here.
    MaxPushId,
    /// RFC 9218 §7.2: another priority for a request stream.
    PriorityUpdate {
        stream: u64,
        priority: Priority,
    },
    /// A frame without a meaning began.
    Unknown,
}

/// Reads the peer's control stream.
#[derive(Debug)]
pub(crate) struct ControlStream {
    /// The peer's side.
    peer: Side,
    /// A frame that has not arrived whole. Boxed, because there hardly ever is one.
    partial: Option<Box<PartialFrame>>,
    settings_seen: bool,
    max_push_id: Option<u64>,
    goaway: Option<u64>,
}

/// A frame, or its header, as far as it has arrived.
#[derive(Debug, Default)]
struct PartialFrame {
    header: HeaderReader,
    frame: Option<FrameHeader>,
    /// Bytes of the frame's payload that are still to come.
    left: u64,
    /// Payload so far, of frames that are read whole.
    payload: Vec<u8>,
}

impl ControlStream {
    pub(crate) fn new(peer: Side) -> ControlStream {
        ControlStream { peer, partial: None, settings_seen: false, max_push_id: None, goaway: None }
    }

    /// Takes bytes off the front of `input` until a frame is complete; `None` when all are taken.
    pub(crate) fn next_frame(
        &mut self,
        input: &mut &[u8],
        trace: Option<&mut Trace>,
    ) -> Result<Option<ControlFrame>, ConnectionError> {
        let mut partial = self.partial.take().map(|partial| *partial).unwrap_or_default();
        let outcome = self.read_frame(&mut partial, input, trace);
        if partial.frame.is_some() || partial.header.is_begun() {
            self.partial = Some(Box::new(partial));
        }
        outcome
    }

    fn read_frame(
        &mut self,
        partial: &mut PartialFrame,
        input: &mut &[u8],
        mut trace: Option<&mut Trace>,
    ) -> Result<Option<ControlFrame>, ConnectionError> {
        loop {
            let Some(frame) = partial.frame else {
                let Some(header) = partial.header.read(input) else { return Ok(None) };
                self.judge(header)?;
                (partial.frame, partial.left) = (Some(header), header.length);
                if header.kind() == Kind::Unknown {
                    if let Some(trace) = &mut trace {
                        trace.on_control_frame(header, &[]);
                    }
                    return Ok(Some(ControlFrame::Unknown));
                }
                continue;
            };
            let most = usize::try_from(partial.left).unwrap_or(usize::MAX);
            let (piece, rest) = input.split_at_checked(most).unwrap_or((input, &[]));
            *input = rest;
            partial.left -= piece.len() as u64;
            let unknown = frame.kind() == Kind::Unknown;
            if !unknown {
                partial.payload.extend_from_slice(piece);
            }
            if partial.left > 0 {
                return Ok(None);
            }
            partial.frame = None;
            if !unknown {
                let payload = core::mem::take(&mut partial.payload);
                if let Some(trace) = &mut trace {
                    trace.on_control_frame(frame, &payload);
                }
                return self.finish(frame, &payload).map(Some);
            }
        }
    }

    /// A frame begins: may it stand here, and can it be as long as it says?
    fn judge(&self, header: FrameHeader) -> Result<(), ConnectionError> {
        const fn unexpected(reason: &'static str) -> ConnectionError {
            ConnectionError { code: Code::FRAME_UNEXPECTED, reason }
        }
        //= rfc9114/6.2.1#2
        if !self.settings_seen && header.ty != ty::SETTINGS {
            return Err(ConnectionError {
                code: Code::MISSING_SETTINGS,
                reason: "control stream without SETTINGS",
            });
        }
        let most = match header.kind() {
            Kind::Data | Kind::Headers | Kind::PushPromise => {
                //= rfc9114/7.2.1#1
                return Err(unexpected("message frame on the control stream"));
            }
            Kind::Http2 => return Err(unexpected("frame of HTTP/2")),
            Kind::Unknown => u64::MAX,
            Kind::Control => match header.ty {
                //= rfc9114/7.2.4#1
                ty::SETTINGS if self.settings_seen => return Err(unexpected("second SETTINGS")),
                ty::SETTINGS => settings::MAX_PAYLOAD,
                //= rfc9114/7.2.7#1
                ty::MAX_PUSH_ID if self.peer.is_server() => {
                    return Err(unexpected("MAX_PUSH_ID from a server"));
                }
                ty::PRIORITY_UPDATE_REQUEST | ty::PRIORITY_UPDATE_PUSH => {
                    if self.peer.is_server() {
                        return Err(unexpected("PRIORITY_UPDATE from a server"));
                    }
                    (varint::MAX_SIZE + priority::MAX_TEXT) as u64
                }
                _ => varint::MAX_SIZE as u64,
            },
        };
        if header.length > most {
            let code = match header.ty {
                ty::SETTINGS | ty::PRIORITY_UPDATE_REQUEST | ty::PRIORITY_UPDATE_PUSH => Code::EXCESSIVE_LOAD,
                _ => Code::FRAME_ERROR,
            };
            return Err(ConnectionError { code, reason: "frame longer than its kind can be" });
        }
        Ok(())
    }

    /// A frame with a meaning is complete.
    fn finish(&mut self, header: FrameHeader, payload: &[u8]) -> Result<ControlFrame, ConnectionError> {
        match header.ty {
            ty::SETTINGS => {
                self.settings_seen = true;
                Settings::parse(payload).map(ControlFrame::Settings)
            }
            ty::GOAWAY => self.on_goaway(single_integer(payload)?),
            ty::MAX_PUSH_ID => {
                let id = single_integer(payload)?;
                //= rfc9114/7.2.7#2
                if self.max_push_id.is_some_and(|before| id < before) {
                    return Err(ConnectionError { code: Code::ID_ERROR, reason: "MAX_PUSH_ID reduced" });
                }
                self.max_push_id = Some(id);
                Ok(ControlFrame::MaxPushId)
            }
            ty::PRIORITY_UPDATE_REQUEST => self.on_priority_update(payload),
            // RFC 9114 §7.2.3: neither side ever promised a push, or allowed one, so no push ID can be meant. The same
            // holds for PRIORITY_UPDATE of a push, RFC 9218 §7.2.
            _ => {
                Reader::new(payload).varint().map_err(|_| FRAME_ENDS_EARLY)?;
                //= rfc9114/7.2.3#1
                Err(ConnectionError { code: Code::ID_ERROR, reason: "a push that was never promised" })
            }
        }
    }

    /// RFC 9114 §5.2: the identifier may only fall, and a server's names a request stream.
    fn on_goaway(&mut self, id: u64) -> Result<ControlFrame, ConnectionError> {
        const fn wrong(reason: &'static str) -> ConnectionError {
            ConnectionError { code: Code::ID_ERROR, reason }
        }
        //= rfc9114/5.2#1
        if self.peer.is_server() && !is_request_stream(id) {
            return Err(wrong("GOAWAY with an ID that no request can have"));
        }
        //= rfc9114/5.2#2
        if self.goaway.is_some_and(|before| id > before) {
            return Err(wrong("GOAWAY with a larger ID than before"));
        }
        self.goaway = Some(id);
        Ok(ControlFrame::Goaway(id))
    }

    fn on_priority_update(&self, payload: &[u8]) -> Result<ControlFrame, ConnectionError> {
        let mut reader = Reader::new(payload);
        let stream = reader.varint().map_err(|_| FRAME_ENDS_EARLY)?;
        if !is_request_stream(stream) {
            let reason = "PRIORITY_UPDATE with an ID that no request can have";
            return Err(ConnectionError { code: Code::ID_ERROR, reason });
        }
        Ok(ControlFrame::PriorityUpdate { stream, priority: priority::parse(reader.rest()) })
    }
}

const FRAME_ENDS_EARLY: ConnectionError =
    ConnectionError { code: Code::FRAME_ERROR, reason: "frame ends early" };

/// Whether an ID is that of a client-initiated bidirectional stream.
fn is_request_stream(id: u64) -> bool {
    id & 3 == 0
}

#[cfg(test)]
mod tests;
