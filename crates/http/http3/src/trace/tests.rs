//! What is in the traces of connections, event by event.

use crate::config::Config;
use crate::connection::{Connection, Goaway};
use crate::frame::HeaderReader;
use crate::outgoing::BodyLength;
use crate::testing::{FakeQuic, Recorder, concat, data, frame, headers, request_head, request_stream};
use base::time::{Duration, Instant};
use bytes::Bytes;
use qlog::{Beginning, Keep, Output, Refused};
use std::sync::{Arc, Mutex};
use transport::{Dir, Fin, StreamId};
use wire::Side;

#[derive(Clone, Default)]
struct File(Arc<Mutex<Vec<u8>>>);

impl Output for File {
    fn write(&mut self, chunk: Vec<u8>) -> Result<(), Refused> {
        self.0.lock().unwrap().extend_from_slice(&chunk);
        Ok(())
    }
    fn finish(&mut self, last: Vec<u8>) {
        self.0.lock().unwrap().extend_from_slice(&last);
    }
}

/// A traced connection of which all is read.
struct Traced {
    file: File,
    quic: FakeQuic,
    connection: Connection,
    sink: Recorder,
    now: Instant,
}

impl Traced {
    fn new(side: Side, config: Config) -> Traced {
        let now = Instant::ZERO;
        let (file, mut quic) = (File::default(), FakeQuic::new(side));
        let beginning = Beginning { now, side, original_dcid: &[1; 8], wall_clock_ms: None };
        quic.log = Some(qlog::Trace::new(&beginning, Keep::default(), Box::new(file.clone())));
        let mut connection = Connection::new(side, Arc::new(config), now);
        connection.begin_trace(&mut quic);
        Traced { file, quic, connection, sink: Recorder::default(), now }
    }

    fn receive(&mut self, id: StreamId, bytes: &[u8], fin: Fin) {
        self.connection.on_stream_data(&mut self.sink, id, bytes, fin);
    }

    fn turn(&mut self) {
        self.now = self.now + Duration::from_millis(1);
        self.connection.on_turn(&mut self.quic, &mut self.sink, self.now);
    }

    /// Events in words: time, name, stream, frame or what else tells them apart. All of them are valid.
    fn told(mut self) -> (Vec<String>, String) {
        self.quic.log = None;
        let bytes = self.file.0.lock().unwrap().clone();
        let records = qlog::check::records(&bytes).unwrap();
        let told = records.iter().skip(1).map(|record| {
            let data = &record["data"];
            let word = |path: &str| data.pointer(path).map(|value| value.to_string().replace('"', ""));
            let words = [
                "/stream_id",
                "/initiator",
                "/stream_type",
                "/frame/frame_type",
                "/frame/raw/payload_length",
                "/frame/id",
                "/new",
            ];
            let name = record["name"].as_str().unwrap_or_default().replace("http3:", "");
            let words: Vec<String> = words.iter().filter_map(|path| word(path)).collect();
            format!("{} {name} {}", record["time"], words.join(" "))
        });
        (told.collect(), String::from_utf8(bytes).unwrap())
    }
}

/// How long the payload of a frame is.
fn payload(mut frame: &[u8]) -> u64 {
    HeaderReader::default().read(&mut frame).unwrap().length
}

fn uni(side: Side, index: u64) -> StreamId {
    StreamId::new(side, Dir::Uni, index)
}

/// Deleted, events could be missing, out of order or dated wrongly, and secrets could be in them.
#[test]
fn a_server_tells_what_it_reads_and_writes_in_order_and_without_secrets() {
    let mut server = Traced::new(Side::Server, Config::server());
    // A request that comes before the first turn, as early data does, and one of its two priorities.
    let secrets = [
        ("authorization", "SECRET1"),
        ("cookie", "SECRET2"),
        ("proxy-authorization", "SECRET3"),
        ("priority", "u=1"),
    ];
    let head = request_head("POST", &secrets);
    server.receive(request_stream(0), &concat(&[&head, &data(b"hello")]), Fin::End);
    let update = frame(0x0f_0700, b"\x00u=5, i");
    let control = concat(&[&[0], &frame(0x04, &[0x06, 0x44, 0, 0x21, 7]), &update, &frame(0x21, b"xyz")]);
    server.receive(uni(Side::Client, 0), &control, Fin::Open);
    server.receive(uni(Side::Client, 1), &[0x02], Fin::Open);
    server.receive(uni(Side::Client, 2), &[0x40, 0x54, 1], Fin::Open);
    server.turn();
    let Traced { quic, connection, .. } = &mut server;
    let fields = [(&b"set-cookie"[..], &b"SECRET4"[..]), (b"x-told", b"yes")];
    connection.respond_with(quic, request_stream(0), 200, fields, BodyLength::Unknown).unwrap();
    connection.write_body(quic, request_stream(0), Bytes::from_static(b"content")).unwrap();
    connection.finish(quic, request_stream(0)).unwrap();
    server.receive(request_stream(1), &request_head("GET", &[]), Fin::End);
    server.turn();
    let Traced { quic, connection, .. } = &mut server;
    connection.respond_whole(quic, request_stream(1), 404, [], b"no").unwrap();
    connection.goaway(quic, Goaway::Final);
    let (told, text) = server.told();
    let [first, second] = [head, request_head("GET", &[])].map(|frame| payload(&frame));
    let expected = [
        "1.0 stream_type_set 0 remote request".to_owned(),
        format!("1.0 frame_parsed 0 headers {first}"),
        "1.0 frame_parsed 0 data 5".to_owned(),
        "1.0 stream_type_set 2 remote control".to_owned(),
        "1.0 frame_parsed 2 settings".to_owned(),
        "1.0 parameters_set remote".to_owned(),
        "1.0 frame_parsed 2 priority_update".to_owned(),
        "1.0 frame_parsed 2 unknown 3".to_owned(),
        "1.0 stream_type_set 6 remote qpack_encode".to_owned(),
        "1.0 stream_type_set 10 remote unknown".to_owned(),
        "1.0 stream_type_set 3 local control".to_owned(),
        "1.0 frame_created 3 settings".to_owned(),
        "1.0 parameters_set local".to_owned(),
        "1.0 stream_type_set 7 local qpack_encode".to_owned(),
        "1.0 stream_type_set 11 local qpack_decode".to_owned(),
        "1.0 priority_updated 0 u=1".to_owned(),
        "1.0 priority_updated 0 u=5, i".to_owned(),
        "1.0 frame_created 0 headers".to_owned(),
        "1.0 frame_created 0 data 7".to_owned(),
        "2.0 stream_type_set 4 remote request".to_owned(),
        format!("2.0 frame_parsed 4 headers {second}"),
        "2.0 frame_created 4 headers".to_owned(),
        "2.0 frame_created 4 data 2".to_owned(),
        "2.0 frame_created 3 goaway 8".to_owned(),
    ];
    let cut = |line: &String| match line.split_once("created") {
        Some((_, frame)) if frame.contains("headers") => {
            line.rsplit_once(' ').map(|(line, _)| line.to_owned()).unwrap()
        }
        _ => line.clone(),
    };
    assert_eq!(told.iter().map(cut).collect::<Vec<_>>(), expected);
    assert!(!text.contains("SECRET") && text.contains("<7 bytes>"), "{text}");
    for shown in [r#""value":"POST""#, r#""value":"a.example""#, r#""name":"x-told","value":"yes""#] {
        assert!(text.contains(shown), "{shown}: {text}");
    }
    for absent in ["hello", "content\"", "xyz"] {
        assert!(!text.contains(absent), "{absent}: {text}");
    }
}

#[test]
fn a_client_tells_its_request_and_the_response() {
    let mut client = Traced::new(Side::Client, Config::client());
    client.turn();
    let head = http::Request::post("https://a.example/there?x=1").body(()).unwrap().into_parts().0;
    let id = client.connection.request(&mut client.quic, &head, BodyLength::Known(3)).unwrap();
    client.connection.write_body(&mut client.quic, id, Bytes::from_static(b"abc")).unwrap();
    client.connection.finish(&mut client.quic, id).unwrap();
    // The head of the response comes in pieces, and trailers follow.
    let response = headers(&[(":status", "200"), ("server", "a")]);
    client.receive(id, &response[..4], Fin::Open);
    client.receive(id, &response[4..], Fin::Open);
    client.receive(id, &concat(&[&data(b"answer"), &headers(&[("x-sum", "1")])]), Fin::End);
    client.receive(uni(Side::Server, 0), &concat(&[&[0], &frame(0x04, &[]), &frame(0x07, &[4])]), Fin::Open);
    client.turn();
    let (told, text) = client.told();
    let told: Vec<&str> = told.iter().skip(5).map(String::as_str).collect();
    let [response, trailers] = [response, headers(&[("x-sum", "1")])].map(|frame| payload(&frame));
    assert_eq!(told[..3], ["1.0 stream_type_set 0 local request", told[1], "1.0 frame_created 0 data 3"]);
    assert!(told[1].starts_with("1.0 frame_created 0 headers "), "{told:?}");
    let expected = [
        format!("2.0 frame_parsed 0 headers {response}"),
        "2.0 frame_parsed 0 data 6".to_owned(),
        format!("2.0 frame_parsed 0 headers {trailers}"),
        "2.0 stream_type_set 3 remote control".to_owned(),
        "2.0 frame_parsed 3 settings".to_owned(),
        "2.0 parameters_set remote".to_owned(),
        "2.0 frame_parsed 3 goaway 4".to_owned(),
    ];
    assert_eq!(told[3..], expected);
    assert!(text.contains(r#""name":":path","value":"/there?x=1""#), "{text}");
}

/// What ends the connection is in the trace too.
#[test]
fn a_frame_that_is_wrong_is_told() {
    let mut server = Traced::new(Side::Server, Config::server());
    server.receive(request_stream(0), &data(b"before the head"), Fin::Open);
    server.turn();
    assert!(server.quic.closed.is_some());
    assert_eq!(server.told().0[..2], ["1.0 stream_type_set 0 remote request", "1.0 frame_parsed 0 data 15"]);
}
