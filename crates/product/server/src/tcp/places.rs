//! Memory of requests that were answered, used again by the next ones: their heads, and what wakes them.
//!
//! A head and its waker stay together, as a head may keep the waker. They are free again when the response is over: until then what
//! sends the content is woken by it. A waker that an earlier request has left somewhere wakes a later one, which finds nothing to do.

use crate::caught::caught;
use crate::low::Head;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// So many are kept of each thread.
const SPARE: usize = 64;

/// Those that no request has.
pub(super) struct Places<T>(Rc<RefCell<Vec<Box<Kept<T>>>>>);

impl<T> Clone for Places<T> {
    fn clone(&self) -> Places<T> {
        Places(Rc::clone(&self.0))
    }
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places(Rc::default())
    }
}

impl<T: Head> Places<T> {
    /// One for a request that has arrived.
    pub(super) fn take(&self) -> Place<T> {
        let kept = self.0.borrow_mut().pop().unwrap_or_else(Kept::new);
        Place { kept: Some(kept), places: self.clone() }
    }
}

/// Boxed, because it is handed from place to place and is large.
struct Kept<T> {
    head: T,
    wakes: Arc<RequestWaker>,
    /// The same.
    waker: Waker,
    /// The head is as good as new.
    is_recycled: bool,
}

impl<T: Head> Kept<T> {
    fn new() -> Box<Kept<T>> {
        let (wakes, waker) = RequestWaker::new();
        Box::new(Kept { head: T::default(), wakes, waker, is_recycled: true })
    }
}

/// The place of a request. Dropped, it is free for the next one.
pub(super) struct Place<T: Head> {
    /// Always there but while it is dropped.
    kept: Option<Box<Kept<T>>>,
    places: Places<T>,
}

impl<T: Head> Place<T> {
    /// The head, which will be filled.
    pub(super) fn head(&mut self) -> &mut T {
        self.parts().0
    }

    /// The head, and what its handler wakes.
    pub(super) fn parts(&mut self) -> (&mut T, &Waker) {
        let kept = self.kept.get_or_insert_with(Kept::new);
        kept.is_recycled = false;
        (&mut kept.head, &kept.waker)
    }

    /// What the handler wakes.
    pub(super) fn waker(&mut self) -> &Waker {
        &self.kept.get_or_insert_with(Kept::new).waker
    }

    /// The task of `cx` answers the request from now on.
    pub(super) fn set_task(&self, cx: &Context<'_>) {
        self.kept.iter().for_each(|kept| kept.wakes.set(cx));
    }

    /// The head has panicked: its memory is not used again.
    pub(super) fn discard(mut self) {
        self.kept = None;
    }

    /// The head is not needed again: what it holds goes.
    pub(super) fn end_head(&mut self) {
        if let Some(kept) = self.kept.as_mut().filter(|kept| !kept.is_recycled) {
            // A head that panics here is not used again.
            kept.is_recycled = caught(|| {
                kept.head.recycle();
                kept.head.leave_connection();
            })
            .is_ok();
        }
    }
}

impl<T: Head> Drop for Place<T> {
    fn drop(&mut self) {
        self.end_head();
        let Some(kept) = self.kept.take().filter(|kept| kept.is_recycled) else { return };
        kept.wakes.forget();
        let mut places = self.places.0.borrow_mut();
        if places.len() < SPARE {
            places.push(kept);
        }
    }
}

/// Wakes the task that answers a request. hyper polls a request in more than one task; the waker that the handler has stays good.
struct RequestWaker(Mutex<Waker>);

impl RequestWaker {
    /// Wakes nothing until a task is known. The waker is the handler's.
    fn new() -> (Arc<RequestWaker>, Waker) {
        let waker = Arc::new(RequestWaker(Mutex::new(Waker::noop().clone())));
        (Arc::clone(&waker), Waker::from(waker))
    }

    /// The task of `cx` answers the request from now on.
    fn set(&self, cx: &Context<'_>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(cx.waker());
    }

    /// Wakes nothing from now on.
    fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(Waker::noop());
    }
}

impl Wake for RequestWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // Not under the lock: what is woken may drop wakers.
        let waker = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        waker.wake();
    }
}
