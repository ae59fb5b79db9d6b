//! Careful resume: a connection to where another one has been before tries half of what that one found the path to carry.
//!
//! ```text
//! Reconnaissance ──> Unvalidated ──> Validating ──> Normal
//!        │                │               │           ^
//!        │                └───────────────┴──> SafeRetreat
//!        └────────────────────────────────────────────┘
//! ```
//!
//! A machine beside a loss-based controller: it sees the same events first and gives orders about the window. Until the
//! initial window has arrived without a sign of congestion it is hardly different (Reconnaissance): once the first round trip is what
//! it was, a quarter of the remembered capacity may be under way, 32 packets at most. Then, if the round trip still
//! is what it was, the window jumps to half of the remembered capacity and does not grow (Unvalidated), paced over one round
//! trip. When that has been sent, has begun to be acknowledged, or a round trip has passed, the window becomes what is in
//! flight and slow start goes on (Validating), until all of it has arrived. A sign of congestion on the way shrinks the
//! window to half of what has arrived, and it stays there until the tentative packets have left the path (SafeRetreat).
//!
//! Beside it an observer measures what is to be remembered: the rate of delivery of a whole round trip times the smallest
//! round trip, which no queue inflates; the largest of the latest rounds, because rounds in which the application had less
//! to send say little.
//!
//! The same machine brings a connection back after silence: nothing of all that was sent for a round trip or longer arrived, which is
//! no queue's doing. The window shrinks as by any loss. If the initial window then arrives as fast as before, without a queue, half
//! of the window before the silence is tried, and the slow start threshold becomes what it was. Such a machine is made when
//! it is needed, and remembers nothing.
//!
//! Packets are told apart by the time at which they left, as recovery periods are: packets of one train are one. BBR has its
//! own notion of what a path carries and is not resumed; where it takes the place of another controller, the observer goes on.
//!
//! Where a round trip takes less than a millisecond there is nothing to observe, and the machine is over with the first one.
//! Rejected: jumping to the whole of what was remembered (the source forbids it); a jump where nothing is paced, on round
//! trips of less than a millisecond (slow start is over before it would help); a larger beginning before the first round trip is
//! known (another path may have the same addresses).
//!
//! RFC 9959 (draft-ietf-tsvwg-careful-resume-24).

#[cfg(test)]
mod tests;

use super::events::AckedBytes;
use super::window::{InitialWindow, initial_window, minimum_window};
use base::time::{Duration, Instant};

/// No jump is larger, in bytes, whatever was remembered: RFC 9959's max_jump.
pub const MAX_JUMP: u64 = 8 << 20;
/// Capacities of fewer initial windows than this are not worth remembering. Source: RFC 9959, observing.
const WORTHWHILE: u64 = 4;
/// What is under way until the initial window has arrived is at most so many packets, if the path carried more. RFC 9002 §7.2 has 10 for a
/// path of which nothing is known.
const LARGEST_BEGINNING: u64 = 32;
/// And at most this part of the remembered capacity.
const BEGINNING_DIVISOR: u64 = 4;
/// The part of the remembered capacity that is tried. Source: RFC 9959, setting the jump_cwnd.
const JUMP_DIVISOR: u64 = 2;
/// A jump to less than so many windows is not made: slow start is there a round trip later, and goes on, while it ends after a jump.
const WORTHWHILE_JUMP: u64 = 2;
/// A round trip of this part of the remembered one or less is another path's. Source: RFC 9959, minimum RTT too small.
const RTT_DIVISOR: u64 = 2;
/// And so is one of more than this many times the remembered one. Source: RFC 9959, examples, note 2.
const RTT_FACTOR: u64 = 10;
/// What a retreat leaves of what had arrived, for the window and for the threshold after it. Source: RFC 9959, safe retreat.
const RETREAT_DIVISOR: u64 = 2;
/// After silence a round trip that is longer than the shortest before, by such a part of it, tells of a queue.
const QUEUE_PART: u64 = 4;
/// Shorter round trips are not paced, and not worth a jump.
const SHORTEST_RTT: Duration = Duration::from_millis(1);
/// Rounds after which a maximum is forgotten, twice.
const ROUNDS_REMEMBERED: u32 = 16;

/// What one connection leaves to the next on the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedParameters {
    /// Bytes that the path carries in a round trip.
    pub capacity: u64,
    /// The smallest round trip.
    pub rtt: Duration,
    /// No jump is made after this. The path cache sets the limit. New parameters have none yet.
    pub valid_until: Instant,
}

/// Where careful resume stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Not in use, or over.
    #[default]
    Normal,
    /// The initial window is under way, and the path may turn out to be another.
    Reconnaissance,
    /// The window has jumped.
    Unvalidated,
    /// What the jump allowed is under way.
    Validating,
    /// It was too much.
    SafeRetreat,
}

/// How it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// It has not, or there was nothing to resume from.
    #[default]
    Open,
    /// The round trip is not the one that was remembered: no jump.
    OtherPath,
    /// CongestionEvent before the jump: none took place.
    Congested,
    /// The window had grown as far by itself, or nearly: no jump.
    NoGain,
    /// What was remembered became too old before there was enough to send: no jump.
    Expired,
    /// The jump was not made use of.
    RateLimited,
    /// What the jump allowed has arrived.
    Validated,
    /// CongestionEvent followed the jump.
    Retreated,
    /// BBR took over before the jump: none took place.
    Exchanged,
}

/// What became of careful resume on a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Where it stands.
    pub phase: Phase,
    /// The window that it jumped to, in bytes; 0 before or without a jump.
    pub jump: u64,
    /// How it ended.
    pub outcome: Outcome,
}

/// What a connection that ends has to say about what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedParametersUpdate {
    /// Remember this instead.
    Learned(SavedParameters),
    /// It was not made use of: it is as good as it was.
    Unused,
    /// Nothing was learned, or it proved wrong: forget it.
    Forget,
}

/// What the controller was like before nothing arrived for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BeforeSilence {
    /// The congestion window in bytes.
    pub window: u64,
    /// The slow start threshold in bytes; the window, at least.
    pub threshold: u64,
    /// The smallest round trip.
    pub rtt: Duration,
}

/// What the controller is to do besides, or instead of, its own. All in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Orders {
    /// The window does not grow by this acknowledgement.
    pub(super) hold: bool,
    /// The window from now on.
    pub(super) window: Option<u64>,
    /// Slow start ends at this window.
    pub(super) threshold: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Normal,
    Reconnaissance {
        saved: SavedParameters,
        arrived: u64,
    },
    /// Packets that left after `border` are tentative. `pipe` bytes have proved to fit.
    Unvalidated {
        saved: SavedParameters,
        border: Instant,
        entered: Instant,
        rtt: Duration,
        pipe: u64,
    },
    /// The tentative packets left until `last`.
    Validating {
        last: Instant,
        pipe: u64,
    },
    SafeRetreat {
        last: Instant,
        pipe: u64,
    },
}

/// The machine and the observer of one path.
#[derive(Clone, Debug)]
pub(super) struct Resume {
    state: State,
    outcome: Outcome,
    jump: u64,
    given: bool,
    /// Made for a silence only.
    is_for_silence: bool,
    /// What is to be restored.
    silence: Option<BeforeSilence>,
    min_rtt: Option<Duration>,
    /// When the latest packets left.
    last_sent: Instant,
    observer: Observer,
    initial: InitialWindow,
    mtu: u16,
}

impl Resume {
    /// Observes; and resumes, if there is something to resume from, once what the connection begins with has arrived.
    pub(super) fn new(saved: Option<SavedParameters>, initial: InitialWindow, mtu: u16) -> Resume {
        Resume {
            state: saved.map_or(State::Normal, |saved| State::Reconnaissance { saved, arrived: 0 }),
            outcome: Outcome::Open,
            jump: 0,
            given: saved.is_some(),
            is_for_silence: false,
            silence: None,
            min_rtt: None,
            last_sent: Instant::ZERO,
            observer: Observer::default(),
            initial,
            mtu,
        }
    }

    /// Observes nothing, and resumes nothing but what a silence has interrupted.
    pub(super) fn for_silence(mtu: u16) -> Resume {
        Resume { is_for_silence: true, ..Resume::new(None, InitialWindow::default(), mtu) }
    }

    /// Nothing arrived for a while, and the controller has shrunk its window. What left until now is no part of a jump.
    pub(super) fn on_silence(&mut self, now: Instant, before: BeforeSilence) {
        self.last_sent = self.last_sent.max(now);
        if self.state != State::Normal {
            return;
        }
        let BeforeSilence { window, rtt, .. } = before;
        let valid_until = Instant::FAR_FUTURE;
        let saved = SavedParameters { capacity: window, rtt, valid_until };
        self.state = State::Reconnaissance { saved, arrived: 0 };
        (self.silence, self.min_rtt) = (Some(before), None);
    }

    /// What is still to be restored.
    pub(super) fn silence(&self) -> Option<BeforeSilence> {
        self.silence
    }

    /// Whether it has nothing to do any more.
    pub(super) fn is_over(&self) -> bool {
        self.state == State::Normal && (self.is_for_silence || !self.given && self.is_too_short())
    }

    /// Whether the path's round trip is too short for any of this.
    fn is_too_short(&self) -> bool {
        self.min_rtt.is_some_and(|rtt| rtt < SHORTEST_RTT)
    }

    pub(super) fn report(&self) -> Report {
        Report { phase: self.phase(), jump: self.jump, outcome: self.outcome }
    }

    pub(super) fn phase(&self) -> Phase {
        match self.state {
            State::Normal => Phase::Normal,
            State::Reconnaissance { .. } => Phase::Reconnaissance,
            State::Unvalidated { .. } => Phase::Unvalidated,
            State::Validating { .. } => Phase::Validating,
            State::SafeRetreat { .. } => Phase::SafeRetreat,
        }
    }

    /// Another controller is in use from now on: what was to be tried is not, and the observer goes on.
    pub(super) fn on_exchange(&mut self) {
        let outcome = match self.state {
            State::Normal => return,
            State::Reconnaissance { .. } => Outcome::Exchanged,
            _ => Outcome::Retreated,
        };
        self.finish(outcome);
    }

    /// What was given is not to be remembered, and nothing else.
    pub(super) fn nothing_to_save(&self) -> Option<SavedParametersUpdate> {
        self.given.then_some(SavedParametersUpdate::Forget)
    }

    /// What is to be remembered, if the connection ends now. `None` if nothing was given and nothing learned.
    pub(super) fn saved_parameters(&self) -> Option<SavedParametersUpdate> {
        if self.is_for_silence {
            return None;
        }
        let least = WORTHWHILE * initial_window(self.mtu);
        let rtt = self.min_rtt.filter(|rtt| *rtt >= SHORTEST_RTT);
        let learned = rtt.zip(self.observer.capacity().filter(|capacity| *capacity >= least));
        let saved_parameters = match (self.phase(), learned) {
            (Phase::Reconnaissance, _) => SavedParametersUpdate::Unused,
            // What a retreat has seen is no measure of what is free now.
            //= rfc9959/3.5#1
            (Phase::SafeRetreat, _) => SavedParametersUpdate::Forget,
            (_, Some((rtt, capacity))) => SavedParametersUpdate::Learned(SavedParameters {
                capacity,
                rtt,
                valid_until: Instant::FAR_FUTURE,
            }),
            (_, None) if matches!(self.outcome, Outcome::OtherPath | Outcome::Retreated) => {
                SavedParametersUpdate::Forget
            }
            (_, None) => SavedParametersUpdate::Unused,
        };
        (self.given || matches!(saved_parameters, SavedParametersUpdate::Learned(_)))
            .then_some(saved_parameters)
    }

    fn finish(&mut self, outcome: Outcome) -> Orders {
        if outcome == Outcome::Retreated {
            // What the path seemed to carry until now is not what it carries.
            self.observer = Observer::default();
        }
        (self.state, self.outcome) = (State::Normal, outcome);
        let restored = match outcome {
            Outcome::NoGain | Outcome::RateLimited | Outcome::Validated => self.silence,
            _ => None,
        };
        self.silence = None;
        Orders { threshold: restored.map(|before| before.threshold), ..Orders::default() }
    }

    pub(super) fn on_mtu_change(&mut self, mtu: u16) {
        self.mtu = mtu;
    }

    /// `bytes` of packets that count left at `now`; `in_flight` and `window` include them.
    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64, in_flight: u64, window: u64) -> Orders {
        self.last_sent = self.last_sent.max(now);
        match self.state {
            // A round trip has passed, and no acknowledgement has told so: these packets are the first for a while, and
            // what the jump is worth is what had left before them.
            State::Unvalidated { pipe, entered, rtt, .. } if now.saturating_since(entered) > rtt => {
                let before = in_flight.saturating_sub(bytes);
                if self.is_used(before, pipe) {
                    self.validate(in_flight, pipe, window)
                } else {
                    self.take_back(pipe, window)
                }
            }
            // RFC 9959, completed sending all unvalidated packets: less than a packet is left of the window.
            State::Unvalidated { pipe, border, .. }
                if now > border && in_flight.saturating_add(minimum_window(self.mtu) / 2) > window =>
            {
                self.validate(in_flight, pipe, window)
            }
            _ => Orders::default(),
        }
    }

    /// What an acknowledgement tells of the path.
    #[inline]
    pub(super) fn observe(&mut self, now: Instant, acked: &AckedBytes) {
        if let Some(latest) = acked.latest_rtt {
            self.min_rtt = Some(self.min_rtt.map_or(latest, |min| min.min(latest)));
        }
        self.observer.on_ack(now, acked, self.min_rtt);
    }

    /// Observes as well.
    pub(super) fn on_ack(&mut self, now: Instant, acked: &AckedBytes, window: u64) -> Orders {
        self.observe(now, acked);
        let latest = acked.latest_rtt;
        match &mut self.state {
            State::Normal => Orders::default(),
            State::Reconnaissance { saved, arrived } => {
                *arrived = arrived.saturating_add(acked.bytes);
                //= rfc9959/3.2#6
                let (saved, has_arrived) = (*saved, *arrived >= self.initial.bytes(self.mtu));
                if has_arrived {
                    self.confirm(now, acked, saved, window)
                } else {
                    self.begin(now, saved, window)
                }
            }
            State::Unvalidated { saved, border, entered, rtt, pipe } => {
                *pipe = pipe.saturating_add(acked.bytes);
                let is_other = latest.is_some_and(|latest| is_other_path(latest, saved.rtt));
                let is_over = acked.largest_sent_at > *border || now.saturating_since(*entered) > *rtt;
                let pipe = *pipe;
                //= rfc9959/3.3#3
                if is_other {
                    self.retreat(pipe, window)
                } else if is_over {
                    Orders { hold: true, ..self.validate(acked.in_flight, pipe, window) }
                } else {
                    Orders { hold: true, ..Orders::default() }
                }
            }
            State::Validating { last, pipe } => {
                *pipe = pipe.saturating_add(acked.bytes);
                if acked.largest_sent_at < *last {
                    return Orders::default();
                }
                // The jump and the round of slow start after it have brought the window to what was remembered.
                let orders = self.finish(Outcome::Validated);
                Orders { threshold: orders.threshold.or(Some(window)), ..orders }
            }
            State::SafeRetreat { last, pipe } => {
                *pipe = pipe.saturating_add(acked.bytes);
                let (last, pipe) = (*last, *pipe);
                if acked.largest_sent_at < last {
                    return Orders { hold: true, ..Orders::default() };
                }
                //= rfc9959/3.5#3
                let threshold = (pipe / RETREAT_DIVISOR).max(minimum_window(self.mtu));
                Orders { hold: true, threshold: Some(threshold), ..self.finish(Outcome::Retreated) }
            }
        }
    }

    /// Reconnaissance: the window of a path whose round trips are those that are remembered.
    fn begin(&self, now: Instant, saved: SavedParameters, window: u64) -> Orders {
        let is_known =
            |min| now <= saved.valid_until && min >= SHORTEST_RTT && !is_other_path(min, saved.rtt);
        if self.silence.is_some() || !self.min_rtt.is_some_and(is_known) {
            return Orders::default();
        }
        let most = LARGEST_BEGINNING * u64::from(self.mtu);
        let size = (saved.capacity / BEGINNING_DIVISOR).min(most);
        Orders { window: (size > window).then_some(size), ..Orders::default() }
    }

    /// The initial window has arrived: jumps if the path is confirmed, and the sender has more to send.
    fn confirm(&mut self, now: Instant, acked: &AckedBytes, saved: SavedParameters, window: u64) -> Orders {
        let Some(min) = self.min_rtt else { return Orders::default() };
        //= rfc9959/3.2#4
        if now > saved.valid_until {
            return self.finish(Outcome::Expired);
        }
        //= rfc9959/3.2#5
        let has_queue = self.silence.is_some() && min > saved.rtt + saved.rtt / QUEUE_PART;
        if is_other_path(min, saved.rtt) || has_queue {
            return self.finish(Outcome::OtherPath);
        }
        //= rfc9959/3.3#1
        let jump = (saved.capacity / JUMP_DIVISOR).min(MAX_JUMP);
        if jump <= window * WORTHWHILE_JUMP || min < SHORTEST_RTT {
            return self.finish(Outcome::NoGain);
        }
        if acked.app_limited {
            return Orders::default();
        }
        self.jump = jump;
        self.state = State::Unvalidated {
            saved,
            border: self.last_sent,
            entered: now,
            rtt: acked.rtt,
            pipe: acked.in_flight,
        };
        Orders { hold: true, window: Some(jump), threshold: None }
    }

    /// The tentative packets are under way. Source: RFC 9959, check flight_size.
    fn validate(&mut self, in_flight: u64, pipe: u64, window: u64) -> Orders {
        if !self.is_used(in_flight, pipe) {
            return self.take_back(pipe, window);
        }
        self.state = State::Validating { last: self.last_sent, pipe };
        Orders { window: Some(in_flight.min(window)), ..Orders::default() }
    }

    /// Whether more is under way than without the jump.
    fn is_used(&self, in_flight: u64, pipe: u64) -> bool {
        //= rfc9959/3.3#4
        in_flight >= self.initial.bytes(self.mtu) && in_flight > pipe
    }

    fn take_back(&mut self, pipe: u64, window: u64) -> Orders {
        let size = pipe.max(self.initial.bytes(self.mtu)).min(window);
        Orders { window: Some(size), ..self.finish(Outcome::RateLimited) }
    }

    fn retreat(&mut self, pipe: u64, window: u64) -> Orders {
        self.state = State::SafeRetreat { last: self.last_sent, pipe };
        self.outcome = Outcome::Retreated;
        //= rfc9959/3.5#2
        Orders { hold: true, window: Some((pipe / RETREAT_DIVISOR).min(window)), threshold: None }
    }

    /// A sign of congestion, which has brought the window to `window` already: the window to retreat to, if that is what it
    /// means.
    pub(super) fn on_congestion(&mut self, window: u64) -> Orders {
        match self.state {
            //= rfc9959/3.2#1
            State::Reconnaissance { .. } => self.finish(Outcome::Congested),
            //= rfc9959/3.4#1
            State::Unvalidated { pipe, .. } | State::Validating { pipe, .. } => self.retreat(pipe, window),
            State::Normal | State::SafeRetreat { .. } => Orders::default(),
        }
    }

    /// Whatever was tentative is over.
    pub(super) fn on_persistent_congestion(&mut self) {
        //= rfc9959/3.6#1
        let outcome = match self.state {
            State::Normal => return,
            State::Reconnaissance { .. } => Outcome::Congested,
            _ => Outcome::Retreated,
        };
        self.finish(outcome);
    }
}

fn is_other_path(rtt: Duration, saved: Duration) -> bool {
    rtt <= saved / RTT_DIVISOR || rtt > saved * RTT_FACTOR
}

/// What the path has delivered in a round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Observer {
    round_start: Option<Instant>,
    bytes: u64,
    rounds: u32,
    /// The largest of the latest rounds, and of those before.
    best: [u64; 2],
}

impl Observer {
    #[inline]
    fn on_ack(&mut self, now: Instant, acked: &AckedBytes, min_rtt: Option<Duration>) {
        let start = *self.round_start.get_or_insert(now);
        self.bytes = self.bytes.saturating_add(acked.bytes);
        if acked.largest_sent_at < start {
            return;
        }
        // A round trip has passed since a packet left; it may have been prolonged by a queue, which carries nothing.
        let (span, rtt) = (now.saturating_since(start), min_rtt.unwrap_or(Duration::ZERO));
        let part = rtt.as_nanos() as f64 / span.max(rtt).as_nanos().max(1) as f64;
        self.best[0] = self.best[0].max((self.bytes as f64 * part) as u64);
        (self.round_start, self.bytes) = (Some(now), 0);
        self.rounds += 1;
        if self.rounds == ROUNDS_REMEMBERED {
            self.rounds = 0;
            self.best = [0, self.best[0]];
        }
    }

    fn capacity(&self) -> Option<u64> {
        Some(self.best[0].max(self.best[1])).filter(|capacity| *capacity > 0)
    }
}
