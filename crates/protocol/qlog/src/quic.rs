//! Events of a connection as a whole: its begin and end, what both ends agreed on, its paths and its keys.
//! Source: draft-ietf-quic-qlog-quic-events §5.

use crate::parameters::Initiator;
use crate::{Event, Object};
use base::net::Addresses;
use core::net::SocketAddr;
use wire::Side;
use wire::cid::ConnectionId;
use wire::error::Code;
use wire::version::Version;

/// A connection began.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStarted {
    /// Both ends.
    pub addresses: Addresses,
    /// Our first connection ID.
    pub local_cid: ConnectionId,
    /// The peer's, or where its first Initial went.
    pub peer_cid: ConnectionId,
}

impl Event for ConnectionStarted {
    const NAME: &'static str = "quic:connection_started";

    fn write(&self, data: &mut Object<'_>) {
        data.object("local", |end| endpoint(self.addresses.local, Some(self.local_cid), end));
        data.object("remote", |end| endpoint(self.addresses.peer, Some(self.peer_cid), end));
    }
}

fn endpoint(address: SocketAddr, cid: Option<ConnectionId>, out: &mut Object<'_>) {
    let ip = address.ip().to_canonical();
    let (ip_name, port_name) = if ip.is_ipv4() { ("ip_v4", "port_v4") } else { ("ip_v6", "port_v6") };
    out.text(ip_name, &ip.to_string()).number(port_name, u64::from(address.port()));
    if let Some(cid) = cid {
        out.array("connection_ids", |list| list.hex(cid.as_slice()));
    }
}

/// A connection ended.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionClosed<'a> {
    /// Who ended it; `None` where it ended by itself.
    pub initiator: Option<Initiator>,
    /// The transport's code.
    pub connection_error: Option<Code>,
    /// The application's code.
    pub application_error: Option<u64>,
    /// One line; from the peer it is as the peer has sent it.
    pub reason: &'a str,
    /// What ended it, in the words of the schema: `idle_timeout`, `application`, `error`, `version_mismatch`, `stateless_reset`,
    /// `aborted` or `unspecified`.
    pub trigger: &'static str,
}

impl Event for ConnectionClosed<'_> {
    const NAME: &'static str = "quic:connection_closed";

    fn write(&self, data: &mut Object<'_>) {
        if let Some(initiator) = self.initiator {
            data.text("initiator", initiator.name());
        }
        if let Some(code) = self.connection_error {
            transport_error("connection_error", code, data);
        } else if let Some(code) = self.application_error {
            application_error("application_error", code, data);
        }
        if !self.reason.is_empty() {
            data.text("reason", self.reason);
        }
        data.text("trigger", self.trigger);
    }
}

/// A transport error by name, or `unknown` and its code.
pub(crate) fn transport_error(member: &'static str, code: Code, out: &mut Object<'_>) {
    if let Some(alert) = code.alert() {
        out.text(member, &format!("crypto_error_0x1{alert:02x}"));
        return;
    }
    // The schema has no word for VERSION_NEGOTIATION_ERROR.
    match code.name().filter(|_| code != Code::VERSION_NEGOTIATION_ERROR) {
        Some(name) => out.text(member, &name.to_ascii_lowercase()),
        None => out.text(member, "unknown").number("error_code", code.0),
    };
}

/// An application's error. Only codes of HTTP/3 have names; where another protocol is spoken they say too much, so that the code
/// stands beside them.
pub(crate) fn application_error(member: &'static str, code: u64, out: &mut Object<'_>) {
    out.text(member, "unknown").number("error_code", code);
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionState {
    /// The first Initial packet has left, or arrived.
    Attempted,
    /// Handshake keys are there.
    HandshakeStarted,
    /// Both Finished messages are verified.
    HandshakeComplete,
    /// HANDSHAKE_DONE was sent or received.
    HandshakeConfirmed,
    /// CONNECTION_CLOSE was sent.
    Closing,
    /// CONNECTION_CLOSE was received.
    Draining,
    /// No state is left.
    Closed,
}

impl ConnectionState {
    fn name(self) -> &'static str {
        match self {
            ConnectionState::Attempted => "attempted",
            ConnectionState::HandshakeStarted => "handshake_started",
            ConnectionState::HandshakeComplete => "handshake_complete",
            ConnectionState::HandshakeConfirmed => "handshake_confirmed",
            ConnectionState::Closing => "closing",
            ConnectionState::Draining => "draining",
            ConnectionState::Closed => "closed",
        }
    }
}

/// A connection came further.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionStateUpdated {
    /// Where it was.
    pub old: Option<ConnectionState>,
    /// Where it is.
    pub new: ConnectionState,
}

impl Event for ConnectionStateUpdated {
    const NAME: &'static str = "quic:connection_state_updated";

    fn write(&self, data: &mut Object<'_>) {
        if let Some(old) = self.old {
            data.text("old", old.name());
        }
        data.text("new", self.new.name());
    }
}

/// Which versions each end speaks, and which one is in use.
#[derive(Clone, Copy, Debug)]
pub struct VersionInformation<'a> {
    /// Whose list of our own it is.
    pub side: Side,
    /// What we offer, the best first.
    pub local: &'a [Version],
    /// What the peer offers; empty when it is not known.
    pub peer: &'a [Version],
    /// The version in use.
    pub chosen: Version,
}

impl Event for VersionInformation<'_> {
    const NAME: &'static str = "quic:version_information";

    fn write(&self, data: &mut Object<'_>) {
        let (own, other) = match self.side {
            Side::Client => ("client_versions", "server_versions"),
            Side::Server => ("server_versions", "client_versions"),
        };
        for (name, versions) in [(own, self.local), (other, self.peer)] {
            if !versions.is_empty() {
                data.array(name, |list| {
                    versions.iter().for_each(|version| list.hex(&version.0.to_be_bytes()));
                });
            }
        }
        data.hex("chosen_version", &self.chosen.0.to_be_bytes());
    }
}

/// The application protocol in use.
#[derive(Clone, Copy, Debug)]
pub struct AlpnInformation<'a> {
    /// Its name, as bytes.
    pub chosen: &'a [u8],
}

impl Event for AlpnInformation<'_> {
    const NAME: &'static str = "quic:alpn_information";

    fn write(&self, data: &mut Object<'_>) {
        data.object("chosen_alpn", |alpn| {
            alpn.hex("byte_value", self.chosen);
            if let Ok(text) = core::str::from_utf8(self.chosen) {
                alpn.text("string_value", text);
            }
        });
    }
}

/// An end goes by another connection ID: of the peer's, where our packets go, or of our own.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionIdUpdated {
    /// Whose.
    pub initiator: Initiator,
    /// Before.
    pub old: ConnectionId,
    /// Now.
    pub new: ConnectionId,
}

impl Event for ConnectionIdUpdated {
    const NAME: &'static str = "quic:connection_id_updated";

    fn write(&self, data: &mut Object<'_>) {
        data.text("initiator", self.initiator.name())
            .hex("old", self.old.as_slice())
            .hex("new", self.new.as_slice());
    }
}

/// A path has a name from now on: the number of the path.
#[derive(Clone, Copy, Debug)]
pub struct TupleAssigned {
    /// The path's number.
    pub id: u64,
    /// Both ends.
    pub addresses: Addresses,
}

impl Event for TupleAssigned {
    const NAME: &'static str = "quic:tuple_assigned";

    fn write(&self, data: &mut Object<'_>) {
        data.text("tuple_id", &self.id.to_string());
        tuple(self.addresses, data);
    }
}

fn tuple(addresses: Addresses, data: &mut Object<'_>) {
    data.object("tuple_remote", |end| endpoint(addresses.peer, None, end));
    data.object("tuple_local", |end| endpoint(addresses.local, None, end));
}

/// The largest packet that may be sent is another one.
#[derive(Clone, Copy, Debug)]
pub struct MtuUpdated {
    /// Before, in bytes of UDP payload.
    pub old: u16,
    /// Now.
    pub new: u16,
}

impl Event for MtuUpdated {
    const NAME: &'static str = "quic:mtu_updated";

    fn write(&self, data: &mut Object<'_>) {
        data.number("old", u64::from(self.old)).number("new", u64::from(self.new));
    }
}

/// A step of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MigrationState {
    /// A path is probed.
    ProbingStarted,
    /// Nothing answered there.
    ProbingAbandoned,
    /// Data goes on another path.
    Started,
    /// The new path is validated.
    Complete,
}

/// A migration came a step further.
#[derive(Clone, Copy, Debug)]
pub struct MigrationStateUpdated {
    /// Where it is.
    pub new: MigrationState,
    /// Both ends of the path that it is about.
    pub addresses: Addresses,
}

impl Event for MigrationStateUpdated {
    const NAME: &'static str = "quic:migration_state_updated";

    fn write(&self, data: &mut Object<'_>) {
        data.text(
            "new",
            match self.new {
                MigrationState::ProbingStarted => "probing_started",
                MigrationState::ProbingAbandoned => "probing_abandoned",
                MigrationState::Started => "migration_started",
                MigrationState::Complete => "migration_complete",
            },
        );
        tuple(self.addresses, data);
    }
}

/// There are new keys of both directions. The keys themselves are in no trace.
#[derive(Clone, Copy, Debug)]
pub struct KeyUpdated {
    /// Whose keys: the schema counts those of each end.
    pub side: Side,
    /// `initial`, `handshake`, `0rtt` or `1rtt`.
    pub level: &'static str,
    /// How often 1-RTT keys were updated.
    pub key_phase: Option<u64>,
    /// `tls`, `local_update` or `remote_update`; `None` when it is not known who began an update.
    pub trigger: Option<&'static str>,
}

impl Event for KeyUpdated {
    const NAME: &'static str = "quic:key_updated";

    fn write(&self, data: &mut Object<'_>) {
        let side = if self.side.is_client() { "client" } else { "server" };
        data.text("key_type", &format!("{side}_{}_secret", self.level))
            .number_if("key_phase", self.key_phase);
        if let Some(trigger) = self.trigger {
            data.text("trigger", trigger);
        }
    }
}
