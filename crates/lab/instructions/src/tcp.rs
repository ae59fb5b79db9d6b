//! Small requests over HTTP/1.1 and 2: the server is in this process, what asks it is a child.

use crate::certificate::Certificate;
use crate::parts::{Parts, Row};
use crate::site::Site;
use server::{Server, Versions};
use std::error::Error;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Requests before figures are taken, and those that are counted.
const WARM_UP: u64 = 200;
const COUNTED: u64 = 2_000;

/// The child, which ends when its standard input does.
struct Generator {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Generator {
    fn start(port: u16, protocol: &str, certificate: &[u8]) -> Result<Generator, Box<dyn Error>> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args([crate::GENERATE, &port.to_string(), protocol]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take().ok_or("no standard output")?);
        let mut generator = Generator { child, orders, answers: BufReader::new(answers) };
        let text: String = certificate.iter().map(|byte| format!("{byte:02x}")).collect();
        generator.order(&text)?;
        Ok(generator)
    }

    /// Returns when the child has done it.
    fn order(&mut self, what: &str) -> Result<(), Box<dyn Error>> {
        let orders = self.orders.as_mut().ok_or("no standard input")?;
        orders.write_all(format!("{what}\n").as_bytes())?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        if answer == "done\n" { Ok(()) } else { Err("the child process has failed".into()) }
    }
}

impl Drop for Generator {
    fn drop(&mut self) {
        drop(self.orders.take());
        let _ = self.child.wait();
    }
}

/// What a small request costs the server, with `batch` of them sent at once.
pub(crate) fn requests(parts: &mut Parts, protocol: &'static str, batch: u64) -> Result<(), Box<dyn Error>> {
    let (name, version) = match protocol {
        "h2" => ("request over HTTP/2", Versions::HTTP2),
        _ => ("request over HTTP/1.1", Versions::HTTP1),
    };
    let certificate = Certificate::new()?;
    let bound = Server::builder()
        .listen(([127, 0, 0, 1], 0).into())
        .identity(certificate.identity)
        .versions(version)
        .no_warnings()
        .bind()?;
    let site = Site::new()?;
    let running = bound.serve_files(site.options()?)?;
    let mut generator = Generator::start(running.local_addr().port(), protocol, &certificate.der)?;
    generator.order(&(WARM_UP / batch).to_string())?;
    parts.begin();
    generator.order(&(COUNTED / batch).to_string())?;
    parts.end(&[Row { name, functions: &[], count: COUNTED }]);
    drop(generator);
    running.handle().stop();
    running.wait()?;
    Ok(())
}
