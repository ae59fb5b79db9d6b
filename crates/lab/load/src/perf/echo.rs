//! The floor: an exchange in bare datagrams through the same ports, without any protocol.
//!
//! A request is one datagram: [`MARK`], eight bytes that say how many bytes shall come back, two that say how long the datagrams
//! of the answer shall be. One request is outstanding. What a perf exchange takes longer is the protocol's: packet protection,
//! acknowledgements, streams, loss detection.
//!
//! Such a server can be made to flood others with answers to forged requests: for laboratories only, and an answer
//! is [`MAX_ANSWER`] bytes at most.

use super::protocol::PREFIX;
use super::report::{curve, line};
use crate::latency::Latency;
use crate::spans::Spans;
use base::net::{Addresses, Ecn};
use base::sink::{PacketSink as _, TrainPath};
use base::time::{Duration, Instant};
use core::fmt;
use cpu::times::{ProcessTimes, Times};
use datapath::{Port as _, Rx as _, Tx as _};
use ports::AnyPort;
use serde::Serialize;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first byte of every datagram: QUIC's fixed bit, without which AF_XDP leaves a datagram to the kernel.
const MARK: u8 = 0x40;
/// Bytes of the shortest request.
pub const MIN_REQUEST: usize = 1 + PREFIX + 2;
/// The longest answer, in bytes.
pub const MAX_ANSWER: u64 = 65_536;
/// An answer that has not come after so long is lost, and is asked for anew.
const PATIENCE: Duration = Duration::from_millis(100);
/// How often the order to stop is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Polls the port for `spin` before it sleeps.
struct EchoPort {
    spin: Duration,
    busy_at: Instant,
}

impl EchoPort {
    /// Takes in what has come; sleeps until something has when there was nothing for long enough. Returns the number of trains.
    fn listen(&mut self, port: &mut AnyPort, until: Instant) -> io::Result<usize> {
        let trains = port.poll()?;
        let now = port.now();
        if trains > 0 {
            self.busy_at = now;
        } else if now.saturating_since(self.busy_at) >= self.spin {
            port.wait(Some(until))?;
        }
        Ok(trains)
    }
}

/// Answers until `is_over` says so, which is asked at least ten times a second.
///
/// # Errors
/// Only when the port itself has failed.
pub fn serve(port: &mut AnyPort, spin: Duration, is_over: &dyn Fn() -> bool) -> io::Result<()> {
    let mut ear = EchoPort { spin, busy_at: port.now() };
    let mut wanted = Vec::new();
    while !is_over() {
        let until = port.now() + LOOK_EVERY;
        for index in 0..ear.listen(port, until)? {
            let train = port.train(index);
            let addresses = train.addresses;
            let each = train.bytes.chunks(train.segment_size.max(1)).filter_map(Wanted::read);
            wanted.extend(each.map(|wanted| (addresses, wanted)));
        }
        for (addresses, Wanted { bytes, segment }) in wanted.drain(..) {
            send(port, addresses, (bytes, segment), &[]);
        }
        port.flush()?;
    }
    Ok(())
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wanted {
    bytes: u64,
    segment: usize,
}

impl Wanted {
    fn read(datagram: &[u8]) -> Option<Wanted> {
        let (_, rest) = datagram.split_first().filter(|(mark, _)| **mark == MARK)?;
        let (size, rest) = rest.split_first_chunk::<PREFIX>()?;
        let (segment, _) = rest.split_first_chunk::<2>()?;
        let bytes = u64::from_be_bytes(*size).min(MAX_ANSWER);
        Some(Wanted { bytes, segment: usize::from(u16::from_be_bytes(*segment)).clamp(100, 65_507) })
    }
}

/// Queues this many bytes in datagrams of this many, the first of which begins with `head`.
fn send(port: &mut AnyPort, addresses: Addresses, (bytes, segment): (u64, usize), head: &[u8]) {
    let mut left = bytes as usize;
    let mut head = Some(head);
    while left > 0 {
        // No room means that datagrams are lost, as on any path.
        let Some(packets) = port.begin(TrainPath::new(addresses, Ecn::NotEct), segment.min(left)) else {
            return;
        };
        for _ in 0..packets {
            let room = port.room();
            let len = room.len().min(left);
            if let Some(mark) = room.first_mut() {
                *mark = MARK;
            }
            if let Some(head) = head.take()
                && let Some(place) = room.get_mut(..head.len())
            {
                place.copy_from_slice(head);
            }
            let is_last = len < room.len() || len == left;
            port.push(len);
            left -= len;
            if is_last {
                break;
            }
        }
        port.end();
    }
}

/// What is to be measured.
#[derive(Clone, Copy, Debug)]
pub struct EchoPlan {
    /// Whom to ask.
    pub address: SocketAddr,
    /// Bytes of a request: [`MIN_REQUEST`] at least, and no more than one datagram holds.
    pub request: usize,
    /// Bytes of an answer: [`MAX_ANSWER`] at most.
    pub response: u64,
    /// Bytes of each datagram of an answer.
    pub segment: u16,
    /// How long before anything is counted.
    pub warm_up: Duration,
    /// How long it is measured.
    pub span: Duration,
    /// How long the port is polled before it sleeps.
    pub spin: Duration,
    /// The server's process, if its CPU time is to be taken.
    pub server: Option<u32>,
}

/// A run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Echoed {
    /// `echo`.
    pub task: &'static str,
    /// The client's data path.
    pub datapath: String,
    /// How long was measured.
    pub seconds: f64,
    /// Answers that came whole.
    pub completed: u64,
    /// Answers that did not come in time.
    pub lost: u64,
    /// Completed exchanges a second.
    pub per_second: f64,
    /// From the sending of a request to the last byte of its answer.
    pub latency: Latency,
    /// The distribution, as in [`super::Report::curve`].
    pub curve: Vec<[f64; 2]>,
    /// CPU time of the client for each exchange, in microseconds.
    pub client_us: f64,
    /// The same of the server, if its process was named.
    pub server_us: Option<f64>,
}

/// Asks until the time is over or `stop` is set.
///
/// # Errors
/// Only when the port itself has failed.
pub fn measure(port: &mut AnyPort, plan: &EchoPlan, stop: &AtomicBool) -> io::Result<Echoed> {
    let addresses = Addresses { local: port.local_address_towards(plan.address), peer: plan.address };
    let mut head = [0; MIN_REQUEST];
    head[0] = MARK;
    head[1..=PREFIX].copy_from_slice(&plan.response.min(MAX_ANSWER).to_be_bytes());
    head[1 + PREFIX..].copy_from_slice(&plan.segment.to_be_bytes());
    let mut ear = EchoPort { spin: plan.spin, busy_at: port.now() };
    let (mut spans, mut lost) = (Spans::new(), 0);
    let begin = port.now() + plan.warm_up;
    let mut before = None;
    let mut now = port.now();
    while !stop.load(Ordering::Relaxed) && now < begin + plan.span {
        if before.is_none() && now >= begin {
            before = Some((now, Times::of_this_thread(), plan.server.and_then(ProcessTimes::of)));
            (spans, lost) = (Spans::new(), 0);
        }
        send(port, addresses, (plan.request.max(MIN_REQUEST) as u64, plan.request.max(MIN_REQUEST)), &head);
        port.flush()?;
        let mut missing = plan.response.min(MAX_ANSWER);
        let asked = now;
        while missing > 0 && now < asked + PATIENCE {
            for index in 0..ear.listen(port, asked + PATIENCE)? {
                missing = missing.saturating_sub(port.train(index).bytes.len() as u64);
            }
            now = port.now();
        }
        match missing {
            0 => spans.add(now.saturating_since(asked)),
            _ => lost += 1,
        }
    }
    let Some((began, times, server)) = before else { return Ok(Echoed::default()) };
    let each = |seconds: f64| seconds * 1e6 / spans.count().max(1) as f64;
    let server_after = plan.server.and_then(ProcessTimes::of);
    let server_us = server
        .zip(server_after)
        .map(|(before, after)| each(after.since(&before).iter().map(|times| times.cpu_s).sum()));
    let seconds = now.saturating_since(began).as_secs_f64();
    Ok(Echoed {
        task: "echo",
        datapath: port.capabilities().name.to_owned(),
        seconds,
        completed: spans.count(),
        lost,
        per_second: spans.count() as f64 / seconds.max(1e-9),
        latency: Latency::of(&spans),
        curve: curve(&spans),
        client_us: each(Times::of_this_thread().since(&times).cpu_s),
        server_us,
    })
}

impl fmt::Display for Echoed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "task        echo of bare datagrams, one at a time")?;
        writeln!(f, "time        {:.2} s, datapath {}", self.seconds, self.datapath)?;
        writeln!(
            f,
            "rate        {:.0}/s ({} completed, {} lost)",
            self.per_second, self.completed, self.lost
        )?;
        if self.completed == 0 {
            return f.write_str("latency     nothing came back");
        }
        writeln!(f, "latency     {}", line(&self.latency))?;
        write!(f, "client      {:.1} µs of CPU each", self.client_us)?;
        if let Some(us) = self.server_us {
            write!(f, "\nserver      {us:.1} µs of CPU each")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use udp::{BindOptions, UdpPort, Variant};

    fn port() -> AnyPort {
        UdpPort::bind(&BindOptions::new("127.0.0.1:0".parse().unwrap(), Variant::Gso)).unwrap().into()
    }

    /// Deleted, the floor could be that of another exchange: fewer bytes, or none.
    #[test]
    fn answers_have_the_length_that_was_asked_for() {
        let (mut server, mut client) = (port(), port());
        let stop = AtomicBool::new(false);
        let plan = EchoPlan {
            address: server.local_address(),
            request: 512,
            response: 8_192,
            segment: 1_452,
            warm_up: Duration::ZERO,
            span: Duration::from_millis(100),
            spin: Duration::ZERO,
            server: None,
        };
        std::thread::scope(|scope| {
            scope.spawn(|| serve(&mut server, Duration::ZERO, &|| stop.load(Ordering::Relaxed)));
            let echoed = measure(&mut client, &plan, &AtomicBool::new(false));
            stop.store(true, Ordering::Relaxed);
            let echoed = echoed.unwrap();
            assert!(echoed.completed > 0 && echoed.latency.count == echoed.completed, "{echoed:?}");
            let received = client.counters().rx.bytes;
            assert!(received >= echoed.completed * 8_192, "{received} bytes for {echoed:?}");
        });
        let requests = server.counters().rx;
        assert!(requests.bytes == requests.datagrams * 512, "{requests:?}");
    }

    #[test]
    fn what_is_no_request_is_not_answered() {
        assert_eq!(Wanted::read(&[MARK; MIN_REQUEST - 1]), None);
        let endless = [&[MARK], &u64::MAX.to_be_bytes()[..], &[0, 0]].concat();
        assert_eq!(Wanted::read(&endless[1..]), None);
        assert_eq!(Wanted::read(&endless), Some(Wanted { bytes: MAX_ANSWER, segment: 100 }));
    }
}
