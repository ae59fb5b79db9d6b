//! The two processes of the roofline.
//!
//! Credit is a datagram of eight bytes: how many datagrams have been received in all.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};

use base::net::{Addresses, Ecn};
use base::sink::{PacketSink, TrainPath};
use base::time::Duration;
use datapath::{Port, Rx, Tx};
use udp::{BindOptions, UdpPort, Variant};

use super::protect::{Opener, Sealer};
use super::{Role, RooflinePlan, Used, Work};

/// Without any datagram for so long, one was lost.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often credit is given, in parts of the window.
const CREDITS_PER_WINDOW: u64 = 8;

/// The whole life of a child process that [`super::run`] has started with `role`.
///
/// # Errors
/// When the transfer failed; the message says how.
pub fn child(role: &str) -> io::Result<()> {
    let Role { plan, peer } = serde_json::from_str(role)?;
    cpu::pin(plan.cores[usize::from(peer.is_none())])?;
    let variant: Variant = plan.variant.parse().map_err(io::Error::other)?;
    let mut options = BindOptions::new((Ipv4Addr::LOCALHOST, 0).into(), variant);
    options.send_memory = plan.send_memory;
    options.receive_batch = plan.receive_batch;
    let port = UdpPort::bind(&options).map_err(io::Error::other)?;
    let used = match peer {
        Some(peer) => Sender::new(plan, port, (Ipv4Addr::LOCALHOST, peer).into())?.run()?,
        None => {
            println!("{}", port.local_address().port());
            io::stdout().flush()?;
            Receiver::new(plan, port)?.run()?
        }
    };
    println!("{}", serde_json::to_string(&used)?);
    Ok(())
}

/// Reads time and CPU time at the beginning and the end.
struct Meter {
    at: base::time::Instant,
    cpu_seconds: f64,
}

impl Meter {
    fn start(port: &mut UdpPort) -> Meter {
        Meter { at: port.now(), cpu_seconds: cpu::process_seconds() }
    }

    fn stop(&self, port: &mut UdpPort, plan: &RooflinePlan, calls: u64, trains: u64) -> Used {
        let cpu_seconds = cpu::process_seconds() - self.cpu_seconds;
        let overhead = if plan.work == Work::Whole { super::protect::OVERHEAD } else { 0 };
        Used {
            seconds: port.now().saturating_since(self.at).as_secs_f64(),
            cpu_seconds,
            calls,
            trains,
            datagrams: plan.datagrams,
            bytes: plan.datagrams * (plan.datagram_size - overhead) as u64,
        }
    }
}

struct Sender {
    plan: RooflinePlan,
    port: UdpPort,
    sealer: Sealer,
    path: TrainPath,
    sent: u64,
    credit: u64,
}

impl Sender {
    fn new(plan: RooflinePlan, port: UdpPort, peer: SocketAddr) -> io::Result<Sender> {
        let path = TrainPath::new(Addresses { local: port.local_address(), peer }, Ecn::Ect0);
        let sealer = Sealer::new(plan.datagram_size)?;
        Ok(Sender { plan, port, sealer, path, sent: 0, credit: 0 })
    }

    fn run(mut self) -> io::Result<Used> {
        let meter = Meter::start(&mut self.port);
        let window = (self.plan.window / self.plan.datagram_size).max(1) as u64;
        while self.credit < self.plan.datagrams {
            let limit = self.plan.datagrams.min(self.credit + window);
            while self.sent < limit && self.send_train(limit) {}
            self.port.flush()?;
            if !self.poll_credit()? && self.sent == limit {
                let deadline = self.port.now() + PATIENCE;
                self.port.wait(Some(deadline))?;
                if self.port.now() >= deadline {
                    return Err(io::Error::other("no credit came: a datagram was lost"));
                }
            }
        }
        let sent = self.port.counters().tx;
        if sent.lost() > 0 {
            return Err(io::Error::other(format!("datagrams could not be sent: {sent:?}")));
        }
        Ok(meter.stop(&mut self.port, &self.plan, sent.calls, sent.trains))
    }

    /// Builds one train, up to packet number `limit`; false when there is no memory before the next flush.
    fn send_train(&mut self, limit: u64) -> bool {
        let size = self.plan.datagram_size;
        let Some(room) = self.port.begin(self.path, size) else { return false };
        let packets = room.min((limit - self.sent) as usize);
        for number in (self.sent..).take(packets) {
            let packet = self.port.room();
            if self.plan.work == Work::Whole {
                self.sealer.seal(number, packet);
            } else if number < 2048 {
                // Memory that was never written is one page of zeros, which no other sender has the luck to send.
                packet.fill(number as u8);
            }
            self.port.push(size);
        }
        if self.plan.work == Work::Whole {
            self.sealer.protect_headers(&mut self.port, packets);
        }
        self.port.end();
        self.sent += packets as u64;
        true
    }

    /// Takes in credit; whether there was any.
    fn poll_credit(&mut self) -> io::Result<bool> {
        let before = self.credit;
        for index in 0..self.port.poll()? {
            for datagram in self.port.train(index).bytes.chunks(8) {
                if let Some(total) = datagram.first_chunk() {
                    self.credit = self.credit.max(u64::from_be_bytes(*total));
                }
            }
        }
        Ok(self.credit > before)
    }
}

struct Receiver {
    plan: RooflinePlan,
    port: UdpPort,
    opener: Opener,
    received: u64,
}

impl Receiver {
    fn new(plan: RooflinePlan, port: UdpPort) -> io::Result<Receiver> {
        let opener = Opener::new(plan.datagram_size)?;
        Ok(Receiver { plan, port, opener, received: 0 })
    }

    fn run(mut self) -> io::Result<Used> {
        self.port.wait(None)?;
        let meter = Meter::start(&mut self.port);
        let window = (self.plan.window / self.plan.datagram_size).max(1) as u64;
        let (mut credited, mut patience) = (0, self.port.now() + PATIENCE);
        while self.received < self.plan.datagrams {
            let trains = self.port.poll()?;
            if trains == 0 {
                self.port.wait(Some(patience))?;
                let now = self.port.now();
                if now >= patience {
                    let have = self.received;
                    return Err(io::Error::other(format!("nothing came after {have} datagrams")));
                }
                patience = now + PATIENCE;
                continue;
            }
            let mut addresses = None;
            for index in 0..trains {
                let train = self.port.train(index);
                addresses = Some(train.addresses);
                self.received += if self.plan.work == Work::Whole {
                    self.opener.open(self.received, train)?
                } else {
                    train.bytes.len().div_ceil(train.segment_size) as u64
                };
            }
            let due = self.received - credited >= window.div_ceil(CREDITS_PER_WINDOW);
            if let Some(addresses) = addresses
                && (due || self.received == self.plan.datagrams)
            {
                credited = self.received;
                self.give_credit(addresses)?;
            }
        }
        let received = self.port.counters().rx;
        Ok(meter.stop(&mut self.port, &self.plan, received.calls, received.trains))
    }

    fn give_credit(&mut self, addresses: Addresses) -> io::Result<()> {
        if self.port.begin(TrainPath::new(addresses, Ecn::NotEct), 8).is_some() {
            self.port.room().copy_from_slice(&self.received.to_be_bytes());
            self.port.push(8);
            self.port.end();
        }
        self.port.flush()
    }
}
