//! Resets at an offset between connections. What they do to streams is in streams/tests/reset_at.rs.

use super::*;
use crate::ResetAtError;

/// draft-ietf-quic-reliable-stream-reset §3. Deleted, a peer that does not know the frame would close the connection for it.
#[test]
fn a_peer_that_has_not_offered_it_gets_no_such_reset() {
    let mut pair = Pair::new(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never);
    let early = pair.client().reset_at(StreamId::new(wire::Side::Client, Dir::Uni, 0), 1, 0);
    assert_eq!(early, Err(ResetAtError::Unsupported), "nothing is known of the server yet");
    pair.run(12);
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write(id, Bytes::from(vec![7; 1_000])).expect("writes");
    assert_eq!(pair.client().reset_at(id, 1, 1_001), Err(ResetAtError::NotWritten));
    assert_eq!(pair.client().reset_at(id, 5, 400), Ok(()));
    pair.run(4);
    assert_eq!(pair.server.sink.received, [7; 400]);
    assert!(pair.server.events.contains(&Event::StreamReset { id, code: 5 }), "{:?}", pair.server.events);
    // As if the server had not offered it.
    let mut told = pair.client().handshake.peer_parameters().expect("is connected").clone();
    assert!(core::mem::take(&mut told.reset_stream_at));
    pair.client().on_peer_parameters(told).expect("is allowed");
    let id = pair.client().open(Dir::Uni).expect("stream");
    assert_eq!(pair.client().reset_at(id, 1, 0), Err(ResetAtError::Unsupported));
}
