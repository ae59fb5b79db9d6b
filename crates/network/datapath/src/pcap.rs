//! Middleware that records every datagram of a port in a capture file.
//!
//! pcapng with nanosecond time stamps and raw IP packets (link type 101). A port sees only UDP payload, so the IP and UDP headers are made
//! up from the addresses; they are correct, checksums included. Outgoing packets are recorded as the train ends, before the data path
//! below may lose them; incoming ones as they are taken in.
//!
//! A capture may hold the TLS secrets of its connections, in blocks of their own. A dissector reads from the front, so the secrets stand
//! before the first packet that they open: incoming packets are held until the connections have taken them in. Rejected: classic pcap,
//! which has no place for secrets.
//!
//! A capture must never harm the traffic: the first write error ends it, and the caller can ask for it.
//!
//! Source: draft-ietf-opsawg-pcapng §4.1 to §4.3, §4.7; RFC 791 §3.1, RFC 768, RFC 8200 §3 and §8.1.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::io::{self, BufWriter, Write};

use base::net::{Addresses, Ecn, Train};
use base::sink::{PacketSink, TrainPath};
use base::time::{Duration, Instant};

use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::port::{Counters, Port, Rx, Tx};

/// Types of blocks.
mod block {
    pub(super) const SECTION_HEADER: u32 = 0x0a0d_0d0a;
    pub(super) const INTERFACE: u32 = 1;
    pub(super) const PACKET: u32 = 6;
    pub(super) const SECRETS: u32 = 10;
}

/// By which a reader tells the order of bytes.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// A length that is not known.
const UNKNOWN_LENGTH: u64 = u64::MAX;
const LINK_TYPE_RAW_IP: u16 = 101;
/// The option that says what time stamps count, its length and its value: units of 10^-9 s.
const NANOSECONDS: [u8; 8] = [9, 0, 1, 0, 9, 0, 0, 0];
/// Secrets as TLS key logs have them.
const TLS_KEY_LOG: u32 = 0x544c_534b;
const SNAP_LENGTH: u32 = 262_144;
const UDP: u8 = 17;
const HOP_LIMIT: u8 = 64;

/// One datagram and the way it went, as a capture shows it.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Who sent it.
    pub source: SocketAddr,
    /// Whom it was for.
    pub destination: SocketAddr,
    /// Its marking.
    pub ecn: Ecn,
    /// The UDP payload.
    pub payload: &'a [u8],
}

/// Where the secrets of the connections in a capture come from.
pub trait Secrets: core::fmt::Debug + Send {
    /// Lines of a TLS key log (draft-ietf-tls-keylogfile) that were not taken before; empty if there are none.
    fn take(&mut self) -> Vec<u8>;
}

/// Writes a capture file. Useful without a port, too.
#[derive(Debug)]
pub struct PcapWriter<W: Write> {
    out: BufWriter<W>,
    secrets: Option<Box<dyn Secrets>>,
    /// Blocks of packets that wait for the secrets which open them.
    held: Vec<u8>,
}

impl<W: Write> PcapWriter<W> {
    /// Starts a capture in `out`, which is written through a buffer.
    ///
    /// # Errors
    /// What `out` says.
    pub fn new(out: W) -> io::Result<PcapWriter<W>> {
        let mut out = BufWriter::new(out);
        // Version 1.0.
        let version = [1, 0, 0, 0];
        let section = [&BYTE_ORDER.to_le_bytes()[..], &version, &UNKNOWN_LENGTH.to_le_bytes()];
        write_block(&mut out, block::SECTION_HEADER, &section)?;
        let link = [LINK_TYPE_RAW_IP.to_le_bytes(), [0, 0]].concat();
        write_block(&mut out, block::INTERFACE, &[&link, &SNAP_LENGTH.to_le_bytes(), &NANOSECONDS, &[0; 4]])?;
        Ok(PcapWriter { out, secrets: None, held: Vec::new() })
    }

    /// Puts the secrets of connections into the capture, as soon as they are known: who has it reads all that the connections carry.
    #[must_use]
    pub fn with_secrets(mut self, secrets: Box<dyn Secrets>) -> PcapWriter<W> {
        self.secrets = Some(secrets);
        self
    }

    /// Appends a datagram that was seen `since_epoch` after 1 January 1970 (or any other origin).
    ///
    /// # Errors
    /// What the output says.
    pub fn write(&mut self, since_epoch: Duration, record: &Record<'_>) -> io::Result<()> {
        self.settle()?;
        write_packet(&mut self.out, since_epoch, record)
    }

    /// As [`PcapWriter::write`], of a datagram that connections have not taken in yet: secrets that they learn by it go before it.
    ///
    /// # Errors
    /// What the output says.
    fn hold(&mut self, since_epoch: Duration, record: &Record<'_>) -> io::Result<()> {
        match self.secrets {
            Some(_) => write_packet(&mut self.held, since_epoch, record),
            None => write_packet(&mut self.out, since_epoch, record),
        }
    }

    /// Writes what has become known, and then what waits for it.
    fn settle(&mut self) -> io::Result<()> {
        let Some(secrets) = &mut self.secrets else { return Ok(()) };
        let lines = secrets.take();
        if !lines.is_empty() {
            let head = [TLS_KEY_LOG.to_le_bytes(), (lines.len() as u32).to_le_bytes()].concat();
            write_block(&mut self.out, block::SECRETS, &[&head, &lines])?;
        }
        self.out.write_all(&self.held)?;
        self.held.clear();
        Ok(())
    }

    /// Hands everything to the output.
    ///
    /// # Errors
    /// What the output says.
    pub fn flush(&mut self) -> io::Result<()> {
        self.settle()?;
        self.out.flush()
    }
}

impl<W: Write> Drop for PcapWriter<W> {
    fn drop(&mut self) {
        // No caller is left that an error could be returned to.
        let _ = self.flush();
    }
}

/// Writes a block: its type and length, its body in pieces, padded to four bytes, and the length again.
fn write_block(out: &mut impl Write, ty: u32, body: &[&[u8]]) -> io::Result<()> {
    let len: usize = body.iter().map(|piece| piece.len()).sum();
    let padding = len.next_multiple_of(4) - len;
    let total = ((12 + len + padding) as u32).to_le_bytes();
    out.write_all(&ty.to_le_bytes())?;
    out.write_all(&total)?;
    body.iter().try_for_each(|piece| out.write_all(piece))?;
    out.write_all(&[0; 3][..padding])?;
    out.write_all(&total)
}

fn write_packet(out: &mut impl Write, since_epoch: Duration, record: &Record<'_>) -> io::Result<()> {
    let mut headers = [0; 48];
    let size = write_headers(&mut headers, record);
    let length = ((size + record.payload.len()) as u32).to_le_bytes();
    let nanos = since_epoch.as_nanos();
    // Of the first and only interface, at this time, as long on the wire as here.
    let mut head = [0; 20];
    head[4..8].copy_from_slice(&((nanos >> 32) as u32).to_le_bytes());
    head[8..12].copy_from_slice(&(nanos as u32).to_le_bytes());
    head[12..16].copy_from_slice(&length);
    head[16..20].copy_from_slice(&length);
    write_block(out, block::PACKET, &[&head, &headers[..size], record.payload])
}

/// What the wall clock shows at the origin of the ports' clock, which is the system's monotonic one: for [`Capture::new`].
pub fn unix_time_of_origin() -> Duration {
    let nanos = |time: Timespec| {
        let seconds = time.tv_sec.unsigned_abs().saturating_mul(1_000_000_000);
        Duration::from_nanos(seconds.saturating_add(time.tv_nsec.unsigned_abs()))
    };
    nanos(clock_gettime(ClockId::Realtime)).saturating_sub(nanos(clock_gettime(ClockId::Monotonic)))
}

/// Writes IP and UDP header for `record` and returns their size, 28 or 48 bytes.
fn write_headers(out: &mut [u8; 48], record: &Record<'_>) -> usize {
    let udp_length = record.payload.len() as u16 + 8;
    let mut udp = [0; 8];
    udp[0..2].copy_from_slice(&record.source.port().to_be_bytes());
    udp[2..4].copy_from_slice(&record.destination.port().to_be_bytes());
    udp[4..6].copy_from_slice(&udp_length.to_be_bytes());
    let (source, destination) = (record.source.ip().to_canonical(), record.destination.ip().to_canonical());
    // RFC 768: the sum runs over a pseudo header of addresses, protocol and length, then the datagram.
    let mut sum =
        sum_of(&[0, UDP]) + sum_of(&udp_length.to_be_bytes()) + sum_of(&udp) + sum_of(record.payload);
    let size = if let (IpAddr::V4(_) | IpAddr::V6(Ipv6Addr::UNSPECIFIED), IpAddr::V4(_))
    | (IpAddr::V4(_), IpAddr::V6(Ipv6Addr::UNSPECIFIED)) = (source, destination)
    {
        let ip = ipv4_header(v4(source), v4(destination), record.ecn, udp_length + 20);
        sum += sum_of(&ip[12..20]);
        out[..20].copy_from_slice(&ip);
        20
    } else {
        let (source, destination) = (v6(source), v6(destination));
        out[..4].copy_from_slice(&(0x6000_0000 | (record.ecn as u32) << 20).to_be_bytes());
        out[4..6].copy_from_slice(&udp_length.to_be_bytes());
        out[6..8].copy_from_slice(&[UDP, HOP_LIMIT]);
        out[8..24].copy_from_slice(&source.octets());
        out[24..40].copy_from_slice(&destination.octets());
        sum += sum_of(&out[8..40]);
        40
    };
    // A computed checksum of zero is sent as all ones: zero means that there is none (RFC 768).
    let checksum = match fold(sum) {
        0 => 0xffff,
        other => other,
    };
    udp[6..8].copy_from_slice(&checksum.to_be_bytes());
    out[size..size + 8].copy_from_slice(&udp);
    size + 8
}

fn ipv4_header(source: Ipv4Addr, destination: Ipv4Addr, ecn: Ecn, length: u16) -> [u8; 20] {
    let mut ip = [0; 20];
    ip[0..2].copy_from_slice(&[0x45, ecn as u8]);
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    // Don't fragment, as tercel's sockets send.
    ip[6] = 0x40;
    ip[8..10].copy_from_slice(&[HOP_LIMIT, UDP]);
    ip[12..16].copy_from_slice(&source.octets());
    ip[16..20].copy_from_slice(&destination.octets());
    let checksum = fold(sum_of(&ip));
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    ip
}

/// The IPv4 address; one that is not known (unspecified, of either family) is `0.0.0.0`.
fn v4(address: IpAddr) -> Ipv4Addr {
    match address {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => Ipv4Addr::UNSPECIFIED,
    }
}

/// The IPv6 address; one that is not known is `::`.
fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V6(address) => address,
        IpAddr::V4(_) => Ipv6Addr::UNSPECIFIED,
    }
}

/// The sum of 16-bit words that the Internet checksum folds. Source: RFC 1071.
fn sum_of(bytes: &[u8]) -> u64 {
    let words = bytes.chunks_exact(2);
    let odd = words.remainder().first().map_or(0, |&last| u64::from(last) << 8);
    words.map(|word| u64::from(word[0]) << 8 | u64::from(word[1])).sum::<u64>() + odd
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A port whose traffic is recorded.
#[derive(Debug)]
pub struct Capture<P, W: Write> {
    inner: P,
    /// `None` once writing has failed.
    writer: Option<PcapWriter<W>>,
    error: Option<io::Error>,
    /// Unix time at the port's origin of time.
    origin: Duration,
    now: Instant,
    path: Option<TrainPath>,
    packets: usize,
}

impl<P: Port, W: Write> Capture<P, W> {
    /// Wraps `inner`. `origin` is the time since 1970 at the origin of the port's clock; zero is good enough when the
    /// date does not matter.
    pub fn new(mut inner: P, writer: PcapWriter<W>, origin: Duration) -> Capture<P, W> {
        let now = inner.now();
        Capture { inner, writer: Some(writer), error: None, origin, now, path: None, packets: 0 }
    }

    /// The port below.
    pub fn inner(&self) -> &P {
        &self.inner
    }

    /// The port below, to be changed.
    pub fn inner_mut(&mut self) -> &mut P {
        &mut self.inner
    }

    /// The error that ended the capture, once.
    pub fn take_error(&mut self) -> Option<io::Error> {
        self.error.take()
    }

    fn attempt(&mut self, write: impl FnOnce(&mut PcapWriter<W>, &mut P) -> io::Result<()>) {
        if let Some(writer) = &mut self.writer
            && let Err(error) = write(writer, &mut self.inner)
        {
            self.error = Some(error);
            self.writer = None;
        }
    }

    fn stamp(&self) -> Duration {
        self.origin + self.now.saturating_since(Instant::ZERO)
    }
}

impl<P: Port, W: Write> Rx for Capture<P, W> {
    fn poll(&mut self) -> io::Result<usize> {
        let trains = self.inner.poll()?;
        let stamp = self.stamp();
        self.attempt(|writer, port| {
            if trains == 0 {
                // A port that is a task's is not waited for: what was sent is in the file once nothing more arrives.
                return writer.flush();
            }
            writer.settle()?;
            for index in 0..trains {
                let train = port.train(index);
                let Addresses { local, peer } = train.addresses;
                for payload in train.bytes.chunks(train.segment_size.max(1)) {
                    let record = Record { source: peer, destination: local, ecn: train.ecn, payload };
                    writer.hold(stamp, &record)?;
                }
            }
            Ok(())
        });
        Ok(trains)
    }

    fn train(&mut self, index: usize) -> Train<'_> {
        self.inner.train(index)
    }
}

impl<P: Port, W: Write> PacketSink for Capture<P, W> {
    fn begin(&mut self, path: TrainPath, segment_size: usize) -> Option<usize> {
        let capacity = self.inner.begin(path, segment_size)?;
        (self.path, self.packets) = (Some(path), 0);
        Some(capacity)
    }

    fn room(&mut self) -> &mut [u8] {
        self.inner.room()
    }

    fn push(&mut self, len: usize) {
        self.packets += 1;
        self.inner.push(len);
    }

    fn packet(&mut self, index: usize) -> &mut [u8] {
        self.inner.packet(index)
    }

    fn end(&mut self) {
        let (stamp, packets) = (self.stamp(), self.packets);
        if let Some(TrainPath { addresses: Addresses { local, peer }, ecn, .. }) = self.path.take() {
            self.attempt(|writer, port| {
                for index in 0..packets {
                    let payload = &*port.packet(index);
                    writer.write(stamp, &Record { source: local, destination: peer, ecn, payload })?;
                }
                Ok(())
            });
        }
        self.inner.end();
    }
}

impl<P: Port, W: Write> Tx for Capture<P, W> {
    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<P: Port, W: Write> Port for Capture<P, W> {
    fn now(&mut self) -> Instant {
        self.now = self.inner.now();
        self.now
    }

    fn wait(&mut self, deadline: Option<Instant>) -> io::Result<()> {
        // Idle is the time to let a reader of the file catch up.
        self.attempt(|writer, _| writer.flush());
        self.inner.wait(deadline)
    }

    crate::ask_inner!();

    fn counters(&self) -> Counters {
        self.inner.counters()
    }
}

#[cfg(test)]
mod tests;
