//! What idle connections hold of a process, as the kernel counts it: not only what was asked of the allocator, but what it takes for that,
//! what the TLS library allocates by C, and the tables of endpoint and worker.

use super::idle::{quiet, scenario};
use crypto::{ClientTls, EarlyTerms, KeyChange, Level, ServerId, ServerTls, TlsSession};
use server::http3::Server;
use sim::VirtualPort;
use sim::tls::{SERVER_NAME, TlsChoice, configure};
use std::process::Command;
use wire::Version;
use worker::Worker;

/// Idle connections of the process; the variable `CONNECTIONS` says another number.
fn wanted() -> usize {
    std::env::var("CONNECTIONS").map_or(100_000, |count| count.parse().unwrap())
}

/// Those of one worker.
const OF_WORKER: usize = 5_000;

/// The most that an idle connection may take besides what the TLS library keeps of it, in bytes.
const MOST: usize = 6 << 10;

/// The resident memory of this process, in bytes.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// A server's worker whose clients have asked for a little and been quiet for ten seconds. They, and the network, are gone.
fn idle_worker() -> Worker<VirtualPort, Server> {
    quiet(&scenario(), OF_WORKER).into_server()
}

/// Carries what one end of a handshake has to say, from `level` on, to the other. Whether there was anything.
fn relay(from: &mut TlsSession, level: &mut Level, to: &mut TlsSession) -> bool {
    let mut has_spoken = false;
    loop {
        let mut bytes = Vec::new();
        let change = from.write(&mut bytes);
        has_spoken |= !bytes.is_empty();
        to.read(*level, &bytes).unwrap();
        match change {
            Some(KeyChange::Handshake(_)) => *level = Level::Handshake,
            Some(KeyChange::OneRtt(_)) => *level = Level::OneRtt,
            None => return has_spoken,
        }
    }
}

/// A server's TLS session whose handshake is complete.
pub(crate) fn session(server: &ServerTls, client: &ClientTls) -> TlsSession {
    let id = ServerId { name: SERVER_NAME, port: 443 };
    let mut client = TlsSession::client(client, Version::V1, &id, &[0; 60]).unwrap();
    let mut server = TlsSession::server(server, Version::V1, &[0; 60], EarlyTerms::default()).unwrap();
    let (mut client_level, mut server_level) = (Level::Initial, Level::Initial);
    loop {
        let has_asked = relay(&mut client, &mut client_level, &mut server);
        let has_answered = relay(&mut server, &mut server_level, &mut client);
        if !has_asked && !has_answered {
            break;
        }
    }
    assert!(!server.is_handshaking());
    server
}

/// By how much each of `count` values makes the process grow, in bytes. What is made and dropped on the way finds memory of the first
/// `warm` values' way, which are not counted.
fn grown_by_each<T>(warm: usize, count: usize, mut make: impl FnMut() -> T) -> (usize, Vec<T>) {
    let mut kept: Vec<T> = Vec::with_capacity(warm + count);
    kept.extend((0..warm).map(|_| make()));
    let before = resident();
    kept.extend((0..count).map(|_| make()));
    ((resident() - before) / count, kept)
}

/// What the TLS library keeps of a connection, in bytes: measured in a process of its own, in which no other memory is free to be taken.
fn kept_by_tls() -> usize {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", "--ignored", "--nocapture", SESSIONS]).output().unwrap();
    let output = String::from_utf8(output.stdout).unwrap();
    let told = output.lines().find_map(|line| line.split_once(TOLD)).unwrap();
    told.1.trim().parse().unwrap()
}

const SESSIONS: &str = "resident::sessions_without_connections";
const TOLD: &str = "bytes for each TLS session:";

/// The part of [`an_idle_connection_takes_little_of_the_process`] that is the TLS library's.
#[test]
#[ignore = "twenty thousand handshakes; run by the next test"]
fn sessions_without_connections() {
    let (server, client) = configure(&TlsChoice::default()).unwrap();
    let (of_session, sessions) = grown_by_each(2_000, 20_000, || session(&server, &client));
    assert!(sessions.iter().all(|session| session.alpn().is_some()));
    println!("{TOLD} {}", of_session - size_of::<TlsSession>());
}

/// Issue 14: 100,000 connections of HTTP/3 in one process, each of which was asked for a little and has been idle since.
///
/// ```text
/// cargo test --release -p tercel-server --test holding -- --ignored --nocapture an_idle_connection_takes_little
/// ```
#[test]
#[ignore = "a hundred thousand handshakes: minutes of computing, and a gigabyte"]
fn an_idle_connection_takes_little_of_the_process() {
    let of_tls = kept_by_tls();
    // The clients are in this process too. What those of a worker leave is free and resident at both readings, and those of the next
    // worker use it again. Gaps between what is kept are charged to both, connections and sessions: by the allocator's own count the
    // sessions take 4.0 KB, not 4.9.
    let workers = wanted() / OF_WORKER;
    let (of_worker, mut kept) = grown_by_each(1, workers - 1, idle_worker);
    let each = of_worker / OF_WORKER;
    let connections: usize = kept.iter_mut().map(|worker| worker.connections()).sum();
    assert_eq!(connections, workers * OF_WORKER);
    println!("{connections} idle connections: {} MiB resident", resident() >> 20);
    println!("each {each} bytes, {of_tls} of them kept by the TLS library, {} by us", each - of_tls);
    assert!(each - of_tls <= MOST, "{} bytes for each idle connection besides TLS", each - of_tls);
}
