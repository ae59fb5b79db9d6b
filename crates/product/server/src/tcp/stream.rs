//! TLS over one TCP connection, as hyper reads and writes it.
//!
//! What hyper writes is encrypted into records that rustls keeps; they leave together, at the end of the connection's turn
//! ([`Stream::poll_send`]) or when [`HELD`] bytes are there ([`HELD_IN_CROWD`] where many connections wait), by one vectored write. Short writes of HTTP/2 are gathered, so that the
//! small responses of a turn share a record. hyper flushes after each HTTP/2 frame and would make a system call of each: here its flush
//! costs nothing. In return the code that polls hyper must call `poll_send` afterwards. Rejected: tokio-rustls, which writes as soon as
//! it has encrypted anything.

use super::frames::Frames;
use super::handshakes::Handshakes;
use super::timeouts::ConnectionTimeouts;
use crate::informational::{self, Interim};
use bytes::Bytes;
use hello::{FirstBytes, Hello};
use hyper::rt::{Read, ReadBufCursor, Write};
use rustls::pki_types::CertificateDer;
use rustls::{HandshakeKind, ServerConfig, ServerConnection};
use std::cell::RefCell;
use std::io::{self, BufRead as _, IoSlice};
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::TcpStream;

mod hello;
#[cfg(test)]
mod tests;

/// So many encrypted bytes may wait for the socket.
const HELD: usize = 256 * 1024;
/// So many where many connections wait: a thousand with [`HELD`] hold a quarter of a gigabyte, which no cache does.
const HELD_IN_CROWD: usize = 64 * 1024;

/// The content of a TLS record at most, in bytes. RFC 8446 §5.1.
const RECORD: usize = 16 << 10;
/// Writes up to this many bytes are gathered.
const SHORT: usize = 4 * 1024;

/// The longest text that is written beside hyper. An empty buffer takes all of it.
const BETWEEN: usize = 64 * 1024;
const _: () = assert!(BETWEEN <= HELD_IN_CROWD && HELD_IN_CROWD <= HELD);
/// So many bytes are thrown away at the end, in all.
const DISCARD: usize = 4 << 20;
/// So many bytes may pass in a turn, so that others get theirs.
const TURN: usize = 1 << 20;

/// A TLS connection and its socket.
pub(super) struct Tls {
    socket: TcpStream,
    session: ServerConnection,
    timeouts: Rc<ConnectionTimeouts>,
    /// Known after the handshake.
    is_http2: bool,
    /// What hyper writes, if it is HTTP/2.
    frames: Frames,
    /// Short writes that TLS was not given yet, up to a record's. Without memory between turns.
    gathered: Vec<u8>,
    /// Bytes that may still pass between hyper and us in this turn.
    left: usize,
    /// hyper has nothing to write that it has not written.
    is_flushed: bool,
    discarded: usize,
    opening: FirstBytes,
    /// What goes on with the connection after hyper.
    next: Option<Box<dyn NextProtocol>>,
    /// Until the ClientHello is answered, where it is looked at.
    hello: Option<Box<Hello>>,
}

/// What came of a handshake.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Handshake {
    /// The connection is secure.
    Done,
    /// The peer speaks plain HTTP, and began with these bytes.
    Plain(Vec<u8>),
}

/// What goes on with a connection after hyper.
pub(super) trait NextProtocol {
    /// The client has sent these bytes already.
    fn on_early(&mut self, bytes: Bytes);

    /// Moves bytes between the handler and `stream`. Ready when no more will.
    fn poll(&mut self, stream: &mut Stream, cx: &mut Context<'_>) -> Poll<()>;

    /// Ends it: the client hears the end of the stream.
    fn finish(&mut self);
}

/// hyper's end of a [`Tls`], which its driver shares.
#[derive(Clone)]
pub(super) struct Stream(Rc<RefCell<Tls>>);

impl Stream {
    /// A connection whose handshake is still to come.
    pub(super) fn new(
        socket: TcpStream,
        handshakes: &Handshakes,
        of_authority: Option<Arc<ServerConfig>>,
        timeouts: Rc<ConnectionTimeouts>,
    ) -> io::Result<Stream> {
        let mut session = ServerConnection::new(Arc::clone(handshakes.config())).map_err(io::Error::other)?;
        session.set_buffer_limit(Some(HELD));
        let tls = Tls {
            socket,
            session,
            timeouts,
            is_http2: false,
            frames: Frames::default(),
            gathered: Vec::new(),
            left: TURN,
            is_flushed: true,
            discarded: 0,
            opening: FirstBytes::Awaited,
            next: None,
            hello: Hello::new(handshakes, of_authority),
        };
        Ok(Stream(Rc::new(RefCell::new(tls))))
    }

    /// Does the handshake.
    pub(super) fn poll_handshake(&self, cx: &mut Context<'_>) -> Poll<io::Result<Handshake>> {
        let tls = &mut *self.0.borrow_mut();
        if tls.opening == FirstBytes::Awaited
            && let Some(plain) = ready!(tls.poll_opening(cx))?
        {
            return Poll::Ready(Ok(Handshake::Plain(plain)));
        }
        ready!(tls.poll_hello(cx))?;
        loop {
            let sent = tls.poll_send(cx)?;
            if !tls.session.is_handshaking() {
                tls.is_http2 = tls.session.alpn_protocol() == Some(b"h2");
                return sent.map(|()| Ok(Handshake::Done));
            }
            if ready!(tls.poll_receive(cx))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
        }
    }

    /// Sends what waits. Must be called after hyper was polled; the task is woken when the socket takes more.
    pub(super) fn poll_send(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_send(cx)
    }

    /// Begins a turn: the connection gets its share anew.
    pub(super) fn begin_turn(&self) {
        let tls = &mut *self.0.borrow_mut();
        tls.left = TURN;
        let held = if tls.timeouts.is_crowded() { HELD_IN_CROWD } else { HELD };
        tls.session.set_buffer_limit(Some(held));
    }

    /// Writes informational responses beside hyper, if all that was answered has left: between two messages of HTTP/1.1. Otherwise they are
    /// not asked for.
    pub(super) fn write_between(&self, mut next: impl FnMut() -> Option<Interim>) {
        let is_between = {
            let tls = self.0.borrow();
            tls.is_flushed && tls.gathered.is_empty() && !tls.session.wants_write()
        };
        let mut text = Vec::new();
        while is_between && let Some(interim) = next() {
            let interim = informational::to_http1(&interim);
            if text.len() + interim.len() <= BETWEEN {
                text.extend_from_slice(&interim);
            }
        }
        if !text.is_empty() {
            // The buffer is empty, so all of it fits.
            let _ = io::Write::write(&mut self.0.borrow_mut().session.writer(), &text);
        }
    }

    /// When hyper has sent its response 101, `next` goes on.
    pub(super) fn go_on_by(&self, next: Box<dyn NextProtocol>) {
        self.0.borrow_mut().next = Some(next);
    }

    /// What goes on, if anything does.
    pub(super) fn take_next(&self) -> Option<Box<dyn NextProtocol>> {
        self.0.borrow_mut().next.take()
    }

    /// Adds what the socket has to `bytes`. An error at its end.
    pub(super) fn poll_read_plain(&self, cx: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        let more = ready!(self.0.borrow_mut().poll_raw(cx))?;
        bytes.extend_from_slice(&more);
        Poll::Ready(Ok(()))
    }

    /// Sends `bytes` as they are, and then the end of the stream.
    pub(super) fn poll_write_plain(&self, cx: &mut Context<'_>, bytes: &mut Vec<u8>) -> Poll<io::Result<()>> {
        let tls = &mut *self.0.borrow_mut();
        while !bytes.is_empty() {
            let mut socket = Counted { socket: &tls.socket, timeouts: &tls.timeouts };
            match io::Write::write(&mut socket, bytes) {
                Ok(taken) => drop(bytes.drain(..taken.min(bytes.len()))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(tls.socket.poll_write_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(socket2::SockRef::from(&tls.socket).shutdown(std::net::Shutdown::Write))
    }

    /// Bytes that were sent and that the peer has not acknowledged; none where the system does not say.
    pub(super) fn unacknowledged(&self) -> usize {
        udp::unacknowledged(self.0.borrow().socket.as_fd()).unwrap_or(0)
    }

    /// Throws away what the peer still sends. Ready at its end.
    pub(super) fn poll_discard(&self, cx: &mut Context<'_>) -> Poll<()> {
        let tls = &mut *self.0.borrow_mut();
        let mut waste = [0; 16_384];
        loop {
            match tls.socket.try_read(&mut waste) {
                Ok(bytes @ 1..) if tls.discarded < DISCARD => {
                    tls.discarded += bytes;
                    tls.timeouts.on_discarded(bytes);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if ready!(tls.socket.poll_read_ready(cx)).is_err() {
                        return Poll::Ready(());
                    }
                }
                Ok(_) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// The name that the client asked for. RFC 6066 §3.
    pub(super) fn server_name(&self) -> Option<Arc<str>> {
        self.0.borrow().session.server_name().map(Arc::from)
    }

    /// How the connection became secure.
    pub(super) fn handshake_kind(&self) -> HandshakeKind {
        self.0.borrow().session.handshake_kind().unwrap_or(HandshakeKind::Full)
    }

    /// The certificates that the client has shown. RFC 8446 §4.4.2.
    pub(super) fn client_certificates(&self) -> Option<Arc<[CertificateDer<'static>]>> {
        self.0.borrow().session.peer_certificates().map(Arc::from)
    }

    /// Says the end of the connection, and sends it.
    pub(super) fn poll_end(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_end(cx)
    }

    /// Whether the ends agreed to speak `protocol`.
    pub(super) fn speaks(&self, protocol: &[u8]) -> bool {
        self.0.borrow().session.alpn_protocol() == Some(protocol)
    }
}

impl Tls {
    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if !self.gathered.is_empty() {
                self.encrypt(&[])?;
            }
            if self.gathered.is_empty() {
                self.gathered = Vec::new();
            }
            if !self.session.wants_write() {
                return Poll::Ready(Ok(()));
            }
            let mut socket = Counted { socket: &self.socket, timeouts: &self.timeouts };
            match self.session.write_tls(&mut socket) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.socket.poll_write_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Gives TLS what is gathered and then `buffers`, as far as it has room. Returns how many bytes of `buffers` it took.
    fn encrypt(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        let mut writer = self.session.writer();
        if self.gathered.is_empty() {
            return io::Write::write_vectored(&mut writer, buffers);
        }
        let mut gathered = std::mem::take(&mut self.gathered);
        let mut all = [IoSlice::new(&gathered); 8];
        let (_, rest) = all.split_at_mut(1);
        let count = rest.len().min(buffers.len());
        rest.iter_mut().zip(buffers).for_each(|(place, buffer)| *place = *buffer);
        let taken = io::Write::write_vectored(&mut writer, all.get(..=count).unwrap_or_default())?;
        let rest = taken.checked_sub(gathered.len());
        // The memory stays until the end of the turn: before each large frame its header is gathered.
        gathered.drain(..taken.min(gathered.len()));
        self.gathered = gathered;
        Ok(rest.unwrap_or(0))
    }

    /// Keeps what is written, if there is room.
    fn gather(&mut self, buffers: &[IoSlice<'_>]) -> Option<usize> {
        let len = total(buffers);
        if self.gathered.len() + len > RECORD {
            return None;
        }
        if self.gathered.capacity() == 0 {
            self.gathered.reserve_exact(RECORD);
        }
        buffers.iter().for_each(|buffer| self.gathered.extend_from_slice(buffer));
        Some(len)
    }

    /// Lets TLS act on what it was given.
    fn poll_process(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let outcome = self.session.process_new_packets().map(drop);
        Poll::Ready(self.judge(outcome, cx))
    }

    /// What TLS says of what it was given.
    fn judge(&mut self, outcome: Result<(), rustls::Error>, cx: &mut Context<'_>) -> io::Result<()> {
        outcome.map_err(|error| {
            // The peer hears what was wrong with it, if the socket takes it.
            let _ = self.poll_send(cx);
            io::Error::new(io::ErrorKind::InvalidData, error)
        })
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        // Again and again while it does not get through: rustls says it once.
        self.session.send_close_notify();
        ready!(self.poll_send(cx))?;
        Poll::Ready(socket2::SockRef::from(&self.socket).shutdown(std::net::Shutdown::Write))
    }

    /// Takes in what the socket has. Returns its bytes; 0 at its end.
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        loop {
            let mut socket = Counted { socket: &self.socket, timeouts: &self.timeouts };
            match self.session.read_tls(&mut socket) {
                Ok(bytes) => return self.poll_process(cx).map_ok(|()| bytes),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.socket.poll_read_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, mut buffer: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        if self.left == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        loop {
            let mut reader = self.session.reader();
            match reader.fill_buf() {
                Ok(bytes) => {
                    let len = bytes.len().min(buffer.remaining());
                    buffer.put_slice(bytes.get(..len).unwrap_or_default());
                    reader.consume(len);
                    self.left = self.left.saturating_sub(len);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            ready!(self.poll_receive(cx))?;
        }
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, buffers: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        if buffers.iter().all(|buffer| buffer.is_empty()) {
            return Poll::Ready(Ok(0));
        }
        if self.left == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let is_short = self.is_http2 && total(buffers) <= SHORT;
        let taken = loop {
            if is_short && let Some(taken) = self.gather(buffers) {
                break taken;
            }
            // A short write that has no room begins a record.
            let taken = self.encrypt(if is_short { &[] } else { buffers })?;
            if taken > 0 {
                break taken;
            }
            if !self.gathered.is_empty() || !is_short {
                // Full: what is there must leave first.
                ready!(self.poll_send(cx))?;
            }
        };
        self.left = self.left.saturating_sub(taken);
        self.is_flushed = false;
        let content = if self.is_http2 { self.frames.pass(buffers, taken) } else { taken };
        self.timeouts.on_owed(content);
        Poll::Ready(Ok(taken))
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.0.borrow_mut().poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().poll_write(cx, &[IoSlice::new(buffer)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.borrow_mut().poll_write(cx, buffers)
    }

    fn is_write_vectored(&self) -> bool {
        // h2 then puts DATA frames below 1,024 bytes into one buffer with others, where it writes each with 256 or more by itself.
        !self.0.borrow().is_http2
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // See the file's head: the driver sends. hyper flushes when it has written all that it has.
        self.0.borrow_mut().is_flushed = true;
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_end(cx)
    }
}

fn total(buffers: &[IoSlice<'_>]) -> usize {
    buffers.iter().map(|buffer| buffer.len()).fold(0, usize::saturating_add)
}

/// The socket as rustls reads and writes it; counts what passes. A call that finds nothing to do is not counted: tokio
/// answers most of these itself, without a system call.
struct Counted<'a> {
    socket: &'a TcpStream,
    timeouts: &'a ConnectionTimeouts,
}

impl io::Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.socket.try_read(buffer)?;
        if bytes > 0 && bytes < buffer.len() {
            // The socket is empty: tokio hears it here, where the next read would ask the kernel. What arrives from now on is an event,
            // as epoll tells edges, and no event can have come between: this thread gets them.
            let _ = self.socket.try_io(Interest::READABLE, || Err::<(), _>(io::ErrorKind::WouldBlock.into()));
        }
        self.timeouts.on_read(bytes);
        Ok(bytes)
    }
}

impl io::Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, buffers: &[IoSlice<'_>]) -> io::Result<usize> {
        self.socket.try_write_vectored(buffers).inspect(|bytes| self.timeouts.on_write(*bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
