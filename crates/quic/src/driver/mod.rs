//! Who owns the thread that drives an endpoint.

mod engine;
mod thread;

pub(crate) use engine::Engine;
pub(crate) use thread::spawn;
