//! One viewer: a connection, a request at a time, and the player behind it; all of them are a worker's application.
//!
//! While packets are taken in, the [`Inbox`] counts what comes; in the turn that follows, the player hears of what is complete and
//! says what is next.

use crate::manifest::Presentation;
use crate::player::{PlaybackRecord, Player, Settings, Step};
use base::time::{Duration, Instant};
use client::fault;
use client::target::Target;
use http::{Request, Uri};
use http3::{Abort, BodyLength, EncodedRequest, MessageSink, ResponseHead, Session};
use std::sync::Arc;
use transport::{CloseReason, Connection, Event, Fin, StreamId, StreamSink};
use wire::Side;
use worker::{App, Next};

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
    session: Session<Inbox>,
    number: usize,
    began: Instant,
    stage: Stage,
    /// The request under way.
    asked: Option<StreamId>,
}

#[derive(Debug)]
enum Stage {
    Connecting,
    /// The manifest is under way.
    Reading,
    Playing(Box<Player>),
    Over,
}

/// What has come of the request under way.
#[derive(Debug, Default)]
struct Inbox {
    status: u16,
    bytes: u64,
    /// The content, where it is kept.
    text: Vec<u8>,
    keeps: bool,
    /// It is complete, or will never be.
    ended: Option<Ended>,
    closed: Option<CloseReason>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    Whole,
    Not,
}

impl MessageSink for Inbox {
    fn on_response(&mut self, _: StreamId, head: &ResponseHead<'_>) {
        if !head.is_interim() {
            self.status = head.status();
        }
    }

    #[inline]
    fn on_body(&mut self, _: StreamId, bytes: &[u8]) -> usize {
        self.bytes += bytes.len() as u64;
        if self.keeps && self.text.len() + bytes.len() <= LONGEST_MANIFEST {
            self.text.extend_from_slice(bytes);
        }
        bytes.len()
    }

    fn on_end(&mut self, _: StreamId) {
        self.ended = Some(Ended::Whole);
    }

    fn on_abort(&mut self, _: StreamId, _: Abort) {
        self.ended = Some(Ended::Not);
    }

    fn on_event(&mut self, event: &Event) {
        if let Event::Closed(reason) = event {
            self.closed = Some(reason.clone());
        }
    }
}

impl StreamSink for PlayerConnection {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: Fin) -> usize {
        self.session.on_stream_data(id, bytes, fin)
    }
}

impl PlayerConnection {
    /// PlayerConnection `number`, who begins to wait now.
    pub(crate) fn new(
        number: usize,
        config: Arc<http3::Config>,
        clock: &Clock,
        now: Instant,
    ) -> PlayerConnection {
        let connection = http3::Connection::new(Side::Client, config, now);
        PlayerConnection {
            session: Session { connection, messages: Inbox::default() },
            number,
            began: clock.of(now),
            stage: Stage::Connecting,
            asked: None,
        }
    }

    fn ask(&mut self, connection: &mut Connection, target: &Target) -> Result<(), String> {
        let uri = Uri::builder().scheme("https").authority(target.authority()).path_and_query(target.path());
        let uri = uri.build().map_err(|error| format!("{target} cannot be asked for: {error}"))?;
        let mut request = Request::new(());
        *request.uri_mut() = uri;
        let encoded = EncodedRequest::new(&request.into_parts().0, BodyLength::Empty);
        let keeps = matches!(self.stage, Stage::Reading);
        let inbox = &mut self.session.messages;
        (inbox.status, inbox.bytes, inbox.keeps, inbox.ended) = (0, 0, keeps, None);
        let asked = self.session.connection.request_encoded(connection, &encoded);
        self.asked = Some(asked.map_err(|error| format!("{target} cannot be asked for: {error:?}"))?);
        Ok(())
    }

    /// The request that has ended, if one has: its length, or `None` when it has failed.
    fn take_ended(&mut self) -> Option<Option<u64>> {
        let inbox = &mut self.session.messages;
        let ended = inbox.ended.take()?;
        self.asked.take()?;
        let is_good = ended == Ended::Whole && (200..300).contains(&inbox.status);
        Some(is_good.then_some(inbox.bytes))
    }
}

impl PlayerApp {
    /// Why a connection ended, in words.
    #[cold]
    fn ended(&self, reason: &CloseReason) -> String {
        let host = self.manifest.host();
        fault::ConnectionEnd { host, connect_s: self.connect_s, silence_s: self.silence_s, failure: None }
            .error(reason)
            .to_string()
    }

    /// The viewer has had enough, or gets no more.
    #[cold]
    fn leave(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        player_connection: &mut PlayerConnection,
        fault: Option<String>,
    ) {
        let playback_record = match core::mem::replace(&mut player_connection.stage, Stage::Over) {
            Stage::Over => return,
            Stage::Playing(player) => Some(player.finish(self.clock.of(now))),
            Stage::Connecting | Stage::Reading => None,
        };
        self.outcomes.push((player_connection.number, Outcome { playback_record, fault }));
        player_connection.session.connection.close(connection, now);
    }

    /// As far as it goes now. Returns when there is more to do.
    fn go_on(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        player_connection: &mut PlayerConnection,
    ) -> Result<Option<Instant>, String> {
        let time = self.clock.of(now);
        if matches!(player_connection.stage, Stage::Connecting) && connection.is_connected() {
            player_connection.stage = Stage::Reading;
            player_connection.ask(connection, &self.manifest.clone())?;
        }
        if let Some(ended) = player_connection.take_ended() {
            match (&mut player_connection.stage, ended) {
                (Stage::Reading, None) => {
                    return Err(format!(
                        "{}: status {}",
                        self.manifest, player_connection.session.messages.status
                    ));
                }
                (Stage::Reading, Some(_)) => {
                    let text = core::mem::take(&mut player_connection.session.messages.text);
                    let film = Presentation::parse(&String::from_utf8_lossy(&text));
                    let film = film.map_err(|error| format!("{}: {error}", self.manifest))?;
                    player_connection.stage = Stage::Playing(Box::new(Player::new(
                        film,
                        self.settings,
                        player_connection.began,
                        time,
                    )));
                }
                (Stage::Playing(player), Some(bytes)) => player.on_fetched(time, bytes),
                (Stage::Playing(player), None) => player.on_failed(time),
                (Stage::Connecting | Stage::Over, _) => {}
            }
        }
        let Stage::Playing(player) = &mut player_connection.stage else { return Ok(None) };
        if player_connection.asked.is_some() {
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
                player_connection.ask(connection, &target)?;
                Ok(None)
            }
            Step::Wait(at) => Ok(Some(self.clock.until(at))),
            Step::Over => {
                self.leave(now, connection, player_connection, None);
                Ok(None)
            }
        }
    }
}

impl App for PlayerApp {
    type State = PlayerConnection;

    fn on_accept(&mut self, now: Instant, _: &mut Connection) -> PlayerConnection {
        // Never called: a client's worker has no server configuration.
        PlayerConnection::new(0, Arc::new(http3::Config::client()), &self.clock, now)
    }

    fn on_turn(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        player_connection: &mut PlayerConnection,
    ) -> Next {
        player_connection.session.on_turn(connection, now);
        let mut at = None;
        if self.is_over {
            self.leave(now, connection, player_connection, None);
        } else if let Some(reason) = player_connection.session.messages.closed.take() {
            let fault = self.ended(&reason);
            self.leave(now, connection, player_connection, Some(fault));
        } else {
            match self.go_on(now, connection, player_connection) {
                Ok(next) => at = next,
                Err(fault) => self.leave(now, connection, player_connection, Some(fault)),
            }
        }
        let deadline = [at, player_connection.session.connection.next_timeout()].into_iter().flatten().min();
        deadline.map_or(Next::Wait, Next::At)
    }

    fn on_gone(&mut self, now: Instant, _: &Connection, mut player_connection: PlayerConnection) {
        if let Stage::Playing(player) = core::mem::replace(&mut player_connection.stage, Stage::Over) {
            let playback_record = Some(player.finish(self.clock.of(now)));
            self.outcomes.push((
                player_connection.number,
                Outcome { playback_record, fault: Some("the connection ended".to_owned()) },
            ));
        }
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
