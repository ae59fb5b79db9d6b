//! TLS for scenarios: certificates of which every byte is the same in every process, so that a seed gives the same packets
//! everywhere. The key is fixed, and Ed25519 signs without chance. What gives a certificate its weight does not compress,
//! because the two ends compress certificates (RFC 8879) and a chain has to be as long in a flight as the scenario says.

use base::pattern;
use crypto::{
    ClientTls, ConfigError, Identity, KeyExchange, KeyLog, MemorySessions, Roots, ServerTls, StrikeRegister,
    SuiteChoice, TicketKeys, TicketOptions, TlsOptions,
};
use rcgen::{CertificateParams, CustomExtension, KeyPair, SerialNumber};
use std::sync::{Arc, OnceLock};

/// What a client that comes back brings along.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Returning {
    /// Nothing: each handshake is a full one.
    #[default]
    Nothing,
    /// A ticket.
    Ticket,
    /// A ticket and early data, which the server takes.
    EarlyData,
    /// A ticket and early data, which the server promised to take and does not.
    RefusedEarlyData,
}

/// The window for the age of tickets, in seconds. They have their age by the clock on the wall, which does not decide here.
const WINDOW_S: u32 = 3_600;

/// What the two ends speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsChoice {
    /// The cipher suites of both ends.
    pub suites: SuiteChoice,
    /// The key exchange of both ends.
    pub key_exchange: KeyExchange,
    /// Certificates in the server's chain, of about 1,000 bytes each, at most [`LONGEST_CHAIN`]; the
    /// first counts, the others are weight.
    pub chain: usize,
    /// The application protocol.
    pub alpn: &'static [u8],
    /// What the client keeps from one connection to the next.
    pub returning: Returning,
}

impl Default for TlsChoice {
    /// Quick to compute: X25519, one certificate.
    fn default() -> Self {
        TlsChoice {
            suites: SuiteChoice::All,
            key_exchange: KeyExchange::X25519,
            chain: 1,
            alpn: b"h3",
            returning: Returning::Nothing,
        }
    }
}

/// The name that the certificate is for.
pub const SERVER_NAME: &str = "server.example";

/// Certificates in the longest chain.
pub const LONGEST_CHAIN: usize = 16;

/// Length of what gives a certificate its weight, in bytes.
const WEIGHT: usize = 700;

/// A private extension's identifier, under the enterprise number for documentation (RFC 5612).
const WEIGHT_OID: [u64; 8] = [1, 3, 6, 1, 4, 1, 32_473, 1];

/// What stands before an Ed25519 key's 32 bytes in PKCS #8 (RFC 8410, section 7).
const ED25519_PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// Certificates and the key of all of them in DER, made once.
struct Made {
    chain: Vec<Vec<u8>>,
    key: Vec<u8>,
}

fn made() -> Result<&'static Made, String> {
    static MADE: OnceLock<Result<Made, String>> = OnceLock::new();
    MADE.get_or_init(|| make().map_err(|error| error.to_string())).as_ref().map_err(Clone::clone)
}

fn make() -> Result<Made, rcgen::Error> {
    let key = [&ED25519_PKCS8, &pattern::at(0)[..32]].concat();
    let pair = KeyPair::try_from(key.as_slice())?;
    let certificate = |n: usize| {
        let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()])?;
        params.serial_number = Some(SerialNumber::from_slice(&[0x42; 8]));
        let weight = pattern::at((n * WEIGHT) as u64)[..WEIGHT].to_vec();
        params.custom_extensions = vec![CustomExtension::from_oid_content(&WEIGHT_OID, weight)];
        Ok(params.self_signed(&pair)?.der().to_vec())
    };
    let chain = (1..=LONGEST_CHAIN).map(certificate).collect::<Result<_, rcgen::Error>>()?;
    Ok(Made { chain, key })
}

/// The configurations of server and client.
///
/// # Errors
/// When the choice cannot work.
pub fn configure(choice: &TlsChoice) -> Result<(ServerTls, ClientTls), ConfigError> {
    let made = made().map_err(ConfigError::Refused)?;
    let chain = made.chain.iter().take(choice.chain.max(1)).cloned().collect();
    let identity = Identity::from_der(chain, made.key.clone())?;
    let options = TlsOptions {
        alpn: vec![choice.alpn.to_vec()],
        suites: choice.suites,
        key_exchange: choice.key_exchange,
        key_log: KeyLog::Environment,
        ..TlsOptions::default()
    };
    let (server, client) =
        (ServerTls::new(&identity, &options)?, ClientTls::new(&Roots::Insecure, &options)?);
    if choice.returning == Returning::Nothing {
        return Ok((server, client));
    }
    let client = client.with_sessions(Arc::new(MemorySessions::default()));
    let register = match choice.returning {
        Returning::Nothing | Returning::Ticket => None,
        Returning::EarlyData => Some(StrikeRegister::new(1_000)),
        Returning::RefusedEarlyData => Some(StrikeRegister::new(0)),
    };
    let client = if register.is_some() { client.with_early_data() } else { client };
    let keys = Arc::new(TicketKeys::in_memory(TicketKeys::DEFAULT_LIFETIME_S));
    let early_data = register.map(Arc::new);
    let tickets = TicketOptions { early_data, early_window_s: WINDOW_S, ..TicketOptions::new(keys) };
    Ok((server.with_tickets(tickets), client))
}
