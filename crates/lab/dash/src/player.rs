//! A player: what it fetches, what it shows, and when it stands still.
//!
//! It has one buffer of picture and one of sound, in time; playing empties both, a segment fills one. One thing is fetched at a
//! time, for whichever buffer ends earlier. It begins to play when both hold enough, stands still when either is empty, and goes on
//! when both hold enough again; it fetches no more than the buffer takes. The clock is an argument of every call, so a test plays
//! an hour in a millisecond, and a faster clock plays faster.
//!
//! Invariant: playing moves only in `advance`, which every call begins with.

mod playback_record;

use crate::manifest::{Presentation, Track};
use crate::rule::{self, Estimate, Rule};
use base::time::{Duration, Instant};

pub use playback_record::PlaybackRecord;

/// How a player behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Which quality is next.
    pub rule: Rule,
    /// It begins to play, and goes on after it stood still, when this much is in both buffers. Default: 2 s.
    pub enough: Duration,
    /// It fetches until this much is in both buffers. Default: 30 s.
    pub most: Duration,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings { rule: Rule::Throughput, enough: Duration::from_secs(2), most: Duration::from_secs(30) }
    }
}

/// Fetches that fail in a row, after which a player gives up.
const MOST_FAILURES: u32 = 5;
/// The pause before something is fetched again that failed.
const AGAIN_AFTER: Duration = Duration::from_millis(500);

/// Picture or sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Video = 0,
    Audio = 1,
}

/// What a player wants now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// This, relative to the manifest; `on_fetched` or `on_failed` follows.
    Fetch(String),
    /// Nothing before this time.
    Wait(Instant),
    /// Nothing any more: all is played, or it has given up.
    Over,
}

/// What is under way.
#[derive(Clone, Copy, Debug)]
struct Fetch {
    kind: Kind,
    quality: usize,
    /// What it plays; `None` for what precedes a quality's segments.
    plays: Option<Duration>,
    asked: Instant,
}

/// Picture or sound as it is buffered.
#[derive(Clone, Debug, Default)]
struct Buffer {
    /// The next segment to be fetched.
    next: u64,
    /// Fetched and not played.
    filled: Duration,
    /// Fetched since the beginning.
    fetched: Duration,
    /// The quality of the last segment.
    quality: Option<usize>,
    /// Qualities whose initialization has been fetched, by bit.
    known: u128,
}

/// What it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing yet.
    Starting,
    Playing,
    /// Nothing, since then.
    Still(Instant),
    Over,
}

/// A player.
#[derive(Clone, Debug)]
pub struct Player {
    film: Presentation,
    settings: Settings,
    bitrates: Vec<u64>,
    buffers: [Buffer; 2],
    stage: Stage,
    now: Instant,
    fetch: Option<Fetch>,
    estimate: Estimate,
    failures: u32,
    again_at: Option<Instant>,
    playback_record: PlaybackRecord,
}

impl Player {
    /// A player that was started at `began` and now has the manifest.
    pub fn new(film: Presentation, settings: Settings, began: Instant, now: Instant) -> Player {
        let bitrates: Vec<u64> = film.video.iter().map(|track| track.bits_per_second).collect();
        Player {
            playback_record: PlaybackRecord::new(began, bitrates.len()),
            bitrates,
            film,
            settings,
            buffers: Default::default(),
            stage: Stage::Starting,
            now,
            fetch: None,
            estimate: Estimate::default(),
            failures: 0,
            again_at: None,
        }
    }

    /// What to do. Must not be asked while something is being fetched.
    pub fn next(&mut self, now: Instant) -> Step {
        self.advance(now);
        debug_assert!(self.fetch.is_none(), "one thing is fetched at a time");
        if self.stage == Stage::Over {
            return Step::Over;
        }
        if let Some(at) = self.again_at.filter(|at| *at > now) {
            return Step::Wait(at);
        }
        self.again_at = None;
        let Some(kind) = self.behind() else {
            if self.stage != Stage::Playing {
                // What was fetched last would have begun to play: there never was anything.
                self.end(now);
                return Step::Over;
            }
            // All is fetched; it is over when it is played.
            return Step::Wait(now + self.playable());
        };
        let quality = self.choose(kind);
        let Some(track) = self.tracks(kind).get(quality) else { return Step::Over };
        let (bit, index) = (1_u128 << quality.min(127), self.buffers[kind as usize].next);
        let initialization = track.initialization().filter(|_| self.buffers[kind as usize].known & bit == 0);
        let (place, plays) = match initialization {
            Some(place) => (place, None),
            None => match track.segment(index) {
                Some((place, plays)) => (place, Some(plays)),
                None => return Step::Over,
            },
        };
        // What comes must find room, unless nothing is played that could make some.
        let excess = (self.buffers[kind as usize].filled + plays.unwrap_or_default())
            .saturating_sub(self.settings.most);
        if !excess.is_zero() && self.stage == Stage::Playing {
            return Step::Wait(now + excess);
        }
        self.fetch = Some(Fetch { kind, quality, plays, asked: now });
        Step::Fetch(place)
    }

    /// What was asked for has come, this many bytes.
    pub fn on_fetched(&mut self, now: Instant, bytes: u64) {
        self.advance(now);
        self.failures = 0;
        self.playback_record.bytes += bytes;
        let Some(fetch) = self.fetch.take() else { return };
        let buffer = &mut self.buffers[fetch.kind as usize];
        buffer.known |= 1 << fetch.quality.min(127);
        let Some(plays) = fetch.plays else { return };
        buffer.next += 1;
        buffer.filled = buffer.filled + plays;
        buffer.fetched = buffer.fetched + plays;
        let before = buffer.quality.replace(fetch.quality);
        if fetch.kind == Kind::Video {
            // Sound is too small to tell much about the network.
            self.estimate.add(bytes, now.saturating_since(fetch.asked));
            self.playback_record.on_segment(fetch.quality, plays, before);
        }
        self.go_on(now);
    }

    /// What was asked for does not come.
    pub fn on_failed(&mut self, now: Instant) {
        self.advance(now);
        self.fetch = None;
        self.failures += 1;
        self.playback_record.failures += 1;
        self.again_at = Some(now + AGAIN_AFTER);
        if self.failures >= MOST_FAILURES {
            self.end(now);
        }
    }

    /// Ends it, and tells how it was.
    pub fn finish(mut self, now: Instant) -> PlaybackRecord {
        self.advance(now);
        self.end(now);
        let bitrates = &self.bitrates;
        self.playback_record.settle(bitrates);
        self.playback_record
    }

    fn tracks(&self, kind: Kind) -> &[Track] {
        match kind {
            Kind::Video => &self.film.video,
            Kind::Audio => &self.film.audio,
        }
    }

    /// The buffer that ends earlier, of those of which not all is fetched.
    fn behind(&self) -> Option<Kind> {
        let is_whole = |kind: Kind| {
            let count = self.tracks(kind).iter().map(Track::count).max().unwrap_or(0);
            self.buffers[kind as usize].next >= count
        };
        let kinds = [Kind::Video, Kind::Audio].into_iter().filter(|kind| !is_whole(*kind));
        kinds.min_by_key(|kind| self.buffers[*kind as usize].fetched)
    }

    fn choose(&self, kind: Kind) -> usize {
        let sound = self.film.audio.last().map_or(0, |track| track.bits_per_second);
        match (kind, self.settings.rule) {
            // Sound is cheap: always the best.
            (Kind::Audio, _) => self.film.audio.len().saturating_sub(1),
            // After a failure the least that can be asked for.
            (Kind::Video, _) if self.failures > 0 => 0,
            (Kind::Video, Rule::Throughput) => rule::by_throughput(&self.bitrates, sound, &self.estimate),
            (Kind::Video, Rule::Buffer) => {
                rule::by_buffer(&self.bitrates, self.buffers[Kind::Video as usize].filled, self.settings.most)
            }
        }
    }

    /// How long it can play with what it has.
    fn playable(&self) -> Duration {
        let [video, audio] = &self.buffers;
        if self.film.audio.is_empty() { video.filled } else { video.filled.min(audio.filled) }
    }

    /// Time has passed: what was played, and whether it stands still since.
    fn advance(&mut self, now: Instant) {
        let passed = now.saturating_since(self.now);
        let began = self.now;
        self.now = began.max(now);
        if self.stage != Stage::Playing {
            return;
        }
        let played = passed.min(self.playable());
        for buffer in &mut self.buffers {
            buffer.filled = buffer.filled.saturating_sub(played);
        }
        self.playback_record.played = self.playback_record.played + played;
        if self.playable().is_zero() {
            if self.behind().is_none() {
                self.end(began + played);
            } else if played < passed {
                self.stage = Stage::Still(began + played);
            }
        }
    }

    /// Plays, if there is enough now.
    fn go_on(&mut self, now: Instant) {
        let is_enough = self.playable() >= self.settings.enough || self.behind().is_none();
        match self.stage {
            Stage::Starting if is_enough => {
                self.playback_record.startup = Some(now.saturating_since(self.playback_record.began));
                self.stage = Stage::Playing;
            }
            Stage::Still(since) if is_enough => {
                self.playback_record.on_stall(now.saturating_since(since));
                self.stage = Stage::Playing;
            }
            _ => {}
        }
    }

    fn end(&mut self, now: Instant) {
        if let Stage::Still(since) = self.stage {
            self.playback_record.on_stall(now.saturating_since(since));
        }
        self.stage = Stage::Over;
    }
}

#[cfg(test)]
mod tests;
