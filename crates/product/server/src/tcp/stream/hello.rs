//! The first bytes of a connection: plain text, or a ClientHello, which is looked at where not all clients are answered in the same way.

use super::{Counted, HELD, Tls};
use crate::challenges;
use crate::tcp::handshakes::{Handshakes, Step};
use rustls::server::{Accepted, AcceptedAlert, Acceptor};
use rustls::{Error, HandshakeKind, ServerConfig, ServerConnection};
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// So many bytes are read at once before TLS is known to be spoken.
const OPENING: usize = 4 * 1024;

/// What a connection began with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FirstBytes {
    /// Nothing yet.
    Awaited,
    /// A TLS record, or what TLS will refuse.
    Tls,
}

/// A ClientHello that is looked at before it is answered.
pub(super) struct Hello {
    handshakes: Handshakes,
    /// How an authority's is answered, if one may come.
    of_authority: Option<Arc<ServerConfig>>,
    pub(super) stage: Stage,
    /// The client was asked for another one. RFC 8446 §4.1.4.
    pub(super) is_second: bool,
}

pub(super) enum Stage {
    /// It is not whole yet.
    Reading(Box<Acceptor>),
    /// Another thread takes a step of the handshake.
    Out(Step),
    /// The second one is not whole yet.
    ReadingSecond,
}

impl Hello {
    /// `None` where all clients are answered in the same way.
    pub(super) fn new(
        handshakes: &Handshakes,
        of_authority: Option<Arc<ServerConfig>>,
    ) -> Option<Box<Hello>> {
        if of_authority.is_none() && !handshakes.may_take_long() {
            return None;
        }
        let stage = Stage::Reading(Box::default());
        Some(Box::new(Hello { handshakes: handshakes.clone(), of_authority, stage, is_second: false }))
    }

    /// Answers `accepted` here, or has another thread do so.
    fn answer(&mut self, accepted: Accepted) -> Option<Result<ServerConnection, (Error, AcceptedAlert)>> {
        let hello = accepted.client_hello();
        let of_authority = self.of_authority.as_ref().filter(|_| challenges::is_of_authority(&hello));
        if of_authority.is_none() && self.handshakes.takes_long(&hello) {
            self.stage = Stage::Out(self.handshakes.answer(accepted));
            return None;
        }
        let config = of_authority.unwrap_or(self.handshakes.config());
        Some(accepted.into_connection(Arc::clone(config)))
    }
}

impl Tls {
    /// Reads what the connection begins with. Returns it if it is plain text; TLS has it otherwise.
    pub(super) fn poll_opening(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Vec<u8>>>> {
        let bytes = ready!(self.poll_raw(cx))?;
        self.opening = FirstBytes::Tls;
        if bytes.first().copied().is_some_and(is_plain) {
            return Poll::Ready(Ok(Some(bytes)));
        }
        let mut rest = bytes.as_slice();
        if let Some(Stage::Reading(acceptor)) = self.hello.as_mut().map(|hello| &mut hello.stage) {
            while !rest.is_empty() {
                acceptor.read_tls(&mut rest)?;
            }
        }
        while !rest.is_empty() {
            self.session.read_tls(&mut rest)?;
            ready!(self.poll_process(cx))?;
        }
        Poll::Ready(Ok(None))
    }

    /// Reads a ClientHello that is looked at, and begins the handshake.
    pub(super) fn poll_hello(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some(mut hello) = self.hello.take() else { return Poll::Ready(Ok(())) };
        let polled = self.poll_stages(&mut hello, cx);
        if polled.is_pending() {
            self.hello = Some(hello);
        }
        polled
    }

    fn poll_stages(&mut self, hello: &mut Hello, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            match &mut hello.stage {
                Stage::Reading(acceptor) => match acceptor.accept() {
                    Ok(Some(accepted)) => {
                        if let Some(answer) = hello.answer(accepted) {
                            let session = answer.map_err(|refusal| self.refuse(refusal))?;
                            self.begin_session(session);
                            return Poll::Ready(Ok(()));
                        }
                    }
                    Ok(None) => {
                        let bytes = ready!(self.poll_raw(cx))?;
                        let mut rest = bytes.as_slice();
                        while !rest.is_empty() {
                            acceptor.read_tls(&mut rest)?;
                        }
                    }
                    Err(refusal) => return Poll::Ready(Err(self.refuse(refusal))),
                },
                Stage::Out(step) => {
                    let outcome = ready!(step.poll(cx)).ok_or(io::ErrorKind::Other)?;
                    let (session, outcome) = outcome.map_err(|refusal| self.refuse(refusal))?;
                    self.begin_session(session);
                    self.judge(outcome, cx)?;
                    // TLS answers a whole one at once.
                    let is_answered = if hello.is_second {
                        self.session.wants_write()
                    } else {
                        self.session.handshake_kind() != Some(HandshakeKind::FullWithHelloRetryRequest)
                    };
                    if is_answered {
                        return Poll::Ready(Ok(()));
                    }
                    hello.stage = Stage::ReadingSecond;
                    hello.is_second = true;
                }
                Stage::ReadingSecond => {
                    ready!(self.poll_send(cx))?;
                    let bytes = ready!(self.poll_raw(cx))?;
                    let config = Arc::clone(hello.handshakes.config());
                    let none = ServerConnection::new(config).map_err(io::Error::other)?;
                    let session = std::mem::replace(&mut self.session, none);
                    hello.stage = Stage::Out(hello.handshakes.read(session, bytes));
                }
            }
        }
    }

    fn begin_session(&mut self, session: ServerConnection) {
        self.session = session;
        self.session.set_buffer_limit(Some(HELD));
    }

    fn refuse(&self, refusal: (Error, AcceptedAlert)) -> io::Error {
        let mut socket = Counted { socket: &self.socket, timeouts: &self.timeouts };
        challenges::refuse(refusal, &mut socket)
    }

    /// Takes in bytes as they are, at least one. An error at the end of the stream.
    pub(super) fn poll_raw(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Vec<u8>>> {
        let mut bytes = [0; OPENING];
        loop {
            let mut socket = Counted { socket: &self.socket, timeouts: &self.timeouts };
            match io::Read::read(&mut socket, &mut bytes) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                Ok(len) => return Poll::Ready(Ok(bytes.get(..len).unwrap_or_default().to_vec())),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    ready!(self.socket.poll_read_ready(cx))?;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

/// Whether a connection that begins with `byte` is plain text: the name of a method, where a TLS record begins with 22.
fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphabetic()
}
