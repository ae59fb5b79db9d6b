//! Events of HTTP/3. Source: draft-ietf-quic-qlog-h3-events §4.
//!
//! Fields that carry credentials (`authorization`, `proxy-authorization`, `cookie`, `set-cookie`) are logged by name, their values as
//! the text `<N bytes>`.

use crate::parameters::Initiator;
use crate::{Event, Object};

/// Longest part of a field's name or value that is logged, in bytes.
const MAX_TEXT: usize = 256;
/// More fields of one section are not logged.
const MAX_FIELDS: usize = 64;

const SECRET: [&[u8]; 4] = [b"authorization", b"proxy-authorization", b"cookie", b"set-cookie"];

/// The settings of one end.
#[derive(Clone, Copy, Debug)]
pub struct Http3ParametersSet {
    /// Whose.
    pub initiator: Initiator,
    /// SETTINGS_MAX_FIELD_SECTION_SIZE.
    pub max_field_section_size: Option<u64>,
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY.
    pub max_table_capacity: Option<u64>,
    /// SETTINGS_QPACK_BLOCKED_STREAMS.
    pub blocked_streams_count: Option<u64>,
    /// SETTINGS_ENABLE_CONNECT_PROTOCOL.
    pub extended_connect: Option<u64>,
    /// SETTINGS_H3_DATAGRAM.
    pub h3_datagram: Option<u64>,
}

impl Event for Http3ParametersSet {
    const NAME: &'static str = "http3:parameters_set";

    fn write(&self, data: &mut Object<'_>) {
        data.text("initiator", self.initiator.name())
            .number_if("max_field_section_size", self.max_field_section_size)
            .number_if("max_table_capacity", self.max_table_capacity)
            .number_if("blocked_streams_count", self.blocked_streams_count)
            .number_if("extended_connect", self.extended_connect)
            .number_if("h3_datagram", self.h3_datagram);
    }
}

/// What a stream is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamType {
    /// A request and its response.
    Request,
    /// The control stream.
    Control,
    /// A push stream.
    Push,
    /// QPACK's encoder stream.
    QpackEncode,
    /// QPACK's decoder stream.
    QpackDecode,
    /// Another one, by its number.
    Unknown(u64),
}

/// What a stream is for is known.
#[derive(Clone, Copy, Debug)]
pub struct StreamTypeSet {
    /// Who opened it.
    pub initiator: Initiator,
    /// Its number.
    pub stream_id: u64,
    /// What it is for.
    pub stream_type: StreamType,
}

impl Event for StreamTypeSet {
    const NAME: &'static str = "http3:stream_type_set";

    fn write(&self, data: &mut Object<'_>) {
        let (name, number) = match self.stream_type {
            StreamType::Request => ("request", None),
            StreamType::Control => ("control", None),
            StreamType::Push => ("push", None),
            StreamType::QpackEncode => ("qpack_encode", None),
            StreamType::QpackDecode => ("qpack_decode", None),
            StreamType::Unknown(number) => ("unknown", Some(number)),
        };
        data.text("initiator", self.initiator.name())
            .number("stream_id", self.stream_id)
            .text("stream_type", name)
            .number_if("stream_type_bytes", number);
    }
}

/// The priority of a request stream is another one.
#[derive(Clone, Copy, Debug)]
pub struct PriorityUpdated<'a> {
    /// The request's stream.
    pub stream_id: u64,
    /// As a priority field has it, such as `u=3, i`.
    pub new: &'a str,
}

impl Event for PriorityUpdated<'_> {
    const NAME: &'static str = "http3:priority_updated";

    fn write(&self, data: &mut Object<'_>) {
        data.number("stream_id", self.stream_id).text("new", self.new);
    }
}

/// A field of a message, as bytes.
#[derive(Clone, Copy, Debug)]
pub struct FieldText<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

/// A frame of HTTP/3.
#[derive(Clone, Copy, Debug)]
pub enum Http3Frame<'a> {
    /// DATA, of this many bytes.
    Data {
        /// Bytes of content.
        len: u64,
    },
    /// HEADERS.
    Headers {
        /// Its encoded length in bytes.
        len: u64,
        /// What it says, as far as it is at hand.
        fields: &'a [FieldText<'a>],
    },
    /// SETTINGS, as pairs of identifier and value.
    Settings(&'a [(u64, u64)]),
    /// GOAWAY.
    Goaway {
        /// From which stream or push on.
        id: u64,
    },
    /// MAX_PUSH_ID.
    MaxPushId {
        /// Up to which one.
        id: u64,
    },
    /// CANCEL_PUSH.
    CancelPush {
        /// Which one.
        id: u64,
    },
    /// PRIORITY_UPDATE for a request.
    PriorityUpdate {
        /// The request's stream.
        stream_id: u64,
        /// The priority field.
        value: &'a [u8],
    },
    /// Another one.
    Unknown {
        /// Its type.
        ty: u64,
        /// Its length in bytes.
        len: u64,
    },
}

/// A frame was written to a stream.
#[derive(Clone, Copy, Debug)]
pub struct FrameCreated<'a> {
    /// The stream.
    pub stream_id: u64,
    /// The frame.
    pub frame: Http3Frame<'a>,
}

/// A frame was read from a stream.
#[derive(Clone, Copy, Debug)]
pub struct FrameParsed<'a> {
    /// The stream.
    pub stream_id: u64,
    /// The frame.
    pub frame: Http3Frame<'a>,
}

impl Event for FrameCreated<'_> {
    const NAME: &'static str = "http3:frame_created";

    fn write(&self, data: &mut Object<'_>) {
        data.number("stream_id", self.stream_id).object("frame", |out| self.frame.write(out));
    }
}

impl Event for FrameParsed<'_> {
    const NAME: &'static str = "http3:frame_parsed";

    fn write(&self, data: &mut Object<'_>) {
        data.number("stream_id", self.stream_id).object("frame", |out| self.frame.write(out));
    }
}

impl Http3Frame<'_> {
    fn write(&self, out: &mut Object<'_>) {
        match *self {
            Http3Frame::Data { len } => payload("data", len, out),
            Http3Frame::Headers { len, fields } => {
                payload("headers", len, out);
                out.array("headers", |list| {
                    fields.iter().take(MAX_FIELDS).for_each(|field| list.object(|out| field.write(out)));
                });
            }
            Http3Frame::Settings(settings) => {
                out.text("frame_type", "settings").array("settings", |list| {
                    settings.iter().take(MAX_FIELDS).for_each(|(id, value)| {
                        list.object(|out| write_setting(*id, *value, out));
                    });
                });
            }
            Http3Frame::Goaway { id } => {
                out.text("frame_type", "goaway").number("id", id);
            }
            Http3Frame::MaxPushId { id } => {
                out.text("frame_type", "max_push_id").number("push_id", id);
            }
            Http3Frame::CancelPush { id } => {
                out.text("frame_type", "cancel_push").number("push_id", id);
            }
            Http3Frame::PriorityUpdate { stream_id, value } => {
                out.text("frame_type", "priority_update")
                    .number("stream_id", stream_id)
                    .lossy("priority_field_value", value.get(..MAX_TEXT).unwrap_or(value));
            }
            Http3Frame::Unknown { ty, len } => {
                payload("unknown", len, out);
                out.number("frame_type_bytes", ty);
            }
        }
    }
}

fn payload(name: &str, len: u64, out: &mut Object<'_>) {
    out.text("frame_type", name).object("raw", |raw| {
        raw.number("payload_length", len);
    });
}

/// Source: RFC 9114 §7.2.4.1, RFC 9204 §5, RFC 8441 §3, RFC 9297 §2.1.1.
fn write_setting(id: u64, value: u64, out: &mut Object<'_>) {
    let name = match id {
        0x01 => "settings_qpack_max_table_capacity",
        0x06 => "settings_max_field_section_size",
        0x07 => "settings_qpack_blocked_streams",
        0x08 => "settings_enable_connect_protocol",
        0x33 => "settings_h3_datagram",
        _ if id >= 0x21 && (id - 0x21).is_multiple_of(0x1f) => "reserved",
        _ => "unknown",
    };
    out.text("name", name);
    if name == "unknown" {
        out.number("name_bytes", id);
    }
    out.number("value", value);
}

impl FieldText<'_> {
    fn write(&self, out: &mut Object<'_>) {
        out.lossy("name", self.name.get(..MAX_TEXT).unwrap_or(self.name));
        if SECRET.iter().any(|secret| self.name.eq_ignore_ascii_case(secret)) {
            out.text("value", &format!("<{} bytes>", self.value.len()));
        } else {
            out.lossy("value", self.value.get(..MAX_TEXT).unwrap_or(self.value));
        }
    }
}
