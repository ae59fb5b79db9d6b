//! Tasks of tokio's as one type, a pointer, so that tokio's code for tasks is compiled once. It was a seventh of what compiled the proxy.

use std::future::Future;
use std::pin::Pin;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// A task.
pub type BoxTask = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Begins a task in this runtime.
pub fn spawn(task: BoxTask) -> JoinHandle<()> {
    tokio::spawn(task)
}

/// Begins a task in `runtime`.
pub fn spawn_on(runtime: &Handle, task: BoxTask) -> JoinHandle<()> {
    runtime.spawn(task)
}

/// By which hyper begins its tasks.
#[derive(Clone, Copy, Debug)]
pub struct Tasks;

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Tasks {
    fn execute(&self, task: F) {
        spawn(Box::pin(task));
    }
}
