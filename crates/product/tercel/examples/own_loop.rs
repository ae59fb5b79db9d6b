//! A loop of the program's own: a server and a client on one thread that sleeps in poll(2). No runtime, and no thread of tercel's.
//!
//! ```text
//! cargo run --example own_loop
//! ```
//!
//! Read `drive`. A program with descriptors of its own, such as those of a window or a device, polls them in the same call.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tercel::quic::{Endpoint, ManualDriver, Progress};

mod setup;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Task<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + 'a>>;

fn main() -> Result<(), Error> {
    println!("{}", run("Hello in a loop of our own")?);
    Ok(())
}

/// Both ends over loopback. Returns what the server has sent back.
pub(crate) fn run(text: &str) -> Result<String, Error> {
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    let (server, server_driver) = Endpoint::builder(any).server(setup::server("echo")?).build_manual()?;
    let (client, client_driver) = Endpoint::builder(any).build_manual()?;
    let to = server.local_addr()?;
    let mut answer = Vec::new();
    // What the program wants of the connections are futures, which the loop polls.
    let echo: Task<'_> = Box::pin(echo(server));
    let ask: Task<'_> = Box::pin(ask(client, to, text.as_bytes(), &mut answer));
    drive(&mut [server_driver, client_driver], &mut [Some(echo), Some(ask)])?;
    Ok(String::from_utf8(answer)?)
}

/// Sends back what comes on one stream of one connection.
async fn echo(endpoint: Endpoint) -> Result<(), Error> {
    let connection = endpoint.accept().await.ok_or("the endpoint is closed")?.await?;
    let (mut send, mut recv) = connection.accept_bi().await?;
    send.write_all(&recv.read_to_end(1_000).await?).await?;
    send.finish()?;
    connection.closed().await;
    Ok(())
}

async fn ask(endpoint: Endpoint, to: SocketAddr, text: &[u8], answer: &mut Vec<u8>) -> Result<(), Error> {
    let connection = endpoint.connect_with(setup::client("echo")?, to, "localhost")?.await?;
    let (mut send, mut recv) = connection.open_bi().await?;
    send.write_all(text).await?;
    send.finish()?;
    *answer = recv.read_to_end(1_000).await?;
    connection.close(0_u8.into(), b"done");
    Ok(())
}

/// The loop. It ends when the tasks have dropped their endpoints and the connections are gone.
fn drive(drivers: &mut [ManualDriver], tasks: &mut [Option<Task<'_>>]) -> Result<(), Error> {
    let ready = Arc::new(Ready(AtomicBool::new(true)));
    let waker = Waker::from(Arc::clone(&ready));
    let mut context = Context::from_waker(&waker);
    loop {
        // What the program does: each task goes on as far as it can.
        if ready.0.swap(false, Ordering::AcqRel) {
            for task in &mut *tasks {
                if let Some(future) = task
                    && let Poll::Ready(outcome) = future.as_mut().poll(&mut context)
                {
                    outcome?;
                    *task = None;
                }
            }
        }
        // What the endpoints do: a turn takes in what has arrived, lets timers expire, and sends.
        let mut sleep = None;
        let mut is_over = true;
        for driver in &mut *drivers {
            let at_most = match driver.turn()? {
                Progress::Again => Some(Duration::ZERO),
                Progress::Wait(at_most) => at_most,
                Progress::Ended => continue,
            };
            is_over = false;
            sleep = [sleep, at_most].into_iter().flatten().min();
        }
        if is_over {
            return Ok(());
        }
        // The turns may have woken a task.
        let is_ready = ready.0.load(Ordering::Acquire);
        wait(drivers, if is_ready { Some(Duration::ZERO) } else { sleep })?;
        drivers.iter_mut().for_each(ManualDriver::on_woken);
    }
}

/// Sleeps until an endpoint has something to do, `at_most` so long if there is a limit.
fn wait(drivers: &[ManualDriver], at_most: Option<Duration>) -> io::Result<()> {
    let descriptors: Vec<_> = drivers.iter().flat_map(ManualDriver::descriptors).collect();
    let mut events: Vec<_> = descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    let timeout = at_most.and_then(|span| Timespec::try_from(span).ok());
    match poll(&mut events, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A task can go on: the loop does not sleep.
struct Ready(AtomicBool);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}
