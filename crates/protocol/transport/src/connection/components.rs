//! What packets carry: a table with one row per component, most urgent first.
//!
//! A row says in which packets the component writes, what may hold it back, whether it has something to send, how many bytes
//! of content wait, and how it writes. Everything that needs the list reads this table: whether a space is worth a packet and
//! what waits beside probes (plan.rs), the order of the frames in a packet, and whether the application limits the
//! connection (transmit.rs). A new component is a new row.
//!
//! Invariant: a component that wants writes at least one frame into an empty packet, or wants no longer.
//!
//! Path challenges, MTU probes and CONNECTION_CLOSE share no packet with others: they are plans of their own (plan.rs).

use super::Connection;
use crate::builder::PacketBuilder;
use crate::space::SpaceId;
use base::time::Instant;
use recovery::ack::AckUrgency;

/// The components that a plan permits to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    /// All.
    All,
    /// Those without a limit: congestion control or pacing hold the others back.
    AckOnly,
}

/// The packets that may carry a component's frames.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Packets {
    Any,
    OneRtt,
}

/// What may hold a component's frames back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limit {
    /// Nothing. The component is asked to write into every packet, even when it does not ask for a packet of its own.
    None,
    /// Congestion control and pacing.
    Congestion,
    /// The same, but the component is asked to write into every packet that they permit.
    //= rfc9002/7#1
    CongestionOfAll,
}

type Wants = fn(&Connection, Instant, SpaceId) -> bool;
type Write = fn(&mut Connection, Instant, SpaceId, &mut PacketBuilder<'_>);

/// A component that writes frames.
#[derive(Clone, Copy)]
pub(super) struct Component {
    #[cfg(test)]
    pub(super) name: &'static str,
    packets: Packets,
    limit: Limit,
    /// Whether something waits to be sent in the space.
    pub(super) wants: Wants,
    /// Writes what waits, as far as the packet has room.
    pub(super) write: Write,
    /// The bytes of content that wait; 0 where they never are many.
    unsent: fn(&Connection) -> u64,
}

/// A row of the table. The name is for tests.
#[cfg_attr(not(test), expect(unused_variables, reason = "only tests name a component"))]
const fn row(name: &'static str, packets: Packets, limit: Limit, wants: Wants, write: Write) -> Component {
    Component {
        #[cfg(test)]
        name,
        packets,
        limit,
        wants,
        write,
        unsent: |_| 0,
    }
}

/// A component of the 1-RTT packets that is a field of the connection.
macro_rules! field {
    ($name:literal, $field:ident, $wants:ident, $write:ident) => {
        row(
            $name,
            Packets::OneRtt,
            Limit::Congestion,
            |connection, _, _| connection.$field.$wants(),
            |connection, _, _, packet| connection.$field.$write(packet),
        )
    };
}

/// All components, most urgent first.
pub(super) const COMPONENTS: [Component; 11] = [
    row("ACK", Packets::Any, Limit::None, wants_ack, write_ack),
    row("CRYPTO", Packets::Any, Limit::Congestion, wants_crypto, write_crypto),
    row("IMMEDIATE_ACK", Packets::OneRtt, Limit::Congestion, wants_immediate_ack, write_immediate_ack),
    field!("HANDSHAKE_DONE, NEW_TOKEN, PING", control_frames, wants, write),
    field!("ACK_FREQUENCY", ack_frequency, wants, write),
    field!("RETIRE_CONNECTION_ID", peer_cids, wants, write),
    field!("NEW_CONNECTION_ID", local_cids, wants, write),
    field!("stream control", streams, wants_control, write_control),
    Component {
        unsent: |connection| connection.datagrams.unsent(),
        ..field!("DATAGRAM", datagrams, wants, write)
    },
    Component {
        unsent: |connection| connection.streams.unsent(),
        ..field!("STREAM", streams, wants_data, write_data)
    },
    row("probe", Packets::Any, Limit::CongestionOfAll, wants_probe, settle_probe),
];

impl Component {
    /// Whether a packet of the space may carry its frames.
    #[inline]
    fn may_write(&self, space: SpaceId, permission: Permission) -> bool {
        //= rfc9000/12.5#1
        (self.packets == Packets::Any || space == SpaceId::Application)
            && (self.limit == Limit::None || permission == Permission::All)
    }
}

/// Whether any component has something to send in the space that may go.
#[inline]
pub(super) fn wants(connection: &Connection, now: Instant, space: SpaceId, permission: Permission) -> bool {
    let mut permitted = COMPONENTS.iter().filter(|component| component.may_write(space, permission));
    permitted.any(|component| (component.wants)(connection, now, space))
}

/// Bytes of content that wait in all components.
#[inline]
pub(super) fn unsent(connection: &Connection) -> u64 {
    COMPONENTS.iter().map(|component| (component.unsent)(connection)).sum()
}

/// Calls a function for one row after the other. Each row is known when it is compiled, so that a component which has nothing
/// to send costs a packet a comparison and no call.
macro_rules! each_row {
    ($do:ident $arguments:tt) => {
        each_row!($do $arguments 0 1 2 3 4 5 6 7 8 9 10)
    };
    ($do:ident $arguments:tt $($row:literal)+) => {
        const { assert!([$($row),+].len() == COMPONENTS.len(), "a row is missing") };
        $($do::<$row> $arguments;)+
    };
}

/// Lets the components write into a packet of the space, most urgent first.
#[inline]
pub(super) fn fill(
    connection: &mut Connection,
    now: Instant,
    space: SpaceId,
    permission: Permission,
    packet: &mut PacketBuilder<'_>,
) {
    each_row!(fill_from(connection, now, space, permission, packet));
}

/// Lets the component of one row write.
#[inline]
fn fill_from<const ROW: usize>(
    connection: &mut Connection,
    now: Instant,
    space: SpaceId,
    permission: Permission,
    packet: &mut PacketBuilder<'_>,
) {
    let Some(component) = COMPONENTS.get(ROW) else { return };
    if component.may_write(space, permission)
        && (component.limit != Limit::Congestion || (component.wants)(connection, now, space))
    {
        (component.write)(connection, now, space, packet);
    }
}

#[inline]
fn wants_ack(connection: &Connection, now: Instant, id: SpaceId) -> bool {
    connection.spaces.space(id).is_some_and(|space| space.acks.urgency(now) == AckUrgency::Immediate)
}

#[inline]
fn write_ack(connection: &mut Connection, now: Instant, id: SpaceId, packet: &mut PacketBuilder<'_>) {
    if let Some(space) = connection.spaces.space_mut(id) {
        space.write_ack(now, packet);
    }
}

#[inline]
fn wants_crypto(connection: &Connection, _: Instant, id: SpaceId) -> bool {
    connection.spaces.space(id).is_some_and(|space| space.crypto.wants())
}

fn write_crypto(connection: &mut Connection, _: Instant, id: SpaceId, packet: &mut PacketBuilder<'_>) {
    if let Some(space) = connection.spaces.space_mut(id) {
        space.crypto.write(packet);
    }
}

/// A probe asks for an acknowledgement at once, if the peer understands that.
#[inline]
fn wants_immediate_ack(connection: &Connection, _: Instant, _: SpaceId) -> bool {
    connection.spaces.application.owes_probe() && connection.ack_frequency.may_ask()
}

fn write_immediate_ack(connection: &mut Connection, _: Instant, _: SpaceId, packet: &mut PacketBuilder<'_>) {
    connection.ack_frequency.write_immediate_ack(packet);
}

#[inline]
fn wants_probe(connection: &Connection, _: Instant, id: SpaceId) -> bool {
    connection.spaces.space(id).is_some_and(|space| space.owes_probe())
}

/// Last, because a probe is a PING only where nothing else asks for an acknowledgement. RFC 9002 §7: a packet that leaves
/// although the window is full has no PING.
#[inline]
fn settle_probe(connection: &mut Connection, _: Instant, id: SpaceId, packet: &mut PacketBuilder<'_>) {
    if let Some(space) = connection.spaces.space_mut(id) {
        space.settle_probe(packet);
    }
}
