//! `tercel lab`: two machines and a network between them, for one command or until Ctrl-C.
//!
//! This file turns the command line into a lab and says what it is; `session` runs commands in it, `units` reads
//! numbers with units.

mod session;
mod units;

use crate::print_error;
use clap::Args;
use link::{Burst, EventRate, Node};
use netns::emulator::{Counters, Direction, Emulator, LinkOptions, Reorder};
use netns::{Lab, LabOptions, Namespace, Switch};
use serde_json::{Value, json};
use session::{Session, variables};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use units::{After, Ordinals};

/// Flags of `tercel lab`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct LabArgs {
    /// Largest packet in bytes, without the Ethernet header: 1280 to 65535.
    #[arg(long, default_value_t = 1_500, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(1_280..=65_535))]
    mtu: u32,
    /// Receive and transmit queues of each interface.
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    queues: u32,
    /// Cut trains of datagrams (GSO) where they are sent; generic XDP at the other end needs that.
    #[arg(long)]
    no_udp_segmentation: bool,
    /// Print JSON: one object that describes the lab, and one with the link's counters at the end.
    ///
    /// With a command, only the counters, on standard error.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    link: LinkArgs,
    #[command(flatten)]
    run: RunArgs,
}

/// What the emulated link does.
#[derive(Args)]
#[command(next_help_heading = "Link, in each direction")]
struct LinkArgs {
    /// Join the sides by a veth pair alone: no delay, no limit, no loss, no emulator.
    #[arg(long, conflicts_with_all = ["delay", "rate", "loss", "queue", "seed", "spin", "rebind_after", "corrupt", "drop_to_server", "blackhole", "reorder", "jitter", "duplicate"])]
    direct: bool,
    /// Time on the way, one direction, such as 1ms: half of what a round trip takes.
    #[arg(long, default_value = "0ms", value_name = "TIME", value_parser = units::time)]
    delay: Duration,
    /// Bits per second of Ethernet frames, such as 5gbit; unlimited without it.
    #[arg(long, value_name = "RATE", value_parser = units::rate)]
    rate: Option<u64>,
    /// Share of datagrams that are lost, such as 1%.
    #[arg(long, default_value = "0%", value_name = "PERCENT", value_parser = units::share)]
    loss: f64,
    /// Share of datagrams that are late, and by how much, such as 10%/5ms: they arrive behind their successors.
    #[arg(long, value_name = "PERCENT/TIME", value_parser = units::late)]
    reorder: Option<Reorder>,
    /// At most this much is added to the delay of each datagram, evenly distributed; the order stays.
    #[arg(long, default_value = "0ms", value_name = "TIME", value_parser = units::time)]
    jitter: Duration,
    /// Share of datagrams that arrive twice, such as 1%.
    #[arg(long, default_value = "0%", value_name = "PERCENT", value_parser = units::share)]
    duplicate: f64,
    /// Share of UDP datagrams that arrive with one byte changed, such as 2%.
    #[arg(long, default_value = "0%", value_name = "PERCENT", value_parser = units::share)]
    corrupt: f64,
    /// No more than this many in a row are lost or changed. Without it, each is for itself.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    burst: Option<u32>,
    /// Lose exactly these datagrams to the server, counted from 1: such as 2-7 or 1,3,5-9.
    #[arg(long, value_name = "LIST", value_parser = units::ordinals)]
    drop_to_server: Option<Ordinals>,
    /// Nothing passes for the second time after every first, such as 5s/2s, from the first datagram on.
    #[arg(long, value_name = "TIME/TIME", value_parser = units::on_off)]
    blackhole: Option<(Duration, Duration)>,
    /// What may wait for the line, such as 256KB; more is dropped. Only with --rate.
    #[arg(long, default_value = "1MiB", value_name = "BYTES", value_parser = units::bytes, requires = "rate")]
    queue: u64,
    /// Draws other luck: the same datagrams in the same order are lost with the same seed.
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Spend the last part of each wait awake, such as 50us: exact delays for up to a whole core.
    #[arg(long, default_value = "0us", value_name = "TIME", value_parser = units::time)]
    spin: Duration,
    /// Change the client's UDP ports once, as a home router does that forgot them: a time such as 2s after its first datagram of
    /// UDP, or after it has sent this much of it, such as 64KB.
    #[arg(long, value_name = "TIME|BYTES", value_parser = units::after)]
    rebind_after: Option<After>,
    /// And again after every so long. For --rebind-after with a time.
    #[arg(long, value_name = "TIME", value_parser = units::time, requires = "rebind_after")]
    rebind_every: Option<Duration>,
    /// The client's IPv4 address changes with the ports: 198.18.0.16, then the next, up to 198.18.0.31. For --rebind-after with a time.
    #[arg(long, requires = "rebind_after")]
    rebind_address: bool,
}

/// What runs in the lab.
#[derive(Args)]
#[command(next_help_heading = "Commands")]
struct RunArgs {
    /// A command line for the shell that is started first, on the server's side, and stopped at the end (SIGTERM).
    #[arg(long, value_name = "COMMAND", requires = "command")]
    server: Option<String>,
    /// How long the server gets before the command starts.
    #[arg(long, default_value = "300ms", value_name = "TIME", value_parser = units::time)]
    settle: Duration,
    /// Start the command as soon as the server has written this file, instead of after --settle.
    #[arg(long, value_name = "FILE", requires = "server")]
    ready_file: Option<PathBuf>,
    /// What to run on the client's side. It and the server find the addresses in TERCEL_LAB_SERVER_IPV4,
    /// TERCEL_LAB_CLIENT_INTERFACE and so on.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  sudo tercel lab --delay 10ms --rate 100mbit --loss 1%
      a lab until Ctrl-C; it prints how to enter each side
  sudo tercel lab --delay 1ms -- ping -c 3 198.18.0.1
      one command in it; the exit code is the command's
  sudo tercel lab --delay 1ms --rate 5gbit --server 'tercel serve' -- \\
      tercel get --insecure https://198.18.0.1:4433/bytes/2GB
      a server on one side, a client on the other
  sudo tercel lab --direct --queues 2 --mtu 9000 -- sh
      a shell on the client's side of a plain veth pair";

/// Builds the lab, runs what is to be run in it, and ends with the command's exit code.
pub(crate) fn run(args: &LabArgs) -> ExitCode {
    match attempt(args) {
        Ok(code) => code,
        Err(problem) => print_error(problem),
    }
}

fn attempt(args: &LabArgs) -> Result<ExitCode, String> {
    let lab = Lab::new(&options(args)).map_err(|error| error.to_string())?;
    let work = || match args.run.command.split_first() {
        None => stay(&lab, args).map(|()| ExitCode::SUCCESS),
        Some((program, arguments)) => {
            let run = &args.run;
            let server = run.server.as_deref();
            let ready_file = run.ready_file.as_deref();
            Session { lab: &lab, server, settle: run.settle, ready_file }.run(program, arguments)
        }
    };
    let Some(emulator) = lab.emulator() else { return work() };
    emulator.set(Direction::ToRight, &to_server(&args.link)).map_err(|error| error.to_string())?;
    let code = match args.link.rebind_after {
        None => work(),
        Some(after) => rebinding(emulator, after, &args.link, work),
    }?;
    let text = if args.json { counters_json(emulator).to_string() } else { counters_text(emulator) };
    if args.run.command.is_empty() {
        println!("{text}");
    } else {
        // standard output is the command's
        eprintln!("{text}");
    }
    match emulator.failure() {
        Some(failure) => Err(format!("the link stopped: {failure}")),
        None => Ok(code),
    }
}

/// Does the work, during which the client's ports change.
fn rebinding<T>(emulator: &Emulator, after: After, link: &LinkArgs, work: impl FnOnce() -> T) -> T {
    let time = match after {
        After::Time(time) => time,
        After::Bytes(bytes) => {
            emulator.rebind(bytes);
            return work();
        }
    };
    std::thread::scope(|scope| {
        let (_ended, end) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let mut next = begins(emulator, &end).then_some(time);
            while let Some(time) = next
                && end.recv_timeout(time) == Err(RecvTimeoutError::Timeout)
            {
                if link.rebind_address {
                    emulator.rebind_address()
                } else {
                    emulator.rebind(0)
                }
                next = link.rebind_every;
            }
        });
        work()
    })
}

/// Waits for the client's first datagram of UDP: programs take their time to start, and a change before it is none. False if the work
/// is over before.
fn begins(emulator: &Emulator, end: &Receiver<()>) -> bool {
    while emulator.counters(Direction::ToRight).udp_datagrams == 0 {
        if end.recv_timeout(Duration::from_millis(5)) != Err(RecvTimeoutError::Timeout) {
            return false;
        }
    }
    true
}

/// What happens in both directions. With a bound on runs, losses are an event.
fn events(link: &LinkArgs) -> Vec<Node> {
    let burst = link.burst.map_or(Burst::None, Burst::AtMost);
    let rate = |share: f64| EventRate { ppm: (share * 1e6).round() as u32, burst };
    let loss = link.burst.filter(|_| link.loss > 0.0).map(|_| Node::Loss(rate(link.loss)));
    let corrupt = (link.corrupt > 0.0).then(|| Node::Corrupt(rate(link.corrupt)));
    let blackhole = link.blackhole.map(|(on, off)| Node::Blinking { on: on.into(), off: off.into() });
    [loss, corrupt, blackhole].into_iter().flatten().collect()
}

fn to_server(link: &LinkArgs) -> LinkOptions {
    let mut options = both_ways(link);
    options.events.extend(link.drop_to_server.as_ref().map(|list| Node::Drop(list.0.clone())));
    options
}

fn both_ways(link: &LinkArgs) -> LinkOptions {
    LinkOptions {
        delay: link.delay,
        jitter: link.jitter,
        reorder: link.reorder,
        duplicate: link.duplicate,
        rate_bits: link.rate,
        loss: if link.burst.is_some() { 0.0 } else { link.loss },
        events: events(link),
        queue_bytes: link.queue,
        seed: link.seed,
        ..LinkOptions::default()
    }
}

fn options(args: &LabArgs) -> LabOptions {
    let link = both_ways(&args.link);
    LabOptions {
        mtu: args.mtu,
        queues: args.queues,
        link: (!args.link.direct).then_some(link),
        spin: args.link.spin,
        udp_segmentation: if args.no_udp_segmentation { Switch::Off } else { Switch::On },
        ..LabOptions::default()
    }
}

/// Describes the lab and waits for a signal.
fn stay(lab: &Lab, args: &LabArgs) -> Result<(), String> {
    let mut signals =
        Signals::new([SIGINT, SIGTERM]).map_err(|error| format!("cannot wait for Ctrl-C: {error}"))?;
    if args.json {
        println!("{}", description_json(lab));
    } else {
        println!("{}", description_text(lab, args));
    }
    signals.forever().next();
    Ok(())
}

fn description_text(lab: &Lab, args: &LabArgs) -> String {
    let mut lines = Vec::new();
    for (name, side) in sides(lab) {
        lines.push(format!(
            "{name}  {:<8} {:<11} {:<8} nsenter --net={}",
            side.interface(),
            side.ipv4(),
            side.ipv6(),
            side.path().display()
        ));
    }
    lines.push(match lab.emulator() {
        None => format!("link    direct, mtu {}", args.mtu),
        Some(_) => format!(
            "link    {:?} each way, {}, {}% lost, mtu {}",
            args.link.delay,
            args.link.rate.map_or("no limit".to_owned(), |rate| format!("{} Mbit/s", rate as f64 / 1e6)),
            args.link.loss * 100.0,
            args.mtu
        ),
    });
    lines.push("Ctrl-C ends it.".to_owned());
    lines.join("\n")
}

fn description_json(lab: &Lab) -> Value {
    let sides: serde_json::Map<String, Value> = sides(lab)
        .into_iter()
        .map(|(name, side)| {
            let side = json!({
                "interface": side.interface(),
                "mac": side.mac().to_string(),
                "ipv4": side.ipv4(),
                "ipv6": side.ipv6(),
                "namespace": side.path(),
            });
            (name.to_owned(), side)
        })
        .collect();
    json!({ "sides": sides, "environment": variables(lab).into_iter().collect::<serde_json::Map<_, _>>() })
}

fn sides(lab: &Lab) -> [(&'static str, &Namespace); 2] {
    [("server", lab.server()), ("client", lab.client())]
}

const DIRECTIONS: [(&str, Direction); 2] =
    [("to_server", Direction::ToRight), ("to_client", Direction::ToLeft)];

fn counters_text(emulator: &Emulator) -> String {
    let line = |(name, direction)| {
        let counters: Counters = emulator.counters(direction);
        format!(
            "{name}  {} datagrams, {:.1} MB; {} lost, {} overflowed, {} stale, {} refused",
            counters.datagrams,
            counters.bytes as f64 / 1e6,
            counters.lost,
            counters.overflowed,
            counters.stale,
            counters.refused
        )
    };
    DIRECTIONS.map(line).join("\n")
}

fn counters_json(emulator: &Emulator) -> Value {
    let object = |direction| {
        let counters: Counters = emulator.counters(direction);
        json!({
            "frames": counters.frames,
            "datagrams": counters.datagrams,
            "bytes": counters.bytes,
            "sent_frames": counters.sent_frames,
            "sent_bytes": counters.sent_bytes,
            "lost": counters.lost,
            "corrupted": counters.corrupted,
            "reordered": counters.reordered,
            "duplicated": counters.duplicated,
            "missed": counters.missed,
            "overflowed": counters.overflowed,
            "stale": counters.stale,
            "refused": counters.refused,
            "worst_late_us": counters.worst_late_nanos / 1_000,
        })
    };
    let [(server, to_server), (client, to_client)] = DIRECTIONS;
    json!({ "link": { server: object(to_server), client: object(to_client) } })
}
