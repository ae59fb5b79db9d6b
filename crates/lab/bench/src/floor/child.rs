//! The two processes of a floor, and the credit between them.
//!
//! Data goes from one socket to another; credit takes a pair of sockets of its own, so that the way that is measured only
//! sends or only receives. The sender says hello first, the receiver answers with how many datagrams it has had in all,
//! and at the end the sender says how many there were.

use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Part, Role, Used};

/// Without credit for so long, what is on its way is lost.
const PATIENCE: Duration = Duration::from_millis(200);
/// How long a receiver waits for the first datagram.
const START: Duration = Duration::from_secs(5);
/// How often credit is given, in parts of the window.
const CREDITS_PER_WINDOW: u64 = 8;
/// How many calls go between two looks at the clock.
const CALLS_PER_LOOK: u64 = 32;
/// Sent twelve times, because it may get lost.
const GOODBYES: usize = 12;

/// Hands datagrams to the kernel.
pub(super) trait BatchSender {
    /// Sends up to `most` (at least 1) in one go. Returns how many were taken; 0 when there is no room now.
    fn push(&mut self, most: u64) -> io::Result<u64>;
    /// System calls so far.
    fn calls(&self) -> u64;
}

/// Takes datagrams from the kernel.
pub(super) trait BatchReceiver {
    /// Where to send to.
    fn address(&self) -> SocketAddr;
    /// How many came in one go; 0 when there is none.
    fn take(&mut self) -> io::Result<u64>;
    /// Sleeps until there is one, or for so long.
    fn wait(&mut self, span: Duration) -> io::Result<()>;
    /// System calls so far.
    fn calls(&self) -> u64;
}

/// The whole life of a child process that [`super::run`] has started with `role`.
///
/// # Errors
/// When the trial failed; the message says how.
pub fn child(role: &str) -> io::Result<()> {
    let role: Role = serde_json::from_str(role)?;
    let used = match role.part {
        Part::Sender(data, credit) => send(&role, data, credit)?,
        Part::Receiver => receive(&role)?,
    };
    println!("{}", serde_json::to_string(&used)?);
    Ok(())
}

fn send(role: &Role, data: SocketAddr, credit: SocketAddr) -> io::Result<Used> {
    let mut push = super::pusher(role, data)?;
    let side = UdpSocket::bind((role.local, 0))?;
    side.connect(credit)?;
    side.set_nonblocking(true)?;
    side.send(b"hello")?;
    let window = (role.window / role.datagram_size).max(1) as u64;
    let (mut sent, mut credited, mut lost, mut rounds) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (began, cpu_began) = (cpu::clock_seconds(), cpu::process_seconds());
    let mut idle_since = began;
    loop {
        rounds += 1;
        if rounds.is_multiple_of(CALLS_PER_LOOK) && cpu::clock_seconds() - began > role.seconds {
            break;
        }
        let room = (credited + window).saturating_sub(sent);
        let pushed = if room > 0 { push.push(room)? } else { 0 };
        sent += pushed;
        if sent - credited < window / 2 && pushed > 0 {
            continue;
        }
        let heard = hear(&side)?;
        if let Some(total) = heard {
            credited = credited.max((total + lost).min(sent));
        }
        if heard.is_some() || pushed > 0 {
            idle_since = 0.0;
        } else if idle_since == 0.0 {
            idle_since = cpu::clock_seconds();
        } else if cpu::clock_seconds() - idle_since > PATIENCE.as_secs_f64() {
            lost += sent - credited;
            credited = sent;
        }
    }
    let used = Used {
        seconds: cpu::clock_seconds() - began,
        cpu_seconds: cpu::process_seconds() - cpu_began,
        datagrams: sent,
        calls: push.calls(),
        lost,
    };
    for _ in 0..GOODBYES {
        // The receiver may have gone after the first.
        let _ = side.send(&sent.to_be_bytes());
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(used)
}

/// The newest credit that has come.
fn hear(side: &UdpSocket) -> io::Result<Option<u64>> {
    let mut newest = None;
    let mut bytes = [0; 8];
    loop {
        match side.recv(&mut bytes) {
            Ok(8) => newest = newest.max(Some(u64::from_be_bytes(bytes))),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(newest),
            // The other end has gone, and may have said goodbye before.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
            Err(error) => return Err(error),
        }
    }
}

fn receive(role: &Role) -> io::Result<Used> {
    let side = UdpSocket::bind((role.local, 0))?;
    let mut take = super::taker(role)?;
    println!("{} {}", take.address(), side.local_addr()?);
    io::stdout().flush()?;
    side.set_read_timeout(Some(START))?;
    let mut hello = [0; 8];
    let (_, sender) = side.recv_from(&mut hello).map_err(|_| io::Error::other("no sender came"))?;
    side.connect(sender)?;
    side.set_nonblocking(true)?;
    let window = (role.window / role.datagram_size).max(1) as u64;
    let (mut received, mut credited) = (0_u64, 0_u64);
    let mut total = None;
    let (mut began, mut cpu_began, mut last) = (0.0, 0.0, cpu::clock_seconds());
    loop {
        let taken = take.take()?;
        if taken == 0 {
            let now = cpu::clock_seconds();
            total = total.or(hear(&side)?);
            let silent_for = now - last;
            let is_over = total.is_some_and(|total| received >= total || silent_for > 0.1);
            if is_over || silent_for > START.as_secs_f64() {
                break;
            }
            take.wait(Duration::from_millis(20))?;
            continue;
        }
        if received == 0 {
            (began, cpu_began) = (cpu::clock_seconds(), cpu::process_seconds());
        }
        received += taken;
        if received - credited >= window.div_ceil(CREDITS_PER_WINDOW) {
            credited = received;
            // A sender that has ended wants none.
            let _ = side.send(&received.to_be_bytes());
            last = cpu::clock_seconds();
        }
    }
    if received == 0 {
        return Err(io::Error::other("no datagram came"));
    }
    Ok(Used {
        seconds: last - began,
        cpu_seconds: cpu::process_seconds() - cpu_began,
        datagrams: received,
        calls: take.calls(),
        lost: 0,
    })
}

/// Sleeps until `socket` is readable, or for so long.
pub(super) fn wait_readable(socket: BorrowedFd<'_>, span: Duration) -> io::Result<()> {
    let timeout = Timespec::try_from(span).ok();
    match poll(&mut [PollFd::from_borrowed_fd(socket, PollFlags::IN)], timeout.as_ref()) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
