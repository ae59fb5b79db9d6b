//! What an embedder may set about streams, and the errors of the verbs.

/// Streams, windows and send buffers of a connection. All sizes in bytes. Whatever a peer can make us hold follows
/// from these values; every one is finite.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamConfig {
    /// What the peer may send on a stream before its data is consumed, at first. Default: 1 MiB.
    pub initial_stream_window: u64,
    /// Up to where the stream window grows while the peer fills it in less than four round trips. Default: 16 MiB.
    pub max_stream_window: u64,
    /// What the peer may send on all streams together before it is consumed, at first. Default: 1.5 MiB.
    pub initial_connection_window: u64,
    /// Up to where the connection window grows. Default: 24 MiB.
    pub max_connection_window: u64,
    /// Bidirectional streams that the peer may have open at a time. Default: 100.
    pub max_bidi_streams: u64,
    /// Unidirectional streams that the peer may have open at a time. Default: 100.
    pub max_uni_streams: u64,
    /// What `send_capacity` lets one stream hold, sent but unacknowledged data included. Within that, a stream runs
    /// ahead of the network by as much as is in flight, so a slow path holds little. Default: 16 MiB.
    pub send_buffer: u64,
    /// The same for all streams of the connection together. Default: 24 MiB.
    pub connection_send_buffer: u64,
}

const MIB: u64 = 1024 * 1024;

impl Default for StreamConfig {
    fn default() -> StreamConfig {
        StreamConfig {
            initial_stream_window: MIB,
            max_stream_window: 16 * MIB,
            initial_connection_window: MIB + MIB / 2,
            max_connection_window: 24 * MIB,
            max_bidi_streams: 100,
            max_uni_streams: 100,
            send_buffer: 16 * MIB,
            connection_send_buffer: 24 * MIB,
        }
    }
}

/// How a stream shares the connection with the others. Source: RFC 9218 §4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0, served first, to 7, served last. Larger values count as 7, but for [`Priority::CONTROL`].
    pub urgency: u8,
    /// Whether the stream takes turns with the others of its urgency, frame by frame. The others are sent one after the
    /// other, in the order of their IDs, and take turns with those that share. Source: RFC 9218 §10.
    pub incremental: bool,
}

impl Priority {
    /// Before every urgency: for a stream that steers the connection, such as the control stream of HTTP/3. A few bytes of the
    /// peer's limit on the connection are kept for such streams, so that other streams cannot delay them by using it up.
    pub const CONTROL: Priority = Priority { urgency: u8::MAX, incremental: false };

    /// The place in the order of sending: 0 for control, then the urgencies.
    #[inline]
    pub(super) fn rank(self) -> u8 {
        if self.urgency == Priority::CONTROL.urgency { 0 } else { self.urgency.min(7) + 1 }
    }
}

impl Default for Priority {
    /// RFC 9218 §4.1, §4.2: urgency 3, not incremental.
    fn default() -> Priority {
        Priority { urgency: 3, incremental: false }
    }
}

/// Why a stream cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenError {
    /// The peer allows no more streams of this kind now; `Event::StreamsAvailable` tells when it does.
    Limit,
}

impl core::fmt::Display for OpenError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str("the peer's limit on streams is reached")
    }
}

impl core::error::Error for OpenError {}

/// Why a stream cannot be reset at an offset. Source: draft-ietf-quic-reliable-stream-reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetAtError {
    /// The peer does not understand RESET_STREAM_AT, or has not said so yet.
    Unsupported,
    /// There is no such stream, it is not ours to send on, or all of it was given up or acknowledged.
    NoSuchStream,
    /// Fewer bytes were written than are to be reliable.
    NotWritten,
}

impl core::fmt::Display for ResetAtError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            ResetAtError::Unsupported => "the peer does not understand RESET_STREAM_AT",
            ResetAtError::NoSuchStream => "no such stream, or nothing is left to reset",
            ResetAtError::NotWritten => "fewer bytes were written than are to be reliable",
        })
    }
}

impl core::error::Error for ResetAtError {}

/// Why bytes cannot be written to a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteError {
    /// The stream was never opened, is over, or is only for the peer to send on.
    NoSuchStream,
    /// The stream was finished.
    Finished,
    /// The stream was reset, by us or because the peer asked us to stop sending.
    Reset,
}

impl core::fmt::Display for WriteError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(match self {
            WriteError::NoSuchStream => "no such stream to send on",
            WriteError::Finished => "the stream was finished",
            WriteError::Reset => "the stream was reset",
        })
    }
}

impl core::error::Error for WriteError {}
