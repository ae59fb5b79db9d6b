//! A server of files whose file system does not answer: what asks for none of them must not notice.
//!
//! The file system is this test's own (FUSE), so the kernel waits as it does for another machine: when a name is looked up, a
//! file opened, read and closed, when a folder or the file system is asked what it is.

#![expect(clippy::expect_used, reason = "a test ends where something is not as it should be")]

mod process;

use fuser::{
    BackgroundSession, Config, Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation,
    INodeNo, LockOwner, MountOption, OpenFlags, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyStatfs, Request,
};
use process::{PATIENCE, Process, STEP};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{sleep, spawn};
use std::time::{Duration, UNIX_EPOCH};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_tercel");
const VERSIONS: [&str; 3] = ["1", "2", "3"];
const FILE: INodeNo = INodeNo(2);
/// Longer than what a server reads at a time.
const SIZE: usize = 700_000;

/// What is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Nothing,
    /// That a file is closed.
    Close,
    All,
}

/// What the file system waits for.
#[derive(Debug)]
struct Gate {
    held: Mutex<Held>,
    changed: Condvar,
}

impl Gate {
    fn hold(&self, held: Held) {
        *self.held.lock().expect("no panic") = held;
        self.changed.notify_all();
    }

    /// Waits until this is answered.
    fn pass(&self, is_close: bool) {
        let held = self.held.lock().expect("no panic");
        let is_held = |held: &mut Held| *held == Held::All || is_close && *held == Held::Close;
        drop(self.changed.wait_while(held, is_held).expect("no panic"));
    }
}

/// A file system with one file.
struct Disk {
    gate: Arc<Gate>,
    /// How long the kernel may go without asking for a name again.
    known_for: Duration,
    content: Vec<u8>,
}

fn content() -> Vec<u8> {
    (0..SIZE).map(|at| (at % 251) as u8).collect()
}

fn state(ino: INodeNo) -> FileAttr {
    let is_file = ino == FILE;
    FileAttr {
        ino,
        size: if is_file { SIZE as u64 } else { 0 },
        blocks: 1,
        atime: UNIX_EPOCH,
        mtime: UNIX_EPOCH,
        ctime: UNIX_EPOCH,
        crtime: UNIX_EPOCH,
        kind: if is_file { FileType::RegularFile } else { FileType::Directory },
        perm: 0o755,
        nlink: 1,
        uid: 0,
        gid: 0,
        rdev: 0,
        flags: 0,
        blksize: 4096,
    }
}

impl Filesystem for Disk {
    fn lookup(&self, _: &Request, _: INodeNo, name: &OsStr, reply: ReplyEntry) {
        self.gate.pass(false);
        match name.to_str() {
            Some("file") => reply.entry(&self.known_for, &state(FILE), Generation(0)),
            _ => reply.error(Errno::ENOENT),
        }
    }

    fn getattr(&self, _: &Request, ino: INodeNo, _: Option<FileHandle>, reply: ReplyAttr) {
        self.gate.pass(false);
        reply.attr(&self.known_for, &state(ino));
    }

    fn open(&self, _: &Request, _: INodeNo, _: OpenFlags, reply: ReplyOpen) {
        self.gate.pass(false);
        reply.opened(FileHandle(0), FopenFlags::empty());
    }

    fn read(
        &self,
        _: &Request,
        _: INodeNo,
        _: FileHandle,
        offset: u64,
        size: u32,
        _: OpenFlags,
        _: Option<LockOwner>,
        reply: ReplyData,
    ) {
        self.gate.pass(false);
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(SIZE);
        let end = start.saturating_add(size as usize).min(SIZE);
        reply.data(self.content.get(start..end).unwrap_or_default());
    }

    /// A thread of its own waits: the one of the file system answers reads meanwhile.
    fn flush(&self, _: &Request, _: INodeNo, _: FileHandle, _: LockOwner, reply: ReplyEmpty) {
        let gate = Arc::clone(&self.gate);
        spawn(move || {
            gate.pass(true);
            reply.ok();
        });
    }

    fn statfs(&self, _: &Request, _: INodeNo, reply: ReplyStatfs) {
        self.gate.pass(false);
        reply.statfs(0, 0, 0, 0, 0, 512, 255, 0);
    }
}

/// Answers again when the test ends, or else neither the server nor the mount could.
struct Opener(Arc<Gate>);

impl Drop for Opener {
    fn drop(&mut self) {
        self.0.hold(Held::Nothing);
    }
}

/// A server of one worker, whose route /mount has the file system as root, and whose other root has it in its folder `below`.
/// What is dropped first comes first.
struct World {
    gate: Opener,
    server: Process,
    port: u16,
    _disk: BackgroundSession,
    place: TempDir,
}

impl World {
    /// `None` if file systems cannot be mounted.
    fn start(known_for: Duration) -> Option<World> {
        if !requirements::root("mounting a file system") {
            return None;
        }
        let place = TempDir::new().expect("a folder");
        let file = |name: &str| place.path().join(name);
        fs::create_dir_all(file("root/below")).expect("made");
        fs::write(file("root/quick"), "quick").expect("written");
        let gate = Arc::new(Gate { held: Mutex::new(Held::Nothing), changed: Condvar::new() });
        let disk = Disk { gate: Arc::clone(&gate), known_for, content: content() };
        let mut how = Config::default();
        how.mount_options = vec![MountOption::RO];
        let disk = match fuser::spawn_mount(disk, file("root/below"), &how) {
            Ok(disk) => disk,
            Err(error) => {
                requirements::missing(format_args!("FUSE cannot be used: {error}"));
                return None;
            }
        };
        let text = "listen = \"127.0.0.1:0\"\nworkers = 1\naccess-log = \"off\"\nready-file = \"ready\"\n\
                    [[site]]\nnames = \"*\"\nroot = \"root\"\n[[site.route]]\npath = \"/mount\"\n\
                    files = { root = \"root/below\", strip-prefix = true }\n";
        fs::write(file("configuration.toml"), text).expect("written");
        let mut command = Command::new(PROGRAM);
        command.arg("serve").arg("--config").arg(file("configuration.toml"));
        command.env("XDG_DATA_HOME", file("data")).stdout(Stdio::null());
        command.stderr(fs::File::create(file("said")).expect("a file"));
        let server = Process::start(&mut command);
        let said = || fs::read_to_string(file("said")).unwrap_or_default();
        await_that(|| file("ready").exists(), &format_args!("it does not start: {}", said()));
        let ready = fs::read_to_string(file("ready")).expect("the ready file");
        let ready: serde_json::Value = serde_json::from_str(&ready).expect("JSON");
        let port = ready["port"].as_u64().and_then(|port| u16::try_from(port).ok()).expect("a port");
        Some(World { gate: Opener(gate), server, port, _disk: disk, place })
    }

    /// A client that asks for a file.
    fn ask(&self, path: &str, version: &str) -> Client {
        let out = TempDir::new_in(self.place.path()).expect("a folder");
        let mut command = Command::new(PROGRAM);
        command.args(["get", "-k", "-q", "--http", version, "-o"]).arg(out.path().join("file"));
        command.arg(format!("https://127.0.0.1:{}{path}", self.port));
        Client { process: Process::start(command.stdout(Stdio::null())), out }
    }

    /// What asks for other files has them, for longer than roots go without being looked at.
    fn check_others(&mut self, when: &str) {
        for _ in 0..3 {
            for version in VERSIONS {
                let mut client = self.ask("/quick", version);
                assert_eq!(client.end(), b"quick", "{when}, HTTP/{version}");
            }
            sleep(Duration::from_millis(600));
        }
        assert!(self.server.0.try_wait().expect("a status").is_none(), "{when}: the server has ended");
    }
}

struct Client {
    process: Process,
    out: TempDir,
}

impl Client {
    /// What it got.
    fn end(&mut self) -> Vec<u8> {
        assert_eq!(self.process.wait(), Some(0));
        fs::read(Path::new(self.out.path()).join("file")).expect("what it wrote")
    }

    fn is_waiting(&mut self) -> bool {
        self.process.0.try_wait().expect("a status").is_none()
    }
}

fn await_that(mut is_so: impl FnMut() -> bool, what: &dyn std::fmt::Display) {
    let mut waited = Duration::ZERO;
    while !is_so() {
        assert!(waited < PATIENCE, "{what}");
        sleep(STEP);
        waited += STEP;
    }
}

fn holds_up_nothing_else(known_for: Duration) {
    let Some(mut world) = World::start(known_for) else { return };
    let paths = ["/below/file", "/mount/file"];
    for path in paths {
        assert!(world.ask(path, "3").end() == content(), "{path}");
    }
    world.gate.0.hold(Held::All);
    let ask = |path| VERSIONS.map(|version| world.ask(path, version));
    let mut slow: Vec<Client> = paths.into_iter().flat_map(ask).collect();
    world.check_others("nothing is answered");
    assert!(slow.iter_mut().all(Client::is_waiting), "they wait for the file system");
    world.gate.0.hold(Held::Close);
    for client in &mut slow {
        assert!(client.end() == content());
    }
    world.check_others("files cannot be closed");
}

/// The kernel knows names and states: the file is opened, read and closed by the file system alone.
#[test]
fn a_file_system_that_does_not_answer_holds_up_nothing_else() {
    holds_up_nothing_else(Duration::from_secs(3600));
}

/// The kernel asks for each name, and what the root is by now.
#[test]
fn nor_does_one_that_is_asked_for_each_name() {
    holds_up_nothing_else(Duration::ZERO);
}
