//! What the servers that studies compare with have in common, so that they differ in nothing but their protocol stacks: the
//! command line, what is served, the socket's buffers, and the line by which they tell where they listen.
//!
//! Content is whole in memory before the first request, and is lent without copying: `/NAME` is a file of the folder, `/bytes/N`
//! (units as in 10MB, 512KiB) a generated body with tercel's documented content.

use bytes::Bytes;
use clap::Parser;
use std::collections::HashMap;
use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

#[cfg(feature = "h3")]
pub mod http3;

/// The bytes of a generated body come again after this many.
const PERIOD: usize = 65_521;
/// Periods in the block that is lent: about 1 MB, so that a transfer is not made of small pieces.
const REPEATS: usize = 16;
/// What a socket is to buffer in each direction, in bytes; the system may cap it.
pub const SOCKET_BUFFER: usize = 4 << 20;

/// The command line.
#[derive(Parser)]
#[command(
    version,
    about = "An HTTP/3 server to compare with: one thread, files of a folder and /bytes/N from memory"
)]
pub struct Options {
    /// Address and port; port 0 takes a free one
    #[arg(long, default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// The certificate chain, PEM
    #[arg(long)]
    pub cert: PathBuf,
    /// Its key, PEM
    #[arg(long)]
    pub key: PathBuf,
    /// The folder whose files are served; they are read once, at the start
    #[arg(long)]
    pub root: PathBuf,
    /// UDP payload of full packets, in bytes: known beforehand, so it is not searched for
    #[arg(long, default_value_t = 1_452)]
    pub payload_size: u16,
    /// Take early data (0-RTT) of clients that resume, where the library can
    #[arg(long)]
    pub early_data: bool,
    /// Ask each client to prove its address with a Retry, where the library can
    #[arg(long)]
    pub retry: bool,
}

/// Tells the process that started us where we listen, and which published crates do it.
pub fn announce(address: SocketAddr, crates: &[&str]) {
    println!("listening on {address} with {}", versions(crates));
}

/// Published crates with their versions.
pub fn versions(crates: &[&str]) -> String {
    let versions: Vec<String> = crates.iter().map(|name| format!("{name} {}", version_of(name))).collect();
    versions.join(", ")
}

/// The version of a crate that the lock file names.
fn version_of(name: &str) -> &'static str {
    let mut lines = include_str!("../../Cargo.lock").lines();
    let wanted = format!("name = \"{name}\"");
    let version = lines.find(|line| *line == wanted).and_then(|_| lines.next());
    version.and_then(|line| line.strip_prefix("version = ")).map_or("?", |version| version.trim_matches('"'))
}

/// A socket with large buffers.
///
/// # Errors
/// The address is not ours, or taken.
pub fn bind(address: SocketAddr) -> io::Result<std::net::UdpSocket> {
    bind_with(address, SOCKET_BUFFER)
}

/// A socket with buffers of this many bytes, as far as the system grants them.
///
/// # Errors
/// The address is not ours, or taken.
pub fn bind_with(address: SocketAddr, buffer: usize) -> io::Result<std::net::UdpSocket> {
    use socket2::{Domain, Protocol, Socket, Type};
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_send_buffer_size(buffer)?;
    socket.set_recv_buffer_size(buffer)?;
    socket.bind(&address.into())?;
    Ok(socket.into())
}

/// All that is served.
#[derive(Clone)]
pub struct Content {
    files: Arc<HashMap<String, Bytes>>,
    block: Bytes,
}

impl Content {
    /// Reads the folder.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn load(options: &Options) -> Result<Content, Box<dyn Error + Send + Sync>> {
        let shown = |error| format!("{}: {error}", options.root.display());
        let mut files = HashMap::new();
        for entry in std::fs::read_dir(&options.root).map_err(shown)? {
            let entry = entry?;
            if entry.file_type()?.is_file() {
                let path = format!("/{}", entry.file_name().to_string_lossy());
                files.insert(path, Bytes::from(std::fs::read(entry.path())?));
            }
        }
        Ok(Content { files: Arc::new(files), block: block() })
    }

    /// What is at a path; `None` if nothing is.
    pub fn find(&self, path: &str) -> Option<Body> {
        match self.files.get(path) {
            Some(file) => {
                Some(Body { left: file.len() as u64, offset: 0, source: Source::File(file.clone()) })
            }
            None => Some(Body { left: size_of(path)?, offset: 0, source: Source::Block(self.block.clone()) }),
        }
    }
}

/// What is lent of generated bodies: whole periods.
fn block() -> Bytes {
    Bytes::from(period().repeat(REPEATS))
}

/// A body, or what is left of it.
pub struct Body {
    left: u64,
    offset: u64,
    source: Source,
}

enum Source {
    File(Bytes),
    Block(Bytes),
}

impl Body {
    /// `left` bytes of a generated body, from `offset` on.
    pub fn generated(offset: u64, left: u64) -> Body {
        Body { left, offset, source: Source::Block(block()) }
    }

    /// Bytes that are still to be taken.
    pub fn left(&self) -> u64 {
        self.left
    }

    /// The next piece, as large as it can be lent; empty at the end. It is offered again unless [`Body::taken`] is called.
    pub fn piece(&self) -> Bytes {
        let (source, phase) = match &self.source {
            Source::File(file) => (file, self.offset as usize),
            Source::Block(block) => (block, (self.offset % PERIOD as u64) as usize),
        };
        let length = self.left.min((source.len() - phase) as u64) as usize;
        source.slice(phase..phase + length)
    }

    /// The next piece, which need not be offered again; empty at the end.
    pub fn take(&mut self) -> Bytes {
        let piece = self.piece();
        self.taken(piece.len());
        piece
    }

    /// Notes that this many bytes need not be offered again.
    pub fn taken(&mut self, bytes: usize) {
        self.left -= bytes as u64;
        self.offset += bytes as u64;
    }
}

/// One period: the little-endian output of SplitMix64 started at zero. Written from tercel's documentation, so that it tests it.
fn period() -> Vec<u8> {
    let mut state = 0_u64;
    let mut period = Vec::with_capacity(PERIOD + 8);
    while period.len() < PERIOD {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = state;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        period.extend_from_slice(&(word ^ (word >> 31)).to_le_bytes());
    }
    period.truncate(PERIOD);
    period
}

/// The size that a path such as `/bytes/10MB` or `/bytes/512KiB` asks for.
pub fn size_of(path: &str) -> Option<u64> {
    let text = path.strip_prefix("/bytes/")?;
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let unit = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}
