//! Compressed files: which one is found, and that it is found where everything waits for the disk.

use super::*;
use crate::compress::{CompressOptions, Compression};

fn site(files: &[(&str, &[u8])], root: impl Fn(Root) -> Root) -> Site {
    let mut site = Site::new(files);
    let options = FileOptions {
        root: Some(root(Root::open(&site.path("")).unwrap())),
        compression: Some(Compression::new(CompressOptions::default())),
        clock: || TODAY,
        ..FileOptions::default()
    };
    site.handler = Files::new(options);
    site
}

const ANY: &[(&str, &str)] = &[("accept-encoding", "gzip, br, zstd")];

/// Deleted, a request could look for one file again and again where each look-up gives its result once.
#[test]
fn files_in_a_coding_are_found_where_all_waits_for_the_disk() {
    let long = b"again ".repeat(2_000);
    let files: &[(&str, &[u8])] =
        &[("a.css", b"plain"), ("a.css.br", b"brotli"), ("b.css", b"alone"), ("c.css", &long)];
    for root in [|root: Root| root, Root::without_openat2] {
        let mut site = site(files, root);
        for _ in 0..2 {
            assert_eq!(site.request("GET", "/a.css", ANY).text(), "brotli");
            assert_eq!(site.request("GET", "/a.css", &[]).text(), "plain");
            assert_eq!(site.request("GET", "/b.css", ANY).text(), "alone");
            assert_eq!(site.request("GET", "/c.css", ANY).field("content-encoding"), "zstd");
            assert_eq!(site.request("GET", "/none.css", ANY).response.status, 404);
            site.now = site.now + Duration::from_secs(2);
        }
    }
}

/// A sibling that comes or goes is noticed within the time for which a file is remembered.
#[test]
fn a_sibling_comes_and_goes() {
    let mut site = site(&[("a.css", b"plain")], |root| root);
    assert_eq!(site.request("GET", "/a.css", ANY).text(), "plain");
    site.write("a.css.gz", b"gzip", TODAY - 5);
    site.now = site.now + Duration::from_millis(1_001);
    let answer = site.request("GET", "/a.css", ANY);
    assert_eq!((answer.text(), answer.field("content-type").as_str()), ("gzip", "text/css; charset=utf-8"));
    std::fs::remove_file(site.path("a.css.gz")).unwrap();
    site.now = site.now + Duration::from_millis(1_001);
    assert_eq!(site.request("GET", "/a.css", ANY).text(), "plain");
}

/// Copies of one state: a cache must not take one for the other.
#[test]
fn tags_of_codings_differ_where_time_and_size_are_the_same() {
    let mut site = site(&[("a.css", b"12345"), ("a.css.gz", b"54321"), ("a.css.br", b"abcde")], |root| root);
    let mut tag = |field: &str| site.request("GET", "/a.css", &[("accept-encoding", field)]).field("etag");
    let tags = [tag(""), tag("gzip"), tag("br")];
    assert!(tags[0] != tags[1] && tags[1] != tags[2] && tags[0] != tags[2], "{tags:?}");
    assert!(tags[1].ends_with("-gzip\"") && !tags[1].starts_with("W/"), "{tags:?}");
}

/// A link beside a file does not lead out of the folder.
#[test]
fn a_sibling_is_never_outside_of_the_root() {
    let mut site = site(&[("a.css", b"plain")], |root| root);
    std::os::unix::fs::symlink("../secret", site.path("a.css.gz")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", site.path("a.css.br")).unwrap();
    assert_eq!(site.request("GET", "/a.css", ANY).text(), "plain");
}

/// Parts have heads of their own, which are in no coding: a client that decodes all of them would fail.
#[test]
fn several_ranges_of_a_coded_file_are_the_whole() {
    let several = [ANY, &[("range", "bytes=0-9,5000-5009")]].concat();
    let mut site = site(&[("a.css", &[b'a'; 9_000]), ("a.css.gz", &[b'z'; 9_000])], |root| root);
    let answer = site.request("GET", "/a.css", &several);
    assert_eq!((answer.response.status, answer.content.len()), (200, 9_000));
    assert_eq!(answer.field("content-encoding"), "gzip");
    let answer = site.request("GET", "/a.css", &several[1..]);
    assert!(
        answer.response.status == 206 && answer.field("content-type").starts_with("multipart/byteranges")
    );
}
