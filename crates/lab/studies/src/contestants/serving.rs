//! A server that runs on a core of its own, from its start to its end.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bench::process::Running;
use bench::site::End;

use super::{Contestant, Http, Installed, TestSite, config};

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
    pub fn start(&self, ground: &TestSite, core: usize, stop: &AtomicBool) -> io::Result<Serving> {
        self.start_with(ground, &[], (core, stop))
    }

    /// The same with flags of its own; web servers take none.
    ///
    /// # Errors
    /// As [`Installed::start`].
    pub fn start_with(
        &self,
        ground: &TestSite,
        flags: &[&str],
        (core, stop): (usize, &AtomicBool),
    ) -> io::Result<Serving> {
        match self.who {
            Contestant::Tercel => self.start_tercel(ground, flags, (core, stop)),
            Contestant::Nginx => {
                let address = free_port(ground)?;
                let file = ground.folder().join("nginx.conf");
                std::fs::write(&file, config::nginx(ground, address))?;
                let mut command = Command::new(&self.program);
                command.arg("-e").arg(ground.folder().join("nginx.log")).arg("-c").arg(&file);
                self.start_web_server(ground, &mut command, (address, "-v"), (core, stop))
            }
            Contestant::Caddy => {
                let address = free_port(ground)?;
                let file = ground.folder().join("Caddyfile");
                std::fs::write(&file, config::caddy(ground, address))?;
                let mut command = Command::new(&self.program);
                command.args(["run", "--adapter", "caddyfile", "--config"]).arg(&file);
                // It keeps what it knows of its certificates at home.
                for home in ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
                    command.env(home, ground.folder());
                }
                self.start_web_server(ground, &mut command, (address, "version"), (core, stop))
            }
            Contestant::Quinn | Contestant::Quiche | Contestant::S2n | Contestant::QuicGo => {
                self.start_peer(ground, flags, (core, stop))
            }
        }
    }

    fn start_tercel(
        &self,
        ground: &TestSite,
        flags: &[&str],
        (core, stop): (usize, &AtomicBool),
    ) -> io::Result<Serving> {
        let ready = ground.fresh("ready.json");
        let size = ground.payload_size.to_string();
        let listen = SocketAddr::new(ground.address(), 0).to_string();
        let mut command = Command::new(&self.program);
        command.arg("serve").arg(ground.files()).args(["--listen", &listen, "--access-log", "off"]);
        command.args(["--cipher", "aes128"]);
        if !flags.contains(&"--mtu-search") {
            command.args(["--packet-size", &size, "--mtu-search", "off"]);
        }
        if !flags.contains(&"--congestion") {
            command.args(["--congestion", "cubic"]);
        }
        command.arg("--cert").arg(ground.certificate()).arg("--key").arg(ground.key());
        command.arg("--ready-file").arg(&ready).args(flags);
        let mut running = ground.start(End::Server, self.who.name(), core, &mut command)?;
        running.wait_ready(TO_START, stop, || ready.exists())?;
        let told: serde_json::Value = serde_json::from_slice(&std::fs::read(&ready)?)?;
        let port = told["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let port = port.ok_or_else(|| io::Error::other("tercel does not say its port"))?;
        let version = first_line_of(Command::new(&self.program).arg("--version"));
        Ok(Serving { running, address: SocketAddr::new(ground.address(), port), version })
    }

    fn start_peer(
        &self,
        ground: &TestSite,
        flags: &[&str],
        (core, stop): (usize, &AtomicBool),
    ) -> io::Result<Serving> {
        let listen = SocketAddr::new(ground.address(), 0).to_string();
        let mut command = Command::new(&self.program);
        command.args(["--listen", &listen, "--payload-size", &ground.payload_size.to_string()]);
        command.arg("--root").arg(ground.files()).args(flags);
        command.arg("--cert").arg(ground.certificate()).arg("--key").arg(ground.key());
        let mut running = ground.start(End::Server, self.who.name(), core, &mut command)?;
        let line = running.first_line(TO_START, stop)?;
        let (address, version) = read_ready(&line)
            .ok_or_else(|| io::Error::other(format!("{} said \"{line}\"", self.program.display())))?;
        Ok(Serving { running, address, version })
    }

    /// A server that cannot choose its port and does not tell when it listens.
    fn start_web_server(
        &self,
        ground: &TestSite,
        command: &mut Command,
        (address, tell_version): (SocketAddr, &str),
        (core, stop): (usize, &AtomicBool),
    ) -> io::Result<Serving> {
        let needs_udp = self.who.speaks().contains(&Http::Three);
        let mut running = ground.start(End::Server, self.who.name(), core, command)?;
        running.wait_ready(TO_START, stop, || {
            ground.site().run(End::Server, || {
                TcpStream::connect_timeout(&address, Duration::from_millis(100)).is_ok()
                    && (!needs_udp || has_udp_port(address.port()))
            })
        })?;
        let version = first_line_of(Command::new(&self.program).arg(tell_version));
        Ok(Serving { running, address, version })
    }
}

/// A port that is free at the moment, of either kind, for programs that cannot be given port 0.
fn free_port(ground: &TestSite) -> io::Result<SocketAddr> {
    let look = |ip: IpAddr| -> io::Result<Option<SocketAddr>> {
        let address = TcpListener::bind((ip, 0))?.local_addr()?;
        Ok(UdpSocket::bind(address).is_ok().then_some(address))
    };
    ground.site().run(End::Server, || {
        for _ in 0..100 {
            if let Some(address) = look(ground.address())? {
                return Ok(address);
            }
        }
        Err(io::Error::other("no port is free"))
    })
}

/// Whether any process where the calling thread is has this UDP port.
fn has_udp_port(port: u16) -> bool {
    let wanted = format!(":{port:04X} ");
    ["/proc/thread-self/net/udp", "/proc/thread-self/net/udp6"]
        .iter()
        .any(|table| std::fs::read_to_string(table).is_ok_and(|rows| rows.contains(&wanted)))
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
