//! One trial: a server on its core, a client on another, five connections with a download each.

use std::io;
use std::time::Duration;

use bench::course::{CourseWatch, Interval};
use bench::method::Method;
use bench::pair::{ProgramPair, number};
use bench::site::End;
use serde::Serialize;
use serde_json::Value;

/// Connections, each with a download of its own.
pub(super) const CONNECTIONS: usize = 5;
/// For how long each end holds what it receives, in microseconds.
pub(super) const HOLD: &str = "1000";
/// How long a trial may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// How packet sizes are found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    /// For both ends.
    pub(super) flags: &'static [&'static str],
    /// Bytes of UDP payload that full packets should come to.
    pub(super) payload: u16,
    /// Seconds that were published.
    pub(super) published: Option<f64>,
}

/// What a trial was like.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Trial {
    /// How the server sent.
    pub(super) method: Method,
    pub(super) scenario: &'static str,
    /// Until the last of the connections had everything.
    pub(super) seconds: f64,
    /// The mean UDP payload of what the server sent, in bytes.
    pub(super) mean_payload: f64,
    /// The smallest packet size of a connection at its end, and the largest, in bytes.
    pub(super) packet_sizes: [f64; 2],
    /// The longest search of a connection of the server, in milliseconds.
    pub(super) search_ms: Option<f64>,
    /// Shares of their cores that server and client used.
    pub(super) core_shares: [f64; 2],
    pub(super) server_datagrams: f64,
    /// Datagrams that the client had no room for.
    pub(super) overflowed: f64,
    /// The least and the largest round-trip time of a connection of the client as it ended, smoothed, in milliseconds.
    pub(super) rtt_ms: [f64; 2],
    /// What the server did meanwhile.
    pub(super) course: Vec<Interval>,
}

/// Runs one trial of `bytes` for each connection, the server sending by `method`, on `cores`.
///
/// # Errors
/// A process fails, or its account lacks something.
pub(super) fn run(
    pair: &ProgramPair<'_>,
    scenario: &Scenario,
    (method, [server_core, client_core]): (Method, [usize; 2]),
    bytes: u64,
) -> io::Result<Trial> {
    let common = [&["--hold-received", HOLD], scenario.flags].concat();
    let server = pair.serve(method, pair.site.ipv4(End::Server), &[server_core], &common)?;
    let mut flags = common.iter().map(|flag| (*flag).to_owned()).collect::<Vec<String>>();
    flags.extend(["--discard", "--parallel", &CONNECTIONS.to_string()].map(str::to_owned));
    // Hosts of other names are other servers to a client: each gets a connection of its own.
    let port = server.address.port();
    for host in 1..=CONNECTIONS {
        flags.push("--resolve".to_owned());
        flags.push(format!("h{host}.test:{port}:{}", server.address.ip()));
        flags.push(format!("https://h{host}.test:{port}/bytes/{bytes}"));
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let before = cpu::seconds_of(server.id());
    let watch = CourseWatch::start(server.id(), pair.site.interface(End::Server));
    let client = pair.fetch(Method::Gso, &[client_core], &flags, PATIENCE);
    let course = watch.finish();
    let used = cpu::seconds_of(server.id()).zip(before).map(|(after, before)| after - before);
    let (client, lines) = client?;
    let (_, summary) = server.finish(pair.stop)?;
    if lines.len() != CONNECTIONS {
        return Err(io::Error::other(format!("{} downloads of {CONNECTIONS} have ended", lines.len())));
    }
    let seconds = most(&lines, "seconds")?;
    let rtts: Vec<f64> = lines.iter().map(|line| number(line, "rtt_ms")).collect::<io::Result<_>>()?;
    let sizes = &summary["packet_sizes"];
    let datagrams = number(&summary, "sent_datagrams")?;
    Ok(Trial {
        method,
        scenario: scenario.name,
        seconds,
        mean_payload: number(&summary, "sent_bytes")? / datagrams.max(1.0),
        packet_sizes: [number(sizes, "smallest")?, number(sizes, "largest")?],
        search_ms: sizes["longest_search_ms"].as_f64(),
        core_shares: [used.unwrap_or(f64::NAN) / seconds, client.usage.total_s() / seconds],
        server_datagrams: datagrams,
        overflowed: most(&lines, "overflowed_datagrams")?,
        rtt_ms: [
            rtts.iter().copied().fold(f64::INFINITY, f64::min),
            rtts.iter().copied().fold(0.0, f64::max),
        ],
        course,
    })
}

/// The largest number of that name in any of the lines.
fn most(lines: &[Value], name: &str) -> io::Result<f64> {
    lines.iter().try_fold(0.0_f64, |most, line| Ok(most.max(number(line, name)?)))
}

impl Trial {
    /// Why it is not what it should be, if so: full packets were not of the size that the scenario is about. Handshakes, the
    /// time of the search and last packets are allowed for.
    pub(super) fn doubt(&self, scenario: &Scenario) -> Option<String> {
        let wanted = f64::from(scenario.payload);
        let [smallest, _] = self.packet_sizes;
        let is_reached = smallest >= wanted * 0.99 && self.mean_payload >= wanted * 0.85;
        (!is_reached).then(|| {
            format!(
                "{}: full packets should have {wanted} bytes of payload; a connection ended with {smallest}, and the mean on the \
                 wire was {:.0}",
                scenario.name, self.mean_payload
            )
        })
    }
}
