//! `tercel serve`: files and generated bodies over HTTP/1.1, 2 and 3.
//!
//! This file turns the command line into a server; its threads are in the crate `server`, its reports in `serving`.

use crate::multipath_options::Scheduler;
use crate::options::QuicArgs;
use crate::path_options::PathArgs;
use crate::print_error;
use crate::qlog_options::{self, QlogArgs};
use crate::serving::limits::LimitArgs;
use crate::serving::log::{self, LogArgs, WarningLines};
use crate::serving::operations::{AdminArgs, Observed};
use crate::serving::orders;
use crate::serving::places;
use crate::serving::process;
use crate::serving::proxies::ProxyArgs;
use crate::serving::ready::ReadyFile;
use crate::serving::reload::{CertificateFlags, ReadAgain, Reloader};
use crate::serving::report;
use crate::serving::sites::{Certificates, ServedSites};
use crate::serving::start::Start;
use crate::serving::systemd;
use crate::serving::upgrade::{Upgrader, open_xdp};
use crate::serving::user::UserArgs;
use crate::serving::watchdog;
use crate::signals::{ServerDuties, heed};
use crate::units;
use clap::{Args, ValueEnum};
use crypto::{Authorities, ClientAuth};
use server::access_log::Target;
use server::certificate::default_folder;
use server::challenges::Challenges;
use server::credentials::{Credentials, Expired};
use server::files::DotFiles;
use server::handler::{FileOptions, Listing};
use server::sites::LiveSites;
use server::{
    AltSvc, BindError, Builder, Cores, DataPath, EarlyData, Handle, Listen, Server, Tickets, Versions,
    Workers,
};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use transport::RetryPolicy;

/// When clients must prove their address before anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Retry {
    /// When more than a hundred handshakes are under way.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How datagrams find their worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Steering {
    /// The first of the others that this machine allows.
    Auto,
    /// An eBPF program in the kernel reads the connection ID; needs CAP_BPF and CAP_NET_ADMIN.
    Ebpf,
    /// A classic BPF program does; needs nothing.
    Classic,
    /// The worker that gets a datagram passes it on.
    HandOff,
}

/// Flags of `tercel serve`.
#[derive(Args)]
#[command(after_help = MORE, after_long_help = EXAMPLES)]
pub(crate) struct ServeArgs {
    /// The folder whose files are served. Without it only generated bodies are: /bytes/2GB, /bytes/512KiB, /2000000000.
    root: Option<PathBuf>,
    /// A configuration file, TOML: see tercel check, and tercel config.
    ///
    /// Each flag is a key of the same name there, and a flag on the command line wins. Paths in it are relative to its folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where to listen: PORT, ADDRESS:PORT or localhost:PORT; port 0 is any free one. A port alone means every address.
    ///
    /// May be given up to 16 times. An address that another one with the same port includes is left out.
    #[arg(short, long, default_value = "4433", value_name = "[ADDRESS:]PORT")]
    listen: Vec<Listen>,
    /// The versions of HTTP to serve: 3 over UDP, 1 (that is 1.1) and 2 over TCP, on the same port number.
    #[arg(long, default_value = "1,2,3", value_name = "VERSIONS")]
    http: Versions,
    /// Do not tell clients of HTTP/1.1 and 2 that HTTP/3 is there.
    #[arg(long, hide_short_help = true)]
    no_alt_svc: bool,
    /// The certificate chain, PEM. Without it a development certificate is made and kept.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The certificate's private key, PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// The certificate and key, PEM, for clients that ask for NAME: example.org, or *.example.org. May be given for many names.
    ///
    /// Clients that ask for another name, or none, get the one of --cert, or the development certificate.
    #[arg(long, value_name = "NAME=CERT,KEY", hide_short_help = true)]
    identity: Vec<NamedFiles>,
    /// Ask clients for a certificate, and accept those of the authorities in this PEM file.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) client_ca: Option<PathBuf>,
    /// Whether clients without a certificate are served too. Default: required.
    #[arg(long, requires = "client_ca", value_name = "WHEN", hide_short_help = true)]
    client_auth: Option<AskedClients>,
    /// Serve a certificate that has expired or is not valid yet, which clients refuse.
    #[arg(long, alias = "allow-expired", hide_short_help = true)]
    allow_expired_certificate: bool,
    /// The folder for keys that outlive a restart: clients of a server that was killed hear so at once, and resume their sessions.
    ///
    /// Default: $XDG_DATA_HOME/tercel or ~/.local/share/tercel, without the keys of sessions.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// The file with the keys that seal session tickets, for servers that share it: a client of one resumes at another. It is made
    /// if there is none, for its owner alone, and read again every few seconds. Default: a file in --state-dir, if that is given, else
    /// keys of this server alone.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    ticket_keys: Option<PathBuf>,
    /// Session tickets that a client gets after each handshake, by which it comes back without a certificate and its check; it uses
    /// each once. 0: each handshake is a full one.
    #[arg(long, default_value = "2", value_name = "N", value_parser = clap::value_parser!(u8).range(0..=8), hide_short_help = true)]
    tickets: u8,
    /// How long a session ticket is good for, from 60 seconds to 7 days.
    #[arg(long, default_value = "43200", value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(60..=604_800), hide_short_help = true)]
    ticket_lifetime: u64,
    /// Answer requests that come with a client's first packets (0-RTT): a client that comes back has its response in one round
    /// trip. An attacker may repeat such a request, so others than GET, HEAD, OPTIONS and TRACE get 425 (Too Early), and their
    /// clients ask again.
    #[arg(long, hide_short_help = true)]
    early_data: bool,
    /// An address of this machine at which clients of HTTP/3 are asked to go on after the handshake, once for each family.
    ///
    /// A client stays where it is if it does not reach the server there. For a server that listens on every address, or at that one too.
    #[arg(long, value_name = "ADDRESS", hide_short_help = true)]
    preferred_address: Vec<IpAddr>,
    /// Move connections of clients that offer this version of QUIC to it, without a round trip more (RFC 9368, RFC 9369): 1 or 2. Without
    /// the flag each connection stays in the version that its client begins with.
    #[arg(long, value_name = "VERSION", value_parser = clap::value_parser!(u8).range(1..=2), hide_short_help = true)]
    prefer_quic_version: Option<u8>,
    /// Let clients of HTTP/3 use several paths at once, up to four each (draft-ietf-quic-multipath, as of March 2026). The value says which
    /// path carries responses, while more than one can; without one it is lowest-rtt.
    #[arg(long, value_enum, value_name = "SCHEDULER", num_args = 0..=1, require_equals = true, default_missing_value = "lowest-rtt", hide_short_help = true)]
    multipath: Option<Scheduler>,
    /// Where requests are logged: a file, - for standard output, or off.
    #[arg(long, default_value = "-", value_name = "FILE|-|off")]
    access_log: String,
    /// Serve files whose names begin with a dot.
    #[arg(long)]
    dot_files: bool,
    /// Answer 404 for folders without index.html. Without this flag their entries are listed.
    #[arg(long)]
    no_listing: bool,
    /// When clients must prove their address with a Retry first.
    #[arg(long, value_enum, default_value = "auto", value_name = "WHEN", hide_short_help = true)]
    retry: Retry,
    /// The memory that connections may hold together, such as 512MiB or 536870912.
    ///
    /// When three quarters are held, receive windows grow no more and less is read ahead; when seven eighths are held, requests
    /// get 503, new connections wait, and connections that make no progress are ended, the largest first. Clients of one address
    /// may hold half of it, those of one network three quarters. Without it: half of what the machine, its control group and
    /// ulimit leave; tercel doctor says how much.
    #[arg(long, value_name = "BYTES", value_parser = units::memory)]
    memory: Option<u64>,
    /// How long running requests may take after SIGTERM or SIGINT. Without it they may take as long as they make progress. A
    /// second signal ends the server at once.
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(..=1_000_000))]
    drain_timeout: Option<u64>,
    /// Write this file once listening: one JSON object with addresses, pid and the path of the certificate. It is removed at the end.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    ready_file: Option<PathBuf>,
    /// Write this file at the end: one JSON object with bytes, datagrams, system calls and CPU seconds, in all and for each
    /// worker.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    summary_file: Option<PathBuf>,
    /// Threads that serve, each with connections of its own: a number, or auto for one on each core.
    ///
    /// HTTP/3 gets this number of threads, HTTP/1.1 and 2 the same number again. Threads without connections sleep.
    /// With --datapath xdp there can be no more than the interface has queues.
    #[arg(long, default_value = "1", value_name = "N|auto", help_heading = "Cores")]
    workers: Workers,
    /// How a datagram finds the worker that has its connection.
    #[arg(
        long,
        value_enum,
        default_value = "auto",
        value_name = "HOW",
        help_heading = "Cores",
        hide_short_help = true
    )]
    steering: Steering,
    /// Keep each worker on a core: auto, or cores such as 0,2-5 for the first worker, the second and so on.
    #[arg(long, value_name = "CORES|auto", num_args = 0..=1, default_missing_value = "auto", help_heading = "Cores")]
    pin: Option<Cores>,
    #[command(flatten)]
    operator: AdminArgs,
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    user: UserArgs,
    #[command(flatten)]
    limits: LimitArgs,
    #[command(flatten)]
    proxies: ProxyArgs,
    #[command(flatten)]
    path: PathArgs,
    #[command(flatten)]
    quic: QuicArgs,
    #[command(flatten)]
    qlog: QlogArgs,
}

impl CertificateFlags for ServeArgs {
    fn certificate_files(&self) -> Vec<PathBuf> {
        let named = self.identity.iter().flat_map(|of| [&of.certificate, &of.key]);
        self.cert.iter().chain(&self.key).chain(named).cloned().collect()
    }

    fn load_files(&self, certificate: &Path, key: &Path) -> Result<Credentials, String> {
        self.load(certificate, key)
    }

    fn identified(&self, of_sites: &Certificates) -> Result<Builder, String> {
        let default = self.default_credentials(of_sites)?;
        self.with_identities(Server::builder(), &default, of_sites)
    }
}

/// What becomes of clients without a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AskedClients {
    /// They are served.
    Optional,
    /// They have no connection.
    Required,
}

/// A certificate and key for a name: `NAME=CERT,KEY`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct NamedFiles {
    name: String,
    certificate: PathBuf,
    key: PathBuf,
}

impl FromStr for NamedFiles {
    type Err = String;

    fn from_str(text: &str) -> Result<NamedFiles, String> {
        let parts = text.split_once('=').and_then(|(name, files)| Some((name, files.split_once(',')?)));
        match parts {
            Some((name, (certificate, key)))
                if !name.is_empty() && !certificate.is_empty() && !key.is_empty() =>
            {
                Ok(NamedFiles { name: name.to_owned(), certificate: certificate.into(), key: key.into() })
            }
            _ => Err("write NAME=CERT,KEY, such as example.org=example.crt,example.key".to_owned()),
        }
    }
}

/// The name of the file of ticket keys in a state folder.
const TICKET_KEYS: &str = "ticket-keys";

/// Stands below the short help.
const MORE: &str = "Examples, and what the flags mean in full: tercel serve --help";

const EXAMPLES: &str = "\
Examples:
  tercel serve .                                       this folder, on port 4433, with a development certificate
  tercel serve --listen localhost:8443 .               for this machine alone, on another port
  tercel serve --workers auto --pin                    generated bodies, on every core
  tercel serve --http 3 .                              HTTP/3 and nothing over TCP
  tercel serve --config tercel.toml                    sites, certificates and routes of a file; see tercel check
  tercel serve --datapath xdp --interface eth0 /srv    past the kernel's network stack; see tercel doctor";

/// Runs the server until SIGINT or SIGTERM, and until running requests are answered.
pub(crate) fn run(args: &Arc<ServeArgs>, read: ReadAgain, sites: Option<ServedSites>) -> ExitCode {
    match args.serve(read, sites) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => print_error(problem),
    }
}

impl ServeArgs {
    /// What can be known to be wrong before a port is opened.
    ///
    /// # Errors
    /// One line: flags that do not go together, or a file that is not there or no use.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_flags()?;
        self.quic.transport(wire::Version::V1).map_err(text)?;
        if let (Some(certificate), Some(key)) = (&self.cert, &self.key) {
            self.read(certificate, key)?;
        }
        for NamedFiles { certificate, key, .. } in &self.identity {
            self.read(certificate, key)?;
        }
        self.client_auth()?;
        self.user.check()?;
        places::file("--access-log", Path::new(&self.access_log))?;
        self.ticket_keys.iter().try_for_each(|path| places::file("--ticket-keys", path))?;
        self.state_dir.iter().try_for_each(|path| places::folder("--state-dir", path))?;
        self.root.as_deref().map(FileOptions::folder).transpose().map(drop).map_err(text)
    }

    fn check_flags(&self) -> Result<(), String> {
        self.path.check()?;
        self.log.check()?;
        self.proxies.check(self.http)?;
        self.quic.techniques().check(self.path.datapath)
    }

    fn serve(self: &Arc<ServeArgs>, read: ReadAgain, sites: Option<ServedSites>) -> Result<(), String> {
        self.check_flags()?;
        self.user.permitted()?;
        self.log.begin();
        proxy::log_to(log::note);
        if let (Some(root), Some(_)) = (&self.root, &sites) {
            let root = root.display();
            return Err(format!("the sites of the configuration say what is served: leave {root} out"));
        }
        let (sites, certificates) =
            sites.map(|served| (Some(LiveSites::new(served.sites)), served.certificates)).unwrap_or_default();
        let credentials = self.default_credentials(&certificates)?;
        let options = self.root.as_deref().map(FileOptions::folder).transpose().map_err(text)?;
        let mut options = options.unwrap_or_default();
        if self.http.over_tcp() {
            process::raise_descriptors();
            process::keep_memory();
        }
        let mut start = Start::find()?;
        let operations = Arc::new(self.operator.open(start.take_admin())?);
        let qlog = self.qlog.open()?;
        let challenges = Challenges::default();
        let builder = self.with_identities(self.builder()?, &credentials, &certificates)?;
        let builder = builder.challenges(challenges.clone());
        let builder = if sites.is_some() { builder.extended_connect() } else { builder };
        let builder = qlog.iter().fold(builder, Builder::qlog).inherit(start.take_inheritance());
        let bound = builder.bind().map_err(|error| self.explain(&error))?;
        let report = bound.report().clone();
        report.notes.iter().for_each(|note| log::note(note));
        self.state_dir.iter().try_for_each(|folder| self.user.give(folder))?;
        self.user.change()?;
        options.dot_files = if self.dot_files { DotFiles::Serve } else { DotFiles::Hide };
        options.listing = if self.no_listing { Listing::Off } else { Listing::On };
        let bound = bound.wrap_ports(|port| self.path.held(port)).with_handshakes(start.ready()?);
        let running = match &sites {
            Some(sites) => bound.serve_sites(sites),
            None => bound.serve_files(options),
        };
        let running = running.map_err(|error| self.explain(&error))?;
        let ready: Arc<OnceLock<ReadyFile>> = Arc::default();
        let flags: Arc<dyn CertificateFlags> = Arc::<ServeArgs>::clone(self);
        orders::advise(&certificates.orders(), &report);
        let orders = self.state_folder().map(|state| orders::manager(&state, challenges));
        let status = format!("serves {} on {}", report.versions, report.places.join(" and "));
        let shown = (flags, certificates);
        let reloader = Reloader::start(running.handle(), sites.clone(), read, shown, orders, &status)?;
        let observed = Observed {
            handle: running.handle(),
            report: report.clone(),
            sites,
            reloader: Arc::clone(&reloader),
            qlog: qlog.clone(),
        };
        let upgrader = Upgrader::new(running.handle(), Arc::clone(&operations), status.clone());
        heed_signals(&running.handle(), &ready, Arc::clone(&reloader), upgrader)?;
        operations.begin(observed)?;
        let places = (operations.place(), self.ready_file.as_deref());
        if let Some(file) = report::announce(&report, &credentials, places)? {
            let _ = ready.set(file);
        }
        if !start.is_upgrade() {
            systemd::ready(&status);
        }
        start.serving(|| open_xdp(running.handle()))?;
        reloader.begin_orders()?;
        watchdog::start(running.handle()).map_err(text)?;
        let summary = running.wait();
        qlog.iter().for_each(qlog_options::finish);
        ready.get().into_iter().for_each(ReadyFile::remove);
        operations.end();
        report::summarize(&report, &summary.map_err(text)?, self.summary_file.as_deref())
    }

    /// What clients are shown that ask for no name with a certificate of its own.
    ///
    /// # Errors
    /// One line: it cannot be used.
    fn default_credentials(&self, certificates: &Certificates) -> Result<Arc<Credentials>, String> {
        match (&self.cert, &self.key, certificates.default_one()) {
            (Some(certificate), Some(key), _) => self.load(certificate, key).map(Arc::new),
            (_, _, Some(of_site)) => Ok(Arc::clone(of_site)),
            (_, _, None) => Credentials::development(self.state_dir.as_deref()).map(Arc::new),
        }
    }

    /// The builder with these certificates and those for names.
    ///
    /// # Errors
    /// One line: one cannot be used.
    fn with_identities(
        &self,
        builder: Builder,
        default: &Credentials,
        certificates: &Certificates,
    ) -> Result<Builder, String> {
        let builder = builder.identity(default.identity.clone());
        let add = |builder: Builder, NamedFiles { name, certificate, key }: &NamedFiles| {
            let named = self.load(certificate, key)?;
            Ok::<_, String>(builder.identity_for(name, named.identity))
        };
        Ok(certificates.add_to(self.identity.iter().try_fold(builder, add)?))
    }

    /// The folder of what outlives a restart.
    pub(crate) fn state_folder(&self) -> Option<PathBuf> {
        let default = || default_folder(|name| std::env::var_os(name)).ok();
        self.state_dir.clone().or_else(default)
    }

    /// Why certificates cannot be ordered, if that is so.
    pub(crate) fn cannot_order(&self) -> Option<&'static str> {
        (!self.http.over_tcp()).then_some(
            "authorities ask for proofs by TCP, which this server does not serve: let the key \"http\" have 1 or 2, or leave acme out",
        )
    }

    fn tickets(&self) -> Tickets {
        let lifetime = Duration::from_secs(self.ticket_lifetime);
        let tickets = Tickets::default().count(self.tickets.into()).lifetime(lifetime);
        match (&self.ticket_keys, &self.state_dir) {
            (Some(path), _) => tickets.keys(path),
            (None, Some(folder)) => tickets.keys(folder.join(TICKET_KEYS)),
            (None, None) => tickets,
        }
    }

    /// Which clients are served.
    fn client_auth(&self) -> Result<ClientAuth, String> {
        let Some(path) = &self.client_ca else { return Ok(ClientAuth::Off) };
        let accepted = Authorities::from_file(path)
            .map_err(|error| format!("--client-ca {}: {error}", path.display()))?;
        Ok(match self.client_auth {
            Some(AskedClients::Optional) => ClientAuth::Optional(accepted),
            Some(AskedClients::Required) | None => ClientAuth::Required(accepted),
        })
    }

    fn read(&self, certificate: &Path, key: &Path) -> Result<Credentials, String> {
        let expired = if self.allow_expired_certificate { Expired::Allow } else { Expired::Refuse };
        Credentials::load(certificate, key, expired)
    }

    /// A certificate, with a warning on standard error if it is not good for long.
    ///
    /// # Errors
    /// One line: it cannot be used.
    pub(crate) fn load(&self, certificate: &Path, key: &Path) -> Result<Credentials, String> {
        let credentials = self.read(certificate, key)?;
        credentials.warning.iter().for_each(|warning| log::warn(warning));
        Ok(credentials)
    }

    fn builder(&self) -> Result<Builder, String> {
        let mut transport = self.quic.transport(wire::Version::V1).map_err(text)?;
        transport.preferred_version = self.prefer_quic_version.map(crate::options::quic_version);
        let builder = self.listen.iter().fold(Server::builder(), |builder, at| builder.listen_on(*at));
        let builder = builder
            .versions(self.http)
            .workers(self.workers)
            .cores(self.pin.clone().unwrap_or_default())
            .data_path(self.data_path())
            .limits(self.limits.of_clients(self.memory))
            .alt_svc(if self.no_alt_svc { AltSvc::Off } else { AltSvc::default() })
            .drain(self.drain_timeout.map(Duration::from_secs))
            .access_log(Target::parse(&self.access_log))
            .access_log_style(self.log.style())
            .warnings(WarningLines::default())
            .early_data(if self.early_data { EarlyData::SafeMethods } else { EarlyData::Off })
            .transport(transport)
            .tls(self.quic.tls())
            .client_auth(self.client_auth()?)
            .tickets(self.tickets())
            .head_cache(self.quic.techniques().heads());
        let builder = self.proxies.add_to(builder);
        let builder =
            self.preferred_address.iter().fold(builder, |builder, ip| builder.preferred_address(*ip));
        let builder = match self.multipath {
            Some(scheduler) => builder.multipath(scheduler.into()),
            None => builder,
        };
        let builder = match &self.state_dir {
            Some(folder) => builder.state_dir(folder),
            None => builder.default_state_dir(),
        };
        Ok(match self.retry {
            Retry::Auto => builder,
            Retry::Always => builder.retry(RetryPolicy::Always),
            Retry::Never => builder.retry(RetryPolicy::Never),
        })
    }

    fn data_path(&self) -> DataPath {
        let options = self.path.server_options(self.quic.demanded_payload());
        let path = DataPath::of(self.quic.techniques().paths(options));
        path.spin(self.path.spin.into()).steering(match self.steering {
            Steering::Auto => server::Steering::Auto,
            Steering::Ebpf => server::Steering::Ebpf,
            Steering::Classic => server::Steering::Classic,
            Steering::HandOff => server::Steering::HandOff,
        })
    }

    /// Why the server cannot begin, with the flags that help.
    fn explain(&self, error: &BindError) -> String {
        let alone =
            if self.http.contains(Versions::HTTP3) { ", or serve HTTP/3 alone with --http 3" } else { "" };
        match error {
            BindError::Listen(_, cause) if cause.kind() == io::ErrorKind::AddrInUse => {
                format!("{error} with --listen{alone}")
            }
            BindError::Listen(_, cause) if cause.kind() == io::ErrorKind::PermissionDenied => {
                format!("{error}; --listen chooses the port")
            }
            BindError::Cores(text) => format!("--pin: {text}"),
            BindError::AccessLog(cause) => {
                format!("cannot write the access log to {}: {cause}", self.access_log)
            }
            _ => error.to_string(),
        }
    }
}

/// What signals mean to a server: see `signals.rs`.
fn heed_signals(
    handle: &Handle,
    ready: &Arc<OnceLock<ReadyFile>>,
    reloader: Arc<Reloader>,
    upgrader: Arc<Upgrader>,
) -> Result<(), String> {
    let (to_stop, to_reopen, to_remove) = (handle.clone(), handle.clone(), Arc::clone(ready));
    let duties = ServerDuties {
        stop: Box::new(move || {
            systemd::stopping();
            to_stop.stop();
        }),
        reload: Box::new(move || drop(reloader.reload())),
        reopen: Box::new(move || to_reopen.reopen_access_log()),
        tidy: Box::new(move || to_remove.get().into_iter().for_each(ReadyFile::remove)),
        upgrade: Box::new(move || upgrader.begin()),
    };
    heed(duties).map_err(text)
}

fn text(error: impl core::fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_for_a_name_has_three_parts() {
        let files = NamedFiles { name: "*.a.org".into(), certificate: "c.pem".into(), key: "d/k.pem".into() };
        assert_eq!("*.a.org=c.pem,d/k.pem".parse(), Ok(files));
        for text in ["", "a.org", "a.org=c.pem", "=c,k", "a=,k", "a=c,"] {
            assert!(text.parse::<NamedFiles>().is_err(), "{text}");
        }
    }
}
