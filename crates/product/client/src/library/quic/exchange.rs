//! One exchange: a request whose content leaves, and its response on its way to the handle that waits for it.

use super::link::{Answer, Refused};
use super::upload::Upload;
use crate::app::Content;
use crate::library::error::{Error, Kind};
use ::body::queue::Producer;
use ::body::{Body, BodyError};
use http3::{ResponseHead, Trailers};
use std::task::{Context, Waker};
use tokio::sync::oneshot;

/// So many bytes of a response wait for their reader. What the server may send beyond them is its window.
const CAPACITY: usize = 256 << 10;

/// How far a response is.
enum Response {
    /// Its head has not come.
    Awaited(oneshot::Sender<Answer>),
    /// Its content arrives.
    Content(Producer),
    /// It is complete.
    Complete,
    /// It has no reader, or cannot be used.
    Unwanted,
}

/// A request and its response.
pub(super) struct Exchange {
    response: Response,
    /// Until all of the request was sent.
    upload: Option<Upload>,
    /// The queue of the content was full.
    is_paused: bool,
}

impl Exchange {
    pub(super) fn new(tell: oneshot::Sender<Answer>, upload: Option<Upload>) -> Exchange {
        Exchange { response: Response::Awaited(tell), upload, is_paused: false }
    }

    /// Whether content of the request is left to send.
    pub(super) fn is_sending(&self) -> bool {
        self.upload.is_some()
    }

    /// No more content of the request is sent.
    pub(super) fn end_upload(&mut self) {
        self.upload = None;
    }

    /// The next of the request's content. The task of `waker` is called when there is more.
    pub(super) fn next_content(&mut self, room: usize, waker: &Waker) -> Content {
        let Some(upload) = &mut self.upload else { return Content::Wait };
        match upload.next(room, &mut Context::from_waker(waker)) {
            Ok(content) => {
                if matches!(content, Content::Last(..)) {
                    self.upload = None;
                }
                content
            }
            Err(error) => {
                self.fail(error);
                Content::Broken
            }
        }
    }

    /// Whether nothing more of it is wanted. The task of `cx` is called when that changes, and when there is room.
    pub(super) fn is_unwanted(&mut self, cx: &mut Context<'_>) -> bool {
        match &mut self.response {
            Response::Awaited(tell) => tell.poll_closed(cx).is_ready(),
            Response::Content(producer) => {
                producer.set_waker(cx.waker());
                !producer.has_reader()
            }
            Response::Complete => false,
            Response::Unwanted => true,
        }
    }

    /// Whether the response was paused and has room again.
    pub(super) fn takes_more(&mut self) -> bool {
        let has_room = matches!(&self.response, Response::Content(producer) if producer.has_room());
        self.is_paused && has_room && {
            self.is_paused = false;
            true
        }
    }

    /// There is no response, or it is not complete.
    pub(super) fn fail(&mut self, error: Error) {
        match std::mem::replace(&mut self.response, Response::Unwanted) {
            Response::Awaited(tell) => drop(tell.send(Err(Refused::from(error)))),
            Response::Content(mut producer) => producer.abort(BodyError::Source(error.into())),
            Response::Complete => self.response = Response::Complete,
            Response::Unwanted => {}
        }
    }

    /// The head has come. Calls `waker` where the response is not wanted.
    pub(super) fn on_head(&mut self, head: &ResponseHead<'_>, waker: &Waker) {
        let Response::Awaited(tell) = std::mem::replace(&mut self.response, Response::Unwanted) else {
            return;
        };
        let answer = match head.to_response() {
            Ok(response) => {
                let (mut producer, content) = Body::queue(CAPACITY);
                producer.set_waker(waker);
                self.response = Response::Content(producer);
                Ok(response.map(|()| content))
            }
            Err(error) => {
                Err(Error::caused(Kind::Protocol, "the head of the response is not valid", error).into())
            }
        };
        if tell.send(answer).is_err() {
            self.response = Response::Unwanted;
        }
        if matches!(self.response, Response::Unwanted) {
            waker.wake_by_ref();
        }
    }

    #[inline]
    pub(super) fn on_body(&mut self, bytes: &[u8]) -> usize {
        let Response::Content(producer) = &mut self.response else { return bytes.len() };
        let taken = producer.push_copy(bytes);
        self.is_paused = taken < bytes.len();
        taken
    }

    pub(super) fn on_trailers(&mut self, trailers: &Trailers<'_>) {
        // Fields that cannot be expressed are left out, as RFC 9110 §6.5.1 permits.
        if let Response::Content(producer) = &mut self.response {
            producer.end(trailers.to_headers().ok());
        }
    }

    pub(super) fn on_end(&mut self) {
        if let Response::Content(producer) = &mut self.response {
            producer.end(None);
            self.response = Response::Complete;
        }
    }
}
