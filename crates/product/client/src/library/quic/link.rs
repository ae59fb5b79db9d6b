//! What the handles of an HTTP/3 connection and the worker's thread share: requests that have not begun.

use super::call::Call;
use super::receiver::Receiver;
use crate::library::error::Error;
use crate::library::refused::Refused;
use ::body::Body;
use http::request;
use http_body::Body as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Wake as _;
use tokio::sync::watch;

/// A request on its way to the worker.
pub(super) struct Job {
    pub(super) head: request::Parts,
    pub(super) content: Body,
    pub(super) receiver: Box<dyn Receiver>,
    pub(super) timing: Timing,
}

/// When a request may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timing {
    /// As soon as its method and content permit.
    Soon,
    /// When the handshake is complete: the server has found it too early.
    AfterHandshake,
}

impl Job {
    /// Whether it may be carried out twice: its method is safe (RFC 9110 §9.2.1), and it has no content.
    pub(super) fn may_go_early(&self) -> bool {
        //= rfc8470/2#1
        self.timing == Timing::Soon && self.head.method.is_safe() && self.content.is_end_stream()
    }

    /// The server has not seen it.
    pub(super) fn refuse(self, error: Error) {
        self.receiver.fail(Refused { error: error.retryable(), content: Some(Box::new(self.content)) });
    }
}

struct State {
    jobs: Vec<Job>,
    /// Why it takes no more requests, if it does not.
    closed: Option<Error>,
    /// No handle is left: it is closed after the last exchange.
    is_released: bool,
}

/// An HTTP/3 connection as its handles see it.
pub(crate) struct QuicConnection {
    state: Mutex<State>,
    /// Whether the server takes extended CONNECT; `None` until its SETTINGS have come.
    extended_connect: watch::Sender<Option<bool>>,
    call: Arc<Call>,
}

impl QuicConnection {
    pub(super) fn new(call: Arc<Call>) -> QuicConnection {
        QuicConnection {
            state: Mutex::new(State { jobs: Vec::new(), closed: None, is_released: false }),
            extended_connect: watch::Sender::new(None),
            call,
        }
    }

    /// Whether it takes requests.
    pub(crate) fn is_open(&self) -> bool {
        self.change(|state| state.closed.is_none())
    }

    /// Whether the server takes extended CONNECT (RFC 9220 §3), once it has said so or the connection takes no more requests.
    pub(crate) async fn takes_extended_connect(&self) -> bool {
        let mut told = self.extended_connect.subscribe();
        let told = told.wait_for(Option::is_some).await;
        told.is_ok_and(|told| *told == Some(true))
    }

    /// The server's SETTINGS have come.
    pub(super) fn on_settings(&self, extended_connect: bool) {
        self.extended_connect.send_replace(Some(extended_connect));
    }

    /// No more requests come.
    pub(crate) fn release(&self) {
        self.change(|state| state.is_released = true);
        self.call.wake_by_ref();
    }

    /// Whether no more requests come.
    pub(super) fn is_released(&self) -> bool {
        self.change(|state| state.is_released)
    }

    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends a request, whose response goes to `receiver`.
    pub(crate) fn send(&self, head: request::Parts, content: Body, receiver: Box<dyn Receiver>) {
        let job = Job { head, content, receiver, timing: Timing::Soon };
        let refused = self.change(|state| {
            if let Some(why) = &state.closed {
                return Some((job, why.clone()));
            }
            state.jobs.push(job);
            None
        });
        match refused {
            Some((job, why)) => job.refuse(why),
            None => self.call.wake_by_ref(),
        }
    }

    /// The requests that have come since the last call.
    pub(super) fn take(&self) -> Vec<Job> {
        self.change(|state| std::mem::take(&mut state.jobs))
    }

    /// Takes no more requests, and says why to those that come: a server may refuse a connection just after it is complete.
    pub(super) fn close(&self, why: &Error) -> Vec<Job> {
        self.extended_connect.send_if_modified(|told| told.is_none() && told.replace(false).is_none());
        self.change(|state| {
            state.closed.get_or_insert_with(|| why.clone());
            std::mem::take(&mut state.jobs)
        })
    }

    pub(super) fn call(&self) -> &Arc<Call> {
        &self.call
    }
}
