//! What becomes of a datagram.

use super::counters::DropReason;
use super::predecessors::Predecessor;
use crate::path::AddressState;
use base::net::Addresses;
use base::slab::Handle;
use wire::cid::ConnectionId;
use wire::version::Version;

/// Where a datagram belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// To this connection.
    Connection(Handle),
    /// A client wants to connect: accept it, and give the datagram to the connection that results.
    Incoming(Incoming),
    /// To the worker of this number, which issued the connection ID. Never said where there is one worker only.
    Elsewhere(u8),
    /// To a process whose place this one has taken, which has the connection.
    Predecessor(Predecessor),
    /// To no connection, but a reply is due. [`super::Endpoint::reply`] holds it until the next call of `route`. It goes back
    /// to the sender of the datagram.
    Reply,
    /// Nowhere; counted.
    Drop(DropReason),
}

/// A client that wants to connect. It has no state here: forgetting this forgets the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The version that the client started with.
    pub(crate) version: Version,
    /// Where its Initial packet went; the Initial keys are made from it.
    pub(crate) dcid: ConnectionId,
    /// The connection ID that it chose for itself.
    pub(crate) scid: ConnectionId,
    /// Where its very first Initial packet went; differs from `dcid` after a Retry. For the transport parameter
    /// original_destination_connection_id.
    pub(crate) original_dcid: ConnectionId,
    /// The source connection ID of the Retry that it answers. For retry_source_connection_id.
    pub(crate) retry_scid: Option<ConnectionId>,
    /// Whether a token has proved its address.
    pub(crate) address: AddressState,
    /// Where the datagram came from and arrived.
    pub(crate) addresses: Addresses,
}

impl Incoming {
    /// Where the client says it is; proved only if `is_validated`.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Whether a token has proved that the client is at its address.
    pub fn is_validated(&self) -> bool {
        self.address == AddressState::Validated
    }

    /// The version that the client started with.
    pub fn version(&self) -> Version {
        self.version
    }
}
