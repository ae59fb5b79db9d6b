//! The client: downloads, one connection or many.

use super::{ClientOptions, PAYLOAD, config, fresh_id, key_log, receive_now};
use crate::Error;
use quiche::{Config, Connection, PathEvent, RecvInfo};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Bytes of content after which the client moves.
const MOVE_AFTER: usize = 256 << 10;
/// How long a client waits for a session ticket.
const TICKET_PATIENCE: Duration = Duration::from_millis(500);

pub(super) fn run(options: &ClientOptions) -> Result<(), Error> {
    let mut config = config(&options.case)?;
    config.load_verify_locations_from_file(&options.cacert.to_string_lossy())?;
    config.verify_peer(true);
    let all = options.paths.as_slice();
    let mut session = None;
    let groups: Vec<&[String]> = match options.case.as_str() {
        "multiconnect" => all.chunks(1).collect(),
        "resumption" | "zerortt" => {
            let (first, others) = all.split_at(1);
            vec![first, others]
        }
        _ => vec![all],
    };
    for paths in groups {
        let mut download = Download::new(options, &mut config, paths, session.as_deref())?;
        download.run()?;
        session = download.quic.session().map(<[u8]>::to_vec);
    }
    Ok(())
}

struct Download<'a> {
    options: &'a ClientOptions,
    socket: UdpSocket,
    /// Where it moves, and how far it has come.
    second: Option<UdpSocket>,
    quic: Connection,
    waiting: Vec<&'a String>,
    contents: HashMap<u64, (&'a String, Vec<u8>)>,
    received: usize,
    done_at: Option<Instant>,
    wants_session: bool,
}

impl<'a> Download<'a> {
    fn new(
        options: &'a ClientOptions,
        config: &mut Config,
        paths: &'a [String],
        session: Option<&[u8]>,
    ) -> Result<Download<'a>, Error> {
        let any = if options.connect.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
        let socket = UdpSocket::bind(any)?;
        // So that the local address is known.
        socket.connect(options.connect)?;
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        let mut quic = quiche::connect(Some(&options.name), &fresh_id()?, local, options.connect, config)?;
        if let Some(log) = key_log() {
            quic.set_keylog(Box::new(log));
        }
        if let Some(session) = session {
            quic.set_session(session)?;
        }
        let resumes = matches!(options.case.as_str(), "resumption" | "zerortt");
        Ok(Download {
            options,
            socket,
            second: None,
            quic,
            waiting: paths.iter().rev().collect(),
            contents: HashMap::new(),
            received: 0,
            done_at: None,
            wants_session: resumes && session.is_none(),
        })
    }

    fn run(&mut self) -> Result<(), Error> {
        let mut buffer = vec![0; 1 << 16];
        self.send()?;
        while !self.quic.is_closed() {
            self.ask()?;
            self.send()?;
            let soon = Instant::now() + Duration::from_millis(10);
            let until = self.quic.timeout_instant().map_or(soon, |then| then.min(soon));
            self.receive(until, &mut buffer)?;
            if self.quic.timeout_instant().is_some_and(|then| then <= Instant::now()) {
                self.quic.on_timeout();
            }
            self.read()?;
            self.move_on()?;
            self.finish();
        }
        if self.done_at.is_none() {
            return Err(format!("closed: {:?} {:?}", self.quic.peer_error(), self.quic.local_error()).into());
        }
        Ok(())
    }

    /// Waits for datagrams until a time, and takes all that are there: what has waited in the first socket is older than what comes to the second.
    fn receive(&mut self, until: Instant, buffer: &mut [u8]) -> Result<(), Error> {
        let sockets = || [Some(&self.socket), self.second.as_ref()].into_iter().flatten();
        let mut readable: Vec<PollFd<'_>> =
            sockets().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        let wait = Timespec::try_from(until.saturating_duration_since(Instant::now()))?;
        poll(&mut readable, Some(&wait))?;
        for socket in sockets() {
            let to = socket.local_addr()?;
            while let Some((length, from)) = receive_now(socket, buffer)? {
                // What is no good is dropped.
                let _ = self.quic.recv(&mut buffer[..length], RecvInfo { from, to });
            }
        }
        Ok(())
    }

    /// Requests as many files as the server permits streams.
    fn ask(&mut self) -> Result<(), Error> {
        if !self.quic.is_established() && !self.quic.is_in_early_data() {
            return Ok(());
        }
        while let Some(path) = self.waiting.pop() {
            let id = 4 * self.contents.len() as u64;
            match self.quic.stream_send(id, format!("GET /{path}\r\n").as_bytes(), true) {
                Ok(_) => drop(self.contents.insert(id, (path, Vec::new()))),
                Err(quiche::Error::StreamLimit | quiche::Error::Done) => {
                    self.waiting.push(path);
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn read(&mut self) -> Result<(), Error> {
        let mut buffer = [0; 1 << 16];
        for id in self.quic.readable() {
            while let Ok((length, is_last)) = self.quic.stream_recv(id, &mut buffer) {
                let Some((path, content)) = self.contents.get_mut(&id) else { break };
                content.extend_from_slice(&buffer[..length]);
                self.received += length;
                if is_last {
                    std::fs::write(self.options.output.join(path), &content)?;
                    self.done_at = self.is_complete().then(Instant::now);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Whether all files have come.
    fn is_complete(&self) -> bool {
        self.waiting.is_empty() && self.contents.keys().all(|&id| self.quic.stream_finished(id))
    }

    /// Closes when there is nothing left to do.
    fn finish(&mut self) {
        let waits = self.wants_session
            && self.quic.session().is_none()
            && self.done_at.is_some_and(|then| then.elapsed() < TICKET_PATIENCE);
        if self.done_at.is_some() && !waits {
            let _ = self.quic.close(true, 0, b"done");
        }
    }

    /// Probes another address, and moves there once it is validated.
    fn move_on(&mut self) -> Result<(), Error> {
        let Some(to) = self.options.migrate_to.filter(|_| self.received >= MOVE_AFTER) else { return Ok(()) };
        if self.second.is_none() {
            let second = UdpSocket::bind((to, 0))?;
            second.set_nonblocking(true)?;
            while self.quic.scids_left() > 0 {
                let own = fresh_id()?;
                let token = u128::from_be_bytes(fresh_id()?.as_ref().try_into()?);
                self.quic.new_scid(&own, token, false)?;
            }
            self.quic.probe_path(second.local_addr()?, self.options.connect)?;
            self.second = Some(second);
        }
        while let Some(event) = self.quic.path_event_next() {
            if let PathEvent::Validated(local, peer) = event {
                self.quic.migrate(local, peer)?;
            }
        }
        Ok(())
    }

    fn send(&mut self) -> Result<(), Error> {
        let mut out = [0; PAYLOAD];
        let first = self.socket.local_addr()?;
        let mut froms: Vec<SocketAddr> = vec![first];
        froms.extend(self.second.as_ref().and_then(|second| second.local_addr().ok()));
        for from in froms {
            let to = self.options.connect;
            while let Ok((length, info)) = self.quic.send_on_path(&mut out, Some(from), Some(to)) {
                match &self.second {
                    Some(second) if info.from != first => second.send_to(&out[..length], info.to)?,
                    _ => self.socket.send(&out[..length])?,
                };
            }
        }
        Ok(())
    }
}
