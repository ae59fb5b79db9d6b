//! Which requests a route answers: how many of a client, with which certificate, with which password.
//!
//! ```text
//! request ──▶ limit.rs: 429 ──▶ client.rs: 403, 421 ──▶ basic.rs: 401, 503 ──▶ another server ──▶ the route's action
//! ```
//!
//! In this order, since a look at a table costs less than a password, and so that passwords cannot be tried faster than the limit says.
//! The rules belong to the route that answers, and not to the handshake: whichever name a connection was opened for, a request for a
//! site is judged by the rules of that site.

mod basic;
mod client;
mod limit;
mod password;

use crate::connection_info::ConnectionView;
use crate::readers::ResultWaker;
use crate::request::{Head, Name};
use crate::response::Value;
use base::time::Instant;
pub use basic::{BasicAuth, BasicAuthError};
pub use client::{ClientRule, Fingerprint};
use http::HeaderMap;
use http3::HeadBuffer;
pub use limit::{LimitKey, RateLimit};
pub use password::{PasswordHash, PasswordHashError};
use std::sync::Arc;
use std::task::Poll;

/// The rules of a route.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// How many requests are answered.
    pub limit: Option<Arc<RateLimit>>,
    /// Which certificates of clients.
    pub client: Option<Arc<ClientRule>>,
    /// Which users.
    pub basic: Option<Arc<BasicAuth>>,
}

/// How far the judgement of a request has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stage {
    #[default]
    Arrived,
    /// It was counted by the limit.
    Counted,
}

/// A request that is judged.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) head: &'a Head,
    /// All of its fields, if they are kept as a map.
    pub(crate) map: Option<&'a HeaderMap>,
    /// All of it, if that was kept otherwise.
    pub(crate) whole: &'a HeadBuffer,
    /// Its host, without the port and in lower case.
    pub(crate) host: &'a [u8],
    pub(crate) connection: ConnectionView<'a>,
    pub(crate) now: Instant,
}

/// Why a request is not answered by its route: a status, what is wrong, and a field that says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) what: &'static str,
    pub(crate) field: Option<(&'static str, Value)>,
}

impl Access {
    /// Whether nothing is asked of a request.
    pub fn is_empty(&self) -> bool {
        self.limit.is_none() && !self.knows_clients()
    }

    /// Whether all fields of requests must be kept.
    pub(crate) fn reads_fields(&self) -> bool {
        self.limit.as_ref().is_some_and(|limit| limit.reads_fields())
    }

    /// Whether only known clients are answered.
    pub fn knows_clients(&self) -> bool {
        self.client.is_some() || self.basic.is_some()
    }

    /// Judges a request, and keeps in `stage` how far that has come.
    pub(crate) fn poll(
        &self,
        asked: Asked<'_>,
        stage: &mut Stage,
        wake_target: ResultWaker<'_>,
    ) -> Poll<Result<(), Refusal>> {
        if *stage == Stage::Arrived {
            if let Some(limit) = &self.limit
                && let Err(refusal) = limit.count(&asked)
            {
                return Poll::Ready(Err(refusal));
            }
            *stage = Stage::Counted;
        }
        if let Some(client) = &self.client
            && let Err(refusal) = client.judge(&asked)
        {
            return Poll::Ready(Err(refusal));
        }
        match &self.basic {
            Some(basic) => basic.poll(asked.head.value(Name::Authorization), wake_target),
            None => Poll::Ready(Ok(())),
        }
    }
}
