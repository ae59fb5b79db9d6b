//! Every event in its longest form, against the schema; what a trace keeps, and what it never holds.

use crate::*;
use base::net::Addresses;
use base::time::{Duration, Instant};
use proptest::prelude::*;
use serde_json::Value;
use std::sync::{Arc, Mutex};
use wire::Side;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::frame::{self, Frame};
use wire::transport_parameters::{TransportParameters, VersionInformation as Offered};
use wire::version::Version;
use wire::writer::Writer;

const ODCID: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 0xff];

/// An output that keeps what it gets, or refuses.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    bytes: Vec<u8>,
    chunks: usize,
    is_full: bool,
    is_finished: bool,
}

impl Output for Kept {
    fn write(&mut self, chunk: Vec<u8>) -> Result<(), Refused> {
        let mut state = self.0.lock().unwrap();
        if state.is_full {
            return Err(Refused);
        }
        state.bytes.extend_from_slice(&chunk);
        state.chunks += 1;
        Ok(())
    }

    fn finish(&mut self, last: Vec<u8>) {
        let mut state = self.0.lock().unwrap();
        assert!(last.len() <= 1_024 && !state.is_finished);
        state.bytes.extend_from_slice(&last);
        state.is_finished = true;
    }
}

impl Kept {
    fn trace(&self, keep: Keep) -> Trace {
        let beginning = Beginning {
            now: at(0),
            side: Side::Client,
            original_dcid: &ODCID,
            wall_clock_ms: Some(1_764_547_199_999),
        };
        Trace::new(&beginning, keep, Box::new(self.clone()))
    }

    fn set_full(&self, is_full: bool) {
        self.0.lock().unwrap().is_full = is_full;
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().bytes.clone()
    }

    /// The header and the events, checked.
    fn records(&self) -> Vec<Value> {
        check::records(&self.bytes()).unwrap()
    }

    fn names(&self) -> Vec<String> {
        self.records().iter().skip(1).map(|event| event["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(7) + Duration::from_millis(ms)
}

fn cid(byte: u8) -> ConnectionId {
    ConnectionId::new(&[byte; 8]).unwrap()
}

fn addresses() -> Addresses {
    Addresses { local: ([127, 0, 0, 1], 5).into(), peer: "[2001:db8::1]:443".parse().unwrap() }
}

fn payload(frames: &[Frame<'_>]) -> Vec<u8> {
    let mut bytes = vec![0; 4_096];
    let mut writer = Writer::new(&mut bytes);
    frames.iter().for_each(|frame| frame.write(&mut writer));
    let len = writer.position();
    bytes.truncate(len);
    bytes
}

fn packet(payload: &[u8]) -> PacketSent<'_> {
    PacketSent {
        kind: PacketKind::OneRtt { key_phase: 3 },
        pn: 1 << 60,
        version: Some(Version::V2),
        dcid: cid(9),
        len: payload.len() + 30,
        payload,
        ack_delay_exponent: 3,
    }
}

/// One value of each kind of frame, as the wire crate reads them.
fn all_frames(secret: &'static [u8; 16]) -> Vec<u8> {
    let mut ack = [0; 64];
    let mut writer = Writer::new(&mut ack);
    let counts = Some(frame::EcnCounts { ect0: 1, ect1: 2, ce: 3 });
    frame::write_ack(&mut writer, [9..10, 2..5], 77, counts);
    let len = writer.position();
    let mut bytes = ack[..len].to_vec();
    let (dir, id) = (wire::dir::Dir::Uni, 4);
    bytes.extend(payload(&[
        Frame::Ping,
        Frame::Padding { count: 3 },
        Frame::ResetStream(frame::ResetStream { id, code: 5, final_size: 6 }),
        Frame::ResetStreamAt(frame::ResetStreamAt { id, code: 5, final_size: 6, reliable_size: 2 }),
        Frame::StopSending(frame::StopSending { id, code: 0x10c }),
        Frame::Crypto(frame::Crypto { offset: 10, data: secret }),
        Frame::NewToken(frame::NewToken { token: secret }),
        Frame::Stream(frame::Stream { id, offset: 0, fin: true, data: secret }),
        Frame::MaxData(frame::MaxData { maximum: 1 << 61 }),
        Frame::MaxStreamData(frame::MaxStreamData { id, maximum: 8 }),
        Frame::MaxStreams(frame::MaxStreams { dir, maximum: 8 }),
        Frame::DataBlocked(frame::DataBlocked { limit: 8 }),
        Frame::StreamDataBlocked(frame::StreamDataBlocked { id, limit: 8 }),
        Frame::StreamsBlocked(frame::StreamsBlocked { dir: wire::dir::Dir::Bidi, limit: 8 }),
        Frame::NewConnectionId(frame::NewConnectionId {
            sequence: 2,
            retire_prior_to: 1,
            cid: cid(8),
            reset_token: *secret,
        }),
        Frame::RetireConnectionId(frame::RetireConnectionId { sequence: 1 }),
        Frame::PathChallenge(frame::PathChallenge([1; 8])),
        Frame::PathResponse(frame::PathResponse([2; 8])),
        Frame::ConnectionClose(frame::ConnectionClose::Transport {
            code: Code::crypto(42),
            frame_type: 6,
            reason: b"bad \x1b[31m \"certificate\"\xff",
        }),
        Frame::ConnectionClose(frame::ConnectionClose::Application { code: 0x101, reason: b"" }),
        Frame::HandshakeDone,
        Frame::ImmediateAck,
        Frame::Datagram(frame::Datagram { data: secret }),
        Frame::AckFrequency(frame::AckFrequency {
            sequence: 1,
            ack_eliciting_threshold: 2,
            requested_max_ack_delay_us: 3,
            reordering_threshold: 4,
        }),
    ]));
    bytes
}

fn parameters(secret: [u8; 16]) -> TransportParameters {
    TransportParameters {
        original_destination_connection_id: Some(cid(1)),
        initial_source_connection_id: Some(cid(2)),
        retry_source_connection_id: Some(cid(3)),
        stateless_reset_token: Some(secret),
        disable_active_migration: true,
        grease_quic_bit: true,
        reset_stream_at: true,
        max_datagram_frame_size: 65_535,
        version_information: Some(Offered { chosen: Version::V1, available: vec![Version::V1] }),
        ..TransportParameters::default()
    }
}

/// Each type of event there is, with all of its members.
fn record_all(trace: &mut Trace, secret: &'static [u8; 16]) {
    let now = at(3);
    trace.record(now, &ConnectionStarted { addresses: addresses(), local_cid: cid(1), peer_cid: cid(2) });
    let (initiator, parameters) = (Initiator::Remote, parameters(*secret));
    trace.record(now, &ParametersSet { initiator, parameters: &parameters, tls_cipher: Some("AES") });
    let (local, peer) = (&[Version::V1][..], &Version::SUPPORTED[..]);
    trace.record(now, &VersionInformation { side: Side::Client, local, peer, chosen: Version::V2 });
    trace.record(now, &AlpnInformation { chosen: b"h3" });
    let frames = all_frames(secret);
    trace.record(now, &packet(&frames));
    for kind in [PacketKind::Initial, PacketKind::Handshake, PacketKind::ZeroRtt] {
        trace.record(now, &PacketReceived(PacketSent { kind, ..packet(&frames) }));
    }
    let triggers = [
        DropTrigger::Rejected,
        DropTrigger::Invalid,
        DropTrigger::Duplicate,
        DropTrigger::DecryptionFailure,
        DropTrigger::KeyUnavailable,
    ];
    triggers.into_iter().for_each(|trigger| trace.record(now, &PacketDropped { trigger, count: 2 }));
    trace.record(now, &PacketsAcked { kind: PacketKind::Initial, numbers: &[1, 2] });
    for trigger in [LossTrigger::Reordering, LossTrigger::Time] {
        trace.record(now, &PacketLost { kind: PacketKind::Handshake, pn: 7, trigger, is_mtu_probe: true });
    }
    let (initial_rtt, max_datagram_size) = (Duration::from_millis(333), 1_200);
    let initial_congestion_window = 12_000;
    trace.record(now, &RecoveryParametersSet { initial_rtt, max_datagram_size, initial_congestion_window });
    let metrics = RecoveryMetrics {
        min_rtt: Duration::from_micros(1),
        smoothed_rtt: Duration::from_micros(2),
        latest_rtt: Duration::from_micros(3),
        rtt_variance: Duration::from_micros(4),
        pto_count: 1,
        congestion_window: 5,
        bytes_in_flight: 6,
        ssthresh: Some(7),
        pacing_rate: Some(8),
    };
    trace.record_metrics(now, &RecoveryMetrics::default(), &metrics);
    trace.record(now, &CongestionStateUpdated { old: Some("slow_start"), new: "recovery", trigger: None });
    for event in [TimerEvent::Set(Duration::from_millis(1)), TimerEvent::Expired, TimerEvent::Cancelled] {
        trace.record(now, &TimerUpdated { timer: "pto", event });
    }
    trace.record(now, &EcnStateUpdated { old: Some(EcnState::Testing), new: EcnState::Capable });
    trace.record(now, &ConnectionIdUpdated { initiator, old: cid(1), new: cid(2) });
    trace.record(now, &TupleAssigned { id: 1, addresses: addresses() });
    trace.record(now, &MtuUpdated { old: 1_200, new: 1_452 });
    let new = MigrationState::Complete;
    trace.record(now, &MigrationStateUpdated { new, addresses: addresses() });
    let key = KeyUpdated { side: Side::Server, level: "1rtt", key_phase: Some(1), trigger: Some("tls") };
    trace.record(now, &key);
    let old = Some(ConnectionState::Attempted);
    trace.record(now, &ConnectionStateUpdated { old, new: ConnectionState::Draining });
    for (connection_error, application_error) in [
        (Some(Code::PROTOCOL_VIOLATION), None),
        (Some(Code::VERSION_NEGOTIATION_ERROR), None),
        (None, Some(9)),
    ] {
        let closed = ConnectionClosed {
            initiator: Some(Initiator::Local),
            connection_error,
            application_error,
            reason: "\u{7f}\u{2028}",
            trigger: "error",
        };
        trace.record(now, &closed);
    }
    record_http3(trace, now);
}

fn record_http3(trace: &mut Trace, now: Instant) {
    let some = Some(1);
    let (initiator, stream_id) = (Initiator::Remote, 4);
    trace.record(
        now,
        &Http3ParametersSet {
            initiator,
            max_field_section_size: some,
            max_table_capacity: some,
            blocked_streams_count: some,
            extended_connect: some,
            h3_datagram: some,
        },
    );
    for stream_type in [StreamType::Control, StreamType::QpackEncode, StreamType::Unknown(0x21)] {
        trace.record(now, &StreamTypeSet { initiator, stream_id, stream_type });
    }
    trace.record(now, &PriorityUpdated { stream_id, new: "u=1, i" });
    let fields = [
        FieldText { name: b":path", value: b"/" },
        FieldText { name: b"Cookie", value: b"SECRETSECRETSECR" },
        FieldText { name: b"x", value: b"\xff\"" },
    ];
    for frame in [
        Http3Frame::Data { len: 5 },
        Http3Frame::Headers { len: 9, fields: &fields },
        Http3Frame::Settings(&[(1, 0), (6, 2), (0x21, 3), (0x4d44, 1 << 60)]),
        Http3Frame::Goaway { id: 8 },
        Http3Frame::MaxPushId { id: 8 },
        Http3Frame::CancelPush { id: 8 },
        Http3Frame::PriorityUpdate { stream_id, value: b"u=2" },
        Http3Frame::Unknown { ty: 0x2f, len: 3 },
    ] {
        trace.record(now, &FrameCreated { stream_id, frame });
        trace.record(now, &FrameParsed { stream_id, frame });
    }
}

const SECRET: &[u8; 16] = b"SECRETSECRETSECR";

/// Deleted, a quiet connection could hold many times what its ring may, in chunks with little in them, and its budget would not count it.
#[test]
fn a_ring_holds_what_it_may_however_slowly_it_fills_and_says_so() {
    let when = Some(Triggers { error: true, ..Triggers::default() });
    let kept = Kept::default();
    let mut trace = kept.trace(Keep { when, ..Keep::default() });
    let before = trace.held_bytes();
    let mut most = 0;
    for second in 0..5_000 {
        let frame = Http3Frame::Goaway { id: second };
        trace.record(at(1_000 * second), &FrameParsed { stream_id: 3, frame });
        most = most.max(trace.held_bytes());
    }
    assert!(before < most && most > 256 << 10 && most <= (256 + 64) << 10, "{before} {most}");
    trace.on_ended(at(6_000_000), Ended { is_error: true, sent_packets: 1, lost_packets: 0 });
    assert!(trace.held_bytes() <= 32 << 10, "it was written: {}", trace.held_bytes());
    drop(trace);
    let told = kept.records().into_iter().filter(|record| record["name"] == "http3:frame_parsed");
    let told: Vec<u64> = told.filter_map(|record| record["data"]["frame"]["id"].as_u64()).collect();
    assert_eq!(told, (5_000 - told.len() as u64..5_000).collect::<Vec<_>>(), "the last ones");
    assert!(told.len() > 1_500, "{}", told.len());
}

/// Deleted, a peer could make a traced connection hold any number of events, or events that wait could be lost in silence.
#[test]
fn events_that_wait_are_bounded_recorded_once_and_counted() {
    let kept = Kept::default();
    let mut trace = kept.trace(Keep::default());
    let mut pending = Pending::default();
    let fields = [FieldText { name: b"x", value: &[0x01; 300] }];
    let frame = Http3Frame::Headers { len: 300, fields: &fields };
    (0..1_000).for_each(|stream_id| pending.push(&FrameParsed { stream_id, frame }));
    assert!(pending.bytes() <= 2 * (256 << 10) + 16_384, "{}", pending.bytes());
    trace.record_pending(at(7), &mut pending);
    assert!(pending.is_empty());
    assert!(pending.bytes() <= 64 << 10, "memory is given back: {}", pending.bytes());
    trace.record_pending(at(8), &mut pending);
    drop(trace);
    let records = kept.records();
    let told = records.iter().filter(|record| record["name"] == "http3:frame_parsed");
    let told: Vec<u64> = told.filter_map(|record| record["data"]["stream_id"].as_u64()).collect();
    assert_eq!(told, (0..told.len() as u64).collect::<Vec<_>>());
    let warning = records.last().unwrap();
    assert_eq!(warning["data"]["code"].as_u64(), Some(1_000 - told.len() as u64), "{warning}");
    assert_eq!(records[1]["time"].as_f64(), Some(7.0));
}

/// Deleted, a member could be misspelt or of another type, and no viewer would find it.
#[test]
fn every_event_and_every_frame_is_as_the_drafts_have_it() {
    let kept = Kept::default();
    let mut trace = kept.trace(Keep::default());
    record_all(&mut trace, SECRET);
    drop(trace);
    let names = kept.names();
    assert_eq!(kept.records()[0]["trace"]["vantage_point"]["type"], "client");
    assert!(names.len() > 40, "{names:?}");
    // All types of the schema's frames occur.
    let text = String::from_utf8(kept.bytes()).unwrap();
    for line in include_str!("check/schema.txt").lines() {
        let name = line.split(' ').next().unwrap_or_default();
        if let Some(frame) = name.strip_prefix("frame/").or(name.strip_prefix("http3_frame/")) {
            assert!(text.contains(&format!("\"frame_type\":\"{frame}\"")), "{frame}");
        } else if name.starts_with("quic:") || name.starts_with("http3:") {
            assert!(names.iter().any(|found| found == name), "{name}");
        }
    }
}

/// The check itself can fail.
#[test]
fn the_check_finds_what_is_wrong() {
    let header = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","serialization_format":"application/qlog+json-seq","trace":{"event_schemas":["a"]}}"#;
    let file = |event: &str| check::records(format!("\u{1e}{header}\n\u{1e}{event}\n").as_bytes()).map(drop);
    assert_eq!(file(r#"{"time":1.5,"name":"quic:mtu_updated","data":{"new":5}}"#), Ok(()));
    for (event, what) in [
        (r#"{"time":1,"name":"quic:mtu_updated","data":{}}"#, "new is missing"),
        (r#"{"time":1,"name":"quic:mtu_updated","data":{"new":"x"}}"#, "is no uint"),
        (r#"{"time":1,"name":"quic:mtu_updated","data":{"new":1,"more":1}}"#, "unknown member more"),
        (r#"{"time":1,"name":"quic:mtu","data":{}}"#, "is no quic:mtu"),
        (r#"{"name":"quic:mtu_updated","data":{"new":1}}"#, "no time"),
        (r#"{"time":1,"name":"quic:mtu_updated","tuple":1,"data":{"new":1}}"#, "a tuple that is no text"),
        (r#"{"time":1,"name":"quic:ecn_state_updated","data":{"new":"fine"}}"#, "is no EcnState"),
        (r#"{"time":1"#, "EOF"),
    ] {
        let error = file(event).unwrap_err();
        assert!(error.contains(what), "{error}");
    }
    assert!(check::records(b"{}").is_err() && check::records(b"").is_err());
}

/// Tokens, reset tokens, contents, cookies: only their lengths.
#[test]
fn no_secret_is_in_a_trace() {
    let kept = Kept::default();
    let mut trace = kept.trace(Keep::default());
    record_all(&mut trace, SECRET);
    drop(trace);
    let text = String::from_utf8(kept.bytes()).unwrap();
    let hex: String = SECRET.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(!text.contains("SECRET") && !text.contains(&hex));
    assert!(text.contains("<16 bytes>"));
}

/// A peer's words can neither end a record nor reach a terminal as commands.
#[test]
fn text_of_a_peer_is_escaped() {
    let kept = Kept::default();
    let mut trace = kept.trace(Keep::default());
    record_all(&mut trace, SECRET);
    drop(trace);
    let is_control = |byte: &u8| (*byte < 0x20 && *byte != b'\n' && *byte != 0x1e) || *byte == 0x7f;
    assert!(!kept.bytes().iter().any(is_control));
    let text = String::from_utf8(kept.bytes()).unwrap();
    assert!(text.contains(r#"bad \u001b[31m \"certificate\""#) && text.contains(r"\u007f\u2028"));
}

#[test]
fn integers_that_a_double_cannot_hold_are_strings() {
    let kept = Kept::default();
    let mut trace = kept.trace(Keep::default());
    record_all(&mut trace, SECRET);
    drop(trace);
    let text = String::from_utf8(kept.bytes()).unwrap();
    assert!(text.contains(&format!("\"maximum\":\"{}\"", 1_u64 << 61)));
    assert!(!text.contains(&format!(":{}", 1_u64 << 60)));
}

#[test]
fn a_trace_streams_when_a_chunk_is_full_or_a_second_old() {
    let kept = Kept::default();
    let mut trace = kept.trace(Keep::default());
    let event = MtuUpdated { old: 1, new: 2 };
    trace.record(at(1), &event);
    assert_eq!(kept.bytes().len(), 0, "it gathers");
    trace.record(at(1_100), &event);
    assert_eq!(kept.names().len(), 2);
    (0..300).for_each(|_| trace.record(at(1_200), &event));
    assert!(kept.names().len() > 100);
    drop(trace);
    assert_eq!(kept.names().len(), 302);
    assert!(kept.0.lock().unwrap().is_finished);
}

#[test]
fn a_file_has_a_bound_and_says_what_is_missing() {
    let kept = Kept::default();
    let keep = Keep { max_bytes: 40_000, ..Keep::default() };
    let mut trace = kept.trace(keep);
    (0..5_000).for_each(|_| trace.record(at(1), &MtuUpdated { old: 1, new: 2 }));
    drop(trace);
    assert!(kept.bytes().len() <= 40_000, "{}", kept.bytes().len());
    let names = kept.names();
    assert_eq!(names.last().unwrap(), "loglevel:warning");
    let missing = kept.records().last().unwrap()["data"]["code"].as_u64().unwrap();
    assert_eq!(missing + names.len() as u64 - 1, 5_000);
}

#[test]
fn what_a_full_queue_refuses_is_counted_in_the_file() {
    let kept = Kept::default();
    let mut trace = kept.trace(Keep::default());
    let event = MtuUpdated { old: 1, new: 2 };
    kept.set_full(true);
    (0..500).for_each(|_| trace.record(at(1), &event));
    kept.set_full(false);
    (0..300).for_each(|_| trace.record(at(2), &event));
    drop(trace);
    let names = kept.names();
    let warnings = names.iter().filter(|name| *name == "loglevel:warning").count();
    let missing = kept.records().last().unwrap()["data"]["code"].as_u64().unwrap();
    assert!(warnings >= 2 && missing > 0, "{warnings} {missing}");
    assert_eq!(missing as usize + names.len() - warnings, 800);
    // And if nothing was ever taken, the last words are.
    let kept = Kept::default();
    let mut trace = kept.trace(Keep::default());
    kept.set_full(true);
    trace.record(at(1), &event);
    drop(trace);
    assert_eq!(kept.names(), ["loglevel:warning"]);
}

fn triggered(when: &str) -> (Kept, Trace) {
    let kept = Kept::default();
    let keep = Keep { when: Some(when.parse().unwrap()), ring_bytes: 64 << 10, ..Keep::default() };
    let trace = kept.trace(keep);
    (kept, trace)
}

const FINE: Ended = Ended { is_error: false, sent_packets: 1_000, lost_packets: 20 };

#[test]
fn connections_without_a_trigger_leave_nothing() {
    let (kept, mut trace) = triggered("error,stall,loss=2%");
    (0..9_000).for_each(|_| trace.record(at(1), &MtuUpdated { old: 1, new: 2 }));
    trace.on_probe_timeouts(at(2), 2);
    trace.on_ended(at(3), FINE);
    drop(trace);
    assert_eq!(kept.bytes().len(), 0);
    assert!(!kept.0.lock().unwrap().is_finished, "no file is begun");
}

#[test]
fn an_error_a_stall_and_losses_keep_the_last_events_and_all_that_follow() {
    type Cause = fn(&mut Trace);
    let causes: [(&str, Cause); 3] = [
        ("error", |trace| trace.on_ended(at(3), Ended { is_error: true, ..FINE })),
        ("loss=2%", |trace| trace.on_ended(at(3), Ended { lost_packets: 21, ..FINE })),
        ("stall", |trace| trace.on_probe_timeouts(at(3), 3)),
    ];
    for (index, (when, cause)) in causes.iter().enumerate() {
        let (kept, mut trace) = triggered(when);
        (0..9_000).for_each(|_| trace.record(at(1), &MtuUpdated { old: 1, new: 2 }));
        for (other, (_, cause)) in causes.iter().enumerate() {
            if other != index {
                cause(&mut trace);
            }
        }
        assert_eq!(kept.bytes().len(), 0, "{when}: nothing else triggers it");
        cause(&mut trace);
        trace.record(at(4), &AlpnInformation { chosen: b"h3" });
        drop(trace);
        let names = kept.names();
        assert_eq!(names.first().unwrap(), "loglevel:warning", "{when}: it says what came before");
        assert!(kept.bytes().len() <= (64 << 10) + 20_000, "the ring is bounded");
        let missing = kept.records()[1]["data"]["code"].as_u64().unwrap() as usize;
        let changes = names.iter().filter(|name| *name == "quic:mtu_updated").count();
        assert_eq!(missing + changes, 9_000, "{when}");
        assert!(names.contains(&"quic:alpn_information".to_owned()), "{when}: later events follow");
    }
}

#[test]
fn triggers_and_shares_are_read_or_refused_with_words() {
    let all = Triggers { error: true, stall: true, loss_per_mille: Some(25) };
    assert_eq!("error, stall,loss=2.5%".parse(), Ok(all));
    for wrong in ["", "eror", "loss=2", "loss=-1%", "loss=101%", "error,,stall"] {
        assert!(wrong.parse::<Triggers>().unwrap_err().contains("loss=2%"), "{wrong}");
    }
    assert_eq!("0.01".parse(), Ok(Share::from_millionths(10_000)));
    assert_eq!("1".parse(), Ok(Share::ALL));
    for wrong in ["", "1.1", "-0.1", "NaN", "1%"] {
        assert!(wrong.parse::<Share>().is_err(), "{wrong}");
    }
}

/// Deleted, a share could be all or nothing for IDs that are alike.
#[test]
fn a_share_of_connections_is_sampled_evenly_and_the_same_at_both_ends() {
    for millionths in [0, 10_000, 500_000, 1_000_000] {
        let share = Share::from_millionths(millionths);
        let sampled = (0..100_000_u64).filter(|id| is_sampled(&id.to_be_bytes(), share)).count() as u64;
        let expected = u64::from(millionths) / 10;
        assert!(sampled.abs_diff(expected) <= expected / 10, "{sampled} of 100,000 at {millionths}");
        assert!(
            (0..100_u64)
                .all(|id| is_sampled(&id.to_be_bytes(), share) == is_sampled(&id.to_be_bytes(), share))
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Whatever an authentic peer puts into a packet or a field, the record is valid.
    #[test]
    fn any_payload_and_any_field_make_valid_records(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        reason in any::<String>(),
        exponent in any::<u8>(),
    ) {
        let kept = Kept::default();
        let mut trace = kept.trace(Keep::default());
        trace.record(at(1), &PacketReceived(PacketSent { ack_delay_exponent: exponent, ..packet(&bytes) }));
        let fields = [FieldText { name: &bytes, value: &bytes }];
        trace.record(at(1), &FrameParsed { stream_id: 0, frame: Http3Frame::Headers { len: 1, fields: &fields } });
        trace.record(at(1), &AlpnInformation { chosen: &bytes });
        let closed = ConnectionClosed {
            initiator: None,
            connection_error: None,
            application_error: Some(u64::MAX),
            reason: &reason,
            trigger: "error",
        };
        trace.record(at(1), &closed);
        drop(trace);
        prop_assert_eq!(kept.names().len(), 4);
        let records = kept.records();
        prop_assert_eq!(records[4]["data"].get("reason").and_then(Value::as_str).unwrap_or_default(), reason);
    }
}
