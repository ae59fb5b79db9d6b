//! One URL on its way to its place: which requests to send, and what their answers mean. Sans-IO: a connection sends
//! what [`Download::next_ask`] says and hands in what comes back.
//!
//! ```text
//! Opening ──ask──▶ Waiting ──the whole comes──▶ Single
//!    ▲               │ └─────a part comes─────▶ Pieces: as many at a time as there are streams
//!    └── redirect, or an answer that is no use ──┘
//! ```
//!
//! An [`Exchange`] is one request and its answer. Each carries the *epoch* of the plan that it was asked under. When the
//! plan changes (a redirect, another version of the file, a server that ignores ranges) the epoch moves on, and
//! the answers of the old plan are dropped wherever they are. What they had not written yet is asked for again.
//!
//! Invariant: bytes of two versions never meet in one output. Every part is checked against the version that the output is
//! of (RFC 9110 §13.1.5, §15.3.7), and parts are only asked for when there is a validator to check by.

use crate::answer::{Answer, AnswerUse, BodyCheck, Version};
use crate::destination::Destination;
use crate::error::GetError;
use crate::exchange::{Ask, Content, Exchange, Method};
use crate::job::{Job, Wanted};
use crate::part::Run;
use crate::pieces::{FIRST, Pieces};
use crate::target::Target;
use core::ops::Range;
use std::path::PathBuf;

/// Redirects that are followed.
const MAX_REDIRECTS: u32 = 10;
/// How often a plan that did not work out is replaced, or a request that the server did not look at is sent again.
const MAX_RETRIES: u32 = 3;

/// What is to be asked next.
#[derive(Clone, Debug, PartialEq, Eq)]
enum DownloadPlan {
    /// This, and then nothing until its answer says more.
    Opening(Option<Range<u64>>),
    /// The opening request is out.
    Waiting,
    /// Pieces, as many at a time as there are streams.
    Pieces,
    /// Nothing: one answer brings everything.
    Single,
}

/// Where a download stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownloadState {
    /// Requests are out, or wait to be sent.
    Running,
    /// It goes on at another server.
    Elsewhere,
    /// Everything is there.
    Complete,
    /// See [`Download::fail`].
    Failed,
}

/// One URL on its way to its place.
#[derive(Debug)]
pub struct Download {
    /// Which job this is.
    pub job: usize,
    target: Target,
    wanted: Wanted,
    destination: Option<Destination>,
    plan: DownloadPlan,
    pieces: Pieces,
    streams: usize,
    epoch: u32,
    /// Exchanges of this epoch.
    under_way: usize,
    redirects: u32,
    retries: u32,
    is_elsewhere: bool,
    failure: Option<GetError>,
    status: u16,
    head: String,
    resumed_from: u64,
    held: u64,
    transferred: u64,
}

impl Download {
    /// Begins `job` with at most `streams` requests at a time.
    ///
    /// # Errors
    /// The output cannot be opened.
    pub fn open(number: usize, job: &Job, streams: usize) -> Result<Download, GetError> {
        let target = job.target.clone();
        let destination = match &job.wanted {
            Wanted::Head => None,
            Wanted::Whole(resume) => Some(Destination::open(&job.output, &target.to_string(), *resume)?),
            Wanted::Range(range, resume) => {
                // Another name, because the rest of the file must never be added to a part from its middle.
                let url = format!("{target}#bytes={}-{}", range.start, range.end);
                Some(Destination::open(&job.output, &url, *resume)?)
            }
        };
        let resumed_from = destination.as_ref().map_or(0, Destination::received);
        let mut download = Download {
            job: number,
            target,
            wanted: job.wanted.clone(),
            destination,
            plan: DownloadPlan::Single,
            pieces: Pieces::default(),
            streams,
            epoch: 0,
            under_way: 0,
            redirects: 0,
            retries: 0,
            is_elsewhere: false,
            failure: None,
            status: 0,
            head: String::new(),
            resumed_from,
            held: resumed_from,
            transferred: 0,
        };
        download.make_plan();
        Ok(download)
    }

    /// What to ask, given what the output holds.
    fn make_plan(&mut self) {
        self.epoch += 1;
        self.under_way = 0;
        self.pieces = Pieces::default();
        let Some(destination) = &self.destination else {
            self.plan = DownloadPlan::Opening(None);
            return;
        };
        let missing = destination.missing();
        let continues = destination.validator().is_some();
        self.held = destination.received();
        if let Wanted::Range(range, _) = &self.wanted {
            let first = missing.first().cloned().unwrap_or(0..0);
            let start = range.start.saturating_add(first.start);
            let end = if first.end == u64::MAX { range.end } else { range.start.saturating_add(first.end) };
            self.plan =
                if start < end { DownloadPlan::Opening(Some(start..end)) } else { DownloadPlan::Pieces };
        } else if continues {
            let length_known = missing.last().is_none_or(|last| last.end < u64::MAX);
            self.pieces = Pieces::new(missing, if length_known { self.streams } else { 1 });
            self.plan = DownloadPlan::Pieces;
        } else if self.streams > 1 && destination.takes_any_order() && self.retries == 0 {
            self.plan = DownloadPlan::Opening(Some(FIRST));
        } else {
            self.plan = DownloadPlan::Opening(None);
        }
    }

    /// Whether there is something to ask.
    pub fn wants_stream(&self) -> bool {
        match self.plan {
            _ if self.failure.is_some() || self.is_elsewhere => false,
            DownloadPlan::Opening(_) => true,
            DownloadPlan::Pieces => !self.pieces.is_empty(),
            DownloadPlan::Waiting | DownloadPlan::Single => false,
        }
    }

    /// The next request to send, which is then under way.
    pub fn next_ask(&mut self) -> Option<Ask> {
        if !self.wants_stream() {
            return None;
        }
        let range = match &mut self.plan {
            DownloadPlan::Opening(range) => {
                let range = range.take();
                self.plan = DownloadPlan::Waiting;
                range
            }
            _ => Some(self.pieces.next_piece()?),
        };
        self.under_way += 1;
        // The bytes that are there must be of the version that the new ones are of.
        let validator = self.destination.as_ref().and_then(Destination::validator);
        let if_range = range.as_ref().and(validator).map(str::to_owned);
        let method = if self.destination.is_some() { Method::Get } else { Method::Head };
        Some(Ask { method, range, if_range, epoch: self.epoch })
    }

    /// A request could not be sent, or the server did not look at it: it is to be sent again.
    pub fn take_back(&mut self, exchange: &Exchange) {
        if !self.is_current(exchange) {
            return;
        }
        self.under_way = self.under_way.saturating_sub(1);
        match (&self.plan, &exchange.asked) {
            (DownloadPlan::Pieces, Some(range)) => self.pieces.give_back(range.clone()),
            (DownloadPlan::Pieces, None) => {}
            _ => self.plan = DownloadPlan::Opening(exchange.asked.clone()),
        }
    }

    /// Another attempt after a fault that may not be there the next time; `false` when there were enough of them. The
    /// requests that were under way are asked again.
    pub fn retry(&mut self) -> bool {
        self.retries += 1;
        if self.retries > MAX_RETRIES {
            return false;
        }
        self.make_plan();
        true
    }

    /// See [`Destination::ends_within_line`].
    pub fn ends_within_line(&self) -> bool {
        self.destination.as_ref().is_some_and(Destination::ends_within_line)
    }

    /// Whether the exchange belongs to the plan; the content of others is dropped and their streams are given up.
    #[inline]
    pub fn is_current(&self, exchange: &Exchange) -> bool {
        exchange.epoch == self.epoch && self.failure.is_none()
    }

    /// The head of an answer has arrived.
    pub fn on_answer(&mut self, exchange: &mut Exchange, answer: &Answer) {
        if !self.is_current(exchange) {
            return;
        }
        self.status = answer.status;
        let outcome = match self.destination {
            None => self.on_head_only(answer),
            Some(_) => self.on_verdict(exchange, answer),
        };
        if let Err(error) = outcome {
            self.fail(error);
        }
    }

    fn on_head_only(&mut self, answer: &Answer) -> Result<(), GetError> {
        match answer.judge(None) {
            Ok(AnswerUse::Redirect(location)) => self.redirect(&location),
            Err(error @ GetError::Status(_)) => Err(error),
            _ => {
                self.plan = DownloadPlan::Single;
                Ok(())
            }
        }
    }

    fn on_verdict(&mut self, exchange: &mut Exchange, answer: &Answer) -> Result<(), GetError> {
        match answer.judge(exchange.asked.as_ref())? {
            AnswerUse::Whole(version) => self.on_whole(exchange, version),
            AnswerUse::Part(range, version) => self.on_part(exchange, range, version),
            AnswerUse::Beyond(size) => self.on_beyond(exchange, size),
            AnswerUse::Redirect(location) => self.redirect(&location),
        }
    }

    /// The file from its first byte: because it was asked for, because the server knows no ranges, or because what was
    /// received before is of another version.
    fn on_whole(&mut self, exchange: &mut Exchange, version: Version) -> Result<(), GetError> {
        let Some(destination) = &mut self.destination else { return Ok(()) };
        if matches!(self.wanted, Wanted::Range(..)) {
            if destination.validator().is_none() {
                return Err(GetError::Range("all of the file, since it knows no ranges".into()));
            }
            destination.restart(Version::default())?;
            self.resumed_from = 0;
            return if self.retry() { Ok(()) } else { Err(GetError::Changed) };
        }
        let size = version.size;
        destination.restart(version)?;
        (self.held, self.resumed_from) = (0, 0);
        self.epoch += 1;
        exchange.epoch = self.epoch;
        self.under_way = 1;
        self.pieces = Pieces::default();
        self.plan = DownloadPlan::Single;
        exchange.content =
            Content::Wanted { run: Run::new(0), check: BodyCheck::new(size), shift: 0, end: 0 };
        Ok(())
    }

    fn on_part(
        &mut self,
        exchange: &mut Exchange,
        range: Range<u64>,
        mut version: Version,
    ) -> Result<(), GetError> {
        if let Wanted::Range(wanted, _) = &self.wanted {
            // To the output the part is all there is.
            let end = wanted.end.min(version.size.unwrap_or(range.end));
            version.size = Some(end.saturating_sub(wanted.start));
            self.plan = DownloadPlan::Pieces;
            return self.accept(exchange, range, wanted.start, &version);
        }
        let opens = self.plan == DownloadPlan::Waiting;
        let size = version.size;
        if opens && (size.is_none() || version.validator().is_none()) {
            // Nothing would show that the other parts are of the same version.
            return self.ask_for_whole();
        }
        // What this request asked for stays with it, even if its answer is shorter.
        let asked = exchange.asked.as_ref().map_or(range.end, |asked| asked.end);
        let rest = asked..size.unwrap_or(asked);
        self.accept(exchange, range, 0, &version)?;
        if opens {
            self.pieces = Pieces::new(core::iter::once(rest), self.streams);
            self.plan = DownloadPlan::Pieces;
        }
        Ok(())
    }

    /// Lets the content of a part go to the output, whose first byte is byte `shift` of the file.
    fn accept(
        &mut self,
        exchange: &mut Exchange,
        range: Range<u64>,
        shift: u64,
        version: &Version,
    ) -> Result<(), GetError> {
        let Some(destination) = &mut self.destination else { return Ok(()) };
        destination.on_version(version)?;
        let asked = exchange.asked.as_ref().map_or(range.end, |asked| asked.end);
        let end = asked.min(version.size.map_or(range.end, |size| size.saturating_add(shift)));
        let check = BodyCheck::new(Some(range.end - range.start));
        let run = Run::new(range.start.saturating_sub(shift));
        exchange.content = Content::Wanted { run, check, shift, end };
        Ok(())
    }

    /// There is nothing at the range: an empty file, or the end of one whose length was not known.
    fn on_beyond(&mut self, exchange: &Exchange, size: Option<u64>) -> Result<(), GetError> {
        let asked = exchange.asked.clone().unwrap_or(0..0);
        if matches!(self.wanted, Wanted::Range(..)) {
            return Err(GetError::Status(416));
        }
        let Some(destination) = &mut self.destination else { return Ok(()) };
        if asked.start > 0 && size == Some(asked.start) && destination.received() == asked.start {
            return destination.on_version(&Version { size, ..Version::default() });
        }
        self.ask_for_whole()
    }

    /// Ranges lead nowhere here.
    fn ask_for_whole(&mut self) -> Result<(), GetError> {
        self.retries += 1;
        if self.retries > MAX_RETRIES {
            return Err(GetError::Range("something else each time".into()));
        }
        self.epoch += 1;
        self.under_way = 0;
        self.pieces = Pieces::default();
        self.plan = DownloadPlan::Opening(None);
        Ok(())
    }

    fn redirect(&mut self, location: &str) -> Result<(), GetError> {
        self.redirects += 1;
        if self.redirects > MAX_REDIRECTS {
            return Err(GetError::Redirects(MAX_REDIRECTS));
        }
        let target = self.target.follow(location)?;
        self.is_elsewhere = !self.target.same_server(&target);
        self.target = target;
        self.make_plan();
        Ok(())
    }

    /// The next bytes of an answer's content. Returns how many were taken, fewer than all while the output has no room; `None` if no
    /// more of it is wanted.
    #[inline]
    pub fn on_body(&mut self, exchange: &mut Exchange, bytes: &[u8]) -> Option<usize> {
        if !self.is_current(exchange) {
            return None;
        }
        let (Content::Wanted { run, check, .. }, Some(destination)) =
            (&mut exchange.content, &mut self.destination)
        else {
            return Some(bytes.len());
        };
        let taken = bytes.get(..destination.room(bytes.len())).unwrap_or(bytes);
        if let Err(error) = check.on_bytes(taken.len()).and_then(|()| destination.append(run, taken)) {
            self.fail(error);
            return None;
        }
        self.held = self.held.saturating_add(taken.len() as u64);
        self.transferred = self.transferred.saturating_add(taken.len() as u64);
        Some(taken.len())
    }

    /// An answer is complete.
    pub fn on_end(&mut self, exchange: &mut Exchange) {
        if !self.is_current(exchange) {
            return;
        }
        self.under_way = self.under_way.saturating_sub(1);
        let (Content::Wanted { run, check, shift, end }, Some(destination)) =
            (&mut exchange.content, &mut self.destination)
        else {
            return;
        };
        if let Err(error) = check.on_end().and_then(|_| destination.flush(run)) {
            self.fail(error);
            return;
        }
        let reached = run.offset().saturating_add(*shift);
        if reached < *end {
            // RFC 9110 §15.3.7: a server may send less than was asked for.
            self.pieces.give_back(reached..*end);
        }
    }

    /// The stream of an exchange is gone before its end: what its answer brought is kept.
    pub fn on_cut(&mut self, exchange: &mut Exchange) {
        if exchange.epoch != self.epoch {
            return;
        }
        if let (Content::Wanted { run, .. }, Some(destination)) =
            (&mut exchange.content, &mut self.destination)
            && let Err(error) = destination.flush(run)
        {
            self.fail(error);
        }
    }
}

/// Where it stands, and how it ends.
impl Download {
    /// Gives up, for this reason, unless there was one before.
    pub fn fail(&mut self, error: GetError) {
        self.failure.get_or_insert(error);
    }

    /// Where it stands.
    pub fn standing(&self) -> DownloadState {
        match self.plan {
            _ if self.failure.is_some() => DownloadState::Failed,
            _ if self.is_elsewhere => DownloadState::Elsewhere,
            DownloadPlan::Pieces if self.under_way == 0 && self.pieces.is_empty() => DownloadState::Complete,
            DownloadPlan::Single if self.under_way == 0 => DownloadState::Complete,
            _ => DownloadState::Running,
        }
    }

    /// What to call, on another thread, when [`Download::may_resume`] or [`Download::is_written`] may have changed.
    pub fn on_news(&self, news: impl Fn() + Send + Sync + 'static) {
        if let Some(destination) = &self.destination {
            destination.on_news(news);
        }
    }

    /// Whether its output takes no more for now: the reader of a pipe pauses.
    pub fn is_held_up(&self) -> bool {
        self.destination.as_ref().is_some_and(Destination::is_full)
    }

    /// Whether the output takes bytes again, after [`Download::on_body`] could not take all. Says so once.
    pub fn may_resume(&self) -> bool {
        self.destination.as_ref().is_some_and(Destination::has_room_again)
    }

    /// Whether the output has got all that was taken, or takes no more.
    pub fn is_written(&self) -> bool {
        self.destination.as_ref().is_none_or(Destination::is_written)
    }

    /// Whether it has given up.
    #[inline]
    pub fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// Whether nothing was asked that the server could be answering.
    pub fn is_waiting(&self) -> bool {
        self.under_way == 0
    }

    /// It has arrived at the server that it goes on at.
    pub fn on_moved(&mut self) {
        self.is_elsewhere = false;
    }

    /// Saves what is there, so that a kill loses little.
    pub fn checkpoint(&mut self) {
        if let Some(Err(error)) = self.destination.as_mut().map(Destination::checkpoint) {
            self.fail(error);
        }
    }

    /// Ends it: the file gets its name, or what is there is kept for another attempt. Returns the file's name, if it is one.
    ///
    /// # Errors
    /// Why it failed.
    pub fn finish(self) -> Result<Option<PathBuf>, GetError> {
        match (self.failure, self.destination) {
            (None, None) => Ok(None),
            (None, Some(destination)) => destination.finish(),
            (Some(error), None) => Err(error),
            (Some(error), Some(mut destination)) => {
                let continues = destination.validator().is_some();
                let kept = destination.suspend();
                // A disk that is full says so twice; the first reason is the one to tell.
                Err(match (error, kept) {
                    (GetError::Interrupted(_), Ok(kept)) => GetError::Interrupted(kept.filter(|_| continues)),
                    (error, _) => error,
                })
            }
        }
    }

    /// Where it comes from now.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The status of the last answer; 0 until there is one.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// How long the output will be, as far as is known.
    pub fn size(&self) -> Option<u64> {
        self.destination.as_ref().and_then(Destination::size)
    }

    /// Bytes that an earlier attempt left and this one builds on.
    pub fn resumed_from(&self) -> u64 {
        self.resumed_from
    }

    /// Bytes of the output that are there.
    pub fn held(&self) -> u64 {
        self.held
    }

    /// Bytes of content that this attempt received.
    pub fn transferred(&self) -> u64 {
        self.transferred
    }

    /// Whether only heads are wanted.
    pub fn is_head_only(&self) -> bool {
        self.destination.is_none()
    }

    /// Adds the text of a head, for people.
    pub fn on_head_text(&mut self, text: &str) {
        self.head.push_str(text);
    }

    /// The texts of the heads.
    pub fn take_head(&mut self) -> String {
        core::mem::take(&mut self.head)
    }
}

#[cfg(test)]
mod tests;
