//! When loss detection acts next, and how: pure functions over what the spaces and the path say.
//!
//! One timer serves both purposes. It is set to the earliest loss time if any space has one, else to the probe timeout.
//! The caller recomputes it after every packet sent or acknowledged and whenever keys come or go.
//!
//! RFC 9002 §6.1.2, §6.2, A.8, A.9.

mod back_off;
#[cfg(test)]
mod tests;

pub use back_off::{BackOff, PROBES, Probes};

use crate::packet::Space;
use crate::rtt::Rtt;
use base::time::{Duration, Instant};

/// No back-off is longer: 2^20 probe timeouts is longer than any idle timeout.
const MAX_BACK_OFF: u32 = 20;

/// What one packet-number space contributes. The default is a space without keys, or with nothing sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpaceTimers {
    /// [`crate::ledger::Ledger::loss_time`].
    pub loss_time: Option<Instant>,
    /// [`crate::ledger::Ledger::last_ack_eliciting_at`].
    pub last_ack_eliciting_at: Option<Instant>,
    /// [`crate::ledger::Ledger::ack_eliciting_in_flight`].
    pub ack_eliciting_in_flight: u32,
}

/// How far the handshake is, as far as probing depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshake {
    /// Not confirmed: the Application space is not probed. Source: RFC 9002 §6.2.1.
    Unconfirmed,
    /// Confirmed. Source: RFC 9001 §4.1.2.
    Confirmed,
}

/// Whether the peer may be held up by its amplification limit, so that we must go on sending although nothing is
/// outstanding. Only a client ever has to. Source: RFC 9002 §6.2.2.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressValidation {
    /// Our address is validated as far as we know: we are the server, or a Handshake packet was acknowledged, or the
    /// handshake is confirmed.
    Complete,
    /// It may not be, and we have no Handshake keys: the probe is an Initial packet.
    PendingInInitial {
        /// When the timer was last (re)started: the last packet sent or received.
        since: Instant,
    },
    /// It may not be, and we have Handshake keys: the probe is a Handshake packet.
    PendingInHandshake {
        /// As above.
        since: Instant,
    },
}

/// Whether we may send at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmplificationLimit {
    /// Room is left, or there is no limit.
    Clear,
    /// A server that has sent three times what it received: no probe can leave, so none is scheduled.
    Reached,
}

/// Everything that the timer depends on.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The spaces that there are: all, or the last ones of [`Space::ALL`].
    pub spaces: &'a [SpaceTimers],
    /// The path's estimate.
    pub rtt: &'a Rtt,
    /// The peer's max_ack_delay.
    pub max_ack_delay: Duration,
    /// How often the probe timeout doubles: by probe timeouts in a row without an acknowledgement. See [`BackOff::doublings`].
    pub doublings: u32,
    /// See [`Handshake`].
    pub handshake: Handshake,
    /// See [`AddressValidation`].
    pub address_validation: AddressValidation,
    /// See [`AmplificationLimit`].
    pub amplification: AmplificationLimit,
}

/// What to do when the timer expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Look for losses in this space.
    DetectLosses(Space),
    /// Send one or two ack-eliciting packets in this space, and count a probe timeout.
    Probe(Space),
    /// Nothing is outstanding: send one packet in this space so that the peer may send (an Initial is padded), and
    /// count a probe timeout.
    ProbeForPeer(Space),
}

/// A timer: when, and what then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeout {
    /// When it expires.
    pub at: Instant,
    /// What to do then.
    pub action: Action,
}

/// The timer of loss detection; `None` if there is nothing to wait for. Source: RFC 9002 A.8 (SetLossDetectionTimer).
pub fn next_timeout(inputs: &Inputs<'_>) -> Option<Timeout> {
    if let Some(timeout) = loss_timeout(inputs.spaces) {
        return Some(timeout);
    }
    //= rfc9002/6.2.2.1#1
    if inputs.amplification == AmplificationLimit::Reached {
        return None;
    }
    probe_timeout(inputs)
}

/// The spaces with their timers.
fn with_timers(spaces: &[SpaceTimers]) -> impl Iterator<Item = (Space, &SpaceTimers)> {
    Space::ALL.into_iter().skip(Space::ALL.len().saturating_sub(spaces.len())).zip(spaces)
}

/// The earliest loss time. Source: RFC 9002 A.8 (GetLossTimeAndSpace).
fn loss_timeout(spaces: &[SpaceTimers]) -> Option<Timeout> {
    with_timers(spaces)
        .filter_map(|(space, timers)| {
            Some(Timeout { at: timers.loss_time?, action: Action::DetectLosses(space) })
        })
        .min_by_key(|timeout| timeout.at)
}

/// The probe timeout. Source: RFC 9002 A.8 (GetPtoTimeAndSpace).
fn probe_timeout(inputs: &Inputs<'_>) -> Option<Timeout> {
    let span = backed_off(inputs.rtt.pto(Duration::ZERO), inputs.doublings);
    let earliest = with_timers(inputs.spaces)
        .filter(|(_, timers)| timers.ack_eliciting_in_flight > 0)
        .filter_map(|(space, timers)| {
            let delay = match (space, inputs.handshake) {
                // RFC 9002 §6.2.1: the peer may not have the keys to acknowledge yet.
                //= rfc9002/6.2.1#2
                (Space::Application, Handshake::Unconfirmed) => return None,
                (Space::Application, Handshake::Confirmed) => {
                    backed_off(inputs.max_ack_delay, inputs.doublings)
                }
                (Space::Initial | Space::Handshake, _) => Duration::ZERO,
            };
            let at = timers.last_ack_eliciting_at? + span + delay;
            Some(Timeout { at, action: Action::Probe(space) })
        })
        .min_by_key(|timeout| timeout.at);
    //= rfc9002/6.2.2.1#2
    earliest.or_else(|| probe_for_peer(inputs.address_validation, span))
}

/// RFC 9002 §6.2.2.1: nothing of ours can be probed, but a client keeps the server able to send. (The pseudocode asks
/// that nothing be in flight at all, and would leave a client waiting for ever that has only 0-RTT packets in flight.)
fn probe_for_peer(validation: AddressValidation, span: Duration) -> Option<Timeout> {
    let (since, space) = match validation {
        AddressValidation::Complete => return None,
        AddressValidation::PendingInInitial { since } => (since, Space::Initial),
        AddressValidation::PendingInHandshake { since } => (since, Space::Handshake),
    };
    Some(Timeout { at: since + span, action: Action::ProbeForPeer(space) })
}

/// `span`, doubled so often. Source: RFC 9002 §6.2.1.
pub fn backed_off(span: Duration, doublings: u32) -> Duration {
    span.saturating_shl(doublings.min(MAX_BACK_OFF))
}
