//! The server by the letter of the draft, asked by a client that says exactly what a test tells it to.
//! Source: draft-banks-quic-performance-00 §2.3.

use crate::{Serving, port, seed, tls};
use base::time::{Duration, Instant};
use bytes::Bytes;
use crypto::{ClientTls, Roots};
use load::perf::protocol::{ALPN, ENDLESS};
use std::collections::BTreeMap;
use std::sync::Arc;
use transport::{
    ClientConfig, Connection, Dir, Endpoint, EndpointConfig, Event, Fin, IncomingPolicy, StreamId,
    StreamSink, TransportConfig,
};
use worker::{App, Config, Next, Worker};

/// What a stream brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Brought {
    bytes: u64,
    has_ended: bool,
    was_reset: bool,
}

/// A client that opens streams, and notes what comes.
struct Asker {
    /// What is still to be said: on a stream of which kind, and what.
    asks: Vec<(Dir, Vec<u8>)>,
    /// So many bytes of an answer are enough: then it is told to stop.
    enough: u64,
    heard: BTreeMap<StreamId, Brought>,
    is_closed: bool,
}

#[derive(Default)]
struct Ear(Vec<(StreamId, u64, Fin)>);

impl StreamSink for Ear {
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.0.push((id, bytes.len() as u64, fin));
        bytes.len()
    }
}

impl App for Asker {
    type State = Ear;

    fn on_accept(&mut self, _: Instant, _: &mut Connection) -> Ear {
        Ear::default()
    }

    fn on_turn(&mut self, _: Instant, connection: &mut Connection, ear: &mut Ear) -> Next {
        while let Some(event) = connection.next_event() {
            match event {
                Event::StreamReset { id, .. } => self.heard.entry(id).or_default().was_reset = true,
                Event::Closed(_) => self.is_closed = true,
                _ => {}
            }
        }
        for (id, bytes, fin) in ear.0.drain(..) {
            let brought = self.heard.entry(id).or_default();
            brought.bytes += bytes;
            brought.has_ended |= fin == Fin::End;
            if brought.bytes >= self.enough && !brought.has_ended {
                connection.stop_sending(id, 0);
            }
        }
        while let Some((dir, text)) = self.asks.last().cloned()
            && let Ok(id) = connection.open(dir)
        {
            self.asks.pop();
            connection.write(id, Bytes::from(text)).unwrap();
            connection.finish_stream(id).unwrap();
        }
        Next::Wait
    }

    fn on_gone(&mut self, _: Instant, _: &Connection, _: Ear) {
        self.is_closed = true;
    }
}

/// What the server sends to a client that lets it have `streams` streams at a time, until `is_enough` or 20 s have passed.
fn ask(
    asks: Vec<(Dir, Vec<u8>)>,
    streams: u64,
    is_enough: impl Fn(&[Brought]) -> bool,
) -> (Vec<Brought>, bool) {
    let serving = Serving::start(ALPN);
    let mut config = TransportConfig::default();
    config.streams.max_uni_streams = streams;
    let tls = ClientTls::new(&Roots::Insecure, &tls(ALPN)).unwrap();
    let quic = ClientConfig { tls, transport: Arc::new(config.build().unwrap()), token: Vec::new() };
    let endpoint_config = EndpointConfig { incoming: IncomingPolicy::Ignore, ..EndpointConfig::default() };
    let endpoint = Endpoint::new(endpoint_config, seed());
    let asker = Asker { asks, enough: 1 << 20, heard: BTreeMap::new(), is_closed: false };
    let mut worker = Worker::new(port(), asker, endpoint, None, Config::default());
    worker.connect(&quic, "localhost", serving.address, Ear::default()).unwrap();
    let end = worker.now() + Duration::from_secs(20);
    loop {
        let now = worker.now();
        worker.run_turn(Some(now + Duration::from_millis(20))).unwrap();
        let app = worker.app_mut();
        let heard: Vec<Brought> = app.heard.values().copied().collect();
        if is_enough(&heard) || app.is_closed || now > end {
            return (heard, app.is_closed);
        }
    }
}

fn wants(bytes: u64) -> Vec<u8> {
    bytes.to_be_bytes().to_vec()
}

/// §2.3.1: a stream that ends within the number is ignored, and its other direction ends in good order. Deleted, it could be
/// reset, or never end.
#[test]
fn a_request_that_is_too_short_ends_in_good_order() {
    let asks = vec![(Dir::Bidi, vec![0, 0, 1]), (Dir::Uni, vec![9]), (Dir::Bidi, wants(5))];
    let ended = |heard: &[Brought]| heard.iter().filter(|brought| brought.has_ended).count() == 2;
    let (mut heard, is_closed) = ask(asks, 10, ended);
    heard.sort_by_key(|brought| brought.bytes);
    let good = |bytes| Brought { bytes, has_ended: true, was_reset: false };
    assert_eq!((heard.as_slice(), is_closed), (&[good(0), good(5)][..], false));
}

/// §2.3.2: the answer to a stream of one direction is a stream of one direction. A client that lets us have one at a time gets
/// them one after the other; those that want nothing get none.
#[test]
fn streams_of_one_direction_are_answered_on_others() {
    let asks = vec![wants(100_000), wants(0), wants(7), wants(30_000), wants(0)];
    let asks = asks.into_iter().map(|text| (Dir::Uni, text)).collect();
    let ended = |heard: &[Brought]| heard.iter().filter(|brought| brought.has_ended).count() == 3;
    let (heard, is_closed) = ask(asks, 1, ended);
    let mut sizes: Vec<u64> = heard.iter().map(|brought| brought.bytes).collect();
    sizes.sort_unstable();
    assert_eq!((sizes.as_slice(), is_closed), (&[7, 30_000, 100_000][..], false));
}

/// §2.3.1: the largest number asks for bytes without end, until the client wants no more.
#[test]
fn an_endless_answer_ends_when_its_client_has_enough() {
    let asks = vec![(Dir::Bidi, wants(ENDLESS)), (Dir::Bidi, [wants(9), vec![0; 30_000]].concat())];
    let over = |heard: &[Brought]| {
        heard.len() == 2 && heard.iter().all(|brought| brought.has_ended || brought.bytes >= 1 << 20)
    };
    let (heard, is_closed) = ask(asks, 0, over);
    assert!(over(&heard) && !is_closed, "{heard:?}");
    assert!(heard.contains(&Brought { bytes: 9, has_ended: true, was_reset: false }), "{heard:?}");
}
