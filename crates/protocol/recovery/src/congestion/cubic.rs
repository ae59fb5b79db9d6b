//! CUBIC: after a reduction the window follows a cubic function of time that is flat around the size at which congestion
//! struck last, so that growth does not depend on the round-trip time; or NewReno's window where that is larger.
//!
//! Windows are in bytes and time in seconds, as floats; the fraction of a byte that a step leaves is carried over. The
//! time in which the window was not used (idle, application-limited) is taken out of the clock of the cubic function,
//! or else the window would jump when the application returns.
//! A reduction whose losses all prove spurious is undone, the curve with it.
//!
//! RFC 9438 §4.1 to §4.9, §5.8.

use super::events::{AckedBytes, CongestionEvent};
use super::window::{Growth, LossWindow};
use base::time::{Duration, Instant};

/// How aggressively the window grows. Source: RFC 9438 §5.
const C: f64 = 0.4;
/// What congestion leaves of the window. Source: RFC 9438 §4.6.
const BETA: f64 = 0.7;
/// NewReno's growth that on average equals its own with a reduction by half. Source: RFC 9438 §4.3.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// Most that one round trip may add, as a factor. Source: RFC 9438 §4.2.
const MAX_STEP: f64 = 1.5;

/// Where the current stage of congestion avoidance stands.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    /// When it began, moved on by the time in which the window was not used.
    start: Instant,
    /// Seconds from the start to the plateau.
    k: f64,
    /// NewReno's window in bytes, had it been here.
    reno: f64,
}

/// A window and its cubic function.
#[derive(Clone, Debug)]
pub(super) struct Cubic {
    window: LossWindow,
    course: WindowTarget,
    /// The course before the last reduction, if there was one.
    undo: Option<Box<WindowTarget>>,
    /// When the window was last seen in use or out of use.
    seen_at: Instant,
}

/// Where the window is to go.
#[derive(Clone, Copy, Debug)]
struct WindowTarget {
    /// The plateau, in bytes; 0 if there is none.
    w_max: f64,
    /// The window before the last reduction, in bytes.
    prior: f64,
    /// `None` until the first acknowledgement in congestion avoidance.
    epoch: Option<Epoch>,
    /// Part of a byte by which the window is larger than its size says.
    fraction: f64,
}

impl Cubic {
    pub(super) fn new(mtu: u16) -> Cubic {
        let course = WindowTarget { w_max: 0.0, prior: 0.0, epoch: None, fraction: 0.0 };
        Cubic { window: LossWindow::new(mtu), course, undo: None, seen_at: Instant::ZERO }
    }

    /// Goes on in congestion avoidance where another controller was.
    pub(super) fn take_over(mtu: u16, size: u64) -> Cubic {
        Cubic { window: LossWindow::take_over(mtu, size), ..Cubic::new(mtu) }
    }

    pub(super) const fn window(&self) -> &LossWindow {
        &self.window
    }

    pub(super) const fn window_mut(&mut self) -> &mut LossWindow {
        &mut self.window
    }

    /// Where the curve is flat, in bytes.
    #[cfg(test)]
    pub(super) const fn plateau(&self) -> f64 {
        self.course.w_max
    }

    #[inline]
    pub(super) fn on_sent(&mut self, now: Instant, bytes: u64, in_flight: u64) {
        self.window.on_sent(in_flight);
        if in_flight <= bytes {
            self.skip_time(now); // nothing was in flight: the path was idle until now
        }
    }

    pub(super) fn on_ack(&mut self, now: Instant, acked: &AckedBytes) {
        match self.window.on_ack(now, acked) {
            Growth::Barred => self.skip_time(now),
            Growth::Avoidance(0) => {}
            Growth::Avoidance(bytes) => self.grow(now, bytes, acked.rtt),
        }
        self.seen_at = self.seen_at.max(now);
    }

    fn grow(&mut self, now: Instant, bytes: u64, rtt: Duration) {
        let size = self.window.size() as f64 + self.course.fraction;
        let mtu = f64::from(self.window.step());
        let mut epoch = match self.course.epoch {
            Some(epoch) => epoch,
            None => self.start_epoch(now, size, mtu),
        };
        // More than a window at once tells no more than a window.
        let acked = (bytes as f64).min(size);
        // RFC 9438 §4.3: once past the old window, NewReno's own pace.
        let alpha = if epoch.reno >= self.course.prior { 1.0 } else { ALPHA };
        epoch.reno += alpha * mtu * acked / size;
        self.course.epoch = Some(epoch);

        let elapsed = now.saturating_since(epoch.start).as_secs_f64();
        let grown = if self.curve(elapsed, epoch.k, mtu) < epoch.reno {
            epoch.reno.max(size)
        } else {
            // RFC 9438 §4.4, §4.5: so far as to reach, in a round trip, where the curve will be then.
            let target = self.curve(elapsed + rtt.as_secs_f64(), epoch.k, mtu).clamp(size, size * MAX_STEP);
            size + (target - size) * acked / size
        };
        let whole = grown.floor();
        self.window.set(whole as u64);
        self.course.fraction = grown - whole;
    }

    /// W_cubic after `elapsed` seconds, in bytes. Source: RFC 9438 §4.2.
    fn curve(&self, elapsed: f64, k: f64, mtu: f64) -> f64 {
        let from_plateau = elapsed - k;
        C * mtu * from_plateau * from_plateau * from_plateau + self.course.w_max
    }

    fn start_epoch(&mut self, now: Instant, size: f64, mtu: f64) -> Epoch {
        self.course.w_max = self.course.w_max.max(size);
        Epoch { start: now, k: ((self.course.w_max - size) / mtu / C).cbrt(), reno: size }
    }

    /// The window was not in use since it was last seen: that time does not count. Source: RFC 9438 §5.8.
    fn skip_time(&mut self, now: Instant) {
        let unused = now.saturating_since(self.seen_at);
        if let Some(epoch) = &mut self.course.epoch {
            epoch.start = (epoch.start + unused).min(now);
        }
        self.seen_at = self.seen_at.max(now);
    }

    pub(super) fn on_congestion(&mut self, now: Instant, sign: &CongestionEvent) {
        if !self.window.start_recovery(now, sign) {
            return;
        }
        self.undo = Some(Box::new(self.course));
        let size = self.window.size() as f64;
        // RFC 9438 §4.7: a plateau lower than the last one makes room for newcomers.
        self.course.w_max = if size < self.course.w_max { size * (1.0 + BETA) / 2.0 } else { size };
        self.course.prior = size;
        self.course.epoch = None;
        self.course.fraction = 0.0;
        self.window.shrink((size * BETA) as u64);
    }

    /// Losses proved to be none. Source: RFC 9438 §4.9.2.
    pub(super) fn on_spurious(&mut self, acked: &AckedBytes) {
        if self.window.take_back(acked)
            && let Some(course) = self.undo.take()
        {
            self.course = *course;
        }
    }

    /// After a time in which another controller was in use, because of losses that have all arrived now.
    pub(super) fn go_on(mut self, now: Instant, acked: &AckedBytes) -> Cubic {
        self.on_spurious(&AckedBytes { spurious: u64::MAX, ..*acked });
        self.window.on_sent(acked.in_flight);
        self.skip_time(now);
        self
    }

    pub(super) fn on_persistent_congestion(&mut self) {
        // RFC 9438 §4.8: the next congestion avoidance starts on its plateau.
        self.course.w_max = 0.0;
        self.course.epoch = None;
        self.course.fraction = 0.0;
        self.window.collapse();
    }
}
