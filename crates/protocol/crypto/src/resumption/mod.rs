//! Resumption and early data: what each end keeps between two connections. RFC 8446 §2.2, §2.3, §4.6.1, §8; RFC 9001 §4.5, §4.6.
//!
//! | file | holds |
//! |---|---|
//! | ticket_keys.rs, key_set.rs, key_file.rs | a server's keys for tickets, how they rotate, and the file that servers share |
//! | issued.rs | the tickets of one connection of a server, and whether it takes early data |
//! | strikes.rs | which tickets have brought early data lately |
//! | sessions.rs, session_file.rs | what a client keeps of servers, in memory and in a file |
//! | offered.rs | the tickets of one connection of a client |
//! | written.rs, restore.rs | a client's ticket in bytes, and how it becomes a session of rustls again |
//! | secret_file.rs | files of secrets: text with a digest at its end, replaced as a whole |
//!
//! A server keeps nothing of a client: a ticket is its session, sealed. rustls seals tickets itself but takes no early data with
//! such tickets, because it cannot know whether one is used twice; it takes early data with a store of sessions only. So a
//! connection of a server that takes tickets has a store of its own, which seals what rustls stores and opens what it looks up
//! (issued.rs). docs/decisions/012 has the reasons.

mod issued;
mod key_file;
mod key_set;
mod offered;
mod restore;
mod secret_file;
mod session_file;
mod sessions;
mod strikes;
#[cfg(test)]
mod tests;
mod ticket_keys;
mod written;

pub use issued::{EarlyTerms, TicketOptions};
pub(crate) use issued::{IssuedTickets, SealedForTcp};
pub use key_file::TicketFileError;
pub(crate) use offered::{Client, OfferedTickets};
pub use session_file::{FileSessions, SessionFileError};
pub use sessions::{MemorySessions, ServerKey, SessionStore, SessionTicket};
pub use strikes::StrikeRegister;
pub use ticket_keys::TicketKeys;
