//! What a path has to do with the search for the largest packet that it carries; the search itself is `recovery::mtu`.
//! Source: RFC 9000 §14.3, §14.4; RFC 8899.
//!
//! A probe is a plan like any other, under congestion control and pacing. A datagram that our own interface refuses as too long
//! tells the search at once; its packet stays in flight until it is found lost, as if it had left.

use super::path::Path;
use base::time::{Duration, Instant};
use recovery::congestion::Algorithm;
use recovery::mtu::{FullLoss, MtuReport};

/// Probe timeouts after which a state of congestion control is too old to go back to. A path that carries no full packets any
/// more shows it in three rounds, of which each may need a timeout and the round trip of its probe.
const OLD_PTOS: u64 = 6;

impl Path {
    /// The handshake is confirmed: the search may begin.
    pub(super) fn start_mtu_search(&mut self, now: Instant) {
        self.mtu.start(now);
    }

    /// The peer, or our own interface, takes nothing larger.
    pub(super) fn on_size_limit(&mut self, limit: u16) {
        self.mtu.on_limit(limit);
        self.adopt_size();
    }

    /// Our own interface has turned down a datagram of so many bytes.
    pub(crate) fn on_size_refused(&mut self, now: Instant, size: u16) {
        self.mtu.on_refused(now, size);
        self.adopt_size();
    }

    /// The size of the padded probe that should leave now, if one should. One that would fill the window on its own has to
    /// wait: data waits behind it until it is lost. Source: RFC 9000 §14.4, RFC 8899 §3.
    #[inline]
    pub(crate) fn next_mtu_probe(&self, now: Instant) -> Option<u16> {
        let most = u16::try_from(self.congestion.window() / 2).unwrap_or(u16::MAX);
        self.mtu.next_probe(now, most).filter(|_| self.is_validated())
    }

    pub(crate) fn on_mtu_probe_sent(&mut self, now: Instant, size: u16) {
        self.mtu.on_probe_sent(now, size);
    }

    /// A probe of so many bytes arrived.
    pub(crate) fn on_mtu_probe_acked(&mut self, now: Instant, size: u16) {
        self.mtu.on_probe_acked(now, size);
        self.adopt_size();
    }

    /// A probe of so many bytes was lost.
    pub(crate) fn on_mtu_probe_lost(&mut self, now: Instant, size: u16) {
        self.mtu.on_probe_lost(now, size);
    }

    /// The size that every path is assumed to carry, in bytes: what must arrive is no larger.
    pub(crate) fn safe_packet_size(&self) -> u16 {
        self.mtu.floor()
    }

    /// Whether a packet is larger than every path is assumed to carry.
    #[inline]
    pub(crate) fn is_large(&self, size: u16) -> bool {
        self.mtu.is_large(size)
    }

    /// Whether a packet's fate speaks for the size in use.
    #[inline]
    pub(crate) fn is_full(&self, size: u16) -> bool {
        self.mtu.is_full(size)
    }

    /// A packet larger than every path is assumed to carry arrived.
    #[inline]
    pub(crate) fn on_large_acked(&mut self, pn: u64, size: u16) {
        self.mtu.on_large_acked(pn, size);
    }

    /// Full packets that were no probes were lost, the latest of them `pn`, when packets up to the number `sent` had left; to be
    /// told before congestion control hears of it. When it turns out that their size was the reason, congestion control goes
    /// back to where it was before the first of them, unless there were signs of congestion since then
    /// (`on_true_congestion`) or it is long ago. The loss at hand counts, in case it was congestion after all.
    pub(crate) fn on_full_lost(&mut self, now: Instant, pn: u64, sent: u64, max_ack_delay: Duration) {
        match self.mtu.on_full_lost(now, pn, sent) {
            FullLoss::Ordinary => {}
            // BBR's model goes on with what it has counted; it does not shrink much by these losses either.
            FullLoss::Suspicious if self.congestion.algorithm() == Algorithm::Bbr => self.before_hole = None,
            FullLoss::Suspicious => {
                let until = now + self.rtt.pto(max_ack_delay) * OLD_PTOS;
                self.before_hole = Some(Box::new((until, self.congestion.clone())));
            }
            FullLoss::BlackHole => {
                if let Some(before) = self.before_hole.take().filter(|before| now <= before.0) {
                    self.congestion = before.1;
                }
                self.adopt_size();
            }
        }
    }

    /// There is congestion that the size of packets does not explain: a mark, a lost packet that was not full, persistent
    /// congestion. What congestion control makes of it stays.
    #[inline]
    pub(crate) fn on_true_congestion(&mut self) {
        self.before_hole = None;
    }

    /// Nothing of the present size arrives any more: one probe timeout after another.
    pub(crate) fn on_black_hole(&mut self, now: Instant) {
        // Whatever the reason was, a window that was right before the silence is not known to be right after it.
        self.before_hole = None;
        self.mtu.on_silence(now);
        self.adopt_size();
    }

    /// What the search has found.
    pub(crate) fn mtu_report(&self) -> MtuReport {
        self.mtu.report()
    }

    fn adopt_size(&mut self) {
        if self.max_packet_size != self.mtu.size() {
            self.max_packet_size = self.mtu.size();
            self.congestion.on_mtu_change(self.max_packet_size);
            self.repace();
        }
    }
}
