//! The settings of a server, and the opening of its ports.

use crate::access_log::{Style, Target};
use crate::bind_error::BindError;
use crate::bound::{Bound, TcpConfig};
use crate::budget::Budget;
use crate::certificate;
use crate::certificates::Certificates;
use crate::cores::{Cores, Workers};
use crate::credentials::Credentials;
use crate::early_data::EarlyData;
use crate::http_settings::HttpSettings;
use crate::keys::Keys;
use crate::limits::Limits;
use crate::listen::Listen;
use crate::listeners::{self, Copies, Listeners, Opening};
use crate::low::Shared;
use crate::quic_settings::QuicSettings;
use crate::report::Report;
use crate::signers::Signers;
use crate::tcp;
use crate::tickets::Tickets;
use crate::upgrade::{Inheritance, Succession};
use crate::versions::Versions;
use crate::warnings::{self, Printer, Warnings};
use crate::watch;
use crate::worker_thread::SharedConfig;
use crypto::{Identities, Identity, ServerTls, SharedIdentities, TicketKeys, TicketOptions, TlsOptions};
use datapath::Port;
use ports::{DataPath, Memory};
use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use transport::{EndpointConfig, ServerConfig};

/// Datagrams of early data that wait for the Initial packet which they have overtaken, of all workers.
const HELD_DATAGRAMS: usize = 256;
/// What a server without kept keys cannot do.
const CONSEQUENCE: &str = "after a crash clients notice by a timeout only";

/// Where warnings go.
pub(crate) enum WarningsTo {
    StandardError,
    Writer(Box<dyn Write + Send>),
    Nowhere,
}

impl fmt::Debug for WarningsTo {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            WarningsTo::StandardError => "StandardError",
            WarningsTo::Writer(_) => "Writer",
            WarningsTo::Nowhere => "Nowhere",
        })
    }
}

/// Where keys are kept.
#[derive(Debug)]
pub(crate) enum State {
    Nowhere,
    Folder(PathBuf),
    /// In the folder of the development certificate, if that can be used.
    Default,
}

/// What a server is made with.
#[derive(Debug)]
pub(crate) struct Settings {
    /// All of the default port if there are none.
    pub(crate) listen: Vec<Listen>,
    pub(crate) certificates: Certificates,
    pub(crate) versions: Versions,
    pub(crate) workers: Workers,
    pub(crate) cores: Cores,
    pub(crate) data_path: DataPath,
    pub(crate) limits: Limits,
    pub(crate) quic: QuicSettings,
    pub(crate) http: HttpSettings,
    pub(crate) tls: TlsOptions,
    pub(crate) drain: Option<Duration>,
    pub(crate) access_log: (Target, Style),
    pub(crate) warnings: WarningsTo,
    pub(crate) state: State,
    pub(crate) tickets: Tickets,
    pub(crate) early_data: EarlyData,
    /// What connections over TCP may begin with beside a client's handshake.
    pub(crate) openings: tcp::Openings,
    /// What a process before or a service manager has left; `None`, the default: nothing, and no process takes the place of this one.
    pub(crate) inheritance: Option<Inheritance>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            listen: Vec::new(),
            certificates: Certificates::default(),
            versions: Versions::default(),
            workers: Workers::default(),
            cores: Cores::default(),
            data_path: DataPath::default(),
            limits: Limits::default(),
            quic: QuicSettings::default(),
            http: HttpSettings::default(),
            tls: TlsOptions::default(),
            drain: None,
            access_log: (Target::Off, Style::default()),
            warnings: WarningsTo::StandardError,
            state: State::Nowhere,
            tickets: Tickets::default(),
            early_data: EarlyData::Off,
            openings: tcp::Openings::default(),
            inheritance: None,
        }
    }
}

impl Settings {
    /// Opens the ports.
    pub(crate) fn bind(mut self) -> Result<Bound, BindError> {
        let identities = SharedIdentities::from(self.identities()?);
        let allowed = cpu::allowed();
        let (workers, threads) = self.threads(allowed.len());
        let is_upgradable = self.inheritance.is_some();
        let mut inheritance = self.inheritance.take().unwrap_or_default();
        inheritance.check_workers(threads).map_err(BindError::Setting)?;
        // The folder for keys is made, which may be that of ticket keys.
        let (keys, notes) = self.keys(&inheritance)?;
        let tickets = self.tickets.open(inheritance.tickets());
        let tickets = tickets.map_err(|error| BindError::Setting(error.to_string()))?;
        let tickets = Arc::new(tickets);
        let (tls, tcp_tls) = self.tls(&identities, &tickets)?;
        let copies = if is_upgradable { Copies::Made } else { Copies::None };
        let mut opened = self.open((workers, threads), &mut inheritance, copies)?;
        let mut report = self.report(&opened, threads);
        report.notes.extend(notes.into_iter().chain(inheritance.sockets.notes()));
        let copies = std::mem::take(&mut opened.copies);
        let succession =
            Succession::new(inheritance, (&keys, &tickets), (&report, opened.udp.as_ref()), copies);
        let signers = Signers::new(allowed.len());
        let tcp = |tls| TcpConfig {
            handshakes: tcp::Handshakes::new(tls, identities.clone(), signers.clone(), threads),
            openings: self.openings.clone(),
            limits: self.tcp_limits(threads),
            extended_connect: self.http.extended_connect,
            alt_svc: self.http.announcement(self.versions),
        };
        let tcp = tcp_tls.map(tcp);
        let endpoint =
            EndpointConfig { generation: succession.generation(), ..self.endpoint(&keys, &report) };
        let ports = opened.udp.map(|udp| udp.ports).unwrap_or_default();
        let ports = self.data_path.captured(ports).map_err(BindError::Capture)?;
        let cores = self.cores.assign(threads.max(report.workers), &allowed).map_err(BindError::Cores)?;
        let quic = self.quic.build(&report.addresses, self.limits.handshake_timeout())?;
        let http3 = self.http3();
        let (warnings, printer) = start_warnings(self.warnings).map_err(BindError::System)?;
        if self.tickets.are_shared() {
            watch::ticket_keys(&tickets, &warnings).map_err(BindError::System)?;
        }
        let memory = self.limits.memory_limit().or_else(|| Memory::available().map(Memory::share));
        let worker = SharedConfig {
            endpoint,
            server: ServerConfig { tls, transport: Arc::new(quic) },
            worker: worker::Config { spin: self.data_path.spin_span() },
            handshakes: signers.executor(),
            http3: Arc::new(http3),
            early_data: self.early_data,
            heads: self.http.heads,
            progress: self.limits.response_progress(),
            drain: self.drain.map(Into::into),
            shared: Shared {
                budget: memory.map_or_else(Budget::default, Budget::new),
                warnings,
                ..Shared::default()
            },
        };
        Ok(Bound {
            report,
            ports,
            listeners: opened.tcp,
            cores,
            worker,
            tcp,
            identities,
            access_log: self.access_log,
            printer,
            succession: is_upgradable.then_some(succession),
        })
    }

    /// How many workers there are, and how many threads of TCP, on a machine of this many cores.
    fn threads(&self, cores: usize) -> (ports::Workers, usize) {
        let workers = match self.workers {
            Workers::Exactly(count) => ports::Workers::Exactly(count.get()),
            Workers::OnePerCore => ports::Workers::OnePerCore(u8::try_from(cores.max(1)).unwrap_or(u8::MAX)),
        };
        let (ports::Workers::Exactly(count) | ports::Workers::OnePerCore(count)) = workers;
        (workers, usize::from(count.max(1)))
    }

    /// The ports, as far as they are not open already.
    fn open(
        &self,
        (workers, threads): (ports::Workers, usize),
        inheritance: &mut Inheritance,
        copies: Copies,
    ) -> Result<Listeners, BindError> {
        let options = ports::OpenOptions { workers, ..self.data_path.options().clone() };
        let steered = inheritance.steering();
        let passed = &mut inheritance.sockets;
        let mut opening =
            Opening { options: &options, versions: self.versions, threads, passed, steered, copies };
        listeners::open(&self.listen, &mut opening)
    }

    pub(crate) fn identities(&self) -> Result<Identities, BindError> {
        self.certificates.identities(|| development(&self.state))
    }

    /// The configurations of QUIC and, if it is needed, of TLS over TCP.
    fn tls(
        &self,
        identities: &SharedIdentities,
        tickets: &Arc<TicketKeys>,
    ) -> Result<(ServerTls, Option<Arc<rustls::ServerConfig>>), BindError> {
        let refused = |error: crypto::ConfigError| BindError::Identity(error.to_string());
        let quic = ServerTls::new(identities.clone(), &self.tls).map_err(refused)?;
        let tickets = TicketOptions {
            count: self.tickets.each(),
            early_data: (self.early_data != EarlyData::Off).then(Arc::default),
            // RFC 9114 §7.2.4.2: early data was sent with the settings of before in mind.
            application: self.http3().settings().to_payload(),
            ..TicketOptions::new(Arc::clone(tickets))
        };
        let options = TlsOptions { alpn: self.versions.alpn(), ..self.tls.clone() };
        let tcp =
            self.versions.over_tcp().then(|| crypto::tcp_server(identities.clone(), &options, &tickets));
        Ok((quic.with_tickets(tickets), tcp.transpose().map_err(refused)?))
    }

    fn report(&self, opened: &Listeners, threads: usize) -> Report {
        let udp = opened.udp.as_ref();
        let selection = udp.and_then(|udp| udp.verdict.as_ref()).map(ToString::to_string);
        let declined = udp.iter().flat_map(|udp| udp.declined.iter().cloned());
        let first = udp.and_then(|udp| udp.ports.first());
        Report {
            address: opened.address,
            addresses: opened.addresses.clone(),
            places: opened.places.clone(),
            versions: self.versions,
            data_path: udp.map(|udp| udp.choice.name()),
            xdp_mode: first.and_then(Port::xdp_mode),
            interface: udp.and_then(|udp| udp.interface.clone()),
            workers: udp.map_or(threads, |udp| udp.workers),
            steering: udp.map(|udp| udp.steering.name()),
            notes: selection.into_iter().chain(declined).chain(first.and_then(Port::advice)).collect(),
        }
    }

    /// The keys, and what is to be told of them.
    fn keys(&self, inheritance: &Inheritance) -> Result<(Keys, Option<String>), BindError> {
        if let Some(keys) = inheritance.keys() {
            return Ok((keys, None));
        }
        let fresh = || Keys::fresh().map_err(BindError::System);
        let keys = match &self.state {
            State::Nowhere => return Ok((fresh()?, None)),
            State::Folder(folder) => Keys::load_or_make(folder).map_err(BindError::State)?,
            State::Default => match default_keys() {
                Ok(keys) => keys,
                Err(problem) => {
                    return Ok((fresh()?, Some(format!("tercel: warning: {problem}: {CONSEQUENCE}"))));
                }
            },
        };
        let note = keys.was_damaged.then(|| {
            "tercel: warning: the file of kept keys was damaged and is replaced: connections of before are not reset"
                .to_owned()
        });
        Ok((keys, note))
    }

    /// How the workers treat unknown peers. They share the keys, so each accepts the tokens and resets of all. The limits for
    /// unknown peers are divided among them.
    fn endpoint(&self, keys: &Keys, report: &Report) -> EndpointConfig {
        let defaults = EndpointConfig::default();
        let workers = report.workers;
        let share = |whole: u64| whole.div_ceil(workers as u64);
        let limits = self.limits.of_thread(workers);
        EndpointConfig {
            workers: u8::try_from(workers).unwrap_or(u8::MAX),
            retry: self.quic.retry.unwrap_or(defaults.retry),
            token_key: Some(keys.token_key()),
            reset_key: Some(keys.reset_key(report.address)),
            held_datagrams: match self.early_data {
                EarlyData::Off => 0,
                EarlyData::SafeMethods | EarlyData::Application => HELD_DATAGRAMS.div_ceil(workers),
            },
            max_half_open: defaults.max_half_open.div_ceil(workers),
            max_connections: limits.connections,
            max_connections_per_address: limits.per_address,
            max_connections_per_prefix: limits.per_prefix,
            replies_per_second: share(defaults.replies_per_second),
            retries_per_second: share(defaults.retries_per_second),
            ..defaults
        }
    }

    /// How messages over HTTP/3 are taken.
    fn http3(&self) -> http3::Config {
        http3::Config { enable_connect_protocol: self.http.extended_connect, ..self.limits.http3() }
    }

    fn tcp_limits(&self, threads: usize) -> tcp::Limits {
        let never = base::time::Duration::MAX;
        let idle = Some(self.quic.transport.idle_timeout).filter(|idle| *idle > base::time::Duration::ZERO);
        tcp::Limits {
            idle: idle.unwrap_or(never),
            drain: self.drain.map(Into::into),
            ..self.limits.tcp(threads)
        }
    }
}

fn start_warnings(to: WarningsTo) -> io::Result<(Warnings, Option<Printer>)> {
    let (warnings, printer) = match to {
        WarningsTo::StandardError => warnings::start(io::stderr())?,
        WarningsTo::Writer(writer) => warnings::start(writer)?,
        WarningsTo::Nowhere => return Ok((Warnings::default(), None)),
    };
    Ok((warnings, Some(printer)))
}

fn default_keys() -> Result<Keys, String> {
    let Ok(folder) = certificate::default_folder(|name| std::env::var_os(name)) else {
        return Err(
            "no place for keys: set HOME or XDG_DATA_HOME, or name a folder with --state-dir".to_owned()
        );
    };
    Keys::load_or_make(&folder).map_err(|error| error.to_string())
}

fn development(state: &State) -> Result<Identity, BindError> {
    let folder = if let State::Folder(folder) = state { Some(folder.as_path()) } else { None };
    Credentials::development(folder).map(|made| made.identity).map_err(BindError::Identity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Level;

    fn bound(limits: Limits) -> Bound {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let key = made.signing_key.serialize_pem();
        let identity = Identity::from_pem(made.cert.pem().as_bytes(), key.as_bytes()).ok();
        let listen = vec![Listen::At(([127, 0, 0, 1], 0).into())];
        let certificates = Certificates { default: identity, ..Certificates::default() };
        Settings { certificates, listen, limits, warnings: WarningsTo::Nowhere, ..Settings::default() }
            .bind()
            .unwrap()
    }

    /// Deleted, clients of a library server could take all memory of the machine.
    #[test]
    fn connections_hold_half_of_the_machine_unless_told_otherwise() {
        let budget = bound(Limits::default()).worker.shared.budget;
        let share = Memory::available().map(Memory::share).unwrap();
        assert!(budget.limit() / 2 < share && share / 2 < budget.limit(), "{} of {share}", budget.limit());
        assert_eq!(budget.level(), Level::Ample);
        assert_eq!(bound(Limits::default().memory(1 << 20)).worker.shared.budget.limit(), 1 << 20);
    }

    #[test]
    fn limits_reach_every_thread() {
        let limits = Limits::default().connections(7).handshake(Duration::from_secs(3));
        let bound = bound(limits.progress(Duration::from_secs(9), 5));
        let tcp = bound.tcp.as_ref().unwrap();
        let seconds = base::time::Duration::from_secs;
        assert_eq!((bound.worker.endpoint.max_connections, tcp.limits.connections), (7, 7));
        assert_eq!(bound.worker.server.transport.handshake_timeout, seconds(3));
        assert_eq!((tcp.limits.handshake, tcp.limits.idle), (seconds(3), seconds(30)));
        assert_eq!((bound.worker.progress.within, bound.worker.progress.bytes), (seconds(9), 5));
        assert_eq!(bound.worker.http3.body_timeout, Some(seconds(9)));
    }
}
