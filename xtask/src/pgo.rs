//! `cargo xtask pgo`: the program optimised for what it does most, by a profile of itself at work.
//!
//! Builds it with counters, lets it serve and download large and small things over loopback, and builds it again with what
//! was counted. The result lies beside the usual build, so that the two can be compared: `target/pgo/tercel`.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Large transfers and small requests, over the paths that are used most: what clients are told, beside a URL's path.
const WORK: &[(&[&str], &str)] = &[
    (&["get", "--discard", "--quiet"], "bytes/2GB"),
    (&["get", "--discard", "--quiet", "--datapath", "mmsg"], "bytes/200MB"),
    (&["load", "--quiet", "-n", "300000", "-c", "20", "-m", "10"], "bytes/630B"),
    (&["load", "--quiet", "-n", "60000", "-c", "10", "-m", "10"], "bytes/8KiB"),
    (&["load", "--quiet", "-n", "2000", "-c", "100", "-m", "1"], "bytes/630B"),
];

/// Looks for a server that starts, this often and this far apart.
const LOOKS: u32 = 300;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Builds, trains, builds.
pub(crate) fn run() -> Result<String, String> {
    let folder = crate::root().join("target/pgo");
    let (counts, merged) = (folder.join("counts"), folder.join("merged.profdata"));
    let (host, merger) = toolchain()?;
    // What an earlier revision counted is of no use.
    let _ = std::fs::remove_dir_all(&counts);
    std::fs::create_dir_all(&counts).map_err(|error| format!("pgo: {}: {error}", counts.display()))?;

    println!("pgo: building with counters");
    let counting = build(&folder, &host, &format!("-Cprofile-generate={}", counts.display()))?;
    println!("pgo: serving and downloading on loopback");
    train(&counting, &folder)?;
    must_succeed(
        Command::new(&merger).arg("merge").arg("-o").arg(&merged).arg(&counts),
        "llvm-profdata could not merge what was counted",
    )?;
    println!("pgo: building with what was counted");
    let optimised = build(&folder, &host, &format!("-Cprofile-use={}", merged.display()))?;
    let result = folder.join("tercel");
    std::fs::copy(&optimised, &result).map_err(|error| format!("pgo: {}: {error}", result.display()))?;
    Ok(format!("pgo: {}", result.display()))
}

/// The host's name, and the program that merges profiles of this compiler.
fn toolchain() -> Result<(String, PathBuf), String> {
    let ask = |arguments: &[&str]| {
        let output = Command::new("rustc").args(arguments).output();
        output
            .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
            .map_err(|error| format!("pgo: rustc does not start: {error}"))
    };
    let host = ask(&["--print", "host-tuple"])?;
    let merger =
        Path::new(&ask(&["--print", "sysroot"])?).join("lib/rustlib").join(&host).join("bin/llvm-profdata");
    if !merger.exists() {
        return Err(
            "pgo: llvm-profdata of this compiler is missing: rustup component add llvm-tools".to_owned()
        );
    }
    Ok((host, merger))
}

/// Builds the program with more flags for the compiler.
fn build(folder: &Path, host: &str, flag: &str) -> Result<PathBuf, String> {
    must_succeed(
        // Naming the host keeps the flags away from build scripts.
        Command::new("cargo")
            .args([
                "build",
                "--quiet",
                "--profile=dist",
                "--locked",
                "--package=tercel-cli",
                "--target",
                host,
            ])
            .arg("--target-dir")
            .arg(folder.join("build"))
            .env("RUSTFLAGS", flag)
            .current_dir(crate::root()),
        "the program does not build",
    )?;
    Ok(folder.join("build").join(host).join("dist/tercel"))
}

/// Does the work. Both ends count.
fn train(program: &Path, folder: &Path) -> Result<(), String> {
    let ready = folder.join("ready.json");
    let _ = std::fs::remove_file(&ready);
    let server = Command::new(program)
        // Packets as on Ethernet, not as large as loopback takes.
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--access-log",
            "off",
            "--mtu-ceiling",
            "1472",
            "--ready-file",
        ])
        .arg(&ready)
        .env("XDG_DATA_HOME", folder.join("data"))
        .stdout(Stdio::null())
        .spawn()
        .map_err(|error| format!("pgo: the server does not start: {error}"))?;
    let mut server = Server(server);
    let port = server.port(&ready)?;
    for (arguments, path) in WORK {
        must_succeed(
            Command::new(program)
                .args(*arguments)
                .arg("--insecure")
                .arg(format!("https://127.0.0.1:{port}/{path}"))
                .stdout(Stdio::null()),
            "a client failed",
        )?;
    }
    server.end()
}

/// A server that does not outlive us.
struct Server(Child);

impl Server {
    /// The port, once it listens.
    fn port(&mut self, ready: &Path) -> Result<u16, String> {
        for _ in 0..LOOKS {
            if let Ok(Some(status)) = self.0.try_wait() {
                return Err(format!("pgo: the server ended with {status}"));
            }
            let told = std::fs::read_to_string(ready).unwrap_or_default();
            let port = told.split_once("\"port\":").map_or("", |(_, rest)| rest);
            let end = port.find(|c: char| !c.is_ascii_digit()).unwrap_or(0);
            if let Some(Ok(port)) = port.get(..end).map(str::parse) {
                return Ok(port);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        Err("pgo: the server did not listen in 30 s".to_owned())
    }

    /// Ends it in good order: that is when it writes what it counted.
    fn end(&mut self) -> Result<(), String> {
        must_succeed(Command::new("kill").arg(self.0.id().to_string()), "the server cannot be ended")?;
        let status = self.0.wait().map_err(|error| format!("pgo: {error}"))?;
        if status.success() { Ok(()) } else { Err(format!("pgo: the server ended with {status}")) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail when it has ended.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn must_succeed(command: &mut Command, otherwise: &str) -> Result<(), String> {
    let status =
        command.status().map_err(|error| format!("pgo: {}: {error}", command.get_program().display()))?;
    if status.success() { Ok(()) } else { Err(format!("pgo: {otherwise} ({status})")) }
}
