//! The child process that asks: one connection, requests of fixed bytes, the next when all responses are there.

use crate::certificate::NAME;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::error::Error;
use std::io::{BufRead as _, Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

/// What is asked for.
pub(crate) const PATH: &str = "/notes.html";
/// Its content, in bytes.
pub(crate) const SIZE: u64 = 630;
/// As long as that of a usual client.
pub(crate) const USER_AGENT: &str = "instructions/0.1";

/// Requests that are sent at once over HTTP/2.
const BATCH: u64 = 10;

type Stream = StreamOwned<ClientConnection, TcpStream>;

/// Connects, and asks as often as each line of standard input says.
pub(crate) fn run(port: &str, protocol: &str) -> Result<(), Box<dyn Error>> {
    let mut orders = std::io::stdin().lines();
    let certificate = orders.next().ok_or("no certificate")??;
    let mut client = Client::connect(port.parse()?, protocol, &decoded(&certificate)?)?;
    println!("done");
    for order in orders {
        for _ in 0..order?.parse::<u64>()? {
            client.ask()?;
        }
        println!("done");
    }
    Ok(())
}

fn decoded(text: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let digits = |at: usize| text.get(at..at + 2).ok_or("half a byte");
    (0..text.len()).step_by(2).map(|at| Ok(u8::from_str_radix(digits(at)?, 16)?)).collect()
}

fn connect(port: u16, protocol: &str, certificate: &[u8]) -> Result<Stream, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.to_vec()))?;
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
    let session = ClientConnection::new(Arc::new(config), ServerName::try_from(NAME)?)?;
    let socket = TcpStream::connect(("127.0.0.1", port))?;
    socket.set_nodelay(true)?;
    Ok(StreamOwned::new(session, socket))
}

enum Client {
    Http1(Stream),
    Http2(Http2),
}

impl Client {
    fn connect(port: u16, protocol: &str, certificate: &[u8]) -> Result<Client, Box<dyn Error>> {
        let stream = connect(port, protocol, certificate)?;
        Ok(match protocol {
            "h2" => Client::Http2(Http2::new(stream)?),
            _ => Client::Http1(stream),
        })
    }

    fn ask(&mut self) -> Result<(), Box<dyn Error>> {
        match self {
            Client::Http1(stream) => ask_http1(stream),
            Client::Http2(http2) => http2.ask(),
        }
    }
}

fn ask_http1(stream: &mut Stream) -> Result<(), Box<dyn Error>> {
    let request = format!("GET {PATH} HTTP/1.1\r\nhost: {NAME}\r\nuser-agent: {USER_AGENT}\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    stream.flush()?;
    let mut is_first = true;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if std::mem::take(&mut is_first) && !line.starts_with("HTTP/1.1 200") {
            return Err(format!("the answer is {line:?}").into());
        }
        if line.trim_end().is_empty() {
            break;
        }
    }
    let mut content = [0; SIZE as usize];
    Ok(stream.read_exact(&mut content)?)
}

/// A connection of HTTP/2, as RFC 9113 and RFC 7541 write it down.
struct Http2 {
    stream: Stream,
    next_stream: u32,
    /// A header block for the next request.
    block: Vec<u8>,
}

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;
/// The largest window of the connection less the one that it begins with.
const WINDOW: u32 = i32::MAX as u32 - 65_535;

impl Http2 {
    fn new(mut stream: Stream) -> Result<Http2, Box<dyn Error>> {
        let mut begin = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        frame(&mut begin, SETTINGS, 0, 0, &[]);
        frame(&mut begin, WINDOW_UPDATE, 0, 0, &WINDOW.to_be_bytes());
        stream.write_all(&begin)?;
        stream.flush()?;
        // :method GET, :scheme https, then fields that both ends keep: RFC 7541 §6.2.1, appendix A.
        let mut block = vec![0x82, 0x87];
        for (name, value) in [(0x41, NAME), (0x44, PATH), (0x7a, USER_AGENT)] {
            block.extend([name, value.len() as u8]);
            block.extend_from_slice(value.as_bytes());
        }
        Ok(Http2 { stream, next_stream: 1, block })
    }

    /// Sends a batch of requests in one record, and returns when all responses are there.
    fn ask(&mut self) -> Result<(), Box<dyn Error>> {
        let mut requests = Vec::new();
        for _ in 0..BATCH {
            frame(&mut requests, HEADERS, END_STREAM | END_HEADERS, self.next_stream, &self.block);
            self.next_stream += 2;
            // They are kept now: RFC 7541 §6.1.
            self.block = vec![0x82, 0x87, 0xc0, 0xbf, 0xbe];
        }
        self.stream.write_all(&requests)?;
        self.stream.flush()?;
        let (mut ended, mut bytes) = (0, 0);
        while ended < BATCH {
            let mut header = [0; 9];
            self.stream.read_exact(&mut header)?;
            let [high, middle, low, kind, flags, ..] = header;
            let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
            self.stream.read_exact(&mut payload)?;
            match kind {
                DATA => {
                    bytes += payload.len() as u64;
                    ended += u64::from(flags & END_STREAM);
                }
                SETTINGS if flags & ACK == 0 => {
                    let mut answer = Vec::new();
                    frame(&mut answer, SETTINGS, ACK, 0, &[]);
                    self.stream.write_all(&answer)?;
                    self.stream.flush()?;
                }
                SETTINGS | HEADERS | WINDOW_UPDATE => {}
                GOAWAY => return Err("the server ends the connection".into()),
                kind => return Err(format!("a frame of type {kind}").into()),
            }
        }
        if bytes == SIZE * BATCH { Ok(()) } else { Err(format!("{bytes} bytes of content").into()) }
    }
}

fn frame(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let [_, high, middle, low] = (payload.len() as u32).to_be_bytes();
    out.extend([high, middle, low, kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend_from_slice(payload);
}
