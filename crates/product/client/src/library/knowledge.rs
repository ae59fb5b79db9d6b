//! What earlier connections have taught about origins: where HTTP/3 is announced, and where it has failed.
//!
//! Data structure: one entry for each origin, with times at which its facts expire. Entries are bounded; without one an
//! origin is treated as unknown.

use super::alt_svc::{Alternative, Announcement};
use super::origin::Origin;
use std::collections::HashMap;
use std::time::Duration;
use tokio::time::Instant;

/// An origin whose QUIC has failed is asked over TCP alone for so long.
const QUIC_PAUSE: Duration = Duration::from_secs(300);
/// Origins that are remembered.
const MAX_ORIGINS: usize = 1_024;
/// No fact is trusted longer than this.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// Where an origin's HTTP/3 is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Http3Address {
    /// `None`: the host of the origin.
    pub(crate) host: Option<String>,
    pub(crate) port: u16,
}

impl Http3Address {
    /// Where the origin itself is.
    pub(crate) fn of(origin: &Origin) -> Http3Address {
        Http3Address { host: None, port: origin.port() }
    }
}

/// How a connection to an origin is tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ConnectOrder {
    /// The origin announces HTTP/3 at this address: QUIC first, also where a TCP connection is open.
    Announced(Http3Address),
    /// Nothing is known: QUIC first.
    QuicFirst,
    /// The origin announces nothing: TCP first.
    TcpFirst,
    /// QUIC has failed lately.
    TcpOnly,
}

#[derive(Debug, Default)]
struct Facts {
    /// With the time at which they expire.
    alternatives: Vec<(Alternative, Instant)>,
    /// Where QUIC has failed, and until when it is not tried there.
    failed: Option<(Http3Address, Instant)>,
    answered_without: bool,
}

/// All that is known.
#[derive(Debug, Default)]
pub(crate) struct Knowledge {
    origins: HashMap<Origin, Facts>,
}

impl Knowledge {
    /// How a connection is tried.
    pub(crate) fn connect_order(&self, origin: &Origin, now: Instant) -> ConnectOrder {
        let Some(facts) = self.origins.get(origin) else { return ConnectOrder::QuicFirst };
        let address = announced(facts, now);
        let tried = address.clone().unwrap_or_else(|| Http3Address::of(origin));
        if facts.failed.as_ref().is_some_and(|(failed, until)| *failed == tried && now < *until) {
            return ConnectOrder::TcpOnly;
        }
        match address {
            Some(address) => ConnectOrder::Announced(address),
            None if facts.answered_without => ConnectOrder::TcpFirst,
            None => ConnectOrder::QuicFirst,
        }
    }

    /// Where HTTP/3 is, as far as is known.
    pub(crate) fn address(&self, origin: &Origin, now: Instant) -> Http3Address {
        let known = self.origins.get(origin).and_then(|facts| announced(facts, now));
        known.unwrap_or_else(|| Http3Address::of(origin))
    }

    /// A response over TCP has announced this, or nothing. Returns what is worth to be kept for later clients, if it is news.
    pub(crate) fn on_response(
        &mut self,
        origin: &Origin,
        announced: Option<Announcement>,
        now: Instant,
    ) -> Option<Vec<Alternative>> {
        let facts = self.entry(origin, now);
        let found = match announced {
            None => {
                facts.answered_without = true;
                return None;
            }
            Some(Announcement::Clear) => Vec::new(),
            Some(Announcement::Alternatives(found)) => found,
        };
        facts.answered_without = found.is_empty();
        let is_known = facts.alternatives.len() == found.len()
            && facts.alternatives.iter().zip(&found).all(|((known, expires), new)| {
                (&known.host, known.port) == (&new.host, new.port)
                    // A longer life is news when the known one is half over.
                    && expires.saturating_duration_since(now) >= new.max_age.min(MAX_AGE) / 2
            });
        let bounded = |alternative: Alternative| {
            let max_age = alternative.max_age.min(MAX_AGE);
            (Alternative { max_age, ..alternative }, now + max_age)
        };
        facts.alternatives = found.into_iter().map(bounded).collect();
        (!is_known).then(|| facts.alternatives.iter().map(|(known, _)| known.clone()).collect())
    }

    /// An earlier client has heard this.
    pub(crate) fn on_remembered(&mut self, origin: &Origin, found: Vec<Alternative>, now: Instant) {
        let _ = self.on_response(origin, Some(Announcement::Alternatives(found)), now);
    }

    /// TCP has connected where QUIC to `place` had the head start.
    pub(crate) fn on_quic_failed(&mut self, origin: &Origin, address: Http3Address, now: Instant) {
        self.entry(origin, now).failed = Some((address, now + QUIC_PAUSE));
    }

    /// QUIC has connected.
    pub(crate) fn on_quic_connected(&mut self, origin: &Origin) {
        if let Some(facts) = self.origins.get_mut(origin) {
            facts.failed = None;
        }
    }

    fn entry(&mut self, origin: &Origin, now: Instant) -> &mut Facts {
        if self.origins.len() >= MAX_ORIGINS && !self.origins.contains_key(origin) {
            self.forget_one(now);
        }
        self.origins.entry(origin.clone()).or_default()
    }

    /// Makes room: all without a valid fact go, or else any one.
    fn forget_one(&mut self, now: Instant) {
        self.origins.retain(|_, facts| {
            facts.failed.as_ref().is_some_and(|(_, until)| now < *until)
                || facts.alternatives.iter().any(|(_, expires)| now < *expires)
        });
        if self.origins.len() >= MAX_ORIGINS
            && let Some(any) = self.origins.keys().next().cloned()
        {
            self.origins.remove(&any);
        }
    }
}

/// The first announcement that is valid.
fn announced(facts: &Facts, now: Instant) -> Option<Http3Address> {
    let (alternative, _) = facts.alternatives.iter().find(|(_, expires)| now < *expires)?;
    Some(Http3Address { host: alternative.host.clone(), port: alternative.port })
}

#[cfg(test)]
mod tests {
    use super::super::alt_svc::parse;
    use super::*;

    fn origin(number: usize) -> Origin {
        Origin::of(&format!("https://host{number}/").parse().unwrap()).unwrap()
    }

    /// Deleted, an announcement could outlive its age or its withdrawal.
    #[test]
    fn announcements_are_followed_until_they_expire_or_are_withdrawn() {
        let (mut known, origin, now) = (Knowledge::default(), origin(0), Instant::now());
        assert_eq!(known.connect_order(&origin, now), ConnectOrder::QuicFirst);
        known.on_response(&origin, None, now);
        assert_eq!(known.connect_order(&origin, now), ConnectOrder::TcpFirst);
        known.on_response(&origin, parse([r#"h3=":8443"; ma=60"#]), now);
        let address = Http3Address { host: None, port: 8_443 };
        assert_eq!(
            known.connect_order(&origin, now + Duration::from_secs(59)),
            ConnectOrder::Announced(address.clone())
        );
        // A response without the field changes nothing.
        known.on_response(&origin, None, now);
        assert_eq!(known.connect_order(&origin, now), ConnectOrder::Announced(address));
        assert_eq!(known.connect_order(&origin, now + Duration::from_secs(60)), ConnectOrder::TcpFirst);
        known.on_response(&origin, parse(["clear"]), now);
        assert_eq!(known.connect_order(&origin, now), ConnectOrder::TcpFirst);
    }

    /// Deleted, each connection to an origin behind a firewall would wait for QUIC again.
    #[test]
    fn an_origin_whose_quic_has_failed_is_asked_over_tcp_alone_for_five_minutes() {
        let (mut known, origin, now) = (Knowledge::default(), origin(0), Instant::now());
        known.on_quic_failed(&origin, Http3Address::of(&origin), now);
        assert_eq!(known.connect_order(&origin, now), ConnectOrder::TcpOnly);
        known.on_response(&origin, parse([r#"h3=":443""#]), now);
        assert_eq!(known.connect_order(&origin, now + Duration::from_secs(299)), ConnectOrder::TcpOnly);
        assert!(matches!(
            known.connect_order(&origin, now + Duration::from_secs(300)),
            ConnectOrder::Announced(_)
        ));
        known.on_response(&origin, parse([r#"h3=":8443""#]), now);
        assert!(
            matches!(known.connect_order(&origin, now), ConnectOrder::Announced(_)),
            "it has failed at another port"
        );
        known.on_quic_connected(&origin);
        known.on_response(&origin, parse([r#"h3=":443""#]), now);
        assert!(matches!(known.connect_order(&origin, now), ConnectOrder::Announced(_)));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (mut known, now) = (Knowledge::default(), Instant::now());
        for number in 0..MAX_ORIGINS + 10 {
            known.on_quic_failed(&origin(number), Http3Address::of(&origin(number)), now);
        }
        assert_eq!(known.origins.len(), MAX_ORIGINS);
        known.on_response(&origin(5_000), None, now + QUIC_PAUSE);
        assert_eq!(known.origins.len(), 1, "what has expired goes first");
    }
}
