//! One trial: a server that is started anew on its core, and `tercel load` with a connection for each request on another.

use std::io;
use std::process::Command;
use std::time::Duration;

use bench::course::{CourseWatch, Interval};
use bench::pair::number;
use bench::process::Running;
use bench::site::End;
use profile::Profile;
use serde_json::Value;

use super::row::{Exchange, HYBRID, Kind, Scenario, Trial, Validation};
use crate::contestants::{Contestant, Http, Installed, SMALL, Serving, TestSite};
use crate::context::Context;
use crate::profiles;

/// Connections at a time.
pub(super) const CONNECTIONS: usize = 10;
/// Seconds that are not counted: the first connections have no ticket.
const WARM_UP: f64 = 0.3;
/// Less than this share of the kind that was asked for is no trial of it.
const ENOUGH: f64 = 0.5;

/// How many handshakes the generator makes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Amount {
    /// Those of this many seconds, after the warm-up.
    Seconds(f64),
    /// This many, one after the other.
    Count(u32),
}

/// A trial of this many seconds.
///
/// # Errors
/// A process fails, a request fails, or the handshakes are of another kind.
pub(super) fn run(
    (server, scenario): (&Installed, Scenario),
    ground: &TestSite,
    seconds: f64,
    context: &Context<'_>,
) -> io::Result<Trial> {
    let (report, course) = generate((server, scenario), ground, Amount::Seconds(seconds), context)?;
    check_exchange(scenario, &report)?;
    Ok(Trial { course, ..read(scenario, &report)? })
}

/// Whether the server chooses the hybrid key exchange, and the name of the one that it chooses.
///
/// # Errors
/// It cannot be asked.
pub(super) fn key_exchange(
    server: &Installed,
    ground: &TestSite,
    context: &Context<'_>,
) -> io::Result<String> {
    let (report, _) = generate((server, plain(server.who)), ground, Amount::Count(2), context)?;
    Ok(report["key_exchange"].as_str().unwrap_or("none").to_owned())
}

/// The median time from the intended beginning to the head of the answer, in milliseconds, of connections one after the other.
///
/// # Errors
/// A process fails, a request fails, or the handshakes are of another kind.
pub(super) fn first_byte_ms(
    (server, kind): (&Installed, Kind),
    ground: &TestSite,
    count: u32,
    context: &Context<'_>,
) -> io::Result<f64> {
    let scenario = Scenario { kind, ..plain(server.who) };
    let (report, _) = generate((server, scenario), ground, Amount::Count(count), context)?;
    read(scenario, &report)?;
    Ok(number(&report["first_byte"], "p50_us")? / 1e3)
}

fn plain(who: Contestant) -> Scenario {
    let (kind, exchange, validation) = (Kind::Full, Exchange::Hybrid, Validation::Handshake);
    Scenario { who, http: Http::Three, kind, exchange, validation }
}

/// Looks into a server while handshakes of a kind keep it busy.
///
/// # Errors
/// A process fails, or perf does.
pub(super) fn profile(
    (server, scenario): (&Installed, Scenario),
    ground: &TestSite,
    context: &Context<'_>,
) -> io::Result<Profile> {
    let amount = Amount::Seconds(profiles::work_seconds(context));
    // The client is killed when it goes out of scope.
    let (serving, _client, _) = start((server, scenario), ground, amount, context)?;
    let profile = profiles::watch(serving.id(), &scenario.name(), context);
    serving.stop();
    profile
}

/// The report of the generator, and what the server did meanwhile.
fn generate(
    (server, scenario): (&Installed, Scenario),
    ground: &TestSite,
    amount: Amount,
    context: &Context<'_>,
) -> io::Result<(Value, Vec<Interval>)> {
    let (serving, client, patience) = start((server, scenario), ground, amount, context)?;
    let watch = CourseWatch::start(serving.id(), ground.site().interface(End::Server));
    let ended = client.finish(patience, context.stop)?;
    let course = watch.finish();
    serving.stop();
    let line = ended.output.lines().find(|line| line.starts_with('{')).unwrap_or_default();
    let report = serde_json::from_str(line).map_err(|_| io::Error::other("tercel load printed no report"))?;
    Ok((report, course))
}

/// Server and client, and how long the client may take.
fn start(
    (server, scenario): (&Installed, Scenario),
    ground: &TestSite,
    amount: Amount,
    context: &Context<'_>,
) -> io::Result<(Serving, Running, Duration)> {
    let [server_core, client_core] = context.cores;
    let serving = server.start_with(ground, &scenario.server_flags(), (server_core, context.stop))?;
    let mut command = Command::new(&context.program);
    command.args(["load", "--insecure", "--json", "--quiet", "--http", scenario.http.flag()]);
    command.args(["--new-connections", "-m", "1", "-t", "1", "--cipher", "aes128", "--timeout", "10"]);
    command.args(["--server-pid", &serving.id().to_string()]);
    let patience = match amount {
        Amount::Seconds(seconds) => {
            command.args(["-c", &CONNECTIONS.to_string(), "-D", &seconds.to_string()]);
            command.args(["--warm-up", &WARM_UP.to_string()]);
            Duration::from_secs_f64(20.0 + seconds)
        }
        Amount::Count(count) => {
            command.args(["-c", "1", "-n", &count.to_string()]);
            Duration::from_secs(20) + Duration::from_millis(200) * count
        }
    };
    command.args(scenario.kind.flag());
    if scenario.exchange == Exchange::Classic {
        command.arg("--classic-key-exchange");
    }
    if scenario.http == Http::Three {
        command.args(["--packet-size", &ground.payload_size.to_string()]);
    }
    command.arg(serving.url(SMALL.0));
    let client = ground.start(End::Client, "tercel load", client_core, &mut command)?;
    Ok((serving, client, patience))
}

/// A server that chooses another key exchange than its row says must not stand in it.
fn check_exchange(scenario: Scenario, report: &Value) -> io::Result<()> {
    let chosen = report["key_exchange"].as_str();
    let is_right = match scenario.exchange {
        Exchange::Hybrid => chosen == Some(HYBRID),
        Exchange::Classic => chosen != Some(HYBRID),
    };
    if is_right || scenario.http != Http::Three {
        return Ok(());
    }
    Err(io::Error::other(format!("the key exchange was {}", chosen.unwrap_or("unknown"))))
}

/// The trial in the report of `tercel load`.
pub(super) fn read(scenario: Scenario, report: &Value) -> io::Result<Trial> {
    let failed = number(report, "failed")?;
    if failed > 0.0 {
        let why = report["first_fault"].as_str().unwrap_or("no reason is known");
        return Err(io::Error::other(format!("{failed} requests failed: {why}")));
    }
    let handshakes = number(&report["handshake"], "count")?;
    let of_kind = number(&report["handshake_kinds"], scenario.kind.counter())? / handshakes.max(1.0);
    if of_kind < ENOUGH {
        return Err(io::Error::other(format!(
            "{:.0} % of {handshakes} handshakes were {}",
            of_kind * 100.0,
            scenario.kind.name()
        )));
    }
    Ok(Trial {
        rate: number(report, "handshakes_per_second")?,
        server_us: number(&report["server"], "cpu_us_per_request")?,
        client_us: number(&report["generator"], "cpu_us_per_request")?,
        of_kind,
        course: Vec::new(),
    })
}
