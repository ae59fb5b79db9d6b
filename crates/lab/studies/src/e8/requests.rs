//! Small requests beside a download, as a browser makes them: on the download's connection, and on another one.
//!
//! The client is tercel's library, on threads inside the client's namespace: `tercel get` has no times at which it asks. Each request
//! is timed by itself from when it is asked to its last byte, whatever became of those before. On the same connection a response waits
//! for what the server sends before it and for what waits in the link's queue; on another one for the latter alone.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use client::{Client, HttpChoice, Roots};
use http::Request;
use sim::networks::beside::{APART, COUNT};
use tokio::task::{JoinHandle, spawn};
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use transport::TransportConfig;

use super::answers::{Answers, SmallRequests};
use crate::contestants::Http;

/// How often it is looked whether all shall end.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How often it is looked whether content has come: requests begin so long after it at most.
const LOOK_FOR_CONTENT: Duration = Duration::from_millis(2);

/// A download with requests beside it.
#[derive(Clone, Debug)]
pub(super) struct Browsing<'a> {
    pub(super) http: Http,
    /// The large file, and its size in bytes.
    pub(super) bulk: (String, u64),
    /// The small one.
    pub(super) small: (String, u64),
    /// When all is given up.
    pub(super) limit: Duration,
    pub(super) stop: &'a AtomicBool,
}

/// What a download with requests beside it came to.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Browsed {
    /// From the beginning to the download's last byte; none if it was not there in time.
    pub(super) seconds: Option<f64>,
    pub(super) requests: SmallRequests,
}

/// A request under way: its latency in milliseconds.
type Asked = JoinHandle<Result<f64, String>>;

impl Browsing<'_> {
    /// Downloads and asks, on the network of the calling thread.
    ///
    /// # Errors
    /// [`io::ErrorKind::Interrupted`], or what failed, in words.
    pub(super) fn run(&self) -> io::Result<Browsed> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let done = runtime.block_on(async {
            let mut browsing = pin!(self.browse());
            loop {
                match timeout(LOOK_EVERY, browsing.as_mut()).await {
                    Ok(done) => return done.map_err(io::Error::other),
                    Err(_) if self.stop.load(Ordering::Relaxed) => {
                        return Err(io::ErrorKind::Interrupted.into());
                    }
                    Err(_) => {}
                }
            }
        });
        // Requests without an answer are not waited for.
        runtime.shutdown_background();
        done
    }

    async fn browse(&self) -> Result<Browsed, String> {
        let [with_bulk, alone] = [self.client()?, self.client()?];
        let began = Instant::now();
        let deadline = began + self.limit;
        let received = Arc::new(AtomicU64::new(0));
        let mut bulk = spawn(fetch(with_bulk.clone(), self.bulk.clone(), Arc::clone(&received)));
        // Its handshake is not measured.
        let first = fetch(alone.clone(), self.small.clone(), Arc::default());
        let connected = timeout_at(deadline, first).await;
        connected.unwrap_or_else(|_| Err("the other connection was not made in time".to_owned()))?;
        while received.load(Ordering::Relaxed) == 0 && !bulk.is_finished() && Instant::now() < deadline {
            sleep(LOOK_FOR_CONTENT).await;
        }
        let mut asked: [Vec<Asked>; 2] = Default::default();
        let starts = Instant::now();
        for number in 0..COUNT {
            sleep_until(starts + Duration::from(APART) * number as u32).await;
            if bulk.is_finished() || Instant::now() >= deadline {
                break;
            }
            for (client, asked) in [&with_bulk, &alone].into_iter().zip(&mut asked) {
                asked.push(spawn(ask(client.clone(), self.small.clone())));
            }
        }
        let [same, other] = asked;
        let requests =
            SmallRequests { same: answers(same, deadline).await?, other: answers(other, deadline).await? };
        let seconds = match timeout_at(deadline, &mut bulk).await {
            Err(_) => None,
            Ok(Err(_)) => return Err("the download's task has ended".to_owned()),
            Ok(Ok(done)) => Some(done?.saturating_duration_since(began).as_secs_f64()),
        };
        Ok(Browsed { seconds, requests })
    }

    /// A client as `tercel get` has it, with a connection of its own.
    fn client(&self) -> Result<Client, String> {
        let http = match self.http {
            Http::One => HttpChoice::Http1,
            Http::Two => HttpChoice::Http2,
            Http::Three => HttpChoice::Http3,
        };
        let patient =
            TransportConfig { idle_timeout: base::time::Duration::ZERO, ..TransportConfig::default() };
        let builder = Client::builder().roots(Roots::Insecure).http(http).transport(patient);
        let builder = builder.silence(None).connect_timeout(self.limit);
        builder.build().map_err(|error| error.to_string())
    }
}

/// Downloads a file of so many bytes; tells when the last one was there.
async fn fetch(
    client: Client,
    (url, bytes): (String, u64),
    received: Arc<AtomicU64>,
) -> Result<Instant, String> {
    let request = Request::get(url).body(client::Body::empty()).map_err(|error| error.to_string())?;
    let sink = move |content: &[u8]| {
        received.fetch_add(content.len() as u64, Ordering::Relaxed);
        content.len()
    };
    let answer = client.request_into(request, sink).await.map_err(|error| error.to_string())?;
    let at = Instant::now();
    if answer.response.status() == 200 && answer.bytes == bytes {
        Ok(at)
    } else {
        Err(format!("{} of {bytes} bytes came, status {}", answer.bytes, answer.response.status()))
    }
}

async fn ask(client: Client, small: (String, u64)) -> Result<f64, String> {
    let asked = Instant::now();
    let answered = fetch(client, small, Arc::default()).await?;
    Ok(answered.saturating_duration_since(asked).as_secs_f64() * 1e3)
}

/// Waits for answers until the deadline.
async fn answers(asked: Vec<Asked>, deadline: Instant) -> Result<Answers, String> {
    let mut answers = Answers::default();
    for mut request in asked {
        match timeout_at(deadline, &mut request).await {
            Err(_) => answers.add(None),
            Ok(Err(_)) => return Err("a request's task has ended".to_owned()),
            Ok(Ok(latency)) => answers.add(Some(latency?)),
        }
    }
    Ok(answers)
}
