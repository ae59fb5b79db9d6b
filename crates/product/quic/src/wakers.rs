//! Tasks that wait for the same thing.

use core::task::{Context, Waker};

/// Tasks that are woken together. A task that waits twice is kept once.
#[derive(Debug, Default)]
pub(crate) struct Wakers(Vec<Waker>);

impl Wakers {
    /// The task waits.
    pub(crate) fn note(&mut self, context: &Context<'_>) {
        if !self.0.iter().any(|waker| waker.will_wake(context.waker())) {
            self.0.push(context.waker().clone());
        }
    }

    /// Hands all of them over to be woken once the lock is free.
    pub(crate) fn hand_to(&mut self, woken: &mut Vec<Waker>) {
        woken.append(&mut self.0);
    }
}
