//! What kept the rate of a run from being higher.

use super::cost::{GeneratorCost, ServerShare};
use serde::Serialize;

/// A generator thread above this share of a core cannot ask for more.
const GENERATOR_BUSY: f64 = 0.95;
/// A server thread below this share of a core could answer more.
const SERVER_BUSY: f64 = 0.90;
/// A thread that waits for a core for a larger share of the time than this is held back by others on the machine.
const CROWDED: f64 = 0.10;

/// What kept the rate from being higher.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// The generator: more threads or another machine would give more.
    Generator,
    /// The generator seems to be. How busy the server was is not known.
    PerhapsGenerator,
    /// The server.
    Server,
    /// Threads waited for cores: this machine is too small for both.
    Cores,
    /// Neither was busy: the number of requests at a time, the pace, or the network.
    Outstanding,
}

impl Limit {
    /// One line for people.
    pub const fn words(self) -> &'static str {
        match self {
            Limit::Generator => {
                "the generator: its thread was busy all the time and the server was not; use more threads (-t) or another machine"
            }
            Limit::PerhapsGenerator => {
                "perhaps the generator: its thread was busy all the time; --server-pid tells whether the server was too"
            }
            Limit::Server => "the server: it was busy all the time",
            Limit::Cores => {
                "the cores: threads that could run had to wait for one; the server alone could answer more"
            }
            Limit::Outstanding => {
                "neither side was busy: the pace, the requests at a time (-c, -m), or the network"
            }
        }
    }
}

/// Which side was busy all the time, if one was.
pub(super) fn limit(generator: &GeneratorCost, server: Option<&ServerShare>) -> Limit {
    let is_generator_busy = generator.busiest_thread > GENERATOR_BUSY;
    match server {
        None if is_generator_busy => Limit::PerhapsGenerator,
        Some(server) if is_generator_busy && server.busiest_thread < SERVER_BUSY => Limit::Generator,
        Some(server) if server.busiest_thread >= SERVER_BUSY => Limit::Server,
        Some(server) if generator.waited_for_core.max(server.waited_for_core) > CROWDED => Limit::Cores,
        None if generator.waited_for_core > CROWDED => Limit::Cores,
        _ => Limit::Outstanding,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a slow generator could be taken for a slow server.
    #[test]
    fn the_side_that_limits_is_named() {
        let generator = |busiest_thread, waited_for_core| GeneratorCost {
            busiest_thread,
            waited_for_core,
            ..GeneratorCost::default()
        };
        let server = |busiest_thread, waited_for_core| {
            Some(ServerShare { busiest_thread, waited_for_core, ..ServerShare::default() })
        };
        let table = [
            (generator(0.97, 0.0), server(0.5, 0.0), Limit::Generator),
            (generator(0.97, 0.0), server(0.93, 0.0), Limit::Server),
            (generator(0.97, 0.0), None, Limit::PerhapsGenerator),
            (generator(0.5, 0.0), server(0.95, 0.0), Limit::Server),
            (generator(0.5, 0.3), server(0.5, 0.4), Limit::Cores),
            (generator(0.5, 0.3), None, Limit::Cores),
            (generator(0.5, 0.0), server(0.5, 0.0), Limit::Outstanding),
        ];
        for (generator, server, expected) in table {
            assert_eq!(limit(&generator, server.as_ref()), expected, "{generator:?} {server:?}");
        }
    }
}
