//! What an embedder may set. Plain values with units; `build` refuses combinations that cannot work.

use crate::streams::StreamConfig;
use crate::without::Without;
use base::time::Duration;
use core::net::{IpAddr, SocketAddr, SocketAddrV4, SocketAddrV6};
use qlog::Tracer;
use recovery::congestion::{Algorithm, InitialWindow, SlowStart};
use recovery::mtu::MtuConfig;
use recovery::pacer::Pacing;
use std::sync::Arc;
use wire::version::Version;

/// How a connection behaves. The defaults suit a server on the open internet.
#[derive(Clone, Debug)]
pub struct TransportConfig {
    /// The QUIC version a client starts with, unless the server has moved it to another one before, and it has tickets in that. Servers
    /// take both. Default: 1.
    pub version: Version,
    /// The version to which a server moves connections of clients that offer it, without a round trip more. Source: RFC 9368 §2.3,
    /// RFC 9369 §4. On a client, the version that it would rather have: it lists that one first, for servers which ask their clients.
    /// Default: none, each connection stays in the version that its client has begun with.
    pub preferred_version: Option<Version>,
    /// The connection ends when nothing was heard for so long; zero means never. Default: 30 s.
    pub idle_timeout: Duration,
    /// The handshake must be complete after so long. Default: 10 s.
    pub handshake_timeout: Duration,
    /// A PING is sent when the connection was quiet for so long, or for a third of the idle timeout of both ends if that is less.
    /// Default: none.
    pub keep_alive: Option<Duration>,
    /// UDP payload, in bytes, that every path is assumed to carry. At least 1,200, the default.
    pub initial_packet_size: u16,
    /// Largest UDP payload, in bytes, that is probed for once the handshake is confirmed: what the interface and the data
    /// path's memory take. Default: 1,452, an Ethernet frame over IPv6.
    pub max_packet_size: u16,
    /// How the largest packet that a path carries is searched for. Default: fast, within the two sizes above.
    pub mtu: MtuConfig,
    /// Longest wait before an ack-eliciting packet is acknowledged. Default: 25 ms.
    pub max_ack_delay: Duration,
    /// An acknowledgement leaves at the latest after this many ack-eliciting packets, unless the peer asks for something else.
    /// RFC 9000 §13.2.2 proposes 2, which holds until a path is steady and after losses; then fewer cost less. Default: 10.
    pub ack_every: u32,
    /// Whether either end may ask the other for fewer acknowledgements than that, or for one at once
    /// (draft-ietf-quic-ack-frequency), if the other agrees. Default: on.
    pub ack_frequency: Switch,
    /// The congestion controller. Default: CUBIC at first, and BBR where the path speaks for it.
    pub congestion: Algorithm,
    /// How the first slow start begins and ends. Default: with ten packets (RFC 9002 §7.2), up to 32 where the round trip takes long, as
    /// BBR's Startup does, and by HyStart++ (RFC 9406).
    pub slow_start: SlowStart,
    /// Whether and in which bursts a window is spread over its round trip. Default: on, in trains of a millisecond.
    pub pacing: Pacing,
    /// Whether connections remember what their path carried, and start from what an earlier one remembers (RFC 9959): with up to 32
    /// packets, and then with half of it. Without pacing, and with BBR, connections do neither. Default: on.
    pub careful_resume: Switch,
    /// The round-trip time assumed before the first sample. Source: RFC 9002 §6.2.2. Default: 333 ms.
    pub initial_rtt: Duration,
    /// Streams, windows and send buffers.
    pub streams: StreamConfig,
    /// Largest DATAGRAM frame accepted, in bytes; 0, the default, accepts none. Source: RFC 9221 §3.
    pub max_datagram_frame_size: u16,
    /// Keys are updated after this many packets. Well below every AEAD's confidentiality limit. Default: 2^22.
    pub key_update_after: u64,
    /// Whether packets carry ECN marks until the path proves to lose them. Default: on.
    pub ecn: Switch,
    /// The addresses at which a server prefers to be reached after the handshake; a client takes the one of the family that it
    /// has used. Datagrams that go there must reach the same workers. Source: RFC 9000 §9.6. Default: none.
    pub preferred_address: PreferredAddresses,
    /// Whether several paths may be used at once, if the peer agrees, and which of them carries data (draft-ietf-quic-multipath, as of
    /// March 2026: peers that follow another text of the draft fail). Default: not.
    pub multipath: Option<Scheduler>,
    /// Whether each end tells the other its clock beside acknowledgements, if both want that, so that the delays of the two ways can be
    /// told apart ([`Connection::one_way_delays`](crate::Connection::one_way_delays)). Source: draft-huitema-quic-ts. Default: off.
    pub timestamps: Switch,
    /// What decides which connections are traced, and where to (qlog). Default: none, no connection is traced.
    pub qlog: Option<Arc<dyn Tracer>>,
    /// Techniques to do without, for experiments. Default: none.
    pub without: Without,
}

/// A technique on or off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// In use.
    On,
    /// Not used.
    Off,
}

/// Which of several paths carries data, of those that can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scheduler {
    /// The one with the lowest round-trip time until its window is full, then the next.
    #[default]
    LowestRtt,
    /// Each in turn first, until its window is full.
    RoundRobin,
    /// As with the lowest round-trip time; data that is in flight on the first path is repeated on the others as long as it is little,
    /// so that small requests need one path only to deliver.
    Redundant,
}

impl Default for TransportConfig {
    fn default() -> Self {
        TransportConfig {
            version: Version::V1,
            preferred_version: None,
            idle_timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(10),
            keep_alive: None,
            initial_packet_size: MIN_PACKET_SIZE,
            max_packet_size: 1_452,
            mtu: MtuConfig::default(),
            max_ack_delay: Duration::from_millis(25),
            ack_every: 10,
            ack_frequency: Switch::On,
            congestion: Algorithm::default(),
            slow_start: SlowStart { begin: InitialWindow::BY_RTT, ..SlowStart::default() },
            pacing: Pacing::default(),
            careful_resume: Switch::On,
            initial_rtt: Duration::from_millis(333),
            streams: StreamConfig::default(),
            max_datagram_frame_size: 0,
            key_update_after: 1 << 22,
            ecn: Switch::On,
            preferred_address: PreferredAddresses::default(),
            multipath: None,
            timestamps: Switch::Off,
            qlog: None,
            without: Without::default(),
        }
    }
}

/// Where a server prefers to be reached, at most one address of each family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PreferredAddresses {
    /// The IPv4 address.
    pub ipv4: Option<SocketAddrV4>,
    /// The IPv6 address.
    pub ipv6: Option<SocketAddrV6>,
}

impl PreferredAddresses {
    /// With `address` as the one of its family.
    #[must_use]
    pub fn with(mut self, address: SocketAddr) -> PreferredAddresses {
        match address {
            SocketAddr::V4(address) => self.ipv4 = Some(address),
            SocketAddr::V6(address) => self.ipv6 = Some(address),
        }
        self
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ipv4.is_none() && self.ipv6.is_none()
    }

    /// The one of the family of `address`.
    pub(crate) fn beside(&self, address: SocketAddr) -> Option<SocketAddr> {
        match address {
            SocketAddr::V4(_) => self.ipv4.map(SocketAddr::V4),
            SocketAddr::V6(_) => self.ipv6.map(SocketAddr::V6),
        }
    }
}

/// The smallest UDP payload that every QUIC path carries. Source: RFC 9000 §14.
pub const MIN_PACKET_SIZE: u16 = 1_200;

/// The largest UDP payload that IPv4 carries.
pub const MAX_PACKET_SIZE: u16 = 65_507;

/// A setting that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidConfig(pub &'static str);

impl core::fmt::Display for InvalidConfig {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(self.0)
    }
}

impl core::error::Error for InvalidConfig {}

impl TransportConfig {
    /// Whether connections remember what their path carried.
    pub(crate) fn remembers_paths(&self) -> bool {
        self.careful_resume == Switch::On && self.pacing != Pacing::Off
    }

    /// Checks the settings against each other.
    ///
    /// # Errors
    /// The first setting that cannot work, in words.
    pub fn build(self) -> Result<TransportConfig, InvalidConfig> {
        let sizes = MIN_PACKET_SIZE..=MAX_PACKET_SIZE;
        if !sizes.contains(&self.initial_packet_size) || !sizes.contains(&self.max_packet_size) {
            return Err(InvalidConfig("packet sizes lie between 1,200 and 65,507 bytes"));
        }
        if self.mtu.floor.into_iter().chain(self.mtu.ceiling).any(|size| !sizes.contains(&size)) {
            return Err(InvalidConfig(
                "the floor and ceiling of packet sizes lie between 1,200 and 65,507 bytes",
            ));
        }
        if self.initial_packet_size > self.max_packet_size {
            return Err(InvalidConfig("initial_packet_size is larger than max_packet_size"));
        }
        if self.max_ack_delay >= Duration::from_millis(1 << 14) {
            return Err(InvalidConfig("max_ack_delay must be below 2^14 ms"));
        }
        if self.ack_every == 0 {
            return Err(InvalidConfig("ack_every must be at least 1"));
        }
        let versions = [Some(self.version), self.preferred_version];
        if versions.into_iter().flatten().any(|version| !version.is_supported()) {
            return Err(InvalidConfig("version and preferred_version must be QUIC 1 or 2"));
        }
        let is_unusable = |ip: IpAddr, port: u16| ip.is_unspecified() || ip.is_multicast() || port == 0;
        let PreferredAddresses { ipv4, ipv6 } = self.preferred_address;
        let preferred = [ipv4.map(SocketAddr::V4), ipv6.map(SocketAddr::V6)];
        if preferred.iter().flatten().any(|address| is_unusable(address.ip(), address.port())) {
            return Err(InvalidConfig(
                "a preferred address has an IP address and a port that clients can reach",
            ));
        }
        if self.without != Without::default() && !Without::IS_BUILT {
            return Err(InvalidConfig("without needs a build with the feature experiments"));
        }
        Ok(self)
    }
}
