//! The end of a connection: closing, draining, gone. Source: RFC 9000 §10.

use super::Connection;
use super::components::Components;
use crate::builder::PacketBuilder;
use crate::error::TransportError;
use crate::event::{CloseReason, Event};
use crate::path::Paths;
use crate::space::SpaceId;
use base::time::{Duration, Instant};
use wire::error::Code;
use wire::frame;

/// Where a connection is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Lifecycle {
    /// Handshaking or in use.
    Alive,
    /// We closed: packets are answered with CONNECTION_CLOSE, ever more rarely, until the deadline.
    Closing(Box<Closing>),
    /// The peer closed: nothing is sent until the deadline.
    Draining {
        /// When all state goes.
        until: Instant,
    },
    /// All state may go.
    Gone,
}

/// What a closing connection keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Closing {
    until: Instant,
    frame: CloseFrame,
    /// A CONNECTION_CLOSE waits to be sent.
    owed: bool,
    /// Packets received since the last answer, and how many the next answer takes.
    heard: u32,
    answer_after: u32,
}

/// The CONNECTION_CLOSE frame that we send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CloseFrame {
    Transport(TransportError),
    Application { code: u64, reason: Box<[u8]> },
}

impl Lifecycle {
    /// Whether nothing but the close is sent any more.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        !matches!(self, Lifecycle::Alive)
    }

    pub(super) fn is_gone(&self) -> bool {
        matches!(self, Lifecycle::Gone)
    }

    pub(super) fn owes_close(&self) -> bool {
        matches!(self, Lifecycle::Closing(closing) if closing.owed)
    }

    /// The frame that waits to be sent.
    pub(super) fn take_owed_close(&mut self) -> Option<CloseFrame> {
        let Lifecycle::Closing(closing) = self else { return None };
        core::mem::take(&mut closing.owed).then(|| closing.frame.clone())
    }

    /// When the state ends by itself.
    pub(super) fn deadline(&self) -> Option<Instant> {
        match self {
            Lifecycle::Closing(closing) => Some(closing.until),
            Lifecycle::Draining { until } => Some(*until),
            Lifecycle::Alive | Lifecycle::Gone => None,
        }
    }
}

impl Connection {
    /// Closes the connection: the peer is told `code` and `reason`, all streams end. Source: RFC 9000 §10.2.
    pub fn close(&mut self, now: Instant, code: u64, reason: &[u8]) {
        if self.lifecycle.is_over() {
            return;
        }
        let reason = reason.iter().take(MAX_REASON).copied().collect();
        self.start_closing(now, CloseFrame::Application { code, reason });
        self.tell_closed(CloseReason::Local { code });
    }

    /// Sends the CONNECTION_CLOSE of a closing connection once more, in case that the first was lost: for an endpoint that ends
    /// before the closing period is over and so cannot answer later packets. RFC 9000 §10.2.1 asks for a limit of the rate alone,
    /// and names answers as the usual occasion.
    pub fn repeat_close(&mut self) {
        if let Lifecycle::Closing(closing) = &mut self.lifecycle {
            closing.owed = true;
        }
    }

    /// Turns a client away during its handshake: it is told CONNECTION_REFUSED. Source: RFC 9000 §20.1.
    pub fn refuse(&mut self, now: Instant) {
        if self.lifecycle.is_over() {
            return;
        }
        let code = Code::CONNECTION_REFUSED;
        self.start_closing(now, CloseFrame::Transport(TransportError::new(code, "refused")));
        self.tell_closed(CloseReason::Local { code: code.0 });
    }

    /// The peer broke the protocol, or TLS failed.
    pub(super) fn fail(&mut self, now: Instant, error: TransportError) {
        if self.lifecycle.is_over() {
            return;
        }
        let reason = match self.handshake.failure.take() {
            Some(failure) => CloseReason::Tls { alert: failure.alert, reason: failure.to_string() },
            None => CloseReason::Violation(error),
        };
        self.start_closing(now, CloseFrame::Transport(error));
        self.tell_closed(reason);
    }

    fn start_closing(&mut self, now: Instant, frame: CloseFrame) {
        let until = self.over_at(now);
        let closing = Closing { until, frame, owed: true, heard: 0, answer_after: 1 };
        self.lifecycle = Lifecycle::Closing(Box::new(closing));
    }

    /// When the state of a connection goes that is closed now. A program waits for that, and one late answer in the handshake can make the
    /// estimate of a round trip many seconds.
    fn over_at(&self, now: Instant) -> Instant {
        //= rfc9000/10.2#1
        now + close_period(&self.paths, &self.components).min(MAX_CLOSED)
    }

    /// A CONNECTION_CLOSE arrived: drain. Source: RFC 9000 §10.2.2.
    pub(super) fn on_connection_close(&mut self, now: Instant, close: &frame::ConnectionClose<'_>) {
        let was_over = self.lifecycle.is_over();
        //= rfc9000/10.2.2#1
        self.lifecycle = Lifecycle::Draining { until: self.over_at(now) };
        if was_over {
            return;
        }
        let reason = printable(close.reason());
        self.tell_closed(match *close {
            frame::ConnectionClose::Application { code, .. } => CloseReason::PeerApplication { code, reason },
            frame::ConnectionClose::Transport { code, .. } => CloseReason::PeerTransport { code, reason },
        });
    }

    /// Source: RFC 9000 §10.3.1.
    pub(super) fn on_stateless_reset(&mut self, now: Instant) {
        let until = self.over_at(now);
        if !self.lifecycle.is_over() {
            self.tell_closed(CloseReason::StatelessReset);
        }
        //= rfc9000/10.3.1#3
        self.lifecycle = Lifecycle::Draining { until };
    }

    /// A packet arrived after the close. A closing connection repeats its CONNECTION_CLOSE after 1, 2, 4, … packets.
    pub(super) fn on_packet_while_closing(&mut self) {
        if let Lifecycle::Closing(closing) = &mut self.lifecycle {
            closing.heard = closing.heard.saturating_add(1);
            if closing.heard >= closing.answer_after {
                closing.heard = 0;
                //= rfc9000/10.2.1#1
                closing.answer_after = closing.answer_after.saturating_mul(2);
                closing.owed = true;
            }
        }
    }

    /// Ends at once and in silence: idle, or nothing to say it with.
    pub(super) fn finish(&mut self, reason: CloseReason) {
        if !self.lifecycle.is_over() {
            self.tell_closed(reason);
        }
        self.lifecycle = Lifecycle::Gone;
    }

    /// As `finish`, but the state goes with the next look at the time, so that the application hears the reason even when it
    /// comes up while it is not being asked.
    pub(super) fn fall_silent(&mut self, now: Instant, reason: CloseReason) {
        if !self.lifecycle.is_over() {
            self.tell_closed(reason);
        }
        self.lifecycle = Lifecycle::Draining { until: now };
    }

    fn tell_closed(&mut self, reason: CloseReason) {
        if let Some(trace) = &mut self.trace {
            trace.closed = Some(reason.clone());
        }
        self.events.push_back(Event::Closed(reason));
    }
}

/// A closed connection stays no longer.
const MAX_CLOSED: Duration = Duration::from_secs(10);

/// Three PTO: how long a closed connection stays, and keys that an update has replaced. Source: RFC 9000 §10.2, RFC 9001 §6.5.
pub(super) fn close_period(paths: &Paths, components: &Components) -> Duration {
    let max_ack_delay = components.ack_frequency.peer_max_ack_delay();
    let own = paths.active().rtt.pto(max_ack_delay);
    //= multipath/2.5#1
    components.lanes.as_ref().map_or(own, |lanes| own.max(lanes.longest_pto(max_ack_delay))) * 3
}

impl CloseFrame {
    /// Source: RFC 9000 §10.2.3, §19.19.
    pub(super) fn write(&self, space: SpaceId, packet: &mut PacketBuilder<'_>) {
        let frame = match self {
            CloseFrame::Transport(error) => frame::ConnectionClose::Transport {
                code: error.code,
                frame_type: error.frame,
                reason: error.reason.as_bytes(),
            },
            CloseFrame::Application { code, reason } if space == SpaceId::Application => {
                frame::ConnectionClose::Application { code: *code, reason }
            }
            // An application's code and words stay secret until the handshake has authenticated the peer.
            CloseFrame::Application { .. } => frame::ConnectionClose::Transport {
                //= rfc9000/10.2.3#2
                code: Code::APPLICATION_ERROR,
                frame_type: 0,
                reason: &[],
            },
        };
        let frame = frame.fitted(packet.remaining());
        if packet.remaining() >= frame.size() {
            frame.write(&mut packet.writer);
        }
    }
}

/// Longest reason that we send, in bytes.
const MAX_REASON: usize = 256;

/// What a peer said, fit for a terminal or a log: control characters and broken UTF-8 are replaced, the length is bounded.
fn printable(reason: &[u8]) -> String {
    let text = String::from_utf8_lossy(reason.get(..MAX_REASON).unwrap_or(reason));
    text.chars().map(|character| if character.is_control() { '\u{fffd}' } else { character }).collect()
}
