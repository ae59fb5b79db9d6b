//! QUIC in a loop of the program's own: one thread, poll(2), no runtime. The loop waits for the endpoints and for whatever else
//! the program has; here it is a pipe that stands for a device.
//!
//! ```text
//! cargo run --example own_loop
//! ```

use quic::{Endpoint, ManualDriver, Progress};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, Read as _, Write as _};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

mod setup;

type Error = Box<dyn std::error::Error + Send + Sync>;
type Task<T> = Pin<Box<dyn Future<Output = Result<T, Error>>>>;

fn main() -> Result<(), Error> {
    println!("{}", run("a reading")?);
    Ok(())
}

/// A task is ready: the loop does not sleep.
#[derive(Default)]
struct Ready(AtomicBool);

impl Wake for Ready {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}

/// Both ends over loopback on one thread. Sends what the device says. Returns what the server received.
pub(crate) fn run(reading: &str) -> Result<String, Error> {
    let address = "127.0.0.1:0".parse()?;
    let (server, server_driver) =
        Endpoint::builder(address).server(setup::server("readings")?).build_manual()?;
    let (client, client_driver) = Endpoint::builder(address).build_manual()?;
    let (mut device, mut device_end) = io::pipe()?;
    device_end.write_all(reading.as_bytes())?;
    drop(device_end);

    let to = server.local_addr()?;
    let mut receiving: Task<String> = Box::pin(async move {
        let connection = server.accept().await.ok_or("the endpoint is closed")?.await?;
        let bytes = connection.accept_uni().await?.read_to_end(1_000).await?;
        connection.close(0_u8.into(), b"done");
        Ok(String::from_utf8(bytes)?)
    });
    let config = setup::client("readings")?;
    let mut sending: Option<Task<()>> = None;
    let mut client = Some(client);

    let ready = Arc::new(Ready::default());
    let waker = Waker::from(Arc::clone(&ready));
    let mut context = Context::from_waker(&waker);
    let mut drivers = [server_driver, client_driver];
    let mut received = None;
    loop {
        if received.is_none()
            && let Poll::Ready(outcome) = receiving.as_mut().poll(&mut context)
        {
            received = Some(outcome?);
        }
        if let Some(future) = &mut sending
            && let Poll::Ready(outcome) = future.as_mut().poll(&mut context)
        {
            outcome?;
            sending = None;
        }
        let sleep = match turn(&mut drivers, &ready)? {
            Progress::Ended => return received.ok_or_else(|| "the connection ended early".into()),
            Progress::Again => Some(Duration::ZERO),
            Progress::Wait(at_most) => at_most,
        };
        let is_device_open = client.is_some();
        if wait(&drivers, is_device_open.then_some(&device), sleep)?
            && let Some(client) = client.take()
        {
            let mut bytes = Vec::new();
            device.read_to_end(&mut bytes)?;
            let config = config.clone();
            sending = Some(Box::pin(async move {
                let connection = client.connect_with(config, to, "localhost")?.await?;
                let mut stream = connection.open_uni().await?;
                stream.write_all(&bytes).await?;
                stream.finish()?;
                connection.closed().await;
                Ok(())
            }));
            ready.0.store(true, Ordering::Release);
        }
        drivers.iter_mut().for_each(ManualDriver::on_woken);
    }
}

/// A turn of each endpoint. Returns what the loop does next.
fn turn(drivers: &mut [ManualDriver], ready: &Ready) -> io::Result<Progress> {
    let mut next = Progress::Ended;
    for driver in drivers {
        next = match (next, driver.turn()?) {
            (next, Progress::Ended) => next,
            (Progress::Wait(Some(one)), Progress::Wait(Some(other))) => Progress::Wait(Some(one.min(other))),
            (Progress::Ended | Progress::Wait(None), other) => other,
            (Progress::Wait(at_most), Progress::Wait(None)) => Progress::Wait(at_most),
            (Progress::Again, _) | (_, Progress::Again) => Progress::Again,
        };
    }
    let is_awake = ready.0.swap(false, Ordering::AcqRel);
    Ok(if is_awake && next != Progress::Ended { Progress::Again } else { next })
}

/// Sleeps. Returns whether the device can be read.
fn wait(
    drivers: &[ManualDriver],
    device: Option<&io::PipeReader>,
    sleep: Option<Duration>,
) -> io::Result<bool> {
    let timeout = sleep.and_then(|sleep| Timespec::try_from(sleep).ok());
    let descriptors: Vec<_> = drivers.iter().flat_map(ManualDriver::descriptors).collect();
    let mut events: Vec<PollFd<'_>> =
        device.iter().map(|device| PollFd::new(device, PollFlags::IN)).collect();
    events.extend(descriptors.iter().map(|descriptor| PollFd::new(descriptor, PollFlags::IN)));
    match poll(&mut events, timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(device.is_some() && events.first().is_some_and(|event| !event.revents().is_empty()))
}
