//! The client: downloads, one connection or many.

use crate::socket::Socket;
use crate::{ALPN, ClientOptions, Error, config, key_log};
use bytes::Bytes;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tquic::{Connection, Endpoint, TlsConfig, TransportHandler};

/// How long a client waits for a session ticket.
const TICKET_PATIENCE: Duration = Duration::from_millis(500);

pub(crate) fn run(options: &ClientOptions) -> Result<(), Error> {
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
        session = download(options, paths, session.as_deref())?;
    }
    Ok(())
}

/// Downloads files by one connection; its session.
fn download(
    options: &ClientOptions,
    paths: &[String],
    session: Option<&[u8]>,
) -> Result<Option<Vec<u8>>, Error> {
    let mut tls = TlsConfig::new_client_config(vec![ALPN.to_vec()], options.case == "zerortt")?;
    tls.set_verify(true);
    tls.set_ca_certs(&options.cacert.to_string_lossy())?;
    let config = config(&options.case, tls)?;
    let socket = Socket::towards(options.connect)?;
    let resumes = matches!(options.case.as_str(), "resumption" | "zerortt");
    let files = Files(Rc::new(RefCell::new(State {
        output: options.output.clone(),
        waiting: paths.iter().rev().cloned().collect(),
        contents: HashMap::new(),
        left: paths.len(),
        done_at: None,
        wants_session: resumes && session.is_none(),
        session: None,
        ended: None,
    })));
    let state = files.0.clone();
    let mut endpoint = Endpoint::new(Box::new(config), false, Box::new(files), socket.clone());
    let name = Some(options.name.as_str());
    let index = endpoint.connect(socket.local, options.connect, name, session, None, None)?;
    let mut buffer = vec![0; 1 << 16];
    while state.borrow().ended.is_none() {
        if let Some(connection) = endpoint.conn_get_mut(index) {
            state.borrow_mut().go_on(connection);
        }
        // After that, so that early requests leave with the first flight.
        socket.turn(&mut endpoint, &mut buffer)?;
    }
    let mut state = state.borrow_mut();
    match state.ended.take() {
        Some(reason) if state.done_at.is_none() => Err(format!("closed: {reason}").into()),
        _ => Ok(state.session.take()),
    }
}

struct State {
    output: PathBuf,
    waiting: Vec<String>,
    /// By stream.
    contents: HashMap<u64, (String, Vec<u8>)>,
    left: usize,
    done_at: Option<Instant>,
    wants_session: bool,
    session: Option<Vec<u8>>,
    /// Why the connection ended.
    ended: Option<String>,
}

impl State {
    /// Requests as many files as the server permits streams, and closes when there is nothing left to do.
    fn go_on(&mut self, connection: &mut Connection) {
        if connection.is_closing() || connection.is_draining() {
            return;
        }
        if connection.is_established() || connection.is_in_early_data() {
            self.ask(connection);
        }
        let Some(done_at) = self.done_at else { return };
        self.session = connection.session().map(<[u8]>::to_vec);
        let waits = self.wants_session && self.session.is_none() && done_at.elapsed() < TICKET_PATIENCE;
        if !waits {
            let _ = connection.close(true, 0, b"done");
        }
    }

    fn ask(&mut self, connection: &mut Connection) {
        while let Some(path) = self.waiting.pop() {
            let Ok(stream) = connection.stream_bidi_new(0, false) else {
                self.waiting.push(path);
                return;
            };
            // It fits: the server's windows are larger than any request.
            let request = Bytes::from(format!("GET /{path}\r\n"));
            if connection.stream_write(stream, request, true).is_ok() {
                self.contents.insert(stream, (path, Vec::new()));
            }
        }
    }

    fn read(&mut self, connection: &mut Connection, stream: u64) {
        let mut buffer = [0; 1 << 14];
        while let Ok((length, is_last)) = connection.stream_read(stream, &mut buffer) {
            let Some((path, content)) = self.contents.get_mut(&stream) else { return };
            content.extend_from_slice(&buffer[..length]);
            if is_last {
                if let Err(error) = std::fs::write(self.output.join(path), content) {
                    eprintln!("tquic-peer: {error}");
                }
                self.left -= 1;
                self.done_at = (self.left == 0).then(Instant::now);
                return;
            }
        }
    }
}

struct Files(Rc<RefCell<State>>);

impl TransportHandler for Files {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        if let Some(log) = key_log() {
            connection.set_keylog(Box::new(log));
        }
    }

    fn on_conn_established(&mut self, _: &mut Connection) {}

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let (idle, shaken) = (connection.is_idle_timeout(), connection.is_handshake_timeout());
        let (peer, local) = (connection.peer_error(), connection.local_error());
        let reason = format!("idle {idle}, handshake timed out {shaken}, peer {peer:?}, local {local:?}");
        self.0.borrow_mut().ended = Some(reason);
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        self.0.borrow_mut().read(connection, stream);
    }

    fn on_stream_writable(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
