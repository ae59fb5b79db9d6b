//! The states, and how fast and how far each of them goes. Source: the draft, §5.1, §5.6.1.

/// The states of the machine. Source: the draft, §5.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::congestion) enum State {
    /// Doubles its rate each round.
    Startup,
    /// Lets the queue of Startup drain.
    Drain,
    /// Sends slower than the path delivers.
    Down,
    /// Sends as fast as the path delivers.
    Cruise,
    /// Fills the pipe for a round, before it probes.
    Refill,
    /// Sends faster than the path delivers, to see whether there is more.
    Up,
    /// Empties the pipe to measure the round trip.
    ProbeRtt,
}

impl State {
    pub(super) const fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    pub(super) const fn is_probing_up(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }

    /// Hundredths of the bandwidth at which it sends. Source: the draft, §5.6.1.
    pub(super) const fn pacing_gain(self) -> u64 {
        match self {
            State::Startup => 277,
            State::Drain => 50,
            State::Down => 90,
            State::Cruise | State::Refill | State::ProbeRtt => 100,
            State::Up => 125,
        }
    }

    /// Hundredths of the bandwidth-delay product that may be in flight. Source: the draft, §5.6.1.
    pub(super) const fn window_gain(self) -> u64 {
        match self {
            State::Startup | State::Drain | State::Down | State::Cruise | State::Refill => 200,
            State::Up => 225,
            State::ProbeRtt => 50,
        }
    }
}
