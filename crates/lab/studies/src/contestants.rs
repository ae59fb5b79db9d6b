//! The servers that studies compare: tercel, what the distribution has, and the programs of `peers/`.
//!
//! Each serves the same files from one worker on one core, with the same certificate and, where it can be told, the same cipher
//! and the same size of packets. A study asks [`look`] who is here, and starts each anew for every trial by
//! [`Installed::start`]. A missing one is listed with the way to get it.

pub mod client;
mod config;
mod ground;
pub mod race;
mod serving;
pub mod words;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use ground::{LARGE, SMALL, TestSite};
pub use serving::Serving;

/// Versions of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Http {
    /// HTTP/1.1 over TLS.
    One,
    /// HTTP/2 over TLS.
    Two,
    /// HTTP/3 over QUIC.
    Three,
}

impl Http {
    /// All, oldest first.
    pub const ALL: [Http; 3] = [Http::One, Http::Two, Http::Three];

    /// As people say it.
    pub const fn name(self) -> &'static str {
        match self {
            Http::One => "HTTP/1.1",
            Http::Two => "HTTP/2",
            Http::Three => "HTTP/3",
        }
    }

    /// As `tercel load --http` is told.
    pub const fn flag(self) -> &'static str {
        match self {
            Http::One => "1",
            Http::Two => "2",
            Http::Three => "3",
        }
    }
}

/// A server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Contestant {
    /// Ours.
    Tercel,
    /// The Rust crates quinn and h3.
    Quinn,
    /// The Rust crate quiche, which is Cloudflare's.
    Quiche,
    /// The Rust crate s2n-quic, which is Amazon's, with h3.
    S2n,
    /// The Go module quic-go.
    QuicGo,
    /// The web server nginx: HTTP/1.1 and 2.
    Nginx,
    /// The web server Caddy, which uses an older quic-go.
    Caddy,
}

impl Contestant {
    /// All, ours first.
    pub const ALL: [Contestant; 7] = [
        Contestant::Tercel,
        Contestant::Quinn,
        Contestant::Quiche,
        Contestant::S2n,
        Contestant::QuicGo,
        Contestant::Nginx,
        Contestant::Caddy,
    ];

    /// As tables call it.
    pub const fn name(self) -> &'static str {
        match self {
            Contestant::Tercel => "tercel",
            Contestant::Quinn => "quinn + h3",
            Contestant::Quiche => "quiche",
            Contestant::S2n => "s2n-quic + h3",
            Contestant::QuicGo => "quic-go",
            Contestant::Nginx => "nginx",
            Contestant::Caddy => "Caddy",
        }
    }

    /// The versions of HTTP that it speaks here.
    pub const fn speaks(self) -> &'static [Http] {
        match self {
            Contestant::Tercel | Contestant::Caddy => &Http::ALL,
            Contestant::Nginx => &[Http::One, Http::Two],
            Contestant::Quinn | Contestant::Quiche | Contestant::S2n | Contestant::QuicGo => &[Http::Three],
        }
    }

    const fn program(self) -> &'static str {
        match self {
            Contestant::Tercel => "tercel",
            Contestant::Quinn => "quinn-h3-peer",
            Contestant::Quiche => "quiche-peer",
            Contestant::S2n => "s2n-quic-peer",
            Contestant::QuicGo => "quic-go-peer",
            Contestant::Nginx => "nginx",
            Contestant::Caddy => "caddy",
        }
    }

    const fn is_peer(self) -> bool {
        matches!(self, Contestant::Quinn | Contestant::Quiche | Contestant::S2n | Contestant::QuicGo)
    }

    fn how_to_get(self) -> String {
        match self {
            Contestant::Tercel => "run cargo build --release".to_owned(),
            Contestant::Nginx | Contestant::Caddy => {
                format!("on Debian: apt-get install {}", self.program())
            }
            _ => "run peers/build in the folder of tercel's sources".to_owned(),
        }
    }
}

/// A server that is here.
#[derive(Clone, Debug)]
pub struct Installed {
    /// Which.
    pub who: Contestant,
    program: PathBuf,
}

/// Who is here, and why others are not.
#[derive(Clone, Debug, Default)]
pub struct InstalledServers {
    /// In the order of [`Contestant::ALL`].
    pub installed: Vec<Installed>,
    /// A sentence for each that is missing.
    pub absent: Vec<String>,
}

/// Looks for servers that speak one of these versions of HTTP: peers beside the tercel program and below target/ in the
/// working directory, the others where the system has programs.
pub fn look(tercel: &Path, versions: &[Http]) -> InstalledServers {
    let mut field = InstalledServers::default();
    for who in
        Contestant::ALL.into_iter().filter(|who| who.speaks().iter().any(|http| versions.contains(http)))
    {
        let found = match who {
            Contestant::Tercel => Some(tercel.to_owned()),
            _ if who.is_peer() => peer(tercel, who.program()),
            _ => on_path(who.program()),
        };
        match found {
            Some(program) => field.installed.push(Installed { who, program }),
            None => field.absent.push(format!("{} is not here: {}.", who.name(), who.how_to_get())),
        }
    }
    field
}

fn peer(tercel: &Path, name: &str) -> Option<PathBuf> {
    let beside = tercel.parent().map(|folder| folder.join(name));
    let of_same_build =
        tercel.parent().and_then(Path::parent).map(|target| target.join("peers/release").join(name));
    let here = Some(Path::new("target/peers/release").join(name));
    [beside, of_same_build, here].into_iter().flatten().find(|path| path.is_file())
}

/// A program that the shell would find, or that is where Debian keeps servers.
pub fn on_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let known = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    known.map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests;
