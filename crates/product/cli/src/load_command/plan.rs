//! From the command line to a plan.

use super::{Http, LoadArgs, urls};
use crate::connection_options::ConnectionArgs;
use base::time::Duration;
use client::error::GetError;
use client::request::parse_headers;
use client::resolve::resolve;
use client::target::{Scheme, Target};
use crypto::TlsOptions;
use http::request::Parts;
use http::{Method, Request, Uri};
use load::{
    Bound, Handshakes, LoadPlan, Pace, Protocol, Quic, Reuse, Tcp, choose_address, choose_tcp_address,
};
use rustls::client::Resumption;
use std::sync::Arc;
use traces::Qlog;
use transport::ClientConfig;

/// How long a run takes when nothing is said about its end.
const DEFAULT_SPAN: Duration = Duration::from_secs(10);
/// The length of a slice when a file of them is wanted and nothing is said.
const DEFAULT_SLICE: Duration = Duration::from_secs(1);

impl LoadArgs {
    /// What is to be done, in each trial; connections over QUIC are traced to `qlog`.
    pub(super) fn plan(&self, qlog: Option<&Qlog>) -> Result<LoadPlan, GetError> {
        let usage = |error: &dyn core::fmt::Display| GetError::Usage(error.to_string());
        let targets = urls::targets(&self.urls, self.urls_file.as_deref())?;
        let first = targets.first().ok_or_else(|| GetError::Usage("there is no URL to ask".into()))?;
        let protocol = self.protocol(first, qlog)?;
        if !self.quiet {
            ConnectionArgs::tell_of_proxy("load", core::slice::from_ref(first));
        }
        let addresses = resolve(first, self.connection.family(), &[])?;
        let address = match protocol {
            Protocol::Http3(_) => choose_address(&addresses)?,
            Protocol::Http1(_) | Protocol::Http2(_) => choose_tcp_address(&addresses)?,
        };
        let plan = LoadPlan {
            server_name: first.host().to_owned(),
            address,
            requests: targets.iter().map(|target| self.head(target)).collect::<Result<_, _>>()?,
            content: self.body,
            connections: self.connections as usize,
            handshakes: self.handshakes as usize,
            streams: self.streams as usize,
            bound: match (self.requests, self.duration) {
                (Some(count), _) => Bound::Requests(count),
                (None, span) => Bound::Span(span.unwrap_or(DEFAULT_SPAN)),
            },
            warm_up: self.warm_up,
            pace: self.rate.map_or(Pace::Closed, Pace::Open),
            timeout: self.timeout,
            series: self.series.or_else(|| self.csv.as_ref().map(|_| DEFAULT_SLICE)),
            protocol,
            reuse: if self.new_connections { Reuse::Never } else { Reuse::Always },
        };
        plan.check(usize::from(self.threads)).map_err(|error| usage(&error))?;
        Ok(plan)
    }

    fn protocol(&self, target: &Target, qlog: Option<&Qlog>) -> Result<Protocol, GetError> {
        if self.http != Http::Three && self.early_data {
            return Err(GetError::Usage("--early-data is for HTTP/3: leave out --http".to_owned()));
        }
        if self.http != Http::Three {
            let options = TlsOptions { alpn: Vec::new(), ..self.quic.tls() };
            let tls = match target.scheme() {
                Scheme::Https => Some(self.resuming(self.connection.tcp_tls(&options)?)),
                Scheme::Http => None,
            };
            let tcp = Tcp { tls, handshake_timeout: self.connect_timeout };
            return Ok(if self.http == Http::One { Protocol::Http1(tcp) } else { Protocol::Http2(tcp) });
        }
        if target.scheme() == Scheme::Http {
            return Err(GetError::Usage(format!(
                "{target}: HTTP/3 is never without TLS; write https://, or add --http 1 or --http 2"
            )));
        }
        let version = crate::options::quic_version(self.quic_version);
        let usage = |error: transport::InvalidConfig| GetError::Usage(error.to_string());
        let mut transport = self.quic.transport(version).map_err(usage)?;
        transport.handshake_timeout = self.connect_timeout;
        transport.qlog = qlog.map(Qlog::tracer);
        let tls = self.connection.quic_tls(&self.quic.tls())?;
        let config = ClientConfig { tls, transport: Arc::new(transport), token: Vec::new() };
        let handshakes = match (self.early_data, self.resume) {
            (true, _) => Handshakes::Early,
            (false, true) => Handshakes::Resumed,
            (false, false) => Handshakes::Full,
        };
        Ok(Protocol::Http3(Quic { config, spin: self.path.spin, handshakes }))
    }

    /// The configuration of connections over TCP, with tickets of those before if they are to resume.
    fn resuming(&self, tls: Arc<rustls::ClientConfig>) -> Arc<rustls::ClientConfig> {
        let mut tls = Arc::unwrap_or_clone(tls);
        if self.resume {
            tls.resumption = Resumption::in_memory_sessions(1);
        }
        Arc::new(tls)
    }

    fn head(&self, target: &Target) -> Result<Parts, GetError> {
        let uri = Uri::builder()
            .scheme(target.scheme().name())
            .authority(target.authority())
            .path_and_query(target.path());
        let mut request = Request::new(());
        *request.uri_mut() =
            uri.build().map_err(|error| GetError::Url(target.to_string(), error.to_string()))?;
        *request.method_mut() = match (&self.method, self.body) {
            (Some(method), _) => method.clone(),
            (None, 0) => Method::GET,
            (None, _) => Method::POST,
        };
        *request.headers_mut() = parse_headers(&self.headers)?;
        if self.body > 0 {
            request.headers_mut().insert(http::header::CONTENT_LENGTH, self.body.into());
        }
        Ok(request.into_parts().0)
    }
}
