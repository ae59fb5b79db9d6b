//! Steps of handshakes that the program takes on threads of its own, because they need a signature of a slow key. See
//! [`EndpointBuilder::slow_handshakes`](crate::EndpointBuilder::slow_handshakes).

use crate::app::Application;
use datapath::Port;
use std::fmt;
use std::sync::Arc;
use worker::{HandshakeExecutor, HandshakeTask, Worker};

/// A step of a client's handshake. One that is dropped before it is taken ends its connection.
#[derive(Debug)]
pub struct HandshakeStep(HandshakeTask);

impl HandshakeStep {
    /// Takes the step, on this thread; the connection goes on in the driver's next turn.
    pub fn run(self) {
        self.0.run();
    }
}

/// Where an endpoint's slow steps are taken.
#[derive(Clone, Default)]
pub(crate) struct Steps {
    /// `None`: on the driver's thread.
    executor: Option<HandshakeExecutor>,
}

impl Steps {
    /// Where `run` has them taken.
    pub(crate) fn taken_by(run: impl Fn(HandshakeStep) + Send + Sync + 'static) -> Steps {
        Steps { executor: Some(Arc::new(move |task| run(HandshakeStep(task)))) }
    }

    /// `worker` gives its steps away, if that was asked for.
    pub(crate) fn apart_from<P: Port>(self, worker: Worker<P, Application>) -> Worker<P, Application> {
        match self.executor {
            Some(executor) => worker.with_handshake_executor(executor),
            None => worker,
        }
    }
}

impl fmt::Debug for Steps {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = if self.executor.is_some() { "Apart" } else { "Driver" };
        out.write_str(place)
    }
}
