//! Certificates and handshakes in memory, for the tests of this crate.

use crate::config::{ClientTls, ConfigError, Identity, Roots, ServerTls, TlsOptions};
use crate::keys::{Keys, OneRttSecrets};
use crate::level::Level;
use crate::resumption::EarlyTerms;
use crate::session::{KeyChange, ServerId, TlsSession};
use crate::tls_error::TlsError;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use std::sync::atomic::{AtomicU32, Ordering};
use wire::Version;

/// A certificate authority and the certificate it issued for `localhost` and 127.0.0.1.
pub(crate) struct Authority {
    pub(crate) ca_pem: String,
    pub(crate) certificate_pem: String,
    pub(crate) key_pem: String,
}

impl Authority {
    pub(crate) fn new() -> Authority {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        Authority::issuing(CertificateParams::new(names).unwrap())
    }

    pub(crate) fn issuing(params: CertificateParams) -> Authority {
        let mut ca = CertificateParams::new(vec![]).unwrap();
        // A name of its own, or a chain of another authority would be tried and fail for its signature only.
        static AUTHORITIES: AtomicU32 = AtomicU32::new(0);
        let number = AUTHORITIES.fetch_add(1, Ordering::Relaxed);
        ca.distinguished_name.push(DnType::CommonName, format!("authority {number}"));
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = CertifiedIssuer::self_signed(ca, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &ca).unwrap();
        Authority { ca_pem: ca.pem(), certificate_pem: certificate.pem(), key_pem: key.serialize_pem() }
    }

    pub(crate) fn identity(&self) -> Result<Identity, ConfigError> {
        Identity::from_pem(self.certificate_pem.as_bytes(), self.key_pem.as_bytes())
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots::Pem(self.ca_pem.clone().into_bytes())
    }
}

/// One end of a handshake: where TLS writes now, and the keys it brought.
pub(crate) struct End {
    pub(crate) tls: TlsSession,
    pub(crate) level: Level,
    pub(crate) handshake: Option<Keys>,
    pub(crate) one_rtt: Option<(Keys, OneRttSecrets)>,
}

impl End {
    pub(crate) fn new(tls: TlsSession) -> End {
        End { tls, level: Level::Initial, handshake: None, one_rtt: None }
    }

    /// All that TLS has to say, by level.
    pub(crate) fn take_output(&mut self) -> Vec<(Level, Vec<u8>)> {
        let mut output = Vec::new();
        loop {
            let mut bytes = Vec::new();
            let change = self.tls.write(&mut bytes);
            if !bytes.is_empty() {
                output.push((self.level, bytes));
            }
            match change {
                Some(KeyChange::Handshake(keys)) => {
                    self.handshake = Some(*keys);
                    self.level = Level::Handshake;
                }
                Some(KeyChange::OneRtt(secrets)) => {
                    let keys = secrets.keys();
                    self.one_rtt = Some((keys, *secrets));
                    self.level = Level::OneRtt;
                }
                None => return output,
            }
        }
    }
}

/// A client and a server that have not spoken yet.
pub(crate) struct Pair {
    pub(crate) client: End,
    pub(crate) server: End,
}

impl Pair {
    pub(crate) fn new(version: Version, client: &ClientTls, server: &ServerTls) -> Pair {
        Pair::named(version, client, server, "localhost")
    }

    pub(crate) fn named(version: Version, client: &ClientTls, server: &ServerTls, name: &str) -> Pair {
        Pair {
            client: End::new(
                TlsSession::client(client, version, &ServerId { name, port: 443 }, b"client parameters")
                    .unwrap(),
            ),
            server: End::new(
                TlsSession::server(server, version, b"server parameters", EarlyTerms::default()).unwrap(),
            ),
        }
    }

    /// Carries bytes to and fro, `piece` at a time, until both are silent. The error is that of the end that failed.
    pub(crate) fn run(&mut self, piece: usize) -> Result<(), TlsError> {
        loop {
            let flights = (self.client.take_output(), self.server.take_output());
            if flights.0.is_empty() && flights.1.is_empty() {
                return Ok(());
            }
            for (flight, end) in [(flights.0, &mut self.server), (flights.1, &mut self.client)] {
                for (level, bytes) in flight {
                    for piece in bytes.chunks(piece) {
                        end.tls.read(level, piece)?;
                    }
                }
            }
        }
    }
}

/// A pair with the same options at both ends and a certificate that the client trusts.
pub(crate) fn pair(version: Version, options: &TlsOptions) -> Pair {
    let authority = Authority::new();
    let client = ClientTls::new(&authority.roots(), options).unwrap();
    let server = ServerTls::new(&authority.identity().unwrap(), options).unwrap();
    Pair::new(version, &client, &server)
}
