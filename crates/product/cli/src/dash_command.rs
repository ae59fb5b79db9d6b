//! `tercel dash`: players of a DASH presentation, and how they fared.
//!
//! This file turns the command line into a plan; the players are in the `dash` room.

use crate::connection_options::ConnectionArgs;
use crate::load_command::span;
use crate::options::QuicArgs;
use crate::path_options::PathArgs;
use crate::signals::stop_flag;
use base::time::Duration;
use clap::{Args, ValueEnum};
use client::error::GetError;
use client::resolve::resolve;
use client::target::Target;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use dash::player::Settings;
use dash::rule::Rule;
use dash::{Report, WatchPlan, watch};
use load::choose_address;
use std::process::ExitCode;
use std::sync::Arc;
use transport::ClientConfig;
use wire::Version;

/// How a player chooses its bitrate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum RuleArg {
    /// The highest that the network has lately carried, with a tenth to spare.
    Throughput,
    /// By what is in the buffer, whatever the network carries (BOLA).
    Buffer,
}

/// Flags of `tercel dash`.
#[derive(Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
pub(crate) struct DashArgs {
    /// The manifest: https://HOST[:PORT]/PATH.
    ///
    /// Played are presentations on demand, of one period, with segment templates. tercel serve has a made-up film at
    /// /dash/manifest.mpd, with six qualities from 400 kbit/s to 16 Mbit/s and segments of 4 s; at /dash/2s/manifest.mpd they take 2 s.
    #[arg(value_name = "URL")]
    url: String,

    /// Players, each with a connection of its own.
    #[arg(short = 'c', long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), help_heading = "Players")]
    players: u32,
    /// How they choose the bitrate.
    #[arg(long, value_enum, default_value = "throughput", value_name = "RULE", help_heading = "Players")]
    rule: RuleArg,
    /// Seconds that they watch, by their clock.
    #[arg(short = 'D', long, default_value = "60", value_name = "SECONDS", value_parser = span, help_heading = "Players")]
    duration: Duration,
    /// How many times faster their clock runs: a minute's film in ten seconds asks six times its bitrate of the network.
    #[arg(long, default_value_t = 1.0, value_name = "TIMES", help_heading = "Players")]
    speed: f64,
    /// Seconds in which they come, one after the other, by their clock.
    #[arg(long, default_value = "0", value_name = "SECONDS", value_parser = span, help_heading = "Players")]
    ramp: Duration,
    /// Seconds of the film that a player buffers at most.
    #[arg(long, default_value = "30", value_name = "SECONDS", value_parser = span, help_heading = "Players")]
    buffer: Duration,
    /// Seconds of the film that must be buffered before a player begins, and before it goes on after it stood still.
    #[arg(long, default_value = "2", value_name = "SECONDS", value_parser = span, help_heading = "Players")]
    enough: Duration,

    /// Print one JSON object instead of text: all players and each.
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// The server's process, if it runs here: its CPU time for each gigabit is part of the result.
    #[arg(long, value_name = "PID", help_heading = "Output")]
    server_pid: Option<u32>,

    #[command(flatten)]
    connection: ConnectionArgs,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    quic: QuicArgs,
}

/// Stands below the short help.
const MORE: &str = "Examples, exit codes, and what the flags mean in full: tercel dash --help";

const EXAMPLES: &str = "\
Examples:
  tercel dash -k https://localhost:4433/dash/manifest.mpd                       one player for a minute
  tercel dash -k --players 50 --ramp 4 --rule buffer -D 120 URL                 fifty, by what is in their buffers
  tercel dash -k --players 20 --speed 10 --server-pid PID --json URL            ten times as fast, with the server's CPU time

A film of your own, with ffmpeg, for tercel serve FOLDER:
  ffmpeg -i film.mp4 -map 0:v -map 0:v -map 0:v -map 0:a -c:v libx264 -c:a aac -b:a 128k \\
    -b:v:0 400k -s:v:0 426x240 -b:v:1 1M -s:v:1 640x360 -b:v:2 2500k -s:v:2 1280x720 \\
    -force_key_frames 'expr:gte(t,n_forced*4)' -seg_duration 4 -use_template 1 -use_timeline 0 \\
    -adaptation_sets 'id=0,streams=v id=1,streams=a' -f dash FOLDER/manifest.mpd

Exit codes: 0 when every player saw a picture and nothing failed, 1 when not, 2 when the command line is wrong; else as tercel get.";

/// Plays, and says how it went.
pub(crate) fn run(args: &DashArgs) -> ExitCode {
    let report = match args.path.check().map_err(GetError::Usage).and_then(|()| args.play()) {
        Ok(report) => report,
        Err(error) => {
            eprintln!("tercel dash: {error}");
            return ExitCode::from(error.exit_code());
        }
    };
    if args.json {
        // A report is numbers, texts and lists of them.
        println!("{}", serde_json::to_string(&report).unwrap_or_default());
    } else {
        println!("{report}");
    }
    if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(error: impl core::fmt::Display) -> GetError {
    GetError::Usage(error.to_string())
}

impl DashArgs {
    fn play(&self) -> Result<Report, GetError> {
        if !(0.01..=1_000.0).contains(&self.speed) {
            return Err(usage("--speed must be from 0.01 to 1000"));
        }
        let plan = self.plan()?;
        let local = match plan.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let options = self.path.options(local, self.quic.demanded_payload());
        let opened = ports::open(&ports::OpenOptions { towards: Some(plan.address.ip()), ..options });
        let opened = opened.map_err(GetError::Usage)?;
        opened.verdict.iter().for_each(|verdict| eprintln!("{verdict}"));
        let stop = stop_flag(|| {}).map_err(usage)?;
        // There is one.
        let port = opened.ports.into_iter().next().ok_or_else(|| usage("the data path has no port"))?;
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(usage)?;
        watch(port, &plan, seed, &stop).map_err(|error| GetError::Broken(error.to_string()))
    }

    fn plan(&self) -> Result<WatchPlan, GetError> {
        let manifest = Target::parse(&self.url)?;
        ConnectionArgs::tell_of_proxy("dash", core::slice::from_ref(&manifest));
        let tls = self.connection.quic_tls(&self.quic.tls())?;
        let transport = Arc::new(self.quic.transport(Version::V1).map_err(usage)?);
        Ok(WatchPlan {
            address: choose_address(&resolve(&manifest, self.connection.family(), &[])?)?,
            manifest,
            players: self.players as usize,
            settings: Settings {
                rule: match self.rule {
                    RuleArg::Throughput => Rule::Throughput,
                    RuleArg::Buffer => Rule::Buffer,
                },
                enough: self.enough,
                most: self.buffer,
            },
            span: self.duration,
            ramp: self.ramp,
            speed: self.speed,
            quic: ClientConfig { tls, transport, token: Vec::new() },
            spin: self.path.spin,
            server: self.server_pid,
        })
    }
}
