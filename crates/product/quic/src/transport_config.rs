//! How connections behave.

use crate::varint::VarInt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use traces::Qlog;
use transport::{Algorithm, InitialWindow, Scheduler, Switch};

/// The congestion controller of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Congestion {
    /// Source: RFC 9438.
    Cubic,
    /// Source: RFC 9002 §7.
    NewReno,
    /// Version 3. Source: draft-ietf-ccwg-bbr.
    Bbr,
    /// For queues of low delay. Source: draft-briscoe-iccrg-prague-congestion-control.
    Prague,
    /// CUBIC at first, BBR where the path loses packets by chance or has a deep queue, and back where that proves wrong.
    #[default]
    Auto,
}

/// A version of QUIC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuicVersion {
    /// Source: RFC 9000.
    #[default]
    V1,
    /// Source: RFC 9369.
    V2,
}

impl QuicVersion {
    fn number(self) -> wire::Version {
        match self {
            QuicVersion::V1 => wire::Version::V1,
            QuicVersion::V2 => wire::Version::V2,
        }
    }
}

/// How a connection behaves. The defaults suit the open internet. Windows begin small and grow up to their limits.
///
/// ```
/// use std::time::Duration;
/// let mut config = quic::TransportConfig::default();
/// config.max_concurrent_uni_streams(0_u8.into()).keep_alive_interval(Some(Duration::from_secs(5)));
/// ```
#[derive(Clone, Debug)]
pub struct TransportConfig {
    settings: transport::TransportConfig,
}

impl Default for TransportConfig {
    fn default() -> TransportConfig {
        let max_datagram_frame_size = u16::MAX;
        let usual = transport::TransportConfig::default();
        TransportConfig { settings: transport::TransportConfig { max_datagram_frame_size, ..usual } }
    }
}

impl TransportConfig {
    /// Bidirectional streams that the peer may have open at a time. A stream is open until it has been read to its end or
    /// stopped, its sending part is acknowledged or reset, and its handles are dropped. Default: 100. Source: RFC 9000 §4.6.
    pub fn max_concurrent_bidi_streams(&mut self, count: VarInt) -> &mut Self {
        self.settings.streams.max_bidi_streams = count.into_inner();
        self
    }

    /// Unidirectional streams that the peer may have open at a time. Default: 100. Source: RFC 9000 §4.6.
    pub fn max_concurrent_uni_streams(&mut self, count: VarInt) -> &mut Self {
        self.settings.streams.max_uni_streams = count.into_inner();
        self
    }

    /// Where a server prefers to be reached after the handshake: an address of each family, with the port. Its clients move there if
    /// it answers them. The endpoint must be bound to all addresses and to that port. Default: nowhere. Source: RFC 9000 §9.6.
    pub fn preferred_address(&mut self, address: SocketAddr) -> &mut Self {
        self.settings.preferred_address = self.settings.preferred_address.with(address);
        self
    }

    /// The connection ends when nothing was received for so long; `None` means never. Default: 30 s. Source: RFC 9000 §10.1.
    pub fn max_idle_timeout(&mut self, after: Option<Duration>) -> &mut Self {
        self.settings.idle_timeout = after.unwrap_or_default().into();
        self
    }

    /// The handshake must be complete after so long. Default: 10 s.
    pub fn handshake_timeout(&mut self, after: Duration) -> &mut Self {
        self.settings.handshake_timeout = after.into();
        self
    }

    /// A PING is sent when the connection was quiet for so long, or for a third of the idle timeout of both ends if that is less.
    /// Default: none.
    pub fn keep_alive_interval(&mut self, interval: Option<Duration>) -> &mut Self {
        self.settings.keep_alive = interval.map(Into::into);
        self
    }

    /// Bytes up to which the receive window of a stream grows. Default: 16 MiB. Source: RFC 9000 §4.1.
    pub fn stream_receive_window(&mut self, bytes: VarInt) -> &mut Self {
        let streams = &mut self.settings.streams;
        streams.max_stream_window = bytes.into_inner();
        streams.initial_stream_window = streams.initial_stream_window.min(bytes.into_inner());
        self
    }

    /// Bytes up to which the receive window of the connection grows. Default: 24 MiB. Source: RFC 9000 §4.1.
    pub fn receive_window(&mut self, bytes: VarInt) -> &mut Self {
        let streams = &mut self.settings.streams;
        streams.max_connection_window = bytes.into_inner();
        streams.initial_connection_window = streams.initial_connection_window.min(bytes.into_inner());
        self
    }

    /// Bytes that all streams together hold, sent and not acknowledged ones included, before a writer waits. Default: 24 MiB.
    pub fn send_window(&mut self, bytes: u64) -> &mut Self {
        let streams = &mut self.settings.streams;
        streams.connection_send_buffer = bytes;
        streams.send_buffer = streams.send_buffer.min(bytes);
        self
    }

    /// The round-trip time assumed before the first sample. Default: 333 ms. Source: RFC 9002 §6.2.2.
    pub fn initial_rtt(&mut self, rtt: Duration) -> &mut Self {
        self.settings.initial_rtt = rtt.into();
        self
    }

    /// Bytes of UDP payload that every path is assumed to carry: 1,200, the default, to 65,507; a value outside counts as the
    /// nearest one. Source: RFC 9000 §14.
    pub fn initial_mtu(&mut self, bytes: u16) -> &mut Self {
        let bytes = bytes.clamp(transport::MIN_PACKET_SIZE, transport::MAX_PACKET_SIZE);
        self.settings.initial_packet_size = bytes;
        self.settings.max_packet_size = self.settings.max_packet_size.max(bytes);
        self
    }

    /// Bytes of UDP payload up to which larger packets are searched for. Default: 1,452; never below the initial size.
    /// Source: RFC 8899.
    pub fn max_mtu(&mut self, bytes: u16) -> &mut Self {
        let bytes = bytes.clamp(self.settings.initial_packet_size, transport::MAX_PACKET_SIZE);
        self.settings.max_packet_size = bytes;
        self
    }

    /// Whether the peer may send DATAGRAM frames. Up to 1 MiB of them wait to be read, and the oldest give way. Default: yes.
    /// Source: RFC 9221 §3.
    pub fn receive_datagrams(&mut self, is_on: bool) -> &mut Self {
        self.settings.max_datagram_frame_size = if is_on { u16::MAX } else { 0 };
        self
    }

    /// The congestion controller. Default: [`Congestion::Auto`].
    pub fn congestion(&mut self, controller: Congestion) -> &mut Self {
        self.settings.congestion = match controller {
            Congestion::Cubic => Algorithm::Cubic,
            Congestion::NewReno => Algorithm::NewReno,
            Congestion::Bbr => Algorithm::Bbr,
            Congestion::Prague => Algorithm::Prague,
            Congestion::Auto => Algorithm::Auto,
        };
        self
    }

    /// Packets that may be under way at first on a path of which nothing is known, 10 to 32; what lies outside is taken for the nearest. More
    /// spares a path that carries them up to two round trips, and may overflow one that does not. Default: 10, as RFC 9002 §7.2 recommends, and
    /// once a round trip is known ten for each 12.5 ms of it, 32 at most, spread over half of it.
    pub fn initial_window(&mut self, packets: u8) -> &mut Self {
        let packets = packets.clamp(InitialWindow::LEAST, InitialWindow::MOST);
        self.settings.slow_start.begin = InitialWindow::of_packets(packets).unwrap_or_default();
        self
    }

    /// Whether connections start with up to 32 packets, and go on with half of what an earlier one to the same address has reached.
    /// Default: yes. Source: RFC 9959.
    pub fn careful_resume(&mut self, is_on: bool) -> &mut Self {
        self.settings.careful_resume = if is_on { Switch::On } else { Switch::Off };
        self
    }

    /// The version that a client begins with, unless it has tickets of the server in another one. A server takes both. Default: 1.
    pub fn version(&mut self, version: QuicVersion) -> &mut Self {
        self.settings.version = version.number();
        self
    }

    /// The version to which a server moves connections of clients that offer it, without a round trip more. A client lists it first,
    /// for servers that ask their clients. Default: `None`, each connection stays in the version that its client has begun with.
    /// Source: RFC 9368 §2.3, RFC 9369 §4.
    pub fn preferred_version(&mut self, version: Option<QuicVersion>) -> &mut Self {
        self.settings.preferred_version = version.map(QuicVersion::number);
        self
    }

    /// Whether several paths may be used at once, if the peer agrees, and which of them carries data. A client opens them by
    /// [`Connection::open_path`](crate::Connection::open_path). Peers that follow another text of the draft than that of March 2026
    /// fail. Default: `None`, one path. Source: draft-ietf-quic-multipath.
    pub fn multipath(&mut self, scheduler: Option<Scheduler>) -> &mut Self {
        self.settings.multipath = scheduler;
        self
    }

    /// Whether each end tells the other its clock beside acknowledgements, if both want that, so that
    /// [`ConnectionStats::delay_to_peer`](crate::ConnectionStats::delay_to_peer) and its counterpart are known. Default: no.
    /// Source: draft-huitema-quic-ts.
    pub fn timestamps(&mut self, is_on: bool) -> &mut Self {
        self.settings.timestamps = if is_on { Switch::On } else { Switch::Off };
        self
    }

    /// Traces connections (qlog). Default: none.
    pub fn qlog(&mut self, to: &Qlog) -> &mut Self {
        self.settings.qlog = Some(to.tracer());
        self
    }

    /// Settings for the transport, in which no value contradicts another.
    pub(crate) fn settings(&self) -> Arc<transport::TransportConfig> {
        Arc::new(self.settings.clone())
    }

    /// The same for a server of HTTP. Outside semver.
    #[doc(hidden)]
    pub fn to_transport(&self) -> transport::TransportConfig {
        self.settings.clone()
    }
}
