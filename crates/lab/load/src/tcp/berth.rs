//! The place of a connection: made, used, and made again when it has ended.

use super::clock;
use super::connect::connect;
use super::desk::{BerthState, Desk, Link, Place};
use super::lane;
use super::sender::{self, Driver, Sender};
use super::trouble::Trouble;
use crate::course::{PAUSES, TICK};
use base::time::Duration;
use std::rc::Rc;
use tokio::task::JoinSet;

/// Keeps a connection, as long as there is hope.
pub(super) async fn keep(desk: Rc<Desk>, number: usize) {
    let places: Vec<Rc<Place>> = (0..desk.plan.streams).map(|_| Rc::new(desk.place())).collect();
    let mut state = BerthState::default();
    let mut pause = PAUSES[0];
    loop {
        let began = clock::now();
        match dial(&desk, &mut state).await {
            Ok((link, sender, driver)) => {
                desk.books.borrow_mut().on_handshake(clock::now().saturating_since(began));
                use_up(&desk, &link, sender, (number, &places)).await;
                drop(driver);
                desk.on_down();
                pause = PAUSES[0];
                if link.answers.get() > 0 {
                    // A server may end a connection when it has served enough.
                    continue;
                }
            }
            Err(trouble) => desk.on_refused(&mut state, &trouble),
        }
        rest(&mut pause).await;
        // What never worked is tried once, until another one works.
        while !desk.has_worked() {
            tokio::time::sleep(std::time::Duration::from_nanos(TICK.as_nanos())).await;
        }
    }
}

/// Makes a connection for each request.
pub(super) async fn once_each(desk: Rc<Desk>, number: usize) {
    let place = desk.place();
    let mut state = BerthState::default();
    let mut pause = PAUSES[0];
    let mut request = number;
    let nobody = Link::default();
    loop {
        let Some(asked) = desk.next(&nobody).await else { return };
        place.set(Some(&asked));
        let began = clock::now();
        let outcome = match dial(&desk, &mut state).await {
            Ok((_, mut sender, driver)) => {
                let took = clock::now().saturating_since(began);
                desk.books.borrow_mut().on_handshake_for(&asked, took);
                pause = PAUSES[0];
                let outcome = match sender.is_ready().await {
                    true => lane::within(&desk, &asked, &mut sender, request).await,
                    false => Err(Trouble::untouched("the connection ended before the request was sent")),
                };
                drop(driver);
                desk.on_down();
                outcome
            }
            Err(trouble) => {
                desk.on_refused(&mut state, &trouble);
                Err(trouble)
            }
        };
        place.set(None);
        request = request.wrapping_add(desk.plan.connections);
        desk.book(&asked, outcome);
        if state.has_failed() {
            rest(&mut pause).await;
            while !desk.has_worked() {
                tokio::time::sleep(std::time::Duration::from_nanos(TICK.as_nanos())).await;
            }
        }
    }
}

/// A connection that takes requests.
async fn dial(desk: &Rc<Desk>, state: &mut BerthState) -> Result<(Rc<Link>, Sender, Driver), Trouble> {
    desk.on_dial();
    let link = Rc::new(Link::default());
    let stream = connect(desk).await?;
    let (sender, driver) = sender::open(desk, &link, stream).await?;
    desk.on_up(state);
    Ok((link, sender, driver))
}

/// Asks until the connection takes no more.
async fn use_up(desk: &Rc<Desk>, link: &Rc<Link>, sender: Sender, (number, places): (usize, &[Rc<Place>])) {
    let mut lanes = JoinSet::new();
    let others = places.iter().enumerate().skip(1);
    for (lane, place) in others {
        let Some(another) = sender.another() else { break };
        let which = (lane, number.wrapping_add(lane));
        lanes.spawn_local(lane::ask(Rc::clone(desk), Rc::clone(link), another, Rc::clone(place), which));
    }
    if let Some(place) = places.first() {
        lanes.spawn_local(lane::ask(Rc::clone(desk), Rc::clone(link), sender, Rc::clone(place), (0, number)));
    }
    while lanes.join_next().await.is_some() {}
    desk.on_gone(link);
}

/// Waits, and longer the next time.
async fn rest(pause: &mut Duration) {
    tokio::time::sleep(std::time::Duration::from_nanos(pause.as_nanos())).await;
    *pause = (*pause * 2).min(PAUSES[1]);
}
