//! Files that clients store, over HTTP/1.1, 2 and 3.

use crate::access::{hash, signed};
use crate::configuration::folder;
use crate::message::{Ask, Who};
use crate::sites::{ask_each, start};
use crate::tcp;
use std::path::Path;

fn put(target: &str, user: &str, bytes: usize) -> Ask {
    Ask { method: "PUT", ..signed(target, user).sending(bytes) }
}

/// Names in a folder, temporary files too.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

/// Deleted, a file could be there in part, for a client without the password, above the limit, or outside of its folder.
#[test]
fn a_put_becomes_a_file_where_its_route_and_its_conditions_permit() {
    let place =
        folder(&[("site/index.html", "home"), ("site/in/old.txt", "old"), ("site/secret", "of the site")]);
    let configuration = format!(
        "
        [[site]]
        names = 'localhost'
        root = 'site'
        [[site.route]]
        path = '/in'
        upload = {{ max-size = '100KB' }}
        auth = {{ users = {{ alice = '{}' }} }}
        ",
        hash("of alice")
    );
    let server = start(place.path(), &configuration);
    let inside = place.path().join("site/in");
    let user = "alice:of alice";
    let asks = [
        put("/in/a%20b.bin", user, 50_000),
        Ask::get("/in/a%20b.bin"),
        put("/in/a%20b.bin", user, 60_000).with("if-none-match", "*"),
        put("/in/a%20b.bin", user, 100_000).with("if-match", "*"),
        put("/in/new", user, 10).with("if-match", "*"),
        put("/in/empty", user, 0),
        put("/in/other", "alice:wrong", 10),
        put("/in/none/other", user, 10),
        put("/in/", user, 10),
        put("/in/.hidden", user, 10),
        put("/in/%2e%2e/secret", user, 10),
        put("/secret", user, 10),
        put("/in/old.txt", user, 10).with("content-range", "bytes 0-9/20"),
        put("/in/old.txt", user, 100_001),
        Ask::new("OPTIONS", "/in/a%20b.bin"),
        Ask::new("DELETE", "/in/a%20b.bin"),
    ];
    let of_first = [201, 200, 412, 204, 412, 201, 401, 409, 409, 404, 400, 405, 400, 413, 204, 405];
    let of_others = [204, 200, 412, 204, 412, 204, 401, 409, 409, 404, 400, 405, 400, 413, 204, 405];
    for (answers, expected) in
        ask_each(&Who::default(), server.port, &asks).into_iter().zip([of_first, of_others, of_others])
    {
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
        assert_eq!(statuses, expected);
        assert_eq!(answers[1].content, [b'x'; 50_000]);
        assert_eq!(answers[1].field("etag"), answers[0].field("etag"), "the tag of the file as it is");
        // `Allow` depends on the path: other paths take no uploads.
        assert_eq!(answers[11].field("allow"), "GET, HEAD, OPTIONS");
        for answer in &answers[14..] {
            assert_eq!(answer.field("allow"), "GET, HEAD, OPTIONS, PUT");
        }
    }
    assert_eq!(names(&inside), ["a b.bin", "empty", "old.txt"], "nothing is left of what was refused");
    assert_eq!(std::fs::read(inside.join("a b.bin")).expect("a file").len(), 100_000);
    assert_eq!(std::fs::read(inside.join("old.txt")).expect("a file"), b"old");
    assert_eq!(std::fs::read(place.path().join("site/secret")).expect("a file"), b"of the site");
    server.stop();
}

/// Deleted, a client could be sent the file of before by another thread, after it has heard that there is a new one.
#[test]
fn what_was_stored_is_served_at_once_by_every_thread() {
    let place = folder(&[("site/in/file", "0")]);
    let configuration = "
        workers = 4
        [[site]]
        names = 'localhost'
        root = 'site'
        [[site.route]]
        path = '/in'
        upload = true
    ";
    let server = start(place.path(), configuration);
    let get = [Ask::get("/in/file")];
    for round in 1..=8 {
        // Each thread that answers remembers the file for a second.
        for _ in 0..4 {
            let _ = ask_each(&Who::default(), server.port, &get);
        }
        let content = round.to_string().into_bytes();
        let put = Ask { content: content.clone(), ..Ask::new("PUT", "/in/file").with("content-length", "1") };
        let stored = tcp::run(tcp::http1(server.port, &[put])).remove(0);
        assert_eq!(stored.status, 204);
        for _ in 0..4 {
            for answers in ask_each(&Who::default(), server.port, &get) {
                assert_eq!(answers[0].content, content, "in round {round}");
                assert_eq!(answers[0].field("etag"), stored.field("etag"));
            }
        }
    }
    server.stop();
}
