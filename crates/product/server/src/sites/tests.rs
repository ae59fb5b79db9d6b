//! Sites whose files are on a slow disk: each look at it takes the answer a step further.

use super::head::RoutedHead;
use super::router::{Router, Turn};
use super::service::RoutedContent;
use super::{Action, FilesOf, HostName, LiveSites, Pages, Prefix, Route, Site, Sites, Template};
use crate::connection_info::{ConnectionInfo, ConnectionView, Viewed};
use crate::files::Root;
use crate::handler::{FileOptions, Generated, Listing};
use crate::informational::Informational;
use crate::low::{FieldLines as _, Shared};
use crate::readers::{Readers, wait};
use crate::request::Head;
use base::time::Instant;
use std::cell::Cell;

fn route(path: &str, action: Action) -> Route {
    let prefix = Prefix::parse(path).unwrap();
    let pages = Pages { folder: 0, paths: vec![(404, "/missing.html".to_owned())] };
    Route { prefix, methods: Vec::new(), access: None, asks: None, action, edit: None, pages }
}

/// A connection from this machine.
fn info() -> ConnectionInfo {
    let here = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
    ConnectionInfo {
        peer: here,
        local: here,
        alpn: "h2",
        server_name: None,
        client_certificates: None,
        informational: Informational::UNSUPPORTED,
        early: None,
    }
}

/// A folder of which nothing is known without a look at the disk.
fn slow(path: &std::path::Path, index: &str) -> FileOptions {
    let root = Root::open(path).unwrap().without_openat2();
    let mut options = FileOptions { root: Some(root), index: index.to_owned(), ..FileOptions::default() };
    options.generated = Generated::Hide;
    options.listing = Listing::Off;
    options.cache.file_bytes = 0;
    options.cache.entries = 0;
    options
}

/// Deleted, a request that looks for several files could look for the first of them for ever.
#[test]
fn an_answer_of_several_files_comes_about_step_by_step() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("missing.html", "missing"), ("third.html", "third"), ("app.html", "app")] {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let mut sites = Sites::default();
    let (of_missing, of_index) =
        (sites.folder(slow(folder.path(), "")), sites.folder(slow(folder.path(), "index.html")));
    assert_eq!(
        (of_missing, of_index, sites.folder(slow(folder.path(), ""))),
        (0, 1, 0),
        "one handler for the same"
    );
    let files = |index: &[&str], candidates: &[&str]| {
        let candidates = candidates.iter().map(|text| Template::path(text).unwrap()).collect();
        let index = index.iter().map(|name| (*name).to_owned()).collect();
        Action::Files(FilesOf { folder: 0, is_below_prefix: true, index, candidates })
    };
    let routes = vec![
        route("/index", files(&["first.html", "second.html", "third.html"], &[])),
        route("/app", files(&[], &["{path}", "{path}.htm", "/app.html"])),
        route("/none", files(&["first.html"], &["{path}", "/nowhere"])),
    ];
    sites.add(Site { names: vec![HostName::Any], routes });
    let info = info();
    let mut router = Router::new(&LiveSites::new(sites), &Readers::default(), &Shared::default());
    for (target, status, content, looks) in [
        ("/index/", 200, "third", 3),
        ("/app/x/y", 200, "app", 3),
        ("/none/", 404, "missing", 3),
        ("/else", 404, "404 Not Found\n", 0),
    ] {
        let mut head = RoutedHead::default();
        head.head = Head::of("GET", target);
        let polls = Cell::new(0_u32);
        let response = wait(|wake_target| {
            polls.set(polls.get() + 1);
            assert!(polls.get() < 100, "{target} comes to no end");
            let connection = ConnectionView { viewed: Viewed::Tcp(&info), early: None };
            router.answer(&mut head, Turn { now: Instant::ZERO, wake_target, connection })
        });
        let response = response.expect("no service answers");
        let RoutedContent::Own(mut body) = response.body else { panic!("it is of a service") };
        let content_of = body.next_chunk(1_000).unwrap().unwrap_or_default();
        assert_eq!((response.status, &content_of[..]), (status, content.as_bytes()), "{target}");
        assert!(polls.get() > looks, "{target}: {} polls", polls.get());
        assert!(response.fields.lines().any(|(name, _)| name == b"date"));
        assert_eq!(head.sent_target(), target.as_bytes());
    }
    let mut of_server = RoutedHead::default();
    of_server.head = Head::of("OPTIONS", "*");
    let response = wait(|wake_target| {
        let connection = ConnectionView { viewed: Viewed::Tcp(&info), early: None };
        router.answer(&mut of_server, Turn { now: Instant::ZERO, wake_target, connection })
    });
    assert_eq!(response.map(|response| response.status), Some(204), "RFC 9110 §9.3.7");
}
