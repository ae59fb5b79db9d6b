//! Who owns the thread that drives an endpoint.

#[cfg(feature = "tokio")]
mod current;
mod engine;
mod manual;
mod thread;

#[cfg(feature = "tokio")]
pub(crate) use current::spawn_task;
pub(crate) use engine::Engine;
pub use manual::{ManualDriver, Progress};
pub(crate) use thread::spawn;
