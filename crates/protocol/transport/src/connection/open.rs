//! The beginning of a connection, of either side. Source: RFC 9000 §7.

use super::close::Lifecycle;
use super::components::{AckFrequency, Components, Datagrams, Timestamps};
use super::counters::Counters;
use super::early;
use super::handshake::{Handshake, HandshakeCids};
use super::keys::KeyRing;
use super::lanes::Lanes;
use super::timer_state::Timers;
use super::trace::{Opening, Tracing};
use super::{Connection, PathMemory};
use crate::cid::{LocalCids, MAX_ACTIVE, PeerCids};
use crate::config::{PreferredAddresses, Switch, TransportConfig};
use crate::path::{AddressState, Paths};
use crate::space::{Space, SpaceId, Spaces};
use crate::streams::Streams;
use base::net::{Addresses, Ecn};
use base::rng::SparseRng;
use base::time::Instant;
use crypto::{EarlyTerms, TlsSession, initial_keys};
use qlog::RecoveryParametersSet;
use recovery::ack::{AckPolicy, AckTracker};
use std::collections::VecDeque;
use std::sync::Arc;
use wire::Side;
use wire::cid::ConnectionId;
use wire::transport_parameters::{PreferredAddress, TransportParameters, VersionInformation};
use wire::version::Version;

/// What both sides begin with.
pub(crate) struct ConnectionSetup {
    pub now: Instant,
    pub config: Arc<TransportConfig>,
    pub addresses: Addresses,
    pub version: Version,
    pub local_cids: LocalCids,
    pub rng: SparseRng,
}

/// What a server knows from the client's first Initial packet and its token.
pub(crate) struct FirstInitial {
    /// Where the client sent it; the Initial keys come from this.
    pub dcid: ConnectionId,
    /// What the client calls itself.
    pub scid: ConnectionId,
    /// Where the client sent its very first Initial; differs from `dcid` after a Retry.
    pub original_dcid: ConnectionId,
    /// The source connection ID of the Retry, if there was one.
    pub retry_scid: Option<ConnectionId>,
    /// Whether the token proved the client's address.
    pub address: AddressState,
    /// An address token for the client's next connection.
    pub new_token: Option<Box<[u8]>>,
}

impl Connection {
    /// A client's connection; its first flight leaves with the next `transmit`. `tls` gets our transport parameters.
    pub(crate) fn client<E>(
        mut beginning: ConnectionSetup,
        token: Vec<u8>,
        tls: impl Fn(Version, &[u8]) -> Result<TlsSession, E> + Send + 'static,
    ) -> Result<Connection, E> {
        //= rfc9000/7.2#1
        let random: [u8; 8] = beginning.rng.bytes();
        let original = ConnectionId::new(&random).unwrap_or(ConnectionId::EMPTY);
        let parameters =
            client_parameters(&beginning.config, beginning.version, beginning.local_cids.first());
        let session = tls(beginning.version, &parameters)?;
        let cids = HandshakeCids { original: Some(original), ..HandshakeCids::default() };
        let mut handshake = Handshake::new(session, beginning.version, cids, token);
        handshake.versions.may_follow(Box::new(move |version, parameters| tls(version, parameters).ok()));
        let keys = initial_keys(beginning.version, original.as_slice(), Side::Client);
        let early = early::sealing(&handshake.tls);
        let peer_cids = PeerCids::new(original);
        let mut connection =
            Connection::new(beginning, Side::Client, peer_cids, handshake, AddressState::Validated);
        connection.begin_trace(&parameters);
        if let Some((keys, remembered)) = early {
            connection.keys.early = keys;
            connection.components.streams.on_peer_parameters(&remembered);
            connection.components.datagrams.on_peer_parameters(&remembered);
            connection.handshake.remembered = Some(Box::new(remembered));
        }
        connection.keys.install(SpaceId::Initial, keys);
        let now = connection.timers.started_at();
        if let Err(error) = connection.advance_handshake(now) {
            connection.fail(now, error);
        }
        Ok(connection)
    }

    /// A server's connection; the Initial packet itself is still to be received.
    pub(crate) fn server<E>(
        mut beginning: ConnectionSetup,
        first: FirstInitial,
        tls: impl FnOnce(&[u8], EarlyTerms) -> Result<TlsSession, E>,
    ) -> Result<Connection, E> {
        let ConnectionSetup { config, version, local_cids, .. } = &mut beginning;
        let mut parameters = parameters(config, *version, &Version::SUPPORTED, local_cids.first());
        parameters.original_destination_connection_id = Some(first.original_dcid);
        parameters.retry_source_connection_id = first.retry_scid;
        parameters.stateless_reset_token = Some(local_cids.first_reset_token());
        //= rfc9000/9.6.1#1
        if !config.preferred_address.is_empty() {
            let PreferredAddresses { ipv4, ipv6 } = config.preferred_address;
            let (cid, reset_token) = local_cids.issue_for_preferred_address();
            parameters.preferred_address = Some(PreferredAddress { ipv4, ipv6, cid, reset_token });
        }
        let (parameters, encoded) = encode(parameters, config);
        let terms = EarlyTerms {
            limits: early::limits(&parameters).to_vec(),
            is_permitted: first.retry_scid.is_none(),
        };
        let session = tls(&encoded, terms)?;
        let cids = HandshakeCids {
            original: Some(first.original_dcid),
            initial: Some(first.dcid),
            retry: first.retry_scid,
            peer: Some(first.scid),
        };
        let mut handshake = Handshake::new(session, beginning.version, cids, Vec::new());
        handshake.versions.may_move(beginning.config.preferred_version, parameters);
        let keys = initial_keys(beginning.version, first.dcid.as_slice(), Side::Server);
        let peer_cids = PeerCids::new(first.scid);
        let mut connection = Connection::new(beginning, Side::Server, peer_cids, handshake, first.address);
        connection.begin_trace(&encoded);
        connection.keys.install(SpaceId::Initial, keys);
        if let Some(token) = first.new_token {
            connection.components.control_frames.announce_token(token);
        }
        Ok(connection)
    }

    /// A datagram came before the Initial packet that has begun the connection.
    pub(crate) fn keep_early(&mut self, now: Instant, ecn: Ecn, datagram: &[u8]) {
        self.handshake.keep_early(now, ecn, datagram);
    }

    /// Begins a trace, if there is to be one; `parameters` are ours, encoded.
    fn begin_trace(&mut self, parameters: &[u8]) {
        let (Some(tracer), Some(original)) = (&self.config.qlog, self.handshake.cids().original) else {
            return;
        };
        let path = self.paths.active();
        let opening = Opening {
            now: self.timers.started_at(),
            side: self.side,
            addresses: path.addresses,
            original,
            local_cid: self.components.local_cids.first(),
            peer_cid: self.components.peer_cids.active(),
            recovery: RecoveryParametersSet {
                initial_rtt: self.config.initial_rtt,
                max_datagram_size: path.max_packet_size,
                initial_congestion_window: path.congestion.window(),
            },
            parameters,
        };
        self.trace = Tracing::begin(tracer.as_ref(), &opening);
    }

    fn new(
        beginning: ConnectionSetup,
        side: Side,
        peer_cids: PeerCids,
        handshake: Handshake,
        address: AddressState,
    ) -> Connection {
        let ConnectionSetup { now, config, addresses, local_cids, mut rng, .. } = beginning;
        //= rfc9000/13.2.1#2
        let immediate = || AckTracker::new(AckPolicy::IMMEDIATE);
        let initial = Space::new(immediate(), &mut rng);
        let initial = if side.is_server() { initial.of_server_hello() } else { initial };
        let early = [initial, Space::new(immediate(), &mut rng)];
        let policy = AckPolicy {
            eliciting_threshold: config.ack_every,
            max_ack_delay: config.max_ack_delay,
            ..AckPolicy::EVERY_SECOND
        };
        let application = Space::new(AckTracker::new(policy), &mut rng);
        Connection {
            side,
            lifecycle: Lifecycle::Alive,
            keys: KeyRing::default(),
            spaces: Spaces::new(early, application),
            components: Components::new(side, &config, local_cids, peer_cids),
            paths: Paths::new(now, side, &config, addresses, address),
            timers: Timers::new(now, &config),
            handshake: Box::new(handshake),
            events: VecDeque::new(),
            counters: Counters::default(),
            rng,
            frames: Vec::new(),
            path_memory: PathMemory::default(),
            trace: None,
            config,
        }
    }
}

/// What a client tells the server, encoded, in a first flight of this version.
pub(super) fn client_parameters(config: &TransportConfig, version: Version, first: ConnectionId) -> Vec<u8> {
    // RFC 9368 §3: a client lists what the version in use may change to, what it likes best first.
    //= rfc9368/3#1
    let liked = config.preferred_version.unwrap_or(version);
    let others = Version::SUPPORTED.into_iter().filter(|other| *other != liked);
    let available: Vec<Version> = core::iter::once(liked).chain(others).collect();
    encode(parameters(config, version, &available, first), config).1
}

/// What we tell the peer: the version in use, and those that are available. Source: RFC 9000 §18.2.
fn parameters(
    config: &TransportConfig,
    version: Version,
    available: &[Version],
    first: ConnectionId,
) -> TransportParameters {
    TransportParameters {
        max_idle_timeout_ms: config.idle_timeout.as_millis(),
        max_udp_payload_size: u64::from(crate::config::MAX_PACKET_SIZE),
        max_ack_delay_ms: config.max_ack_delay.as_millis(),
        active_connection_id_limit: MAX_ACTIVE as u64,
        initial_source_connection_id: Some(first),
        reset_stream_at: true,
        initial_max_path_id: config.multipath.map(|_| Lanes::INITIAL_MAX.into()),
        version_information: Some(VersionInformation { chosen: version, available: available.to_vec() }),
        ..TransportParameters::default()
    }
}

/// The parameters with all that components say, and the same encoded.
fn encode(mut parameters: TransportParameters, config: &TransportConfig) -> (TransportParameters, Vec<u8>) {
    Streams::new(Side::Client, &config.streams).fill_parameters(&mut parameters);
    Datagrams::new(config.max_datagram_frame_size).fill_parameters(&mut parameters);
    AckFrequency::new(config).fill_parameters(&mut parameters);
    if config.timestamps == Switch::On {
        Timestamps::fill_parameters(&mut parameters);
    }
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    (parameters, bytes)
}
