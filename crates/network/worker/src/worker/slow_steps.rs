//! Steps of handshakes that come back from other threads.

use super::Worker;
use crate::app::App;
use crate::handshakes::{HandshakeExecutor, Handshakes};
use datapath::Port;
use transport::ServerConfig;

impl<P: Port, A: App> Worker<P, A> {
    /// Steps of clients' handshakes that take long, such as a signature with a key for RSA, are taken where `executor` says, and no
    /// other connection waits for them. Without it they are taken on this thread.
    #[must_use]
    pub fn with_handshake_executor(mut self, executor: HandshakeExecutor) -> Self {
        let apart = |server: ServerConfig| ServerConfig { tls: server.tls.with_slow_steps_apart(), ..server };
        self.server = self.server.map(apart);
        self.handshakes = Some(Box::new(Handshakes::new(executor, self.port.waker())));
        self
    }

    /// Whether steps have come back.
    #[inline]
    pub(super) fn has_finished_steps(&self) -> bool {
        self.handshakes.as_ref().is_some_and(|handshakes| handshakes.has_finished())
    }

    /// Connections go on whose steps have come back, and others in line have theirs taken.
    #[cold]
    pub(super) fn finish_steps(&mut self) {
        let Some(handshakes) = &mut self.handshakes else { return };
        let finished = handshakes.take_finished();
        while let Some(handle) = handshakes.next_in_line() {
            if let Some(entry) = self.slab.entry_mut(handle) {
                handshakes.begin(handle, entry);
            }
        }
        for finished in finished {
            let Some(entry) = self.slab.entry_mut(finished.handle) else { continue };
            entry.connection.finish_handshake_work(self.now, finished.outcome, &mut entry.state);
            self.activate(finished.handle);
        }
    }
}
