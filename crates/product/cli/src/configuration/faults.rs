//! Faulty configurations: each is answered by its place, the reason and the cure.

mod access;
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

use By::{Meaning, Schema, Syntax};

/// A file, who notices, the line and column, the reason and the cure.
type Fault = (&'static str, By, &'static str, &'static str);

const OF_FLAGS: &[Fault] = &[
    ("listen 443\n", Syntax, "1:8", "this is not TOML: key with no value, expected `=`"),
    ("http = '1,2\n", Syntax, "1:12", "this is not TOML: invalid literal string"),
    ("listen = 1\nlisten = 2\n", Syntax, "2:1", "duplicate key"),
    ("listen = [1, 2\n", Syntax, "1:15", "unclosed array"),
    ("lisen = 443\n", Schema, "1:1", "there is no key \"lisen\": did you mean \"listen\"?"),
    ("# port\nListen = 443\n", Schema, "2:1", "did you mean \"listen\"?"),
    ("access_log = 'off'\n", Schema, "1:1", "did you mean \"access-log\"?"),
    ("listen = []\n", Meaning, "1:10", "\"listen\" takes at least one value: leave it out"),
    ("zebra = 1\n", Schema, "1:1", "there is no key \"zebra\": tercel config schema has all keys"),
    ("ack-every = 3\n", Schema, "1:1", "there is no key \"ack-every\""),
    (
        "[listen]\nport = 443\n",
        Schema,
        "1:1",
        "\"listen\" takes [ADDRESS:]PORT, or an array of such, not a table",
    ),
    ("dot-files = 1\n", Schema, "1:13", "\"dot-files\" takes true or false, not the number 1"),
    ("no-listing = 'yes'\n", Schema, "1:14", "\"no-listing\" takes true or false, not a string"),
    ("workers = [1, 2]\n", Schema, "1:11", "\"workers\" takes N|auto, not an array"),
    ("workers = true\n", Schema, "1:11", "\"workers\" takes N|auto, not true"),
    ("retry = 'allways'\n", Schema, "1:9", "\"retry\" takes no \"allways\": did you mean \"always\"?"),
    ("steering = 'magic'\n", Schema, "1:12", "give \"auto\", \"ebpf\", \"classic\" or \"hand-off\""),
    ("listen = ['localhost:1', 'nowhere:x']\n", Meaning, "1:26", "\"listen\": write a port such as 4433"),
    ("workers = 0\n", Meaning, "1:11", "\"workers\": from 1 to 255, or auto for one on each core"),
    ("max-connections = 0\n", Meaning, "1:19", "\"max-connections\": give a number of at least 1"),
    ("memory = 512\n", Meaning, "1:10", "\"memory\": give at least 1MiB"),
    ("memory = 'lots'\n", Meaning, "1:10", "\"memory\": give a size such as 512MiB"),
    ("drain-timeout = -1\n", Meaning, "1:17", "\"drain-timeout\": "),
    ("drain-timeout = '5s'\n", Meaning, "1:17", "\"drain-timeout\": invalid digit"),
    ("mtu-ceiling = 100\n", Meaning, "1:15", "100 is not in 1200..=65507"),
    ("http = '4'\n", Meaning, "1:8", "\"http\": "),
    ("prefer-quic-version = 3\n", Meaning, "1:23", "3 is not in 1..=2"),
    ("preferred-address = 'here'\n", Meaning, "1:21", "invalid IP address"),
    ("qlog-share = 1.5\n", Meaning, "1:14", "such as 0.01"),
    ("identity = 'a.org'\n", Meaning, "1:12", "write NAME=CERT,KEY"),
    ("pin = 'all'\n", Meaning, "1:7", "\"pin\": "),
    ("listen = 1\ncert = 'c.pem'\n", Meaning, "2:1", "\"cert\" is no use without \"key\""),
    ("listen = 1\nkey = 'c.pem'\n", Meaning, "2:1", "\"key\" is no use without \"cert\""),
    (
        "spin = 1\ncert = 'c'\nkey = 'k'\n",
        Meaning,
        "2:1",
        "/conf/c does not exist: give \"cert\" the path of a PEM file",
    ),
    (
        "spin = 1\nroot = 'nowhere'\n",
        Meaning,
        "2:1",
        "the root folder /conf/nowhere does not exist: create it",
    ),
    ("spin = 1\ninterface = 'eth0'\n", Meaning, "2:1", "add \"datapath\" xdp, or leave it out"),
    (
        "proxy-protocol-from = ['10.0.0.0/8', '10.1.0.0/8']\n",
        Meaning,
        "1:38",
        "\"proxy-protocol-from\": write an address such as 192.0.2.7, or a network such as 10.0.0.0/8",
    ),
    (
        "proxy-protocol-from = true\n",
        Schema,
        "1:23",
        "\"proxy-protocol-from\" takes NETWORK, or an array of such, not true",
    ),
    ("proxy-protocol = '10.0.0.0/8'\n", Schema, "1:1", "did you mean \"proxy-protocol-from\"?"),
    (
        "http = '3'\nproxy-protocol-from = '10.0.0.0/8'\n",
        Meaning,
        "2:1",
        "\"proxy-protocol-from\" goes with \"http\" 1 or 2: HTTP/3 has no such header",
    ),
    ("admin = 'example.org:9433'\n", Meaning, "1:9", "\"admin\": write a port such as 9433, ADDRESS:PORT"),
    ("admin = 'unix:'\n", Meaning, "1:9", "or unix:PATH such as unix:/run/tercel/admin.sock"),
    ("admin = true\n", Schema, "1:9", "\"admin\" takes [ADDRESS:]PORT, not true"),
    (
        "access-log-format = 'jsn'\n",
        Schema,
        "1:21",
        "\"access-log-format\" takes no \"jsn\": did you mean \"json\"?",
    ),
    (
        "access-log-format = 'json'\naccess-log-fields = ['time', 'size']\n",
        Schema,
        "2:30",
        "\"access-log-fields\" takes no \"size\"",
    ),
    (
        "spin = 1\naccess-log-fields = 'time'\n",
        Meaning,
        "2:1",
        "\"access-log-fields\" goes with \"access-log-format\" json",
    ),
    ("access-log-sample = 0\n", Meaning, "1:21", "give a share above 0 and up to 1, such as 0.1"),
    ("log-level = 'warn'\n", Schema, "1:13", "\"log-level\" takes no \"warn\": did you mean \"warning\"?"),
    ("spin = 1\nuser = 'no-such-user'\n", Meaning, "2:1", "there is no such user; make one: useradd -r"),
    ("spin = 1\ngroup = 'no-such-group'\n", Meaning, "2:1", "there is no such group; make one: groupadd -r"),
    (
        "datapath = 'xdp'\nreceive-buffer = 9000\n",
        Meaning,
        "2:1",
        "\"receive-buffer\" goes with \"datapath\" gso",
    ),
];

/// What is wrong with the table of faults, if each file is read by `read`.
fn untold(faults: &[Fault], read: impl Fn(&str) -> File) -> String {
    let schema = schema("", &keys());
    let wrong = faults.iter().filter_map(|(text, by, place, what)| {
        let told = read(text).check().expect_err(text);
        let is_told = told.starts_with(&format!("tercel.toml:{place}: ")) && told.contains(what);
        let is_seen = *by == Syntax || fits(&schema, &as_json(text)) == (*by == Meaning);
        (!is_told || !is_seen).then(|| format!("{place} {what}, seen {is_seen}:\n{text}\n{told}"))
    });
    wrong.collect::<Vec<_>>().join("\n")
}

/// Deleted, an operator could be left to find a mistake by trial, and an editor be silent about what tercel refuses.
#[test]
fn each_fault_is_told_with_its_place_its_reason_and_a_cure() {
    assert_eq!(untold(OF_FLAGS, file), "");
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
    assert_eq!(untold(&[sites::OF_SITES, access::OF_ACCESS, proxies::OF_PROXIES].concat(), read), "");
    assert!(OF_FLAGS.len() + sites::OF_SITES.len() + access::OF_ACCESS.len() >= 100);
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
