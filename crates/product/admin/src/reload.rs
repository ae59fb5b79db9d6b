//! A reload that a program of the operator asks for: who may ask, and the outcome.
//!
//! Programs of this machine may, at an address that no other machine reaches: a port of a loopback address is open to each user of the machine,
//! a socket in the file system to its owner and group. A page in a browser of this machine reaches a port, too, and may not. A browser says
//! that a request is a page's by `Origin` and `Sec-Fetch-Site`; where the page has a name of its own lead to the port (DNS rebinding), that
//! name is in `Host`.

use http::StatusCode;
use http::header::{HOST, HeaderMap, ORIGIN};
use http::uri::Authority;
use serde_json::{Value, json};
use std::net::IpAddr;

/// Where a reload is asked for, by POST.
pub(crate) const PATH: &str = "/reload";

const OF_OTHERS: &str = "other machines reach this admin address, so it takes no reload: let the key \"admin\" be a port alone \
    or unix:PATH, or send the server SIGHUP: kill -HUP PID\n";
const OF_A_PAGE: &str = "pages of browsers may ask for no reload: use tercel reload, or curl -X POST\n";

/// Who reaches an admin address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    ThisMachine,
    Others,
}

/// Why a request with these fields may not have the server read its files again, if that is so.
pub(crate) fn refusal(reach: Reach, fields: &HeaderMap) -> Option<&'static str> {
    if reach == Reach::Others {
        return Some(OF_OTHERS);
    }
    let is_named = |host: &str| {
        let of = host.trim_matches(['[', ']']);
        !host.eq_ignore_ascii_case("localhost") && of.parse::<IpAddr>().is_err()
    };
    // What has no Host is no browser.
    let has_name = fields.get_all(HOST).iter().any(|value| {
        let host = value.to_str().ok().and_then(|host| host.parse::<Authority>().ok());
        host.is_none_or(|host| is_named(host.host()))
    });
    let is_of_page = fields.contains_key(ORIGIN) || fields.contains_key("sec-fetch-site");
    (has_name || is_of_page).then_some(OF_A_PAGE)
}

/// How a reload went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reload {
    /// New requests and handshakes go by what the files say now.
    Done {
        /// The keys that have changed since the start and take effect with a restart only.
        with_restart: Vec<String>,
    },
    /// Something is wrong, as it is said here, and the server goes on by what it had.
    Fault(String),
}

impl Reload {
    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Reload::Done { .. } => StatusCode::OK,
            Reload::Fault(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    /// For programs: `reloaded`, and `with_restart` or `fault`.
    pub fn to_json(&self) -> Value {
        match self {
            Reload::Done { with_restart } => json!({ "reloaded": true, "with_restart": with_restart }),
            Reload::Fault(what) => json!({ "reloaded": false, "fault": what }),
        }
    }

    /// What [`Reload::to_json`] has made; `None` for anything else.
    pub(crate) fn from_json(json: &Value) -> Option<Reload> {
        if !json["reloaded"].as_bool()? {
            return json["fault"].as_str().map(|what| Reload::Fault(what.to_owned()));
        }
        let keys = json["with_restart"].as_array()?.iter();
        let with_restart = keys.map(|key| key.as_str().map(ToOwned::to_owned)).collect::<Option<_>>()?;
        Some(Reload::Done { with_restart })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a page that an operator visits, or another machine, could have the server take a file that is half written.
    #[test]
    fn programs_of_this_machine_may_ask_and_pages_may_not() {
        let refused = |reach, fields: &[(&'static str, &str)]| {
            let fields = fields.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
            refusal(reach, &fields.collect())
        };
        for host in ["localhost", "LOCALHOST:9433", "127.0.0.1:9433", "[::1]:9433", "[::1]"] {
            assert_eq!(refused(Reach::ThisMachine, &[("host", host)]), None, "{host}");
            assert_eq!(refused(Reach::Others, &[("host", host)]), Some(OF_OTHERS), "{host}");
            for field in [("origin", "http://a.org"), ("origin", "null"), ("sec-fetch-site", "same-origin")] {
                let fields = [("host", host), field];
                assert_eq!(refused(Reach::ThisMachine, &fields), Some(OF_A_PAGE), "{fields:?}");
            }
        }
        assert_eq!(refused(Reach::ThisMachine, &[]), None);
        for host in ["a.org", "a.org:9433", "localhost.a.org:9433", "127.0.0.1.a.org", "", "a b"] {
            assert_eq!(refused(Reach::ThisMachine, &[("host", host)]), Some(OF_A_PAGE), "{host}");
        }
    }

    #[test]
    fn the_command_reads_what_the_server_writes() {
        let all = Reload::Done { with_restart: vec!["workers".to_owned()] };
        for outcome in
            [Reload::Done { with_restart: Vec::new() }, all, Reload::Fault("t:1:1: \"x\"".to_owned())]
        {
            assert_eq!(Reload::from_json(&outcome.to_json()), Some(outcome));
        }
        for other in [json!({}), json!({ "reloaded": 1 }), json!({ "reloaded": true }), json!("x")] {
            assert_eq!(Reload::from_json(&other), None, "{other}");
        }
    }
}
