//! Requests in, responses out: what a client sees of files, generated bodies, conditions and ranges.

use super::*;
use base::time::Duration;
use std::path::PathBuf;

mod coded;

/// A root in a temporary folder, and a handler on it at a fixed time.
struct Site {
    folder: tempfile::TempDir,
    handler: Files,
    now: Instant,
}

const TODAY: u64 = 1_795_235_480;

impl Site {
    fn new(files: &[(&str, &[u8])]) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        let options =
            FileOptions { root: Some(Root::open(&root).unwrap()), clock: || TODAY, ..FileOptions::default() };
        let site = Site { folder, handler: Files::new(options), now: Instant::from_nanos(1) };
        files.iter().for_each(|(path, content)| site.write(path, content, TODAY - 1_000));
        site
    }

    fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join("root").join(path)
    }

    fn write(&self, path: &str, content: &[u8], modified_s: u64) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs(modified_s);
        std::fs::File::options().append(true).open(&path).unwrap().set_modified(time).unwrap();
    }

    fn request(&mut self, method: &str, target: &str, fields: &[(&str, &str)]) -> Answer {
        let mut head = Head::of(method, target);
        fields.iter().for_each(|(name, value)| head.on_field(name.as_bytes(), value.as_bytes()));
        let mut response = self.handler.handle(&head, self.now);
        let mut content = Vec::new();
        while let Some(chunk) = response.body.next_chunk(100_000).unwrap() {
            content.extend_from_slice(&chunk);
        }
        let answer = Answer { response, content };
        if method != "HEAD" && !matches!(answer.response.status, 204 | 304) {
            assert_eq!(answer.field("content-length"), answer.content.len().to_string(), "{method} {target}");
        }
        assert_eq!(answer.field("date"), "Sat, 21 Nov 2026 04:31:20 GMT");
        answer
    }

    fn status(&mut self, target: &str) -> u16 {
        self.request("GET", target, &[]).response.status
    }
}

struct Answer {
    response: Response,
    content: Vec<u8>,
}

impl Answer {
    fn field(&self, name: &str) -> String {
        String::from_utf8(self.response.fields.value(name).unwrap_or(b"-").to_vec()).unwrap()
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.content).unwrap()
    }
}

#[test]
fn a_file_has_its_content_type_and_validators() {
    let mut site = Site::new(&[("a/hello.txt", b"hello")]);
    let answer = site.request("GET", "/a/hello.txt?version=2", &[]);
    assert_eq!((answer.response.status, answer.text()), (200, "hello"));
    assert_eq!(answer.field("content-type"), "text/plain; charset=utf-8");
    assert_eq!(answer.field("last-modified"), "Sat, 21 Nov 2026 04:14:40 GMT");
    assert_eq!(answer.field("accept-ranges"), "bytes");
    assert_eq!(answer.field("etag"), format!("\"{:x}.0-5\"", TODAY - 1_000));
    let head = site.request("HEAD", "/a/hello.txt", &[("range", "bytes=0-0")]);
    assert_eq!((head.response.status, head.content.len()), (200, 0));
    let fields =
        |answer: &Answer| answer.response.fields.iter().map(|(n, v)| (n, v.to_vec())).collect::<Vec<_>>();
    assert_eq!(fields(&head), fields(&answer), "HEAD says what GET says");
}

#[test]
fn methods() {
    let mut site = Site::new(&[("f", b"x")]);
    for method in ["POST", "PUT", "DELETE", "CONNECT", "get", "", "PROPFIND"] {
        let answer = site.request(method, "/f", &[]);
        assert_eq!(
            (answer.response.status, answer.field("allow").as_str()),
            (405, "GET, HEAD, OPTIONS"),
            "{method}"
        );
    }
    let answer = site.request("OPTIONS", "*", &[]);
    assert_eq!((answer.response.status, answer.field("allow").as_str()), (204, "GET, HEAD, OPTIONS"));
    // A generated body takes a POST, and says so.
    let answer = site.request("POST", "/bytes/8KiB", &[]);
    assert_eq!((answer.response.status, answer.content.len()), (200, 8_192));
    for (method, status) in [("OPTIONS", 204), ("PUT", 405)] {
        let answer = site.request(method, "/bytes/8KiB", &[]);
        assert_eq!(
            (answer.response.status, answer.field("allow").as_str()),
            (status, "GET, HEAD, OPTIONS, POST"),
            "{method}"
        );
    }
    // A file of that name wins.
    site.write("bytes/7", b"file", TODAY - 1_000);
    assert_eq!(site.request("POST", "/bytes/7", &[]).response.status, 405);
    let mut head = Head::of("GET", "/f");
    head.on_field(b"cookie", &[b'x'; 70_000]);
    assert_eq!(site.handler.handle(&head, site.now).status, 431);
}

#[test]
fn folders() {
    let mut site =
        Site::new(&[("index.html", b"home"), ("sub folder/index.html", b"sub"), ("bare/file", b"x")]);
    std::fs::create_dir_all(site.path("odd/index.html")).unwrap();
    std::fs::create_dir_all(site.path("evil.example")).unwrap();
    assert_eq!(site.request("GET", "/", &[]).text(), "home");
    assert_eq!(site.request("GET", "/?x", &[]).text(), "home");
    let answer = site.request("GET", "/sub%20folder/", &[]);
    assert_eq!((answer.text(), answer.field("content-type").as_str()), ("sub", "text/html; charset=utf-8"));
    let redirect = site.request("GET", "/sub%20folder?q=/../", &[]);
    assert_eq!(
        (redirect.response.status, redirect.field("location").as_str()),
        (301, "/sub%20folder/?q=/../")
    );
    assert!(site.request("GET", "/odd/", &[]).text().contains("index.html/"), "an index that is a folder");
    assert_eq!(site.status("/bare/file/"), 404);
    // RUSTSEC-2022-0072: a redirect must not lead to another host.
    for target in [
        "//evil.example",
        "///evil.example?x",
        "/%2e/..//evil.example",
        "//evil.example/..",
        "/\\evil.example",
    ] {
        let answer = site.request("GET", target, &[]);
        let location = answer.field("location");
        assert!(location == "-" || location.starts_with("/evil.example/"), "{target} leads to {location}");
    }
    assert_eq!(site.request("GET", "//evil.example", &[]).field("location"), "/evil.example/");
}

/// Deleted, a folder without an index could be answered with 404 again, or its listing be kept by caches.
#[test]
fn a_folder_without_an_index_is_listed() {
    let mut site =
        Site::new(&[("bare/file", b"123"), ("bare/.hidden", b"x"), ("bare/sub/index.html", b"sub")]);
    let page = site.request("GET", "/bare/?sort=size&order=desc", &[]);
    assert_eq!(
        (page.response.status, page.field("content-type").as_str()),
        (200, "text/html; charset=utf-8")
    );
    assert!(page.text().contains("<a href=\"file\">file</a>") && !page.text().contains(".hidden"));
    assert!(page.text().contains("<a href=\"sub/?sort=size&amp;order=desc\">sub</a>"), "{}", page.text());
    for (name, value) in [("cache-control", "no-cache"), ("vary", "accept"), ("last-modified", "-")] {
        assert_eq!(page.field(name), value, "{name}");
    }
    assert!(page.field("content-security-policy").starts_with("default-src 'none'"));
    let etag = page.field("etag");
    let same = site.request("GET", "/bare/?sort=size&order=desc", &[("if-none-match", &etag)]);
    assert_eq!((same.response.status, same.field("vary").as_str()), (304, "accept"));
    let json = site.request("GET", "/bare/", &[("accept", "application/json")]);
    assert_eq!(json.field("content-type"), "application/json");
    assert!(json.text().contains(r#"{"name":"file","kind":"file","size":3,"#), "{}", json.text());
    assert_ne!(json.field("etag"), etag);
    let head = site.request("HEAD", "/bare/", &[]);
    assert_eq!((head.response.status, head.content.len()), (200, 0));
    let part = site.request("GET", "/bare/", &[("range", "bytes=0-14")]);
    assert_eq!((part.response.status, part.text()), (206, "<!doctype html>"));
    let redirect = site.request("GET", "/bare?sort=time", &[]);
    assert_eq!((redirect.response.status, redirect.field("location")), (301, "/bare/?sort=time".into()));
    assert_eq!(site.status("/none/"), 404);
    assert_eq!(site.request("PUT", "/bare/", &[]).response.status, 405);
    let root = Some(Root::open(&site.path("")).unwrap());
    site.handler =
        Files::new(FileOptions { root, listing: Listing::Off, clock: || TODAY, ..FileOptions::default() });
    assert_eq!(site.status("/bare/"), 404, "--no-listing");
}

/// One row each of the file server's part of the reliability list.
#[test]
fn nothing_outside_the_root_and_no_tricks() {
    let mut site =
        Site::new(&[("admin/config", b"x"), (".git/config", b"x"), ("sub/.env", b"x"), ("file", b"x")]);
    std::os::unix::fs::symlink("../secret", site.path("out")).unwrap();
    let table: &[(&str, u16)] = &[
        ("/c:/windows/win.ini", 400),
        ("/c%3A/windows/win.ini", 400),
        ("/..\\secret", 400),
        ("/../secret", 400),
        ("/%2e%2e/secret", 400),
        ("/sub/%2e%2e/%2e%2e/secret", 400),
        ("/..%2fsecret", 400),
        ("/admin%2Fconfig", 400),
        ("/%252e%252e/secret", 404),
        ("/%c0%ae%c0%ae/secret", 404),
        ("/%c0%ae%c0%ae%c0%afsecret", 404),
        ("/%EF%BC%8E%EF%BC%8E/secret", 404),
        ("/file%00.txt", 400),
        ("/file.", 404),
        ("/file%20", 404),
        ("/FILE", 404),
        ("/.git/config", 404),
        ("/sub/.env", 404),
        ("/out", 404),
        ("//etc/passwd", 404),
        ("/%2Fetc/passwd", 400),
        ("file", 400),
        ("", 400),
        ("*", 400),
        ("/%", 400),
        ("/admin/config", 200),
    ];
    for (target, status) in table {
        let answer = site.request("GET", target, &[]);
        assert_eq!(answer.response.status, *status, "{target}");
        assert!(!answer.text().contains("secret"), "{target}: nothing of the request or the file is echoed");
    }
    assert_eq!(site.status(&format!("/{}", "x".repeat(300))), 404);
    assert_eq!(site.status(&format!("/{}", "x/".repeat(2_100))), 404);
    assert_eq!(site.status(&format!("/{}", "x".repeat(9_000))), 414);
}

#[test]
fn conditions_and_ranges_together() {
    let mut site = Site::new(&[("f.txt", b"0123456789")]);
    let etag = site.request("GET", "/f.txt", &[]).field("etag");
    let modified = site.request("GET", "/f.txt", &[]).field("last-modified");
    let answer = site.request("GET", "/f.txt", &[("if-none-match", &etag), ("range", "bytes=0-1")]);
    assert_eq!((answer.response.status, answer.content.len(), answer.field("etag")), (304, 0, etag.clone()));
    assert_eq!(site.request("GET", "/f.txt", &[("if-modified-since", &modified)]).response.status, 304);
    assert_eq!(site.request("GET", "/f.txt", &[("if-match", "\"other\"")]).response.status, 412);
    let part = site.request("GET", "/f.txt", &[("if-range", &etag), ("range", "bytes=2-4")]);
    assert_eq!(
        (part.response.status, part.text(), part.field("content-range").as_str()),
        (206, "234", "bytes 2-4/10")
    );
    assert_eq!(part.field("etag"), etag);
    let part = site.request("GET", "/f.txt", &[("if-range", &modified), ("range", "bytes=-3")]);
    assert_eq!((part.response.status, part.text()), (206, "789"));
    let whole = site.request("GET", "/f.txt", &[("if-range", "\"other\""), ("range", "bytes=2-4")]);
    assert_eq!((whole.response.status, whole.text()), (200, "0123456789"));
    let outside = site.request("GET", "/f.txt", &[("range", "bytes=10-")]);
    assert_eq!((outside.response.status, outside.field("content-range").as_str()), (416, "bytes */10"));
    assert_eq!(
        site.request("GET", "/f.txt", &[("range", "bytes=18446744073709551615-")]).response.status,
        416
    );
}

#[test]
fn several_ranges_are_parts() {
    let mut site = Site::new(&[("f.txt", &[b'x'; 1_000])]);
    let answer = site.request("GET", "/f.txt", &[("range", "bytes=0-1,500-502,-1")]);
    assert_eq!(answer.response.status, 206);
    let content_type = answer.field("content-type");
    let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let parts: Vec<_> = answer.text().split(&format!("--{boundary}")).collect();
    assert_eq!(parts.len(), 5, "{}", answer.text());
    assert!(parts[2].contains("content-range: bytes 500-502/1000\r\n\r\nxxx\r\n"), "{}", parts[2]);
    assert_eq!(parts[4], "--\r\n");
    let near = site.request("GET", "/f.txt", &[("range", "bytes=0-1,5-9")]);
    assert_eq!(near.field("content-range"), "bytes 0-9/1000", "neighbours become one part");
}

#[test]
fn a_film_is_there_without_files() {
    let mut site = Site::new(&[]);
    let manifest = site.request("GET", "/dash/manifest.mpd", &[]);
    assert_eq!(
        (manifest.response.status, manifest.field("content-type")),
        (200, "application/dash+xml".into())
    );
    assert!(manifest.content.starts_with(b"<?xml") && manifest.content.ends_with(b"</MPD>\n"));
    let segment = site.request("GET", "/dash/2s/video-400/3.m4s", &[("range", "bytes=10-19")]);
    assert_eq!((segment.response.status, segment.field("content-type")), (206, "video/iso.segment".into()));
    assert_eq!(segment.content, base::pattern::at(10)[..10]);
    let other = site.request("GET", "/dash/2s/manifest.mpd", &[]);
    assert_ne!(manifest.field("etag"), other.field("etag"));
    assert_eq!(site.status("/dash/video-401/3.m4s"), 404);
}

#[test]
fn generated_bodies() {
    let mut site = Site::new(&[("bytes/5", b"a file"), ("7", b"wins")]);
    assert_eq!(site.request("GET", "/bytes/5", &[]).text(), "a file");
    assert_eq!(site.request("GET", "/7", &[]).text(), "wins");
    let answer = site.request("GET", "/bytes/200KB", &[]);
    assert_eq!((answer.response.status, answer.content.len()), (200, 200_000));
    assert_eq!(base::pattern::first_difference(0, &answer.content), None);
    let part = site.request("GET", "/1000000000000", &[("range", "bytes=999999999000-")]);
    assert_eq!((part.response.status, part.content.len()), (206, 1_000));
    assert_eq!(base::pattern::first_difference(999_999_999_000, &part.content), None);
    let etag = part.field("etag");
    assert_eq!(site.request("GET", "/1000000000000", &[("if-none-match", &etag)]).response.status, 304);
    assert_eq!(site.request("HEAD", "/bytes/2GB", &[]).field("content-length"), "2000000000");
    assert_eq!(site.status("/bytes/2XB"), 404);
    assert_eq!(site.status("/bytes/"), 200, "the folder of the file");
    let mut bare = Files::new(FileOptions::default());
    assert_eq!(bare.handle(&Head::of("GET", "/bytes/10"), Instant::ZERO).body.remaining(), 10);
    assert_eq!(bare.handle(&Head::of("GET", "/index.html"), Instant::ZERO).status, 404);
}

/// A changed file is seen after at most a second, whether it lies in memory or is read from its descriptor.
#[test]
fn what_is_remembered_is_looked_at_again() {
    for size in [10, 200_000] {
        let mut site = Site::new(&[("f", &vec![b'a'; size])]);
        assert_eq!(site.request("GET", "/f", &[]).content, vec![b'a'; size]);
        let etag = site.request("GET", "/f", &[]).field("etag");
        std::fs::remove_file(site.path("f")).unwrap();
        site.write("f", &vec![b'b'; size], TODAY - 10);
        site.now = site.now + Duration::from_secs(1);
        let answer = site.request("GET", "/f", &[]);
        assert_eq!(answer.content, vec![b'b'; size]);
        assert_ne!(answer.field("etag"), etag);
        std::fs::remove_file(site.path("f")).unwrap();
        site.now = site.now + Duration::from_secs(1);
        assert_eq!(site.status("/f"), 404);
    }
}

/// A hot small file costs no system call: it is served although it is gone, until its second is over.
#[test]
fn a_hot_file_comes_from_memory() {
    let mut site = Site::new(&[("f", b"hot")]);
    assert_eq!(site.status("/f"), 200);
    std::fs::remove_file(site.path("f")).unwrap();
    assert_eq!(site.request("GET", "//%66", &[]).text(), "hot", "by whatever spelling");
}

#[test]
fn dates_in_the_future_are_not_sent() {
    let mut site = Site::new(&[]);
    site.write("f", b"x", TODAY + 100);
    let answer = site.request("GET", "/f", &[]);
    assert_eq!((answer.response.status, answer.field("last-modified").as_str()), (200, "-"));
}

/// Other HTTP versions hold handlers and bodies on other threads.
#[test]
fn handlers_and_bodies_can_move_between_threads() {
    fn is_send<T: Send + 'static>() {}
    is_send::<Files>();
    is_send::<Response>();
    is_send::<crate::access_log::Recorder>();
}

/// Fails without it: a deployment that switches a symbolic link is never seen, and caches keep the old content.
#[test]
fn a_root_that_is_switched_is_seen_within_seconds_and_its_caches_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let release = |name: &str| folder.path().join(name);
    for (name, content) in [("one", "first"), ("two", "later"), ("three", "third")] {
        std::fs::create_dir(release(name)).unwrap();
        std::fs::write(release(name).join("small"), content).unwrap();
        std::fs::write(release(name).join("large"), content.repeat(100_000)).unwrap();
    }
    std::fs::write(release("one").join("removed"), "x").unwrap();
    let current = release("current");
    let switch = |name: &str| {
        std::os::unix::fs::symlink(name, release("new")).unwrap();
        std::fs::rename(release("new"), &current).unwrap();
    };
    switch("one");
    let options =
        FileOptions { root: Some(Root::open(&current).unwrap()), clock: || TODAY, ..FileOptions::default() };
    let mut site = Site {
        folder: tempfile::tempdir().unwrap(),
        handler: Files::new(options),
        now: Instant::from_nanos(1),
    };
    let contents = |site: &mut Site, expected: &str| {
        // Where the path is not in memory a thread follows it, and what was served before is until it has.
        for _ in 0..500 {
            if site.request("GET", "/small", &[]).content.starts_with(expected.as_bytes()) {
                break;
            }
            std::thread::sleep(core::time::Duration::from_millis(10));
            site.now = site.now + Duration::from_secs(2);
        }
        for name in ["/small", "/large"] {
            let answer = site.request("GET", name, &[]);
            assert_eq!(&answer.content[..5], expected.as_bytes(), "{name}");
        }
    };
    contents(&mut site, "first");
    assert_eq!(site.status("/removed"), 200);
    switch("two");
    site.now = site.now + Duration::from_secs(2);
    contents(&mut site, "later");
    assert_eq!(site.status("/removed"), 404);
    // In the middle of a deployment there is no root; what was served before still is.
    std::fs::remove_file(&current).unwrap();
    site.now = site.now + Duration::from_secs(2);
    contents(&mut site, "later");
    // A folder in the place of the link.
    std::fs::rename(release("three"), &current).unwrap();
    site.now = site.now + Duration::from_secs(2);
    contents(&mut site, "third");
}
