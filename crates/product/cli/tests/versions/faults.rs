//! The faulty configurations of the unit tests, each given to `tercel serve`: it says where, why and what to do, and nothing starts.

use crate::configuration::{folder, run};
use std::collections::BTreeSet;
use std::path::Path;

#[path = "../../src/configuration/faults/access.rs"]
mod access;
#[path = "../../src/configuration/faults/flags.rs"]
mod flags;
#[path = "../../src/configuration/faults/operators.rs"]
mod operators;
#[path = "../../src/configuration/faults/proxies.rs"]
mod proxies;
#[path = "../../src/configuration/faults/sites.rs"]
mod sites;

/// Who notices a fault, which concerns the unit tests alone.
#[derive(Clone, Copy)]
enum By {
    Syntax,
    Schema,
    Meaning,
}

/// A file, who notices, the line and column, the reason and the cure.
type Fault = (&'static str, By, &'static str, &'static str);

/// All files in a folder, with their lengths.
fn files(folder: &Path) -> BTreeSet<(String, u64)> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let kind = entry.metadata().expect("metadata");
        found.insert((entry.path().display().to_string(), kind.len()));
        if kind.is_dir() {
            found.extend(files(&entry.path()));
        }
    }
    found
}

/// Deleted, a mistake could be told by the check alone, and a server begin with the half of a file that is right.
#[test]
fn nothing_starts_from_any_of_the_faulty_files() {
    let place = folder(&[
        ("site/index.html", ""),
        ("users", "alice:$argon2id$v=19$m=16,t=1,p=1$BwcHBwcHBwc$AAAAAAAAAAAAAAAAAAAAAA\nbob\n"),
    ]);
    let write = |name: &str, text: &str| std::fs::write(place.path().join(name), text).expect("written");
    for name in ["one", "two"] {
        let made = rcgen::generate_simple_self_signed(vec!["a.org".to_owned()]).expect("a certificate");
        write(&format!("{name}.crt"), &made.cert.pem());
        write(&format!("{name}.key"), &made.signing_key.serialize_pem());
    }
    let folder = place.path().display().to_string();
    let lists =
        [flags::OF_FLAGS, sites::OF_SITES, access::OF_ACCESS, proxies::OF_PROXIES, operators::OF_OPERATORS];
    let faults = lists.concat();
    let distinct: BTreeSet<&str> = faults.iter().map(|(text, ..)| *text).collect();
    assert!(
        distinct.len() >= 200 && distinct.len() == faults.len(),
        "{} of {}",
        distinct.len(),
        faults.len()
    );
    let mut wrong = Vec::new();
    for (text, by, at, what) in faults {
        let _: By = by;
        write("tercel.toml", text);
        let before = files(place.path());
        let output = run(place.path(), &["serve", "--config", "tercel.toml"]);
        let said = String::from_utf8_lossy(&output.stderr).replace(&folder, "/conf");
        let is_told = said.starts_with(&format!("tercel: tercel.toml:{at}: ")) && said.contains(what);
        let is_nothing = output.status.code() == Some(1) && files(place.path()) == before;
        if !is_told || !is_nothing || !output.stdout.is_empty() {
            wrong.push(format!("{at} {what}, {:?}:\n{text}\n{said}", output.status));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Deleted, an operator could look for a character that no editor shows, or hear of an error number.
#[test]
fn what_cannot_be_read_is_told_with_its_place_and_a_cure() {
    let place = folder(&[("site/index.html", "")]);
    let told = |name: &str| {
        let output = run(place.path(), &["serve", "--config", name]);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    std::fs::write(place.path().join("latin.toml"), b"spin = 1\n# caf\xe9\nroot = 'site'\n")
        .expect("written");
    let said = told("latin.toml");
    assert!(
        said.starts_with(
            "tercel: latin.toml:2:6: from here on this is no text in UTF-8: save the file as such\n"
        ),
        "{said}"
    );
    assert_eq!(
        told("site"),
        "tercel: cannot read the configuration site: it is a folder; name the file in it\n"
    );
    assert_eq!(told("none"), "tercel: cannot read the configuration none: there is no such file\n");
    assert_eq!(files(place.path()).len(), 3);
}
