//! One stream: its two parts and its memberships.

use super::config::Priority;
use super::recv::RecvStream;
use super::send::SendStream;
use crate::stream_id::StreamId;

/// What the application must still hear of a stream, as a set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Notices(u8);

impl Notices {
    pub(super) const RESET: Notices = Notices(1);
    pub(super) const STOPPED: Notices = Notices(2);
    pub(super) const WRITABLE: Notices = Notices(4);
    pub(super) const FINISHED: Notices = Notices(8);

    #[inline]
    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) fn add(&mut self, notice: Notices) {
        self.0 |= notice.0;
    }

    pub(super) fn remove(&mut self, notice: Notices) {
        self.0 &= !notice.0;
    }

    /// Takes the first one out.
    pub(super) fn take_first(&mut self) -> Option<Notices> {
        let first = Notices(self.0 & self.0.wrapping_neg());
        self.remove(first);
        (!first.is_empty()).then_some(first)
    }
}

/// Whether the application waits for room in the send buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    /// It did not ask, or was told.
    Content,
    /// It found the buffer full.
    Waiting,
}

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    pub(super) priority: Priority,
    pub(super) writer: Writer,
    pub(super) notices: Notices,
    /// The place is in the queue of events. Belongs to the place, as the next does.
    pub(super) in_events: bool,
    /// The place is in the queue of control frames.
    pub(super) in_control: bool,
    pub(super) send: SendStream,
    pub(super) recv: RecvStream,
    /// The peer's code in RESET_STREAM.
    pub(super) reset_code: u64,
    /// The peer's code in STOP_SENDING.
    pub(super) stop_code: u64,
}

impl Stream {
    pub(super) fn new() -> Stream {
        Stream {
            id: StreamId::from_u64(0),
            priority: Priority::default(),
            writer: Writer::Content,
            notices: Notices::default(),
            in_events: false,
            in_control: false,
            send: SendStream::new(),
            recv: RecvStream::new(),
            reset_code: 0,
            stop_code: 0,
        }
    }

    /// Makes the place ready for the next stream. The memberships stay: a queue that still names the place finds the
    /// next stream there, with nothing to do or with its own business.
    pub(super) fn recycle(&mut self) {
        self.priority = Priority::default();
        self.writer = Writer::Content;
        self.notices = Notices::default();
        self.send.recycle();
        self.recv.recycle();
    }

    /// Whether no stream has the place.
    pub(super) fn is_vacant(&self) -> bool {
        self.send.is_absent() && self.recv.is_absent()
    }

    /// Whether both parts are over and the application has heard of it.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.send.is_over() && self.recv.is_over() && self.notices.is_empty()
    }

    /// Whether a control frame should be written.
    pub(super) fn wants_control(&self) -> bool {
        self.send.pending_reset().is_some()
            || self.send.pending_reset_at().is_some()
            || self.send.credit.blocked.is_pending()
            || self.recv.stop.is_pending()
            || self.recv.window.is_pending()
    }
}
