//! What is compared: a server, a kind of handshake, a key exchange, and whether a Retry comes first.

use bench::course::Interval;
use bench::stats::{Ratio, Summary};
use report::model::Cell;
use serde::Serialize;

use crate::contestants::{Contestant, Http, Installed};
use crate::courses::Rounds;

/// The hybrid of X25519 and ML-KEM-768, as IANA names it. Source: draft-ietf-tls-ecdhe-mlkem.
pub(super) const HYBRID: &str = "X25519MLKEM768";

/// Kinds of handshakes. Source: RFC 8446 §2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    /// With the server's certificate.
    Full,
    /// By a ticket.
    Resumed,
    /// By a ticket, with the request in the first flight.
    Early,
}

impl Kind {
    pub(super) const ALL: [Kind; 3] = [Kind::Full, Kind::Resumed, Kind::Early];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Kind::Full => "full",
            Kind::Resumed => "resumed",
            Kind::Early => "0-RTT",
        }
    }

    /// For `tercel load`.
    pub(super) const fn flag(self) -> Option<&'static str> {
        match self {
            Kind::Full => None,
            Kind::Resumed => Some("--resume"),
            Kind::Early => Some("--early-data"),
        }
    }

    /// Its name in the report of `tercel load`.
    pub(super) const fn counter(self) -> &'static str {
        match self {
            Kind::Full => "full",
            Kind::Resumed => "resumed",
            Kind::Early => "early",
        }
    }
}

/// Key exchanges that the client offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Exchange {
    /// X25519MLKEM768 before all others.
    Hybrid,
    /// X25519 alone.
    Classic,
}

impl Exchange {
    pub(super) const ALL: [Exchange; 2] = [Exchange::Hybrid, Exchange::Classic];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Exchange::Hybrid => HYBRID,
            Exchange::Classic => "X25519",
        }
    }
}

/// When the server believes the client's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Validation {
    /// By the handshake itself.
    Handshake,
    /// By a Retry before it. Source: RFC 9000 §8.1.2.
    Retry,
}

/// What is asked of a server in one row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Scenario {
    pub(super) who: Contestant,
    pub(super) http: Http,
    pub(super) kind: Kind,
    pub(super) exchange: Exchange,
    pub(super) validation: Validation,
}

impl Scenario {
    /// The flags of the server.
    pub(super) fn server_flags(self) -> Vec<&'static str> {
        let mut flags = Vec::new();
        if self.kind == Kind::Early {
            flags.push("--early-data");
        }
        match (self.validation, self.who) {
            (Validation::Retry, Contestant::Tercel) => flags.extend(["--retry", "always"]),
            (Validation::Handshake, Contestant::Tercel) => flags.extend(["--retry", "never"]),
            (Validation::Retry, _) => flags.push("--retry"),
            (Validation::Handshake, _) => {}
        }
        flags
    }

    /// As the row is called, without the key exchange.
    pub(super) fn name(self) -> String {
        let (who, kind) = (self.who.name(), self.kind.name());
        match (self.http, self.validation) {
            (Http::Three, Validation::Handshake) => format!("{who}, {kind}"),
            (Http::Three, Validation::Retry) => format!("{who}, {kind}, after a Retry"),
            (http, _) => format!("{who}, {kind}, {} over TCP", http.name()),
        }
    }
}

/// The kinds of handshakes that a server's program has over HTTP/3.
pub(super) const fn kinds(who: Contestant) -> &'static [Kind] {
    match who {
        Contestant::Tercel | Contestant::Quinn | Contestant::Quiche | Contestant::QuicGo => &Kind::ALL,
        Contestant::S2n => &[Kind::Full],
        // nginx and Caddy are compared over TCP.
        Contestant::Nginx | Contestant::Caddy => &[],
    }
}

/// Whether a server's program sends a Retry when it is told to.
pub(super) const fn has_retry(who: Contestant) -> bool {
    matches!(who, Contestant::Tercel | Contestant::Quinn | Contestant::S2n | Contestant::QuicGo)
}

/// All rows of a server; `has_hybrid` tells whether it chooses the hybrid key exchange where it is offered.
pub(super) fn scenarios(who: Contestant, has_hybrid: bool) -> Vec<Scenario> {
    let mut all = Vec::new();
    for exchange in Exchange::ALL.into_iter().filter(|exchange| has_hybrid || *exchange == Exchange::Classic)
    {
        let row = |http, kind, validation| Scenario { who, http, kind, exchange, validation };
        all.extend(kinds(who).iter().map(|&kind| row(Http::Three, kind, Validation::Handshake)));
        if has_retry(who) {
            all.push(row(Http::Three, Kind::Full, Validation::Retry));
        }
        // What was negotiated is not told over TCP.
        if exchange == Exchange::Classic && matches!(who, Contestant::Tercel | Contestant::Nginx) {
            all.extend([Kind::Full, Kind::Resumed].map(|kind| row(Http::One, kind, Validation::Handshake)));
        }
    }
    all
}

/// One counted trial.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Trial {
    /// Handshakes a second, each with a request.
    pub(super) rate: f64,
    /// CPU time of the server for each, in microseconds.
    pub(super) server_us: f64,
    /// CPU time of the client for each, in microseconds.
    pub(super) client_us: f64,
    /// The share of handshakes that were of the kind in question.
    pub(super) of_kind: f64,
    /// What the server did meanwhile, warm-up included.
    pub(super) course: Vec<Interval>,
}

impl Trial {
    /// The shares that client and server had of their cores.
    pub(super) fn busy(&self) -> [f64; 2] {
        [self.client_us, self.server_us].map(|us| us * self.rate / 1e6)
    }
}

/// A row and its trials.
#[derive(Clone, Debug, Serialize)]
pub(super) struct HandshakeRow {
    pub(super) scenario: Scenario,
    pub(super) trials: Vec<Trial>,
    /// Why it was left out.
    pub(super) problem: Option<String>,
    #[serde(skip)]
    pub(super) server: Option<Installed>,
}

impl HandshakeRow {
    pub(super) fn new(scenario: Scenario, server: Option<Installed>) -> HandshakeRow {
        HandshakeRow { scenario, trials: Vec::new(), problem: None, server }
    }

    pub(super) fn summary(&self, figure: impl Fn(&Trial) -> f64) -> Summary {
        Summary::of(self.trials.iter().map(figure))
    }

    pub(super) fn cell(&self, digits: u8, figure: impl Fn(&Trial) -> f64) -> Cell {
        if self.trials.is_empty() { Cell::Empty } else { Cell::Trials(self.summary(figure), digits) }
    }

    /// The courses of its trials.
    pub(super) fn rounds(&self) -> Rounds<'_> {
        let name = format!("{}, {}", self.scenario.name(), self.scenario.exchange.name());
        Rounds { name, courses: self.trials.iter().map(|trial| &trial.course[..]).collect() }
    }

    /// A figure of this row over that of another.
    pub(super) fn over(&self, other: &HandshakeRow, figure: fn(&Trial) -> f64) -> Option<Ratio> {
        Ratio::by_rounds(&self.summary(figure).values, &other.summary(figure).values)
    }
}

/// The row of a scenario, if it has trials.
pub(super) fn find(rows: &[HandshakeRow], scenario: Scenario) -> Option<&HandshakeRow> {
    rows.iter().find(|row| row.scenario == scenario && !row.trials.is_empty())
}
