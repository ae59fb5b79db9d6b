//! What becomes of a datagram: the arithmetic of a link, without sockets and clocks.
//!
//! A datagram waits in the queue, is serialised at the rate, may be lost on the line, and arrives after the delay. The queue is
//! a single number, the time at which the line will be free: what waits is the rate times what is left until then. Every UDP or TCP
//! datagram draws once from the loss sequence, whatever else becomes of it, so the n-th datagram's luck depends on the seed
//! and on n alone. Late and doubled datagrams draw from sequences of their own.
//!
//! Times are nanoseconds of any clock that does not go backwards.

use base::rng::Rng;

use super::options::LinkOptions;

const NANOS: u128 = 1_000_000_000;

/// What the judge must know of a datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// Its frame on the line, in bytes.
    pub(crate) frame_bytes: u64,
    /// Its IP packet in bytes if it is UDP or TCP, which take part in the lottery. Of a TCP super-packet, its largest segment's.
    pub(crate) ip_bytes: Option<u32>,
}

/// What becomes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DatagramOutcome {
    /// Longer than the black hole's limit.
    BlackHole,
    /// Longer than the far host's MTU.
    TooLong,
    /// The queue is full.
    Overflowed,
    /// Lost on the line.
    Lost,
    /// Arrives, in order.
    Arrives { at: u64 },
    /// Arrives twice, in order.
    Doubled { at: u64 },
    /// Arrives behind its successors.
    Late { at: u64 },
}

/// One direction's state.
#[derive(Debug)]
pub(crate) struct LinkState {
    options: LinkOptions,
    losses: Rng,
    other_events: Rng,
    is_bad: bool,
    line_free_at: u64,
    jitter: u64,
    last_arrival: u64,
    /// The far host's MTU.
    mtu: u32,
}

impl LinkState {
    pub(crate) fn new(options: LinkOptions) -> LinkState {
        let mut losses = Rng::from_u64(options.seed);
        let other_events = losses.fork();
        let (line_free_at, jitter, last_arrival) = (0, 0, 0);
        LinkState {
            options,
            losses,
            other_events,
            is_bad: false,
            line_free_at,
            jitter,
            last_arrival,
            mtu: u32::MAX,
        }
    }

    /// The far host takes IP packets of up to `mtu` bytes.
    pub(crate) fn limit(&mut self, mtu: u32) {
        self.mtu = mtu;
    }

    /// New options. The sequences go on where they are, unless the seed is new. What is under way stays as it was decided.
    pub(crate) fn change(&mut self, options: &LinkOptions) {
        if options.seed != self.options.seed {
            self.losses = Rng::from_u64(options.seed);
            self.other_events = self.losses.fork();
            self.is_bad = false;
        }
        if options.rate_bits.is_none() {
            self.line_free_at = 0;
        }
        // A shorter delay is not held up by what travels with the longer one.
        self.last_arrival = 0;
        self.options = options.clone();
    }

    /// A frame begins: its datagrams share one draw of jitter.
    pub(crate) fn begin_frame(&mut self) {
        let span = nanos(self.options.jitter);
        self.jitter = if span == 0 { 0 } else { self.other_events.below(span + 1) };
    }

    /// Decides on the next datagram, which came at `now`.
    pub(crate) fn decide(&mut self, now: u64, datagram: Datagram) -> DatagramOutcome {
        let is_lost_on_line = datagram.ip_bytes.is_some() && self.draws_loss();
        if let (Some(bytes), Some(limit)) = (datagram.ip_bytes, self.options.drops_above)
            && bytes > limit
        {
            return DatagramOutcome::BlackHole;
        }
        let Some(sent_at) = self.serialise(now, datagram.frame_bytes) else {
            return DatagramOutcome::Overflowed;
        };
        if is_lost_on_line {
            return DatagramOutcome::Lost;
        }
        // The far host drops it, so it takes its time on the line.
        if datagram.ip_bytes.is_some_and(|bytes| bytes > self.mtu) {
            return DatagramOutcome::TooLong;
        }
        let at = sent_at
            .saturating_add(nanos(self.options.delay))
            .saturating_add(self.jitter)
            .max(self.last_arrival);
        if datagram.ip_bytes.is_some() {
            if let Some(reorder) = self.options.reorder
                && chance(&mut self.other_events, reorder.share)
            {
                return DatagramOutcome::Late { at: at.saturating_add(nanos(reorder.by)) };
            }
            if chance(&mut self.other_events, self.options.duplicate) {
                self.last_arrival = at;
                return DatagramOutcome::Doubled { at };
            }
        }
        self.last_arrival = at;
        DatagramOutcome::Arrives { at }
    }

    fn draws_loss(&mut self) -> bool {
        let is_lost = chance(&mut self.losses, self.options.loss);
        let Some(burst) = self.options.burst else { return is_lost };
        let turns = if self.is_bad { burst.ends } else { burst.begins };
        self.is_bad ^= chance(&mut self.losses, turns);
        is_lost || self.is_bad
    }

    /// When the datagram's last bit is sent, or none if it finds no room in the queue.
    fn serialise(&mut self, now: u64, bytes: u64) -> Option<u64> {
        let Some(rate) = self.options.rate_bits.filter(|rate| *rate > 0) else { return Some(now) };
        let begins = self.line_free_at.max(now);
        let waiting_bytes = u128::from(begins - now) * u128::from(rate) / (8 * NANOS);
        if begins > now && waiting_bytes + u128::from(bytes) > u128::from(self.options.queue_bytes) {
            return None;
        }
        let takes = (u128::from(bytes) * 8 * NANOS).div_ceil(u128::from(rate));
        self.line_free_at = begins.saturating_add(u64::try_from(takes).unwrap_or(u64::MAX));
        Some(self.line_free_at)
    }
}

/// Nothing is drawn for what cannot happen, so that an option that is not used costs nothing.
fn chance(rng: &mut Rng, share: f64) -> bool {
    /// 2^53: how many different numbers there are from 0 to 1 in equal steps.
    const STEPS: f64 = 9_007_199_254_740_992.0;
    share > 0.0 && ((rng.next_u64() >> 11) as f64) < share * STEPS
}

fn nanos(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
