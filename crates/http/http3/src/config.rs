//! What an embedder may set. Plain values with units; `build` refuses combinations that cannot work.

use crate::abuse_budgets::Rate;
use crate::fields::ExtendedConnect;
use crate::settings::Settings;
use base::time::Duration;
use qpack::Limits;

/// How an HTTP/3 connection behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The largest header or trailer section that is taken, in decoded bytes: name, value and 32 for each line
    /// (RFC 9114 §4.2.2). The peer is told. Default: 64 KiB.
    pub max_field_section_size: u64,
    /// The largest number of lines in a section. Default: 256.
    pub max_fields: usize,
    /// A head must be complete so long after its first byte. Default: 30 s on a server, no limit on a client.
    pub head_timeout: Option<Duration>,
    /// In so long at least `min_body_bytes` of content must arrive, unless the application is what holds it up. Default: 60 s
    /// on a server, no limit on a client.
    pub body_timeout: Option<Duration>,
    /// In bytes. Default: 1,024.
    pub min_body_bytes: u64,
    /// Unknown and empty frames, streams of unknown type, and other things without effect that the peer may send.
    /// Default: 10,000 at once and 330 a second, and eight for each exchange.
    pub idle_work: Rate,
    /// Requests that a client may withdraw before they are answered. Default: 1,000 at once and 200 a second, and one for
    /// each that was answered.
    pub withdrawn: Rate,
    /// Whether a server takes extended CONNECT, and says so. Default: not. Source: RFC 8441 §3, RFC 9220 §3.
    pub enable_connect_protocol: bool,
}

/// A setting that cannot work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidConfig(pub &'static str);

impl core::fmt::Display for InvalidConfig {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        out.write_str(self.0)
    }
}

impl core::error::Error for InvalidConfig {}

impl Config {
    /// For a server on the open internet.
    pub fn server() -> Config {
        Config {
            max_field_section_size: 64 * 1024,
            max_fields: 256,
            head_timeout: Some(Duration::from_secs(30)),
            body_timeout: Some(Duration::from_secs(60)),
            min_body_bytes: 1_024,
            idle_work: Rate { burst: 10_000, per_second: 330 },
            withdrawn: Rate { burst: 1_000, per_second: 200 },
            enable_connect_protocol: false,
        }
    }

    /// For a client. It waits as long as its user does.
    pub fn client() -> Config {
        Config { head_timeout: None, body_timeout: None, ..Config::server() }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// The first setting that cannot work, in words.
    pub fn build(self) -> Result<Config, InvalidConfig> {
        if !(512..=1 << 30).contains(&self.max_field_section_size) {
            return Err(InvalidConfig("max_field_section_size lies between 512 bytes and 1 GiB"));
        }
        // `http::HeaderMap` holds 24,576.
        if !(8..=20_000).contains(&self.max_fields) {
            return Err(InvalidConfig("max_fields lies between 8 and 20,000"));
        }
        if self.head_timeout.is_some_and(Duration::is_zero)
            || self.body_timeout.is_some_and(Duration::is_zero)
        {
            return Err(InvalidConfig("a timeout must not be zero"));
        }
        Ok(self)
    }

    pub(crate) fn limits(&self) -> Limits {
        Limits { max_field_section_size: self.max_field_section_size, max_lines: self.max_fields }
    }

    /// What we tell the peer.
    pub fn settings(&self) -> Settings {
        //= rfc9220/3#1
        Settings {
            max_field_section_size: self.max_field_section_size,
            enable_connect_protocol: self.enable_connect_protocol,
            ..Settings::default()
        }
    }

    pub(crate) fn extended_connect(&self) -> ExtendedConnect {
        if self.enable_connect_protocol { ExtendedConnect::Announced } else { ExtendedConnect::Unknown }
    }

    /// How much of unfinished field sections all streams of a connection may hold together, in bytes: some hundred that
    /// span two packets, or a few of the largest.
    pub(crate) fn max_buffered(&self) -> usize {
        const ENOUGH: u64 = 256 * 1024;
        usize::try_from(ENOUGH.max(4 * self.max_field_section_size)).unwrap_or(usize::MAX)
    }

    /// How often the deadlines are looked at; `None` when there are none.
    pub(crate) fn scan_interval(&self) -> Option<Duration> {
        let shortest = match (self.head_timeout, self.body_timeout) {
            (Some(head), Some(body)) => head.min(body),
            (head, body) => head.or(body)?,
        };
        Some(shortest / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_profiles_are_valid_and_nonsense_is_not() {
        assert!(Config::server().build().is_ok());
        assert!(Config::client().build().is_ok());
        assert!(Config { max_fields: 30_000, ..Config::server() }.build().is_err());
        assert!(Config { max_field_section_size: 0, ..Config::server() }.build().is_err());
        assert!(Config { head_timeout: Some(Duration::ZERO), ..Config::server() }.build().is_err());
    }
}
