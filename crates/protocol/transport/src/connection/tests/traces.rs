//! Traced connections: what happened is in the trace, in the words of the drafts.

use super::*;
use qlog::{Beginning, Keep, Output, Refused, Trace, Tracer};
use serde_json::Value;
use std::sync::Mutex;

/// Traces by role.
type Files = Arc<Mutex<Vec<(&'static str, Vec<u8>)>>>;

/// Keeps the traces of all connections by role.
#[derive(Clone, Debug, Default)]
struct Traces {
    files: Files,
    keep: Keep,
}

impl Tracer for Traces {
    fn begin(&self, beginning: &Beginning<'_>) -> Option<Trace> {
        assert_eq!(beginning.original_dcid.len(), 8);
        let mut files = self.files.lock().unwrap();
        files.push((beginning.role(), Vec::new()));
        let output = File { files: Arc::clone(&self.files), index: files.len() - 1 };
        Some(Trace::new(beginning, self.keep, Box::new(output)))
    }
}

struct File {
    files: Files,
    index: usize,
}

impl Output for File {
    fn write(&mut self, chunk: Vec<u8>) -> Result<(), Refused> {
        self.files.lock().unwrap()[self.index].1.extend_from_slice(&chunk);
        Ok(())
    }

    fn finish(&mut self, last: Vec<u8>) {
        self.files.lock().unwrap()[self.index].1.extend_from_slice(&last);
    }
}

fn traced(keep: Keep) -> (Traces, TransportConfig) {
    let traces = Traces { keep, ..Traces::default() };
    let qlog: Option<Arc<dyn Tracer>> = Some(Arc::new(traces.clone()));
    (traces, TransportConfig { qlog, ..TransportConfig::default() })
}

/// Ends the connections; their traces by role, checked.
fn finished(mut pair: Pair, traces: &Traces) -> Vec<(&'static str, Vec<Value>)> {
    pair.client.connection = None;
    pair.server.connection = None;
    let files = traces.files.lock().unwrap();
    let kept = files.iter().filter(|(_, bytes)| !bytes.is_empty());
    kept.map(|(role, bytes)| (*role, qlog::check::records(bytes).unwrap())).collect()
}

fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["name"] == name).map(|event| &event["data"]).collect()
}

#[test]
fn both_ends_tell_the_whole_of_a_connection() {
    let (traces, transport) = traced(Keep::default());
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    pair.transfer(300_000);
    pair.wait_for_keys();
    let now = pair.now;
    assert!(pair.client().update_keys(now));
    pair.transfer(100_000);
    let sent = pair.client().counters().sent_packets;
    let now = pair.now;
    pair.client().close(now, 7, b"done");
    pair.run(2);
    let sent_and_close = pair.client().counters().sent_packets;
    assert_eq!(sent_and_close, sent + 1);
    let received = pair.server().counters().received_packets;
    let found = finished(pair, &traces);
    assert_eq!(found.len(), 2);
    for (role, events) in &found {
        for name in [
            "quic:connection_started",
            "quic:version_information",
            "quic:alpn_information",
            "quic:packet_sent",
            "quic:packet_received",
            "quic:packets_acked",
            "quic:recovery_parameters_set",
            "quic:recovery_metrics_updated",
            "quic:congestion_state_updated",
            "quic:timer_updated",
            "quic:ecn_state_updated",
            "quic:connection_state_updated",
            "quic:mtu_updated",
            "quic:connection_closed",
        ] {
            let is_idle = *role == "server" && name == "quic:mtu_updated";
            assert!(is_idle || !named(events, name).is_empty(), "{role}: {name}");
        }
        assert_eq!(named(events, "quic:parameters_set").len(), 2, "{role}: of either end");
        let phases = named(events, "quic:key_updated");
        assert!(phases.iter().any(|keys| keys["key_phase"] == 1), "{role}: {phases:?}");
        assert_eq!(events[0]["trace"]["vantage_point"]["type"], *role);
    }
    let [client, server] =
        ["client", "server"].map(|role| &found.iter().find(|(found, _)| *found == role).unwrap().1);
    assert_eq!(
        client[0]["trace"]["common_fields"]["group_id"],
        server[0]["trace"]["common_fields"]["group_id"]
    );
    // Every packet is in its sender's trace, and in that of its receiver.
    assert_eq!(named(client, "quic:packet_sent").len() as u64, sent_and_close);
    assert_eq!(named(server, "quic:packet_received").len() as u64, received);
    let closed = named(server, "quic:connection_closed")[0];
    assert_eq!(
        (&closed["initiator"], &closed["error_code"], &closed["reason"]),
        (&"remote".into(), &7.into(), &"done".into())
    );
    // The bytes of the streams, as the frames have them.
    let frames = named(client, "quic:packet_sent")
        .into_iter()
        .flat_map(|data| data["frames"].as_array().unwrap().clone());
    let streams = frames.filter(|frame| frame["frame_type"] == "stream");
    let bytes: u64 = streams.map(|frame| frame["raw"]["payload_length"].as_u64().unwrap()).sum();
    assert_eq!(bytes, 400_000);
}

#[test]
fn lost_packets_are_told_once_each_and_a_stall_is_told() {
    let (traces, transport) = traced(Keep::default());
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    pair.run(10);
    let id = pair.client().open(Dir::Uni).expect("stream");
    pair.client().write(id, Bytes::from(vec![1; 8_000])).expect("writes");
    pair.now = pair.now + Duration::from_millis(1);
    let mut flight = pair.client.send(pair.now);
    drop(flight.remove(0));
    for datagram in flight {
        pair.server.receive(pair.now, datagram, Some(&pair.config));
    }
    pair.run(20);
    let lost = pair.client().counters().lost_packets;
    assert!(lost > 0);
    // And then nothing comes back any more.
    pair.client().write(id, Bytes::from(vec![1; 8_000])).expect("writes");
    for _ in 0..40 {
        pair.now = pair.now + Duration::from_millis(100);
        drop(pair.client.send(pair.now));
    }
    let found = finished(pair, &traces);
    let events = &found.iter().find(|(role, _)| *role == "client").unwrap().1;
    assert_eq!(named(events, "quic:packet_lost").len() as u64, lost);
    let timeouts = named(events, "quic:recovery_metrics_updated");
    let most = timeouts.iter().filter_map(|data| data["pto_count"].as_u64()).max();
    assert!(most >= Some(3), "{most:?}");
    let expired = named(events, "quic:timer_updated");
    assert!(expired.iter().any(|timer| timer["event_type"] == "expired" && timer["timer_type"] == "pto"));
}

/// Deleted, a packet of one path could not be told from one of the other with the same number.
#[test]
fn packets_of_several_paths_say_which_they_are_on() {
    let (traces, transport) = traced(Keep::default());
    let transport = TransportConfig { multipath: Some(crate::config::Scheduler::RoundRobin), ..transport };
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    pair.run(20);
    let now = pair.now;
    pair.client().open_path(now, addresses(3, 2).local).expect("a path");
    pair.run(20);
    pair.transfer(50_000);
    for (role, events) in finished(pair, &traces) {
        let assigned = named(&events, "quic:tuple_assigned");
        assert!(assigned.iter().any(|tuple| tuple["tuple_id"] == "1000"), "{role}: {assigned:?}");
        for name in ["quic:packet_sent", "quic:packet_received"] {
            let packets = || events.iter().filter(|event| event["name"] == name);
            let on_second = packets().filter(|event| event["tuple"] == "1000").count();
            let on_first = packets().filter(|event| event["tuple"].is_null()).count();
            assert_eq!(on_first + on_second, packets().count(), "{role}");
            assert!(on_first > 0 && on_second > 0, "{role}: {name} {on_first} {on_second}");
        }
        let number = |event: &Value| {
            let header = &event["data"]["header"];
            let is_1rtt = header["packet_type"] == "1RTT";
            is_1rtt.then(|| (event["tuple"].to_string(), header["packet_number"].as_u64()))
        };
        let sent: Vec<_> = events.iter().filter(|event| event["name"] == "quic:packet_sent").collect();
        let numbers: Vec<_> = sent.into_iter().filter_map(number).collect();
        let different: std::collections::BTreeSet<_> = numbers.iter().collect();
        assert_eq!(different.len(), numbers.len(), "{role}: a number twice on one path");
    }
}

#[test]
fn only_connections_that_end_in_an_error_are_kept_when_that_is_asked_for() {
    let when = Some("error".parse().unwrap());
    for code in [0, 7] {
        let (traces, transport) = traced(Keep { when, ..Keep::default() });
        let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
        pair.transfer(10_000);
        let now = pair.now;
        pair.client().close(now, code, b"");
        pair.run(2);
        let found = finished(pair, &traces);
        assert_eq!(found.len(), if code == 0 { 0 } else { 2 }, "code {code}");
        assert!(found.iter().all(|(_, events)| !named(events, "quic:connection_started").is_empty()));
    }
}

/// A trace is cut where its file is full, and the connection goes on.
#[test]
fn a_full_file_does_not_hinder_the_connection() {
    let (traces, transport) = traced(Keep { max_bytes: 50_000, ..Keep::default() });
    let mut pair = Pair::connected(&TlsOptions::default(), transport, RetryPolicy::Never);
    pair.transfer(1_000_000);
    for (_, events) in finished(pair, &traces) {
        assert_eq!(events.last().unwrap()["name"], "loglevel:warning");
    }
    assert!(traces.files.lock().unwrap().iter().all(|(_, bytes)| bytes.len() <= 50_000));
}
