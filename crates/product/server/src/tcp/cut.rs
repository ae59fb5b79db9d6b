//! The task by which hyper sends on the stream of a tunnel over HTTP/2: dropped, it resets the stream.

use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use tokio::task::AbortHandle;

/// The task of a tunnel, once it runs.
pub(super) type Cut = Rc<OnceCell<AbortHandle>>;

/// Whose task hyper starts next on a thread. It starts it as soon as it has the response that opens a tunnel, and none before it. If the
/// client has gone it starts none: then the tunnel does not begin, and looks at no task.
#[derive(Default)]
pub(super) struct NextCut(Cell<Option<Cut>>);

impl NextCut {
    /// What hears of the task that hyper starts for the response which it is given now.
    pub(super) fn expect(&self) -> Cut {
        let cut = Cut::default();
        self.0.set(Some(Rc::clone(&cut)));
        cut
    }

    /// What hears of the task that hyper starts now, if that is a tunnel's.
    pub(super) fn take(&self) -> Option<Cut> {
        self.0.take()
    }
}
