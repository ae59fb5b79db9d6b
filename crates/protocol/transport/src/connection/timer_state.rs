//! What the deadlines of a connection are computed from (timers.rs): when it was last active, and which timeouts passed.

use super::cut_off::CutOff;
use crate::config::TransportConfig;
use base::time::{Duration, Instant};
use recovery::ack::Eliciting;
use recovery::timers::BackOff;

/// What the deadlines are computed from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    /// The lower of both ends' idle timeouts; zero is none.
    pub(super) idle_timeout: Duration,
    /// When the idle period began. Source: RFC 9000 §10.1.
    pub(super) active_at: Instant,
    /// An ack-eliciting packet was sent since the last one was received.
    pub(super) asked: bool,
    /// `None` once the handshake is complete.
    pub(super) handshake_deadline: Option<Instant>,
    /// When the last probe timeout was.
    pub(super) probed_at: Instant,
    /// Probe timeouts in a row. Source: RFC 9002 §6.2.1.
    pub(super) back_off: BackOff,
    /// See [`Timers::take_answer`].
    owes_answer: bool,
    /// A PING is sent when the connection was quiet for so long.
    pub(super) keep_alive: Option<Duration>,
    /// PINGs sent since the peer has sent anything but acknowledgements.
    pub(super) pings: u32,
    /// Whether the path has ended in the middle of an answer.
    pub(super) cut_off: CutOff,
    /// The idle period in which memory was given back last, by its beginning.
    quiet_since: Instant,
}

/// A connection that was idle for so long gives memory back: longer than most pauses between the requests of a page.
const QUIET: Duration = Duration::from_secs(1);

impl Timers {
    pub(super) fn new(now: Instant, config: &TransportConfig) -> Timers {
        Timers {
            idle_timeout: config.idle_timeout,
            active_at: now,
            asked: false,
            handshake_deadline: Some(now + config.handshake_timeout),
            probed_at: now,
            back_off: BackOff::default(),
            owes_answer: false,
            keep_alive: config.keep_alive,
            pings: 0,
            cut_off: CutOff::new(),
            quiet_since: now,
        }
    }

    /// When the connection gives memory back, if it has not in this idle period.
    #[inline]
    pub(super) fn quiet_at(&self) -> Option<Instant> {
        (!self.is_quiet()).then(|| self.active_at + QUIET)
    }

    /// Whether memory was given back in this idle period.
    #[inline]
    pub(super) fn is_quiet(&self) -> bool {
        self.quiet_since == self.active_at
    }

    pub(super) fn on_quiet(&mut self) {
        self.quiet_since = self.active_at;
    }

    pub(super) fn started_at(&self) -> Instant {
        self.active_at
    }

    /// When the idle period began: something arrived, or was asked.
    pub(super) fn active_at(&self) -> Instant {
        self.active_at
    }

    pub(super) fn on_peer_idle_timeout(&mut self, peer: Duration) {
        //= rfc9000/10.1#1
        if !peer.is_zero() && (self.idle_timeout.is_zero() || peer < self.idle_timeout) {
            self.idle_timeout = peer;
        }
    }

    pub(super) fn on_handshake_complete(&mut self) {
        self.handshake_deadline = None;
    }

    #[inline]
    pub(super) fn on_authentic_packet(&mut self, now: Instant, eliciting: Eliciting) {
        self.active_at = now;
        self.asked = false;
        if eliciting == Eliciting::Yes {
            self.pings = 0;
        }
    }

    #[inline]
    pub(super) fn on_ack_eliciting_sent(&mut self, now: Instant) {
        //= rfc9000/10.1#3
        if !self.asked {
            self.asked = true;
            self.active_at = now;
        }
    }

    /// Whether the last probe timeout was not answered yet.
    pub(super) fn has_backed_off(&self) -> bool {
        self.back_off.timeouts() > 0
    }

    /// The peer is there: back-off ends. Source: RFC 9002 §6.2.1.
    pub(super) fn reset_back_off(&mut self) {
        self.back_off = BackOff::default();
    }

    /// The same by an acknowledgement, whose latest packet left at that time.
    pub(super) fn end_back_off(&mut self, sent_at: Instant) {
        self.owes_answer |= self.has_backed_off() && sent_at < self.probed_at;
        self.reset_back_off();
    }

    /// Whether the back-off has ended, since it was asked last, by an acknowledgement that says nothing of the probes.
    #[inline]
    pub(super) fn take_answer(&mut self) -> bool {
        core::mem::take(&mut self.owes_answer)
    }
}
