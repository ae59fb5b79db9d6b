//! An HTTP/3 server on the published quiche; with `get` as the first argument its client (get.rs).
//!
//! quiche brings no I/O, so this file is its shape as the documentation recommends: one thread that takes all datagrams that
//! are there, feeds them to their connections, and then lets each touched connection fill GSO trains of at most
//! `send_quantum()` bytes. Bodies are handed over by `send_body_zc`, so they are not copied into the streams. Pacing is off, since
//! without a queueing discipline that honours departure times quiche's hints would only be computed and thrown away.
//! Datagrams go through quinn-udp (GSO, GRO, recvmmsg). Congestion control is CUBIC: quiche's default. BoringSSL encrypts.

mod client;
mod get;
mod interop;

use bytes::Bytes;
use client::Client;
use quiche::{BufFactory, Config, ConnectionId};
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use site::{Content, Options};
use std::collections::HashMap;
use std::io::{ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Bytes of the connection IDs that we issue.
const ID_LENGTH: usize = 16;
/// More than any client here opens.
const STREAMS: u64 = 1_000;
/// Credit for what clients send, which is little.
const WINDOW: u64 = 1 << 20;
/// What one call to the kernel takes at most.
const TRAIN: usize = 65_000;

/// Streams keep what is lent to them, without a copy.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lent;

impl BufFactory for Lent {
    type Buf = Bytes;
    type DgramBuf = Vec<u8>;

    fn buf_from_slice(slice: &[u8]) -> Bytes {
        Bytes::copy_from_slice(slice)
    }

    fn dgram_buf_from_slice(slice: &[u8]) -> Vec<u8> {
        slice.to_vec()
    }
}

/// The command line of the server.
#[derive(clap::Parser)]
#[command(version, about = "An HTTP/3 server to compare with; `quiche-peer get --help` tells of the client")]
struct Serve {
    #[command(flatten)]
    options: Options,
    /// Write {"port", "with"} as JSON here once listening
    #[arg(long)]
    ready_file: Option<PathBuf>,
    /// Exit when this many connections have ended
    #[arg(long)]
    connections: Option<u64>,
}

struct Server {
    socket: Socket,
    content: Content,
    quic: Config,
    http: quiche::h3::Config,
    /// By every connection ID that a client may use.
    numbers: HashMap<ConnectionId<'static>, u64>,
    clients: HashMap<u64, Client>,
    next: u64,
    /// Connections that may still end.
    left: Option<u64>,
    /// Those to which something has happened.
    touched: Vec<u64>,
}

struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    payload_size: usize,
    train: Vec<u8>,
}

fn main() -> ExitCode {
    let first = std::env::args_os().nth(1).unwrap_or_default();
    let outcome = if first == "interop" {
        interop::run(&<interop::Options as clap::Parser>::parse_from(std::env::args_os().skip(1)))
    } else if first == "get" {
        get::run(&<get::Options as clap::Parser>::parse_from(std::env::args_os().skip(1)))
    } else {
        let serve = <Serve as clap::Parser>::parse();
        Server::new(&serve).and_then(|mut server| server.serve())
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quiche-peer: {error}");
            ExitCode::FAILURE
        }
    }
}

fn config(options: &Options) -> Result<Config, Error> {
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.load_cert_chain_from_pem_file(&options.cert.to_string_lossy())?;
    config.load_priv_key_from_pem_file(&options.key.to_string_lossy())?;
    config.set_application_protos(quiche::h3::APPLICATION_PROTOCOL)?;
    config.set_max_idle_timeout(30_000);
    config.set_max_recv_udp_payload_size(usize::from(options.payload_size).max(1_500));
    config.set_max_send_udp_payload_size(options.payload_size.into());
    config.set_initial_max_data(WINDOW);
    config.set_initial_max_stream_data_bidi_remote(WINDOW);
    config.set_initial_max_stream_data_uni(WINDOW);
    config.set_initial_max_streams_bidi(STREAMS);
    config.set_initial_max_streams_uni(STREAMS);
    config.set_disable_active_migration(true);
    config.enable_pacing(false);
    if options.early_data {
        config.enable_early_data();
    }
    Ok(config)
}

impl Server {
    fn new(serve: &Serve) -> Result<Server, Error> {
        let options = &serve.options;
        if options.retry {
            return Err("this program sends no Retry".into());
        }
        let (content, quic) = (Content::load(options)?, config(options)?);
        let socket = site::bind(options.listen)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let local = socket.local_addr()?;
        site::announce(local, &["quiche"]);
        if let Some(path) = &serve.ready_file {
            // By rename, so that no reader sees half of it.
            let unfinished = path.with_extension("unfinished");
            std::fs::write(
                &unfinished,
                format!("{{\"port\":{},\"with\":\"{}\"}}", local.port(), site::versions(&["quiche"])),
            )?;
            std::fs::rename(unfinished, path)?;
        }
        let payload_size = usize::from(options.payload_size);
        let train = vec![0; TRAIN.min(payload_size * state.max_gso_segments())];
        Ok(Server {
            socket: Socket { socket, state, local, payload_size, train },
            content,
            quic,
            http: quiche::h3::Config::new()?,
            numbers: HashMap::new(),
            clients: HashMap::new(),
            next: 0,
            left: serve.connections,
            touched: Vec::new(),
        })
    }

    fn serve(&mut self) -> Result<(), Error> {
        let mut memory = vec![vec![0; 1 << 16]; BATCH_SIZE];
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        while self.left != Some(0) {
            let timeout = self.clients.values().filter_map(|client| client.deadline).min();
            self.socket.wait(PollFlags::IN, timeout)?;
            let mut slices: Vec<IoSliceMut<'_>> =
                memory.iter_mut().map(|part| IoSliceMut::new(part)).collect();
            let received = self.socket.state.recv((&self.socket.socket).into(), &mut slices, &mut metas);
            let count = match received {
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                Err(error) => return Err(error.into()),
            };
            for (part, meta) in memory.iter_mut().zip(&metas).take(count) {
                for datagram in part[..meta.len].chunks_mut(meta.stride.max(1)) {
                    self.receive(datagram, meta.addr);
                }
            }
            let now = Instant::now();
            for (&number, client) in &mut self.clients {
                if client.deadline.is_some_and(|deadline| deadline <= now) {
                    client.quic.on_timeout();
                    self.touched.push(number);
                }
            }
            self.work()?;
        }
        Ok(())
    }

    /// Gives a datagram to its connection, or makes one. What cannot be understood is dropped.
    fn receive(&mut self, datagram: &mut [u8], from: SocketAddr) {
        let Ok(header) = quiche::Header::from_slice(datagram, ID_LENGTH) else { return };
        let number = match self.numbers.get(&header.dcid) {
            Some(&number) => number,
            None if header.ty == quiche::Type::Initial && quiche::version_is_supported(header.version) => {
                let number = self.next;
                let own = ConnectionId::from_vec(u128::from(number).to_be_bytes().to_vec());
                let (local, quic) = (self.socket.local, &mut self.quic);
                let Ok(quic) = quiche::accept_with_buf_factory(&own, None, local, from, quic) else { return };
                self.next += 1;
                self.numbers.insert(own, number);
                self.numbers.insert(header.dcid.into_owned(), number);
                self.clients.insert(number, Client::new(quic));
                number
            }
            None => return,
        };
        if let Some(client) = self.clients.get_mut(&number) {
            // A packet that is no good is dropped; one that ends the connection is told by `is_closed` later.
            let _ = client.quic.recv(datagram, quiche::RecvInfo { from, to: self.socket.local });
            if self.touched.last() != Some(&number) {
                self.touched.push(number);
            }
        }
    }

    /// Answers and sends wherever something has happened.
    fn work(&mut self) -> Result<(), Error> {
        self.touched.sort_unstable();
        self.touched.dedup();
        for number in self.touched.drain(..) {
            let Some(client) = self.clients.get_mut(&number) else { continue };
            client.answer(&self.http, &self.content);
            self.socket.send(client)?;
            client.deadline = client.quic.timeout_instant();
            if client.quic.is_closed() {
                self.clients.remove(&number);
                self.left = self.left.map(|left| left.saturating_sub(1));
                self.numbers.retain(|_, of| *of != number);
            }
        }
        Ok(())
    }
}

impl Socket {
    fn wait(&self, what: PollFlags, until: Option<Instant>) -> Result<(), Error> {
        let timeout = until.map(|until| until.saturating_duration_since(Instant::now()));
        // A call more is cheaper than a deadline missed by up to a millisecond each time.
        let timeout = timeout.map(|timeout| Timespec::try_from(timeout + Duration::from_micros(1)));
        poll(&mut [PollFd::new(&self.socket, what)], timeout.transpose()?.as_ref())?;
        Ok(())
    }

    /// Sends all that a connection may, in trains of packets of one size.
    fn send(&mut self, client: &mut Client) -> Result<(), Error> {
        loop {
            let limit = client.quic.send_quantum().clamp(self.payload_size, self.train.len());
            let (mut begin, mut end, mut size, mut to) = (0, 0, 0, None);
            let mut is_done = false;
            while end + self.payload_size <= limit {
                let room = &mut self.train[end..end + self.payload_size];
                let Ok((length, info)) = client.quic.send(room) else {
                    is_done = true;
                    break;
                };
                if let Some(to) = to.filter(|_| length > size) {
                    // Longer than those before it: it begins a train.
                    self.depart(begin, end, size, to)?;
                    begin = end;
                }
                if begin == end {
                    size = length;
                }
                to = Some(info.to);
                end += length;
                if length < size {
                    break;
                }
            }
            if let Some(to) = to {
                self.depart(begin, end, size, to)?;
            }
            if is_done {
                return Ok(());
            }
        }
    }

    fn depart(&self, begin: usize, end: usize, size: usize, to: SocketAddr) -> Result<(), Error> {
        let segment_size = Some(size).filter(|size| *size < end - begin);
        let contents = &self.train[begin..end];
        let transmit = Transmit { destination: to, ecn: None, contents, segment_size, src_ip: None };
        loop {
            match self.state.send((&self.socket).into(), &transmit) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(PollFlags::OUT, None)?,
                sent => return Ok(sent?),
            }
        }
    }
}
