//! Work whose instructions callgrind counts: packets, handshakes, requests. `cargo xtask instructions` runs this program and
//! compares the counts with accepted ones.
//!
//! QUIC and HTTP/3 run in memory and in virtual time, a client and a server in turns. HTTP/1.1 and 2 are served on a loopback
//! socket, and asked by a child process, which callgrind does not see: one connection, which sends the next requests when
//! it has all responses. So every run does the same work.

mod certificate;
mod generator;
mod http3_ends;
mod parts;
mod quic;
mod site;
mod tcp;
mod world;

use parts::Parts;
use std::error::Error;
use std::process::ExitCode;

/// The argument of the child process.
const GENERATE: &str = "generate";
/// The argument that has nothing but requests over HTTP/3 done.
const REQUESTS: &str = "requests";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [GENERATE, port, protocol] => generator::run(port, protocol),
        [REQUESTS] => http3_ends::requests(&mut Parts::default()),
        _ => measure(),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("instructions: {error}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(), Box<dyn Error>> {
    let mut parts = Parts::default();
    quic::packets(&mut parts)?;
    quic::handshakes(&mut parts)?;
    http3_ends::requests(&mut parts)?;
    tcp::requests(&mut parts, "http/1.1", 1)?;
    tcp::requests(&mut parts, "h2", 10)
}
