//! One viewer: a connection, a request at a time, and the player behind it; all of them are a worker's application.
//!
//! While packets are taken in, the connection counts what comes; in the turn that follows, the player hears of what is complete
//! and says what is next.

use crate::manifest::Presentation;
use crate::player::{PlaybackRecord, Player, Settings, Step};
use base::time::{Duration, Instant};
use client::app::{Active, End, Failure, Requests, Responses};
use client::fault::ConnectionEnd;
use client::target::Target;
use http::{Request, Uri};
use http3::{BodyLength, ResponseHead};
use transport::Connection;

/// The longest manifest, in bytes.
const LONGEST_MANIFEST: usize = 4 << 20;

/// The players' clock: it begins with the first of them and may run faster than the worker's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    pub(crate) origin: Instant,
    pub(crate) speed: f64,
}

impl Clock {
    fn of(&self, now: Instant) -> Instant {
        let passed = now.saturating_since(self.origin).as_nanos() as f64 * self.speed;
        Instant::from_nanos(passed as u64)
    }

    /// When the players' clock shows this; never before.
    fn until(&self, at: Instant) -> Instant {
        self.origin + Duration::from_nanos((at.as_nanos() as f64 / self.speed).ceil() as u64 + 1)
    }
}

/// All viewers of a thread.
#[derive(Debug)]
pub(crate) struct PlayerApp {
    pub(crate) manifest: Target,
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    /// How long a handshake may take, and silence may last, in seconds.
    pub(crate) connect_s: u64,
    pub(crate) silence_s: u64,
    /// Set when the time is over.
    pub(crate) is_over: bool,
    /// How it was, with each viewer's number.
    pub(crate) outcomes: Vec<(usize, Outcome)>,
}

/// How it was for one viewer.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome {
    /// What was shown; none when there was no manifest.
    pub(crate) playback_record: Option<PlaybackRecord>,
    /// Why it was not more.
    pub(crate) fault: Option<String>,
}

/// What a connection keeps.
#[derive(Debug)]
pub(crate) struct PlayerConnection {
    number: usize,
    began: Instant,
    stage: Stage,
    /// What has come of the request under way: the status, the length of the content, and the content of a manifest.
    status: u16,
    bytes: u64,
    text: Vec<u8>,
    /// It is complete, or will never be.
    ended: Option<Ended>,
}

#[derive(Debug)]
enum Stage {
    /// The manifest is awaited.
    Reading,
    Playing(Box<Player>),
    Over,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Whole,
    Not,
}

impl Responses for PlayerConnection {
    /// One at a time: the connection keeps it.
    type Request = ();

    fn on_head(&mut self, (): &mut (), head: &ResponseHead<'_>) {
        self.status = head.status();
    }

    #[inline]
    fn on_body(&mut self, (): &mut (), bytes: &[u8]) -> usize {
        self.bytes += bytes.len() as u64;
        if matches!(self.stage, Stage::Reading) && self.text.len() + bytes.len() <= LONGEST_MANIFEST {
            self.text.extend_from_slice(bytes);
        }
        bytes.len()
    }

    fn on_end(&mut self, (): ()) -> Option<()> {
        self.ended = Some(Ended::Whole);
        None
    }

    fn on_failure(&mut self, (): (), _: Failure<'_>) {
        self.ended = Some(Ended::Not);
    }
}

impl PlayerConnection {
    /// The state of connection `number`, whose viewer begins to wait now.
    pub(crate) fn new(number: usize, clock: &Clock, now: Instant) -> PlayerConnection {
        let (began, stage) = (clock.of(now), Stage::Reading);
        PlayerConnection { number, began, stage, status: 0, bytes: 0, text: Vec::new(), ended: None }
    }

    /// The request that has ended, if one has: its length, or `None` when it has failed.
    fn take_ended(&mut self) -> Option<Option<u64>> {
        let is_good = self.ended.take()? == Ended::Whole && (200..300).contains(&self.status);
        Some(is_good.then_some(self.bytes))
    }

    /// The viewer has had enough, or gets no more.
    #[cold]
    fn leave(&mut self, time: Instant, fault: Option<String>) -> Option<(usize, Outcome)> {
        let playback_record = match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => return None,
            Stage::Playing(player) => Some(player.finish(time)),
            Stage::Reading => None,
        };
        Some((self.number, Outcome { playback_record, fault }))
    }
}

fn ask(active: &mut Active<'_, PlayerConnection>, target: &Target) -> Result<(), String> {
    let uri = Uri::builder().scheme("https").authority(target.authority()).path_and_query(target.path());
    let uri = uri.build().map_err(|error| format!("{target} cannot be asked for: {error}"))?;
    let mut request = Request::new(());
    *request.uri_mut() = uri;
    let state = active.state();
    (state.status, state.bytes) = (0, 0);
    let asked = active.request(&request.into_parts().0, BodyLength::Empty);
    active.keep(asked.map_err(|error| format!("{target} cannot be asked for: {error:?}"))?, ());
    Ok(())
}

impl PlayerApp {
    /// The viewer leaves, and the connection is closed.
    fn leave(&mut self, active: &mut Active<'_, PlayerConnection>, fault: Option<String>) {
        let time = self.clock.of(active.now);
        self.outcomes.extend(active.state().leave(time, fault));
        active.close();
    }

    /// As far as it goes now. Returns when there is more to do.
    fn go_on(&mut self, active: &mut Active<'_, PlayerConnection>) -> Result<Option<Instant>, String> {
        let time = self.clock.of(active.now);
        let is_waiting = active.outstanding() > 0;
        let state = active.state();
        if let Some(ended) = state.take_ended() {
            match (&mut state.stage, ended) {
                (Stage::Reading, None) => {
                    return Err(format!("{}: status {}", self.manifest, state.status));
                }
                (Stage::Reading, Some(_)) => {
                    let text = core::mem::take(&mut state.text);
                    let film = Presentation::parse(&String::from_utf8_lossy(&text));
                    let film = film.map_err(|error| format!("{}: {error}", self.manifest))?;
                    let player = Player::new(film, self.settings, state.began, time);
                    state.stage = Stage::Playing(Box::new(player));
                }
                (Stage::Playing(player), Some(bytes)) => player.on_fetched(time, bytes),
                (Stage::Playing(player), None) => player.on_failed(time),
                (Stage::Over, _) => {}
            }
        }
        let Stage::Playing(player) = &mut state.stage else { return Ok(None) };
        if is_waiting {
            return Ok(None);
        }
        match player.next(time) {
            Step::Fetch(place) => {
                let target = self.manifest.follow(&place).map_err(|error| error.to_string())?;
                if !target.same_server(&self.manifest) {
                    return Err(format!(
                        "{target} is at another server than the manifest, which is not followed"
                    ));
                }
                ask(active, &target)?;
                Ok(None)
            }
            Step::Wait(at) => Ok(Some(self.clock.until(at))),
            Step::Over => {
                self.leave(active, None);
                Ok(None)
            }
        }
    }
}

impl Requests for PlayerApp {
    type Connection = PlayerConnection;

    fn on_accept(&mut self, now: Instant) -> PlayerConnection {
        PlayerConnection::new(0, &self.clock, now)
    }

    fn on_connected(&mut self, active: &mut Active<'_, PlayerConnection>) {
        if let Err(fault) = ask(active, &self.manifest) {
            self.leave(active, Some(fault));
        }
    }

    fn on_turn(&mut self, active: &mut Active<'_, PlayerConnection>) -> Option<Instant> {
        if self.is_over {
            self.leave(active, None);
            return None;
        }
        self.go_on(active).unwrap_or_else(|fault| {
            self.leave(active, Some(fault));
            None
        })
    }

    fn on_closed(&mut self, now: Instant, _: &Connection, state: &mut PlayerConnection, end: &End) {
        let (host, connect_s, silence_s) = (self.manifest.host(), self.connect_s, self.silence_s);
        let ended = ConnectionEnd { host, connect_s, silence_s, failure: end.failure };
        let fault = ended.error(&end.reason).to_string();
        self.outcomes.extend(state.leave(self.clock.of(now), Some(fault)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a player on a fast clock could be woken just before its time, again and again.
    #[test]
    fn the_players_clock_is_never_woken_too_early() {
        for speed in [0.5, 1.0, 3.0, 60.0] {
            let clock = Clock { origin: Instant::from_nanos(12_345), speed };
            for at in [0, 1, 999, 1_000_000_007, 3_600_000_000_001].map(Instant::from_nanos) {
                assert!(clock.of(clock.until(at)) >= at, "{speed} {at:?}");
            }
        }
    }
}
