//! The server: files below a folder.

use super::{PAYLOAD, ServerOptions, config, fresh_id, key_log, receive};
use crate::Error;
use quiche::{Config, Connection, ConnectionId, Header, PathEvent, RecvInfo, Type};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Instant;

/// What a client is told by Retry: its first destination connection ID, behind this.
const TOKEN: &[u8] = b"interop";

struct Client {
    quic: Connection,
    requests: HashMap<u64, Vec<u8>>,
    answers: HashMap<u64, (Vec<u8>, usize)>,
}

struct Server<'a> {
    options: &'a ServerOptions,
    socket: UdpSocket,
    local: SocketAddr,
    config: Config,
    clients: HashMap<u64, Client>,
    numbers: HashMap<ConnectionId<'static>, u64>,
    next: u64,
}

pub(super) fn run(options: &ServerOptions) -> Result<(), Error> {
    let mut config = config(&options.case)?;
    config.load_cert_chain_from_pem_file(&options.cert.to_string_lossy())?;
    config.load_priv_key_from_pem_file(&options.key.to_string_lossy())?;
    let socket = UdpSocket::bind(options.listen)?;
    let unfinished = options.ready_file.with_extension("unfinished");
    std::fs::write(&unfinished, format!("{{\"port\":{}}}", options.listen.port()))?;
    std::fs::rename(unfinished, &options.ready_file)?;
    let (clients, numbers) = (HashMap::new(), HashMap::new());
    let local = socket.local_addr()?;
    Server { options, socket, local, config, clients, numbers, next: 0 }.serve()
}

impl Server<'_> {
    fn serve(&mut self) -> Result<(), Error> {
        let mut buffer = vec![0; 1 << 16];
        loop {
            let until = self.clients.values().filter_map(|client| client.quic.timeout_instant()).min();
            match receive(&self.socket, &mut buffer, until)? {
                Some((length, from)) => self.take(&mut buffer[..length], from)?,
                None => {
                    let now = Instant::now();
                    for client in self.clients.values_mut() {
                        if client.quic.timeout_instant().is_some_and(|then| then <= now) {
                            client.quic.on_timeout();
                        }
                    }
                }
            }
            self.work()?;
        }
    }

    fn take(&mut self, datagram: &mut [u8], from: SocketAddr) -> Result<(), Error> {
        let Ok(header) = Header::from_slice(datagram, crate::ID_LENGTH) else { return Ok(()) };
        let number = match self.numbers.get(&header.dcid) {
            Some(&number) => number,
            None if header.ty == Type::Initial => match self.begin(&header, from)? {
                Some(number) => number,
                None => return Ok(()),
            },
            None => return Ok(()),
        };
        if let Some(client) = self.clients.get_mut(&number) {
            // What is no good is dropped.
            let _ = client.quic.recv(datagram, RecvInfo { from, to: self.local });
        }
        Ok(())
    }

    /// A connection for an unknown client; none if it is told something else first.
    fn begin(&mut self, header: &Header<'_>, from: SocketAddr) -> Result<Option<u64>, Error> {
        let mut out = [0; PAYLOAD];
        if !quiche::version_is_supported(header.version) {
            let length = quiche::negotiate_version(&header.scid, &header.dcid, &mut out)?;
            self.socket.send_to(&out[..length], from)?;
            return Ok(None);
        }
        let token = header.token.as_deref().unwrap_or_default();
        let (own, original) = match token.strip_prefix(TOKEN) {
            Some(original) => {
                (header.dcid.clone().into_owned(), Some(ConnectionId::from_vec(original.to_vec())))
            }
            None if self.options.case == "retry" => {
                let token = [TOKEN, &header.dcid[..]].concat();
                let own = fresh_id()?;
                let length =
                    quiche::retry(&header.scid, &header.dcid, &own, &token, header.version, &mut out)?;
                self.socket.send_to(&out[..length], from)?;
                return Ok(None);
            }
            None => (fresh_id()?, None),
        };
        let mut quic = quiche::accept(&own, original.as_ref(), self.local, from, &mut self.config)?;
        if let Some(log) = key_log() {
            quic.set_keylog(Box::new(log));
        }
        let number = self.next;
        self.next += 1;
        self.numbers.insert(own, number);
        self.numbers.insert(header.dcid.clone().into_owned(), number);
        self.clients.insert(number, Client { quic, requests: HashMap::new(), answers: HashMap::new() });
        Ok(Some(number))
    }

    fn work(&mut self) -> Result<(), Error> {
        let mut out = [0; PAYLOAD];
        for (&number, client) in &mut self.clients {
            client.answer(&self.options.root);
            while client.quic.is_established() && client.quic.scids_left() > 0 {
                let own = fresh_id()?;
                let token = u128::from_be_bytes(fresh_id()?.as_ref().try_into()?);
                if client.quic.new_scid(&own, token, false).is_err() {
                    break;
                }
                self.numbers.insert(own, number);
            }
            while let Some(event) = client.quic.path_event_next() {
                if let PathEvent::New(local, peer) = event {
                    // As in quiche's own server: the program decides to probe.
                    let _ = client.quic.probe_path(local, peer);
                }
            }
            while let Ok((length, info)) = client.quic.send(&mut out) {
                self.socket.send_to(&out[..length], info.to)?;
            }
        }
        let clients = &mut self.clients;
        clients.retain(|_, client| !client.quic.is_closed());
        self.numbers.retain(|_, number| clients.contains_key(number));
        Ok(())
    }
}

impl Client {
    fn answer(&mut self, root: &Path) {
        let mut buffer = [0; 4_096];
        for id in self.quic.readable() {
            while let Ok((length, is_last)) = self.quic.stream_recv(id, &mut buffer) {
                let request = self.requests.entry(id).or_default();
                request.extend_from_slice(&buffer[..length]);
                if is_last {
                    let text = String::from_utf8_lossy(request).trim_end().to_owned();
                    let content =
                        text.strip_prefix("GET /").and_then(|path| std::fs::read(root.join(path)).ok());
                    self.answers.insert(id, (content.unwrap_or_default(), 0));
                    break;
                }
            }
        }
        let quic = &mut self.quic;
        self.answers.retain(|&id, (content, sent)| {
            match quic.stream_send(id, &content[*sent..], true) {
                Ok(length) => *sent += length,
                Err(quiche::Error::Done) => {}
                Err(_) => return false,
            }
            *sent < content.len()
        });
    }
}
