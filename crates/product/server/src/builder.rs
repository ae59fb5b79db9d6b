//! A server in a few lines: addresses, identity, threads and limits, then a service for HTTP/1.1, 2 and 3.
//!
//! ```no_run
//! # async fn hello(_: http::Request<body::Body>) -> Result<http::Response<body::Body>, std::convert::Infallible> {
//! #     Ok(http::Response::new("hello".into()))
//! # }
//! let server = server::Server::builder().serve(server::service::service_fn(hello))?;
//! println!("https://{}/", server.local_addr());
//! server.wait()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::access_log::{Style, Target};
use crate::bind_error::BindError;
use crate::bound::Bound;
use crate::challenges::Challenges;
use crate::cores::{Cores, Workers};
use crate::early_data::EarlyData;
use crate::http_settings::AltSvc;
use crate::limits::Limits;
use crate::listen::Listen;
use crate::network::Network;
use crate::running::{Handle, Running};
use crate::service::HttpService;
use crate::settings::{Settings, State, WarningsTo};
use crate::tickets::Tickets;
use crate::upgrade::Inheritance;
use crate::versions::Versions;
use crypto::{ClientAuth, Identity, TlsOptions};
use ports::DataPath;
use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use traces::Qlog;
use transport::Scheduler;

/// A server of an application: [`Server::builder`].
#[derive(Debug)]
pub struct Server;

impl Server {
    /// A server of HTTP/1.1, 2 and 3 with the defaults.
    pub fn builder() -> Builder {
        Builder { settings: Settings::default() }
    }
}

/// What a server is made with. Setters take and return it.
#[derive(Debug)]
#[must_use = "nothing is opened before `bind` or `serve`"]
pub struct Builder {
    settings: Settings,
}

impl Builder {
    /// Where to listen, for TCP and UDP. Port 0: one that is free for both. May be called for up to 16 addresses. An address that
    /// another one with the same port includes, such as one of this machine's beside all of them, is left out. Default: port 4433 of
    /// all addresses.
    pub fn listen(self, at: SocketAddr) -> Builder {
        self.listen_on(Listen::At(at))
    }

    /// The same, also for `localhost` or all addresses of the machine.
    pub fn listen_on(mut self, at: Listen) -> Builder {
        self.settings.listen.push(at);
        self
    }

    /// The certificate and its key. Default: the development certificate, which `tercel serve` makes and uses too.
    pub fn identity(mut self, of: Identity) -> Builder {
        self.settings.certificates.default = Some(of);
        self
    }

    /// Another certificate for the same clients, with another kind of key: a client gets the first that it can check. May be called
    /// for several.
    pub fn additional_identity(mut self, of: Identity) -> Builder {
        self.settings.certificates.additional.push(of);
        self
    }

    /// The certificate for clients that ask for `name`: exact, or `*.example.org` for all names with one label more. Clients that
    /// ask for another name, or none, get the default one. May be called for many names, and for a name with several kinds of keys.
    /// Source: RFC 6066 §3.
    pub fn identity_for(mut self, name: &str, of: Identity) -> Builder {
        self.settings.certificates.named.push((name.to_owned(), of));
        self
    }

    /// The versions of HTTP that are served. Default: all.
    pub fn versions(mut self, of_http: Versions) -> Builder {
        self.settings.versions = of_http;
        self
    }

    /// How many workers serve HTTP/3; HTTP/1.1 and 2 have as many threads of their own. Default: 1.
    pub fn workers(mut self, count: Workers) -> Builder {
        self.settings.workers = count;
        self
    }

    /// The cores that the workers keep. Default: [`Cores::Unpinned`].
    pub fn cores(mut self, pin: Cores) -> Builder {
        self.settings.cores = pin;
        self
    }

    /// How datagrams reach the interface. Default: [`DataPath::gso`].
    pub fn data_path(mut self, path: DataPath) -> Builder {
        self.settings.data_path = path;
        self
    }

    /// What clients may hold, and for how long. Default: [`Limits::default`].
    pub fn limits(mut self, of_clients: Limits) -> Builder {
        self.settings.limits = of_clients;
        self
    }

    /// How QUIC connections behave: windows, timeouts, congestion control, packet sizes. The idle timeout holds for TCP too.
    /// DATAGRAM frames are not received, whatever `config` says.
    pub fn quic(self, config: quic::TransportConfig) -> Builder {
        let settings = transport::TransportConfig { max_datagram_frame_size: 0, ..config.to_transport() };
        self.transport(settings)
    }

    /// Clients of HTTP/3 may use several paths at once, up to four; `scheduler` says which of them carries responses. Works with peers
    /// that follow the draft as of March 2026. Default: one path. Source: draft-ietf-quic-multipath, docs/decisions/013.
    pub fn multipath(mut self, scheduler: Scheduler) -> Builder {
        self.settings.quic.transport.multipath = Some(scheduler);
        self
    }

    /// Traces connections of HTTP/3 (qlog). Default: none.
    pub fn qlog(mut self, to: &Qlog) -> Builder {
        self.settings.quic.qlog = Some(to.clone());
        self
    }

    /// Whether responses over HTTP/1.1 and 2 announce HTTP/3. Default: for a day.
    pub fn alt_svc(mut self, announced: AltSvc) -> Builder {
        self.settings.http.alt_svc = announced;
        self
    }

    /// How long connections have to finish after [`crate::Handle::stop`]. Default: as long as they take. Over HTTP/3 a client has half a second
    /// to five seconds to read what it got last, unless it closes the connection.
    pub fn drain(mut self, at_most: Option<Duration>) -> Builder {
        self.settings.drain = at_most;
        self
    }

    /// Where requests are logged. Default: nowhere.
    pub fn access_log(mut self, to: Target) -> Builder {
        self.settings.access_log.0 = to;
        self
    }

    /// What lines of the log look like, and which requests have one. Default: all, in the combined format. Outside semver.
    #[doc(hidden)]
    pub fn access_log_style(mut self, style: Style) -> Builder {
        self.settings.access_log.1 = style;
        self
    }

    /// Where warnings for the operator go, a line each, limited in rate. A thread of the server writes. Default: standard error.
    pub fn warnings(mut self, to: impl Write + Send + 'static) -> Builder {
        self.settings.warnings = WarningsTo::Writer(Box::new(to));
        self
    }

    /// Writes no warnings.
    pub fn no_warnings(mut self) -> Builder {
        self.settings.warnings = WarningsTo::Nowhere;
        self
    }

    /// The folder for keys that outlive a restart: clients of a server that was killed then hear so at once from its successor,
    /// and address tokens stay valid. It is made with mode 0700. Default: no keys are kept.
    pub fn state_dir(mut self, path: impl Into<PathBuf>) -> Builder {
        self.settings.state = State::Folder(path.into());
        self
    }

    /// Session tickets: how many, for how long, and whose keys seal them. Default: two for each handshake, for 12 hours, by keys of
    /// this server alone.
    pub fn tickets(mut self, of_clients: Tickets) -> Builder {
        self.settings.tickets = of_clients;
        self
    }

    /// What becomes of requests in early data (0-RTT). Default: [`EarlyData::Off`].
    pub fn early_data(mut self, rule: EarlyData) -> Builder {
        self.settings.early_data = rule;
        self
    }

    /// An address of this machine at which clients of HTTP/3 are asked to go on after the handshake, with the port of the server:
    /// one of each family. A client stays where it is if it does not reach the server there. The server must listen there
    /// too, or on every address.
    /// Default: none. Source: RFC 9000 §9.6.
    pub fn preferred_address(mut self, ip: IpAddr) -> Builder {
        self.settings.quic.preferred.push(ip);
        self
    }

    /// What a process before or a service manager has left. From then on another process can take the place of this one
    /// ([`Handle::estate`]). Outside semver.
    #[doc(hidden)]
    pub fn inherit(mut self, what: Inheritance) -> Builder {
        self.settings.inheritance = Some(what);
        self
    }

    /// The folder of `tercel serve` for the same keys. If it cannot be used, [`crate::Report::notes`] says so, and no keys are
    /// kept. Outside semver.
    #[doc(hidden)]
    pub fn default_state_dir(mut self) -> Builder {
        self.settings.state = State::Default;
        self
    }

    /// The transport's own settings. Outside semver.
    #[doc(hidden)]
    pub fn transport(mut self, settings: transport::TransportConfig) -> Builder {
        // What was said of several paths holds, unless the settings say something else.
        let multipath = settings.multipath.or(self.settings.quic.transport.multipath);
        self.settings.quic.transport = transport::TransportConfig { multipath, ..settings };
        self
    }

    /// When clients must prove their address by a Retry. Outside semver.
    #[doc(hidden)]
    pub fn retry(mut self, when: transport::RetryPolicy) -> Builder {
        self.settings.quic.retry = Some(when);
        self
    }

    /// Whether clients are asked for a certificate, and which ones are accepted, over all versions. What they show is in
    /// [`ConnectionInfo::client_certificates`](crate::ConnectionInfo). Default: none is asked for. RFC 8446 §4.3.2.
    pub fn client_auth(mut self, rule: ClientAuth) -> Builder {
        self.settings.tls.client_auth = rule;
        self
    }

    /// What certificate authorities are answered over TCP. Outside semver.
    #[doc(hidden)]
    pub fn challenges(mut self, answers: Challenges) -> Builder {
        self.settings.openings.challenges = answers;
        self
    }

    /// Connections over TCP from these networks, which are those of proxies, begin with a header of the PROXY protocol, version 1 or 2, and
    /// only they may: its addresses are those of [`ConnectionInfo`](crate::ConnectionInfo), limits and the access log. A connection
    /// from there without a header is closed. HTTP/3 has no such header. Default: none. Outside semver. Source: haproxy.org,
    /// doc/proxy-protocol.txt.
    #[doc(hidden)]
    pub fn proxy_protocol_from(mut self, proxies: impl IntoIterator<Item = Network>) -> Builder {
        self.settings.openings.proxies = proxies.into_iter().collect();
        self
    }

    /// Announces over HTTP/2 and 3 that extended CONNECT is taken, for [`Bound::serve_sites`], which passes WebSockets on. Other handlers
    /// never see such a request: it is refused where it was not announced. Source: RFC 8441, RFC 9220. Outside semver.
    #[doc(hidden)]
    pub fn extended_connect(mut self) -> Builder {
        self.settings.http.extended_connect = true;
        self
    }

    /// Cipher suites, key exchange, log of secrets. Outside semver.
    #[doc(hidden)]
    pub fn tls(mut self, options: TlsOptions) -> Builder {
        self.settings.tls = TlsOptions { client_auth: self.settings.tls.client_auth, ..options };
        self
    }

    /// Whether encoded response heads are remembered. Outside semver.
    #[doc(hidden)]
    pub fn head_cache(mut self, cache: crate::http3::HeadCache) -> Builder {
        self.settings.http.heads = cache;
        self
    }

    /// Shows the certificates of this builder at a server that runs, in handshakes that begin from now on, over every version of HTTP.
    /// Connections go on, and nothing else of the builder matters. Session tickets that were issued with other certificates cost a full
    /// handshake.
    ///
    /// # Errors
    /// There is no certificate to show, or a name is none. Those in use stay.
    pub fn replace_identities(self, at: &Handle) -> Result<(), BindError> {
        at.identities().replace(self.settings.identities()?);
        Ok(())
    }

    /// Opens the ports. Connections that arrive wait in the kernel until [`Bound::serve`] or its like.
    ///
    /// # Errors
    /// A port cannot be had, there is no certificate to serve, or a setting cannot work.
    pub fn bind(self) -> Result<Bound, BindError> {
        self.settings.bind()
    }

    /// Opens the ports and serves by a service: [`Builder::bind`], then [`Bound::serve`].
    ///
    /// # Errors
    /// As both.
    pub fn serve(self, service: impl HttpService + Send) -> Result<Running, BindError> {
        self.bind()?.serve(service)
    }
}
