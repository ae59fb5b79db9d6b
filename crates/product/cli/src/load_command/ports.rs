//! Carries a plan out, on the data path that was asked for.

use super::LoadArgs;
use super::progress::Line;
use client::error::GetError;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use datapath::Port;
use load::{LoadPlan, Member, Protocol, Report, Run, Watcher};
use ports::{AnyPort, OpenOutcome};
use std::sync::atomic::AtomicBool;
use udp::Sockets;

fn usage(error: impl core::fmt::Display) -> GetError {
    GetError::Usage(error.to_string())
}

/// One trial.
pub(super) fn run(
    args: &LoadArgs,
    plan: &LoadPlan,
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
    if first.ports.iter().any(|port| port.xdp_mode().is_some()) {
        if args.threads > 1 {
            let one =
                "over AF_XDP the generator has one thread, for all queues of the interface: leave -t out";
            return Err(usage(one));
        }
        if args.sockets.is_some() {
            let none = "--sockets means nothing to AF_XDP, which has none of the kernel's: leave it out";
            return Err(usage(none));
        }
    }
    let member = |port| {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(usage)?;
        Ok(Member { port, seed })
    };
    let ports = ports_of_threads(args, plan, first.ports)?;
    let members = ports.into_iter().map(member).collect::<Result<Vec<_>, GetError>>()?;
    run.over_quic(members, line).map_err(broken)
}

/// The ports of the threads: one or more sockets each, or all queues of an interface. `ports` are those that are open.
fn ports_of_threads(args: &LoadArgs, plan: &LoadPlan, ports: Vec<AnyPort>) -> Result<Vec<AnyPort>, GetError> {
    if ports.iter().any(|port| port.xdp_mode().is_some()) {
        return Ok(ports);
    }
    let each = args.sockets_of_a_thread();
    let several = || usage("several sockets have several paths: name one with --datapath");
    let into_udp = |port: AnyPort| port.into_udp().ok_or_else(several);
    let mut sockets = ports.into_iter().map(into_udp).collect::<Result<Vec<_>, _>>()?;
    while sockets.len() < each * usize::from(args.threads) {
        for port in open(args, plan.address)?.ports {
            sockets.push(into_udp(port)?);
        }
    }
    let mut threads = Vec::new();
    while !sockets.is_empty() {
        let rest = sockets.split_off(each.min(sockets.len()));
        threads.extend(Sockets::new(core::mem::replace(&mut sockets, rest)));
    }
    Ok(threads.into_iter().map(|sockets| args.path.held(AnyPort::Sockets(sockets))).collect())
}

fn broken(error: std::io::Error) -> GetError {
    GetError::Broken(error.to_string())
}

/// A port of its own for a thread, of the address's family.
fn open(args: &LoadArgs, address: SocketAddr) -> Result<OpenOutcome, GetError> {
    let local = match address {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let options = args.path.options(local, args.quic.demanded_payload());
    let options = args.quic.techniques().paths(options);
    ports::open(&ports::OpenOptions { towards: Some(address.ip()), ..options }).map_err(GetError::Usage)
}
