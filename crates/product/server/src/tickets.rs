//! What a server's session tickets are like. RFC 8446 §4.6.1.

use crypto::{TicketFileError, TicketKeys};
use std::path::PathBuf;
use std::time::Duration;

/// Most tickets for a handshake.
const MOST: usize = 8;

/// Session tickets, by which clients come back without a full handshake, over all versions of HTTP.
///
/// ```
/// use server::{Server, Tickets};
/// let tickets = Tickets::default().count(1).lifetime(std::time::Duration::from_secs(3_600));
/// let builder = Server::builder().tickets(tickets);
/// # drop(builder);
/// ```
#[derive(Clone, Debug)]
pub struct Tickets {
    count: usize,
    lifetime: Duration,
    keys: Option<PathBuf>,
}

impl Default for Tickets {
    fn default() -> Tickets {
        Tickets { count: 2, lifetime: Duration::from_secs(TicketKeys::DEFAULT_LIFETIME_S.into()), keys: None }
    }
}

impl Tickets {
    /// No tickets: each handshake is a full one, and nothing comes early.
    pub fn off() -> Tickets {
        Tickets::default().count(0)
    }

    /// Tickets that a client gets after each handshake, 8 at most; a client uses each once. 0 is none. Default: 2.
    pub fn count(mut self, each: usize) -> Tickets {
        self.count = each.min(MOST);
        self
    }

    /// How long a ticket is good for, between a minute and 7 days. Default: 12 hours. RFC 8446 §4.6.1.
    pub fn lifetime(mut self, of_each: Duration) -> Tickets {
        self.lifetime = of_each;
        self
    }

    /// The file with the keys that seal tickets, for servers that share it: a client of one resumes at another. It is made if there
    /// is none, for its owner alone, and read again every few seconds. Default: keys of this server alone.
    ///
    /// With [`EarlyData`](crate::EarlyData) a copy of a client's first packets counts once for each of these servers within ten seconds.
    /// Source: RFC 8446 §8.
    pub fn keys(mut self, path: impl Into<PathBuf>) -> Tickets {
        self.keys = Some(path.into());
        self
    }

    pub(crate) fn each(&self) -> usize {
        self.count
    }

    /// Whether the keys are in a file.
    pub(crate) fn are_shared(&self) -> bool {
        self.keys.is_some()
    }

    /// The keys: those of the file, else those that the process before has left, else fresh ones.
    ///
    /// # Errors
    /// Those of the file cannot be used.
    pub(crate) fn open(&self, inherited: Option<&[u8]>) -> Result<TicketKeys, TicketFileError> {
        let lifetime_s = self.lifetime.as_secs().try_into().unwrap_or(u32::MAX);
        match (&self.keys, inherited) {
            (Some(path), _) => TicketKeys::in_file(path, lifetime_s),
            (None, Some(inherited)) => Ok(TicketKeys::inherited(inherited, lifetime_s)),
            (None, None) => Ok(TicketKeys::in_memory(lifetime_s)),
        }
    }
}
