//! Requests one after the other: as many lanes as requests may be outstanding on a connection.

use super::desk::{Desk, Link, Place};
use super::sender::Sender;
use super::trouble::Trouble;
use crate::books::Asked;
use crate::failure::Failure;
use std::rc::Rc;
use std::time::Duration;

/// How often a lane looks that is one too many for what the server allows.
const SURPLUS: Duration = Duration::from_millis(10);

/// Asks until the connection takes no more. `which` are the number of the lane on its connection, and of the request that it
/// begins with.
pub(super) async fn ask(
    desk: Rc<Desk>,
    link: Rc<Link>,
    mut sender: Sender,
    place: Rc<Place>,
    which: (usize, usize),
) {
    let (number, mut request) = which;
    loop {
        while number >= sender.allowed() {
            if link.is_gone() {
                return;
            }
            tokio::time::sleep(SURPLUS).await;
        }
        if !sender.is_ready().await {
            return;
        }
        let Some(asked) = desk.next(&link).await else { return };
        place.set(Some(&asked));
        let outcome = within(&desk, &asked, &mut sender, request).await;
        place.set(None);
        request = request.wrapping_add(desk.plan.streams);
        let goes_on = match &outcome {
            Ok(_) => true,
            // A stream may fail for itself; a connection of HTTP/1.1 is of no use after that.
            Err(_) => matches!(sender, Sender::Two(_)) && !link.is_gone(),
        };
        if outcome.is_ok() {
            link.answers.set(link.answers.get() + 1);
        }
        desk.book(&asked, outcome);
        if !goes_on {
            return;
        }
    }
}

/// An exchange, within the time that a request may take.
pub(super) async fn within(
    desk: &Desk,
    asked: &Asked,
    sender: &mut Sender,
    request: usize,
) -> Result<u16, Trouble> {
    let passed = super::clock::now().saturating_since(asked.began);
    let limit = Duration::from_nanos(desk.plan.timeout.saturating_sub(passed).as_nanos());
    match tokio::time::timeout(limit, sender.exchange(desk, request)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(Trouble::new(Failure::Timeout, "no answer in time")),
    }
}
