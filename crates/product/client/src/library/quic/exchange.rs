//! One exchange: a request whose content leaves, and its response on its way to its receiver.

use super::link::{Job, Timing};
use super::receiver::Receiver;
use super::upload::Upload;
use crate::app::Content;
use crate::library::error::{Error, Kind};
use crate::library::informational::OnInformational;
use crate::library::refused::Refused;
use crate::report::PathReport;
use ::body::Body;
use http::request;
use http3::{ResponseHead, Trailers};
use std::task::{Context, Waker};

/// A request and its response.
pub(super) struct Exchange {
    /// Until the response has ended.
    receiver: Option<Box<dyn Receiver>>,
    /// Until all of the request was sent.
    upload: Option<Upload>,
    /// The receiver took less than all.
    is_paused: bool,
    /// Why the response cannot be used.
    fault: Option<Error>,
    early: Early,
    on_informational: Option<OnInformational>,
}

/// Whether a request went before the handshake was complete.
enum Early {
    No,
    /// Its head, to be sent again where the server says that it is too early.
    Sent(Box<request::Parts>),
    /// The server has said so.
    Refused(Box<request::Parts>),
}

/// An exchange whose receiver is to be told that it has ended.
pub(super) struct Ended {
    receiver: Box<dyn Receiver>,
    /// `None`: the response is complete.
    error: Option<Error>,
}

impl Ended {
    /// Tells the receiver; `path` is what the connection is like, if there was one.
    pub(super) fn tell(self, path: Option<&PathReport>) {
        match (self.error, path) {
            (None, _) => self.receiver.complete(path),
            (Some(error), Some(path)) => self.receiver.fail(Refused::from(error.on_path(path))),
            (Some(error), None) => self.receiver.fail(Refused::from(error)),
        }
    }
}

impl Exchange {
    pub(super) fn new(
        receiver: Box<dyn Receiver>,
        upload: Option<Upload>,
        on_informational: Option<OnInformational>,
    ) -> Exchange {
        Exchange {
            receiver: Some(receiver),
            upload,
            is_paused: false,
            fault: None,
            on_informational,
            early: Early::No,
        }
    }

    /// An informational response has come. One that the types of `http` cannot express is left out.
    pub(super) fn on_interim(&self, head: &ResponseHead<'_>) {
        if let Some(program) = &self.on_informational
            && let Ok(head) = head.to_response()
        {
            program.tell(&head);
        }
    }

    /// The request has gone before the handshake was complete, with this head and without content.
    pub(super) fn early(self, head: request::Parts) -> Exchange {
        Exchange { early: Early::Sent(Box::new(head)), ..self }
    }

    /// The request, if the server wants it when the handshake is complete. Source: RFC 8470 §5.2.
    pub(super) fn take_refused_early(&mut self) -> Option<Job> {
        let Early::Refused(head) = std::mem::replace(&mut self.early, Early::No) else { return None };
        let receiver = self.receiver.take()?;
        Some(Job { head: *head, content: Body::empty(), receiver, timing: Timing::AfterHandshake })
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
    ///
    /// # Errors
    /// The content has failed.
    pub(super) fn next_content(&mut self, room: usize, waker: &Waker) -> Result<Content, Error> {
        let Some(upload) = &mut self.upload else { return Ok(Content::Wait) };
        let content = upload.next(room, &mut Context::from_waker(waker))?;
        if matches!(content, Content::Last(..)) {
            self.upload = None;
        }
        Ok(content)
    }

    /// Whether nothing more of it is wanted. The task of `cx` is called when that changes, and when there is room.
    pub(super) fn is_unwanted(&mut self, cx: &mut Context<'_>) -> bool {
        self.fault.is_some() || self.receiver.as_mut().is_some_and(|receiver| receiver.is_unwanted(cx))
    }

    /// Whether the response was paused and has room again.
    pub(super) fn takes_more(&mut self) -> bool {
        self.is_paused && self.receiver.as_ref().is_some_and(|receiver| receiver.has_room()) && {
            self.is_paused = false;
            true
        }
    }

    /// The head has come. Calls `waker` where it cannot be used.
    pub(super) fn on_head(&mut self, head: &ResponseHead<'_>, waker: &Waker) {
        self.early = match std::mem::replace(&mut self.early, Early::No) {
            //= rfc8470/5.2#2
            Early::Sent(request) if head.status() == 425 => {
                self.early = Early::Refused(request);
                return;
            }
            Early::No | Early::Sent(_) | Early::Refused(_) => Early::No,
        };
        match (head.to_response(), &mut self.receiver) {
            (Ok(response), Some(receiver)) => receiver.on_head(response, waker),
            (Ok(_), None) => {}
            (Err(error), _) => {
                self.fault =
                    Some(Error::caused(Kind::Protocol, "the head of the response is not valid", error));
                waker.wake_by_ref();
            }
        }
    }

    #[inline]
    pub(super) fn on_body(&mut self, bytes: &[u8]) -> usize {
        let Some(receiver) = self.receiver.as_mut().filter(|_| matches!(self.early, Early::No)) else {
            return bytes.len();
        };
        let taken = receiver.on_body(bytes);
        self.is_paused = taken < bytes.len();
        taken
    }

    pub(super) fn on_trailers(&mut self, trailers: &Trailers<'_>) {
        // Fields that cannot be expressed are left out, as RFC 9110 §6.5.1 permits.
        if let (Early::No, Some(receiver)) = (&self.early, &mut self.receiver) {
            receiver.on_trailers(trailers.to_headers().ok());
        }
    }

    /// The response is complete, or there is an error; that of its head comes first.
    pub(super) fn end(&mut self, error: Option<Error>) -> Option<Ended> {
        // It may be carried out twice, and there is no answer.
        let error =
            error.map(|error| if matches!(self.early, Early::Sent(_)) { error.retryable() } else { error });
        let error = self.fault.take().or(error);
        self.receiver.take().map(|receiver| Ended { receiver, error })
    }
}
