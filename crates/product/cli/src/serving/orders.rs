//! Certificates that the server orders by itself.

use super::log;
use acme::{Manager, Order, Pace, Store};
use server::Report;
use server::challenges::Challenges;
use std::collections::BTreeMap;
use std::path::Path;

/// The orders of a server, none yet.
pub(crate) fn manager(state: &Path, challenges: Challenges) -> Manager {
    Manager::new(Store::at(state), challenges, Pace::default())
}

/// Says which ports authorities ask at where the server does not listen there: they may be passed on to it.
pub(crate) fn advise(orders: &[Order], report: &Report) {
    let listens = |port: u16| report.addresses.iter().any(|address| address.port() == port);
    let asked: BTreeMap<u16, String> =
        orders.iter().map(|order| (order.challenge.port(), order.challenge.to_string())).collect();
    for (port, challenge) in asked.into_iter().filter(|(port, _)| !listens(*port)) {
        log::warn(&format!(
            "acme: authorities ask at port {port} ({challenge}), and this server does not listen there: add it to \"listen\", or have \
             it passed on"
        ));
    }
}
