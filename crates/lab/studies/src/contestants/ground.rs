//! What all servers of a study share: where they and their clients run, files, a certificate, the size of packets.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use bench::folder::Folder;
use bench::process::Running;
use bench::site::{End, Site};

/// Study E4's file: its name and its size in bytes.
pub const SMALL: (&str, u64) = ("small", 630);
/// Study E5's file.
pub const LARGE: (&str, u64) = ("large", 10_000_000);

/// UDP payload of full packets: what quic-go and Caddy reach at most, and all others can be told.
const PAYLOAD: u16 = 1_452;
/// Names for which the certificate is.
const NAMES: [&str; 1] = ["localhost"];

/// The ground on which servers are compared. What is below its folder goes when it does.
#[derive(Debug)]
pub struct TestSite {
    /// For configurations.
    folder: Folder,
    /// For files and certificate.
    shared: Arc<Folder>,
    site: Site,
    /// Bytes of UDP payload in full packets.
    pub payload_size: u16,
    /// Why there is no link with Ethernet's MTU, if there is none.
    pub problem: Option<String>,
}

impl TestSite {
    /// Writes files and certificate, and joins two namespaces by veth with Ethernet's MTU. Where that is not allowed the ground
    /// is loopback, and the problem says so: TCP's segments are then as large as 64 KB, and no datagram is.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written.
    pub fn prepare() -> io::Result<TestSite> {
        match Site::veth(1) {
            Ok(site) => TestSite::on(site, None),
            Err(error) => TestSite::on(Site::Loopback, Some(error.to_string())),
        }
    }

    /// Writes files and certificate for servers and clients on `site`. `problem` says why it is not the one that was wanted.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written.
    pub fn on(site: Site, problem: Option<String>) -> io::Result<TestSite> {
        let shared = Arc::new(Folder::make()?);
        let ground = TestSite { folder: Folder::make()?, shared, site, payload_size: PAYLOAD, problem };
        std::fs::create_dir_all(ground.files())?;
        for file in [SMALL, LARGE] {
            ground.add(file)?;
        }
        let broken = |error: rcgen::Error| io::Error::other(format!("cannot make a certificate: {error}"));
        let made = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned)).map_err(broken)?;
        std::fs::write(ground.certificate(), made.cert.pem())?;
        std::fs::write(ground.key(), made.signing_key.serialize_pem())?;
        Ok(ground)
    }

    /// The same files and certificate on another site, with configurations of its own.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written.
    pub fn on_other(&self, site: Site) -> io::Result<TestSite> {
        let (folder, shared) = (Folder::make()?, Arc::clone(&self.shared));
        Ok(TestSite { folder, shared, site, payload_size: self.payload_size, problem: None })
    }

    /// Where clients and servers are.
    pub fn site(&self) -> &Site {
        &self.site
    }

    /// The server's address.
    pub fn address(&self) -> IpAddr {
        self.site.ipv4(End::Server)
    }

    /// A folder for configurations.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The files that are served.
    pub fn files(&self) -> PathBuf {
        self.shared.path().join("files")
    }

    /// Adds a file of this name and size in bytes. Servers that run already may not see it.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written.
    pub fn add(&self, (name, size): (&str, u64)) -> io::Result<()> {
        std::fs::write(self.files().join(name), content(size))
    }

    /// Adds files of the size of `file` until there are `count` of them, each with other bytes.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written.
    pub fn multiply(&self, (name, size): (&str, u64), count: usize) -> io::Result<()> {
        let mut bytes = content(size);
        for at in 1..count {
            bytes.rotate_left(1);
            std::fs::write(self.files().join(name_of(name, at)), &bytes)?;
        }
        Ok(())
    }

    /// The certificate, PEM: ECDSA on P-256.
    pub fn certificate(&self) -> PathBuf {
        self.shared.path().join("cert.pem")
    }

    /// Its key, PEM.
    pub fn key(&self) -> PathBuf {
        self.shared.path().join("key.pem")
    }

    /// The path of a file that does not exist.
    pub fn fresh(&self, name: &str) -> PathBuf {
        self.folder.fresh(name)
    }

    /// Starts a process at an end of the link on one core, from its first instruction on: Go counts its cores then.
    ///
    /// # Errors
    /// The core is not ours, or the program cannot be started.
    pub fn start(&self, end: End, name: &str, core: usize, command: &mut Command) -> io::Result<Running> {
        let home = cpu::allowed();
        cpu::pin(core)?;
        // A child begins where its parent is.
        let child = self.site.spawn(end, Running::prepare(command));
        cpu::pin_to(&home)?;
        let child = child.map_err(|error| {
            io::Error::new(error.kind(), format!("cannot start {}: {error}", command.get_program().display()))
        })?;
        Running::adopt(name, child, &[core])
    }
}

/// The name of one of several files like `name`.
pub(super) fn name_of(name: &str, at: usize) -> String {
    if at == 0 { name.to_owned() } else { format!("{name}-{at}") }
}

/// As in generated bodies, so that it does not compress.
fn content(size: u64) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size as usize + base::pattern::PERIOD);
    while (bytes.len() as u64) < size {
        bytes.extend_from_slice(base::pattern::at(bytes.len() as u64));
    }
    bytes.truncate(size as usize);
    bytes
}
