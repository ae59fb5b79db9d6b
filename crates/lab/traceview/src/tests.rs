use crate::records::parse;
use crate::{Summary, study};

/// As tercel writes it.
fn sequence(records: &[&str]) -> String {
    let header = r#"{"file_schema":"urn:ietf:params:qlog:file:sequential","title":"tercel","trace":{"common_fields":{"reference_time":{"wall_clock_time":"2026-11-23T13:37:32.992Z"}},"vantage_point":{"type":"client"}}}"#;
    core::iter::once(&header).chain(records).map(|record| format!("\u{1e}{record}\n")).collect()
}

const SENT: &str = r#"{"time":1.0,"name":"quic:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":7},"raw":{"length":1200},"frames":[{"frame_type":"stream","stream_id":0,"offset":0,"raw":{"length":1010,"payload_length":1000}}]}}"#;

#[test]
fn a_sequence_is_summed_up() {
    let text = sequence(&[
        r#"{"time":0.5,"name":"quic:connection_started","data":{"local":{"ip_v4":"127.0.0.1","port_v4":1},"remote":{"ip_v6":"::1","port_v6":443}}}"#,
        SENT,
        r#"{"time":1.5,"name":"quic:packet_lost","data":{"header":{"packet_type":"1RTT","packet_number":7}}}"#,
        r#"{"time":201.0,"name":"quic:packet_sent","data":{"header":{"packet_type":"1RTT","packet_number":8},"raw":{"length":1200},"frames":[{"frame_type":"stream","stream_id":0,"offset":500,"raw":{"payload_length":1000}}]}}"#,
        r#"{"time":202.0,"name":"quic:packets_acked","data":{"packet_number_space":"application_data","packet_numbers":[7,8]}}"#,
        r#"{"time":202.0,"name":"quic:recovery_metrics_updated","data":{"latest_rtt":20.0,"congestion_window":12000}}"#,
        r#"{"time":203.0,"name":"quic:recovery_metrics_updated","data":{"latest_rtt":40.0,"congestion_window":24000}}"#,
        r#"{"time":203.0,"name":"quic:connection_state_updated","data":{"new":"handshake_complete"}}"#,
        r#"{"time":204.0,"name":"quic:something_new","data":{}}"#,
        r#"{"time":205.0,"name":"quic:connection_closed","data":{"initiator":"local","error_code":256,"trigger":"application"}}"#,
        r#"{"time":206.0,"name":"quic:packet_se"#,
    ]);
    let traces = parse(&text).expect("a trace");
    let summary = Summary::of(&traces[0]);
    assert_eq!((summary.packets, summary.bytes, summary.stream_bytes), ([2, 0], [2_400, 0], [2_000, 0]));
    assert_eq!((summary.lost, summary.spurious), (1, 1), "what was declared lost was acknowledged later");
    assert_eq!(summary.rtt_ms, Some([20.0, 40.0, 40.0]));
    assert_eq!(summary.largest_window, Some(24_000));
    assert_eq!(summary.addresses, [Some("127.0.0.1:1".to_owned()), Some("[::1]:443".to_owned())]);
    assert_eq!(summary.handshake_ms, Some(202.5), "since the first event");
    assert_eq!((summary.stalls.len(), summary.stalls[0].lasted_ms), (1, 200.0));
    assert_eq!(summary.end.as_deref(), Some("local close code 256 (application)"));
    assert_eq!(summary.others.get("something_new"), Some(&1));
    // Content counts once: the second packet repeats the half of the first.
    assert_eq!(summary.curves.content[0].last().map(|(_, bytes)| *bytes), Some(1_500.0));
    assert!(traces[0].notes[0].contains("not whole"), "{:?}", traces[0].notes);
    let study = study("one", &traces[0], &summary);
    assert_eq!(study.blocks.len(), 6, "figures, stalls and four pictures");
    assert!(study.findings.iter().any(|finding| finding.contains("256")), "{:?}", study.findings);
}

/// Deleted, a picture could show the packets of one path as losses of another, or hide what was sent twice.
#[test]
fn the_sequence_marks_what_was_lost_repeated_and_late() {
    let packet = |time: u32, name: &str, number: u32, offset: u32, more: &str| {
        format!(
            r#"{{"time":{time},"name":"quic:{name}"{more},"data":{{"header":{{"packet_type":"1RTT","packet_number":{number}}},"raw":{{"length":100}},"frames":[{{"frame_type":"stream","stream_id":0,"offset":{offset},"raw":{{"payload_length":50}}}}]}}}}"#
        )
    };
    let acked = r#"{"time":40,"name":"quic:packets_acked","data":{"packet_number_space":"application_data","packet_numbers":[1,3]}}"#;
    let initial = r#"{"time":1,"name":"quic:packet_sent","data":{"header":{"packet_type":"initial","packet_number":9}}}"#;
    let curves = |beside: &str| {
        let records = [
            initial.to_owned(),
            packet(1, "packet_sent", 1, 0, ""),
            packet(2, "packet_sent", 2, 50, ""),
            packet(2, "packet_sent", 1, 100, beside),
            packet(11, "packet_lost", 2, 50, ""),
            packet(12, "packet_sent", 3, 50, ""),
            packet(20, "packet_received", 5, 0, ""),
            packet(21, "packet_received", 7, 50, ""),
            packet(22, "packet_received", 6, 0, ""),
            acked.to_owned(),
        ];
        let text = sequence(&records.each_ref().map(String::as_str));
        let traces = parse(&text).expect("a trace");
        let summary = Summary::of(&traces[0]);
        (study("one", &traces[0], &summary), summary.sequence)
    };
    let (study, sequence) = curves(r#","tuple":"1""#);
    assert_eq!(sequence.sent, [(0.0, 1.0), (1.0, 2.0), (11.0, 3.0)]);
    assert_eq!((sequence.sent_again, sequence.lost), (vec![(11.0, 3.0)], vec![(10.0, 2.0)]));
    assert_eq!(sequence.acknowledged, [(39.0, 3.0)]);
    assert_eq!((sequence.received, sequence.late), (vec![(19.0, 5.0), (20.0, 7.0)], vec![(21.0, 6.0)]));
    assert_eq!(sequence.received_again, [(21.0, 6.0)]);
    let pictures = study.blocks.iter().filter_map(|block| match block {
        report::model::Block::Plot(plot) => Some(plot.title.as_str()),
        _ => None,
    });
    assert_eq!(pictures.collect::<Vec<_>>(), ["Sequence of sent packets", "Content of streams over time"]);
    assert_eq!(curves("").1.sent.len(), 4, "without a path it is a packet of the first");
}

/// Deleted, the slow request among many would not be seen, and a path could write to a terminal what it likes.
#[test]
fn requests_have_method_path_status_and_duration() {
    let frame = |time: f64, name: &str, fields: &str| {
        format!(
            r#"{{"time":{time},"name":"http3:{name}","data":{{"stream_id":4,"frame":{{"frame_type":"headers","headers":[{fields}]}}}}}}"#
        )
    };
    let field = |name: &str, value: &str| format!(r#"{{"name":"{name}","value":"{value}"}}"#);
    let status = |code: &str| field(":status", code);
    let asked = [field(":method", "GET"), field(":path", "/a\\u001b[2J")].join(",");
    let received = |time: f64| {
        format!(
            r#"{{"time":{time},"name":"quic:packet_received","data":{{"frames":[{{"frame_type":"stream","stream_id":4,"raw":{{"payload_length":10}}}}]}}}}"#
        )
    };
    let records = [
        frame(1.0, "frame_created", &asked),
        SENT.to_owned(),
        frame(2.0, "frame_parsed", &status("103")),
        received(3.0),
        frame(3.0, "frame_parsed", &status("200")),
        received(9.5),
    ];
    let text = sequence(&records.each_ref().map(String::as_str));
    let traces = parse(&text).expect("a trace");
    let summary = Summary::of(&traces[0]);
    let [request] = summary.requests.as_slice() else { panic!("{:?}", summary.requests) };
    assert_eq!((request.stream, request.method.as_str()), (4, "GET"));
    assert_eq!(request.path, "/a\u{fffd}[2J");
    assert_eq!((request.status, request.duration_ms, summary.request_count), (Some(200), Some(8.5), 1));
    let study = study("one", &traces[0], &summary);
    let shown = report::text::study(&study, report::text::Colours::None);
    for word in ["Requests", "GET", "/a", "200", "8.5"] {
        assert!(shown.contains(word), "{word}: {shown}");
    }
}

/// The events of aioquic 1.7, and those of the first drafts, in which an event is a list.
#[test]
fn documents_of_other_implementations_are_read() {
    let aioquic = r#"{"qlog_format":"JSON","qlog_version":"0.3","traces":[{"common_fields":{"ODCID":"5540465ff861c591"},"vantage_point":{"name":"aioquic","type":"server"},"events":[
        {"data":{"cwnd":12000,"bytes_in_flight":491},"name":"recovery:metrics_updated","time":1795441074539.0},
        {"data":{"chosen_version":1},"name":"transport:version_information","time":1795441074539.5},
        {"data":{"frames":[{"frame_type":"stream","fin":true,"length":100,"offset":0,"stream_id":4}],"header":{"packet_number":3,"packet_type":"1RTT"},"raw":{"length":140}},"name":"transport:packet_received","time":1795441074540.0}]}]}"#;
    let traces = parse(aioquic).expect("a trace");
    let summary = Summary::of(&traces[0]);
    assert_eq!((traces[0].title.as_str(), summary.vantage.as_str()), ("aioquic", "server"));
    assert_eq!((summary.packets, summary.bytes, summary.stream_bytes), ([0, 1], [0, 140], [0, 100]));
    assert_eq!((summary.duration_ms, summary.version.as_deref()), (1.0, Some("1")));
    assert_eq!((summary.largest_window, summary.curves.in_flight.len()), (Some(12_000), 1));
    let lists = r#"{"qlog_version":"draft-01","traces":[{"vantage_point":{"type":"client"},"event_fields":["relative_time","category","event","data"],"events":[
        ["2","transport","packet_sent",{"packet_type":"1RTT","header":{"packet_number":"1","packet_size":1280},"frames":[{"frame_type":"stream","stream_id":"0","offset":"0","length":"20"}]}]]}]}"#;
    let summary = Summary::of(&parse(lists).expect("a trace")[0]);
    assert_eq!((summary.packets, summary.bytes, summary.stream_bytes), ([1, 0], [1_280, 0], [20, 0]));
}

#[test]
fn what_is_no_trace_is_refused_with_a_reason() {
    for (text, reason) in [
        ("", "empty"),
        (" \n", "empty"),
        ("GET / HTTP/1.1\n", "no qlog"),
        (r#"{"time":1}"#, "no qlog"),
        (r#"{"qlog_version":"0.3","traces":[]}"#, "no traces"),
    ] {
        let error = parse(text).expect_err("it is no trace");
        assert!(error.contains(reason), "{text:?}: {error}");
    }
    // A trace that has just begun is one.
    let summary = Summary::of(&parse(&sequence(&[])).expect("a header")[0]);
    assert_eq!((summary.events, summary.end), (0, None));
}
