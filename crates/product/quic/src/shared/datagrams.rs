//! DATAGRAM frames between handles and the worker, and questions that only the worker's thread can answer.
//! Source: RFC 9221.
//!
//! Both queues are bounded by bytes, overhead included; the oldest datagrams give way.

use super::State;
use super::transport_verbs::Verbs;
use crate::arrivals::Arrivals;
use crate::datagram_error::SendDatagramError;
use crate::error::ConnectionError;
use crate::wakers::Wakers;
use bytes::Bytes;
use core::task::{Context, Poll, Waker};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use transport::DatagramRoom;

/// Bytes that wait to be read, and to be passed on, at most.
const MAX_BYTES: usize = 1 << 20;
/// What a datagram costs beside its payload.
const OVERHEAD: usize = 64;

/// A queue in which the oldest give way.
#[derive(Debug, Default)]
struct Queue {
    datagrams: VecDeque<Bytes>,
    bytes: usize,
}

impl Queue {
    fn push(&mut self, datagram: Bytes) {
        self.bytes += datagram.len() + OVERHEAD;
        self.datagrams.push_back(datagram);
        while self.bytes > MAX_BYTES {
            self.pop();
        }
    }

    fn pop(&mut self) -> Option<Bytes> {
        let datagram = self.datagrams.pop_front()?;
        self.bytes -= datagram.len() + OVERHEAD;
        Some(datagram)
    }
}

/// How far an export is.
#[derive(Debug, Default)]
enum Answer {
    #[default]
    Asked,
    /// A handle waits.
    Awaited(Waker),
    /// `None` if there is no such material.
    Given(Option<Vec<u8>>),
}

/// Keying material that a handle waits for.
#[derive(Debug, Default)]
pub(crate) struct Export(Mutex<Answer>);

impl Export {
    /// Ready when the worker has answered: `None` if there is none to be had.
    pub(crate) fn poll_answer(&self, context: &Context<'_>) -> Poll<Option<Vec<u8>>> {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match core::mem::replace(&mut *place, Answer::Awaited(context.waker().clone())) {
            Answer::Given(answer) => Poll::Ready(answer),
            Answer::Asked | Answer::Awaited(_) => Poll::Pending,
        }
    }

    fn answer(&self, answer: Option<Vec<u8>>, woken: &mut Vec<Waker>) {
        let mut place = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Answer::Awaited(waker) = core::mem::replace(&mut *place, Answer::Given(answer)) {
            woken.push(waker);
        }
    }
}

/// What is asked of the exporter.
#[derive(Debug)]
pub(crate) struct ExportRequest {
    pub(crate) len: usize,
    pub(crate) label: Vec<u8>,
    pub(crate) context: Vec<u8>,
    pub(crate) export: Arc<Export>,
}

/// Datagrams of a connection, and what handles ask beside streams.
#[derive(Debug, Default)]
pub(super) struct Datagrams {
    incoming: Queue,
    outgoing: Queue,
    readers: Wakers,
    /// What the transport takes before older datagrams give way, less what waits to be passed on.
    room: DatagramRoom,
    senders: Wakers,
    exports: Vec<ExportRequest>,
    wants_key_update: bool,
}

impl Datagrams {
    pub(super) fn wake_all(&mut self, woken: &mut Vec<Waker>) {
        self.readers.hand_to(woken);
        self.senders.hand_to(woken);
        for request in self.exports.drain(..) {
            request.export.answer(None, woken);
        }
    }

    /// The worker's part of a turn.
    pub(super) fn exchange(
        &mut self,
        verbs: &mut impl Verbs,
        arrivals: &mut Arrivals,
        woken: &mut Vec<Waker>,
    ) {
        for datagram in arrivals.take_datagrams() {
            self.incoming.push(datagram);
            self.readers.hand_to(woken);
        }
        while let Some(datagram) = self.outgoing.pop() {
            verbs.send_datagram(datagram);
        }
        let room = verbs.datagram_room();
        if core::mem::replace(&mut self.room, room) != room {
            self.senders.hand_to(woken);
        }
        for request in self.exports.drain(..) {
            let answer = verbs.export(request.len, &request.label, &request.context);
            request.export.answer(answer, woken);
        }
        if core::mem::take(&mut self.wants_key_update) {
            verbs.update_keys();
        }
    }
}

impl State {
    /// Bytes of a datagram that makes no other give way.
    pub(crate) fn datagram_space(&self) -> usize {
        self.datagrams.room.payload()
    }

    /// Takes a datagram to be sent once no other has to give way for it.
    pub(crate) fn poll_send_datagram(
        &mut self,
        datagram: &Bytes,
        context: &Context<'_>,
    ) -> Poll<Result<(), SendDatagramError>> {
        let room = self.datagrams.room;
        if self.judge_datagram(datagram).is_ok() && (room.datagrams == 0 || room.payload() < datagram.len()) {
            self.datagrams.senders.note(context);
            return Poll::Pending;
        }
        Poll::Ready(self.send_datagram(datagram.clone()))
    }

    /// Whether a datagram can be sent at all.
    fn judge_datagram(&self, datagram: &Bytes) -> Result<(), SendDatagramError> {
        if let Some(error) = &self.error {
            return Err(SendDatagramError::ConnectionLost(error.clone()));
        }
        let most = self.facts.max_datagram_size.ok_or(SendDatagramError::UnsupportedByPeer)?;
        if datagram.len() > most {
            return Err(SendDatagramError::TooLarge);
        }
        Ok(())
    }

    /// Takes a datagram to be sent.
    pub(crate) fn send_datagram(&mut self, datagram: Bytes) -> Result<(), SendDatagramError> {
        self.judge_datagram(&datagram)?;
        self.datagrams.room.take(datagram.len());
        self.datagrams.outgoing.push(datagram);
        self.wants_call = true;
        Ok(())
    }

    /// The next datagram. Those that have arrived are given after the end of the connection, too.
    pub(crate) fn poll_datagram(&mut self, context: &Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        if let Some(datagram) = self.datagrams.incoming.pop() {
            return Poll::Ready(Ok(datagram));
        }
        if let Some(error) = &self.error {
            return Poll::Ready(Err(error.clone()));
        }
        self.datagrams.readers.note(context);
        Poll::Pending
    }

    /// Asks the worker for keying material.
    pub(crate) fn request_export(&mut self, request: ExportRequest) {
        if self.error.is_some() {
            request.export.answer(None, &mut self.woken);
            return;
        }
        self.datagrams.exports.push(request);
        self.wants_call = true;
    }

    /// Asks the worker for a key update.
    pub(crate) fn request_key_update(&mut self) {
        self.datagrams.wants_key_update = true;
        self.wants_call = true;
    }
}
