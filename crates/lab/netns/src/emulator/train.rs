//! From a frame to the pieces that travel on: fate per datagram, then as few pieces as those fates allow.
//!
//! Neighbours that arrive in order stay one super-packet, unless a slow line would keep the first waiting for the last for more than
//! `GRAIN`: then the super-packet is cut, so that a slow link's round-trip time is that of datagrams and not of 64 KB.

use super::frame::{Carries, HEAD, Head, Layout, VNET};
use super::link_state::{Datagram, DatagramOutcome, LinkState};
use super::options::Counters;
use super::rebind::mend_checksum;

/// How long the first datagram of a piece may wait for its last, in nanoseconds.
const GRAIN: u64 = 100_000;

/// Part of a frame that is sent at once: `head`, then bytes `start..end` of the frame's buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    pub(crate) at: u64,
    pub(crate) head: Head,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// A run of neighbours that is being collected.
struct Run {
    first: usize,
    last: usize,
    first_at: u64,
    at: u64,
}

/// Decides on every datagram of `frame` and writes what travels on into `pieces`, which is cleared first.
pub(crate) fn cut(frame: &mut [u8], layout: &Layout, now: u64, line: Line<'_>) {
    let Line { judge, counters, pieces } = line;
    pieces.clear();
    judge.begin_frame();
    let mut run: Option<Run> = None;
    for n in 0..layout.datagrams() {
        match judge.decide(now, describe(layout, n)) {
            DatagramOutcome::Arrives { at } => {
                extend(&mut run, n, at, |run| pieces.push(piece(frame, layout, &run)))
            }
            DatagramOutcome::Corrupted { at } => {
                counters.corrupted += 1;
                damage(frame, layout, n, judge);
                extend(&mut run, n, at, |run| pieces.push(piece(frame, layout, &run)));
            }
            DatagramOutcome::Doubled { at } => {
                counters.duplicated += 1;
                extend(&mut run, n, at, |run| pieces.push(piece(frame, layout, &run)));
                // The twin comes behind its datagram, so the run ends here.
                pieces.extend(run.take().map(|run| piece(frame, layout, &run)));
                pieces.push(piece(frame, layout, &Run { first: n, last: n, first_at: at, at }));
            }
            DatagramOutcome::Late { at } => {
                counters.reordered += 1;
                pieces.extend(run.take().map(|run| piece(frame, layout, &run)));
                let late = Run { first: n, last: n, first_at: at, at };
                pieces.push(piece(frame, layout, &late));
            }
            link_state => {
                pieces.extend(run.take().map(|run| piece(frame, layout, &run)));
                match link_state {
                    DatagramOutcome::BlackHole => counters.black_holed += 1,
                    DatagramOutcome::Overflowed => counters.overflowed += 1,
                    DatagramOutcome::TooLong => counters.refused += 1,
                    _ => counters.lost += 1,
                }
            }
        }
    }
    pieces.extend(run.take().map(|run| piece(frame, layout, &run)));
}

/// What `cut` works with, beside the frame.
pub(crate) struct Line<'a> {
    pub(crate) judge: &'a mut LinkState,
    pub(crate) counters: &'a mut Counters,
    pub(crate) pieces: &'a mut Vec<Piece>,
}

fn describe(layout: &Layout, n: usize) -> Datagram {
    let (start, end) = layout.datagram(n);
    let frame_bytes = if layout.segment.is_some() { layout.payload - VNET + end - start } else { end - VNET };
    let whole = frame_bytes + VNET - layout.ip;
    let ip_bytes = layout.tcp_packet.map_or(whole, |packet| packet.min(whole)) as u32;
    Datagram {
        frame_bytes: frame_bytes as u64,
        ip_bytes: (layout.carries != Carries::Other).then_some(ip_bytes),
        is_corrupted: false,
    }
}

/// Changes one byte of a UDP datagram's payload. Its checksum is repaired: the damage reaches the program, as damage does that happened
/// where no checksum was.
fn damage(frame: &mut [u8], layout: &Layout, n: usize, judge: &mut LinkState) {
    let (start, end) = layout.datagram(n);
    // A single datagram is told as its whole frame.
    let start = start.max(layout.payload);
    if layout.carries != Carries::Udp || end <= start {
        return;
    }
    let (place, mask) = judge.draw_damage(end - start);
    let at = start + place;
    // The word of the checksum that the byte belongs to: words count from the UDP header, whose length is even.
    let word_at = at - (at - layout.transport) % 2;
    let word =
        |frame: &[u8]| u16::from_be_bytes([frame[word_at], frame.get(word_at + 1).copied().unwrap_or(0)]);
    let old = word(frame);
    frame[at] ^= mask;
    let new = word(frame);
    mend_checksum(frame, layout, old, new);
}

/// Adds datagram `n` to the run, or ends the run and begins another.
fn extend(run: &mut Option<Run>, n: usize, at: u64, end: impl FnOnce(Run)) {
    match run {
        Some(run) if at.saturating_sub(run.first_at) <= GRAIN => {
            run.last = n;
            run.at = at;
        }
        _ => {
            if let Some(ended) = run.replace(Run { first: n, last: n, first_at: at, at }) {
                end(ended);
            }
        }
    }
}

/// The whole frame if the run is all of it, else a header of its own and the run's payload.
fn piece(frame: &[u8], layout: &Layout, run: &Run) -> Piece {
    let (start, _) = layout.datagram(run.first);
    let (_, end) = layout.datagram(run.last);
    if layout.segment.is_none() || (start == layout.payload && end == layout.end) || layout.payload > HEAD {
        return Piece { at: run.at, head: Head::NONE, start: 0, end: layout.end };
    }
    Piece { at: run.at, head: layout.head_of(frame, run.first, end - start), start, end }
}

#[cfg(test)]
mod tests;
