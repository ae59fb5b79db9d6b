//! Faulty configurations: each is answered by its place, the reason and the cure. `tests/versions/faults.rs` has a server started from each.

mod access;
mod flags;
mod operators;
mod proxies;
mod sites;

use super::file::{File, keys};
use super::tests::{as_json, file, fits};
use config::schema::schema;

/// Who notices a fault: an editor by the schema too, or tercel alone.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Syntax,
    Schema,
    Meaning,
}

/// A file, who notices, the line and column, the reason and the cure.
type Fault = (&'static str, By, &'static str, &'static str);

/// What is wrong with the table of faults, if each file is read by `read`.
fn untold(faults: &[Fault], read: impl Fn(&str) -> File) -> String {
    let schema = schema("", &keys());
    let wrong = faults.iter().filter_map(|(text, by, place, what)| {
        let told = read(text).check().expect_err(text);
        let is_told = told.starts_with(&format!("tercel.toml:{place}: ")) && told.contains(what);
        let is_seen = *by == By::Syntax || fits(&schema, &as_json(text)) == (*by == By::Meaning);
        (!is_told || !is_seen).then(|| format!("{place} {what}, seen {is_seen}:\n{text}\n{told}"))
    });
    wrong.collect::<Vec<_>>().join("\n")
}

/// Deleted, an operator could be left to find a mistake by trial, and an editor be silent about what tercel refuses.
#[test]
fn each_fault_is_told_with_its_place_its_reason_and_a_cure() {
    assert_eq!(untold(flags::OF_FLAGS, file), "");
}

#[test]
fn each_fault_of_a_site_is_told_with_its_place_its_reason_and_a_cure() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    std::fs::create_dir(folder.path().join("site")).unwrap();
    write("site/index.html", "");
    for name in ["one", "two"] {
        let made = rcgen::generate_simple_self_signed(vec!["a.org".to_owned()]).unwrap();
        write(&format!("{name}.crt"), &made.cert.pem());
        write(&format!("{name}.key"), &made.signing_key.serialize_pem());
    }
    let read = |text: &str| File::of("tercel.toml".to_owned(), folder.path(), text.to_owned());
    write("users", "alice:$argon2id$v=19$m=16,t=1,p=1$BwcHBwcHBwc$AAAAAAAAAAAAAAAAAAAAAA\nbob\n");
    let all = [sites::OF_SITES, access::OF_ACCESS, proxies::OF_PROXIES, operators::OF_OPERATORS];
    assert_eq!(untold(&all.concat(), read), "");
}

/// Deleted, a slip of the hand could end the program instead of being told.
#[test]
fn whatever_is_lost_from_a_file_is_told_or_right() {
    let bytes: Vec<char> = super::tests::SITES.chars().collect();
    for at in 0..bytes.len() {
        for instead in [None, Some('='), Some('"'), Some('é')] {
            let text: String =
                bytes.iter().take(at).chain(&instead).chain(bytes.iter().skip(at + 1)).collect();
            let told = file(&text).check().err().unwrap_or_else(|| "tercel.toml:".to_owned());
            assert!(told.starts_with("tercel.toml:"), "{told}");
        }
    }
}

#[test]
fn all_faults_are_told_at_once() {
    let text = "lisen = 1\nworkers = 0\nmemory = 1\nretry = 'x'\nlisten = ['a', 1, 'b']\n";
    let told = file(text).check().unwrap_err();
    let places: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("tercel.toml:")).collect();
    let places: Vec<&str> = places.iter().filter_map(|line| line.split(": ").next()).collect();
    assert_eq!(places, ["1:1", "2:11", "3:10", "4:9", "5:11", "5:19"], "{told}");
}
