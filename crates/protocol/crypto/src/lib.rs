//! TLS 1.3 by rustls, packet and header protection in batches, tokens. RFC 9001, RFC 9369.
//!
//! Three groups of files, each usable alone:
//!
//! - **Protection.** [`suite`] names the AEADs and their limits, [`secret`] is the key schedule, [`packet`] seals and opens
//!   packets in place, [`header`] makes masks for a whole batch in one pass, [`keys`] puts them together.
//! - **TLS.** [`config`] says what an endpoint offers and trusts, [`session`] drives rustls and turns what it agreed on into
//!   our keys. rustls knows how to do QUIC packet protection, but one packet at a time and behind a trait object; [`key_capture`]
//!   explains how the secrets get out instead. [`resumption`] is what both ends keep between connections.
//! - **Statements about addresses.** [`retry`], [`token`] and [`reset`]: what an endpoint without connection state can seal
//!   into a datagram and recognise later.
//!
//! Nothing here reads a clock or holds a generator of random numbers of its own; rustls does both, for certificates' dates
//! and for key shares, and tickets use the same.
#![forbid(unsafe_code)]

mod choice;
pub mod config;
mod derived;
mod fault;
pub mod header;
mod hello;
mod key_capture;
pub mod keys;
pub mod level;
mod library;
mod message;
pub mod packet;
pub mod reset;
pub mod resumption;
pub mod retry;
mod secret;
pub mod session;
pub mod suite;
#[cfg(test)]
mod testing;
mod tls_error;
pub mod token;
mod undecided;
#[cfg(test)]
mod vectors;
mod voucher;
mod work;

pub use choice::prefer;
pub use config::{
    Authorities, ClientAuth, ClientTls, ConfigError, Ech, EchConfigs, Identities, Identity, KeyExchange,
    KeyLines, KeyLog, Roots, ServerTls, SharedIdentities, TlsOptions, tcp_client, tcp_server,
};
pub use header::{HeaderKey, SAMPLE_LEN};
pub use keys::{DirectionalKeys, Keys, OneRttSecrets, initial_keys};
pub use level::Level;
pub use library::Library;
pub use packet::{OpenError, PacketKey, TAG_LEN};
pub use reset::StatelessResetKey;
pub use resumption::{
    EarlyTerms, FileSessions, MemorySessions, ServerKey, SessionFileError, SessionStore, SessionTicket,
    StrikeRegister, TicketFileError, TicketKeys, TicketOptions,
};
pub use retry::RetryIntegrity;
pub use session::{EarlyStatus, KeyChange, ServerId, TlsSession};
pub use suite::{Suite, SuiteChoice};
pub use tls_error::TlsError;
pub use token::{AddressToken, TokenCheck, TokenKey};
pub use work::{HandshakeOutcome, HandshakeWork};
