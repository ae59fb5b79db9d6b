//! Files that are slow to read: who does not ask for them must not notice.

use super::client::Pace;
use super::{LARGE, Peer, World, connected, folder, options, pass, server, world};
use base::time::Duration;
use rustix::fd::BorrowedFd;
use server::access_log::{AccessLog, Target};
use server::handler::{FileOptions, Files};
use server::http3::Server;
use server::readers::{InjectedDelay, Readers};
use sim::StopReason;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use transport::StreamId;

/// A disk that gives nothing of files of one size before it is told to, but for the first few times.
#[derive(Debug)]
struct Stuck {
    size: u64,
    free: AtomicUsize,
    is_open: Mutex<bool>,
    opened: Condvar,
}

impl Stuck {
    fn new(size: usize, free: usize) -> Arc<Stuck> {
        let free = AtomicUsize::new(free);
        Arc::new(Stuck { size: size as u64, free, is_open: Mutex::new(false), opened: Condvar::new() })
    }

    fn open(&self) {
        *self.is_open.lock().unwrap() = true;
        self.opened.notify_all();
    }
}

impl InjectedDelay for Stuck {
    fn concerns(&self, file: BorrowedFd<'_>) -> bool {
        rustix::fs::fstat(file).unwrap().st_size as u64 == self.size && !*self.is_open.lock().unwrap()
    }
    fn pass(&self, _: BorrowedFd<'_>) {
        let less = |free: usize| free.checked_sub(1);
        if self.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
            return;
        }
        let is_open = self.is_open.lock().unwrap();
        drop(self.opened.wait_while(is_open, |is_open| !*is_open).unwrap());
    }
}

fn behind(root: &Path, stuck: &Arc<Stuck>) -> FileOptions {
    let obstacle: Arc<dyn InjectedDelay> = stuck.clone();
    let mut options = options(root);
    options.readers = Readers::with_obstacle(obstacle);
    options
}

/// Runs in virtual time until `done`, and lets other threads run meanwhile. On a busy machine those need much virtual time.
fn wait_for(world: &mut World, mut done: impl FnMut() -> bool) {
    let mut run = || {
        world.run(Duration::from_secs(60), |_| {
            std::thread::sleep(std::time::Duration::from_micros(100));
            done()
        })
    };
    assert!((0..10).any(|_| run() == StopReason::Done));
}

fn finish(world: &mut World, peer: &Peer, ids: &[StreamId]) {
    wait_for(world, || ids.iter().all(|&id| peer.has_ended(id)));
}

/// Issue 10, row 1.6: with a disk that takes 300 ms a read, a cached file of three bytes took seconds.
#[test]
fn a_slow_file_holds_up_no_other() {
    let folder = folder();
    std::fs::write(folder.path().join("other"), "other").unwrap();
    // One is slow to be looked up, the other is found and slow to be read.
    for (stuck, path, whole) in
        [(Stuck::new(3, 0), "/small", b"abc".to_vec()), (Stuck::new(LARGE, 1), "/large", vec![7; LARGE])]
    {
        let mut world = world(server(behind(folder.path(), &stuck)), 1 << 20);
        let peer = connected(&mut world, Pace::All);
        let slow: Vec<StreamId> = (0..6).map(|_| peer.get(&mut world, path)).collect();
        for quick_path in ["/other", "/bytes/70000"] {
            let quick = peer.get(&mut world, quick_path);
            wait_for(&mut world, || peer.has_ended(quick));
        }
        let second = connected(&mut world, Pace::All);
        let quick = second.get(&mut world, "/other");
        wait_for(&mut world, || second.has_ended(quick));
        assert!(slow.iter().all(|&id| !peer.has_ended(id)));
        stuck.open();
        finish(&mut world, &peer, &slow);
        assert!(slow.iter().all(|&id| peer.response(id).1 == whole));
        assert_eq!(world.server().app_mut().served().stalled, 0);
    }
}

/// Issue 10, row 1.6: listings ask the disk thousands of times. More are asked for here than are made at a time.
#[test]
fn a_slow_listing_holds_up_no_other() {
    let folder = folder();
    let listed = folder.path().join("listed");
    std::fs::create_dir(&listed).unwrap();
    std::fs::write(listed.join("a file in it"), "").unwrap();
    let stuck = Stuck::new(std::fs::metadata(&listed).unwrap().len() as usize, 0);
    let mut world = world(server(behind(folder.path(), &stuck)), 1 << 20);
    let peer = connected(&mut world, Pace::All);
    let orders = ["sort=name", "sort=size", "sort=size&order=desc", "sort=time", "sort=time&order=desc"];
    let views = orders.iter().flat_map(|order| [format!("?{order}"), format!("?{order}&json")]);
    let slow: Vec<StreamId> = views.map(|view| peer.get(&mut world, &format!("/listed/{view}"))).collect();
    for (quick_path, status) in [("/small", 200), ("/bytes/70000", 200), ("/none/", 404)] {
        let quick = peer.get(&mut world, quick_path);
        wait_for(&mut world, || peer.has_ended(quick));
        assert_eq!(peer.response(quick).0, status);
    }
    assert!(slow.iter().all(|&id| !peer.has_ended(id)));
    stuck.open();
    finish(&mut world, &peer, &slow);
    for id in slow {
        let (status, content) = peer.response(id);
        assert_eq!(status, 200);
        assert!(String::from_utf8(content).unwrap().contains("a file in it"));
    }
}

/// A request is logged with the time that it waited for the disk.
#[test]
fn the_log_counts_the_wait_for_the_disk() {
    let folder = folder();
    let stuck = Stuck::new(3, 0);
    let path = folder.path().join("log");
    let log = AccessLog::start(Target::File(path.clone())).unwrap();
    let server = Server::new(Files::new(behind(folder.path(), &stuck)), log.recorder());
    let mut world = world(server, 1 << 20);
    let peer = connected(&mut world, Pace::All);
    let id = peer.get(&mut world, "/small");
    pass(&mut world, Duration::from_secs(1));
    stuck.open();
    finish(&mut world, &peer, &[id]);
    pass(&mut world, Duration::from_secs(1));
    drop(world);
    drop(log);
    let text = std::fs::read_to_string(path).unwrap();
    let seconds: f64 = text.trim().rsplit(' ').next().unwrap().parse().unwrap();
    assert!(seconds >= 0.9, "{text}");
}

/// The server waits for its disk for longer than clients may take to make progress: they are not to blame.
#[test]
fn who_waits_for_our_disk_is_not_cut() {
    let folder = folder();
    let stuck = Stuck::new(LARGE, 0);
    let mut world = world(server(behind(folder.path(), &stuck)), 1 << 20);
    let peer = connected(&mut world, Pace::All);
    let id = peer.get(&mut world, "/large");
    pass(&mut world, Duration::from_secs(100));
    stuck.open();
    finish(&mut world, &peer, &[id]);
}

/// A read that fails ends its own response, as one that is cut short does.
#[test]
fn a_read_that_fails_ends_its_response_only() {
    let folder = folder();
    let stuck = Stuck::new(LARGE, 1);
    let mut world = world(server(behind(folder.path(), &stuck)), 1 << 20);
    let peer = connected(&mut world, Pace::All);
    let id = peer.get(&mut world, "/large");
    let other = peer.get(&mut world, "/bytes/100");
    wait_for(&mut world, || peer.response(id).0 == 200 && peer.has_ended(other));
    let file = std::fs::File::options().write(true).open(folder.path().join("large")).unwrap();
    file.set_len(0).unwrap();
    stuck.open();
    wait_for(&mut world, || peer.view.borrow().seen[&id].aborted.is_some());
    let again = peer.get(&mut world, "/bytes/200");
    finish(&mut world, &peer, &[again]);
}

/// The server's end with a read outstanding: the response is waited for, and given up when the time is over.
#[test]
fn the_end_does_not_wait_for_the_disk_when_it_must_not() {
    let folder = folder();
    let stuck = Stuck::new(LARGE, 0);
    let mut world = world(server(behind(folder.path(), &stuck)), 1 << 20);
    let peer = connected(&mut world, Pace::All);
    let id = peer.get(&mut world, "/large");
    pass(&mut world, Duration::from_secs(1));
    world.server().app_mut().stop();
    world.server().activate_all();
    pass(&mut world, Duration::from_secs(2));
    assert!(!peer.is_cut(), "what was asked for is waited for");
    world.server().app_mut().abandon();
    world.server().activate_all();
    let halt = world.run(Duration::from_secs(2), |_| peer.is_cut());
    assert_eq!(halt, StopReason::Done);
    assert!(!peer.has_ended(id));
    stuck.open();
}
