//! A request of our own that tells whether an upstream answers.
//!
//! Each is on a connection of its own, so that it tells of new ones, too.

use crate::address::Address;
use crate::connect::{Manner, Purpose, connect};
use crate::content::Sent;
use crate::tls::Tls;
use http::header::{HOST, HeaderValue, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri};
use server::proxy_protocol::Sender;
use std::ops::RangeInclusive;
use tokio::time::{Duration, timeout};

/// How upstreams are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What is asked for, by GET.
    pub path: PathAndQuery,
    /// The field Host; `None`: that of requests, or the upstream's own.
    pub host: Option<HeaderValue>,
    /// From the end of a check to the next.
    pub interval: Duration,
    /// How long a check may take, connection and all.
    pub timeout: Duration,
    /// The statuses of an upstream that is well.
    pub statuses: Vec<RangeInclusive<u16>>,
    /// After so many checks that succeed in a row an upstream that was down gets requests again.
    pub rises: u32,
    /// After so many checks that fail in a row an upstream gets no requests, if there are others.
    pub falls: u32,
}

impl Check {
    /// A check by requests for `path`, with what holds by default.
    pub fn new(path: PathAndQuery) -> Check {
        Check {
            path,
            host: None,
            interval: Duration::from_secs(10),
            timeout: Duration::from_secs(5),
            statuses: vec![200..=399],
            rises: 2,
            falls: 3,
        }
    }
}

/// How an upstream is checked, with all that is needed for it.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    pub(crate) check: Check,
    pub(crate) tls: Option<Tls>,
    pub(crate) host: HeaderValue,
    /// What its connections begin with, if they do.
    pub(crate) sender: Option<Sender>,
}

/// Why an upstream is not well.
const LATE: &str = "no response in time";

impl Probe {
    /// The field Host of checks of an upstream where no other one is said.
    pub(crate) fn host(address: &Address) -> HeaderValue {
        let host = match address {
            Address::Host { host, port, .. } if host.contains(':') => format!("[{host}]:{port}"),
            Address::Host { host, port, .. } => format!("{host}:{port}"),
            Address::Unix(_) => "localhost".to_owned(),
        };
        HeaderValue::from_str(&host).unwrap_or(HeaderValue::from_static("localhost"))
    }

    /// Asks once. An error says why the upstream is not well.
    pub(crate) async fn ask(&self, address: &Address) -> Result<(), String> {
        let patience = self.check.timeout;
        let asked = timeout(patience, async {
            let manner = Manner { tls: self.tls.as_ref(), purpose: Purpose::Requests, sender: self.sender };
            let connected = connect(address, manner, patience).await;
            let mut connection = connected.map_err(|failure| failure.to_string())?;
            let (content, progress) = Sent::empty();
            let mut request = Request::new(content);
            *request.uri_mut() = Uri::from(self.check.path.clone());
            request.headers_mut().insert(HOST, self.host.clone());
            request.headers_mut().insert(USER_AGENT, HeaderValue::from_static("tercel"));
            match connection.send(&mut Some(request), (&progress, patience)).await {
                Some(Ok(response)) => self.judge(response.status()),
                Some(Err(refused)) => Err(format!("no response: {}", refused.error)),
                None => Err(LATE.to_owned()),
            }
        });
        asked.await.unwrap_or_else(|_| Err(LATE.to_owned()))
    }

    fn judge(&self, status: StatusCode) -> Result<(), String> {
        let is_good = self.check.statuses.iter().any(|range| range.contains(&status.as_u16()));
        if is_good { Ok(()) } else { Err(format!("the status {status}")) }
    }
}
