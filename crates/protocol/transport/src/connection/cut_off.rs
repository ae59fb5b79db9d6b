//! Whether the path has ended in the middle of an answer or of a request, which who receives it learns only by asking: it hears nothing, and
//! has nothing outstanding whose acknowledgement could be missing. So it sends a PING, and others as long as nothing comes. The sender's
//! next probe may be as far away as the silence was long (RFC 9002 §6.2.1); a packet of the receiver brings it forward. An ACK frame goes
//! along: those before may be lost, and a sender that lacks them repeats what is here already. So what is missing arrives within two probe
//! timeouts of any instant at which the path is back, and within little more than two round trips after a silence of some.
//!
//! A path may take what the receiver sends and nothing else, as a run of losses does. Then each probe of the sender ends the silence, and the
//! probes become rare. But they repeat what is here already. So who gets that asks as soon as no more comes: its acknowledgements were lost.
//!
//! PINGs are under congestion control, and fewer than one each round trip (RFC 8085 §3.1.2). After [`PATIENCE`] the probe timeouts are
//! left alone.
//!
//! A client that can go back to a path that it has left does not ask: a server to which the proof of the new address has not come sends
//! little, and questions without an answer would take the client back.
//!
//! A client that sends does not ask: its window is full of what is lost. The server asks for it. Both ask even if they have announced limits
//! whose acknowledgement is missing: probes for these become as rare as the sender's.
//!
//! Rejected: to ask whenever something is awaited and nothing comes. A stream of events would bring a PING for each of them.

use base::time::{Duration, Instant};

/// Parts received between two pauses that are a transfer, and not a message now and then: what an initial window holds, and
/// some more.
const TRANSFER: u32 = 16;
/// Probe timeouts without a packet after which a transfer seems to be cut off.
const PTOS: u64 = 2;
/// Of a long silence this part passes between two questions.
const PART: u64 = 16;
/// The longest silence in which it is asked again.
const PATIENCE: Duration = Duration::from_secs(10);

/// What has come so far. Counts wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) packets: u32,
    /// Frames whose content had come before.
    pub(super) repeated: u32,
    /// Parts of a transfer: packets to a client; to a server, which hears acknowledgements as well, KiB of content.
    pub(super) parts: u32,
}

/// What the receiver of a transfer knows of the silence.
#[derive(Clone, Copy, Debug)]
pub(super) struct CutOff {
    /// The idle period that was looked at last, by its beginning, and what was received until then.
    looked_at: Instant,
    received: Received,
    /// The path had ended then; and when it was asked last.
    is_cut_off: bool,
    asked_at: Instant,
}

impl CutOff {
    pub(super) fn new() -> CutOff {
        CutOff {
            looked_at: Instant::ZERO,
            received: Received { packets: 0, repeated: 0, parts: 0 },
            is_cut_off: false,
            asked_at: Instant::ZERO,
        }
    }

    /// Whether the path has ended, and nothing has come since.
    #[inline]
    pub(super) fn is_asking(&self, received: Received) -> bool {
        self.is_cut_off && received.packets == self.received.packets
    }

    /// Whether a transfer has come since it was looked last.
    #[inline]
    fn is_transfer(&self, received: Received) -> bool {
        received.parts.wrapping_sub(self.received.parts) >= TRANSFER
    }

    /// Whether something has come again since then.
    #[inline]
    fn is_repeated(&self, received: Received) -> bool {
        received.repeated != self.received.repeated
    }

    /// Whether a pause means that the path has ended, if something is awaited.
    #[inline]
    pub(super) fn would_be_cut_off(&self, received: Received) -> bool {
        self.is_transfer(received) || self.is_repeated(received)
    }

    /// When to look at the idle period that began then, if it was not looked at. What has come again leaves no doubt that a pause is longer than
    /// an `answer` should take.
    pub(super) fn look_at(
        &self,
        active_at: Instant,
        received: Received,
        pto: Duration,
        answer: Duration,
    ) -> Option<Instant> {
        let pause = if self.is_repeated(received) { answer } else { pto * PTOS };
        (self.looked_at != active_at).then(|| active_at + pause)
    }

    /// Looks at the idle period that began then; so much was received until now, of something that is not whole if it `is_open`. Whether the
    /// path has ended.
    pub(super) fn look(
        &mut self,
        now: Instant,
        active_at: Instant,
        received: Received,
        is_open: impl FnOnce() -> bool,
    ) -> bool {
        self.is_cut_off = self.would_be_cut_off(received) && is_open();
        (self.received, self.looked_at, self.asked_at) = (received, active_at, now);
        self.is_cut_off
    }

    /// When to ask again, if nothing was heard since: once an answer to the last question is overdue by an eighth of a round trip, which is
    /// `answer`; after a long silence less often, but a probe timeout and the delay of an acknowledgement later at most.
    pub(super) fn again_at(&self, answer: Duration, longest: Duration) -> Option<Instant> {
        let silence = self.asked_at.saturating_since(self.looked_at);
        let period = (silence / PART).max(answer).min(longest);
        (self.is_cut_off && silence < PATIENCE).then(|| self.asked_at + period)
    }

    /// It is asked again.
    pub(super) fn on_asked(&mut self, now: Instant) {
        self.asked_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PTO: Duration = Duration::from_millis(100);
    /// After so long a question is overdue, and so long lies between two at most.
    const ANSWER: Duration = Duration::from_millis(60);
    const LONGEST: Duration = Duration::from_millis(125);

    fn parts(parts: u32) -> Received {
        Received { packets: parts, repeated: 0, parts }
    }

    fn look(cut_off: &mut CutOff, now: Instant, active_at: Instant, received: u32) -> bool {
        cut_off.look(now, active_at, parts(received), || true)
    }

    fn ms(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn only_a_transfer_is_cut_off() {
        let mut cut_off = CutOff::new();
        assert_eq!(cut_off.look_at(ms(50), parts(15), PTO, ANSWER), Some(ms(250)));
        assert!(!look(&mut cut_off, ms(250), ms(50), 15), "few packets");
        assert_eq!(cut_off.look_at(ms(50), parts(15), PTO, ANSWER), None, "once for each idle period");
        assert_eq!(cut_off.again_at(ANSWER, LONGEST), None);
        assert!(!look(&mut cut_off, ms(500), ms(300), 30), "as few again");
        assert!(look(&mut cut_off, ms(900), ms(700), 46));
        assert_eq!(cut_off.again_at(ANSWER, LONGEST), Some(ms(960)));
        assert!(cut_off.is_asking(parts(46)) && !cut_off.is_asking(parts(47)), "until something comes");
        assert!(!cut_off.look(ms(2_000), ms(1_800), parts(100), || false), "all that was to come has come");
        assert!(!cut_off.is_asking(parts(100)));
    }

    /// Deleted, a run of losses that takes what the receiver sends could last as long as the sender's probes are rare.
    #[test]
    fn what_comes_again_is_a_sign() {
        let mut cut_off = CutOff::new();
        assert!(!look(&mut cut_off, ms(250), ms(50), 15));
        let again = |repeated| Received { repeated, ..parts(16) };
        assert_eq!(cut_off.look_at(ms(300), again(1), PTO, ANSWER), Some(ms(360)));
        assert!(cut_off.look(ms(360), ms(300), again(1), || true));
        assert_eq!(cut_off.look_at(ms(400), again(1), PTO, ANSWER), Some(ms(600)), "an acknowledgement, say");
        assert!(!cut_off.look(ms(600), ms(400), again(1), || true), "nothing came again");
        assert!(!cut_off.look(ms(760), ms(700), again(2), || false), "all is there");
    }

    /// Deleted, a silent server could get PINGs for ever, or the end of an outage could go unnoticed for as long again.
    #[test]
    fn questions_end() {
        let mut cut_off = CutOff::new();
        assert!(look(&mut cut_off, ms(200), ms(0), 100));
        let (mut asked, mut last) = (1, ms(200));
        while let Some(at) = cut_off.again_at(ANSWER, LONGEST) {
            let (period, silence) = (at.saturating_since(last), last.saturating_since(ms(0)));
            assert!((ANSWER..=LONGEST).contains(&period), "{period:?} after {silence:?}");
            assert_eq!(period == ANSWER, silence <= ANSWER * PART, "{period:?} after {silence:?}");
            cut_off.on_asked(at);
            (asked, last) = (asked + 1, at);
        }
        assert_eq!(asked, 90);
        assert!(last >= ms(10_000) && last < ms(10_000) + LONGEST, "{last:?}");
    }
}
