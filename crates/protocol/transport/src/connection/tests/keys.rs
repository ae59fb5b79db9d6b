//! Key updates and the time that they take. Source: RFC 9001 §6.

use super::*;

fn connected() -> Pair {
    Pair::connected(&TlsOptions::default(), TransportConfig::default(), RetryPolicy::Never)
}

/// Three probe timeouts of the client, and a bit.
fn three_pto(pair: &mut Pair) -> Duration {
    closing(pair.client()) + Duration::from_millis(1)
}

/// With updates at the pace of acknowledgements, packets of the last phase that come late find their keys gone: ngtcp2's client
/// took 4.0 s instead of 0.03 s for 10 MB from a server with `--key-update-after 100`.
#[test]
fn a_key_update_waits_three_timeouts_after_the_last_one() {
    let mut pair = connected();
    pair.transfer(20_000);
    let now = pair.now;
    assert!(pair.client().update_keys(now), "the first keys follow no others");
    pair.transfer(20_000);
    for side in [wire::Side::Client, wire::Side::Server] {
        let now = pair.now;
        let end = if side.is_client() { pair.client() } else { pair.server() };
        assert!(!end.update_keys(now), "{side:?}: acknowledged, but a moment ago");
    }
    pair.wait_for_keys();
    let now = pair.now;
    assert!(pair.client().update_keys(now));
    pair.transfer(20_000);
    // The server answers with the same keys, and waits as well.
    assert!(!{
        let now = pair.now;
        pair.server().update_keys(now)
    });
    assert_eq!(pair.server().counters().dropped_forged, 0);
}

/// The wait is counted from the first packet under the new keys: what left before it may take as long after it.
#[test]
fn the_last_keys_open_what_comes_late_for_three_timeouts() {
    let mut pair = connected();
    pair.transfer(20_000);
    let (now, keep) = (pair.now, three_pto(&mut pair));
    // The server writes under its old keys, and the network holds the packets back.
    let id = pair.server().open(Dir::Uni).expect("stream");
    pair.server().write(id, Bytes::from(vec![1; 5_000])).expect("writes");
    let late = pair.server.send(now);
    assert!(pair.client().update_keys(now));
    // The answer to the update comes after those three timeouts have passed already.
    pair.now = pair.now + keep + keep;
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write(id, Bytes::from_static(b"news")).expect("writes");
    pair.run(2);
    assert_eq!(pair.client().counters().key_updates, 1);
    let (now, before) = (pair.now, pair.client().counters().received_packets);
    let count = late.len() as u64;
    late.into_iter().for_each(|datagram| pair.client.receive(now, datagram, None));
    assert_eq!(pair.client().counters().received_packets, before + count);
    assert_eq!(pair.client().counters().dropped_forged, 0);
}

/// Both ends are idle for a second.
fn sleep(pair: &mut Pair) {
    pair.run(100);
    pair.now = pair.now + Duration::from_secs(2);
    let now = pair.now;
    assert!(
        pair.client.send(now).is_empty() && pair.server.send(now).is_empty(),
        "neither end has anything to send"
    );
    for end in [&pair.client, &pair.server] {
        let end = end.connection.as_ref().expect("a connection");
        assert!(end.is_quiet() && end.keys.one_rtt.is_none(), "the keys are gone");
        assert!(end.next_timeout().is_some_and(|at| at > now), "and no timer is due");
    }
}

/// Deleted, an idle connection could be lost with its keys, or hold them for ever.
#[test]
fn keys_of_an_idle_connection_go_and_come_again() {
    let mut pair = connected();
    for update in [false, true, false] {
        pair.transfer(20_000);
        sleep(&mut pair);
        let id = pair.server().open(Dir::Uni).expect("stream");
        pair.server().write(id, Bytes::from_static(b"the server wakes first")).expect("writes");
        pair.run(2);
        assert!(pair.client.sink.received.ends_with(b"first") && !pair.client().is_quiet());
        sleep(&mut pair);
        if update {
            let now = pair.now;
            assert!(pair.client().update_keys(now), "also in their sleep");
        }
    }
    pair.transfer(20_000);
    assert_eq!(pair.server().counters().key_updates, 1);
    assert_eq!(pair.server().counters().dropped_forged + pair.client().counters().dropped_forged, 0);
}
