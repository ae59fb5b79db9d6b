//! How a download fails: one line that says what went wrong and what to do, and an exit code.
//!
//! The codes are curl's wherever curl has one, so that scripts and people know them already.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Every exit code of `tercel get` and its meaning: the table of the manual.
pub const EXIT_CODES: &[(u8, &str)] = &[
    (0, "everything was downloaded"),
    (2, "the command line is wrong"),
    (3, "a URL is malformed"),
    (6, "a host name could not be resolved"),
    (7, "nothing answers at the address: refused or unreachable"),
    (18, "the body was shorter than announced"),
    (22, "the server answered with an HTTP status of 400 or more"),
    (23, "the output could not be written"),
    (28, "the server was silent for too long"),
    (33, "the server sent another range than was asked for, or the file changed meanwhile"),
    (35, "the TLS handshake failed"),
    (47, "too many redirects"),
    (56, "the connection broke"),
    (60, "the server's certificate is not trusted"),
    (77, "the file of --cacert could not be used"),
    (90, "the body is not what --verify-pattern expects"),
    (95, "the server broke the rules of HTTP"),
    (96, "the server broke the rules of QUIC"),
    (130, "interrupted; what was received is kept"),
];

/// What the server was silent about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Silence {
    /// It never answered at all.
    Connecting,
    /// It stopped in the middle.
    Transferring,
}

/// Why a download failed.
#[derive(Debug)]
pub enum GetError {
    /// The command line asks for something impossible. The text says what.
    Usage(String),
    /// A URL, and what is wrong with it.
    Url(String, String),
    /// A host name, and the resolver's words.
    Resolve(String, String),
    /// The kernel or an ICMP message says that no host is there.
    Refused(SocketAddr),
    /// Nothing answers at any address. The text says what was tried.
    NoConnection(String),
    /// There is no route, or a firewall forbids it.
    Unreachable(SocketAddr, io::Error),
    /// The body ended early (bytes expected and received).
    Short(u64, u64),
    /// The body went on after its announced end (bytes).
    Long(u64),
    /// A status of 400 or more.
    Status(u16),
    /// An output that cannot be written.
    Write(PathBuf, io::Error),
    /// Nothing was heard for this many seconds.
    Timeout(Silence, u64),
    /// Nothing was heard for too long. The text says for how long.
    Silent(Silence, String),
    /// A range that was not asked for, in the server's words.
    Range(String),
    /// The file changed between two requests of one download.
    Changed,
    /// A TLS alert other than one about certificates.
    Tls(String),
    /// This many redirects were followed.
    Redirects(u32),
    /// The peer closed, or the network did, for this reason.
    Broken(String),
    /// A host whose certificate is not trusted, and why, and what to do.
    Certificate(String, String),
    /// A file of `--cacert`, and what is wrong with it.
    Roots(PathBuf, String),
    /// The first byte that differs from the generated pattern.
    Corrupt(u64),
    /// Broken HTTP: what the server did.
    Http(String),
    /// Broken QUIC: what the server did.
    Quic(String),
    /// Ctrl-C. Where the rest can be fetched from, if it is kept.
    Interrupted(Option<PathBuf>),
}

impl GetError {
    /// The process's exit code; see [`EXIT_CODES`].
    pub fn exit_code(&self) -> u8 {
        match self {
            GetError::Usage(_) => 2,
            GetError::Url(..) => 3,
            GetError::Resolve(..) => 6,
            GetError::Refused(_) | GetError::Unreachable(..) | GetError::NoConnection(_) => 7,
            GetError::Short(..) => 18,
            GetError::Status(_) => 22,
            GetError::Write(..) => 23,
            GetError::Timeout(..) | GetError::Silent(..) => 28,
            GetError::Range(_) | GetError::Changed => 33,
            GetError::Tls(_) => 35,
            GetError::Redirects(_) => 47,
            GetError::Broken(_) => 56,
            GetError::Certificate(..) => 60,
            GetError::Roots(..) => 77,
            GetError::Corrupt(_) => 90,
            GetError::Long(_) | GetError::Http(_) => 95,
            GetError::Quic(_) => 96,
            GetError::Interrupted(_) => 130,
        }
    }
}

impl fmt::Display for GetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GetError::Usage(what) => write!(f, "{what}"),
            GetError::Url(url, what) => write!(f, "\"{}\" is no URL to download: {what}", shown(url)),
            GetError::Resolve(host, what) => {
                write!(
                    f,
                    "cannot resolve {}: {}; check the spelling and the network",
                    shown(host),
                    shown(what)
                )
            }
            GetError::Refused(address) => write!(
                f,
                "nothing listens on UDP {address}: check the port, and that the server speaks HTTP/3"
            ),
            GetError::Unreachable(address, error) => {
                write!(f, "cannot reach {address}: {}; check the network and the firewall", brief(error))
            }
            GetError::Short(expected, received) => write!(
                f,
                "the body ended after {received} of {expected} bytes: run the same command again to fetch the rest"
            ),
            GetError::Long(expected) => {
                write!(
                    f,
                    "the server sent more than the {expected} bytes that it announced: what was received is not trusted"
                )
            }
            GetError::Status(status) => {
                write!(f, "the server answered with status {status}{}", meaning(*status))
            }
            GetError::Write(path, error) => {
                write!(f, "cannot write {}: {}", path.display(), write_advice(error))
            }
            GetError::Timeout(Silence::Connecting, seconds) => write!(
                f,
                "no answer for {seconds} s: the server may be down, a firewall may drop UDP, or it has no HTTP/3"
            ),
            GetError::Timeout(Silence::Transferring, seconds) => {
                write!(f, "nothing arrived for {seconds} s: run the same command again to fetch the rest")
            }
            GetError::Range(what) => {
                write!(
                    f,
                    "the server sent another range than was asked for ({}): try without ranges",
                    shown(what)
                )
            }
            GetError::Changed => {
                write!(f, "the file changed on the server during the download: run the same command again")
            }
            other => other.write_fault(f),
        }
    }
}

impl GetError {
    /// The texts about what the server or the connection did wrong.
    fn write_fault(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            GetError::Tls(what) => write!(f, "the TLS handshake failed: {}", shown(what)),
            GetError::NoConnection(what) => {
                write!(f, "{}; check the port, the network and the firewall", shown(what))
            }
            GetError::Silent(Silence::Connecting, what) => {
                write!(f, "{}: the server may be down, or a firewall may be in between", shown(what))
            }
            GetError::Silent(Silence::Transferring, what) => {
                write!(f, "{}: run the same command again to fetch the rest", shown(what))
            }
            GetError::Redirects(count) => {
                write!(f, "gave up after {count} redirects: the server may send us in circles")
            }
            GetError::Broken(what) => {
                write!(
                    f,
                    "the connection broke: {}; run the same command again to fetch the rest",
                    shown(what)
                )
            }
            GetError::Certificate(host, what) => {
                write!(f, "the certificate of {} is not trusted: {}", shown(host), shown(what))
            }
            GetError::Roots(path, what) => {
                write!(
                    f,
                    "cannot use {} as --cacert: {what}; give a PEM file with certificates",
                    path.display()
                )
            }
            GetError::Corrupt(offset) => {
                write!(
                    f,
                    "byte {offset} is not what the generated pattern has there: what was received is wrong"
                )
            }
            GetError::Http(what) => write!(f, "the server broke the rules of HTTP: {}", shown(what)),
            GetError::Quic(what) => write!(f, "the server broke the rules of QUIC: {}", shown(what)),
            GetError::Interrupted(Some(path)) => write!(
                f,
                "interrupted; {} keeps what was received, run the same command again to fetch the rest",
                path.display()
            ),
            GetError::Interrupted(None) => write!(f, "interrupted"),
            // The others are told by `fmt`.
            _ => Ok(()),
        }
    }
}

impl std::error::Error for GetError {}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => " (bad request)",
        401 => " (a login is needed)",
        403 => " (access is forbidden)",
        404 => " (there is nothing at this URL: check its path)",
        408 | 504 => " (the server timed out: try again later)",
        410 => " (what was there is gone)",
        416 => " (the range lies beyond the end)",
        429 => " (too many requests: try again later)",
        500 => " (the server failed)",
        502 => " (the server behind the server failed)",
        503 => " (the server is overloaded: try again later)",
        _ => "",
    }
}

fn write_advice(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "its folder does not exist: create it or choose another with -o".to_string()
        }
        io::ErrorKind::PermissionDenied => "permission denied: choose another place with -o".to_string(),
        io::ErrorKind::StorageFull => {
            "the disk is full: free some space and run the same command again".to_string()
        }
        io::ErrorKind::IsADirectory => "it is a folder: add a slash to put the file into it".to_string(),
        io::ErrorKind::BrokenPipe => "the reader of the pipe is gone".to_string(),
        _ => brief(error),
    }
}

/// The system's words without "(os error 13)".
fn brief(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_string()
}

/// A text from outside: one line, no control characters, not too long. What a server says must not drive a terminal.
pub fn shown(text: &str) -> String {
    const MAX: usize = 300;
    let mut safe: String = text
        .chars()
        .take(MAX)
        .flat_map(|c| -> Box<dyn Iterator<Item = char>> {
            if c.is_control() { Box::new(c.escape_default()) } else { Box::new(std::iter::once(c)) }
        })
        .collect();
    if text.chars().nth(MAX).is_some() {
        safe.push_str("...");
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_of_each() -> Vec<GetError> {
        let address = SocketAddr::from(([192, 0, 2, 1], 443));
        let full = || io::Error::from(io::ErrorKind::StorageFull);
        vec![
            GetError::Usage("give a URL to download".into()),
            GetError::Url("x".into(), "y".into()),
            GetError::Resolve("h".into(), "no such host".into()),
            GetError::Refused(address),
            GetError::Unreachable(address, io::Error::from_raw_os_error(101)),
            GetError::Short(10, 5),
            GetError::Long(10),
            GetError::Status(404),
            GetError::Write("x".into(), full()),
            GetError::Timeout(Silence::Connecting, 10),
            GetError::Timeout(Silence::Transferring, 30),
            GetError::Range("bytes 0-1/2".into()),
            GetError::Changed,
            GetError::Tls("handshake_failure".into()),
            GetError::Redirects(10),
            GetError::Broken("reset".into()),
            GetError::Certificate("h".into(), "expired".into()),
            GetError::Roots("ca.pem".into(), "no certificate in it".into()),
            GetError::Corrupt(7),
            GetError::Http("frame out of place".into()),
            GetError::Quic("frame encoding".into()),
            GetError::Interrupted(Some("x.part".into())),
            GetError::Interrupted(None),
        ]
    }

    #[test]
    fn every_error_is_one_line_with_a_documented_code() {
        assert!(EXIT_CODES.is_sorted_by(|a, b| a.0 < b.0));
        let mut used = vec![0];
        for error in one_of_each() {
            let text = error.to_string();
            assert!(!text.contains('\n') && !text.contains("os error") && text.len() > 8, "{text}");
            assert!(EXIT_CODES.iter().any(|(code, _)| *code == error.exit_code()), "{text}");
            used.push(error.exit_code());
        }
        assert!(EXIT_CODES.iter().all(|(code, _)| used.contains(code)), "a code that nothing uses");
    }

    #[test]
    fn a_servers_words_do_not_drive_the_terminal() {
        let text = GetError::Broken(format!("\x1b[2J\r\n{}", "x".repeat(10_000))).to_string();
        assert!(!text.chars().any(char::is_control) && text.len() < 500, "{text}");
    }
}
