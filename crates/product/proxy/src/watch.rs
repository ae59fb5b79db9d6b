//! The checks of an upstream, one after the other.
//!
//! A task asks for an upstream, however many routes have it, and ends with the last of them.

use crate::check::Check;
use crate::health::Health;
use crate::log::say;
use std::sync::Weak;
use tokio::time::{Instant, sleep};

/// How the checks of an upstream went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    /// What the last ones said, if there were any.
    is_good: Option<bool>,
    /// So many in a row.
    length: u32,
}

impl Row {
    /// Counts a check. Returns what is known now; `None`: no more than before.
    fn add(&mut self, is_good: bool, check: &Check) -> Option<bool> {
        let is_first = self.is_good.is_none();
        let length = if self.is_good == Some(is_good) { self.length.saturating_add(1) } else { 1 };
        *self = Row { is_good: Some(is_good), length };
        let needed = if is_good { check.rises } else { check.falls };
        // Of an upstream of which nothing is known, the first one tells.
        (is_first || length >= needed).then_some(is_good)
    }
}

/// Checks an upstream while live routes have it.
pub(crate) async fn watch(health: Weak<Health>) {
    let mut row = Row { is_good: None, length: 0 };
    loop {
        let Some(health) = health.upgrade() else { return };
        let Some(probe) = health.next_probe() else { return };
        let address = health.address();
        let asked = probe.ask(address).await;
        let known = row.add(asked.is_ok(), &probe.check);
        if let (Err(why), Some(tally)) = (&asked, health.tally()) {
            tally.on_failed_check();
            health
                .notice()
                .warn(Instant::now(), || format!("{address}: the check {} fails: {why}", probe.check.path));
        }
        match known {
            Some(true) if health.set_down(false) => say(&format!("tercel: proxy: {address} is well again")),
            Some(false) if health.set_down(true) => say(&format!(
                "tercel: warning: proxy: {address} is down by its checks, and gets no requests, if others do"
            )),
            _ => {}
        }
        drop(health);
        sleep(probe.check.interval).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, one check that is lost could take an upstream out, or one that succeeds bring back one that is not well.
    #[test]
    fn some_checks_in_a_row_change_what_is_known() {
        let check = Check::new(http::uri::PathAndQuery::from_static("/"));
        let rows = |results: &[bool]| -> Vec<Option<bool>> {
            let mut row = Row { is_good: None, length: 0 };
            results.iter().map(|is_good| row.add(*is_good, &check)).collect()
        };
        assert_eq!(rows(&[true, false, false, true]), [Some(true), None, None, None]);
        assert_eq!(rows(&[true, false, false, false, false])[3..], [Some(false); 2]);
        assert_eq!(rows(&[false, true, true]), [Some(false), None, Some(true)]);
        assert_eq!(rows(&[false, true, false, true, true]), [Some(false), None, None, None, Some(true)]);
    }
}
