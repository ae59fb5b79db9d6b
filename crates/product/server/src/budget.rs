//! The memory that connections may hold, of all threads of a process together.
//!
//! Each thread keeps an [`MemoryAccount`]: a connection that acted says what it holds, and what it held before. The account tells the
//! process when that has changed by [`STEP`], so that threads seldom meet. What the kernel, TLS and the allocator hold beside
//! it is estimated by a constant for each connection and stream.
//!
//! Three levels. *Ample*: everybody gets what the transport's configuration says. *Scarce*: receive windows grow no more, and
//! what is written ahead is limited to a fair share. *Short*: new requests are answered with 503, new connections are refused,
//! and connections that have made no progress for [`PATIENCE`] are ended, those that hold most first. An address or network
//! that holds more than its share (shares.rs) finds memory scarce or short before others do.
//!
//! Invariant: nothing here refuses memory. The levels lie so far below the limit that what is under way fits.

use crate::peak::PeakMemory;
use base::slab::Handle;
use base::time::{Duration, Instant};
use core::net::IpAddr;
use shares::Shares;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

mod shares;

pub(crate) use shares::ConnectionShare;

/// What a connection holds beside its streams, in bytes: state, TLS, ledgers, hash tables.
pub(crate) const CONNECTION: u64 = 28 * 1024;
/// What a stream holds beside its bytes, in bytes.
pub(crate) const STREAM: u64 = 1_536;

/// An account tells of changes of this many bytes.
const STEP: i64 = 64 * 1024;
/// What each connection may hold at any level, in bytes.
const LEAST_SHARE: u64 = 64 * 1024;
/// When memory is short, a connection that has made no progress for so long may be ended.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);
/// Connections that are looked at at a time when memory is short, and how often.
const LOOKS: usize = 64;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How much there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Less than three quarters are held.
    #[default]
    Ample,
    /// Three quarters are held.
    Scarce,
    /// Seven eighths are held.
    Short,
}

/// The memory of a process. Clones are the same.
#[derive(Clone, Debug)]
pub struct Budget(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    limit: u64,
    held: AtomicI64,
    connections: AtomicI64,
    peak: PeakMemory,
    shares: Shares,
}

impl Default for Budget {
    /// Without a limit.
    fn default() -> Budget {
        Budget::new(u64::MAX)
    }
}

impl Budget {
    /// At most about `limit` bytes.
    pub fn new(limit: u64) -> Budget {
        Budget(Arc::new(Shared {
            limit,
            held: AtomicI64::new(0),
            connections: AtomicI64::new(0),
            peak: PeakMemory::default(),
            shares: Shares::new(),
        }))
    }

    /// In bytes; `u64::MAX` without a limit.
    pub fn limit(&self) -> u64 {
        self.0.limit
    }

    /// What connections hold, in bytes, as far as their threads have told.
    pub fn held(&self) -> u64 {
        u64::try_from(self.0.held.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// How much there is at present.
    #[inline]
    pub fn level(&self) -> Level {
        let (held, limit) = (self.held(), self.0.limit);
        if held < limit / 4 * 3 {
            Level::Ample
        } else if held < limit / 8 * 7 {
            Level::Scarce
        } else {
            Level::Short
        }
    }

    /// What each connection may write ahead when memory is scarce, in bytes.
    pub(crate) fn fair_share(&self) -> u64 {
        let connections = u64::try_from(self.0.connections.load(Ordering::Relaxed)).unwrap_or(0);
        (self.0.limit / connections.max(1)).max(LEAST_SHARE)
    }

    /// What connections held at most.
    pub(crate) fn peak(&self) -> &PeakMemory {
        &self.0.peak
    }

    /// What a connection of this peer will add to what its address holds.
    pub(crate) fn portion(&self, peer: IpAddr) -> ConnectionShare {
        ConnectionShare::new(self, peer)
    }

    pub(crate) fn account(&self) -> MemoryAccount {
        MemoryAccount { budget: self.clone(), untold: 0 }
    }
}

/// One thread's.
#[derive(Debug)]
pub(crate) struct MemoryAccount {
    budget: Budget,
    /// What the process has not been told.
    untold: i64,
}

impl MemoryAccount {
    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// A connection, or something else, that held `before` bytes now holds `after`.
    #[inline]
    pub(crate) fn on_change(&mut self, before: u64, after: u64) {
        self.untold = self.untold.saturating_add(signed(after)).saturating_sub(signed(before));
        if self.untold.unsigned_abs() >= STEP as u64 {
            self.tell();
        }
    }

    fn tell(&mut self) {
        let change = core::mem::take(&mut self.untold);
        let held = self.budget.0.held.fetch_add(change, Ordering::Relaxed).saturating_add(change);
        self.budget.0.peak.on_held(u64::try_from(held).unwrap_or(0));
    }

    /// This many connections more, or fewer.
    pub(crate) fn on_connections(&self, change: i64) {
        self.budget.0.connections.fetch_add(change, Ordering::Relaxed);
    }
}

impl Drop for MemoryAccount {
    fn drop(&mut self) {
        self.tell();
    }
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The connections of a worker by the size of what they hold: the class of a connection is the power of two.
#[derive(Debug)]
struct Holders {
    /// By the place of the handle.
    places: Vec<Option<(Handle, u8)>>,
    /// The class that is looked at when memory is short, and the place from which on.
    class: u8,
    next: usize,
}

/// Up to 32 KiB are the lowest class.
const CLASS_SHIFT: u32 = 15;

/// The class of a connection that holds this much.
#[inline]
fn class_of(bytes: u64) -> u8 {
    (bytes >> CLASS_SHIFT).checked_ilog2().map_or(0, |class| class as u8 + 1)
}

impl Holders {
    fn new() -> Holders {
        Holders { places: Vec::new(), class: u8::MAX, next: 0 }
    }

    /// A connection holds this much now.
    #[inline]
    fn on_change(&mut self, handle: Handle, bytes: u64) {
        if handle.index() >= self.places.len() {
            self.places.resize(handle.index() + 1, None);
        }
        if let Some(place) = self.places.get_mut(handle.index()) {
            *place = Some((handle, class_of(bytes)));
        }
    }

    fn on_gone(&mut self, handle: Handle) {
        if let Some(place) = self.places.get_mut(handle.index()) {
            *place = place.filter(|(known, _)| *known != handle);
        }
    }

    /// Some of those that hold most; at the next call others, then those that hold less, until all had their turn.
    fn next_largest(&mut self, handles: &mut Vec<Handle>) {
        let before = handles.len();
        // The first pass may find that the class is empty.
        for _ in 0..2 {
            let mut below = None;
            for (place, entry) in self.places.iter().enumerate() {
                let Some((handle, class)) = *entry else { continue };
                if class < self.class {
                    below = below.max(Some(class));
                } else if class == self.class && place >= self.next {
                    handles.push(handle);
                    if handles.len() - before == LOOKS {
                        self.next = place + 1;
                        return;
                    }
                }
            }
            self.next = 0;
            self.class = below.unwrap_or(u8::MAX);
            if handles.len() > before {
                return;
            }
        }
    }
}

/// What a worker knows of what its connections hold.
#[derive(Debug)]
pub(crate) struct HeldMemory {
    account: MemoryAccount,
    holders: Holders,
    /// When the largest holders may be looked at again.
    next_look: Instant,
    /// A connection acted for which memory is short, in all or for its address.
    is_short_for_some: bool,
}

/// What is known of one connection.
#[derive(Debug)]
pub(crate) struct Held {
    bytes: u64,
    portion: ConnectionShare,
    /// All content that has moved, and when it did last.
    moved: u64,
    moved_at: Instant,
    level: Level,
    is_short: bool,
}

impl Held {
    /// Looks whether memory is short, for the requests of this turn.
    pub(crate) fn look(&mut self) {
        self.is_short = self.portion.level() == Level::Short;
    }

    /// Whether new requests are put off: at the last look memory was short, or the client's address had had its share.
    pub(crate) fn is_short(&self) -> bool {
        self.is_short
    }
}

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It goes on.
    Keep,
    /// It goes on, and may retain this much from now on.
    Limit(Option<u64>),
    /// It ends: memory is short, and it makes no progress.
    End,
}

impl HeldMemory {
    pub(crate) fn new(budget: &Budget) -> HeldMemory {
        HeldMemory {
            account: budget.account(),
            holders: Holders::new(),
            next_look: Instant::ZERO,
            is_short_for_some: false,
        }
    }

    /// Whether new connections are taken.
    pub(crate) fn admits(&self) -> bool {
        self.account.budget.level() < Level::Short
    }

    /// A connection of this peer was accepted.
    pub(crate) fn on_accept(&mut self, now: Instant, peer: IpAddr) -> Held {
        self.account.on_connections(1);
        let portion = self.account.budget.portion(peer);
        Held { bytes: 0, portion, moved: 0, moved_at: now, level: Level::Ample, is_short: false }
    }

    /// A connection acted, and holds `bytes`; `moved` is the sum of all content so far.
    #[inline]
    pub(crate) fn on_turn(
        &mut self,
        now: Instant,
        (handle, held): (Option<Handle>, &mut Held),
        bytes: u64,
        moved: u64,
    ) -> Verdict {
        self.account.on_change(held.bytes, bytes);
        held.bytes = bytes;
        held.portion.on_change(bytes);
        if let Some(handle) = handle {
            self.holders.on_change(handle, bytes);
        }
        if held.moved != moved {
            (held.moved, held.moved_at) = (moved, now);
        }
        let level = held.portion.level();
        self.is_short_for_some |= level == Level::Short;
        if level == Level::Short && now.saturating_since(held.moved_at) >= PATIENCE {
            return Verdict::End;
        }
        let before = core::mem::replace(&mut held.level, level);
        match (before == Level::Ample, level == Level::Ample) {
            (true, false) => Verdict::Limit(Some(self.account.budget.fair_share())),
            (false, true) => Verdict::Limit(None),
            _ => Verdict::Keep,
        }
    }

    /// A connection has gone.
    pub(crate) fn on_gone(&mut self, handle: Option<Handle>, held: &Held) {
        self.account.on_change(held.bytes, 0);
        self.account.on_connections(-1);
        if let Some(handle) = handle {
            self.holders.on_gone(handle);
        }
    }

    /// Names connections that hold much when memory is short, so that they are looked at.
    #[inline]
    pub(crate) fn call_largest(&mut self, now: Instant, handles: &mut Vec<Handle>) {
        let is_short = self.is_short_for_some || self.account.budget.level() == Level::Short;
        if is_short && now >= self.next_look {
            self.is_short_for_some = false;
            self.next_look = now + LOOK_EVERY;
            self.holders.next_largest(handles);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::slab::Slab;

    #[test]
    fn the_level_follows_what_all_threads_hold() {
        let budget = Budget::new(8 << 20);
        let (mut first, mut second) = (budget.account(), budget.account());
        first.on_change(0, 3 << 20);
        assert_eq!((budget.held(), budget.level()), (3 << 20, Level::Ample));
        second.on_change(0, 3 << 20);
        assert_eq!(budget.level(), Level::Scarce);
        second.on_change(3 << 20, 4 << 20);
        assert_eq!(budget.level(), Level::Short);
        first.on_change(1_000, 2_000);
        assert_eq!(budget.held(), 7 << 20, "small changes are told later");
        drop(first);
        assert_eq!(budget.held(), (7 << 20) + 1_000);
        second.on_change(4 << 20, 0);
        assert_eq!(budget.level(), Level::Ample);
        assert_eq!(Budget::default().level(), Level::Ample);
    }

    #[test]
    fn the_largest_are_looked_at_first_and_the_others_after_them() {
        let mut slab = Slab::new();
        let handles: Vec<Handle> = (0..4).map(|number| slab.insert(number)).collect();
        let mut holders = Holders::new();
        for (handle, bytes) in handles.iter().zip([1_000_000, 10, 70_000, 1_000_001]) {
            holders.on_change(*handle, bytes);
        }
        let looks = |holders: &mut Holders| {
            let mut found = Vec::new();
            holders.next_largest(&mut found);
            found
        };
        for _ in 0..2 {
            assert_eq!(looks(&mut holders), [handles[0], handles[3]]);
            assert_eq!(looks(&mut holders), [handles[2]]);
            assert_eq!(looks(&mut holders), [handles[1]]);
        }
        holders.on_gone(handles[0]);
        assert_eq!(looks(&mut holders), [handles[3]]);
    }

    #[test]
    fn many_that_hold_the_same_all_have_their_turn() {
        let mut slab = Slab::new();
        let mut holders = Holders::new();
        let handles: Vec<Handle> = (0..3 * LOOKS + 5).map(|number| slab.insert(number)).collect();
        handles.iter().for_each(|&handle| holders.on_change(handle, 50_000));
        let mut found = Vec::new();
        (0..4).for_each(|_| holders.next_largest(&mut found));
        assert_eq!(found, handles);
    }
}
