//! The clients that put servers to work: `tercel load`, and for HTTP/1.1 and 2 the ones that the studies were published with,
//! ab and h2load. Each runs on a core of its own; what it says is read, and its CPU time is the operating system's account.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bench::process::Running;
use bench::site::End;
use serde::Serialize;
use serde_json::Value;

use super::{Http, TestSite, on_path};

/// From this share of a core on, a process is taken for busy all the time.
const BUSY: f64 = 0.9;

/// A program that sends requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Client {
    /// Ours.
    Load,
    /// ApacheBench, for HTTP/1.1.
    Ab,
    /// nghttp2's, for HTTP/2.
    H2load,
}

impl Client {
    /// All, ours first.
    pub const ALL: [Client; 3] = [Client::Load, Client::Ab, Client::H2load];

    /// As tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Client::Load => "tercel load",
            Client::Ab => "ab",
            Client::H2load => "h2load",
        }
    }

    /// Whether it speaks a version of HTTP here.
    pub const fn speaks(self, http: Http) -> bool {
        match self {
            Client::Load => true,
            Client::Ab => matches!(http, Http::One),
            Client::H2load => matches!(http, Http::Two),
        }
    }

    /// Where it is, or how to get it.
    ///
    /// # Errors
    /// It is not installed; the error is a sentence.
    pub fn find(self, tercel: &Path) -> Result<PathBuf, String> {
        let package = match self {
            Client::Load => return Ok(tercel.to_owned()),
            Client::Ab => "apache2-utils",
            Client::H2load => "nghttp2-client",
        };
        let missing = || format!("{} is not here: on Debian: apt-get install {package}.", self.name());
        on_path(self.name()).ok_or_else(missing)
    }
}

/// What is asked.
#[derive(Clone, Debug, Serialize)]
pub struct Work {
    /// The file's name and size in bytes.
    pub file: (&'static str, u64),
    /// Connections.
    pub connections: usize,
    /// Requests at a time on each; HTTP/1.1 has one.
    pub streams: usize,
    /// Requests in all.
    pub requests: u64,
}

impl Work {
    /// Content bytes in all.
    pub const fn bytes(&self) -> u64 {
        self.requests * self.file.1
    }
}

/// What a client says of its run, and what it used.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Run {
    /// From the start of the process to its end: connections included.
    pub seconds: f64,
    /// Requests a second. `tercel load` counts from when all connections stand, ab and h2load from the beginning.
    pub rate: f64,
    /// Requests that were answered well.
    pub succeeded: u64,
    /// Content.
    pub content_bytes: u64,
    /// CPU seconds of the process.
    pub client_cpu_s: f64,
    /// Its share of its core.
    pub client_share: f64,
    /// UDP datagrams that came, over HTTP/3.
    pub received_datagrams: Option<f64>,
    /// Bytes that came, where the client counts them: over HTTP/3 UDP payload, else what TCP carried.
    pub received_bytes: Option<f64>,
    /// Median and 99th percentile of latency in milliseconds, where the client tells them.
    pub latency_ms: Option<[f64; 2]>,
    /// Who limits in the client's opinion, where it has one; kept, not shown.
    pub limit: Option<String>,
}

/// How a client is called.
#[derive(Clone, Debug)]
pub(super) struct Call<'a> {
    pub(super) client: Client,
    pub(super) program: &'a Path,
    pub(super) http: Http,
    /// One or more, asked in turn; ab and h2load ask the first.
    pub(super) urls: &'a [String],
    pub(super) server: u32,
    pub(super) ground: &'a TestSite,
}

impl Call<'_> {
    /// Starts it on `core`.
    pub(super) fn start(&self, work: &Work, core: usize) -> io::Result<Running> {
        let mut command = Command::new(self.program);
        match self.client {
            Client::Load => self.load(work, &mut command),
            Client::Ab => {
                let [requests, connections] = [work.requests, work.connections as u64].map(|n| n.to_string());
                command.args(["-q", "-k", "-f", "TLS1.3", "-n", &requests, "-c", &connections, self.url()]);
            }
            Client::H2load => {
                let [requests, connections, streams] =
                    [work.requests, work.connections as u64, work.streams as u64].map(|n| n.to_string());
                command.args(["-t", "1", "-n", &requests, "-c", &connections, "-m", &streams, self.url()]);
            }
        }
        self.ground.start(End::Client, self.client.name(), core, &mut command)
    }

    /// Runs it to its end on `core`.
    pub(super) fn run(&self, work: &Work, core: usize, stop: &AtomicBool) -> io::Result<Run> {
        let patience =
            Duration::from_secs_f64(30.0 + work.bytes() as f64 / 20e6 + work.requests as f64 / 2e3);
        let began = cpu::clock_seconds();
        let ended = self.start(work, core)?.finish(patience, stop)?;
        let seconds = ended.ended_at - began;
        let told = match self.client {
            Client::Load => read_load(&ended.output),
            Client::Ab => read_ab(&ended.output),
            Client::H2load => read_h2load(&ended.output),
        };
        let told = told.ok_or_else(|| {
            io::Error::other(format!("{} printed something that is not understood", self.client.name()))
        })?;
        // ab counts a request whose handshake failed as complete, so content is counted too.
        if (told.succeeded, told.content_bytes) != (work.requests, work.bytes()) {
            let (good, all, bytes) = (told.succeeded, work.requests, told.content_bytes);
            let said = format!(
                "{good} of {all} requests were answered well, with {bytes} of {} bytes",
                work.bytes()
            );
            return Err(io::Error::other(said));
        }
        let client_cpu_s = ended.usage.total_s();
        Ok(Run { seconds, client_cpu_s, client_share: client_cpu_s / seconds, ..told })
    }

    fn load(&self, work: &Work, command: &mut Command) {
        let streams = if self.http == Http::One { 1 } else { work.streams as u64 };
        let [requests, connections, streams] =
            [work.requests, work.connections as u64, streams].map(|n| n.to_string());
        command.args(["load", "--insecure", "--json", "--quiet", "--http", self.http.flag()]);
        command.args(["-n", &requests, "-c", &connections, "-m", &streams, "--timeout", "120"]);
        command.args(["--cipher", "aes128", "--server-pid", &self.server.to_string()]);
        if self.http == Http::Three {
            command.args(["--packet-size", &self.ground.payload_size.to_string()]);
        }
        command.args(self.urls);
    }

    fn url(&self) -> &str {
        self.urls.first().map_or("", String::as_str)
    }
}

/// Who limits, from the shares of a core that both had.
pub(crate) fn limit(client_share: f64, server_share: f64) -> &'static str {
    match (client_share >= BUSY, server_share >= BUSY) {
        (_, true) => "server",
        (true, false) => "generator",
        (false, false) => "neither alone",
    }
}

/// The JSON of `tercel load`.
fn read_load(output: &str) -> Option<Run> {
    let line = output.lines().find(|line| line.starts_with('{'))?;
    let told: Value = serde_json::from_str(line).ok()?;
    let generator = &told["generator"];
    let limit = told["limit"].as_str().map(limit_in_words);
    let latency = &told["latency"];
    Some(Run {
        rate: told["requests_per_second"].as_f64()?,
        succeeded: told["succeeded"].as_u64()?,
        content_bytes: told["content_bytes"].as_u64()?,
        received_datagrams: generator["received_datagrams"].as_f64().filter(|count| *count > 0.0),
        received_bytes: generator["received_bytes"].as_f64().filter(|bytes| *bytes > 0.0),
        latency_ms: latency["p50_us"]
            .as_f64()
            .zip(latency["p99_us"].as_f64())
            .map(|(p50, p99)| [p50 / 1e3, p99 / 1e3]),
        limit,
        ..Run::default()
    })
}

/// `tercel load`'s word for who limits, as tables have it.
fn limit_in_words(word: &str) -> String {
    match word {
        "cores" => "cores, shared with others".to_owned(),
        "outstanding" => "neither alone".to_owned(),
        word => word.replace('_', " "),
    }
}

/// ab's report: a name and a figure on each line.
fn read_ab(output: &str) -> Option<Run> {
    let figure = |name: &str| -> Option<f64> {
        let line = output.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').split_whitespace().next()?.parse().ok()
    };
    let percentile = |name: &str| -> Option<f64> {
        let line = output.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let bad = figure("Failed requests")? + figure("Non-2xx responses").unwrap_or(0.0);
    Some(Run {
        rate: figure("Requests per second")?,
        succeeded: (figure("Complete requests")? - bad) as u64,
        content_bytes: figure("HTML transferred")? as u64,
        latency_ms: percentile("50%").zip(percentile("99%")).map(|(p50, p99)| [p50, p99]),
        ..Run::default()
    })
}

/// h2load's report.
fn read_h2load(output: &str) -> Option<Run> {
    let line = |name: &str| output.lines().find_map(|line| line.trim_start().strip_prefix(name));
    let before = |text: &str, word: &str| -> Option<f64> {
        let (left, _) = text.split_once(word)?;
        left.trim_end().trim_end_matches('(').rsplit([' ', '(']).next()?.parse().ok()
    };
    let content = line("traffic:")?.split(", ").last().and_then(|part| before(part, ") data"))?;
    Some(Run {
        rate: before(line("finished in")?, " req/s")?,
        succeeded: before(line("status codes:")?, " 2xx")? as u64,
        content_bytes: content as u64,
        ..Run::default()
    })
}

#[cfg(test)]
mod tests;
