//! `tercel serve --config`, `tercel check` and `tercel config`, as operators run them.

use crate::server::{PROGRAM, Server};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

pub(crate) fn run(folder: &Path, words: &[&str]) -> Output {
    // Whatever happens, no test waits for longer than this.
    let mut command = Command::new("timeout");
    command.args(["--signal=KILL", "60", PROGRAM]).args(words).current_dir(folder);
    command.env("XDG_DATA_HOME", folder.join("data")).stdin(Stdio::null()).output().expect("it runs")
}

/// A folder with these files.
pub(crate) fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        std::fs::write(path, text).expect("written");
    }
    folder
}

/// Deleted, a file with a mistake could start a server that does something else than its operator wants.
#[test]
fn nothing_starts_of_a_faulty_file() {
    let place = folder(&[("bad.toml", "listen = 'localhost:0'\nready-file = 'ready'\naccess-lok = 'log'\n")]);
    for words in
        [&["serve", "--config", "bad.toml"][..], &["check", "bad.toml"], &["config", "show", "bad.toml"]]
    {
        let output = run(place.path(), words);
        let said = String::from_utf8_lossy(&output.stderr);
        let expected = "tercel: bad.toml:3:1: there is no key \"access-lok\": did you mean \"access-log\"?\n 3 | access-lok = 'log'\n   | ^^^^^^^^^^\n";
        assert_eq!((said.as_ref(), output.status.code()), (expected, Some(1)), "{words:?}");
        assert!(output.stdout.is_empty());
    }
    let mut left: Vec<_> = std::fs::read_dir(place.path()).expect("a folder").collect();
    assert_eq!(left.len(), 1, "{:?}", left.pop());
}

#[test]
fn a_file_is_served_with_its_folder_as_the_place_of_its_paths() {
    let place = folder(&[
        ("conf/tercel.toml", "root = '../site'\nno-listing = true\nworkers = 2\n"),
        ("site/a.txt", "hello"),
    ]);
    let file = place.path().join("conf/tercel.toml");
    let checked = run(place.path(), &["check", "conf/tercel.toml"]);
    assert!(
        checked.status.success() && checked.stdout.ends_with(b"tercel.toml: nothing is wrong\n"),
        "{checked:?}"
    );
    // What is typed wins: one worker instead of two.
    let words = ["--config", file.to_str().expect("text"), "--workers", "1"];
    let server = Server::start_without_root(&words);
    assert_eq!(server.ready["workers"], 1);
    let url = |path: &str| format!("https://localhost:{}/{path}", server.port);
    let get = |path: &str| run(place.path(), &["get", "--insecure", "--output", "-", &url(path)]);
    assert_eq!(get("a.txt").stdout, b"hello");
    assert!(!get("").status.success(), "no listing");
    server.stop();
}

#[test]
fn what_holds_is_shown_and_the_schema_is_json() {
    let place = folder(&[("t.toml", "listen = 8443\n")]);
    let shown = run(place.path(), &["config", "show", "t.toml"]);
    let text = String::from_utf8_lossy(&shown.stdout);
    assert!(text.contains("\nlisten = 8443\n") && text.contains("\nidle-timeout = 30\n"), "{text}");
    let json = run(place.path(), &["config", "show", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!(json["listen"], 4433);
    let schema = run(place.path(), &["config", "schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&schema.stdout).expect("JSON");
    assert_eq!(schema["properties"]["retry"]["enum"][1], "always");
}

/// Deleted, a server could begin with its first site and end at the second, or leave files behind.
#[test]
fn nothing_starts_half() {
    const BEGINNING: &str = "listen = 'localhost:0'\nready-file = 'ready'\nstate-dir = 'state'\naccess-log = 'log'\n\
        [[site]]\nnames = 'a.org'\nroot = 'site'\n";
    for (end, place) in [
        ("[[site]\n", "8:8"),
        ("[[site]]\nnames = 'b.org'\nrot = 'site'\n", "10:1"),
        ("[[site]]\nnames = 'b.org'\nroot = 'nowhere'\n", "10:8"),
        ("[[site]]\nnames = 'a.org'\nroot = 'site'\n", "9:9"),
        ("[[site]]\nnames = 'b.org'\nroot = 'site'\n[[site.certificate]]\ncert = 'c'\nkey = 'k'\n", "11:1"),
        ("[[site.route]]\npath = '/'\nredirect = { to = 'b' }\n", "10:19"),
    ] {
        let text = format!("{BEGINNING}{end}");
        let folder = folder(&[("t.toml", &text), ("site/index.html", "")]);
        let output = run(folder.path(), &["serve", "--config", "t.toml"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.starts_with(&format!("tercel: t.toml:{place}: ")), "{end}{said}");
        let mut left: Vec<_> = std::fs::read_dir(folder.path())
            .expect("a folder")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        left.sort();
        assert_eq!(left, ["site", "t.toml"], "{end}");
    }
}
