//! What holds the keys, the flags and the schema together.

use super::file::{File, keys};
use super::{command, expand, flags, words};
use clap::{Arg, ArgAction};
use config::print::{to_toml, whole_json};
use config::read::read;
use config::schema::schema;
use config::shape::{Key, Kind};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;

/// A file with this text, in the folder `/conf`.
pub(super) fn file(text: &str) -> File {
    File::of("tercel.toml".to_owned(), Path::new("/conf"), text.to_owned())
}

/// A value that the flag takes, as TOML.
fn sample(flag: &Arg) -> &'static str {
    match flags::name(flag) {
        "client-auth" => "'optional'",
        "tickets" => "4",
        "ticket-lifetime" => "3600",
        "root" | "client-ca" | "cert" | "key" | "state-dir" | "ticket-keys" | "ready-file"
        | "summary-file" | "access-log" | "qlog" => "'some/path'",
        "access-log-format" => "'json'",
        "access-log-fields" => "['time', 'status']",
        "access-log-sample" => "0.5",
        "log-level" => "'warning'",
        "user" | "group" => "'root'",
        "admin" => "'unix:admin.sock'",
        "proxy-protocol-from" => "['10.0.0.0/8', '::1']",
        "identity" => "['a.org=c,k', '*.b.org=c2,k2']",
        "http" => "'1,3'",
        "listen" => "['localhost:443', 8443]",
        "preferred-address" => "['192.0.2.1', '2001:db8::1']",
        "prefer-quic-version" => "2",
        "multipath" => "true",
        "pin" => "'0,2-3'",
        "workers" => "'auto'",
        "retry" => "'always'",
        "memory" | "qlog-size" => "'512MiB'",
        "qlog-share" => "0.25",
        "qlog-when" => "'error,loss=2%'",
        "steering" => "'classic'",
        "datapath" => "'mmsg'",
        "interface" => "'eth0'",
        "xdp-mode" => "'driver'",
        "cipher" => "'aes128'",
        "congestion" => "'bbr'",
        "careful-resume" => "'off'",
        "initial-window" => "32",
        "mtu-ceiling" | "receive-buffer" => "9000",
        _ if matches!(flag.get_action(), ArgAction::SetTrue) => "true",
        _ => "7",
    }
}

/// Fails for a new flag that cannot be a key as it is, and for one without a sample that it takes.
#[test]
fn every_operators_flag_is_a_key_that_reaches_it() {
    let command = command();
    let operators: Vec<&Arg> = flags::operators(&command).collect();
    assert!(operators.len() >= 40, "{}", operators.len());
    let mut text = String::new();
    for flag in &operators {
        let most = flag.get_num_args().map_or(1, |count| count.max_values());
        let is_known =
            matches!(flag.get_action(), ArgAction::Set | ArgAction::SetTrue | ArgAction::Append) && most <= 1;
        assert!(is_known, "--{} is a flag of a new kind: see words.rs", flags::name(flag));
        text.push_str(&format!("{} = {}\n", flags::name(flag), sample(flag)));
    }
    let file = file(&text);
    let words = words::of(&file.table, &command, Path::new("/conf"));
    let faults = words::faults(words.clone(), &[], &command);
    assert!(faults.is_empty(), "{faults:?}");
    let line = words::line(&words, &[]);
    let reached = command.clone().get_matches_from(&line);
    for flag in &operators {
        let source = reached.value_source(flag.get_id().as_str());
        assert_eq!(source, Some(clap::parser::ValueSource::CommandLine), "{}", flags::name(flag));
    }
    for word in ["--listen=localhost:443", "--listen=8443", "--pin=0,2-3", "--multipath", "--dot-files"] {
        assert!(line.contains(&word.into()), "{word}: {line:?}");
    }
    for path in ["/conf/some/path", "--cert=/conf/some/path", "--access-log=/conf/some/path"] {
        assert!(line.contains(&path.into()), "{path}: {line:?}");
    }
    assert!(line.contains(&"--admin=unix:/conf/admin.sock".into()), "{line:?}");
    assert!(line.contains(&"--identity=a.org=/conf/c,/conf/k".into()), "{line:?}");
}

/// Flags for experiments are no keys: no operator needs them, and their names change.
#[test]
fn flags_of_the_laboratory_are_no_keys() {
    let problem = file("ack-every = 3\n").check().unwrap_err();
    assert!(problem.contains("there is no key \"ack-every\""), "{problem}");
    assert!(keys().iter().all(|key| !["config", "help", "help-lab", "without"].contains(&key.name.as_ref())));
}

#[test]
fn what_is_typed_wins_and_switches_that_are_off_are_no_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tercel.toml");
    std::fs::create_dir(folder.path().join("r")).unwrap();
    std::fs::write(
        &path,
        "listen = [1, 4433]\nworkers = 3\nroot = 'r'\ndot-files = false\nspin = 'always'\n",
    )
    .unwrap();
    let typed = |words: &[&str]| -> Vec<OsString> {
        let named = ["serve", "--config", path.to_str().unwrap()];
        named.iter().chain(words).map(Into::into).collect()
    };
    let expanded = |words: &[&str]| {
        let (all, _) = expand(typed(words)).unwrap();
        let added: Vec<String> = all[1..all.len() - words.len() - 2]
            .iter()
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        added
    };
    let root = folder.path().join("r").display().to_string();
    assert_eq!(expanded(&[]), ["--listen=1", "--listen=4433", "--workers=3", &root, "--spin=always"]);
    assert_eq!(expanded(&["--listen", "9", "other", "--spin=4"]), ["--workers=3"]);
    // What the user has typed wrongly is told by the command line itself.
    assert_eq!(expanded(&["--workers", "x"]), ["--listen=1", "--listen=4433", &root, "--spin=always"]);
    assert_eq!(expand(vec!["get".into(), "--config".into()]).unwrap().0.len(), 2);
    assert_eq!(expand(typed(&["--help"])).unwrap().0.len(), 4, "help needs no file");
    let missing = expand(["serve", "--config", "/nowhere/f"].map(Into::into).to_vec()).unwrap_err();
    assert!(missing.contains("/nowhere/f") && missing.contains("there is no such file"), "{missing}");
}

/// Sites with every key.
pub(super) const SITES: &str = "
    [[site]]
    names = ['a.org', '*.a.org']
    root = 'site'
    listing = true
    dot-files = true
    index = ['index.html', 'index.htm']
    try-files = '{path}'
    compress = true
    auth = { realm = 'r', users = { a = 'h' }, users-file = 'u' }
    client-cert = true
    forward-auth = { to = 'unix:s', path = '/', copy = 'a', host = 'h', timeout = 1, tls-ca = 'c', tls-name = 'n', trusted-proxies = '10.0.0.0/8' }
    rate-limit = { requests = 1, per = 'minute', burst = 2, by = 'authorization' }
    headers = { set = { a = 'b' }, add = { c = ['d', 'e'], f = 'g' }, remove = 'etag' }
    hsts = true
    cache-control = 'no-store'
    error-pages = { 404 = '/index.html', 503 = '/index.html' }
    certificate = [{ cert = 'c', key = 'k' }]
    acme = { terms-agreed = true, contact = 'a@b.org', directory = 'https://a/', challenge = 'http-01', key = 'rsa-2048', profile = 'p', tls-ca = 'ca', external-account = { id = 'i', key-file = 'f' } }
    [[site.route]]
    path = '/a'
    exact = true
    methods = ['GET', 'PROPFIND']
    files = { root = 'site', strip-prefix = true, listing = true, dot-files = true, index = [], try-files = '/{rest}', compress = { codings = ['gzip', 'br'], types = 'text/*', min-size = 1, cache = '1MiB' } }
    hsts = { max-age = 1, include-subdomains = true, preload = true }
    cache-control = [{ match = ['*.css', 'a.js'], value = 'private' }, { match = '*', value = 'no-cache' }]
    error-pages = { 403 = '/index.html' }
    headers = { remove = ['x', 'y'] }
    auth = false
    forward-auth = false
    client-cert = { names = 'n', fingerprints = ['f'] }
    rate-limit = false
    [[site.route]]
    path = '/b'
    redirect = { to = '/c', status = 302 }
    client-cert = 'required'
    [[site.route]]
    path = '/d'
    rewrite = '/e'
    [[site.route]]
    path = '/e'
    respond = { status = 404, body = 'x', content-type = 'text/html' }
    [[site.route]]
    path = '/f'
    proxy = { to = ['http://localhost:1', 'unix:s', 'h2c://localhost:2', 'https://localhost:3', 'h3://localhost:4'], tls-ca = 'ca', tls-name = 'n', balance = 'hash-address', strip-prefix = true, host = 'h:1', request-headers = { set = { a = 'b' }, add = { c = ['d'] }, remove = 'e' }, trusted-proxies = '10.0.0.0/8', connect-timeout = 1, response-timeout = 2, idle-timeout = 3, keep-alive-timeout = 4, keep-alive = 0, max-connections = 5, retries = 0, max-failures = 6, cool-down = 7, max-content = '1MiB', proxy-protocol = false, upgrade = false, tunnel-timeout = 8, health = { path = '/h', host = 'h', interval = 1, timeout = 2, status = ['200', '204-299'], rises = 3, falls = 4 } }
    [[site.route]]
    path = '/g'
    upload = { root = 'site', strip-prefix = true, dot-files = true, max-size = '1MiB' }
    [[site]]
    names = '*'
    [[site.route]]
    path = '/'
    files = { root = 'site' }
";

/// The names of keys, and of those of their tables.
fn names(keys: &[Key], of: &mut Vec<String>) {
    for key in keys {
        of.push(key.name.to_string());
        let kind = if let Kind::Either(_, other) = key.kind { other } else { &key.kind };
        if let Kind::Table(keys) | Kind::Tables(keys) | Kind::SwitchOrTable(keys) = kind {
            names(keys, of);
        }
    }
}

/// Every key of sites is in [`SITES`], so that what is tested with it holds for a new key too.
#[test]
fn the_sites_of_tests_have_every_key() {
    let mut of = Vec::new();
    names(config::sites::SITE, &mut of);
    assert!(of.len() > 40);
    for name in of {
        assert!(
            SITES.contains(&format!("{name} = ")) || SITES.contains(&format!("[[site.{name}]]")),
            "{name}"
        );
    }
}

/// Deleted, what is shown could be another configuration than the one that is served.
#[test]
fn what_is_shown_is_a_file_that_says_the_same() {
    let sites = read(SITES, &keys()).0;
    let (shown, again) = (to_toml(&keys(), &sites), read(&to_toml(&keys(), &sites), &keys()));
    assert_eq!(again.1, [], "{shown}");
    assert_eq!(
        (to_toml(&keys(), &again.0), whole_json(&keys(), &again.0)),
        (shown, whole_json(&keys(), &sites))
    );
    let text = "listen = [1, '[::1]:2']\nqlog-share = 0.5\npin = true\nno-listing = true\n";
    let shown = to_toml(&keys(), &file(text).table);
    let again = file(&shown);
    assert_eq!(again.check(), Ok(()), "{shown}");
    assert_eq!(to_toml(&keys(), &again.table), shown);
    let json = whole_json(&keys(), &again.table);
    assert_eq!(
        (&json["listen"], &json["pin"], &json["cert"]),
        (&json!([1, "[::1]:2"]), &json!(true), &Value::Null)
    );
    assert_eq!((&json["idle-timeout"], &json["qlog-share"]), (&json!(30), &json!(0.5)));
    let line = |file: &File| words::line(&words::of(&file.table, &command(), Path::new("/conf")), &[]);
    assert!(line(&file(text)).iter().all(|word| line(&again).contains(word)));
}

/// Whether `value` is what `schema` says, by as much of JSON schema as is used.
pub(super) fn fits(schema: &Value, value: &Value) -> bool {
    if let Some(any) = schema["anyOf"].as_array() {
        return any.iter().any(|schema| fits(schema, value));
    }
    if let Some(words) = schema["enum"].as_array() {
        return words.contains(value);
    }
    let is_of = |name: &Value| match name.as_str().unwrap() {
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_i64().is_some_and(|number| {
            schema["minimum"].as_i64().is_none_or(|least| number >= least)
                && schema["maximum"].as_i64().is_none_or(|most| number <= most)
        }),
        "array" => {
            value.as_array().is_some_and(|items| items.iter().all(|item| fits(&schema["items"], item)))
        }
        "object" => value.as_object().is_some_and(|fields| {
            let required = schema["required"].as_array().into_iter().flatten();
            let of = |name: &String| match &schema["properties"][name] {
                Value::Null => schema["additionalProperties"].clone(),
                schema => schema.clone(),
            };
            required.map(|name| name.as_str().unwrap()).all(|name| fields.contains_key(name))
                && fields.iter().all(|(name, value)| {
                    let schema = of(name);
                    schema != json!(false) && fits(&schema, value)
                })
        }),
        other => panic!("{other}"),
    };
    match &schema["type"] {
        Value::Array(names) => names.iter().any(is_of),
        name => is_of(name),
    }
}

/// A file as an editor sees it.
pub(super) fn as_json(text: &str) -> Value {
    serde_json::to_value(text.parse::<toml::Table>().unwrap()).unwrap()
}

/// Deleted, editors could mark what is right, or not know a key. What is faulty by its names and types is in the table of faults.
#[test]
fn the_schema_has_the_keys_of_the_reader_and_takes_what_it_takes() {
    let schema = schema("", &keys());
    let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
    assert_eq!(names.len(), keys().len());
    for key in keys() {
        let of_key = &schema["properties"][key.name.as_ref()];
        assert_eq!(of_key["description"], json!(key.about));
        let default = key.default.as_deref().map(|default| as_json(&format!("value = {default}")));
        if let Some(default) = default {
            assert!(fits(of_key, &default["value"]), "{}", key.name);
        }
        if matches!(key.kind, Kind::Flag(_)) {
            assert!(fits(of_key, &json!("x")) || of_key.to_string().contains("enum"), "{}", key.name);
        }
    }
    assert!(fits(&schema, &as_json(SITES)), "{schema}");
    let command = command();
    for flag in flags::operators(&command) {
        let text = format!("{} = {}\n", flags::name(flag), sample(flag));
        assert!(fits(&schema, &as_json(&text)), "{text}");
    }
}

/// Deleted, the chapter could lack a key, or have an example that is none.
#[test]
fn the_chapter_has_every_key_of_sites_and_examples_that_are_right() {
    let chapter = include_str!("../../../../../docs/configuration.md");
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    for name in ["site/app", "assets"] {
        std::fs::create_dir_all(folder.path().join(name)).unwrap();
    }
    write("site/missing.html", "");
    let alice = "alice:$argon2id$v=19$m=16,t=1,p=1$BwcHBwcHBwc$AAAAAAAAAAAAAAAAAAAAAA\n";
    write("users", alice);
    write("account.key", "c2VjcmV0\n");
    write("site/app/index.html", "");
    for name in ["example", "ecdsa", "rsa"] {
        let names = ["example.org", "*.example.org"].map(str::to_owned);
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        write(&format!("{name}.crt"), &made.cert.pem());
        write(&format!("{name}.key"), &made.signing_key.serialize_pem());
    }
    let examples: Vec<&str> =
        chapter.split("```toml\n").skip(1).filter_map(|part| part.split("```").next()).collect();
    assert_eq!(examples.len(), 11);
    let schema = schema("", &keys());
    for example in &examples {
        let file = File::of("tercel.toml".to_owned(), folder.path(), (*example).to_owned());
        assert_eq!(file.check(), Ok(()), "{example}");
        assert!(fits(&schema, &as_json(example)), "{example}");
    }
    let mut of_sites = Vec::new();
    names(config::sites::SITE, &mut of_sites);
    for name in of_sites {
        let is_told =
            chapter.contains(&format!("`{name}`")) && examples.iter().any(|example| example.contains(&name));
        assert!(is_told, "{name}");
    }
}
