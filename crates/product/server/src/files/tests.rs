//! The file rows of the reliability list, against a real file system: nothing outside the root is ever opened, nothing but
//! regular files, and nothing blocks.

use super::root::{Found, OpenError, Root};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

struct Tree {
    folder: tempfile::TempDir,
}

impl Tree {
    /// `root/` with a few files, and `secret` beside it.
    fn new() -> Tree {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree { folder };
        std::fs::create_dir_all(tree.path("root/folder/deep")).unwrap();
        std::fs::write(tree.path("secret"), "secret").unwrap();
        std::fs::write(tree.path("root/file"), "file").unwrap();
        std::fs::write(tree.path("root/folder/inner"), "inner").unwrap();
        tree
    }

    fn path(&self, below: &str) -> std::path::PathBuf {
        self.folder.path().join(below)
    }

    fn roots(&self) -> [Root; 2] {
        let root = Root::open(&self.path("root")).unwrap();
        [root.clone(), root.without_openat2()]
    }
}

fn read(root: &Root, path: &str) -> Result<String, OpenError> {
    match root.find(path.as_bytes())? {
        Found::File(file, _) => Ok(std::io::read_to_string(std::fs::File::from(file)).unwrap()),
        Found::Folder => Ok("(folder)".to_string()),
    }
}

#[test]
fn files_and_folders() {
    let tree = Tree::new();
    for root in tree.roots() {
        assert_eq!(read(&root, "file").as_deref(), Ok("file"));
        assert_eq!(read(&root, "folder/inner").as_deref(), Ok("inner"));
        assert_eq!(read(&root, "folder/deep").as_deref(), Ok("(folder)"));
        assert_eq!(read(&root, "").as_deref(), Ok("(folder)"));
        assert_eq!(read(&root, "absent"), Err(OpenError::Absent));
        assert_eq!(read(&root, "file/inner"), Err(OpenError::Absent));
        let long_name = "n".repeat(256);
        assert_eq!(read(&root, &long_name), Err(OpenError::Absent));
        assert_eq!(read(&root, &"folder/".repeat(580)[..4_059]), Err(OpenError::Absent));
    }
}

/// Even if a path with dot segments or an absolute one came this far, the kernel would refuse it.
#[test]
fn the_second_wall_stands_without_the_first() {
    let tree = Tree::new();
    let [root, _] = tree.roots();
    let absolute = tree.path("secret");
    for path in ["../secret", "folder/../../secret", "..", absolute.to_str().unwrap(), "/", "/etc/passwd"] {
        assert_eq!(read(&root, path), Err(OpenError::Absent), "{path}");
    }
}

#[test]
fn symbolic_links_inside_are_followed_and_outside_never() {
    let tree = Tree::new();
    symlink("folder/inner", tree.path("root/inside")).unwrap();
    symlink("../file", tree.path("root/folder/up")).unwrap();
    symlink("deep", tree.path("root/folder/link")).unwrap();
    symlink("../secret", tree.path("root/outside")).unwrap();
    symlink("..", tree.path("root/parent")).unwrap();
    symlink(tree.path("secret"), tree.path("root/absolute")).unwrap();
    symlink(tree.path("root/file"), tree.path("root/absolute_inside")).unwrap();
    symlink("loop", tree.path("root/loop")).unwrap();
    symlink("folder/../../root/file", tree.path("root/out_and_in")).unwrap();
    symlink("/proc/self/environ", tree.path("root/environ")).unwrap();
    let [kernel, walk] = tree.roots();
    assert_eq!(read(&kernel, "inside").as_deref(), Ok("inner"));
    assert_eq!(read(&kernel, "folder/up").as_deref(), Ok("file"));
    assert_eq!(read(&kernel, "folder/link").as_deref(), Ok("(folder)"));
    for root in [&kernel, &walk] {
        for path in [
            "outside",
            "parent/secret",
            "parent",
            "absolute",
            "absolute_inside",
            "loop",
            "loop/x",
            "out_and_in",
            "environ",
        ] {
            assert_eq!(read(root, path), Err(OpenError::Absent), "{path}");
        }
    }
    assert_eq!(read(&walk, "inside"), Err(OpenError::Absent), "without openat2 no link is followed");
}

/// A folder that keeps turning into a link to the outside must never yield what is outside.
#[test]
fn a_swap_between_look_and_open_gains_nothing() {
    let tree = Tree::new();
    std::fs::create_dir_all(tree.path("outer/deep")).unwrap();
    std::fs::write(tree.path("outer/deep/prize"), "secret").unwrap();
    std::fs::write(tree.path("root/folder/deep/prize"), "public").unwrap();
    symlink("../outer", tree.path("root/link")).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (folder, link) = (tree.path("root/folder"), tree.path("root/link"));
            while !done.load(Ordering::Relaxed) {
                let cwd = rustix::fs::CWD;
                rustix::fs::renameat_with(cwd, &folder, cwd, &link, rustix::fs::RenameFlags::EXCHANGE)
                    .unwrap();
            }
        });
        let roots = tree.roots();
        let mut read_it = 0;
        for turn in 0..20_000 {
            match read(&roots[turn % 2], "folder/deep/prize") {
                Ok(content) => {
                    assert_eq!(content, "public");
                    read_it += 1;
                }
                Err(error) => assert!(matches!(error, OpenError::Absent | OpenError::Exhausted), "{error:?}"),
            }
        }
        done.store(true, Ordering::Relaxed);
        assert!(read_it > 0);
    });
}

#[test]
fn only_regular_files_and_without_waiting() {
    let tree = Tree::new();
    let fifo = tree.path("root/fifo");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(tree.path("root/socket")).unwrap();
    for root in tree.roots() {
        assert_eq!(read(&root, "fifo"), Err(OpenError::Absent));
        assert_eq!(read(&root, "socket"), Err(OpenError::Absent));
    }
}

/// A server of `/` still does not serve the kernel's own file systems and devices.
#[test]
fn kernel_files_are_no_files() {
    let root = Root::open(Path::new("/")).unwrap();
    for path in [
        "proc/self/environ",
        "proc/version",
        "proc/self/root/etc/passwd",
        "sys/kernel/notes",
        "dev/null",
        "dev/zero",
    ] {
        assert_eq!(read(&root, path), Err(OpenError::Absent), "{path}");
    }
}

#[test]
fn names_are_bytes() {
    let tree = Tree::new();
    let name = std::ffi::OsStr::from_bytes(b"root/\xff\xfe");
    std::fs::write(tree.folder.path().join(name), "bytes").unwrap();
    std::fs::write(tree.path("root/caf\u{e9}"), "composed").unwrap();
    for root in tree.roots() {
        let Ok(Found::File(..)) = root.find(b"\xff\xfe") else { panic!("a name that is not UTF-8") };
        assert_eq!(read(&root, "caf\u{e9}").as_deref(), Ok("composed"));
        for twin in ["cafe\u{301}", "CAF\u{c9}", "file.", "file ", "FILE", "\u{ff0e}\u{ff0e}/secret"] {
            assert_eq!(read(&root, twin), Err(OpenError::Absent), "{twin}");
        }
    }
}

#[test]
fn a_root_that_cannot_be_served_says_why() {
    let tree = Tree::new();
    let text = |path: &str| Root::open(&tree.path(path)).unwrap_err().to_string();
    assert!(text("absent").contains("does not exist: create it"), "{}", text("absent"));
    assert!(text("root/file").contains("is not a folder"), "{}", text("root/file"));
    assert!(!text("absent").contains('\n'));
}
