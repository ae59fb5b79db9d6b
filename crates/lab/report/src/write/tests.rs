//! That a run survives the disk, and that no other run is lost.

use super::*;
use crate::sample;

#[test]
fn a_run_comes_back_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let directory = fresh(folder.path(), "2026-11-21T18:30:05Z");
    assert!(directory.ends_with("2026-11-21T18-30Z"));
    let run = sample::run();
    write(&run, &directory).unwrap();
    // What is no number is absent, everything else is there.
    assert_eq!(read(&directory).unwrap(), finite(&run));
    assert_ne!(finite(&run), run);
    assert_eq!(read(&directory.join(RESULTS)).unwrap().began, run.began);
    let mut names: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["e1-2.svg", "e1-3.svg", "e1-4-1.svg", "e1-4-2.svg", "report.html", "report.md", "results.json"]
    );
    assert!(fresh(folder.path(), "2026-11-21T18:30:59Z").ends_with("2026-11-21T18-30Z-2"));
}

#[test]
fn another_run_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = sample::run();
    prepare(folder.path()).unwrap();
    write(&run, folder.path()).unwrap();
    assert!(prepare(folder.path()).is_err(), "told before anything is measured");
    prepare(&folder.path().join("deeper/down")).unwrap();
    fs::remove_dir_all(folder.path().join("deeper")).unwrap();
    run.studies.clear();
    write(&run, folder.path()).unwrap();
    assert!(read(folder.path()).unwrap().studies.is_empty(), "the same run is written again");
    run.began = "2026-11-21T19:00:00Z".to_owned();
    let error = write(&run, folder.path()).unwrap_err();
    assert!(error.to_string().ends_with("is not empty: name another directory"), "{error}");
    fs::remove_file(folder.path().join(RESULTS)).unwrap();
    assert!(write(&run, folder.path()).is_err(), "files that are no run");
}

#[test]
fn what_is_no_result_is_called_so() {
    let folder = tempfile::tempdir().unwrap();
    let missing = read(folder.path()).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read ") && missing.contains(RESULTS), "{missing}");
    fs::write(folder.path().join(RESULTS), "{}").unwrap();
    let strange = read(folder.path()).unwrap_err().to_string();
    assert!(strange.contains("is no result of tercel bench"), "{strange}");
}
