//! TLS for scenarios: one certificate for the whole process, of which every part that a handshake carries has a constant
//! length. Ed25519, because an ECDSA signature's length depends on its value; a fixed serial number for the same reason.

use crypto::{
    ClientTls, ConfigError, Identity, KeyExchange, KeyLog, MemorySessions, Roots, ServerTls, StrikeRegister,
    SuiteChoice, TicketKeys, TicketOptions, TlsOptions,
};
use rcgen::{CertificateParams, KeyPair, SerialNumber};
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
    /// Certificates in the server's chain, of about 1,000 bytes each; the first counts, the others are weight.
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

/// A certificate and its key in DER, made once.
struct Made {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

fn made() -> Result<&'static Made, String> {
    static MADE: OnceLock<Result<Made, String>> = OnceLock::new();
    MADE.get_or_init(|| make().map_err(|error| error.to_string())).as_ref().map_err(Clone::clone)
}

fn make() -> Result<Made, rcgen::Error> {
    // Names that no client asks for, so that the certificate is as long as many are.
    let weight = (0..10).map(|n| format!("{n}.{}.example", "x".repeat(60)));
    let names: Vec<String> = std::iter::once(SERVER_NAME.to_owned()).chain(weight).collect();
    let mut params = CertificateParams::new(names)?;
    params.serial_number = Some(SerialNumber::from_slice(&[0x42; 8]));
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
    let certificate = params.self_signed(&key)?;
    Ok(Made { certificate: certificate.der().to_vec(), key: key.serialize_der() })
}

/// The configurations of server and client.
///
/// # Errors
/// When the choice cannot work.
pub fn configure(choice: &TlsChoice) -> Result<(ServerTls, ClientTls), ConfigError> {
    let made = made().map_err(ConfigError::Refused)?;
    let chain = vec![made.certificate.clone(); choice.chain.max(1)];
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
