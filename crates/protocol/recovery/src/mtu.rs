//! The search for the largest packet that a path carries. Source: RFC 9000 §14.3, §14.4; RFC 8899 §5.
//!
//! Pure: it says which probe is due and is told what became of it. Sizes are bytes of UDP payload.
//!
//! *Fast*: probes of all common sizes leave together, the largest first, so that the smaller ones, which are more likely to
//! arrive, show the loss of the larger. Below the smallest size that was lost (a suspect) up to three sizes in between are
//! tried at once, together with the suspect itself, until the largest size that passed is within one percent of the
//! smallest that failed. Where the largest is a common one, the size one percent above it is among them, so that a path which
//! carries no more shows it without narrowing down. A size has failed when three probes of it were lost, each a round trip
//! after the one before; so a burst of loss is not taken for a limit. A server begins with a single early probe of Ethernet's size, behind
//! its handshake messages; the others follow when the handshake is confirmed and it is overdue. *Classic* is the search that LiteSpeed published: one
//! probe at a time, a second between two of one size; without a ceiling the Ethernet maximum first, then, or at once where a
//! ceiling is given, binary search.
//!
//! Invariants: `floor <= works <= ceiling`; `works < fails <= ceiling + 1`; a search sends at most [`MOST_PROBES`] probes and
//! remembers a fixed number of sizes. After a search, and after a black hole (black_hole.rs), it rests (PMTU_RAISE_TIMER, RFC 8899
//! §5.1.1). Nothing wakes a quiet connection at the end of the rest: the next search begins with the next packet. A silent connection
//! gains nothing by larger packets, and a timer would keep each idle connection of a server awake, and its peer's radio.

mod black_hole;
mod probed_sizes;
#[cfg(test)]
mod tests;

use base::time::{Duration, Instant};
use black_hole::{BlackHoleDetector, BlackHoleSign};
use probed_sizes::{Loss, ProbedSizes};

/// Between two probes of one size in the classic search.
const CLASSIC_WAIT: Duration = Duration::from_secs(1);
/// How long a finished search rests before it tries larger sizes again. Source: RFC 8899 §5.1.1 (PMTU_RAISE_TIMER).
const RAISE: Duration = Duration::from_secs(600);
/// Probes of one search at most; what is confirmed by then must do.
pub const MOST_PROBES: u8 = 60;
/// When the handshake is confirmed, the early probe has been under way for a round trip: it is given a sixteenth of that more, before
/// other sizes take their share of the first flight, which is paced over half a round trip.
const EARLY_PATIENCE: u64 = 16;
/// Sizes between two others that are tried at once.
const POINTS: u16 = 3;

/// How sizes are tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Not at all: packets have the floor's size if one is given, else what an IP packet of 1,280 bytes holds, the smallest MTU
    /// of IPv6: 1,252 bytes over IPv4 and 1,232 over IPv6. A path that does not carry these, a tunnel for example, gets the
    /// transport's `initial_packet_size` from the first black hole on.
    Off,
    /// One at a time, a second apart, as LiteSpeed published it.
    Classic,
    /// Several at once, a round trip apart.
    #[default]
    Fast,
}

/// What an embedder may set about the search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MtuConfig {
    /// How sizes are tried. Default: fast.
    pub mode: Mode,
    /// Payload, in bytes, that every path is assumed to carry: no packet size falls below it. Default: the transport's
    /// `initial_packet_size`.
    pub floor: Option<u16>,
    /// Largest payload that is tried, in bytes. Default: in classic mode the Ethernet maximum, in fast mode whatever the
    /// other limits permit.
    pub ceiling: Option<u16>,
}

/// Headers of IP and UDP, which decide what of a link's MTU is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Headers {
    /// 28 bytes.
    Ipv4,
    /// 48 bytes.
    Ipv6,
}

impl Headers {
    /// What a full Ethernet frame carries.
    const fn ethernet(self) -> u16 {
        match self {
            Headers::Ipv4 => 1_472,
            Headers::Ipv6 => 1_452,
        }
    }

    /// What the smallest MTU that IPv6 permits holds. Source: RFC 8200 §5.
    const fn smallest_mtu(self) -> u16 {
        match self {
            Headers::Ipv4 => 1_252,
            Headers::Ipv6 => 1_232,
        }
    }

    /// What common links carry: tunnels, Ethernet, jumbo frames, loopback devices. And a third of what IP permits: the
    /// window that holds a probe of a third holds the whole a round trip later.
    const fn common(self) -> [u16; 8] {
        let loopback = match self {
            Headers::Ipv4 => 65_507,
            Headers::Ipv6 => 65_488,
        };
        [1_280, 1_400, self.ethernet(), 4_096, 8_952, 16_336, loopback / 3 + 1, loopback]
    }
}

/// What the search has found, and what it cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MtuReport {
    /// Largest packet that is sent at present, in bytes of UDP payload.
    pub size: u16,
    /// How long the last search that came to its end took.
    pub took: Option<Duration>,
    /// Probes that were sent.
    pub probes_sent: u32,
    /// Probes that were lost.
    pub probes_lost: u32,
    /// Times that the path stopped carrying what it carried.
    pub black_holes: u32,
}

/// What the loss of full packets means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FullLoss {
    /// Nothing that was not known.
    Ordinary,
    /// No full packet that left later has arrived: a black hole may have begun.
    Suspicious,
    /// The path does not carry them any more: those that were lost since it was suspicious were lost by their size.
    BlackHole,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Probes may not leave yet.
    Waiting,
    /// Sizes are tried, since then.
    Searching { since: Instant },
    /// Nothing more to find until then.
    Resting { until: Instant },
}

/// The search on one path.
#[derive(Clone, Copy, Debug)]
pub struct MtuSearch {
    config: MtuConfig,
    headers: Headers,
    /// What every path is assumed to carry.
    floor: u16,
    /// Known to arrive.
    works: u16,
    /// The largest that is tried.
    ceiling: u16,
    /// The smallest that is known not to arrive; above the ceiling as long as none is.
    fails: u16,
    phase: Phase,
    probed_sizes: ProbedSizes,
    /// Probes of this search.
    probes: u8,
    /// No probe before that. While the search waits: when the early probe left.
    not_before: Instant,
    watch: BlackHoleDetector,
    report: MtuReport,
}

impl MtuSearch {
    /// Packets begin with `floor` bytes and never exceed `cap`, which stands for the interface and our own memory; where
    /// `config` names them, its floor and its ceiling count as well.
    pub fn new(config: MtuConfig, headers: Headers, (floor, cap): (u16, u16)) -> MtuSearch {
        let is_fixed = config.mode == Mode::Off && config.floor.is_none();
        let floor = config.floor.unwrap_or(floor).min(cap);
        let works = if is_fixed { floor.max(headers.smallest_mtu()).min(cap) } else { floor };
        let ceiling = match (config.mode, config.ceiling) {
            (_, Some(ceiling)) => ceiling.min(cap),
            (Mode::Classic, None) => headers.ethernet().min(cap),
            (Mode::Fast | Mode::Off, None) => cap,
        };
        let ceiling = ceiling.max(works);
        MtuSearch {
            config,
            headers,
            floor,
            works,
            ceiling,
            fails: ceiling.saturating_add(1),
            phase: Phase::Waiting,
            probed_sizes: ProbedSizes::default(),
            probes: 0,
            not_before: Instant::ZERO,
            watch: BlackHoleDetector::new(),
            report: MtuReport::default(),
        }
    }

    /// Largest packet that may be sent.
    #[inline]
    pub const fn size(&self) -> u16 {
        self.works
    }

    /// What every path is assumed to carry.
    #[inline]
    pub const fn floor(&self) -> u16 {
        self.floor
    }

    /// What was found, and what it cost.
    pub const fn report(&self) -> MtuReport {
        MtuReport { size: self.works, ..self.report }
    }

    /// No packet larger than this can arrive, because the peer does not take it (RFC 9000 §18.2, max_udp_payload_size) or
    /// our own interface does not.
    pub fn on_limit(&mut self, limit: u16) {
        //= rfc9000/14.2#1
        self.ceiling = self.ceiling.min(limit);
        self.floor = self.floor.min(limit);
        self.works = self.works.min(limit);
        self.fails = self.fails.min(self.ceiling.saturating_add(1));
        self.probed_sizes.forget_from(self.ceiling.saturating_add(1));
    }

    /// Probes may leave from now on.
    pub fn start(&mut self, now: Instant) {
        if self.phase == Phase::Waiting {
            self.begin(now);
        }
    }

    /// The probe that may leave before [`MtuSearch::start`]: one, as large as an Ethernet carries, where that is more than a percent
    /// above what is sent. So the first flight of data has the size that most paths carry.
    pub fn early_probe(&self, most: u16) -> Option<u16> {
        let size = self.headers.ethernet().min(self.ceiling);
        let is_first = self.phase == Phase::Waiting && self.probes == 0 && self.config.mode == Mode::Fast;
        (is_first && self.is_worth_it(size) && size <= most).then_some(size)
    }

    /// The probe that should leave now, of at most `most` bytes.
    #[inline]
    pub fn next_probe(&self, now: Instant, most: u16) -> Option<u16> {
        match self.phase {
            Phase::Waiting => None,
            Phase::Resting { .. } if self.config.mode == Mode::Off => None,
            Phase::Resting { until } if now < until || self.is_close(self.ceiling.saturating_add(1)) => None,
            Phase::Resting { .. } => {
                let mut next = *self;
                next.begin(now);
                next.probed_sizes.next(most)
            }
            Phase::Searching { .. } => {
                let may_leave = now >= self.not_before && self.probes < MOST_PROBES;
                self.probed_sizes.next(most).filter(|_| may_leave)
            }
        }
    }

    /// Probes under way, in bytes: those of which it is not known yet whether their size passes.
    pub fn under_way(&self) -> u64 {
        self.probed_sizes.under_way().map(u64::from).sum()
    }

    /// Whether a probe as large or larger is under way.
    pub fn is_under_way(&self, size: u16) -> bool {
        self.probed_sizes.under_way().any(|known| known >= size)
    }

    /// Whether a probe was lost whose size may still pass.
    pub fn has_suspect(&self) -> bool {
        self.probed_sizes.suspect().is_some()
    }

    /// The probe of this many bytes has left.
    pub fn on_probe_sent(&mut self, now: Instant, size: u16) {
        match self.phase {
            Phase::Resting { .. } => self.begin(now),
            Phase::Waiting => {
                self.probed_sizes.add(size);
                self.not_before = now;
            }
            Phase::Searching { .. } => {}
        }
        self.probed_sizes.on_sent(size);
        self.probes = self.probes.saturating_add(1);
        self.report.probes_sent = self.report.probes_sent.saturating_add(1);
        if self.config.mode == Mode::Classic {
            self.not_before = now + CLASSIC_WAIT;
        }
    }

    /// A probe of this many bytes arrived: one under way, or one that was thought lost.
    pub fn on_probe_acked(&mut self, now: Instant, size: u16) {
        let is_over = matches!(self.phase, Phase::Resting { .. });
        if !is_over && size > self.works && size <= self.ceiling {
            self.works = size;
            self.fails = self.fails.max(size.saturating_add(1));
            self.probed_sizes.on_passed(size);
            self.not_before = now;
            self.go_on(now);
        }
    }

    /// A probe of this many bytes was lost.
    pub fn on_probe_lost(&mut self, now: Instant, size: u16) {
        self.report.probes_lost = self.report.probes_lost.saturating_add(1);
        match self.probed_sizes.on_lost(size) {
            Loss::Unknown => return,
            Loss::Suspect => {}
            Loss::Failed => {
                self.fails = self.fails.min(size);
                self.not_before = now;
            }
        }
        self.go_on(now);
    }

    /// Our own interface has turned down a packet of this many bytes: no loss, but certain knowledge, unlike a message by ICMP,
    /// which anyone can forge. Source: RFC 8899 §3 (local MTU), RFC 9000 §14.2.1.
    pub fn on_refused(&mut self, now: Instant, size: u16) {
        if size <= self.floor || self.phase == Phase::Waiting {
            return;
        }
        if size <= self.works {
            // It took this size before: its MTU has changed.
            self.report.black_holes = self.report.black_holes.saturating_add(1);
            self.works = self.floor;
            // What was lost of late had a size that is given up.
            self.watch.clear();
            self.begin(now);
        }
        if matches!(self.phase, Phase::Searching { .. }) {
            self.fails = self.fails.min(size);
            self.probed_sizes.forget_from(size);
            self.not_before = now;
            self.go_on(now);
        }
    }

    /// The path has been replaced by one that is thought to be the same: what became of the probes under way will not be
    /// told.
    pub fn on_path_change(&mut self) {
        self.probed_sizes.recall();
    }

    /// Begins a search: what failed long ago may work by now. The early probe belongs to the first one.
    fn begin(&mut self, now: Instant) {
        self.not_before = if self.phase == Phase::Waiting && self.probes > 0 {
            now + now.saturating_since(self.not_before) / EARLY_PATIENCE
        } else {
            now
        };
        if self.phase != Phase::Waiting {
            self.probed_sizes.clear();
            self.probes = 0;
        }
        self.phase = Phase::Searching { since: now };
        self.fails = self.ceiling.saturating_add(1);
        match (self.config.mode, self.config.ceiling) {
            (Mode::Off, _) => {
                self.phase = Phase::Resting { until: Instant::FAR_FUTURE };
                return;
            }
            (Mode::Fast, _) => self.add_common(),
            // The published search tries the Ethernet maximum first; a ceiling below it, by the peer or by the interface,
            // takes its place.
            (Mode::Classic, None) if !self.is_close(self.fails) => self.probed_sizes.add(self.ceiling),
            (Mode::Classic, _) => {}
        }
        self.go_on(now);
    }

    /// The common sizes that promise more than a percent, and the ceiling.
    fn add_common(&mut self) {
        for size in self.headers.common() {
            if self.is_worth_it(size) && u32::from(size) * 101 < u32::from(self.ceiling) * 100 {
                self.probed_sizes.add(size);
            }
        }
        if !self.is_close(self.fails) {
            self.probed_sizes.add(self.ceiling);
        }
    }

    /// Whether a size is more than a percent above the one in use.
    const fn is_worth_it(&self, size: u16) -> bool {
        size.saturating_sub(self.works) > self.works / 100
    }

    /// Whether the size in use is within a percent of all that `limit`, which does not pass, leaves.
    const fn is_close(&self, limit: u16) -> bool {
        limit.saturating_sub(self.works).saturating_sub(1) <= self.works / 100
    }

    /// What is known has changed: finds the next sizes, or the end.
    fn go_on(&mut self, now: Instant) {
        let Phase::Searching { since } = self.phase else { return };
        let suspect = self.probed_sizes.suspect();
        let limit = suspect.unwrap_or(self.fails);
        let is_exhausted = self.probes >= MOST_PROBES;
        if is_exhausted || (suspect.is_none() && self.is_close(limit)) {
            self.probed_sizes.clear();
            self.phase = Phase::Resting { until: now + RAISE };
            self.report.took = Some(now.saturating_since(since));
            return;
        }
        let is_busy = match self.config.mode {
            Mode::Classic => suspect.is_some() || self.probed_sizes.has_fresh_below(limit),
            Mode::Fast | Mode::Off => self.probed_sizes.has_fresh_below(limit) || self.is_close(limit),
        };
        if !is_busy {
            self.add_between(limit);
        }
    }

    /// Sizes that divide what lies between the size in use and `limit`.
    fn add_between(&mut self, limit: u16) {
        let gap = u32::from(limit.saturating_sub(self.works));
        let points = match self.config.mode {
            Mode::Classic => 1,
            Mode::Fast | Mode::Off => (gap / (u32::from(self.works) / 100 + 1)).clamp(1, u32::from(POINTS)),
        };
        for point in 1..=points {
            let above = u16::try_from(gap * point / (points + 1)).unwrap_or(0);
            self.probed_sizes.add(self.works.saturating_add(above.max(1)));
        }
        // A common size is likely the limit itself: what ends the search, should it be lost, is tried along with the others. Not
        // above the first, which is what no link carries exactly.
        let next = self.works.saturating_add(self.works / 100 + 1);
        let is_likely = self.config.mode == Mode::Fast && self.headers.common()[1..].contains(&self.works);
        if is_likely && next < limit {
            self.probed_sizes.add(next);
        }
    }
}

/// Black holes.
impl MtuSearch {
    /// Whether a packet is larger than every path is assumed to carry.
    #[inline]
    pub const fn is_large(&self, size: u16) -> bool {
        size > self.floor
    }

    /// Whether a packet is so large that its fate speaks for the size in use.
    #[inline]
    pub const fn is_full(&self, size: u16) -> bool {
        size > self.floor && size >= self.works - self.works / 64
    }

    /// A packet larger than the floor arrived.
    #[inline]
    pub fn on_large_acked(&mut self, pn: u64, size: u16) {
        if self.is_full(size) {
            self.watch.on_full_acked(pn);
        } else {
            self.watch.on_partial_acked(size);
        }
    }

    /// Full packets that were no probes were lost, the latest of them `pn`, when packets up to the number `sent` had left.
    #[must_use]
    pub fn on_full_lost(&mut self, now: Instant, pn: u64, sent: u64) -> FullLoss {
        if self.works <= self.floor {
            return FullLoss::Ordinary;
        }
        match self.watch.on_full_lost(pn, sent) {
            BlackHoleSign::Known => FullLoss::Ordinary,
            BlackHoleSign::Begins => FullLoss::Suspicious,
            BlackHoleSign::Total => {
                let size = self.watch.passing();
                self.fall_back(now, size);
                FullLoss::BlackHole
            }
        }
    }

    /// Nothing arrives any more, of whatever size: one probe timeout after another. Source: RFC 8899 §4.3.
    pub fn on_silence(&mut self, now: Instant) {
        self.fall_back(now, 0);
    }

    /// To `size`, but not below the floor.
    fn fall_back(&mut self, now: Instant, size: u16) {
        if self.phase == Phase::Waiting {
            return;
        }
        self.report.black_holes = self.report.black_holes.saturating_add(u32::from(self.works > self.floor));
        self.works = size.clamp(self.floor, self.works);
        self.probed_sizes.clear();
        self.phase = Phase::Resting { until: now + self.watch.on_black_hole(now, RAISE) };
    }
}
