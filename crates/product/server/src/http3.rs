//! The server on HTTP/3: requests to the handler, responses to the streams.
//!
//! A worker's [`Server`] owns the handler and the log; each connection keeps an [`http3::Session`] whose messages are the
//! requests that wait for their turn and the responses that are on their way. A response is pulled from its body as fast as
//! its stream takes it and no faster, so that a client that does not read pins little memory.

use crate::access_log::Recorder;
use crate::budget::{Held, HeldMemory};
use crate::caught::{caught, poll_caught};
use crate::date::Clock;
use crate::early_data::EarlyData;
use crate::handler::Files;
pub use crate::heads::HeadCache;
use crate::heads::Heads;
use crate::low::{
    Content as _, ContentError, Context, FieldLines as _, Handler, Head as _, Interim, Shared, Upload as _,
    WakeTarget,
};
use crate::metrics::{ConnectionTally, RequestTally};
use crate::packet_sizes::PacketSizes;
use crate::progress::{Progress, Watch};
use crate::request::MAX_DISCARDED;
use crate::served::Served;
use crate::shutdown::Shutdown;
pub use crate::wake_list::WakeWorker;
use crate::wake_list::{ConnectionCall, WakeList};
use base::slab::Handle;
use base::time::{Duration, Instant};
use early::EarlyRequests;
use exchanges::{Begun, Exchanges, Reply, RequestState, Stage};
use http3::{Code, Config, SendError, Session};
use lazy_exchanges::LazyExchanges;
use record::{At, Record, ResponseLog};
use std::sync::Arc;
use std::task::Poll;
use transport::{Connection, StreamId};
use tunnels::Tunnels;
use wire::Side;
use worker::{App, Next};

mod asking;
mod early;
mod exchanges;
mod holding;
mod lazy_exchanges;
mod record;
mod tunnels;

/// Bytes of content that one response may hand over in a turn, so that others get theirs.
const TURN_BYTES: usize = 1 << 20;
/// The largest piece that is pulled from a body at once.
const PIECE: usize = 256 << 10;
/// How often a connection tries again what was put back where nothing wakes its worker.
const POLL: Duration = Duration::from_millis(1);

/// A worker's server.
pub struct Server<H: Handler = Files> {
    handler: H,
    shared: Shared,
    clock: Clock,
    journal: ResponseLog,
    heads: Heads<H::Fields>,
    config: Arc<Config>,
    patience: ConnectionMode,
    packet_sizes: PacketSizes,
    /// Connections that have closed.
    closed: ConnectionTally,
    /// Connections that have not been closed.
    open: usize,
    progress: Progress,
    /// Connections that are to try again what was put back.
    wake_list: Arc<WakeList>,
    ledger: HeldMemory,
    early_data: EarlyData,
    /// Whether tunnels end.
    ends_tunnels: bool,
}

/// How the server treats connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionMode {
    /// It serves.
    Serving,
    /// It sends GOAWAY and answers the requests under way.
    Leaving,
    /// It closes.
    Over,
}

/// What the server keeps for a connection.
pub struct State<H: Handler = Files> {
    session: Session<LazyExchanges<H>>,
    shutdown: Shutdown,
    watch: Watch,
    call: ConnectionCall,
    held: Held,
    early: EarlyRequests,
    tunnels: Tunnels,
    /// Whether the connection was counted when it closed.
    is_counted: bool,
}

impl<H: Handler> transport::StreamSink for State<H> {
    #[inline]
    fn on_stream_data(&mut self, id: StreamId, bytes: &[u8], fin: transport::Fin) -> usize {
        // Its turn follows.
        self.call.on_active();
        self.session.on_stream_data(id, bytes, fin)
    }
}

impl<H: Handler> Server<H> {
    /// A server that answers by `handler` and writes what it did to `recorder`.
    pub fn new(handler: H, recorder: Recorder) -> Server<H> {
        let shared = handler.shared();
        Server::with_shared(handler, recorder, shared)
    }

    /// The same with memory, warnings and clock of the caller's choice.
    pub fn with_shared(handler: H, recorder: Recorder, shared: Shared) -> Server<H> {
        Server {
            ledger: HeldMemory::new(&shared.budget),
            early_data: EarlyData::Off,
            ends_tunnels: false,
            clock: Clock::new(shared.clock),
            handler,
            shared,
            journal: ResponseLog { served: Served::default(), requests: RequestTally::default(), recorder },
            closed: ConnectionTally::default(),
            heads: Heads::new(HeadCache::default()),
            config: Arc::new(Config::server()),
            patience: ConnectionMode::Serving,
            packet_sizes: PacketSizes::default(),
            open: 0,
            progress: Progress::default(),
            wake_list: Arc::default(),
        }
    }

    /// Ends the worker's sleep by `wake` when another thread has brought what a connection waits for. Without it the
    /// connections that wait look by themselves, a thousand times a second.
    #[must_use]
    pub fn with_wake(mut self, wake: WakeWorker) -> Server<H> {
        self.wake_list = Arc::new(WakeList::new(wake));
        self
    }

    /// Ends connections whose client takes less than this of what it asked for.
    #[must_use]
    pub fn with_progress(mut self, rule: Progress) -> Server<H> {
        self.progress = rule;
        self
    }

    /// Bounds heads and contents of requests by `config`. Default: [`Config::server`].
    #[must_use]
    pub fn with_config(mut self, config: Arc<Config>) -> Server<H> {
        self.config = config;
        self
    }

    /// What becomes of early requests, if the transport's configuration lets any come. Default: none are expected.
    #[must_use]
    pub fn with_early_data(mut self, rule: EarlyData) -> Server<H> {
        self.early_data = rule;
        self
    }

    /// Remembers encoded response heads, or does not.
    #[must_use]
    pub fn with_head_cache(mut self, cache: HeadCache) -> Server<H> {
        self.heads = Heads::new(cache);
        self
    }

    /// The packet sizes of the connections that have closed.
    pub fn packet_sizes(&self) -> PacketSizes {
        self.packet_sizes
    }

    /// What was done so far.
    pub fn served(&self) -> Served {
        self.journal.served
    }

    /// Responses by status and site.
    pub(crate) fn requests(&self) -> &RequestTally {
        &self.journal.requests
    }

    /// The connections that have closed, with those of `open` that have not.
    pub(crate) fn tally<'a>(
        &self,
        open: impl Iterator<Item = (&'a Connection, &'a State<H>)>,
    ) -> ConnectionTally {
        let mut tally = self.closed;
        open.filter(|(_, state)| !state.is_counted).for_each(|(connection, _)| tally.on_open(connection));
        tally
    }

    /// Begins no more requests and closes connections as they become idle. The worker must then activate all connections.
    pub fn stop(&mut self) {
        self.patience = ConnectionMode::Leaving;
    }

    /// Ends tunnels as their clients would: they may have no end of their own. Returns whether that is new; the worker must then activate
    /// all connections.
    pub fn end_tunnels(&mut self) -> bool {
        !core::mem::replace(&mut self.ends_tunnels, true)
    }

    /// Ends what is still open: those in the middle of a response hear that it is over instead of waiting.
    pub fn abandon(&mut self) {
        self.patience = ConnectionMode::Over;
    }

    /// Lets the log write what it holds back, when its time has come.
    pub fn on_time(&mut self, now: Instant) {
        if self.journal.recorder.next_timeout().is_some_and(|at| at <= now) {
            self.journal.recorder.on_timeout(now);
        }
    }

    /// When [`Server::on_time`] has something to do.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.journal.recorder.next_timeout()
    }

    /// Connections that have not been closed.
    pub fn open_connections(&self) -> usize {
        self.open
    }

    fn count_if_closed(&mut self, now: Instant, connection: &Connection, state: &mut State<H>) {
        if connection.is_closed() && !core::mem::replace(&mut state.is_counted, true) {
            self.open = self.open.saturating_sub(1);
            self.packet_sizes.add(&connection.mtu_report());
            self.closed.on_closed(connection);
            self.end_all(now, connection, &mut state.session.messages);
        }
    }

    /// Nothing more will become of any response.
    fn end_all(&mut self, now: Instant, connection: &Connection, messages: &mut Exchanges<H>) {
        messages.on_closed();
        self.log_over(now, connection, messages);
    }

    /// Answers the requests that arrived.
    fn answer(&mut self, now: Instant, connection: &mut Connection, state: &mut State<H>) {
        if state.session.messages.waiting.is_empty() {
            return;
        }
        state.held.look();
        let mut waiting = core::mem::take(&mut state.session.messages.waiting);
        // In the order of their arrival: the transport sends in the order of urgency and ID. RFC 9218 §10.
        for asked in waiting.drain(..) {
            self.answer_one(now, connection, state, asked);
        }
        state.session.messages.waiting = waiting;
    }

    fn answer_one(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        state: &mut State<H>,
        mut asked: RequestState<H>,
    ) {
        asked.began.get_or_insert(now);
        if asked.is_unsafe && connection.is_early() {
            let begun = self.refuse_early(now, connection, state, asked.id);
            return on_begun(state, asked, begun);
        }
        let polled = self.ask(now, connection, state, &mut asked);
        while let Ok(Some(interim)) = caught(|| asked.head.next_interim()) {
            respond_interim(connection, state, &mut asked, &interim);
        }
        let response = match polled {
            Ok(Poll::Ready(response)) => response,
            Ok(Poll::Pending) => return put_back(connection, state, asked),
            Err(()) => return self.fail(connection, state, asked),
        };
        // RFC 9110 §10.1.1: what the head alone decides is said at once; the answer to a POST means that its content is here.
        if response.status < 300 && asked.awaits_content() && asked.head.expects_continue() {
            let told = state.session.connection.respond_interim(connection, asked.id, 100, []);
            if told.is_ok() {
                state.session.messages.receiving.push(RequestState { stage: Stage::Continued, ..asked });
                return;
            }
        }
        let begun = self.begin(connection, state, asked.id, response);
        match begun {
            // It is over before it could wait among the others.
            Some(Begun { status, body: None, sent })
                if asked.stage == Stage::Whole && !asked.head.is_tunnel() =>
            {
                let began = asked.began.unwrap_or(now);
                let record = Record { id: asked.id, head: asked.head, status, sent, began };
                self.on_whole(now, connection, state, record);
            }
            begun => on_begun(state, asked, begun),
        }
    }

    /// Gives streams that take bytes the next pieces of their bodies. Whether any has more to give at once.
    fn pump(&mut self, now: Instant, connection: &mut Connection, state: &mut State<H>) -> Next {
        let mut next = Next::Wait;
        let mut writable = core::mem::take(&mut state.session.messages.writable);
        if core::mem::take(&mut state.session.messages.has_resumed) && writable.len() > 1 {
            // What was full may compete for the rest of the connection's send buffer. RFC 9218 §10: by urgency, then ID.
            writable.sort_unstable_by_key(|&id| (connection.priority(id).urgency, id));
        }
        // In place: a transfer passes here in every turn, and must not allocate.
        writable.retain(|&id| {
            let Some(place) = state.session.messages.replies.iter().position(|reply| reply.record.id == id)
            else {
                return false;
            };
            match self.pump_one(now, connection, state, place) {
                SendOutcome::Whole => {
                    let Reply { record, .. } = state.session.messages.replies.swap_remove(place);
                    self.on_whole(now, connection, state, record);
                    false
                }
                SendOutcome::Broken => {
                    let reply = state.session.messages.replies.swap_remove(place);
                    state.session.messages.given_up.push(reply.record);
                    false
                }
                SendOutcome::Full => false,
                SendOutcome::Reading => {
                    state.session.messages.reading.push(id);
                    false
                }
                SendOutcome::TurnOver => {
                    next = Next::Again;
                    true
                }
            }
        });
        writable.append(&mut state.session.messages.writable);
        state.session.messages.writable = writable;
        next
    }

    fn pump_one(
        &mut self,
        now: Instant,
        connection: &mut Connection,
        state: &mut State<H>,
        place: usize,
    ) -> SendOutcome {
        let waiting = state.session.messages.put_back();
        let State { session: Session { connection: http, messages }, call, .. } = state;
        let messages = &mut **messages;
        let cx = Context { now, waiting, wake: WakeTarget::Connection { call, wake_list: &self.wake_list } };
        let Some(reply) = messages.replies.get_mut(place) else { return SendOutcome::Full };
        let id = reply.record.id;
        let mut left = TURN_BYTES;
        // A response without content was complete with its head.
        let Some(body) = &mut reply.body else { return SendOutcome::Whole };
        while body.remaining() != Some(0) {
            let room = connection.send_capacity(id).min(PIECE);
            if room == 0 {
                return SendOutcome::Full;
            }
            if left == 0 {
                return SendOutcome::TurnOver;
            }
            let Poll::Ready(pulled) = poll_caught(|| body.poll_chunk(room, &cx)) else {
                return SendOutcome::Reading;
            };
            let piece = match pulled {
                Ok(Ok(Some(piece))) => piece,
                Ok(Ok(None)) => break,
                Ok(Err(ContentError)) | Err(()) => {
                    // What was announced cannot be kept, as when a file has become shorter.
                    http.cancel(connection, id, tunnels::code_of(reply));
                    messages.abort_upload(id);
                    return SendOutcome::Broken;
                }
            };
            let len = piece.len();
            if http.write_body(connection, id, piece).is_err() {
                return SendOutcome::Broken;
            }
            reply.record.sent += len as u64;
            left = left.saturating_sub(len);
        }
        let ended = match caught(|| body.trailers()) {
            Ok(Some(trailers)) => http.write_trailers(connection, id, &trailers),
            Ok(None) => http.finish(connection, id),
            Err(()) => Err(SendError::WrongLength),
        };
        // Content of known length was complete with its last byte. RFC 9114 §4.1.2: too little is an error.
        if ended == Err(SendError::WrongLength) {
            http.cancel(connection, id, Code::INTERNAL_ERROR);
            messages.abort_upload(id);
            return SendOutcome::Broken;
        }
        SendOutcome::Whole
    }

    /// Logs the responses that nothing more will become of.
    fn log_over(&mut self, now: Instant, connection: &Connection, messages: &mut Exchanges<H>) {
        if messages.given_up.is_empty() && !messages.unacknowledged.has_over() {
            return;
        }
        let at = self.at(now, connection);
        while let Some(record) = messages.given_up.pop() {
            let head = self.journal.on_cut(at, record);
            messages.recycle(head);
        }
        while let Some(record) = messages.unacknowledged.next_over() {
            let head = self.journal.on_over(at, record);
            messages.recycle(head);
        }
    }

    fn at(&mut self, now: Instant, connection: &Connection) -> At {
        self.clock.advance(now);
        At { now, unix_s: self.clock.unix_s(), peer: connection.addresses().peer.ip() }
    }
}

/// Sends what the handler says before its response. What the client does not take is left out: RFC 9114 §4.2.2.
#[cold]
fn respond_interim<H: Handler>(
    connection: &mut Connection,
    state: &mut State<H>,
    asked: &mut RequestState<H>,
    interim: &Interim,
) {
    debug_assert!((100..200).contains(&interim.status) && interim.status != 101);
    let http = &mut state.session.connection;
    let told = http.respond_interim(connection, asked.id, interim.status, interim.fields.lines());
    if told.is_ok() && interim.status == 100 && asked.stage == Stage::Open {
        asked.stage = Stage::Continued;
    }
}

/// A response has begun. `None`: the stream has ended.
#[inline]
fn on_begun<H: Handler>(state: &mut State<H>, asked: RequestState<H>, begun: Option<Begun<H>>) {
    let RequestState { id, head, stage, upload, began, .. } = asked;
    if head.is_tunnel() && begun.as_ref().is_some_and(|begun| begun.status < 300) {
        state.tunnels.on_open(id);
    }
    let messages = &mut *state.session.messages;
    let (Some(Begun { status, body, sent }), Some(began)) = (begun, began) else {
        return messages.recycle(head);
    };
    if stage != Stage::Whole {
        if upload.is_wanted() {
            messages.uploads.push((id, upload));
        } else {
            state.session.connection.discard(id, MAX_DISCARDED);
        }
    }
    messages.replies.push(Reply { record: Record { id, head, status, sent, began }, body });
    messages.writable.push(id);
}

/// Keeps a request that the handler has put back. Its client goes on if the handler waits for content.
fn put_back<H: Handler>(connection: &mut Connection, state: &mut State<H>, mut asked: RequestState<H>) {
    // RFC 9110 §10.1.1
    if asked.stage == Stage::Open && asked.upload.is_awaited() && asked.head.expects_continue() {
        let told = state.session.connection.respond_interim(connection, asked.id, 100, []);
        asked.stage = if told.is_ok() { Stage::Continued } else { asked.stage };
    }
    state.session.messages.looking.push(asked);
}

/// Lends content again that paused and is taken now, and asks for no more of what is not wanted.
#[inline]
fn resume<H: Handler>(now: Instant, connection: &mut Connection, state: &mut State<H>) {
    let State { session, tunnels, .. } = state;
    while let Some(id) = session.messages.take_unwanted() {
        match tunnels.has(id) {
            // Its client need not have an end of its own.
            true => session.connection.stop_reading(connection, id),
            false => session.connection.discard(id, MAX_DISCARDED),
        }
    }
    // Each once in a turn: it may pause again.
    for _ in 0..session.messages.paused.len() {
        let Some(id) = session.messages.take_resumed() else { break };
        session.deliver(connection, now, id);
    }
}

/// What became of a response in this turn.
enum SendOutcome {
    /// All of it was handed over.
    Whole,
    /// It cannot be completed, or the client cancelled it.
    Broken,
    /// The stream takes no more now.
    Full,
    /// The content is not there yet.
    Reading,
    /// It took its share of the turn.
    TurnOver,
}

impl<H: Handler> App for Server<H> {
    type State = State<H>;

    fn admits(&self) -> bool {
        self.ledger.admits()
    }

    fn on_accept(&mut self, now: Instant, connection: &mut Connection) -> State<H> {
        self.journal.served.connections += 1;
        self.open += 1;
        let held = self.ledger.on_accept(now, connection.addresses().peer.ip());
        let mut http = http3::Connection::new(Side::Server, Arc::clone(&self.config), now);
        http.begin_trace(connection);
        State {
            session: Session { connection: http, messages: LazyExchanges::new(self.early_data) },
            shutdown: Shutdown::default(),
            watch: Watch::default(),
            call: ConnectionCall::default(),
            held,
            early: EarlyRequests::new(self.early_data),
            tunnels: Tunnels::default(),
            is_counted: false,
        }
    }

    fn on_slot(&mut self, state: &mut State<H>, handle: Handle) {
        state.call.on_slot(handle);
    }

    #[inline]
    fn take_called(&mut self, now: Instant, handles: &mut Vec<Handle>) {
        self.wake_list.take(handles);
        self.ledger.call_largest(now, handles);
    }

    fn on_turn(&mut self, now: Instant, connection: &mut Connection, state: &mut State<H>) -> Next {
        state.call.on_active();
        state.session.on_turn(connection, now);
        if !state.session.messages.panicked.is_empty() {
            self.end_panicked(now, connection, state);
        }
        self.log_over(now, connection, &mut state.session.messages);
        if self.journal.recorder.is_on() {
            state.session.messages.receiving.iter_mut().for_each(|asked| _ = asked.began.get_or_insert(now));
        }
        let is_proved = state.early.settle(connection);
        // Always asked: a call that is not taken note of would hide the next one.
        let is_called = state.call.take_made() || is_proved;
        if state.session.messages.put_back() > 0 && (is_called || !state.call.calls_back()) {
            state.session.messages.try_again();
        }
        resume(now, connection, state);
        self.answer(now, connection, state);
        if state.tunnels.are_open() {
            self.look_after_tunnels(now, connection, state);
        }
        let next = self.pump(now, connection, state);
        match self.patience {
            ConnectionMode::Leaving if connection.is_connected() => {
                state.shutdown.proceed(now, connection, &mut state.session.connection);
            }
            ConnectionMode::Over if !connection.is_closed() => {
                state.session.connection.close(connection, now)
            }
            _ => {}
        }
        self.settle(now, connection, state);
        if connection.is_quiet() {
            state.session.connection.release_memory();
            state.session.messages.release_memory();
        }
        let watched = self.watch(now, connection, state);
        self.count_if_closed(now, connection, state);
        let deadline = state.shutdown.next_timeout(now);
        let is_waiting = state.session.messages.put_back() > 0;
        let poll = (is_waiting && !state.call.calls_back()).then_some(now + POLL);
        let deadlines = [state.session.connection.next_timeout(), deadline, watched, poll];
        let is_called = state.call.on_acted();
        match (next, deadlines.into_iter().flatten().min()) {
            _ if is_called => Next::Again,
            (Next::Wait, Some(at)) => Next::At(at),
            (next, _) => next,
        }
    }

    fn on_gone(&mut self, now: Instant, connection: &Connection, mut state: State<H>) {
        self.count_if_closed(now, connection, &mut state);
        self.ledger.on_gone(state.call.handle(), &state.held);
        self.end_all(now, connection, &mut state.session.messages);
    }
}
