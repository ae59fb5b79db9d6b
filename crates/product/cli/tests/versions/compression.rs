//! Compressed files of sites over HTTP/1.1, 2 and 3: those that lie compressed, those that are compressed on demand, and which is sent.

use crate::configuration::folder;
use crate::message::{Answer, Ask};
use crate::sites::{Row, answer_alike, ask_all, start};
use std::io::Read as _;

const FILES: &[(&str, &str)] = &[
    ("site/both.css", "the style itself"),
    ("site/both.css.zst", "as zstd"),
    ("site/both.css.br", "as brotli"),
    ("site/only.txt", "the text itself"),
    ("site/only.txt.gz", "as gzip"),
    ("site/picture.png", "a picture"),
    ("site/picture.png.br", "a picture in brotli"),
    ("site/index.html", "<p>"),
    ("site/index.html.gz", "<p> in gzip"),
    ("site/small.txt", "too small to be compressed"),
    ("site/folder/index.html", "a folder"),
    ("site/folder.gz", "an archive of the same name"),
    ("site/gone.txt.gz", "without the file itself"),
    ("off/only.txt", "the text itself"),
    ("off/only.txt.gz", "as gzip"),
];

const CONFIGURATION: &str = "
    [[site]]
    names = 'localhost'
    root = 'site'
    compress = true
    [[site.route]]
    path = '/off'
    files = { root = 'off', strip-prefix = true, compress = false }
    [[site.route]]
    path = '/gzip'
    files = { root = 'site', strip-prefix = true, compress = { codings = 'gzip', cache = '0B' } }
    ";

fn accepting(target: &str, codings: &str) -> Ask {
    Ask::get(target).with("accept-encoding", codings)
}

/// Requests for files that lie compressed beside others.
fn rows() -> Vec<Row> {
    const ANY: &str = "gzip, deflate, br, zstd";
    let zstd = &[
        "content-encoding: zstd",
        "content-type: text/css; charset=utf-8",
        "vary: accept-encoding",
        "etag: …",
    ];
    let plain = &["!content-encoding", "vary: accept-encoding", "etag: …"];
    let mut head = accepting("/both.css", ANY);
    head.method = "HEAD";
    vec![
        (accepting("/both.css", ANY), 200, "as zstd", zstd),
        (
            accepting("/both.css", "zstd;q=0.5, br;q=0.8"),
            200,
            "as brotli",
            &["content-encoding: br", "vary: accept-encoding"],
        ),
        (accepting("/both.css", "br, *;q=0"), 200, "as brotli", &["content-encoding: br"]),
        (accepting("/both.css", "gzip"), 200, "the style itself", plain),
        (accepting("/both.css", "zstd;q=0"), 200, "the style itself", plain),
        (Ask::get("/both.css"), 200, "the style itself", plain),
        (head, 200, "", &["content-encoding: zstd", "content-length: 7", "vary: accept-encoding"]),
        (
            accepting("/only.txt", ANY),
            200,
            "as gzip",
            &["content-encoding: gzip", "content-type: text/plain; charset=utf-8"],
        ),
        // Any type that lies compressed; a folder by its index; never another thing of a similar name.
        (
            accepting("/picture.png", ANY),
            200,
            "a picture in brotli",
            &["content-encoding: br", "content-type: image/png"],
        ),
        (
            accepting("/", ANY),
            200,
            "<p> in gzip",
            &["content-encoding: gzip", "content-type: text/html; charset=utf-8"],
        ),
        (accepting("/small.txt", ANY), 200, "too small to be compressed", plain),
        (accepting("/folder", ANY), 301, "…", &["location: /folder/"]),
        (accepting("/gone.txt", ANY), 404, "…", &["!content-encoding"]),
        // Ranges are those of what is selected.
        (
            accepting("/both.css", ANY).with("range", "bytes=3-"),
            206,
            "zstd",
            &["content-range: bytes 3-6/7", "content-encoding: zstd", "vary: accept-encoding"],
        ),
        (
            accepting("/both.css", "gzip").with("range", "bytes=4-8"),
            206,
            "style",
            &["content-range: bytes 4-8/16", "!content-encoding"],
        ),
        (accepting("/both.css", ANY).with("range", "bytes=7-"), 416, "…", &["content-range: bytes */7"]),
        // Where it is turned off, and where less is offered.
        (accepting("/off/only.txt", ANY), 200, "the text itself", &["!content-encoding", "!vary"]),
        (accepting("/gzip/both.css", ANY), 200, "the style itself", plain),
        (accepting("/gzip/only.txt", ANY), 200, "as gzip", &["content-encoding: gzip"]),
    ]
}

/// Deleted, a client could get what it cannot decode, or a cache give it to such a client.
#[test]
fn what_lies_compressed_is_sent_to_clients_that_accept_it() {
    let place = folder(FILES);
    let server = start(place.path(), CONFIGURATION);
    answer_alike(server.port, &rows());
    server.stop();
}

fn decoded(answer: &Answer) -> Vec<u8> {
    let mut content = Vec::new();
    match answer.field("content-encoding") {
        "gzip" => {
            flate2::read::GzDecoder::new(&*answer.content).read_to_end(&mut content).expect("gzip");
        }
        "br" => brotli::BrotliDecompress(&mut &*answer.content, &mut content).expect("brotli"),
        "zstd" => content = zstd::decode_all(&*answer.content).expect("zstd"),
        _ => content.clone_from(&answer.content),
    }
    content
}

/// Deleted, a tag could stand for two contents, or a range go on in another coding than it began.
#[test]
fn what_is_compressed_on_demand_is_the_file_and_has_a_tag_and_ranges_of_its_own() {
    // The one is kept in memory, the other is read from the disk.
    let texts = [("short.txt", "short ".repeat(1_000)), ("long.txt", "long, and longer ".repeat(20_000))];
    let place = folder(&[]);
    std::fs::create_dir(place.path().join("site")).expect("made");
    for (name, text) in &texts {
        std::fs::write(place.path().join("site").join(name), text).expect("written");
    }
    // Larger than an eighth of the cache.
    std::fs::write(place.path().join("site/huge.txt"), "x".repeat(3 << 20)).expect("written");
    let server =
        start(place.path(), "[[site]]\nnames = 'localhost'\nroot = 'site'\ncompress = { cache = '16MiB' }\n");
    for (name, text) in &texts {
        let target = format!("/{name}");
        let mut tags = vec![ask_all(server.port, &Ask::get(&target))[0].field("etag").to_owned()];
        for coding in ["gzip", "br", "zstd"] {
            let ask = accepting(&target, coding);
            let answers = ask_all(server.port, &ask);
            for answer in &answers {
                assert_eq!((answer.status, answer.field("content-encoding")), (200, coding), "{answer:?}");
                assert_eq!(answer.field("content-length"), answer.content.len().to_string());
                assert_eq!(answer.field("vary"), "accept-encoding");
                assert!(
                    answer.content.len() * 20 < text.len() && decoded(answer) == text.as_bytes(),
                    "{coding}"
                );
                assert_eq!(
                    (answer.field("etag"), &answer.content),
                    (answers[0].field("etag"), &answers[0].content)
                );
            }
            let tag = answers[0].field("etag").to_owned();
            assert!(!tag.starts_with("W/") && !tags.contains(&tag), "{tag}: {tags:?}");
            for answer in ask_all(server.port, &ask.clone().with("if-none-match", &tag)) {
                assert_eq!(
                    (answer.status, answer.field("etag"), answer.field("vary")),
                    (304, &*tag, "accept-encoding")
                );
                assert_eq!(answer.field("content-encoding"), "", "RFC 9110 §15.4.5: no more than that");
            }
            let range = ask.clone().with("range", "bytes=5-").with("if-range", &tag);
            for answer in ask_all(server.port, &range) {
                assert_eq!((answer.status, answer.field("content-encoding")), (206, coding));
                assert!(answer.content == answers[0].content[5..]);
            }
            // The tag of another coding does not continue this one.
            for answer in ask_all(server.port, &ask.with("range", "bytes=5-").with("if-range", &tags[0])) {
                assert!(answer.status == 200 && answer.content == answers[0].content);
            }
            tags.push(tag);
        }
    }
    for answer in ask_all(server.port, &accepting("/huge.txt", "zstd")) {
        assert_eq!((answer.field("content-encoding"), answer.content.len()), ("", 3 << 20));
    }
    // A file that changes is another one, within the second for which it is remembered.
    std::fs::write(place.path().join("site/short.txt"), "changed ".repeat(1_000)).expect("written");
    std::thread::sleep(std::time::Duration::from_millis(1_100));
    for answer in ask_all(server.port, &accepting("/short.txt", "zstd")) {
        assert_eq!(answer.field("content-encoding"), "zstd");
        assert!(decoded(&answer) == "changed ".repeat(1_000).as_bytes());
    }
    server.stop();
}
