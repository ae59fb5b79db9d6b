//! The server: files below a folder.

use crate::socket::Socket;
use crate::{ALPN, Error, ServerOptions, config, key_log};
use bytes::Bytes;
use std::collections::HashMap;
use std::path::PathBuf;
use tquic::{Connection, Endpoint, TlsConfig, TransportHandler};

pub(crate) fn run(options: &ServerOptions) -> Result<(), Error> {
    let path = |path: &PathBuf| path.to_string_lossy().into_owned();
    let early = options.case == "zerortt";
    let tls =
        TlsConfig::new_server_config(&path(&options.cert), &path(&options.key), vec![ALPN.to_vec()], early)?;
    let config = config(&options.case, tls)?;
    let socket = Socket::bind(options.listen)?;
    let files = Files { root: options.root.clone(), requests: HashMap::new(), answers: HashMap::new() };
    let mut endpoint = Endpoint::new(Box::new(config), true, Box::new(files), socket.clone());
    let unfinished = options.ready_file.with_extension("unfinished");
    std::fs::write(&unfinished, format!("{{\"port\":{}}}", options.listen.port()))?;
    std::fs::rename(unfinished, &options.ready_file)?;
    let mut buffer = vec![0; 1 << 16];
    loop {
        socket.turn(&mut endpoint, &mut buffer)?;
    }
}

/// Answers `GET /path` by the file.
struct Files {
    root: PathBuf,
    /// By connection and stream.
    requests: HashMap<(u64, u64), Vec<u8>>,
    answers: HashMap<(u64, u64), Bytes>,
}

impl Files {
    /// Writes as much as there is room for.
    fn advance(&mut self, connection: &mut Connection, stream: u64) {
        let key = (connection.index().unwrap_or_default(), stream);
        let Some(content) = self.answers.get_mut(&key) else { return };
        match connection.stream_write(stream, content.clone(), true) {
            Ok(written) if written < content.len() => drop(content.split_to(written)),
            Err(tquic::Error::Done) => {}
            _ => {
                self.answers.remove(&key);
                return;
            }
        }
        let _ = connection.stream_want_write(stream, true);
    }
}

impl TransportHandler for Files {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        if let Some(log) = key_log() {
            connection.set_keylog(Box::new(log));
        }
    }

    fn on_conn_established(&mut self, _: &mut Connection) {}

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        let closed = connection.index().unwrap_or_default();
        self.requests.retain(|(index, _), _| *index != closed);
        self.answers.retain(|(index, _), _| *index != closed);
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let key = (connection.index().unwrap_or_default(), stream);
        let mut buffer = [0; 4_096];
        while let Ok((length, is_last)) = connection.stream_read(stream, &mut buffer) {
            let request = self.requests.entry(key).or_default();
            request.extend_from_slice(&buffer[..length]);
            if is_last {
                let text = String::from_utf8_lossy(request).trim_end().to_owned();
                let content =
                    text.strip_prefix("GET /").and_then(|path| std::fs::read(self.root.join(path)).ok());
                self.requests.remove(&key);
                self.answers.insert(key, content.unwrap_or_default().into());
                return self.advance(connection, stream);
            }
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        self.advance(connection, stream);
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
