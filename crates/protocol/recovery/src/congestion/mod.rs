//! CongestionEvent control of one path: a closed enum, chosen at run time.
//!
//! The enum dispatches and holds nothing itself, because a model-based controller (BBR) shares no state with the
//! loss-based ones; those share [`window::LossWindow`]. Bytes in flight are the caller's sum over its spaces.
//!
//! | controller | waits for | marks |
//! |---|---|---|
//! | NewReno, CUBIC | loss or a classic mark; HyStart++ ends their first slow start | ECT(0) |
//! | BBR | nothing: it measures what the path delivers ([`delivery`]), and answers loss | ECT(0) |
//! | Prague | marks, which an L4S queue sets early | ECT(1) |
//!
//! Rejected: a trait object (an indirect call per acknowledgement, and no `Copy`), a type parameter (it spreads over the
//! whole connection, and users choose at run time).
//!
//! Beside a loss-based controller there may be a [`resume`] machine, which watches the same events and gives orders about the
//! window; and a judge ([`auto`]), who exchanges CUBIC for BBR and back.
//!
//! RFC 9002 §7, RFC 9406, RFC 9438, RFC 9959; draft-ietf-ccwg-bbr; draft-briscoe-iccrg-prague-congestion-control.

mod auto;
mod bbr;
mod cubic;
mod delivery;
mod events;
mod hystart;
mod jitter;
mod new_reno;
mod prague;
mod resume;
#[cfg(test)]
mod tests;
mod window;

use crate::rate::Rate;
use crate::rtt::Rtt;
use auto::Judge;
use base::net::Ecn;
use base::time::{Duration, Instant};
use bbr::{Bbr, TakeOver};
use core::ops::RangeInclusive;
use cubic::Cubic;
use new_reno::NewReno;
use prague::Prague;
use resume::{Orders, Resume};

pub use auto::Cause;
pub use events::{AckedBytes, CongestionCause, CongestionEvent};
pub use hystart::SlowStartEnd;
pub use resume::{
    BeforeSilence, MAX_JUMP, Outcome as ResumeOutcome, Phase as ResumePhase, Report as ResumeReport,
    SavedParameters, SavedParametersUpdate,
};
pub use window::{InitialWindow, MAX_WINDOW, SlowStart, initial_window, minimum_window};

/// Round trips' worth of window that leave a round trip in slow start. Source: RFC 9002 §7.7 asks for more than 1.
const SLOW_START_GAIN: f64 = 2.0;
/// The same in congestion avoidance, at least and at most. Source: RFC 9002 §7.7.
const AVOIDANCE_GAIN: RangeInclusive<f64> = 1.05..=1.25;
/// Prague's window is not to leave faster than the path takes it: its queue marks after a millisecond.
/// Source: draft-briscoe-iccrg-prague-congestion-control, pacing.
const LOW_DELAY_GAIN: f64 = 1.0;
/// A window that is only an attempt is spread over the whole round trip. Source: RFC 9959, pacing.
const TENTATIVE_GAIN: f64 = 1.0;
/// What leaves at once for Prague is no more than this of the rate: a burst is a queue, and its queue marks after a
/// millisecond. Source: the draft's reference implementation (a quarter of a millisecond).
const LOW_DELAY_BURST: Duration = Duration::from_micros(250);

/// The controllers to choose from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// RFC 9002 §7 and appendix B.
    NewReno,
    /// RFC 9438.
    Cubic,
    /// Version 3: draft-ietf-ccwg-bbr.
    Bbr,
    /// For queues of low delay (L4S): draft-briscoe-iccrg-prague-congestion-control.
    Prague,
    /// CUBIC, or BBR where the path speaks for it.
    #[default]
    Auto,
}

/// A path's congestion controller.
#[derive(Clone, Debug)]
pub struct Controller {
    kind: Kind,
    /// If careful resume is switched on, or a silence is being overcome.
    resume: Option<Box<Resume>>,
    chooser: Chooser,
}

/// What decides which controller is in use.
#[derive(Clone, Debug)]
enum Chooser {
    /// The configuration: it stays.
    Fixed,
    /// The path. The evidence is `None` before the first acknowledgement, and where the flow is idle and nothing has happened yet.
    Path(Option<Box<Judge>>),
}

impl Chooser {
    /// The judge of a flow that chooses, made if there is none.
    #[inline]
    fn judge(&mut self) -> Option<&mut Judge> {
        match self {
            Chooser::Fixed => None,
            Chooser::Path(judge) => Some(judge.get_or_insert_with(|| Box::new(Judge::new()))),
        }
    }

    /// The last losses are what they seem, whatever arrives.
    fn confirm(&mut self) {
        if let Chooser::Path(Some(judge)) = self {
            judge.confirm();
        }
    }
}

/// Which controller a flow uses that chooses, and why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    /// CUBIC or BBR.
    pub in_use: Algorithm,
    /// Why; `None` at the beginning.
    pub cause: Option<Cause>,
}

#[derive(Clone, Debug)]
enum Kind {
    NewReno(NewReno),
    Cubic(Cubic),
    /// Several times larger than the others, and with a log.
    Bbr(Box<Bbr>),
    /// Twice as large.
    Prague(Box<Prague>),
}

/// Calls the same method of whichever controller it is.
macro_rules! each {
    ($self:expr, $inner:ident => $call:expr) => {
        match $self {
            Kind::NewReno($inner) => $call,
            Kind::Cubic($inner) => $call,
            Kind::Bbr($inner) => $call,
            Kind::Prague($inner) => $call,
        }
    };
}

/// The window of a loss-based controller; `None` is BBR.
macro_rules! loss_window {
    ($self:expr, $window:ident) => {
        match $self {
            Kind::NewReno(inner) => Some(inner.$window()),
            Kind::Cubic(inner) => Some(inner.$window()),
            Kind::Prague(inner) => Some(inner.$window()),
            Kind::Bbr(_) => None,
        }
    };
}

/// Round trips' worth of window that leave in a round trip of congestion avoidance: hardly more than the window in the shortest. One that leaves
/// faster than a path without a queue takes it overflows a short queue, though the path has room for it. Where a queue stands that is no bound.
fn avoidance_gain(rtt: &Rtt) -> f64 {
    let gain = rtt.smoothed().as_nanos() as f64 / rtt.min().as_nanos() as f64;
    gain.clamp(*AVOIDANCE_GAIN.start(), *AVOIDANCE_GAIN.end())
}

impl Controller {
    /// At the initial window, in slow start. `mtu` is max_datagram_size in bytes.
    pub fn new(algorithm: Algorithm, mtu: u16) -> Controller {
        let kind = match algorithm {
            Algorithm::NewReno => Kind::NewReno(NewReno::new(mtu)),
            Algorithm::Cubic | Algorithm::Auto => Kind::Cubic(Cubic::new(mtu)),
            Algorithm::Bbr => Kind::Bbr(Box::new(Bbr::new(mtu))),
            Algorithm::Prague => Kind::Prague(Box::new(Prague::new(mtu))),
        };
        let chooser = if algorithm == Algorithm::Auto { Chooser::Path(None) } else { Chooser::Fixed };
        Controller { kind, resume: None, chooser }
    }

    /// How the first slow start begins and ends; with ten packets and by HyStart++ unless told otherwise. To be called before anything was
    /// sent. BBR's Startup begins the same way.
    pub fn with_slow_start(mut self, slow_start: SlowStart) -> Controller {
        match &mut self.kind {
            Kind::Bbr(bbr) => bbr.set_initial_window(slow_start.begin),
            Kind::NewReno(inner) => inner.window_mut().set_slow_start(slow_start),
            Kind::Cubic(inner) => inner.window_mut().set_slow_start(slow_start),
            Kind::Prague(inner) => inner.window_mut().set_slow_start(slow_start),
        }
        self
    }

    /// Observes what the path carries, and resumes from what another connection has found, if anything is known. To be called
    /// before anything was sent, after [`Controller::with_slow_start`]. BBR does neither. Source: RFC 9959.
    pub fn with_resume(mut self, saved: Option<SavedParameters>, mtu: u16) -> Controller {
        if let Some(window) = loss_window!(&self.kind, window) {
            self.resume = Some(Box::new(Resume::new(saved, window.initial(), mtu)));
        }
        self
    }

    /// What a silence is to bring back that is about to be told by `on_congestion`; `None` for BBR, whose model stays. `rtt` is the
    /// smallest round trip.
    pub fn before_silence(&self, rtt: Duration) -> Option<BeforeSilence> {
        let window = loss_window!(&self.kind, window)?;
        // A silence in the midst of coming back from another is the same one.
        let last = self.resume.as_ref().and_then(|resume| resume.silence());
        let now = BeforeSilence {
            window: window.size(),
            threshold: window.ssthresh().map_or(u64::MAX, |threshold| threshold.max(window.size())),
            rtt,
        };
        Some(last.filter(|last| last.window > now.window).unwrap_or(now))
    }

    /// Nothing arrived of all that was sent for a round trip at least. To be called after `on_congestion` and
    /// `on_persistent_congestion`.
    pub fn on_silence(&mut self, now: Instant, before: BeforeSilence, mtu: u16) {
        self.resume.get_or_insert_with(|| Box::new(Resume::for_silence(mtu))).on_silence(now, before);
    }

    /// What became of careful resume.
    pub fn resume_report(&self) -> ResumeReport {
        self.resume.as_ref().map(|resume| resume.report()).unwrap_or_default()
    }

    /// What another connection on the path is to know, as of now; `None` without careful resume, or if there is nothing to
    /// say. Where packets are lost by chance, it is to begin as if nothing were known: a loss would end the jump, and the next loss what
    /// it has gained.
    pub fn saved_parameters(&self) -> Option<SavedParametersUpdate> {
        let resume = self.resume.as_ref()?;
        let is_lossy = self.choice().is_some_and(|choice| choice.cause == Some(Cause::RandomLoss));
        if is_lossy { resume.nothing_to_save() } else { resume.saved_parameters() }
    }

    /// Does as careful resume says.
    fn obey(&mut self, orders: Orders) {
        let Some(window) = loss_window!(&mut self.kind, window_mut) else { return };
        if let Some(size) = orders.window {
            window.set(size);
        }
        if let Some(threshold) = orders.threshold {
            window.set_threshold(threshold);
        }
    }

    /// Which one it is.
    pub fn algorithm(&self) -> Algorithm {
        match self.chooser {
            Chooser::Fixed => self.in_use(),
            Chooser::Path(_) => Algorithm::Auto,
        }
    }

    /// What a flow has chosen that chooses.
    pub fn choice(&self) -> Option<Choice> {
        let Chooser::Path(judge) = &self.chooser else { return None };
        Some(Choice { in_use: self.in_use(), cause: judge.as_ref().and_then(|judge| judge.cause()) })
    }

    /// Which one decides at present.
    pub fn in_use(&self) -> Algorithm {
        match self.kind {
            Kind::NewReno(_) => Algorithm::NewReno,
            Kind::Cubic(_) => Algorithm::Cubic,
            Kind::Bbr(_) => Algorithm::Bbr,
            Kind::Prague(_) => Algorithm::Prague,
        }
    }

    /// The mark that packets should leave with, where the path carries marks: for
    /// [`crate::ecn::EcnValidator::with_mark`]. Source: RFC 9331 §4.1.
    pub fn ecn_mark(&self) -> Ecn {
        match self.kind {
            Kind::Prague(_) => Ecn::Ect1,
            Kind::NewReno(_) | Kind::Cubic(_) | Kind::Bbr(_) => Ecn::Ect0,
        }
    }

    /// `bytes` of packets that count left at `now`, which is when they depart; `in_flight` includes them. May be called
    /// once for a whole train. Afterwards the pacing rate may be another if the path was idle before.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64, in_flight: u64) {
        each!(&mut self.kind, inner => inner.on_sent(now, bytes, in_flight));
        if self.resume.as_ref().is_some_and(|resume| resume.phase() != ResumePhase::Normal) {
            let window = self.window();
            let orders = self.resume.as_mut().map(|resume| resume.on_sent(now, bytes, in_flight, window));
            self.obey(orders.unwrap_or_default());
        }
    }

    /// An ACK frame newly acknowledged packets: one call for each frame, after its losses and marks were declared.
    pub fn on_ack(&mut self, now: Instant, acked: &AckedBytes) {
        match &mut self.resume {
            Some(resume) if resume.phase() == ResumePhase::Normal => {
                resume.observe(now, acked);
                let is_over = resume.is_over();
                self.control(now, acked);
                if is_over {
                    self.resume = None;
                }
            }
            Some(_) => self.control_resumed(now, acked),
            None => self.control(now, acked),
        }
        let Some(judge) = self.chooser.judge() else { return };
        let cause = judge.on_ack(now, acked).or_else(|| match &self.kind {
            Kind::Bbr(bbr) if bbr.overruns() => judge.on_overrun(),
            _ => None,
        });
        if let Some(cause) = cause {
            self.exchange(now, cause, acked);
        }
    }

    /// Beside careful resume, which gives orders.
    fn control_resumed(&mut self, now: Instant, acked: &AckedBytes) {
        let window = self.window();
        let orders = self.resume.as_mut().map(|resume| resume.on_ack(now, acked, window)).unwrap_or_default();
        self.control(now, &AckedBytes { app_limited: acked.app_limited || orders.hold, ..*acked });
        self.obey(orders);
        self.resume.take_if(|resume| resume.is_over());
    }

    /// The other controller goes on with what this one has learned.
    #[cold]
    fn exchange(&mut self, now: Instant, cause: Cause, acked: &AckedBytes) {
        let (window, mtu) = (self.window(), self.mtu());
        let Some(judge) = self.chooser.judge() else { return };
        let (before, min_rtt) = (judge.window_before(), judge.min_rtt());
        judge.on_changed(cause);
        let is_chance = judge.is_chance_known();
        // BBR is not resumed, and CUBIC begins with what BBR has measured.
        if let Some(resume) = &mut self.resume {
            resume.on_exchange();
        }
        self.resume.take_if(|resume| resume.is_over());
        if let Kind::Bbr(bbr) = &self.kind {
            let cubic = match judge.take_suspended() {
                Some(cubic) => cubic.go_on(now, acked),
                None => Cubic::take_over(mtu, bbr.pipe().min(window)),
            };
            self.kind = Kind::Cubic(cubic);
            return;
        }
        let is_full = cause == Cause::DeepQueue;
        // A full queue is emptied by a model that has no more than the path delivers: windows are larger than what is in flight when they grow.
        let rate = delivery::bandwidth(if is_full { acked.in_flight } else { window }, acked.rtt);
        let window = if is_full { window } else { window.max(before) };
        let bbr = Bbr::take_over(now, mtu, TakeOver { window, rate, min_rtt, is_full, is_chance });
        if let Kind::Cubic(cubic) = core::mem::replace(&mut self.kind, Kind::Bbr(Box::new(bbr))) {
            judge.suspend(cubic);
        }
    }

    /// max_datagram_size in bytes.
    fn mtu(&self) -> u16 {
        match &self.kind {
            Kind::Bbr(inner) => inner.mtu(),
            Kind::NewReno(inner) => inner.window().mtu(),
            Kind::Cubic(inner) => inner.window().mtu(),
            Kind::Prague(inner) => inner.window().mtu(),
        }
    }

    #[inline]
    fn control(&mut self, now: Instant, acked: &AckedBytes) {
        if acked.spurious > 0 {
            match &mut self.kind {
                Kind::NewReno(inner) => inner.on_spurious(acked),
                Kind::Cubic(inner) => inner.on_spurious(acked),
                Kind::Prague(inner) => inner.on_spurious(acked),
                // BBR looks for itself.
                Kind::Bbr(_) => {}
            }
        }
        if acked.bytes > 0 || (acked.spurious > 0 && matches!(self.kind, Kind::Bbr(_))) {
            each!(&mut self.kind, inner => inner.on_ack(now, acked));
        }
    }

    /// Gives back memory that acknowledgements to come would use again, of a connection that is idle.
    pub fn release_memory(&mut self) {
        if let Some(window) = loss_window!(&mut self.kind, window_mut) {
            window.release_memory();
        }
        self.chooser.confirm();
        if let Chooser::Path(judge) = &mut self.chooser {
            judge.take_if(|judge| !judge.has_evidence());
        }
    }

    /// CongestionEvent. Signs from before the last reduction change nothing. Source: RFC 9002 §7.3.2.
    pub fn on_congestion(&mut self, now: Instant, sign: &CongestionEvent) {
        let before = self.window();
        each!(&mut self.kind, inner => inner.on_congestion(now, sign));
        let window = self.window();
        if let Some(judge) = self.chooser.judge() {
            match sign.cause {
                CongestionCause::Loss => judge.on_lost(now, sign, before, window),
                // A queue that marks is no illusion.
                CongestionCause::EcnCe => judge.confirm(),
            }
        }
        let Some(size) = self.resume.as_mut().and_then(|resume| resume.on_congestion(window).window) else {
            return;
        };
        // What the controller concluded from a window that was not its own is void.
        each!(&mut self.kind, inner => inner.on_persistent_congestion());
        if let Some(window) = loss_window!(&mut self.kind, window_mut) {
            window.retreat(now, size);
        }
    }

    /// Persistent congestion: back to the minimum window. Call after `on_congestion`. Source: RFC 9002 §7.6.2.
    pub fn on_persistent_congestion(&mut self) {
        each!(&mut self.kind, inner => inner.on_persistent_congestion());
        if let Some(resume) = &mut self.resume {
            resume.on_persistent_congestion();
        }
        if let Some(judge) = self.chooser.judge() {
            judge.on_persistent_congestion();
        }
    }

    /// max_datagram_size changed. Source: RFC 9002 §7.2.
    pub fn on_mtu_change(&mut self, mtu: u16) {
        if let Some(resume) = &mut self.resume {
            resume.on_mtu_change(mtu);
        }
        // A window in packets of another size is nothing to return to.
        self.chooser.confirm();
        match &mut self.kind {
            Kind::Bbr(inner) => inner.on_mtu_change(mtu),
            Kind::NewReno(inner) => inner.window_mut().on_mtu_change(mtu),
            Kind::Cubic(inner) => inner.window_mut().on_mtu_change(mtu),
            Kind::Prague(inner) => inner.window_mut().on_mtu_change(mtu),
        }
    }

    /// The congestion window, in bytes; never below twice the largest datagram.
    #[inline]
    pub fn window(&self) -> u64 {
        match &self.kind {
            Kind::Bbr(inner) => inner.window(),
            Kind::NewReno(inner) => inner.window().size(),
            Kind::Cubic(inner) => inner.window().size(),
            Kind::Prague(inner) => inner.window().size(),
        }
    }

    /// Bytes that the window still has room for.
    #[inline]
    pub fn available(&self, in_flight: u64) -> u64 {
        self.window().saturating_sub(in_flight)
    }

    /// The slow start threshold, in bytes; `None` before any congestion, and always for BBR.
    pub fn ssthresh(&self) -> Option<u64> {
        loss_window!(&self.kind, window)?.ssthresh()
    }

    /// Whether the window doubles every round trip; for BBR: whether it is in Startup.
    pub fn is_in_slow_start(&self) -> bool {
        match &self.kind {
            Kind::Bbr(inner) => inner.state() == bbr::State::Startup,
            kind => loss_window!(kind, window).is_some_and(|window| window.is_in_slow_start()),
        }
    }

    /// How much of the rate may leave at once at most, where no burst is set; `None` is what suits the sender.
    pub fn longest_burst(&self) -> Option<Duration> {
        matches!(self.kind, Kind::Prague(_)).then_some(LOW_DELAY_BURST)
    }

    /// How fast the window may be used; for [`crate::pacer::Pacer::set_rate`] after every event that changes the window
    /// or the round-trip time. Without a sample there is no limit: the initial window may leave at once.
    pub fn pacing_rate(&self, rtt: &Rtt) -> Rate {
        if !rtt.has_sample() {
            return Rate::UNLIMITED;
        }
        if self.resume.as_ref().is_some_and(|resume| resume.phase() == ResumePhase::Unvalidated) {
            //= rfc9959/3.3#2
            return Rate::of_window(self.window(), rtt.smoothed(), TENTATIVE_GAIN);
        }
        match &self.kind {
            Kind::Bbr(inner) => match inner.pacing_rate() {
                Some(per_second) => Rate::of_model(per_second, rtt.smoothed()),
                None => Rate::of_window(self.window(), rtt.smoothed(), SLOW_START_GAIN),
            },
            _ if self.is_in_slow_start() => Rate::of_window(self.window(), rtt.smoothed(), SLOW_START_GAIN),
            Kind::Prague(_) => Rate::of_window(self.window(), rtt.smoothed(), LOW_DELAY_GAIN),
            Kind::NewReno(_) | Kind::Cubic(_) => {
                Rate::of_window(self.window(), rtt.smoothed(), avoidance_gain(rtt))
            }
        }
    }
}
