//! The first slow start of a flow: how full it makes the queue, what it loses, and how soon the link is full.
//!
//! The flow is watched for thirty round trips: long enough for a slow start with five slow rounds at its end, and too short for a
//! window that has been reduced to fill the queue again. What is lost in that time is slow start's.

use super::link_profile::LinkProfile;
use super::run::{begin, proceed, received};
use base::time::Duration;
use link::Node;
use recovery::congestion::{Algorithm, SlowStart};

/// Round trips watched.
const ROUNDS: u64 = 30;
/// Looks at the link in a round trip.
const SLICES: u64 = 8;
/// A link is full when this much of it is payload for a round trip. Headers and tags take 2.3 %.
const FULL: f64 = 0.9;

/// What a first slow start came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Startup {
    /// The longest wait in the queue, in bandwidth-delay products.
    pub peak: f64,
    /// Packets declared lost.
    pub lost: u64,
    /// Packets sent.
    pub sent: u64,
    /// Round trips until the link was full; `None` if it never was.
    pub full_after: Option<f64>,
    /// Payload delivered in order in all of the time, as a share of what the link could carry.
    pub used: f64,
}

/// Runs the first slow start of a flow alone, whose acknowledgements meet these nodes on their way.
///
/// # Errors
/// When the lab cannot be built, or the connection ends.
pub fn startup(
    link_profile: LinkProfile,
    algorithm: Algorithm,
    slow_start: SlowStart,
    on_return: &[Node],
) -> Result<Startup, String> {
    let (mut lab, handle) = begin(link_profile, (algorithm, slow_start), on_return)?;
    let slice = Duration::from_nanos(link_profile.rtt.as_nanos() / SLICES);
    let full = link_profile.product() as f64 * FULL;
    let mut history = vec![0];
    let mut full_after = None;
    for step in 1..=ROUNDS * SLICES {
        proceed(&mut lab, slice)?;
        history.push(received(&mut lab));
        let before = (history.len() - 1).saturating_sub(SLICES as usize);
        let round = history.last().unwrap_or(&0) - history.get(before).unwrap_or(&0);
        if full_after.is_none() && round as f64 >= full {
            full_after = Some(step as f64 / SLICES as f64);
        }
    }
    let counters = lab.client().connection(handle).map(|(connection, _)| *connection.counters());
    let counters = counters.unwrap_or_default();
    let (server, client) = lab.hosts();
    let wait = lab.network().borrow_mut().take_waits(client, server).percentile(100);
    let total = *history.last().unwrap_or(&0) as f64;
    Ok(Startup {
        peak: wait.as_secs_f64() / link_profile.rtt.as_secs_f64(),
        lost: counters.lost_packets,
        sent: counters.sent_packets,
        full_after,
        used: total / (link_profile.product() * ROUNDS) as f64,
    })
}
