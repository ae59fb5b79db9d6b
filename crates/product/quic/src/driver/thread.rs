//! A thread of its own, which sleeps in poll(2).

use super::Engine;
use datapath::Port;
use std::io;
use std::thread::Builder;

/// Starts the thread.
///
/// # Errors
/// The system has no threads left.
pub(crate) fn spawn<P: Port + Send + 'static>(mut engine: Engine<P>) -> io::Result<()> {
    let run = move || {
        // An error means that the socket is broken: the engine ends, and with it all connections.
        while engine.obey() && engine.run_turn().is_ok() {}
    };
    Builder::new().name("tercel-quic".into()).spawn(run).map(drop)
}
