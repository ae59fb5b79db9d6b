//! Downloads that are interrupted in every way and continued, or rightly not continued.

#![expect(clippy::single_range_in_vec_init, reason = "lists of one range are what is compared")]

use super::*;

const URL: &str = "https://example.org/file";

fn version(etag: &str, size: u64) -> Version {
    Version { etag: Some(format!("\"{etag}\"")), last_modified: None, size: Some(size) }
}

fn content(range: Range<u64>) -> Vec<u8> {
    range.map(|offset| (offset % 251) as u8).collect()
}

struct TestFolder {
    folder: tempfile::TempDir,
}

impl TestFolder {
    fn new() -> TestFolder {
        TestFolder { folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("file")
    }

    fn part(&self) -> PathBuf {
        self.folder.path().join("file.part")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("file.part.state")
    }

    fn open(&self) -> Result<PartFile, GetError> {
        PartFile::open(&self.file(), URL, Resume::Allowed)
    }

    /// An attempt that received `ranges` of a file of 1,000,000 bytes and was then dropped.
    fn attempt(&self, ranges: &[Range<u64>]) {
        let mut part = self.open().unwrap();
        part.on_version(&version("a", 1_000_000)).unwrap();
        ranges.iter().for_each(|range| receive(&mut part, range.clone()));
    }
}

fn receive(part: &mut PartFile, range: Range<u64>) {
    let mut run = Run::new(range.start);
    for packet in content(range).chunks(1_427) {
        part.append(&mut run, packet).unwrap();
    }
    part.flush(&mut run).unwrap();
}

#[test]
fn bytes_in_any_order_become_the_file() {
    let folder = TestFolder::new();
    std::fs::write(folder.file(), "the old one").unwrap();
    let mut part = folder.open().unwrap();
    assert_eq!((part.validator(), part.missing()), (None, vec![0..u64::MAX]));
    part.on_version(&version("a", 1_000_000)).unwrap();
    receive(&mut part, 600_000..1_000_000);
    receive(&mut part, 100_000..600_000);
    assert_eq!((part.missing(), part.received()), (vec![0..100_000], 900_000));
    assert_eq!(
        std::fs::read(folder.file()).unwrap(),
        b"the old one",
        "untouched until the new one is complete"
    );
    receive(&mut part, 0..100_000);
    assert_eq!(part.finish().unwrap(), folder.file());
    assert!(std::fs::read(folder.file()).unwrap() == content(0..1_000_000));
    assert!(!folder.part().exists() && !folder.state().exists());
}

#[test]
fn an_interrupted_download_goes_on() {
    let folder = TestFolder::new();
    folder.attempt(&[0..300_000, 500_000..600_000]);
    let mut part = folder.open().unwrap();
    assert_eq!(part.validator(), Some("\"a\""));
    assert_eq!(part.missing(), [300_000..500_000, 600_000..1_000_000]);
    assert_eq!(part.on_version(&version("b", 1_000_000)).unwrap_err().exit_code(), 33);
    part.on_version(&version("a", 1_000_000)).unwrap();
    part.missing().into_iter().for_each(|range| receive(&mut part, range));
    part.finish().unwrap();
    assert!(std::fs::read(folder.file()).unwrap() == content(0..1_000_000));
}

/// A kill leaves the last checkpoint: what it names is there, what came later is fetched again.
#[test]
fn a_kill_loses_nothing_older_than_the_checkpoint() {
    let folder = TestFolder::new();
    let mut part = folder.open().unwrap();
    part.on_version(&version("a", 1_000_000)).unwrap();
    receive(&mut part, 0..400_000);
    part.checkpoint().unwrap();
    let state = std::fs::read(folder.state()).unwrap();
    receive(&mut part, 400_000..500_000);
    drop(part);
    std::fs::write(folder.state(), state).unwrap();
    assert_eq!(folder.open().unwrap().missing(), [400_000..1_000_000]);
}

#[test]
fn too_little_is_kept_and_told() {
    let folder = TestFolder::new();
    let mut part = folder.open().unwrap();
    part.on_version(&version("a", 1_000_000)).unwrap();
    receive(&mut part, 0..999_999);
    assert_eq!(part.finish().unwrap_err().exit_code(), 18);
    assert!(!folder.file().exists());
    assert_eq!(folder.open().unwrap().missing(), [999_999..1_000_000]);
}

#[test]
fn another_version_starts_over() {
    let folder = TestFolder::new();
    folder.attempt(&[0..300_000]);
    let mut part = folder.open().unwrap();
    part.restart(version("b", 10)).unwrap();
    assert_eq!((part.validator(), part.missing()), (None, vec![0..10]));
    receive(&mut part, 0..10);
    part.finish().unwrap();
    assert_eq!(std::fs::read(folder.file()).unwrap(), content(0..10));
}

#[test]
fn what_cannot_be_continued_safely_starts_over() {
    let weak = Version { etag: Some("W/\"a\"".into()), last_modified: Some("today".into()), size: Some(100) };
    let silent = Version { etag: None, last_modified: None, size: Some(100) };
    for version in [weak, silent] {
        let folder = TestFolder::new();
        let mut part = folder.open().unwrap();
        part.on_version(&version).unwrap();
        receive(&mut part, 0..50);
        drop(part);
        assert_eq!(folder.open().unwrap().missing(), [0..u64::MAX]);
    }
}

/// After a crash the file system may have kept the state and not the bytes.
#[test]
fn a_state_from_before_a_crash_counts_only_if_it_was_synced() {
    let folder = TestFolder::new();
    folder.attempt(&[0..300_000]);
    let text = std::fs::read_to_string(folder.state()).unwrap();
    assert!(text.contains("\"boot\":null"), "dropping syncs: {text}");
    let crashed = text.replace("\"boot\":null", "\"boot\":\"another boot\"");
    std::fs::write(folder.state(), crashed).unwrap();
    assert_eq!(folder.open().unwrap().received(), 0);

    let folder = TestFolder::new();
    folder.attempt(&[0..300_000]);
    File::options().write(true).open(folder.part()).unwrap().set_len(200_000).unwrap();
    assert_eq!(folder.open().unwrap().received(), 0, "bytes that are named and not there");
}

#[test]
fn what_is_not_ours_is_not_overwritten() {
    for (part, state) in
        [("data", None), ("data", Some("{}")), ("data", Some("garbage")), ("data", Some("[1,2"))]
    {
        let folder = TestFolder::new();
        std::fs::write(folder.part(), part).unwrap();
        state.into_iter().for_each(|state| std::fs::write(folder.state(), state).unwrap());
        let error = folder.open().unwrap_err();
        assert!(
            error.exit_code() == 2 && error.to_string().contains("no unfinished download of ours"),
            "{error}"
        );
        assert_eq!(std::fs::read(folder.part()).unwrap(), b"data");
        PartFile::open(&folder.file(), URL, Resume::Never).unwrap();
    }
    let folder = TestFolder::new();
    folder.attempt(&[0..10]);
    let error = PartFile::open(&folder.file(), "https://other.example/", Resume::Allowed).unwrap_err();
    assert!(error.to_string().contains("unfinished download of https://example.org/file"), "{error}");
    assert_eq!(folder.open().unwrap().received(), 10);
}

#[test]
fn one_download_at_a_time() {
    let folder = TestFolder::new();
    let first = folder.open().unwrap();
    let error = folder.open().unwrap_err();
    assert!(error.exit_code() == 2 && error.to_string().contains("is running"), "{error}");
    drop(first);
    folder.open().unwrap();
}

#[test]
fn an_empty_file_and_one_of_unknown_length() {
    let folder = TestFolder::new();
    let mut part = folder.open().unwrap();
    part.on_version(&version("a", 0)).unwrap();
    part.finish().unwrap();
    assert_eq!(std::fs::read(folder.file()).unwrap(), b"");
    let mut part = folder.open().unwrap();
    receive(&mut part, 0..10);
    part.finish().unwrap();
    assert_eq!(std::fs::read(folder.file()).unwrap(), content(0..10));
}

#[test]
fn a_folder_that_does_not_exist_is_told() {
    let error = PartFile::open(Path::new("/absent/folder/file"), URL, Resume::Allowed).unwrap_err();
    assert!(error.exit_code() == 23 && error.to_string().contains("its folder does not exist"), "{error}");
}
