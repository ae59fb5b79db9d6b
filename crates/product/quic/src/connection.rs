//! A connection, and the client or server end of one that begins.

use crate::datagram_error::{ExportError, SendDatagramError};
use crate::error::ConnectionError;
use crate::facts::{HandshakeData, PathEvent};
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;
use crate::shared::{Ending, Export, ExportRequest, Guard};
use crate::stats::{ConnectionStats, PathStats};
use crate::varint::VarInt;
use bytes::Bytes;
use core::future::poll_fn;
use rustls_pki_types::CertificateDer;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;
use transport::{Dir, StreamId};
use wire::Side;

/// A QUIC connection. Clones are handles of the same connection.
///
/// When the last handle is dropped, streams and their futures included, the connection is closed with code 0 and an empty
/// reason. Data that the peer has not acknowledged may be lost then: await [`SendStream::stopped`], an answer, or
/// [`Connection::closed`] first.
#[derive(Clone, Debug)]
pub struct Connection {
    guard: Arc<Guard>,
}

impl Connection {
    pub(crate) fn new(guard: Arc<Guard>) -> Connection {
        Connection { guard }
    }

    /// Waits until the handshake is complete: at once, unless the connection is of [`Connecting::into_0rtt`](crate::Connecting).
    ///
    /// # Errors
    /// The connection is over.
    pub async fn handshake_done(&self) -> Result<(), ConnectionError> {
        poll_fn(|context| self.guard.0.change(|state| state.poll_connected(context))).await
    }

    /// On a server, whether what has arrived may be the copy of an earlier connection, sent by an attacker. It is no more once
    /// [`Connection::handshake_done`] is ready. Source: RFC 8446 §8.
    pub fn is_early(&self) -> bool {
        self.guard.0.change(|state| state.is_early())
    }

    /// Opens a bidirectional stream, and waits until the peer permits one. The peer hears of it when something is written,
    /// finished or reset. Dropping the future opens nothing. Source: RFC 9000 §2.1, §4.6.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.open(Dir::Bidi).await.map(|id| self.both(id))
    }

    /// Opens a unidirectional stream, and waits until the peer permits one. Dropping the future opens nothing.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        self.open(Dir::Uni).await.map(|id| SendStream::new(Arc::clone(&self.guard), id))
    }

    async fn open(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        poll_fn(|context| self.guard.0.change(|state| state.poll_open(dir, context))).await
    }

    /// The next bidirectional stream of the peer's, in the order of their first bytes. Dropping the future loses none.
    ///
    /// # Errors
    /// The connection is over and all streams that had arrived were accepted.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        self.accept(Dir::Bidi).await.map(|id| self.both(id))
    }

    /// The next unidirectional stream of the peer's, in the order of their first bytes. Dropping the future loses none.
    ///
    /// # Errors
    /// The connection is over and all streams that had arrived were accepted.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        self.accept(Dir::Uni).await.map(|id| RecvStream::new(Arc::clone(&self.guard), id))
    }

    async fn accept(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        poll_fn(|context| self.guard.0.change(|state| state.poll_accept(dir, context))).await
    }

    fn both(&self, id: StreamId) -> (SendStream, RecvStream) {
        (SendStream::new(Arc::clone(&self.guard), id), RecvStream::new(Arc::clone(&self.guard), id))
    }

    /// Closes the connection at once: the peer is told the code and the reason, cut to 256 bytes; all streams end; data that is
    /// not acknowledged may be lost. Has no effect on a connection that is over. Source: RFC 9000 §10.2.
    pub fn close(&self, code: VarInt, reason: &[u8]) {
        self.guard.0.end_by(Ending::Close { code, reason: Bytes::copy_from_slice(reason) });
    }

    /// Waits until the connection is over, and tells why.
    pub async fn closed(&self) -> ConnectionError {
        poll_fn(|context| self.guard.0.change(|state| state.poll_closed(context))).await
    }

    /// Why the connection is over; `None` if it is not.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.guard.0.change(|state| state.error().cloned())
    }

    /// Where the peer is. A client may move. Source: RFC 9000 §9.
    pub fn remote_address(&self) -> SocketAddr {
        self.guard.0.change(|state| state.facts.remote)
    }

    /// The local address of the path in use; `None` where the system does not say.
    pub fn local_ip(&self) -> Option<IpAddr> {
        let ip = self.guard.0.change(|state| state.facts.local_ip);
        (!ip.is_unspecified()).then_some(ip)
    }

    /// Client or server.
    pub fn side(&self) -> Side {
        self.guard.0.change(|state| state.side())
    }

    /// The smoothed round-trip time, as of the last turn of the connection. Source: RFC 9002 §5.3.
    pub fn rtt(&self) -> Duration {
        self.stats().rtt
    }

    /// The least round-trip time of late; zero before the first sample. Source: RFC 9002 §5.2.
    pub fn min_rtt(&self) -> Duration {
        self.stats().min_rtt
    }

    /// Counts and estimates, as of the last turn of the connection.
    pub fn stats(&self) -> ConnectionStats {
        self.guard.0.change(|state| state.facts.stats)
    }

    /// What the handshake has settled.
    pub fn handshake_data(&self) -> Option<HandshakeData> {
        self.guard.0.change(|state| state.facts.handshake.clone())
    }

    /// The peer's certificate chain, its own certificate first. A server has one if it asks for it and the client shows it, see
    /// [`ServerConfig::client_auth`](crate::ServerConfig::client_auth); it is empty otherwise.
    pub fn peer_identity(&self) -> Vec<CertificateDer<'static>> {
        let chain = self.guard.0.change(|state| state.facts.peer_certificates.clone());
        chain.into_iter().map(CertificateDer::from).collect()
    }

    /// Sends a datagram: unreliable, not in order, not retransmitted. Those that cannot leave wait, and the oldest give way when
    /// they have more than 1 MiB. Source: RFC 9221.
    ///
    /// # Errors
    /// The peer takes none, or none so large, or the connection is over.
    pub fn send_datagram(&self, data: Bytes) -> Result<(), SendDatagramError> {
        self.guard.0.change(|state| state.send_datagram(data))
    }

    /// As [`Connection::send_datagram`], but waits until no other datagram has to give way. Dropping the future sends nothing.
    ///
    /// # Errors
    /// As [`Connection::send_datagram`].
    pub async fn send_datagram_wait(&self, data: Bytes) -> Result<(), SendDatagramError> {
        poll_fn(|context| self.guard.0.change(|state| state.poll_send_datagram(&data, context))).await
    }

    /// The payload in bytes of a datagram for which no other has to give way, as of the last turn of the connection.
    pub fn datagram_send_buffer_space(&self) -> usize {
        self.guard.0.change(|state| state.datagram_space())
    }

    /// The next datagram from the peer. Dropping the future loses none.
    ///
    /// # Errors
    /// The connection is over and all that arrived were read.
    pub async fn read_datagram(&self) -> Result<Bytes, ConnectionError> {
        poll_fn(|context| self.guard.0.change(|state| state.poll_datagram(context))).await
    }

    /// The largest payload of a datagram at present, in bytes; `None` if the peer takes none. It changes with the path.
    pub fn max_datagram_size(&self) -> Option<usize> {
        self.guard.0.change(|state| state.facts.max_datagram_size)
    }

    /// Fills `out` with keying material of the connection, the same at both ends for the same label and context. The thread that
    /// drives the endpoint answers. Source: RFC 8446 §7.5, RFC 5705.
    ///
    /// # Errors
    /// The connection is over, or `out` is empty or longer than 255 hashes.
    pub async fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportError> {
        let export = Arc::new(Export::default());
        let request = ExportRequest {
            len: out.len(),
            label: label.to_vec(),
            context: context.to_vec(),
            export: Arc::clone(&export),
        };
        self.guard.0.change(|state| state.request_export(request));
        let material = poll_fn(|context| export.poll_answer(context)).await.ok_or(ExportError)?;
        out.copy_from_slice(&material);
        Ok(())
    }

    /// Starts a key update, if the last one is acknowledged. Source: RFC 9001 §6.
    pub fn force_key_update(&self) {
        self.guard.0.change(crate::shared::State::request_key_update);
    }

    /// Moves this client to another local address, as soon as the server has answered there: [`PathEvent::LocalAddress`] tells, or
    /// [`PathEvent::MigrationFailed`]. Until then, and where the server does not, the connection stays where it is. Which interface
    /// packets leave by is left to the routes. Source: RFC 9000 §9.
    ///
    /// # Errors
    /// It is a server's connection, or the address is of the other family, or not one of this machine, or the endpoint is bound to
    /// one address: bind it to the unspecified one.
    pub fn migrate(&self, to: IpAddr) -> io::Result<()> {
        self.check_local(to, "a server does not change its address")?;
        self.guard.0.change(|state| state.request_migration(to));
        Ok(())
    }

    /// Uses a path from another local address beside those in use, up to four in all, if both ends have
    /// [`TransportConfig::multipath`](crate::TransportConfig::multipath): [`PathEvent::Opened`] tells when it carries data,
    /// [`PathEvent::Closed`] when the server does not answer there, [`PathEvent::OpenFailed`] that there can be none. Where four are in
    /// use, it waits until one of them is over. Which interface packets leave by is left to the routes. Source:
    /// draft-ietf-quic-multipath §3.1.
    ///
    /// # Errors
    /// As [`Connection::migrate`].
    pub fn open_path(&self, from: IpAddr) -> io::Result<()> {
        self.check_local(from, "a server opens no paths")?;
        self.guard.0.change(|state| state.request_path(from));
        Ok(())
    }

    /// The paths in use, as of the last turn of the connection; none where either end does not use several at once.
    pub fn paths(&self) -> Vec<PathStats> {
        self.guard.0.change(|state| state.facts.paths.in_use.clone())
    }

    /// Whether packets can leave from this address.
    fn check_local(&self, ip: IpAddr, no_server: &str) -> io::Result<()> {
        let (side, bound, remote) =
            self.guard.0.change(|state| (state.side(), state.facts.bound, state.facts.remote));
        let refused = |text: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        if side == Side::Server {
            return refused(no_server);
        }
        if ip.is_ipv4() != remote.is_ipv4() {
            return refused("the address is of another family than the server's");
        }
        if !bound.is_unspecified() && bound != ip {
            return refused("the endpoint is bound to one address: bind it to 0.0.0.0 or [::]");
        }
        UdpSocket::bind((ip, 0)).map(drop)
    }

    /// The next change of the path: the peer has moved, or packets have another size. Several of one kind become one if they are
    /// not awaited; of paths that open and close at once the last 16 are told. Dropping the future loses none.
    ///
    /// # Errors
    /// The connection is over.
    pub async fn path_event(&self) -> Result<PathEvent, ConnectionError> {
        poll_fn(|context| self.guard.0.change(|state| state.poll_path_event(context))).await
    }

    /// A number that no other connection of the process has as long as a handle of this one exists.
    pub fn stable_id(&self) -> usize {
        Arc::as_ptr(&self.guard) as usize
    }
}
