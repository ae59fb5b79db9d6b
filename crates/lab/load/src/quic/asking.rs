//! Which connections of a thread have requests outstanding: those that are looked at when time passes.
//!
//! A hundred thousand connections of which a few ask would otherwise all be visited at each tick, and all be out of every cache.

/// Numbers of connections, each at most once.
#[derive(Debug, Default)]
pub(super) struct AskingConnections {
    is_listed: Vec<bool>,
    numbers: Vec<usize>,
}

impl AskingConnections {
    /// None of `connections` asks.
    pub(super) fn new(connections: usize) -> AskingConnections {
        AskingConnections { is_listed: vec![false; connections], numbers: Vec::new() }
    }

    /// This connection asks. Returns whether it was not known to.
    #[inline]
    pub(super) fn note(&mut self, number: usize) -> bool {
        let is_new = self.is_listed.get_mut(number).is_some_and(|listed| !core::mem::replace(listed, true));
        if is_new {
            self.numbers.push(number);
        }
        is_new
    }

    /// Visits each connection that asks, and forgets it unless `visit` says that it still does.
    pub(super) fn retain(&mut self, mut visit: impl FnMut(usize) -> bool) {
        let is_listed = &mut self.is_listed;
        self.numbers.retain(|number| {
            let stays = visit(*number);
            if let Some(listed) = is_listed.get_mut(*number) {
                *listed = stays;
            }
            stays
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(asking: &mut AskingConnections, stays: impl Fn(usize) -> bool) -> Vec<usize> {
        let mut visited = Vec::new();
        asking.retain(|number| {
            visited.push(number);
            stays(number)
        });
        visited
    }

    /// Deleted, a tick could visit connections that ask nothing, or leave out one whose request is too old.
    #[test]
    fn only_those_that_ask_are_visited() {
        let mut asking = AskingConnections::new(100_000);
        assert!(visited(&mut asking, |_| true).is_empty());
        assert!(asking.note(7) && asking.note(99_999) && !asking.note(7));
        assert!(!asking.note(100_000), "there is no such connection");
        assert_eq!(visited(&mut asking, |number| number != 7), [7, 99_999]);
        assert_eq!(visited(&mut asking, |_| true), [99_999]);
        assert!(asking.note(7) && !asking.note(99_999));
        assert_eq!(visited(&mut asking, |_| false), [99_999, 7]);
        assert!(visited(&mut asking, |_| true).is_empty());
    }
}
