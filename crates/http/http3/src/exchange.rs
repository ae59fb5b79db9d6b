//! A request and its response, as a connection keeps them.

use crate::message::Message;
use crate::outgoing::Outgoing;

/// A request and its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// What arrives.
    pub(crate) incoming: Message,
    /// What leaves.
    pub(crate) outgoing: Outgoing,
}

impl Exchange {
    /// Whether both halves are over, so that nothing can happen any more.
    #[inline]
    pub(crate) fn is_over(&self) -> bool {
        self.incoming.is_ended() && self.outgoing.is_done()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exchange_is_small() {
        assert!(size_of::<Option<(u64, Exchange)>>() <= 168, "{}", size_of::<Option<(u64, Exchange)>>());
    }
}
