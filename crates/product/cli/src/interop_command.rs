//! `tercel interop`: one end of an interoperability case. All programs that `tests/interop` calls take these arguments.

use crate::print_error;
use clap::{Args, Subcommand};
use interop::{Case, Error, client, server};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit code of a case that is not offered, by the public runner's convention.
const NOT_OFFERED: u8 = 127;

/// Flags of `tercel interop`.
#[derive(Args)]
pub(crate) struct InteropArgs {
    #[command(subcommand)]
    end: End,
}

#[derive(Subcommand)]
enum End {
    /// Serve the files below a folder.
    Server(ServerArgs),
    /// Download files.
    Client(ClientArgs),
}

#[derive(Args)]
struct ServerArgs {
    /// The name of the case, as in the public runner's TESTCASE_SERVER.
    #[arg(long)]
    case: String,
    /// Address and port.
    #[arg(long)]
    listen: SocketAddr,
    /// The certificate chain, PEM.
    #[arg(long)]
    cert: PathBuf,
    /// The certificate's private key, PEM.
    #[arg(long)]
    key: PathBuf,
    /// The folder.
    #[arg(long)]
    root: PathBuf,
    /// Write this file once listening: JSON with the port.
    #[arg(long)]
    ready_file: Option<PathBuf>,
}

#[derive(Args)]
struct ClientArgs {
    /// The name of the case, as in the public runner's TESTCASE_CLIENT.
    #[arg(long)]
    case: String,
    /// Address and port of the server.
    #[arg(long)]
    connect: SocketAddr,
    /// The name in the server's certificate.
    #[arg(long, default_value = "server")]
    name: String,
    /// Trust the certificates in this PEM file.
    #[arg(long)]
    cacert: PathBuf,
    /// The folder for what was downloaded.
    #[arg(long)]
    output: PathBuf,
    /// The local address to move to, or to use beside the first one.
    #[arg(long)]
    migrate_to: Option<IpAddr>,
    /// What to download, each without its slash.
    #[arg(required = true)]
    paths: Vec<String>,
}

/// Does one end's part. A case that is not offered ends with 127.
pub(crate) fn run(args: &InteropArgs) -> ExitCode {
    let (End::Server(ServerArgs { case, .. }) | End::Client(ClientArgs { case, .. })) = &args.end;
    let case: Case = match case.parse() {
        Ok(case) => case,
        Err(unknown) => {
            let _ = print_error(unknown);
            return ExitCode::from(NOT_OFFERED);
        }
    };
    match args.end.run(case) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => print_error(error),
    }
}

impl End {
    fn run(&self, case: Case) -> Result<(), Error> {
        match self {
            End::Server(args) => server::run(&server::Options {
                case,
                listen: args.listen,
                cert: args.cert.clone(),
                key: args.key.clone(),
                root: args.root.clone(),
                ready_file: args.ready_file.clone(),
            }),
            End::Client(args) => client::run(client::Options {
                case,
                connect: args.connect,
                name: args.name.clone(),
                cacert: args.cacert.clone(),
                output: args.output.clone(),
                migrate_to: args.migrate_to,
                paths: args.paths.clone(),
            }),
        }
    }
}
