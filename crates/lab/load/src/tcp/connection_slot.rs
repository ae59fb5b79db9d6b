//! The place of a connection: made, used, and made again when it has ended.

use super::clock;
use super::connect::connect;
use super::request_failure::RequestFailure;
use super::request_slot;
use super::sender::{self, Driver, Sender};
use super::thread_state::{ConnectionHandle, RequestSlot, SlotState, ThreadState};
use crate::kinds::HandshakeKind;
use crate::run_phase::{PAUSES, TICK};
use base::time::Duration;
use std::rc::Rc;
use tokio::task::JoinSet;

/// Keeps a connection, as long as there is hope.
pub(super) async fn keep(thread_state: Rc<ThreadState>, number: usize) {
    let request_slots: Vec<Rc<RequestSlot>> =
        (0..thread_state.plan.streams).map(|_| Rc::new(thread_state.place())).collect();
    let mut state = SlotState::default();
    let mut pause = PAUSES[0];
    loop {
        // It is never closed.
        let turn = thread_state.handshakes.acquire().await;
        let began = clock::now();
        let dialled = dial(&thread_state, &mut state).await;
        drop(turn);
        match dialled {
            Ok(Dialled { link, sender, driver, kind }) => {
                let took = clock::now().saturating_since(began);
                thread_state.accounts.borrow_mut().on_handshake(None, took, kind);
                use_up(
                    &thread_state,
                    &link,
                    sender,
                    (thread_state.plan.first_request(number), &request_slots),
                )
                .await;
                drop(driver);
                thread_state.on_down();
                pause = PAUSES[0];
                if link.answers.get() > 0 {
                    // A server may end a connection when it has served enough.
                    continue;
                }
            }
            Err(request_failure) => thread_state.on_refused(&mut state, &request_failure),
        }
        rest(&mut pause).await;
        // What never worked is tried once, until another one works.
        while !thread_state.has_worked() {
            tokio::time::sleep(std::time::Duration::from_nanos(TICK.as_nanos())).await;
        }
    }
}

/// Makes a connection for each request.
pub(super) async fn once_each(thread_state: Rc<ThreadState>, number: usize) {
    let place = thread_state.place();
    let mut state = SlotState::default();
    let mut pause = PAUSES[0];
    let mut request = number;
    let no_connection = ConnectionHandle::default();
    loop {
        let Some(times) = thread_state.next(&no_connection).await else { return };
        place.set(Some(&times));
        let began = clock::now();
        let outcome = match dial(&thread_state, &mut state).await {
            Ok(Dialled { mut sender, driver, kind, .. }) => {
                let took = clock::now().saturating_since(began);
                thread_state.accounts.borrow_mut().on_handshake(Some(&times), took, kind);
                pause = PAUSES[0];
                let outcome = match sender.is_ready().await {
                    true => request_slot::within(&thread_state, &times, &mut sender, request).await,
                    false => {
                        Err(RequestFailure::untouched("the connection ended before the request was sent"))
                    }
                };
                drop(driver);
                thread_state.on_down();
                outcome
            }
            Err(request_failure) => {
                thread_state.on_refused(&mut state, &request_failure);
                Err(request_failure)
            }
        };
        place.set(None);
        request = request.wrapping_add(thread_state.plan.connections);
        thread_state.book(&times, outcome);
        if state.has_failed() {
            rest(&mut pause).await;
            while !thread_state.has_worked() {
                tokio::time::sleep(std::time::Duration::from_nanos(TICK.as_nanos())).await;
            }
        }
    }
}

/// A connection that takes requests.
struct Dialled {
    link: Rc<ConnectionHandle>,
    sender: Sender,
    driver: Driver,
    kind: HandshakeKind,
}

async fn dial(thread_state: &Rc<ThreadState>, state: &mut SlotState) -> Result<Dialled, RequestFailure> {
    thread_state.on_dial();
    let link = Rc::new(ConnectionHandle::default());
    let stream = connect(thread_state).await?;
    let kind = stream.handshake_kind();
    let (sender, driver) = sender::open(thread_state, &link, stream).await?;
    thread_state.on_up(state);
    Ok(Dialled { link, sender, driver, kind })
}

/// Asks until the connection takes no more.
async fn use_up(
    thread_state: &Rc<ThreadState>,
    link: &Rc<ConnectionHandle>,
    sender: Sender,
    (first_request, request_slots): (usize, &[Rc<RequestSlot>]),
) {
    let mut tasks = JoinSet::new();
    let others = request_slots.iter().enumerate().skip(1);
    for (slot, place) in others {
        let Some(another) = sender.another() else { break };
        let which = (slot, first_request.wrapping_add(slot));
        tasks.spawn_local(request_slot::ask(
            Rc::clone(thread_state),
            Rc::clone(link),
            another,
            Rc::clone(place),
            which,
        ));
    }
    if let Some(place) = request_slots.first() {
        tasks.spawn_local(request_slot::ask(
            Rc::clone(thread_state),
            Rc::clone(link),
            sender,
            Rc::clone(place),
            (0, first_request),
        ));
    }
    while tasks.join_next().await.is_some() {}
    thread_state.on_gone(link);
}

/// Waits, and longer the next time.
async fn rest(pause: &mut Duration) {
    tokio::time::sleep(std::time::Duration::from_nanos(pause.as_nanos())).await;
    *pause = (*pause * 2).min(PAUSES[1]);
}
