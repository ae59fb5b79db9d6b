//! The figures, for each player and for all of them, as machines read them; `Display` is for people.

use crate::plan::WatchPlan;
use crate::player::PlaybackRecord;
use crate::player_connection::Outcome;
use crate::rule::Rule;
use core::fmt;
use serde::Serialize;

/// One player. Times are by the players' clock.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlayerReport {
    /// Its number, from 0.
    pub player: usize,
    /// From wanting to see to the first picture; none when there never was one.
    pub startup_s: Option<f64>,
    /// How often it stood still after that.
    pub stalls: u64,
    /// For how long altogether.
    pub stalled_s: f64,
    /// The share of the time since the first picture in which it stood still.
    pub stall_ratio: f64,
    /// What was played.
    pub played_s: f64,
    /// The mean bitrate of the picture that was fetched, in bits a second.
    pub mean_bits_per_second: f64,
    /// Changes of quality.
    pub switches: u64,
    /// Seconds of each quality that were fetched, the lowest first.
    pub qualities_s: Vec<f64>,
    /// Everything that was fetched.
    pub bytes: u64,
    /// Fetches that failed.
    pub failures: u64,
    /// Why it was not more.
    pub fault: Option<String>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Report {
    /// How many watched.
    pub players: usize,
    /// `throughput` or `buffer`.
    pub rule: &'static str,
    /// How many times faster the players' clock ran.
    pub speed: f64,
    /// True seconds.
    pub seconds: f64,
    /// Those who saw a picture.
    pub started: usize,
    /// Their delay before it: the mean and the longest.
    pub startup_s: [f64; 2],
    /// How often any stood still.
    pub stalls: u64,
    /// For how long altogether.
    pub stalled_s: f64,
    /// The share of all time since the first pictures in which any stood still.
    pub stall_ratio: f64,
    /// What was played.
    pub played_s: f64,
    /// The mean of their mean bitrates.
    pub mean_bits_per_second: f64,
    /// Changes of quality, for each player.
    pub switches_per_player: f64,
    /// Everything that was fetched.
    pub bytes: u64,
    /// The same in 10^9 bits, by the true clock, a second.
    pub gbit_per_second: f64,
    /// Fetches that failed.
    pub failures: u64,
    /// CPU seconds of the players' thread.
    pub client_cpu_s: f64,
    /// CPU seconds of the server, if its process was named.
    pub server_cpu_s: Option<f64>,
    /// The same for each 10^9 bits that were fetched.
    pub server_cpu_s_per_gbit: Option<f64>,
    /// Each player.
    pub each: Vec<PlayerReport>,
}

pub(crate) fn of(
    plan: &WatchPlan,
    seconds: f64,
    outcomes: &[(usize, Outcome)],
    (client, server): (f64, Option<f64>),
) -> Report {
    let each: Vec<PlayerReport> =
        outcomes.iter().map(|(player, outcome)| player_report(*player, outcome)).collect();
    let startups: Vec<f64> = each.iter().filter_map(|player| player.startup_s).collect();
    let sum = |figure: fn(&PlayerReport) -> f64| each.iter().map(figure).sum::<f64>();
    let (stalled_s, played_s) = (sum(|player| player.stalled_s), sum(|player| player.played_s));
    let bytes = each.iter().map(|player| player.bytes).sum();
    let gbit = bytes as f64 * 8e-9;
    let watched = each.iter().filter(|player| player.mean_bits_per_second > 0.0).count().max(1) as f64;
    Report {
        players: plan.players,
        rule: match plan.settings.rule {
            Rule::Throughput => "throughput",
            Rule::Buffer => "buffer",
        },
        speed: plan.speed,
        seconds,
        started: startups.len(),
        startup_s: [
            startups.iter().fold(0.0, |sum, startup| sum + startup) / startups.len().max(1) as f64,
            startups.iter().copied().fold(0.0, f64::max),
        ],
        stalls: each.iter().map(|player| player.stalls).sum(),
        stalled_s,
        stall_ratio: if stalled_s + played_s > 0.0 { stalled_s / (stalled_s + played_s) } else { 0.0 },
        played_s,
        mean_bits_per_second: sum(|player| player.mean_bits_per_second) / watched,
        switches_per_player: sum(|player| player.switches as f64) / watched,
        bytes,
        gbit_per_second: if seconds > 0.0 { gbit / seconds } else { 0.0 },
        failures: each.iter().map(|player| player.failures).sum(),
        client_cpu_s: client,
        server_cpu_s: server,
        server_cpu_s_per_gbit: server.filter(|_| gbit > 0.0).map(|cpu_s| cpu_s / gbit),
        each,
    }
}

fn player_report(player: usize, outcome: &Outcome) -> PlayerReport {
    let fault = outcome.fault.clone();
    let Some(playback_record) = &outcome.playback_record else {
        return PlayerReport { player, fault, ..PlayerReport::default() };
    };
    let PlaybackRecord {
        startup,
        stalls,
        stalled,
        played,
        switches,
        qualities,
        bits_per_second,
        bytes,
        failures,
        ..
    } = playback_record;
    PlayerReport {
        player,
        startup_s: startup.map(|startup| startup.as_secs_f64()),
        stalls: *stalls,
        stalled_s: stalled.as_secs_f64(),
        stall_ratio: playback_record.stall_ratio(),
        played_s: played.as_secs_f64(),
        mean_bits_per_second: *bits_per_second,
        switches: *switches,
        qualities_s: qualities.iter().map(|span| span.as_secs_f64()).collect(),
        bytes: *bytes,
        failures: *failures,
        fault,
    }
}

impl Report {
    /// Whether all saw pictures and nothing failed.
    pub fn is_clean(&self) -> bool {
        self.started == self.players
            && self.failures == 0
            && self.each.iter().all(|player| player.fault.is_none())
    }
}

/// More players than this are not listed one by one.
const LISTED: usize = 20;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mbit = |bits: f64| bits / 1e6;
        writeln!(
            f,
            "players     {}, rule {}, {:.1} s at {} times the speed",
            self.players, self.rule, self.seconds, self.speed
        )?;
        write!(f, "start-up    {} of {} saw a picture", self.started, self.players)?;
        match self.startup_s {
            [mean, most] if self.started > 0 => {
                writeln!(f, ", after {mean:.2} s on average, {most:.2} s at most")?;
            }
            _ => writeln!(f)?,
        }
        writeln!(
            f,
            "stalls      {}, {:.2} s altogether, {:.2} % of the time",
            self.stalls,
            self.stalled_s,
            self.stall_ratio * 100.0
        )?;
        writeln!(
            f,
            "quality     {:.2} Mbit/s on average, {:.1} switches for each player",
            mbit(self.mean_bits_per_second),
            self.switches_per_player
        )?;
        writeln!(
            f,
            "fetched     {} bytes, {:.3} Gbit/s; {} fetches failed",
            self.bytes, self.gbit_per_second, self.failures
        )?;
        write!(f, "CPU         players {:.2} s", self.client_cpu_s)?;
        if let (Some(cpu_s), Some(each)) = (self.server_cpu_s, self.server_cpu_s_per_gbit) {
            write!(f, ", server {cpu_s:.2} s: {each:.4} s for each gigabit")?;
        }
        if self.each.len() <= LISTED && self.each.len() > 1 {
            write!(f, "\n\nplayer  start-up  stalls  stalled    played   Mbit/s  switches")?;
            for player in &self.each {
                let startup =
                    player.startup_s.map_or("never".to_owned(), |seconds| format!("{seconds:.2} s"));
                write!(
                    f,
                    "\n{:6}  {startup:>8}  {:6}  {:5.2} s  {:6.1} s  {:7.2}  {:8}",
                    player.player,
                    player.stalls,
                    player.stalled_s,
                    player.played_s,
                    mbit(player.mean_bits_per_second),
                    player.switches
                )?;
            }
        }
        if let Some(player) = self.each.iter().find(|player| player.fault.is_some()) {
            write!(
                f,
                "\nfault       player {}: {}",
                player.player,
                player.fault.as_deref().unwrap_or_default()
            )?;
        }
        Ok(())
    }
}
