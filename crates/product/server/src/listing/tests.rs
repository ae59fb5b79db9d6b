//! Listings of real folders.

use super::read::{Contents, Item, Kind};
use super::view::{Direction, Key, Order};
use super::*;
use crate::readers;
use crate::request::Head;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::Path;

/// A folder `root` beside a file that is outside it.
fn place() -> (tempfile::TempDir, Root) {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("root")).unwrap();
    fs::write(place.path().join("secret"), "a secret of 23 bytes...").unwrap();
    let root = Root::open(&place.path().join("root")).unwrap();
    (place, root)
}

fn folder<'a>(root: &'a Root, path: &'a str, readers: &'a Readers) -> Folder<'a> {
    Folder { root, path: path.as_bytes(), dot_files: DotFiles::Hide, readers }
}

fn listed(root: &Root, path: &str, target: &str) -> String {
    let view = View::of(&Head::of("GET", target));
    let listed = make(folder(root, path, &Readers::default()), view).unwrap();
    String::from_utf8(listed.bytes.to_vec()).unwrap()
}

/// The listing of a folder, when it is there.
fn find(listings: &mut Listings, root: &Root, path: &str, now: Instant) -> Result<Listed, OpenError> {
    readers::wait(|wake_target| {
        if let Some(found) = listings.find(path.as_bytes(), View::default, now) {
            return Poll::Ready(found);
        }
        listings.ask((root, DotFiles::Hide), (path.as_bytes().into(), View::default()), now, wake_target);
        Poll::Pending
    })
}

fn names(root: &Root, dot_files: DotFiles) -> Vec<String> {
    let readers = Readers::default();
    let contents = read::read(Folder { dot_files, ..folder(root, "", &readers) }, MAX_ENTRIES).unwrap();
    let mut names: Vec<String> =
        contents.items.iter().map(|item| String::from_utf8_lossy(&item.name).into_owned()).collect();
    names.sort();
    names
}

/// Deleted, a listing could tell what no request may see.
#[test]
fn a_listing_shows_what_requests_find_and_nothing_else() {
    let (place, root) = place();
    let at = |name: &str| place.path().join("root").join(name);
    for name in ["a.txt", ".env", "colon:name", "back\\slash", "line\nfeed", "number#sign"] {
        fs::write(at(name), "x").unwrap();
    }
    fs::create_dir(at("sub")).unwrap();
    fs::create_dir(at(".git")).unwrap();
    fs::create_dir(at(".well-known")).unwrap();
    symlink("a.txt", at("inside")).unwrap();
    symlink("sub", at("inside-folder")).unwrap();
    symlink("../secret", at("outside")).unwrap();
    symlink(place.path().join("secret"), at("absolute")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at("fifo"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    let open = [".well-known", "a.txt", "inside", "inside-folder", "sub"];
    assert_eq!(names(&root, DotFiles::Hide), open);
    assert_eq!(names(&root, DotFiles::Serve), [&[".env", ".git"], &open[..]].concat());
    // Without openat2 no link is followed, so none is shown.
    assert_eq!(names(&root.clone().without_openat2(), DotFiles::Hide), [".well-known", "a.txt", "sub"]);
    // A link shows what it leads to.
    let json = listed(&root, "", "/?json");
    assert!(json.contains(r#"{"name":"inside","kind":"file","size":1,"#), "{json}");
    assert!(json.contains(r#"{"name":"inside-folder","kind":"folder","#), "{json}");
    assert!(!json.contains(r#""size":23"#), "the size of what is outside: {json}");
}

/// Deleted, a name could run as markup in the reader's browser, or lead elsewhere.
#[test]
fn names_are_escaped_for_html_json_and_links() {
    let (place, root) = place();
    let folder = place.path().join("root").join("a&b");
    fs::create_dir(&folder).unwrap();
    let names: [&[u8]; 5] =
        [b"<script>alert(1)<", b"\"quoted\" 'name'", b"50%?x=1&y", b"javascript", b"\xff\xfe.bin"];
    for name in names {
        fs::write(folder.join(Path::new(std::ffi::OsStr::from_bytes(name))), "").unwrap();
    }
    let page = listed(&root, "a&b", "/a&b/");
    let rows = [
        r#"<a href="%3Cscript%3Ealert%281%29%3C">&lt;script&gt;alert(1)&lt;</a>"#,
        r#"<a href="%22quoted%22%20%27name%27">&quot;quoted&quot; &#39;name&#39;</a>"#,
        r#"<a href="50%25%3Fx%3D1%26y">50%?x=1&amp;y</a>"#,
        "<a href=\"%FF%FE.bin\">\u{fffd}\u{fffd}.bin</a>",
        "<title>/a&amp;b</title>",
        "<bdi>a&amp;b</bdi>",
    ];
    for row in rows {
        assert!(page.contains(row), "{row} is not in {page}");
    }
    assert!(!page.contains("<script"), "{page}");
    let json = listed(&root, "a&b", "/a&b/?json");
    assert!(json.starts_with(r#"{"path":"/a&b/","is_complete":true,"entries":["#), "{json}");
    assert!(json.contains(r#""name":"\"quoted\" 'name'""#), "{json}");
    assert!(json.contains("\"name\":\"\u{fffd}\u{fffd}.bin\",") && json.contains(r#""href":"%FF%FE.bin""#));
}

#[test]
fn entries_are_sorted_as_asked_with_folders_first() {
    let item =
        |name: &str, kind, size, modified_s| Item { name: name.as_bytes().into(), kind, size, modified_s };
    let items = [
        item("b10.txt", Kind::File, 5, 30),
        item("B9.txt", Kind::File, 7, 10),
        item("z", Kind::Folder, 0, 99),
        item("b09.txt", Kind::File, 5, 20),
        item("a", Kind::Folder, 0, 1),
    ];
    let table = [
        ("/", ["a", "z", "B9.txt", "b09.txt", "b10.txt"]),
        ("/?order=desc", ["z", "a", "b10.txt", "b09.txt", "B9.txt"]),
        ("/?sort=size", ["a", "z", "b09.txt", "b10.txt", "B9.txt"]),
        ("/?sort=time&order=desc", ["z", "a", "b10.txt", "b09.txt", "B9.txt"]),
        ("/?sort=nonsense&x&order=", ["a", "z", "B9.txt", "b09.txt", "b10.txt"]),
    ];
    for (target, expected) in table {
        let mut sorted = items.clone();
        View::of(&Head::of("GET", target)).order.sort(&mut sorted);
        let names: Vec<_> = sorted.iter().map(|item| String::from_utf8_lossy(&item.name)).collect();
        assert_eq!(names, expected, "{target}");
    }
    // The links of a page are queries that are understood.
    for key in [Key::Name, Key::Size, Key::Time] {
        for direction in [Direction::Ascending, Direction::Descending] {
            let order = Order { key, direction };
            let target = format!("/{}", order.query().replace("&amp;", "&"));
            assert_eq!(View::of(&Head::of("GET", &target)).order, order);
        }
    }
}

#[test]
fn json_is_sent_to_those_who_prefer_it() {
    let table = [
        (None, Format::Page),
        (Some("application/json"), Format::Json),
        (Some("application/json, text/plain, */*"), Format::Json),
        (Some("Application/JSON;q=0.5"), Format::Json),
        (Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), Format::Page),
        (Some("text/html, application/json"), Format::Page),
        (Some("text/html;q=0.5, application/json;q=0.9"), Format::Json),
        (Some("application/json;q=0"), Format::Page),
        (Some("application/json;q=0, */*"), Format::Page),
        (Some("*/*"), Format::Page),
        (Some(",;q=,text/*;q=x"), Format::Page),
    ];
    for (accept, format) in table {
        let mut head = Head::of("GET", "/");
        accept.iter().for_each(|value| head.on_field(b"accept", value.as_bytes()));
        assert_eq!(View::of(&head).format, format, "{accept:?}");
    }
    assert_eq!(View::of(&Head::of("GET", "/?sort=size&json")).format, Format::Json);
}

/// Deleted, one folder could cost any time and memory.
#[test]
fn what_is_read_of_a_folder_is_bounded_and_a_cut_is_told() {
    let (place, root) = place();
    for number in 0..12 {
        fs::write(place.path().join("root").join(format!("{number}")), "").unwrap();
    }
    let readers = Readers::default();
    let folder = folder(&root, "", &readers);
    let contents = read::read(folder, 10).unwrap();
    assert!(contents.is_cut && contents.items.len() == 10);
    assert!(!read::read(folder, 12).unwrap().is_cut, "all were read");
    let page = page::write(b"", &contents, View::default());
    assert!(page.contains("more than 10000 entries"), "{page}");
    assert!(json::write(b"", &contents).contains("\"is_complete\":false"));
    let empty = page::write(b"", &Contents::default(), View::default());
    assert!(empty.contains("This folder is empty"), "{empty}");
}

#[test]
fn a_folder_is_read_once_a_second_and_few_listings_are_kept() {
    let (place, root) = place();
    let new = |name: &str| fs::write(place.path().join("root").join(name), "").unwrap();
    let mut listings = Listings::new(Readers::default());
    let at = |ms: u64| Instant::from_nanos(1 + ms * 1_000_000);
    let first = find(&mut listings, &root, "", at(0)).unwrap();
    new("a");
    let same = find(&mut listings, &root, "", at(999)).unwrap();
    assert_eq!((first.bytes.as_ptr(), &first.etag), (same.bytes.as_ptr(), &same.etag));
    let other = find(&mut listings, &root, "", at(1_000)).unwrap();
    assert_ne!(first.etag, other.etag);
    let unchanged = find(&mut listings, &root, "", at(2_000)).unwrap();
    assert_eq!(other.bytes.as_ptr(), unchanged.bytes.as_ptr(), "the same bytes keep their memory");
    for number in 0..2 * KEPT {
        let name = format!("folder-{number}");
        fs::create_dir(place.path().join("root").join(&name)).unwrap();
        find(&mut listings, &root, &name, at(2_000)).unwrap();
    }
    assert_eq!(listings.kept.len(), KEPT);
    assert_eq!(find(&mut listings, &root, "none", at(0)).unwrap_err(), OpenError::Absent);
}
