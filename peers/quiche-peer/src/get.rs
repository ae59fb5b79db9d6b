//! `quiche-peer get`: one generated body over HTTP/3, received and discarded.
//!
//! The loop is that of quiche's own client: take datagrams until the socket has none, then read what the streams have, then
//! send. So it acknowledges when it has caught up with the sender, and not before. Flow-control windows are those of quiche's
//! own client; the socket's buffer is the system's unless a size is given.

use crate::Error;
use quiche::h3::{self, Event, NameValue};
use quiche::{Config, Connection, ConnectionId, RecvInfo};
use quinn_udp::{BATCH_SIZE, RecvMeta, UdpSockRef, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Windows of quiche's own client, in bytes: first and largest, of the connection and of a stream.
const WINDOWS: [u64; 4] = [10_000_000, 25_165_824, 1_000_000, 16_777_216];
/// What one call to the kernel takes at most.
const LONGEST: usize = 1 << 16;

/// The command line.
#[derive(clap::Parser)]
#[command(
    name = "quiche-peer get",
    version,
    about = "Downloads /bytes/N over HTTP/3, discards it, and prints a measurement as JSON"
)]
pub(crate) struct Options {
    /// How many bytes to ask for
    bytes: u64,
    /// The server
    #[arg(long)]
    connect: SocketAddr,
    /// Buffer of the UDP socket in each direction, in bytes, which the kernel doubles; without, the system's default
    #[arg(long)]
    socket_buffer: Option<usize>,
    /// The largest UDP payload to take, in bytes
    #[arg(long, default_value_t = 1_472)]
    payload_size: u16,
    /// One datagram a call and no merging by the kernel, as quiche's own client has it
    #[arg(long)]
    plain: bool,
}

struct Download {
    socket: UdpSocket,
    state: Option<UdpSocketState>,
    memory: Vec<Vec<u8>>,
    body: Vec<u8>,
    local: SocketAddr,
    quic: Connection,
    http: Option<h3::Connection>,
    request: Vec<h3::Header>,
    received: u64,
    receive_calls: u64,
    received_datagrams: u64,
    status: Option<Vec<u8>>,
    is_over: bool,
}

fn config(options: &Options) -> Result<Config, Error> {
    let [connection, most, stream, most_of_stream] = WINDOWS;
    let mut config = Config::new(quiche::PROTOCOL_VERSION)?;
    config.verify_peer(false);
    config.set_application_protos(h3::APPLICATION_PROTOCOL)?;
    config.set_max_idle_timeout(30_000);
    config.set_max_recv_udp_payload_size(usize::from(options.payload_size).max(1_500));
    config.set_max_send_udp_payload_size(1_350);
    config.set_initial_max_data(connection);
    config.set_max_connection_window(most);
    config.set_initial_max_stream_data_bidi_local(stream);
    config.set_initial_max_stream_data_uni(stream);
    config.set_max_stream_window(most_of_stream);
    config.set_initial_max_streams_uni(100);
    config.set_disable_active_migration(true);
    Ok(config)
}

/// Downloads, and prints how it went.
pub(crate) fn run(options: &Options) -> Result<(), Error> {
    let any: SocketAddr = if options.connect.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse()?;
    let socket = match options.socket_buffer {
        Some(bytes) => site::bind_with(any, bytes)?,
        None => UdpSocket::bind(any)?,
    };
    socket.connect(options.connect)?;
    socket.set_nonblocking(true)?;
    let state = (!options.plain).then(|| UdpSocketState::new(UdpSockRef::from(&socket))).transpose()?;
    let local = socket.local_addr()?;
    let id = ConnectionId::from_vec(std::process::id().to_be_bytes().repeat(4));
    let mut config = config(options)?;
    let began = Instant::now();
    let field = |name: &[u8], value: &str| h3::Header::new(name, value.as_bytes());
    let mut download = Download {
        quic: quiche::connect(Some("localhost"), &id, local, options.connect, &mut config)?,
        request: vec![
            field(b":method", "GET"),
            field(b":scheme", "https"),
            field(b":authority", "localhost"),
            field(b":path", &format!("/bytes/{}", options.bytes)),
        ],
        memory: vec![vec![0; LONGEST]; if state.is_some() { BATCH_SIZE } else { 1 }],
        body: vec![0; LONGEST],
        socket,
        state,
        local,
        http: None,
        received: 0,
        receive_calls: 0,
        received_datagrams: 0,
        status: None,
        is_over: false,
    };
    download.send()?;
    while !download.is_over {
        download.turn(options.connect)?;
    }
    let wall_s = began.elapsed().as_secs_f64();
    let _ = download.quic.close(true, 0x100, b"done");
    download.send()?;
    println!(
        "{{\"implementation\":\"quiche\",\"bytes\":{},\"wall_s\":{wall_s:.6},\"gbit_per_s\":{:.4},\
         \"receive_calls\":{},\"received_datagrams\":{},\"lost_packets\":{}}}",
        download.received,
        download.received as f64 * 8e-9 / wall_s,
        download.receive_calls,
        download.received_datagrams,
        download.quic.stats().lost,
    );
    if download.received == options.bytes && download.status.as_deref() == Some(b"200") {
        Ok(())
    } else {
        Err(format!("{} of {} bytes arrived", download.received, options.bytes).into())
    }
}

impl Download {
    /// Waits, takes all that has come, reads, sends.
    fn turn(&mut self, from: SocketAddr) -> Result<(), Error> {
        self.wait()?;
        if self.quic.timeout().is_some_and(|timeout| timeout.is_zero()) {
            self.quic.on_timeout();
        }
        self.receive(from)?;
        self.read()?;
        self.send()?;
        if self.quic.is_closed() {
            return Err("the connection ended".into());
        }
        Ok(())
    }

    fn wait(&self) -> Result<(), Error> {
        let timeout =
            self.quic.timeout().map(|timeout| Timespec::try_from(timeout + Duration::from_micros(1)));
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], timeout.transpose()?.as_ref())?;
        Ok(())
    }

    fn receive(&mut self, from: SocketAddr) -> Result<(), Error> {
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        loop {
            let taken = match &self.state {
                Some(state) => {
                    let mut slices: Vec<IoSliceMut<'_>> =
                        self.memory.iter_mut().map(|part| IoSliceMut::new(part)).collect();
                    state.recv((&self.socket).into(), &mut slices, &mut metas)
                }
                None => self.socket.recv(&mut self.memory[0]).map(|len| {
                    metas[0].len = len;
                    metas[0].stride = len;
                    1
                }),
            };
            let taken = match taken {
                Ok(taken) => taken,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            self.receive_calls += 1;
            for (part, meta) in self.memory.iter_mut().zip(&metas).take(taken) {
                for datagram in part[..meta.len].chunks_mut(meta.stride.max(1)) {
                    self.received_datagrams += 1;
                    // A packet that is no good is dropped.
                    let _ = self.quic.recv(datagram, RecvInfo { from, to: self.local });
                }
            }
        }
    }

    fn read(&mut self) -> Result<(), Error> {
        if self.http.is_none() && self.quic.is_established() {
            let mut http = h3::Connection::with_transport(&mut self.quic, &h3::Config::new()?)?;
            http.send_request(&mut self.quic, &self.request, true)?;
            self.http = Some(http);
        }
        let Some(http) = &mut self.http else { return Ok(()) };
        loop {
            match http.poll(&mut self.quic) {
                Ok((_, Event::Headers { list, .. })) => {
                    let status = list.iter().find(|field| field.name() == b":status");
                    self.status = status.map(|field| field.value().to_vec());
                }
                Ok((id, Event::Data)) => {
                    while let Ok(length) = http.recv_body(&mut self.quic, id, &mut self.body) {
                        self.received += length as u64;
                    }
                }
                Ok((_, Event::Finished | Event::Reset(_))) => self.is_over = true,
                Ok(_) => {}
                Err(h3::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn send(&mut self) -> Result<(), Error> {
        let mut datagram = [0; 1_500];
        while let Ok((length, _)) = self.quic.send(&mut datagram) {
            match self.socket.send(&datagram[..length]) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                sent => sent.map(|_| ())?,
            }
        }
        Ok(())
    }
}
