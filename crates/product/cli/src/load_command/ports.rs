//! Carries a plan out, on the data path that was asked for.

use super::LoadArgs;
use super::progress::Line;
use client::error::GetError;
use core::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use datapath::Port;
use load::{LoadPlan, Member, Protocol, Report, Run, Watcher};
use ports::{OpenOutcome, PortsVisitor};
use std::sync::atomic::AtomicBool;
use udp::{Sockets, UdpPort};

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
    if first.opened.xdp_mode().is_some() {
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
    first.opened.run(Generate { args, run: &run, line })
}

/// Runs the generator on ports of any kind, one for each thread.
struct Generate<'a, 'b> {
    args: &'a LoadArgs,
    run: &'a Run<'a>,
    line: Option<&'b mut dyn Watcher>,
}

impl PortsVisitor for Generate<'_, '_> {
    type Output = Result<Report, GetError>;

    fn visit<P: Port + Send>(self, ports: Vec<P>) -> Self::Output {
        let member = |port| {
            let mut seed = [0; 32];
            getrandom::fill(&mut seed).map_err(usage)?;
            Ok(Member { port, seed })
        };
        let members = ports.into_iter().map(member).collect::<Result<Vec<_>, GetError>>()?;
        self.run.over_quic(members, self.line).map_err(broken)
    }

    /// A thread has one or more sockets.
    fn visit_udp(self, ports: Vec<UdpPort>) -> Self::Output {
        let threads = sockets(self.args, self.run.plan, ports)?;
        let path = &self.args.path;
        path.visit_held(threads, self)
    }
}

/// The sockets of each thread. `ports` are those that are open.
fn sockets(args: &LoadArgs, plan: &LoadPlan, mut ports: Vec<UdpPort>) -> Result<Vec<Sockets>, GetError> {
    let each = args.sockets_of_a_thread();
    while ports.len() < each * usize::from(args.threads) {
        let several = || usage("several sockets have several paths: name one with --datapath");
        ports.extend(open(args, plan.address)?.opened.into_udp().ok_or_else(several)?);
    }
    let mut threads = Vec::new();
    while !ports.is_empty() {
        let rest = ports.split_off(each.min(ports.len()));
        threads.extend(Sockets::new(core::mem::replace(&mut ports, rest)));
    }
    Ok(threads)
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
