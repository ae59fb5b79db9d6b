//! A client's end of a WebSocket, as a blocking stream: a connection of HTTP/1.1 after a 101, or a stream of HTTP/2 or 3 on which it was agreed
//! to by an extended CONNECT (RFC 8441, RFC 9220). HTTP/2 is h2's, HTTP/1.1 and 3 are written out by hand. What is read here and not there
//! waits in the client's windows, and a socket pair.

use crate::http3_upstream::section;
use crate::tcp;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;
use tercel::quic::{ClientConfig, Connection, Endpoint, ReadError, ReadExactError, RecvStream, SendStream};
use tercel::tls::Roots;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio_rustls::client::TlsStream;
use tungstenite::handshake::derive_accept_key;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Which version carries a WebSocket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    One,
    Two,
    Three,
}

/// Those in which it is a stream.
pub(crate) const BOTH: [Version; 2] = [Version::Two, Version::Three];
pub(crate) const ALL: [Version; 3] = [Version::One, Version::Two, Version::Three];

impl Version {
    /// As the field Via and the log have it.
    pub(crate) fn digit(self) -> &'static str {
        match self {
            Version::One => "1.1",
            Version::Two => "2",
            Version::Three => "3",
        }
    }

    /// The status that agrees to it.
    pub(crate) fn agreed(self) -> u16 {
        if self == Version::One { 101 } else { 200 }
    }

    /// The code of a stream that breaks off. RFC 8441 §5: CANCEL. RFC 9220 §3: H3_REQUEST_CANCELLED.
    pub(crate) fn cancelled(self) -> u64 {
        match self {
            Version::One => LOST,
            Version::Two => 8,
            Version::Three => 0x10c,
        }
    }
}

/// The code of what breaks off without one.
pub(crate) const LOST: u64 = u64::MAX;

/// What an end gives up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivenUp {
    Stream,
    Connection,
}

/// A client's end of a WebSocket. Dropped, its connection is gone.
#[derive(Debug)]
pub(crate) struct Tunnel {
    stream: UnixStream,
    pub(crate) status: u16,
    pub(crate) fields: Fields,
    reset: mpsc::UnboundedSender<GivenUp>,
    breaks: Receiver<u64>,
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        let _ = self.reset.send(GivenUp::Connection);
    }
}

impl Tunnel {
    /// Says that nothing more is sent.
    pub(crate) fn finish(&self) {
        self.stream.shutdown(Shutdown::Write).expect("the end");
    }

    /// Gives the stream up.
    pub(crate) fn reset(&self) {
        self.reset.send(GivenUp::Stream).expect("it is open");
    }

    /// The code with which the server has given the stream up.
    pub(crate) fn broken(&self) -> u64 {
        self.breaks.recv_timeout(PATIENCE).expect("the server breaks off")
    }

    pub(crate) fn write_timeout(&self, at_most: Duration) {
        self.stream.set_write_timeout(Some(at_most)).expect("a timeout");
    }

    /// What comes until the end.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        self.stream.read_to_end(&mut all).expect("the end");
        all
    }
}

impl Read for Tunnel {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.read(into)
    }
}

impl Write for Tunnel {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

/// The head of a response.
type Head = (u16, Fields);

pub(crate) type Fields = BTreeMap<String, String>;

/// Asks for a WebSocket at `path`, with these `fields`. `early` is sent before the answer has come.
pub(crate) fn open(
    version: Version,
    port: u16,
    path: &str,
    (fields, early): (&[(&'static str, &'static str)], Vec<u8>),
) -> Tunnel {
    let (near, far) = UnixStream::pair().expect("a pair");
    near.set_read_timeout(Some(PATIENCE)).expect("a timeout");
    near.set_write_timeout(Some(PATIENCE)).expect("a timeout");
    far.set_nonblocking(true).expect("set");
    let ((tell, told), (broken, breaks)) = (channel(), channel());
    let (reset, resets) = mpsc::unbounded_channel();
    let (path, fields) = (path.to_owned(), fields.to_vec());
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let far = tokio::net::UnixStream::from_std(far).expect("a socket");
            let ends = Ends { far, resets, broken };
            match version {
                Version::One => over_http1(port, (path, fields, early), tell, ends).await,
                Version::Two => over_http2(port, (path, fields, early), tell, ends).await,
                Version::Three => over_http3(port, (path, fields, early), tell, ends).await,
            }
        });
    });
    let (status, fields) = told.recv_timeout(PATIENCE).expect("an answer");
    Tunnel { stream: near, status, fields, reset, breaks }
}

/// The thread's ends of a tunnel.
pub(crate) struct Ends {
    pub(crate) far: tokio::net::UnixStream,
    pub(crate) resets: mpsc::UnboundedReceiver<GivenUp>,
    pub(crate) broken: Sender<u64>,
}

type Asked = (String, Vec<(&'static str, &'static str)>, Vec<u8>);

async fn over_http1(port: u16, (path, fields, early): Asked, tell: Sender<Head>, ends: Ends) {
    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
    let mut stream = tcp::connect(port, "http/1.1").await;
    let mut text = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost:{port}\r\nconnection: Upgrade\r\nupgrade: WebSocket\r\nsec-websocket-key: {KEY}\r\n"
    );
    fields.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
    text += "\r\n";
    stream.write_all(&[text.into_bytes(), early].concat()).await.expect("sent");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a head"));
    }
    let head = String::from_utf8(head).expect("text");
    let (line, rest) = head.split_once("\r\n").expect("lines");
    let status = line.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
    let fields = rest.lines().filter_map(|line| line.split_once(": "));
    let mut fields: Fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    if status == 101 {
        let said = ["sec-websocket-accept", "connection", "upgrade"].map(|name| fields.remove(name));
        let [accept, connection, upgrade] = said.map(|value| value.expect("each is said"));
        assert_eq!(accept, derive_accept_key(KEY.as_bytes()));
        assert!(
            connection.eq_ignore_ascii_case("upgrade") && upgrade.eq_ignore_ascii_case("websocket"),
            "{head}"
        );
    }
    tell.send((status, fields)).expect("the test waits");
    let (reader, writer) = tokio::io::split(stream);
    pump((To::Http1(writer), From::Http1(reader)), ends).await;
}

async fn over_http2(port: u16, (path, fields, early): Asked, tell: Sender<Head>, ends: Ends) {
    let stream = tcp::connect(port, "h2").await;
    let (client, connection) = h2::client::handshake(stream).await.expect("a preface");
    tokio::spawn(connection);
    let mut client = client.ready().await.expect("a connection");
    while !client.is_extended_connect_protocol_enabled() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut request = http::Request::connect(format!("https://localhost:{port}{path}"));
    for (name, value) in fields {
        request = request.header(name, value);
    }
    let mut request = request.body(()).expect("a request");
    request.extensions_mut().insert(h2::ext::Protocol::from_static("websocket"));
    let (response, mut sender) = client.send_request(request, false).expect("a stream");
    if !early.is_empty() {
        sender.send_data(early.into(), false).expect("sent");
    }
    let (head, receiver) = response.await.expect("a response").into_parts();
    let text = |value: &http::HeaderValue| value.to_str().expect("text").to_owned();
    let fields = head.headers.iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    tell.send((head.status.as_u16(), fields)).expect("the test waits");
    pump((To::Http2(sender), From::Http2(receiver)), ends).await;
    // What was said last is sent.
    tokio::time::sleep(Duration::from_millis(200)).await;
}

async fn over_http3(port: u16, (path, fields, early): Asked, tell: Sender<Head>, ends: Ends) {
    let config = ClientConfig::with_roots(Roots::Insecure).and_then(|config| config.alpn_protocols(&[b"h3"]));
    let endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).expect("an endpoint");
    let connecting =
        endpoint.connect_with(config.expect("a configuration"), ([127, 0, 0, 1], port).into(), "localhost");
    let connection = connecting.expect("an attempt").await.expect("a connection");
    let mut control = connection.open_uni().await.expect("a stream");
    control.write_all(&[0, 4, 0]).await.expect("sent");
    let _streams = announced(&connection).await;
    let (mut send, mut recv) = connection.open_bi().await.expect("a stream");
    let authority = format!("localhost:{port}");
    let mut lines = vec![
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", authority.as_str()),
        (":path", path.as_str()),
    ];
    lines.extend(fields);
    send.write_all(&frame(1, &section(&lines))).await.expect("sent");
    if !early.is_empty() {
        send.write_all(&frame(0, &early)).await.expect("sent");
    }
    let (kind, length) =
        (number(&mut recv).await.expect("a frame"), number(&mut recv).await.expect("a frame"));
    assert_eq!(kind, 1, "HEADERS");
    let mut head = vec![0; usize::try_from(length).expect("short")];
    recv.read_exact(&mut head).await.expect("a head");
    let mut fields = decoded(&head);
    let status = fields.remove(":status").expect("a status").parse().expect("digits");
    tell.send((status, fields)).expect("the test waits");
    // Dropped before the connection is closed, a stream would end as if all had been said.
    let _halves = pump((To::Http3(send), From::Http3(recv, 0)), ends).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    connection.close(0x100_u32.into(), b"");
    endpoint.wait_idle().await;
}

/// Reads that the server announces extended CONNECT. RFC 9220 §3. Returns its streams: without a reader they would end the connection.
async fn announced(connection: &Connection) -> Vec<RecvStream> {
    let mut streams = Vec::new();
    loop {
        let mut stream = connection.accept_uni().await.expect("a stream");
        if number(&mut stream).await != Ok(0) {
            streams.push(stream);
            continue;
        }
        assert_eq!(number(&mut stream).await, Ok(4), "SETTINGS");
        let length = number(&mut stream).await.expect("a length");
        let mut payload = vec![0; usize::try_from(length).expect("short")];
        stream.read_exact(&mut payload).await.expect("settings");
        streams.push(stream);
        let mut reader = wire::Reader::new(&payload);
        let mut settings = Vec::new();
        while let (Ok(name), Ok(value)) = (reader.varint(), reader.varint()) {
            settings.push((name, value));
        }
        assert!(settings.contains(&(8, 1)), "SETTINGS_ENABLE_CONNECT_PROTOCOL is 1: {settings:?}");
        return streams;
    }
}

/// The lines of a section.
pub(crate) fn decoded(head: &[u8]) -> Fields {
    let limits = qpack::Limits { max_field_section_size: 1 << 16, max_lines: 100 };
    let mut section = qpack::FieldSection::new();
    section.decode(head, &limits).expect("a section");
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("text");
    section.lines().map(|line| (text(line.name), text(line.value))).collect()
}

/// A frame of HTTP/3.
pub(crate) fn frame(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![kind];
    wire::varint::append(&mut frame, payload.len() as u64);
    frame.extend_from_slice(payload);
    frame
}

/// A varint. RFC 9000 §16. An error is the code of the stream's end, or none.
pub(crate) async fn number(stream: &mut RecvStream) -> Result<u64, Option<u64>> {
    let mut bytes = [0; 8];
    exactly(stream, &mut bytes[..1]).await?;
    let length = 1 << (bytes[0] >> 6);
    exactly(stream, &mut bytes[1..length]).await?;
    bytes[0] &= 0x3f;
    Ok(bytes[..length].iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)))
}

async fn exactly(stream: &mut RecvStream, into: &mut [u8]) -> Result<(), Option<u64>> {
    stream.read_exact(into).await.map_err(|error| match error {
        ReadExactError::FinishedEarly(_) => None,
        ReadExactError::ReadError(error) => Some(code(&error)),
        _ => Some(LOST),
    })
}

fn code(error: &ReadError) -> u64 {
    match error {
        ReadError::Reset(code) => code.into_inner(),
        _ => LOST,
    }
}

/// Where bytes go.
pub(crate) enum To {
    Http1(WriteHalf<TlsStream<tokio::net::TcpStream>>),
    Http2(h2::SendStream<Bytes>),
    Http3(SendStream),
}

impl To {
    async fn send(&mut self, bytes: &[u8]) -> Result<(), ()> {
        match self {
            To::Http1(stream) => {
                stream.write_all(bytes).await.map_err(drop)?;
                stream.flush().await.map_err(drop)
            }
            To::Http2(stream) => {
                let mut left = Bytes::copy_from_slice(bytes);
                while !left.is_empty() {
                    stream.reserve_capacity(left.len());
                    let room = poll_fn(|cx| stream.poll_capacity(cx)).await;
                    let room = room.and_then(Result::ok).ok_or(())?;
                    let piece = left.split_to(room.min(left.len()));
                    stream.send_data(piece, false).map_err(|_| ())?;
                }
                Ok(())
            }
            To::Http3(stream) => stream.write_all(&frame(0, bytes)).await.map_err(|_| ()),
        }
    }

    async fn finish(&mut self) {
        match self {
            To::Http1(stream) => _ = stream.shutdown().await,
            To::Http2(stream) => _ = stream.send_data(Bytes::new(), true),
            To::Http3(stream) => _ = stream.finish(),
        }
    }

    fn reset(&mut self) {
        match self {
            To::Http1(_) => {}
            To::Http2(stream) => stream.send_reset(h2::Reason::CANCEL),
            To::Http3(stream) => _ = stream.reset(0x10c_u32.into()),
        }
    }
}

/// Where bytes come from.
pub(crate) enum From {
    Http1(ReadHalf<TlsStream<tokio::net::TcpStream>>),
    Http2(h2::RecvStream),
    /// With how much of a frame is still to come.
    Http3(RecvStream, u64),
}

impl From {
    /// `None` at the end; an error is the code with which the stream was reset.
    async fn next(&mut self) -> Option<Result<Bytes, u64>> {
        match self {
            From::Http1(stream) => {
                let mut piece = vec![0; 16 << 10];
                let read = stream.read(&mut piece).await;
                piece.truncate(*read.as_ref().unwrap_or(&0));
                // Without a close_notify it has broken off.
                if matches!(read, Ok(0)) { None } else { Some(read.map(|_| piece.into()).map_err(|_| LOST)) }
            }
            From::Http2(stream) => Some(match stream.data().await? {
                Ok(bytes) => Ok(bytes),
                Err(error) => Err(error.reason().map_or(LOST, |reason| u32::from(reason).into())),
            }),
            From::Http3(stream, left) => {
                while *left == 0 {
                    match number(stream).await {
                        Ok(kind) => assert_eq!(kind, 0, "DATA"),
                        Err(end) => return end.map(Err),
                    }
                    *left = number(stream).await.expect("a length");
                }
                let mut piece = vec![0; usize::try_from(*left).unwrap_or(usize::MAX).min(16 << 10)];
                match stream.read(&mut piece).await {
                    Ok(Some(bytes)) => {
                        piece.truncate(bytes);
                        *left -= bytes as u64;
                        Some(Ok(piece.into()))
                    }
                    Ok(None) => panic!("the end within a frame"),
                    Err(error) => Some(Err(code(&error))),
                }
            }
        }
    }

    fn release(&mut self, bytes: usize) {
        if let From::Http2(stream) = self {
            stream.flow_control().release_capacity(bytes).expect("credit");
        }
    }
}

/// Moves bytes between the test and the other end, until both directions have ended or the test gives it up. Returns its halves of the stream.
pub(crate) async fn pump((mut to, mut from): (To, From), ends: Ends) -> (To, From) {
    let Ends { far, mut resets, broken } = ends;
    let (mut reader, mut writer) = far.into_split();
    let moved = async {
        let up = async {
            let mut piece = vec![0; 16 << 10];
            loop {
                match reader.read(&mut piece).await {
                    Ok(bytes @ 1..) if to.send(&piece[..bytes]).await.is_ok() => {}
                    Ok(0) => return to.finish().await,
                    Ok(_) | Err(_) => return,
                }
            }
        };
        let down = async {
            while let Some(next) = from.next().await {
                // The test may have no use for the code.
                let Ok(bytes) = next.map_err(|code| broken.send(code)) else { break };
                if writer.write_all(&bytes).await.is_err() {
                    break;
                }
                from.release(bytes.len());
            }
            let _ = writer.shutdown().await;
        };
        tokio::join!(up, down);
    };
    let given_up = async {
        match resets.recv().await {
            Some(what) => what,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        // What is given up comes to no end of its own.
        biased;
        what = given_up => if what == GivenUp::Stream { to.reset() },
        () = moved => {}
    }
    (to, from)
}
