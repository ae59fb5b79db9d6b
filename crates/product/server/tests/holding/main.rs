//! What clients that take little, and disks that give little, can hold of a server on HTTP/3: in virtual time, over virtual
//! links.
#![expect(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod budget;
mod client;
mod counting;
mod disk;
mod idle;
mod neighbours;
mod resident;

use base::slab::Handle;
use base::time::Duration;
use client::{Clients, Pace, Shared, State};
use counting::held;
use server::access_log::{AccessLog, Target};
use server::handler::{FileOptions, Files};
use server::http3::Server;
use sim::{Scenario, Simulation, StopReason};
use std::path::Path;
use transport::{StreamConfig, StreamId, TransportConfig};

pub(crate) type World = Simulation<Server, Clients>;

pub(crate) fn options(root: &Path) -> FileOptions {
    FileOptions::folder(root).unwrap()
}

pub(crate) fn server(options: FileOptions) -> Server {
    let log = AccessLog::start(Target::Off).unwrap();
    Server::new(Files::new(options), log.recorder())
}

/// The size of the file `large`, in bytes: more than is kept in memory.
pub(crate) const LARGE: usize = 300_000;

/// A folder with a large file and a small one.
pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("large"), vec![7; LARGE]).unwrap();
    std::fs::write(folder.path().join("small"), "abc").unwrap();
    folder
}

/// A server, and clients that keep their connection alive by PINGs and permit `window` bytes on each stream.
pub(crate) fn world(server: Server, window: u64) -> World {
    let streams =
        StreamConfig { initial_stream_window: window, max_stream_window: window, ..StreamConfig::default() };
    let keep_alive = Some(Duration::from_secs(5));
    let client = TransportConfig { keep_alive, streams, ..TransportConfig::default() };
    Scenario { client, ..Scenario::interop(1) }.build(server, Clients).unwrap()
}

/// A connection of a client, and what is seen of it.
pub(crate) struct Peer {
    pub(crate) handle: Handle,
    pub(crate) view: Shared,
}

impl Peer {
    pub(crate) fn begin(world: &mut World, pace: Pace) -> Peer {
        let view = Shared::default();
        let handle = world.connect(State::new(pace, &view)).unwrap();
        Peer { handle, view }
    }

    pub(crate) fn get(&self, world: &mut World, path: &str) -> StreamId {
        let (transport, state) = world.client().connection(self.handle).unwrap();
        state.get(transport, path)
    }

    pub(crate) fn is_up(&self) -> bool {
        self.view.borrow().is_up
    }

    pub(crate) fn is_cut(&self) -> bool {
        self.view.borrow().is_closed
    }

    pub(crate) fn has_ended(&self, id: StreamId) -> bool {
        self.view.borrow().seen[&id].has_ended
    }

    /// The status of a response, 0 before there is one, and its content so far.
    pub(crate) fn response(&self, id: StreamId) -> (u16, Vec<u8>) {
        let view = self.view.borrow();
        (view.seen[&id].status, view.seen[&id].bytes.clone())
    }
}

/// A connection on which requests can be sent.
pub(crate) fn connected(world: &mut World, pace: Pace) -> Peer {
    let peer = Peer::begin(world, pace);
    assert_eq!(world.run(Duration::from_secs(5), |_| peer.is_up()), StopReason::Done);
    peer
}

/// Runs for a time of which nothing is expected.
pub(crate) fn pass(world: &mut World, time: Duration) {
    world.run(time, |_| false);
}

/// Issue 10, row 1.2: 252 KiB a request before, and never cut.
#[test]
fn windows_of_one_byte_hold_little_and_end_with_the_time_for_progress() {
    let folder = folder();
    for window in [1, 300] {
        let mut world = world(server(options(folder.path())), window);
        let peer = connected(&mut world, Pace::Slow(0, Duration::from_secs(1_000)));
        peer.get(&mut world, "/large");
        pass(&mut world, Duration::from_secs(1));
        let before = held();
        for _ in 0..99 {
            peer.get(&mut world, "/large");
        }
        pass(&mut world, Duration::from_secs(1));
        let each = held().saturating_sub(before) / 99;
        println!("window {window}: {each} bytes a request, of both ends");
        assert!(each < 12 * 1_024, "{each} bytes a request");
        assert!(!peer.is_cut());
        // The heads trickle through these windows and count as content; then nothing does.
        let halt = world.run(Duration::from_secs(122), |_| peer.is_cut());
        assert_eq!(halt, StopReason::Done, "the time for progress is 60 s");
        assert_eq!(world.server().app_mut().served().stalled, 1);
        pass(&mut world, Duration::from_secs(10));
        assert_eq!(world.server().connections(), 0);
    }
}

/// The rule is for clients that take nothing: 1,100 bytes a minute is enough.
#[test]
fn a_slow_reader_is_not_cut() {
    let folder = folder();
    let mut world = world(server(options(folder.path())), 2_000);
    let peer = connected(&mut world, Pace::Slow(1_100, Duration::from_secs(55)));
    let id = peer.get(&mut world, "/large");
    pass(&mut world, Duration::from_secs(600));
    assert!(!peer.is_cut());
    let (_, bytes) = peer.response(id);
    assert!(bytes.len() >= 10 * 1_100, "{}", bytes.len());
}

/// A connection that is kept alive by PINGs and asks for nothing holds nothing, and is left alone.
#[test]
fn who_asks_for_nothing_is_not_cut() {
    let mut world = world(server(FileOptions::default()), 1 << 20);
    let peer = connected(&mut world, Pace::All);
    let id = peer.get(&mut world, "/bytes/100000");
    pass(&mut world, Duration::from_secs(300));
    assert!(peer.has_ended(id) && !peer.is_cut());
}
