//! `--pcap`: a capture of the datagrams, with the secrets that open them.

use crypto::KeyLines;
use datapath::pcap::{Capture, PcapWriter, Secrets, unix_time_of_origin};
use ports::AnyPort;
use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;

/// Secrets of the connections, as the capture takes them.
#[derive(Debug)]
struct Keys(KeyLines);

impl Secrets for Keys {
    fn take(&mut self) -> Vec<u8> {
        self.0.take().into_bytes()
    }
}

/// A port that records its datagrams in the file, and the secrets of its connections.
pub(super) fn captured(port: AnyPort, path: &Path, keys: &KeyLines) -> io::Result<AnyPort> {
    let writer = PcapWriter::new(owners_file(path)?)?.with_secrets(Box::new(Keys(keys.clone())));
    Ok(AnyPort::other(Capture::new(port, writer, unix_time_of_origin())))
}

/// An empty file that only its owner may read. One that exists becomes so before it holds a secret; what is no file, such as a pipe, keeps
/// its mode.
fn owners_file(path: &Path) -> io::Result<File> {
    const OWNERS: u32 = 0o600;
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(OWNERS).open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(OWNERS))?;
        file.set_len(0)?;
    }
    Ok(file)
}
