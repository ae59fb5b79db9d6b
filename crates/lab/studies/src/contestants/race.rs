//! Trials of several servers at the same work, in turns.
//!
//! A round has one trial of each entry, each with a server started anew. The first round is not counted; every other one runs in the
//! opposite order, so that who follows whom does not matter. An entry that fails once is told and left out of later rounds; what
//! it did before is kept. When all shall end, what was measured so far is the result.

use std::io;
use std::path::PathBuf;

use bench::course::{CourseWatch, Interval};
use bench::estimate::Estimate;
use bench::process::is_interruption;
use bench::site::End;
use bench::stats::{Ratio, Summary};
use profile::Profile;
use report::model::Cell;
use serde::Serialize;

use super::client::{Call, Client, Run, Work, limit};
use super::ground::name_of;
use super::{Contestant, Http, Installed, Serving, TestSite};
use crate::context::Context;
use crate::courses::Rounds;
use crate::profiles::{self, Look, REQUESTS};

/// A server, a version of HTTP, and a client.
#[derive(Clone, Debug)]
pub struct RaceEntry {
    /// The server.
    pub server: Installed,
    /// What the two speak.
    pub http: Http,
    /// The client.
    pub client: Client,
    /// Where the client is.
    pub program: PathBuf,
    /// How many files of the same size are asked for in turn; only `tercel load` asks for more than one.
    pub files: usize,
}

/// One counted trial.
#[derive(Clone, Debug, Serialize)]
pub struct Trial {
    /// What the client says.
    pub run: Run,
    /// CPU seconds of the server's process.
    pub server_cpu_s: f64,
    /// Its share of its core.
    pub server_share: f64,
    /// What it did meanwhile.
    pub course: Vec<Interval>,
}

/// What became of an entry.
#[derive(Clone, Debug, Serialize)]
pub struct EntryResult {
    /// The server.
    pub who: Contestant,
    /// What was spoken.
    pub http: Http,
    /// Who asked.
    pub client: Client,
    /// For how many files.
    pub files: usize,
    /// The server's version, once it has run.
    pub version: String,
    /// All counted trials, in order of time.
    pub trials: Vec<Trial>,
    /// Why it was left out.
    pub problem: Option<String>,
    #[serde(skip)]
    entry: Option<RaceEntry>,
}

/// What is measured.
pub struct Race<'a> {
    /// Where, and with what.
    pub ground: &'a TestSite,
    /// What is asked.
    pub work: Work,
    /// Counted rounds.
    pub trials: usize,
}

impl EntryResult {
    /// A lane in which nothing has happened.
    pub fn new(entry: RaceEntry) -> EntryResult {
        let RaceEntry { server, http, client, files, .. } = &entry;
        EntryResult {
            who: server.who,
            http: *http,
            client: *client,
            files: *files,
            version: String::new(),
            trials: Vec::new(),
            problem: None,
            entry: Some(entry),
        }
    }

    /// With trials that were never run.
    #[cfg(test)]
    pub(crate) fn pretended(who: Contestant, http: Http, client: Client, seconds: &[f64]) -> EntryResult {
        let trial = |&seconds: &f64| Trial {
            run: Run {
                seconds,
                rate: 1_000.0 / seconds,
                succeeded: 1_000,
                content_bytes: 1_400_000,
                client_cpu_s: seconds / 2.0,
                client_share: 0.5,
                received_datagrams: (http == Http::Three).then_some(1_000.0),
                received_bytes: (http == Http::Three).then_some(1_450_000.0),
                ..Run::default()
            },
            server_cpu_s: seconds,
            server_share: 1.0,
            course: Vec::new(),
        };
        let trials = seconds.iter().map(trial).collect();
        EntryResult {
            who,
            http,
            client,
            files: 1,
            version: "pretended 1.0".to_owned(),
            trials,
            problem: None,
            entry: None,
        }
    }

    /// Over its trials.
    pub fn summary(&self, figure: impl Fn(&Trial) -> f64) -> Summary {
        Summary::of(self.trials.iter().map(figure))
    }

    /// The same for a table, if there are any.
    pub fn cell(&self, digits: u8, figure: impl Fn(&Trial) -> f64) -> Cell {
        if self.trials.is_empty() { Cell::Empty } else { Cell::Trials(self.summary(figure), digits) }
    }

    /// The client's time over that of another lane.
    pub fn time_over(&self, other: &EntryResult) -> Option<Ratio> {
        Ratio::by_rounds(
            &self.summary(|trial| trial.run.seconds).values,
            &other.summary(|trial| trial.run.seconds).values,
        )
    }

    /// Who limits, in most trials.
    pub fn limit(&self) -> &'static str {
        let said: Vec<&str> = self.trials.iter().map(Trial::limit).collect();
        let often = |words: &&&str| said.iter().filter(|other| other == words).count();
        said.iter().max_by_key(often).copied().unwrap_or_default()
    }

    /// Bytes of UDP payload in each datagram that the client received, on average; `None` over TCP.
    pub fn payload_per_datagram(&self) -> Option<f64> {
        let of = |run: &Run| Some(run.received_bytes? / run.received_datagrams?);
        let values: Vec<f64> = self.trials.iter().filter_map(|trial| of(&trial.run)).collect();
        (!values.is_empty()).then(|| Summary::of(values).mean)
    }
}

/// The courses of entries with our client, of one file.
pub(crate) fn contestants(lanes: &[EntryResult], name: fn(&EntryResult) -> String) -> Vec<Rounds<'_>> {
    let shown = lanes.iter().filter(|lane| lane.client == Client::Load);
    shown
        .map(|lane| Rounds {
            name: name(lane),
            courses: lane.trials.iter().map(|trial| &trial.course[..]).collect(),
        })
        .collect()
}

impl Trial {
    /// By the shares that both processes had of their cores. `tercel load` has a word, too, but looks at threads, and a server of
    /// several threads on one core is busy while none of them is.
    fn limit(&self) -> &'static str {
        limit(self.run.client_share, self.server_share)
    }
}

impl Race<'_> {
    /// Runs all rounds. `after_round` is called after each counted one.
    ///
    /// # Errors
    /// Only what `after_round` says, or [`io::ErrorKind::Interrupted`] when all shall end; the lanes keep what was measured.
    pub fn run(
        &self,
        lanes: &mut [EntryResult],
        context: &mut Context<'_>,
        after_round: &mut dyn FnMut(&mut Context<'_>) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut estimate = Estimate::of_rounds(lanes.len(), self.trials + 1);
        for round in 0..=self.trials {
            let mut order: Vec<usize> = (0..lanes.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                if let Some(lane) = lanes.get_mut(index).filter(|lane| lane.problem.is_none()) {
                    self.turn(lane, round, (context, &mut estimate))?;
                }
            }
            if round > 0 {
                after_round(context)?;
            }
        }
        Ok(())
    }

    fn turn(
        &self,
        lane: &mut EntryResult,
        round: usize,
        (context, estimate): (&mut Context<'_>, &mut Estimate),
    ) -> io::Result<()> {
        if context.is_stopped() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut name = format!("{:14} {:8} {:11}", lane.who.name(), lane.http.name(), lane.client.name());
        if lane.files > 1 {
            name.push_str(&format!(" {} files", lane.files));
        }
        match self.trial(lane, context) {
            Ok(trial) => {
                let counted =
                    if round == 0 { "warm-up".to_owned() } else { format!("{round}/{}", self.trials) };
                context.tell(&format!(
                    "{name} {counted:8} {:7.3} s  {:8.0} requests/s  server {:3.0} %  client {:3.0} %  limit: {}{}",
                    trial.run.seconds,
                    trial.run.rate,
                    trial.server_share * 100.0,
                    trial.run.client_share * 100.0,
                    trial.limit(),
                    estimate.step(1.0)
                ));
                lane.trials.extend((round > 0).then_some(trial));
            }
            Err(error) if is_interruption(&error, context.stop) => {
                return Err(io::ErrorKind::Interrupted.into());
            }
            Err(error) => {
                context.tell(&format!("{name} {error}"));
                lane.problem = Some(error.to_string());
            }
        }
        Ok(())
    }

    /// Something to look into for each measured entry of tercel's with our client: of others the ledger knows no functions.
    pub(crate) fn looks<'a>(
        &'a self,
        lanes: &'a [EntryResult],
        name: fn(&EntryResult) -> String,
    ) -> Vec<Look<'a>> {
        let ours = |lane: &&EntryResult| {
            (lane.who, lane.client) == (Contestant::Tercel, Client::Load) && !lane.trials.is_empty()
        };
        let look = |lane: &'a EntryResult| {
            Look::new(&name(lane), move |context| self.profile(lane, &name(lane), context))
        };
        lanes.iter().filter(ours).map(look).collect()
    }

    fn profile(&self, lane: &EntryResult, name: &str, context: &Context<'_>) -> io::Result<Profile> {
        let (entry, serving) = self.serve(lane, context)?;
        let urls = self.urls(entry, &serving);
        let work = Work { requests: REQUESTS, ..self.work.clone() };
        // It is killed when it goes out of scope.
        let _client = self.call(entry, &serving, &urls).start(&work, context.cores[1])?;
        let profile = profiles::watch(serving.id(), name, context);
        serving.stop();
        profile
    }

    fn serve<'a>(
        &self,
        lane: &'a EntryResult,
        context: &Context<'_>,
    ) -> io::Result<(&'a RaceEntry, Serving)> {
        let entry = lane.entry.as_ref().ok_or_else(|| io::Error::other("nothing to start"))?;
        Ok((entry, entry.server.start(self.ground, context.cores[0], context.stop)?))
    }

    fn urls(&self, entry: &RaceEntry, serving: &Serving) -> Vec<String> {
        (0..entry.files).map(|at| serving.url(&name_of(self.work.file.0, at))).collect()
    }

    fn call<'a>(&'a self, entry: &'a RaceEntry, serving: &Serving, urls: &'a [String]) -> Call<'a> {
        Call {
            client: entry.client,
            program: &entry.program,
            http: entry.http,
            urls,
            server: serving.id(),
            ground: self.ground,
        }
    }

    fn trial(&self, lane: &mut EntryResult, context: &Context<'_>) -> io::Result<Trial> {
        let (entry, serving) = self.serve(lane, context)?;
        let urls = self.urls(entry, &serving);
        let call = self.call(entry, &serving, &urls);
        let before = serving.cpu_seconds()?;
        let watch = CourseWatch::start(serving.id(), self.ground.site().interface(End::Server));
        let run = call.run(&self.work, context.cores[1], context.stop)?;
        let course = watch.finish();
        let server_cpu_s = serving.cpu_seconds()? - before;
        lane.version.clone_from(&serving.version);
        serving.stop();
        Ok(Trial { server_share: server_cpu_s / run.seconds, server_cpu_s, run, course })
    }
}
