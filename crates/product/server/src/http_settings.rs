//! What a server says and keeps of HTTP, whatever is served.

use crate::http3::HeadCache;
use crate::versions::Versions;
use std::time::Duration;

/// Whether responses over HTTP/1.1 and 2 announce HTTP/3. Source: RFC 7838 §3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AltSvc {
    /// Clients may remember it for so long, in whole seconds.
    On {
        /// `ma`, the default is a day.
        max_age: Duration,
    },
    /// It is not announced.
    Off,
}

impl Default for AltSvc {
    fn default() -> AltSvc {
        AltSvc::On { max_age: Duration::from_secs(86_400) }
    }
}

/// What a server says and keeps of HTTP.
#[derive(Debug, Default)]
pub(crate) struct HttpSettings {
    pub(crate) heads: HeadCache,
    pub(crate) alt_svc: AltSvc,
    /// Whether extended CONNECT is announced.
    pub(crate) extended_connect: bool,
}

impl HttpSettings {
    /// For how long HTTP/3 is announced, if it is.
    pub(crate) fn announcement(&self, versions: Versions) -> Option<Duration> {
        match self.alt_svc {
            AltSvc::On { max_age } if versions.contains(Versions::HTTP3) => Some(max_age),
            AltSvc::On { .. } | AltSvc::Off => None,
        }
    }
}
