//! `tercel perf serve`.

use crate::options::QuicArgs;
use crate::path_options::PathArgs;
use crate::print_error;
use crate::serving::ready::ReadyFile;
use crate::signals::{ServerDuties, heed};
use base::time::Duration;
use clap::Args;
use core::net::SocketAddr;
use crypto::{ServerTls, TlsOptions};
use datapath::{Counters, Port};
use load::perf::{ServePlan, ThreadSetup, protocol};
use ports::AnyPort;
use serde_json::json;
use server::credentials::{Credentials, Expired};
use server::threads::{self, Job};
use server::{Cores, Listen, Stop, Workers, listen};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use transport::{EndpointConfig, ServerConfig};
use worker::HandOff;

/// Flags of `tercel perf serve`.
#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Where to listen: PORT, ADDRESS:PORT or localhost:PORT; port 0 is any free one. A port alone means every address.
    #[arg(short, long, default_value = "4433", value_name = "[ADDRESS:]PORT")]
    listen: Listen,
    /// The certificate chain, PEM. Without it a development certificate is made and kept.
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The certificate's private key, PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Streams that a client may have open at a time.
    #[arg(long, default_value_t = 1_024, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    max_streams: u64,
    /// Answer bare datagrams instead, without QUIC: for tercel perf client HOST echo. In a laboratory only: any host can make
    /// this flood others.
    #[arg(long)]
    echo: bool,
    /// Write this file once listening: one JSON object with port, pid and the path of the certificate.
    #[arg(long, value_name = "FILE")]
    ready_file: Option<PathBuf>,
    /// Threads that serve, each with connections of its own: a number, or auto for one on each core.
    ///
    /// With --datapath xdp there can be no more than the interface has queues.
    #[arg(long, default_value = "1", value_name = "N|auto", help_heading = "Cores")]
    workers: Workers,
    /// Keep each worker on a core: auto, or cores such as 0,2-5 for the first worker, the second and so on.
    #[arg(long, value_name = "CORES|auto", num_args = 0..=1, default_missing_value = "auto", help_heading = "Cores")]
    pin: Option<Cores>,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    quic: QuicArgs,
}

/// Serves until SIGINT or SIGTERM.
pub(super) fn run(args: &ServeArgs) -> ExitCode {
    args.serve().map_or_else(print_error, |()| ExitCode::SUCCESS)
}

/// What the threads serve.
#[derive(Clone)]
enum Service {
    /// The protocol.
    Perf(Box<ServePlan>),
    /// Bare datagrams. A thread polls for so long before it sleeps.
    Echo(Duration),
}

impl Service {
    /// Serves on the port of one thread until the order to stop.
    fn run(self, number: u8, mut setup: ThreadSetup, stop: &Stop) -> io::Result<Counters> {
        match self {
            Service::Perf(mut plan) => {
                plan.endpoint.worker = number;
                load::perf::serve(setup, *plan, &|| stop.is_ordered())
            }
            Service::Echo(spin) => {
                load::perf::echo::serve(&mut setup.port, spin, &|| stop.is_ordered())?;
                Ok(setup.port.counters())
            }
        }
    }
}

impl ServeArgs {
    fn serve(&self) -> Result<(), String> {
        self.path.check()?;
        let credentials = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => {
                let given = Credentials::load(certificate, key, Expired::Allow)?;
                given.warning.iter().for_each(|warning| eprintln!("tercel: warning: {warning}"));
                given
            }
            _ => Credentials::development(None)?,
        };
        let cores = u8::try_from(cpu::allowed().len().max(1)).unwrap_or(u8::MAX);
        let workers = match self.workers {
            Workers::Exactly(count) => ports::Workers::Exactly(count.get()),
            _ => ports::Workers::OnePerCore(cores),
        };
        let (place, opened) = listen::first(&self.path.addresses(self.listen), |place| {
            let options = self.path.options(place.address, self.quic.demanded_payload());
            let options = self.quic.techniques().paths(options);
            ports::open(&ports::OpenOptions { workers, device: place.device.map(str::to_owned), ..options })
        })
        .unwrap_or_else(|| Err("there is no address to listen on".to_owned()))?;
        opened.verdict.iter().for_each(|verdict| eprintln!("{verdict}"));
        opened.declined.iter().for_each(|line| eprintln!("{line}"));
        let service = self.service(&credentials, opened.workers)?;
        let what = if self.echo { "datagrams" } else { "the perf protocol" };
        let (address, datapath) = (opened.address, opened.choice.name());
        let on = place.describe(address);
        eprintln!("tercel serves {what} on {on}, datapath {datapath}, {} workers", opened.workers);
        let ready = || self.announce(&credentials, address, datapath);
        self.serve_on(opened.ports, &service, ready)
    }

    fn service(&self, credentials: &Credentials, workers: usize) -> Result<Service, String> {
        if self.echo {
            return Ok(Service::Echo(self.path.spin));
        }
        let options = TlsOptions { alpn: vec![protocol::ALPN.to_vec()], ..self.quic.tls() };
        let tls = ServerTls::new(&credentials.identity, &options).map_err(text)?;
        let mut transport = self.quic.transport(wire::Version::V1).map_err(text)?;
        transport.streams.max_bidi_streams = self.max_streams;
        transport.streams.max_uni_streams = self.max_streams;
        let key = || {
            let mut key = [0; 32];
            getrandom::fill(&mut key).map(|()| Some(key)).map_err(text)
        };
        Ok(Service::Perf(Box::new(ServePlan {
            endpoint: EndpointConfig {
                workers: u8::try_from(workers).unwrap_or(u8::MAX),
                token_key: key()?,
                reset_key: key()?,
                ..EndpointConfig::default()
            },
            server: ServerConfig { tls, transport: Arc::new(transport) },
            spin: self.path.spin,
        })))
    }

    /// Writes the ready file.
    fn announce(
        &self,
        credentials: &Credentials,
        address: SocketAddr,
        datapath: &str,
    ) -> Result<Option<ReadyFile>, String> {
        let Some(path) = &self.ready_file else { return Ok(None) };
        let ready = json!({
            "port": address.port(),
            "pid": std::process::id(),
            "certificate": credentials.certificate,
            "datapath": datapath,
        });
        ReadyFile::write(path, &ready).map(Some)
    }

    /// Serves on these ports, one worker on each, until a signal.
    fn serve_on(
        &self,
        ports: Vec<AnyPort>,
        service: &Service,
        ready: impl FnOnce() -> Result<Option<ReadyFile>, String>,
    ) -> Result<(), String> {
        let cores = self.pin.clone().unwrap_or_default();
        let cores = cores.assign(ports.len(), &cpu::allowed()).map_err(|text| format!("--pin: {text}"))?;
        if let Some(advice) = ports.first().and_then(Port::advice) {
            eprintln!("{advice}");
        }
        // A single worker hands nothing over.
        let group = if ports.len() > 1 {
            HandOff::group(ports.iter().map(Port::waker).collect())
        } else {
            Vec::new()
        };
        let mut members = group.into_iter();
        let stop = Stop::new(ports.iter().filter_map(Port::waker).collect(), 0);
        let ready_file: Arc<OnceLock<ReadyFile>> = Arc::default();
        let (to_stop, to_remove) = (stop.clone(), Arc::clone(&ready_file));
        let duties = ServerDuties {
            stop: Box::new(move || to_stop.drain()),
            reload: Box::new(|| ()),
            reopen: Box::new(|| ()),
            tidy: Box::new(move || to_remove.get().into_iter().for_each(ReadyFile::remove)),
            upgrade: Box::new(|| ()),
        };
        heed(duties).map_err(text)?;
        let job = |(number, port): (u8, AnyPort)| {
            let (core, member) = (cores.get(usize::from(number)).copied(), members.next());
            let (service, stop) = (service.clone(), stop.clone());
            Job::new(format!("worker {number}"), move || {
                core.map_or(Ok(()), cpu::pin)?;
                let mut seed = [0; 32];
                getrandom::fill(&mut seed).map_err(io::Error::other)?;
                service.run(number, ThreadSetup { port, seed, member }, &stop)
            })
        };
        let jobs = (0..).zip(ports).map(job).collect();
        let ended = threads::start(jobs, &stop, ()).map_err(text)?;
        if let Some(file) = ready()? {
            let _ = ready_file.set(file);
        }
        let counters = ended.blocking_recv().map_err(text)?;
        ready_file.get().into_iter().for_each(ReadyFile::remove);
        let mut total = Counters::default();
        counters.map_err(text)?.into_iter().for_each(|counters| total += counters);
        let (sent, heard, cpu_s) = (total.tx.datagrams, total.rx.datagrams, cpu::process_seconds());
        eprintln!("tercel sent {sent} datagrams, heard {heard}, {cpu_s:.2} s of CPU");
        Ok(())
    }
}

fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}
