//! TLS over one TCP socket, as hyper and h2 read and write it.
//!
//! rustls decrypts where the bytes lie that the socket gave ([`Incoming`]), as many as it has at once, and encrypts into what
//! leaves with one call ([`Outgoing`]).
//!
//! Rejected: rustls' buffered connections, alone or in tokio-rustls: they want 4 KiB at a time, and copy what arrives once more;
//! that made a client of large bodies a fifth slower.

use super::meter::Metered;
use super::records::{Incoming, Outgoing, invalid, want_of_encoding, want_of_encrypting};
use rustls::client::ClientConnectionData;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus, WriteTraffic};
use rustls::{ClientConfig, HandshakeKind};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Content that one record carries.
const FRAGMENT: usize = 16 << 10;
/// So many bytes may arrive in one go, so that they are used while they are in the cache, and other connections get their turn.
const TURN: usize = 256 << 10;

/// The connection.
pub(super) struct Tls {
    socket: Metered,
    session: UnbufferedClientConnection,
    incoming: Incoming,
    outgoing: Outgoing,
    /// Decrypted and not handed on, from `taken` on.
    plain: Vec<u8>,
    taken: usize,
    /// What is written in several pieces, to be encrypted as one.
    pieces: Vec<u8>,
    /// The server has said that nothing more comes.
    is_over: bool,
    /// close_notify is on its way or out.
    has_said_farewell: bool,
    /// Bytes that may still arrive in this turn.
    left: usize,
}

/// What rustls wants next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TlsNeed {
    /// More bytes from the server: the handshake goes on with them.
    Handshake,
    /// Nothing: all that came is decrypted, and content may be sent.
    Nothing,
    /// Its decrypted bytes to be taken.
    Taking,
}

impl Tls {
    /// A connection whose handshake is still to come.
    pub(super) fn new(
        socket: Metered,
        config: Arc<ClientConfig>,
        name: ServerName<'static>,
    ) -> Result<Tls, rustls::Error> {
        Ok(Tls {
            socket,
            session: UnbufferedClientConnection::new(config, name)?,
            incoming: Incoming::default(),
            outgoing: Outgoing::default(),
            plain: Vec::new(),
            taken: 0,
            pieces: Vec::new(),
            is_over: false,
            has_said_farewell: false,
            left: TURN,
        })
    }

    /// What the ends agreed to speak.
    pub(super) fn agreed(&self) -> Option<&[u8]> {
        self.session.alpn_protocol()
    }

    /// Whether the handshake has used a ticket and no certificate.
    pub(super) fn is_resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Does the handshake.
    pub(super) fn poll_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match self.advance(None) {
                Ok(TlsNeed::Handshake) => {
                    ready!(self.poll_send(cx))?;
                    if ready!(self.poll_receive(cx))? == 0 {
                        return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                    }
                }
                Ok(TlsNeed::Taking) => {}
                Ok(TlsNeed::Nothing) if self.session.is_handshaking() => {
                    return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                }
                Ok(TlsNeed::Nothing) => return self.poll_send(cx),
                Err(error) => {
                    // The server hears what was wrong with it, if the socket takes it.
                    let _ = self.poll_send(cx);
                    return Poll::Ready(Err(error));
                }
            }
        }
    }

    /// Lets rustls work on what has arrived. What it decrypts goes to `out`, and what has no room there to `plain`.
    fn advance(&mut self, mut out: Option<&mut ReadBuf<'_>>) -> io::Result<TlsNeed> {
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.session.process_tls_records(self.incoming.filled());
            let want = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(invalid)?;
                        discard += record.discard;
                        hand_on(record.payload, &mut out, &mut self.plain);
                    }
                    Some(TlsNeed::Taking)
                }
                Ok(ConnectionState::EncodeTlsData(mut words)) => {
                    self.outgoing.add(|room| words.encode(room).map_err(want_of_encoding))?;
                    None
                }
                Ok(ConnectionState::TransmitTlsData(sent)) => {
                    // They are in `outgoing`, before anything that comes later.
                    sent.done();
                    None
                }
                Ok(ConnectionState::BlockedHandshake) => Some(TlsNeed::Handshake),
                Ok(ConnectionState::WriteTraffic(_)) => Some(TlsNeed::Nothing),
                Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => {
                    self.is_over = true;
                    Some(TlsNeed::Nothing)
                }
                Ok(_) => return Err(invalid("an unknown state of TLS")),
                Err(error) => {
                    self.incoming.discard(discard);
                    self.say_why();
                    return Err(invalid(error));
                }
            };
            self.incoming.discard(discard);
            if let Some(want) = want {
                return Ok(want);
            }
        }
    }

    /// The alert that tells the server of our error.
    fn say_why(&mut self) {
        let UnbufferedStatus { state, .. } = self.session.process_tls_records(&mut []);
        if let Ok(ConnectionState::EncodeTlsData(mut words)) = state {
            let _ = self.outgoing.add(|room| words.encode(room).map_err(want_of_encoding));
        }
    }

    /// Does `work` where content may be sent; decrypts all that is there before.
    fn with_traffic<T>(
        &mut self,
        work: impl FnOnce(&mut WriteTraffic<'_, ClientConnectionData>, &mut Outgoing) -> io::Result<T>,
    ) -> io::Result<T> {
        while self.advance(None)? == TlsNeed::Taking {}
        let UnbufferedStatus { discard, state } = self.session.process_tls_records(self.incoming.filled());
        let outcome = match state {
            Ok(ConnectionState::WriteTraffic(mut traffic)) => work(&mut traffic, &mut self.outgoing),
            Ok(_) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(error) => Err(invalid(error)),
        };
        self.incoming.discard(discard);
        outcome
    }

    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(self.incoming.room()?);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut room))?;
        let bytes = room.filled().len();
        self.incoming.on_read(bytes);
        Poll::Ready(Ok(bytes))
    }

    fn poll_send(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(waiting) = self.outgoing.waiting() {
            match ready!(Pin::new(&mut self.socket).poll_write(cx, waiting))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                sent => self.outgoing.on_sent(sent),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn encrypt(&mut self, content: &[u8]) -> io::Result<()> {
        self.with_traffic(|traffic, outgoing| {
            outgoing.add(|room| traffic.encrypt(content, room).map_err(want_of_encrypting))
        })
    }
}

/// To `out` what it has room for, and the rest to `plain`.
fn hand_on(bytes: &[u8], out: &mut Option<&mut ReadBuf<'_>>, plain: &mut Vec<u8>) {
    let room = out.as_ref().map_or(0, |out| out.remaining());
    let (now, later) = bytes.split_at(room.min(bytes.len()));
    if let Some(out) = out {
        out.put_slice(now);
    }
    plain.extend_from_slice(later);
}

impl AsyncRead for Tls {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        let before = out.filled().len();
        loop {
            let waiting = this.plain.get(this.taken..).unwrap_or_default();
            if !waiting.is_empty() {
                let now = waiting.get(..out.remaining()).unwrap_or(waiting);
                out.put_slice(now);
                this.taken += now.len();
            }
            if this.taken == this.plain.len() {
                this.plain.clear();
                this.taken = 0;
            }
            // As much as there is, without another call.
            while out.remaining() > 0 && this.plain.is_empty() && !this.is_over {
                match this.advance(Some(&mut *out)) {
                    Ok(TlsNeed::Taking) => {}
                    Ok(TlsNeed::Handshake | TlsNeed::Nothing) => break,
                    Err(error) => {
                        // As in the handshake.
                        let _ = this.poll_send(cx);
                        return Poll::Ready(Err(error));
                    }
                }
            }
            if out.filled().len() > before || out.remaining() == 0 || this.is_over {
                return Poll::Ready(Ok(()));
            }
            if this.left == 0 {
                this.left = TURN;
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            match ready!(this.poll_receive(cx))? {
                0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                bytes => this.left = this.left.saturating_sub(bytes),
            }
        }
    }
}

impl AsyncWrite for Tls {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        if self.outgoing.is_full() {
            ready!(self.poll_send(cx))?;
        }
        let now = bytes.get(..FRAGMENT).unwrap_or(bytes);
        self.encrypt(now)?;
        Poll::Ready(Ok(now.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = pieces.iter().filter(|piece| !piece.is_empty());
        let (first, second) = (filled.next(), filled.next());
        let Some(first) = first else { return Poll::Ready(Ok(0)) };
        if second.is_none() || first.len() >= FRAGMENT {
            return self.poll_write(cx, first);
        }
        if self.outgoing.is_full() {
            ready!(self.poll_send(cx))?;
        }
        // One record for all: a head of nine bytes alone would cost as much as what follows it.
        let mut all = core::mem::take(&mut self.pieces);
        all.clear();
        for piece in pieces {
            let room = FRAGMENT - all.len();
            all.extend_from_slice(piece.get(..room).unwrap_or(piece));
        }
        let outcome = self.encrypt(&all);
        let taken = all.len();
        self.pieces = all;
        Poll::Ready(outcome.map(|()| taken))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_send(cx))?;
        // Where nothing more can be encrypted, the server is told by TCP alone.
        if !std::mem::replace(&mut self.has_said_farewell, true) {
            let _ = self.with_traffic(|traffic, outgoing| {
                outgoing.add(|room| traffic.queue_close_notify(room).map_err(want_of_encrypting))
            });
        }
        ready!(self.poll_send(cx))?;
        Pin::new(&mut self.socket).poll_shutdown(cx)
    }
}
