use super::*;

/// The traces of a document made of these records.
fn converted(records: &[Value]) -> Vec<Value> {
    let header = json!({
        "file_schema": "urn:ietf:params:qlog:file:sequential",
        "trace": {
            "common_fields": {"group_id": "0a0b", "reference_time": {"wall_clock_time": "2026-11-23T13:37:32.992Z"}},
            "vantage_point": {"type": "server"},
        },
    });
    let lines: String =
        core::iter::once(&header).chain(records).map(|record| format!("\u{1e}{record}\n")).collect();
    let mut document = Document::default();
    document.add_text(&lines).expect("a trace");
    let text = document.to_json().expect("text");
    let read: Value = serde_json::from_str(&text).expect("JSON");
    read["traces"].as_array().expect("traces").clone()
}

fn event(name: &str, data: Value) -> Value {
    json!({"time": 1.5, "name": name, "data": data})
}

/// Name and data after the conversion.
fn one(name: &str, data: Value) -> (String, Value) {
    let traces = converted(&[event(name, data)]);
    let event = &traces[0]["events"][0];
    (event["name"].as_str().expect("a name").to_owned(), event["data"].clone())
}

#[test]
fn a_trace_has_the_fields_of_0_3_and_its_events_in_the_order_of_time() {
    let at = |time: f64| json!({"time": time, "name": "quic:mtu_updated", "data": {"new": 1500}});
    let traces = converted(&[at(3.0), at(1.0), at(2.0)]);
    assert_eq!(traces.len(), 1);
    assert_eq!(traces[0]["vantage_point"], json!({"type": "server"}));
    let common = &traces[0]["common_fields"];
    assert_eq!((&common["ODCID"], &common["time_format"]), (&json!("0a0b"), &json!("relative")));
    assert_eq!(common["reference_time"], json!(1_795_441_052_992_u64));
    let times = traces[0]["events"].as_array().expect("events").iter().map(|event| event["time"].as_f64());
    assert_eq!(times.collect::<Vec<_>>(), [Some(1.0), Some(2.0), Some(3.0)]);
}

#[test]
fn times_of_day_are_those_of_the_calendar() {
    for (text, ms) in [
        ("1970-01-01T00:00:00.000Z", Some(0)),
        ("2000-02-29T00:00:00.000Z", Some(951_782_400_000)),
        ("2025-11-30T23:59:59.999Z", Some(1_764_547_199_999)),
        ("2100-03-01T00:00:00Z", Some(4_107_542_400_000)),
        ("yesterday", None),
        ("", None),
    ] {
        assert_eq!(unix_ms(text), ms, "{text}");
    }
}

type Case = (&'static str, Value, &'static str, Value);

fn check<const N: usize>(cases: [Case; N]) {
    for (name, data, older, expected) in cases {
        assert_eq!(one(name, data), (older.to_owned(), expected), "{name}");
    }
}

/// Deleted, viewers would have no windows, round-trip times and losses.
#[test]
fn events_of_recovery_have_the_names_and_members_of_0_3() {
    let [window, new] = [json!({"congestion_window": 12_000}), json!({"new": "recovery"})];
    check([
        ("quic:recovery_metrics_updated", window.clone(), "recovery:metrics_updated", window),
        ("quic:recovery_parameters_set", json!({}), "recovery:parameters_set", json!({})),
        ("quic:congestion_state_updated", new.clone(), "recovery:congestion_state_updated", new),
        ("quic:packet_lost", json!({}), "recovery:packet_lost", json!({})),
        ("quic:packets_acked", json!({}), "transport:packets_acked", json!({})),
        (
            "quic:timer_updated",
            json!({"timer_type": "loss_timeout", "event_type": "set", "delta": 3.0}),
            "recovery:loss_timer_updated",
            json!({"timer_type": "ack", "event_type": "set", "delta": 3.0}),
        ),
        (
            "quic:ecn_state_updated",
            json!({"new": "capable"}),
            "loglevel:info",
            json!({"message": r#"ecn_state_updated {"new":"capable"}"#}),
        ),
        ("loglevel:warning", json!({"code": 3}), "loglevel:warning", json!({"code": 3})),
    ]);
}

/// Deleted, a viewer could fail where a connection begins and ends.
#[test]
fn the_beginning_and_the_end_have_the_names_and_members_of_0_3() {
    let end = |ip: &str, port: u16| json!({"ip_v6": ip, "port_v6": port, "connection_ids": ["aa"]});
    check([
        ("quic:mtu_updated", json!({}), "connectivity:mtu_updated", json!({})),
        (
            "quic:connection_started",
            json!({"local": end("::1", 443), "remote": end("::2", 9)}),
            "connectivity:connection_started",
            json!({"ip_version": "v6", "protocol": "QUIC", "src_ip": "::1", "src_port": 443, "src_cid": "aa",
                "dst_ip": "::2", "dst_port": 9, "dst_cid": "aa"}),
        ),
        (
            "quic:connection_closed",
            json!({"initiator": "local", "application_error": "unknown", "error_code": 256, "trigger": "application"}),
            "connectivity:connection_closed",
            json!({"owner": "local", "application_code": 256, "trigger": "application"}),
        ),
        (
            "quic:connection_closed",
            json!({"connection_error": "protocol_violation", "trigger": "aborted"}),
            "connectivity:connection_closed",
            json!({"connection_code": "protocol_violation"}),
        ),
    ]);
}

/// Deleted, viewers would not know who has set what.
#[test]
fn events_of_the_transport_have_the_names_and_members_of_0_3() {
    check([
        ("quic:version_information", json!({}), "transport:version_information", json!({})),
        (
            "quic:alpn_information",
            json!({"chosen_alpn": {"byte_value": "6833", "string_value": "h3"}}),
            "transport:alpn_information",
            json!({"chosen_alpn": "h3"}),
        ),
        (
            "quic:parameters_set",
            json!({"initiator": "remote", "max_udp_payload_size": 1500}),
            "transport:parameters_set",
            json!({"owner": "remote", "max_udp_payload_size": 1500, "max_packet_size": 1500}),
        ),
        (
            "quic:key_updated",
            json!({"key_type": "server_1rtt_secret", "key_phase": 2, "trigger": "remote_update"}),
            "security:key_updated",
            json!({"key_type": "server_1rtt_secret", "generation": 2, "new": "", "trigger": "remote_update"}),
        ),
        (
            "quic:packet_dropped",
            json!({"trigger": "key_unavailable", "details": {"count": 4}}),
            "transport:packet_dropped",
            json!({"trigger": "decryption_failure", "details": {"count": 4, "cause": "key_unavailable"}}),
        ),
        (
            "quic:packet_dropped",
            json!({"trigger": "invalid"}),
            "transport:packet_dropped",
            json!({"trigger": "invalid"}),
        ),
    ]);
}

/// Deleted, viewers would show no requests and no priorities.
#[test]
fn events_of_http_have_the_names_and_members_of_0_3() {
    let priority = json!({"frame_type": "priority_update", "stream_id": 8, "priority_field_value": "u=1"});
    let mut older = priority.clone();
    older["element_id"] = 8.into();
    older["value"] = "u=1".into();
    let data = json!({"frame_type": "data", "raw": {"payload_length": 9}});
    check([
        (
            "http3:parameters_set",
            json!({"initiator": "local"}),
            "http:parameters_set",
            json!({"owner": "local"}),
        ),
        (
            "http3:frame_parsed",
            json!({"stream_id": 2, "frame": priority}),
            "http:frame_parsed",
            json!({"stream_id": 2, "frame": older}),
        ),
        (
            "http3:frame_created",
            json!({"stream_id": 0, "frame": data}),
            "http:frame_created",
            json!({"stream_id": 0, "length": 9, "byte_length": 9, "frame": data}),
        ),
        (
            "http3:stream_type_set",
            json!({"initiator": "local", "stream_id": 2, "stream_type": "unknown", "stream_type_bytes": 33}),
            "http:stream_type_set",
            json!({"owner": "local", "stream_id": 2, "stream_type": "unknown", "stream_type_value": 33}),
        ),
    ]);
}

#[test]
fn frames_have_the_members_of_0_3() {
    let raw = json!({"length": 110, "payload_length": 100});
    for (frame, expected) in [
        (
            json!({"frame_type": "stream", "stream_id": 4, "fin": true, "raw": raw}),
            json!({"frame_type": "stream", "stream_id": 4, "fin": true, "offset": 0, "length": 100, "raw": raw}),
        ),
        (
            json!({"frame_type": "crypto", "offset": 7, "raw": raw}),
            json!({"frame_type": "crypto", "offset": 7, "length": 100}),
        ),
        (json!({"frame_type": "datagram", "raw": raw}), json!({"frame_type": "datagram", "length": 100})),
        (
            json!({"frame_type": "padding", "raw": {"length": 3}}),
            json!({"frame_type": "padding", "payload_length": 3}),
        ),
        (
            json!({"frame_type": "ack", "ack_delay": 0.1, "acked_ranges": [[1, 3], [5]]}),
            json!({"frame_type": "ack", "ack_delay": 0.1, "acked_ranges": [[1, 3], [5]]}),
        ),
        (
            json!({"frame_type": "reset_stream", "stream_id": 0, "error": "unknown", "error_code": 268, "final_size": 1}),
            json!({"frame_type": "reset_stream", "stream_id": 0, "error_code": 268, "final_size": 1}),
        ),
        (
            json!({"frame_type": "reset_stream_at", "stream_id": 0, "error": "unknown", "error_code": 268, "final_size": 9, "reliable_size": 1}),
            json!({"frame_type": "unknown", "frame_type_value": 36, "raw_frame_type": 36, "stream_id": 0, "error_code": 268, "final_size": 9, "reliable_size": 1}),
        ),
        (
            json!({"frame_type": "connection_close", "error_space": "transport", "error": "no_error", "trigger_frame_type": 0}),
            json!({"frame_type": "connection_close", "error_space": "transport", "error_code": "no_error", "trigger_frame_type": 0}),
        ),
        (
            json!({"frame_type": "unknown", "frame_type_bytes": 175, "raw": {"length": 9}}),
            json!({"frame_type": "unknown", "frame_type_value": 175, "raw_frame_type": 175, "raw": {"length": 9}}),
        ),
        (json!({"frame_type": "ping", "raw": {"length": 1}}), json!({"frame_type": "ping"})),
    ] {
        let (name, data) = one("quic:packet_received", json!({"frames": [frame]}));
        assert_eq!(name, "transport:packet_received");
        assert_eq!(data, json!({"frames": [expected]}));
    }
}

/// Deleted, packets of one path would be taken for those of another, as their numbers repeat.
#[test]
fn each_further_path_is_a_trace_of_its_own() {
    let mut beside =
        event("quic:packet_sent", json!({"header": {"packet_type": "1RTT", "packet_number": 0}}));
    beside["tuple"] = "1000".into();
    let traces =
        converted(&[event("quic:packet_sent", json!({})), beside, event("quic:packet_sent", json!({}))]);
    let told: Vec<(Option<&str>, usize)> = traces
        .iter()
        .map(|trace| (trace["title"].as_str(), trace["events"].as_array().map_or(0, Vec::len)))
        .collect();
    assert_eq!(told, [(Some("0a0b"), 2), (Some("0a0b, path 1000"), 1)]);
}

#[test]
fn what_is_no_trace_of_the_current_drafts_is_refused_in_words() {
    for (text, reason) in [
        ("GET / HTTP/1.1\n", "no qlog"),
        (r#"{"qlog_version":"0.3","qlog_format":"JSON-SEQ","trace":{}}"#, "this is qlog 0.3"),
        (r#"{"qlog_version":"0.3","traces":[]}"#, "this is qlog 0.3"),
    ] {
        let error = Document::default().add_text(text).expect_err("it is none");
        assert!(error.contains(reason), "{error}");
    }
    // A record that is torn is left out, as is what is no event.
    let torn = "\u{1e}{\"file_schema\":\"x\"}\n\u{1e}{\"time\":1,\"name\":\"quic:ping\"}\n\u{1e}[1]\n\u{1e}{\"time\":2,\"na";
    let mut document = Document::default();
    document.add_text(torn).expect("a trace");
    assert_eq!(document.traces[0]["events"].as_array().map(Vec::len), Some(1));
}
