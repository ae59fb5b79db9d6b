//! `tercel perf`: how the transport performs, without HTTP.
//!
//! This file is the subcommand's head; serve.rs and client.rs turn their flags into what the `perf` room takes.

mod client;
mod serve;

use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Flags of `tercel perf`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct PerfArgs {
    #[command(subcommand)]
    side: Side,
}

#[derive(Subcommand)]
enum Side {
    /// Serve clients until Ctrl-C.
    #[command(visible_alias = "server")]
    Serve(Box<serve::ServeArgs>),
    /// Ask, and measure.
    Client(Box<client::ClientArgs>),
}

const EXAMPLES: &str = "\
Examples:
  tercel perf serve                                      answer on port 4433, with a development certificate
  tercel perf client -k localhost                        requests of 512 bytes, answers of 8 KiB, one at a time
  tercel perf client -k localhost -c 2 -m 16 -t 2        the same, 16 at a time on each of two connections and threads
  tercel perf client -k localhost download -D 5          as much as comes in five seconds
  tercel perf client -k localhost handshakes -c 8        handshakes a second, eight at a time

The protocol is draft-banks-quic-performance, which other implementations' perf servers and clients speak as well.";

/// Serves, or measures.
pub(crate) fn run(args: &PerfArgs) -> ExitCode {
    match &args.side {
        Side::Serve(args) => serve::run(args),
        Side::Client(args) => client::run(args),
    }
}
