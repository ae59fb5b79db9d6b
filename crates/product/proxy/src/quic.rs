//! How QUIC connections to upstreams behave.
//!
//! A response that is not read stops in two places: a queue of the client's, 256 KiB, and the stream's window at the upstream. The window
//! of a connection is that of all streams which it may carry, so that clients that do not read hold up no others.

use std::time::Duration;
use transport::{StreamConfig, TransportConfig};

/// Requests on a connection at a time. More have a connection of their own.
pub(crate) const MOST_REQUESTS: usize = 100;
/// A stream's window at first, in bytes.
const STREAM_WINDOW: u64 = 256 << 10;
/// Up to where a stream's window grows while the client reads as fast as it is filled, in bytes.
const LARGEST_STREAM_WINDOW: u64 = 512 << 10;
/// Content of a request that is on its way to the upstream, in bytes.
const SEND_BUFFER: u64 = 1 << 20;
/// An upstream that was not heard for so long is gone.
const SILENCE: Duration = Duration::from_secs(10);
/// An upstream that was not heard for so long is asked whether it is there.
const ASKED_AFTER: Duration = Duration::from_secs(3);

/// How connections behave.
pub(crate) fn transport() -> TransportConfig {
    let whole = LARGEST_STREAM_WINDOW * MOST_REQUESTS as u64;
    TransportConfig {
        idle_timeout: SILENCE.into(),
        keep_alive: Some(ASKED_AFTER.into()),
        streams: StreamConfig {
            initial_stream_window: STREAM_WINDOW,
            max_stream_window: LARGEST_STREAM_WINDOW,
            initial_connection_window: whole,
            max_connection_window: whole,
            send_buffer: SEND_BUFFER,
            ..StreamConfig::default()
        },
        ..TransportConfig::default()
    }
}
