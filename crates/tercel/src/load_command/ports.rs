//! Carries a plan out, on the data path that was asked for.

use super::LoadArgs;
use super::progress::Line;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use datapath::Port;
use datapath::hold::Hold;
use load::error::GetError;
use load::requests::{Member, Plan, Protocol, Report, Run, Watcher};
use paths::{Opened, Paths};
use std::sync::atomic::AtomicBool;

fn usage(error: impl core::fmt::Display) -> GetError {
    GetError::Usage(error.to_string())
}

/// One trial.
pub(super) fn run(
    args: &LoadArgs,
    plan: &Plan,
    stop: &AtomicBool,
    line: Option<&mut Line>,
) -> Result<Report, GetError> {
    let run = Run { plan, server: args.server_pid, stop };
    let line = line.map(|line| line as &mut dyn Watcher);
    if !matches!(plan.protocol, Protocol::Http3(_)) {
        return run.over_tcp(usize::from(args.threads), line).map_err(broken);
    }
    args.path.check().map_err(GetError::Usage)?;
    args.quic.techniques().check(args.path.datapath).map_err(GetError::Usage)?;
    let first = open(args, plan.address)?;
    if !args.quiet {
        first.verdict.iter().for_each(|verdict| eprintln!("{verdict}"));
    }
    match first.opened {
        Opened::Xdp(_) if args.threads > 1 => Err(usage(
            "over AF_XDP the generator has one thread, for all queues of the interface: leave -t out",
        )),
        Opened::Xdp(ports) => on(&run, ports, line),
        Opened::Udp(group) => {
            let mut ports = group.ports;
            while ports.len() < usize::from(args.threads) {
                // A socket of its own for each thread.
                let Opened::Udp(group) = open(args, plan.address)?.opened else {
                    return Err(usage("several threads have several paths: name one with --datapath"));
                };
                ports.extend(group.ports);
            }
            match args.path.hold() {
                Some(delay) => on(&run, ports.into_iter().map(|port| Hold::new(port, delay)).collect(), line),
                None => on(&run, ports, line),
            }
        }
    }
}

fn on<P: Port + Send>(
    run: &Run<'_>,
    ports: Vec<P>,
    line: Option<&mut dyn Watcher>,
) -> Result<Report, GetError> {
    let member = |port| {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(usage)?;
        Ok(Member { port, seed })
    };
    let members = ports.into_iter().map(member).collect::<Result<Vec<_>, GetError>>()?;
    run.over_quic(members, line).map_err(broken)
}

fn broken(error: std::io::Error) -> GetError {
    GetError::Broken(error.to_string())
}

/// A port of its own for a thread, of the address's family.
fn open(args: &LoadArgs, address: SocketAddr) -> Result<Paths, GetError> {
    let local = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let options = args.path.options(local, args.quic.demanded_payload());
    let options = args.quic.techniques().paths(options);
    paths::open(&paths::Options { towards: Some(address.ip()), ..options }).map_err(GetError::Usage)
}
