//! Requests one after the other: as many request slots as requests may be outstanding on a connection.

use super::request_failure::RequestFailure;
use super::sender::Sender;
use super::thread_state::{ConnectionHandle, RequestSlot, ThreadState};
use crate::accounts::RequestTimes;
use crate::failure::Failure;
use std::rc::Rc;
use std::time::Duration;

/// How often a request slot looks that is one too many for what the server allows.
const SURPLUS: Duration = Duration::from_millis(10);

/// Asks until the connection takes no more. `which` are the number of the request slot on its connection, and of the request that it
/// begins with.
pub(super) async fn ask(
    thread_state: Rc<ThreadState>,
    link: Rc<ConnectionHandle>,
    mut sender: Sender,
    place: Rc<RequestSlot>,
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
        let Some(times) = thread_state.next(&link).await else { return };
        place.set(Some(&times));
        let outcome = within(&thread_state, &times, &mut sender, request).await;
        place.set(None);
        request = request.wrapping_add(thread_state.plan.streams);
        let goes_on = match &outcome {
            Ok(_) => true,
            // A stream may fail for itself; a connection of HTTP/1.1 is of no use after that.
            Err(_) => matches!(sender, Sender::Two(_)) && !link.is_gone(),
        };
        if outcome.is_ok() {
            link.answers.set(link.answers.get() + 1);
        }
        thread_state.book(&times, outcome);
        if !goes_on {
            return;
        }
    }
}

/// An exchange, within the time that a request may take.
pub(super) async fn within(
    thread_state: &ThreadState,
    times: &RequestTimes,
    sender: &mut Sender,
    request: usize,
) -> Result<u16, RequestFailure> {
    let passed = super::clock::now().saturating_since(times.began);
    let limit = Duration::from_nanos(thread_state.plan.timeout.saturating_sub(passed).as_nanos());
    match tokio::time::timeout(limit, sender.exchange(thread_state, request)).await {
        Ok(outcome) => outcome,
        Err(_) => Err(RequestFailure::new(Failure::Timeout, "no answer in time")),
    }
}
