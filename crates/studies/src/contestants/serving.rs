//! A server that runs on a core of its own, from its start to its end.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bench::cpu;
use bench::process::Running;

use super::{Contestant, Http, Installed, Site, config};

/// How long a server may take to listen.
const TO_START: Duration = Duration::from_secs(15);
/// How long it may take to end before it is killed.
const TO_END: Duration = Duration::from_secs(3);

/// A server that runs. Dropped, it is killed, by its process id.
#[derive(Debug)]
pub struct Serving {
    running: Running,
    /// Where it listens.
    pub address: SocketAddr,
    /// The program's version, as it tells it.
    pub version: String,
}

impl Serving {
    /// The process's id.
    pub fn id(&self) -> u32 {
        self.running.id()
    }

    /// The URL of a file.
    pub fn url(&self, name: &str) -> String {
        format!("https://{}/{name}", self.address)
    }

    /// CPU seconds that it has used so far.
    ///
    /// # Errors
    /// It has gone.
    pub fn cpu_seconds(&self) -> io::Result<f64> {
        cpu::seconds_of(self.id()).ok_or_else(|| io::Error::other("the server has gone"))
    }

    /// Asks it to end (SIGTERM), and kills it if it does not.
    pub fn stop(self) {
        self.running.ask_to_end();
        // How it ends is of no interest: some servers report the signal as their failure, and the guard kills what is left.
        let _ = self.running.finish(TO_END, &AtomicBool::new(false));
    }
}

impl Installed {
    /// Starts it on a core and waits until it listens.
    ///
    /// # Errors
    /// It cannot be started, or says why it cannot serve; or `stop` was set.
    pub fn start(&self, site: &Site, core: usize, stop: &AtomicBool) -> io::Result<Serving> {
        match self.who {
            Contestant::Tercel => self.start_tercel(site, core, stop),
            Contestant::Nginx => {
                let port = free_port()?;
                let file = site.folder.join("nginx.conf");
                std::fs::write(&file, config::nginx(site, port))?;
                let mut command = Command::new(&self.program);
                command.arg("-e").arg(site.folder.join("nginx.log")).arg("-c").arg(&file);
                self.start_web_server(&mut command, port, &["-v"], (core, stop))
            }
            Contestant::Caddy => {
                let port = free_port()?;
                let file = site.folder.join("Caddyfile");
                std::fs::write(&file, config::caddy(site, port))?;
                let mut command = Command::new(&self.program);
                command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
                // It keeps what it knows of its certificates at home.
                for home in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
                    command.env(home, &site.folder);
                }
                self.start_web_server(&mut command, port, &["version"], (core, stop))
            }
            Contestant::Quinn | Contestant::Quiche | Contestant::S2n | Contestant::QuicGo => {
                self.start_peer(site, core, stop)
            }
        }
    }

    fn start_tercel(&self, site: &Site, core: usize, stop: &AtomicBool) -> io::Result<Serving> {
        let ready = site.fresh("ready.json");
        let size = site.payload_size.to_string();
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(&site.files).args(["--listen", "127.0.0.1:0", "--access-log", "off"]);
        command.args(["--cipher", "aes128", "--congestion", "cubic", "--packet-size", &size]);
        command
            .arg("--cert")
            .arg(&site.certificate)
            .arg("--key")
            .arg(&site.key)
            .arg("--ready-file")
            .arg(&ready);
        let mut running = Running::start(self.who.name(), core, &mut command)?;
        running.wait_ready(TO_START, stop, || ready.exists())?;
        let told: serde_json::Value = serde_json::from_slice(&std::fs::read(&ready)?)?;
        let port = told["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| io::Error::other("tercel does not say its port"))?;
        let version = first_line_of(Command::new(&self.program).arg("--version"));
        Ok(Serving { running, address: (Ipv4Addr::LOCALHOST, port).into(), version })
    }

    fn start_peer(&self, site: &Site, core: usize, stop: &AtomicBool) -> io::Result<Serving> {
        let mut command = Command::new(&self.program);
        command.args(["--listen", "127.0.0.1:0", "--payload-size", &site.payload_size.to_string()]);
        command
            .arg("--root")
            .arg(&site.files)
            .arg("--cert")
            .arg(&site.certificate)
            .arg("--key")
            .arg(&site.key);
        let mut running = Running::start(self.who.name(), core, &mut command)?;
        let line = running.first_line(TO_START, stop)?;
        let (address, version) = read_ready(&line)
            .ok_or_else(|| io::Error::other(format!("{} said \"{line}\"", self.program.display())))?;
        Ok(Serving { running, address, version })
    }

    /// A server that cannot choose its port and does not tell when it listens.
    fn start_web_server(
        &self,
        command: &mut Command,
        port: u16,
        tell_version: &[&str],
        (core, stop): (usize, &AtomicBool),
    ) -> io::Result<Serving> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let speaks_quic = self.who.speaks().contains(&Http::Three);
        let mut running = Running::start(self.who.name(), core, command)?;
        running.wait_ready(TO_START, stop, || {
            TcpStream::connect_timeout(&address, Duration::from_millis(100)).is_ok()
                && (!speaks_quic || has_udp_port(port))
        })?;
        let version = first_line_of(Command::new(&self.program).args(tell_version));
        Ok(Serving { running, address, version })
    }
}

/// A port that nobody has at the moment, of either kind: those who are given it cannot be given 0.
fn free_port() -> io::Result<u16> {
    for _ in 0..100 {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        if UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::other("no port is free"))
}

/// Whether any process here has this UDP port.
fn has_udp_port(port: u16) -> bool {
    let wanted = format!(":{port:04X} ");
    ["/proc/net/udp", "/proc/net/udp6"]
        .iter()
        .any(|table| std::fs::read_to_string(Path::new(table)).is_ok_and(|rows| rows.contains(&wanted)))
}

/// What a peer says of itself: `listening on ADDRESS with CRATE VERSION, …`.
pub(super) fn read_ready(line: &str) -> Option<(SocketAddr, String)> {
    let (address, version) = line.strip_prefix("listening on ")?.split_once(" with ")?;
    Some((address.parse().ok()?, version.to_owned()))
}

/// The first line that a command prints, wherever it prints it.
fn first_line_of(command: &mut Command) -> String {
    let Ok(output) = command.stdin(Stdio::null()).output() else { return String::new() };
    let said = [output.stdout, output.stderr].concat();
    let line = String::from_utf8_lossy(&said).lines().next().unwrap_or_default().trim().to_owned();
    line.strip_prefix("nginx version: ").map_or(line.clone(), str::to_owned)
}
