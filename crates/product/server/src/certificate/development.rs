//! The certificate that a server makes for itself when it is given none: for this machine's own names, short-lived, kept
//! from start to start.
//!
//! One file holds key and certificate (mode 0600), replaced by rename, so that there is never a key without its
//! certificate; a second file holds the certificate alone, for clients. Chromium accepts a certificate by hash only if it
//! is ECDSA P-256 and valid for at most 14 days (WebTransport §6.2, serverCertificateHashes), so it is renewed often; the
//! key stays, and with it the SPKI hash that a browser was started with.

use super::der;
use super::error::{CertificateError, Role};
use super::identity::Identity;
use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
};
use sha2::{Digest as _, Sha256};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
const PAIR: &str = "development.pem";
const CERTIFICATE: &str = "development-certificate.pem";

const HOUR_S: u64 = 3_600;
const DAY_S: u64 = 24 * HOUR_S;
/// How long before now a certificate begins: clocks differ.
const BACKDATE_S: u64 = HOUR_S;
/// From begin to end: below the 14 days that Chromium allows.
const VALIDITY_S: u64 = 13 * DAY_S;
/// A certificate with less than this left is renewed.
const RENEW_BEFORE_S: u64 = 4 * DAY_S;

/// A development certificate.
#[derive(Clone, Debug)]
pub struct Development {
    /// Chain and key for TLS.
    pub identity: Identity,
    /// Where clients find the certificate alone, in PEM.
    pub certificate_path: PathBuf,
    /// SHA-256 of the public key (SubjectPublicKeyInfo) in base64, as Chromium's flag wants it.
    pub spki_hash: String,
    /// SHA-256 of the certificate in hexadecimal, as WebTransport's serverCertificateHashes wants it (as bytes).
    pub certificate_hash: String,
    /// When it ends, in seconds since 1970.
    pub not_after_s: u64,
}

/// The folder in which tercel keeps its data: `$XDG_DATA_HOME/tercel`, or `~/.local/share/tercel`. `env` looks up an
/// environment variable. Relative paths do not count (XDG Base Directory Specification).
pub fn default_folder(env: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, CertificateError> {
    let absolute = |name| env(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")))
        .map(|data| data.join("tercel"))
        .ok_or(CertificateError::NoFolder)
}

impl Development {
    /// The certificate kept in `folder`, made or renewed if need be. `now_s`: seconds since 1970.
    pub fn load_or_make(folder: &Path, now_s: u64) -> Result<Development, CertificateError> {
        let store = |error| CertificateError::Store(folder.to_owned(), error);
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(store)?;
        // Two servers that start together must agree on one certificate. The lock ends with the descriptor.
        let lock = File::open(folder).map_err(store)?;
        rustix::fs::flock(&lock, rustix::fs::FlockOperation::LockExclusive)
            .map_err(|errno| store(errno.into()))?;
        let kept = kept_in(folder);
        if let Some(identity) = kept.as_ref().filter(|identity| is_good(identity, now_s)) {
            let found = Development::of(identity.clone(), folder)?;
            if !found.certificate_path.exists() {
                write(&found.certificate_path, &pem(&found.identity), 0o644).map_err(store)?;
            }
            return Ok(found);
        }
        // The old key if there is one; what cannot be read is replaced.
        let kept_key = kept.and_then(|identity| KeyPair::try_from(&identity.key).ok());
        let key = match kept_key.filter(|key| key.is_compatible(&rcgen::PKCS_ECDSA_P256_SHA256)) {
            Some(key) => key,
            None => {
                KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(CertificateError::Generate)?
            }
        };
        let certificate = make(&key, now_s).map_err(CertificateError::Generate)?.pem();
        let pair = key.serialize_pem() + &certificate;
        write(&folder.join(PAIR), &pair, 0o600).map_err(store)?;
        write(&folder.join(CERTIFICATE), &certificate, 0o644).map_err(store)?;
        let identity = kept_in(folder).ok_or_else(|| store(io::Error::other("it cannot be read back")))?;
        Development::of(identity, folder)
    }

    /// When to ask again, in seconds since 1970: a server that runs for weeks outlives its certificate.
    pub fn renew_at_s(&self) -> u64 {
        self.not_after_s.saturating_sub(RENEW_BEFORE_S)
    }

    /// What to do with it, for people: a few lines, for a server at `address`.
    pub fn how_to_use(&self, address: SocketAddr) -> String {
        let path = self.certificate_path.display();
        let Reached { by_name, detour, by_address } = Reached::at(address);
        format!(
            "Development certificate for {} until {}.\n  \
             tercel    tercel get --cacert {path} {detour}https://{by_name}/\n  \
             curl      curl --http3 --cacert {path} {detour}https://{by_name}/\n  \
             Chromium  chromium --user-data-dir=$(mktemp -d) {} https://{by_address}/\n  \
             SPKI SHA-256 {}, certificate SHA-256 {}\n",
            NAMES.join(", "),
            String::from_utf8_lossy(&crate::date::http_date(self.not_after_s)),
            self.chromium_flags(&by_address),
            self.spki_hash,
            self.certificate_hash,
        )
    }

    /// The flags that make Chromium accept this certificate and use HTTP/3 at once, for `authority`: a host and a port.
    pub fn chromium_flags(&self, authority: &str) -> String {
        let hash = &self.spki_hash;
        format!("--origin-to-force-quic-on={authority} --ignore-certificate-errors-spki-list={hash}")
    }

    fn of(identity: Identity, folder: &Path) -> Result<Development, CertificateError> {
        let damaged = || CertificateError::Damaged(folder.join(PAIR));
        let first = identity.chain.first().ok_or_else(damaged)?;
        let facts = der::facts(first).ok_or_else(damaged)?;
        Ok(Development {
            certificate_path: folder.join(CERTIFICATE),
            spki_hash: base64(&Sha256::digest(facts.spki)),
            certificate_hash: hexadecimal(&Sha256::digest(first)),
            not_after_s: facts.not_after_s,
            identity,
        })
    }
}

/// How clients on this machine reach a server.
struct Reached {
    /// Host and port that the certificate is for.
    by_name: String,
    /// The flag, with a space behind it, by which a client reaches `by_name` where that is another address.
    detour: String,
    /// Host and port of an address that is listened on. The certificate need not be for it.
    by_address: String,
}

impl Reached {
    fn at(address: SocketAddr) -> Reached {
        let port = address.port();
        let at = |host: &str| format!("{host}:{port}");
        // A wildcard of IPv6 takes IPv4 as well, so `localhost` is right whichever it means.
        let host = match address.ip() {
            IpAddr::V6(ip) if ip.is_unspecified() => "localhost".to_owned(),
            IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.to_string(),
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let is_certified = NAMES.contains(&host.trim_start_matches('[').trim_end_matches(']'));
        match is_certified {
            true => Reached { by_name: at(&host), detour: String::new(), by_address: at(&host) },
            false => Reached {
                by_name: at("localhost"),
                detour: format!("--resolve localhost:{port}:{host} "),
                by_address: at(&host),
            },
        }
    }
}

/// What the folder holds, as far as it is of use.
fn kept_in(folder: &Path) -> Option<Identity> {
    let path = folder.join(PAIR);
    let found = match Identity::load(&path, &path) {
        Ok(identity) => Some(identity),
        Err(CertificateError::Unreadable(Role::Certificate, ..)) => None,
        // Cut short, or a pair that does not fit: made anew.
        Err(_) => None,
    };
    // It may have been copied with looser permissions. If they cannot be mended, reading works all the same.
    if found.is_some() {
        let _ = std::fs::set_permissions(&path, Permissions::from_mode(0o600));
    }
    found
}

fn is_good(identity: &Identity, now_s: u64) -> bool {
    let facts = identity.chain.first().and_then(|first| der::facts(first));
    facts.is_some_and(|facts| {
        facts.not_before_s <= now_s && now_s.saturating_add(RENEW_BEFORE_S) < facts.not_after_s
    })
}

fn make(key: &KeyPair, now_s: u64) -> Result<rcgen::Certificate, rcgen::Error> {
    let mut params = CertificateParams::new(NAMES.map(str::to_string))?;
    let begin = now_s.saturating_sub(BACKDATE_S);
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + Duration::from_secs(begin);
    params.not_after = epoch + Duration::from_secs(begin + VALIDITY_S);
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, "tercel development");
    params.distinguished_name = name;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.self_signed(key)
}

/// Replaces the file `path` whole: a reader sees the old content or the new.
///
/// # Errors
/// The system refuses. The old content stays.
pub fn write(path: &Path, content: &str, mode: u32) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", std::process::id()));
    let result = (|| {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&new)?;
        // The file may be a left-over with another mode.
        file.set_permissions(Permissions::from_mode(mode))?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&new, path)
    })();
    if result.is_err() {
        // Best effort: the first error is the one to tell.
        let _ = std::fs::remove_file(&new);
    }
    result
}

fn pem(identity: &Identity) -> String {
    let der = identity.chain.first().map_or(&[][..], |first| first);
    let text = base64(der);
    let mut pem = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in text.as_bytes().chunks(64) {
        pem.push_str(&String::from_utf8_lossy(line));
        pem.push('\n');
    }
    pem + "-----END CERTIFICATE-----\n"
}

/// RFC 4648 §4.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |index: usize| u32::from(group.get(index).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let digit = (bits >> (18 - 6 * index)) as usize & 63;
            text.push(if index <= group.len() { char::from(DIGITS[digit]) } else { '=' });
        }
    }
    text
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_as_in_the_rfc() {
        let table = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in table {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
        assert_eq!(base64(&[0xff, 0xef, 0xbe]), "/+++");
        assert_eq!(hexadecimal(&[0, 0xab]), "00ab");
    }
}
