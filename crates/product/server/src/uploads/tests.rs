use super::*;
use std::path::Path;
use tempfile::TempDir;

const MAX: u64 = 300_000;

fn uploads(folder: &Path) -> Uploads {
    Uploads::new(Root::open(folder).unwrap(), DotFiles::Hide, MAX)
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// The status of a PUT, and the entity tag of the file.
fn put(uploads: &Uploads, target: &str, content: impl Into<Bytes>, fields: &[(&str, &str)]) -> (u16, String) {
    let mut request = Request::put(target);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    match run(uploads.put(request.body(Body::from(content.into())).unwrap())) {
        Ok(response) => {
            let etag = response.headers()[header::ETAG].to_str().unwrap().to_owned();
            (response.status().as_u16(), etag)
        }
        Err(error) => (error.status, String::new()),
    }
}

fn folder() -> TempDir {
    let folder = TempDir::new().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    folder
}

/// Names in a folder, temporary files too.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_made_and_replaced_whole() {
    use std::os::unix::fs::PermissionsExt as _;
    let root = folder();
    let uploads = uploads(root.path());
    let (status, first) = put(&uploads, "/sub/a%20b.txt?x", "one", &[]);
    assert_eq!(status, 201);
    let path = root.path().join("sub/a b.txt");
    assert_eq!(std::fs::read(&path).unwrap(), b"one");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let large = vec![7; MAX as usize];
    let (status, second) = put(&uploads, "/sub/a%20b.txt", large.clone(), &[]);
    assert_eq!((status, std::fs::read(&path).unwrap() == large), (204, true));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o640);
    assert_ne!(first, second);
    assert_eq!(put(&uploads, "/empty", "", &[]).0, 201);
    assert_eq!(
        (names(root.path()), names(&root.path().join("sub"))),
        (vec!["empty".into(), "sub".into()], vec!["a b.txt".into()])
    );
}

/// Deleted, of two who change a file at a time one could lose what it wrote without a word.
#[test]
fn a_file_changes_only_while_the_conditions_hold() {
    let root = folder();
    let uploads = uploads(root.path());
    assert_eq!(put(&uploads, "/a", "0", &[("if-match", "*")]).0, 412);
    let (status, first) = put(&uploads, "/a", "1", &[("if-none-match", "*")]);
    assert_eq!(status, 201);
    assert_eq!(put(&uploads, "/a", "2", &[("if-none-match", "*")]).0, 412);
    let (status, second) = put(&uploads, "/a", "22", &[("if-match", &first)]);
    assert_eq!(status, 204);
    assert_eq!(put(&uploads, "/a", "3", &[("if-match", &first)]).0, 412);
    assert_eq!(put(&uploads, "/a", "3", &[("if-unmodified-since", "Sat, 01 Jan 2000 00:00:00 GMT")]).0, 412);
    assert_eq!(std::fs::read(root.path().join("a")).unwrap(), b"22");

    // Both begin while the condition holds.
    let begin = || {
        let fields =
            http::HeaderMap::from_iter([(header::IF_MATCH, HeaderValue::from_str(&second).unwrap())]);
        uploads.shared.store.begin(b"a".to_vec(), conditions(&fields)).unwrap()
    };
    let [one, other] = [begin(), begin()];
    let other = other.write(&[Bytes::from_static(b"other")]).unwrap();
    assert!(!uploads.shared.store.finish(one.write(&[Bytes::from_static(b"one")]).unwrap()).unwrap().is_new);
    assert_eq!(uploads.shared.store.finish(other).unwrap_err().status, 412);
    assert_eq!(
        (std::fs::read(root.path().join("a")).unwrap(), names(root.path()).len()),
        (b"one".to_vec(), 2)
    );
}

/// Deleted, a client could write where the operator does not want it, or over what is no file.
#[test]
fn nothing_is_stored_outside_or_over_what_is_no_file() {
    let outside = TempDir::new().unwrap();
    std::fs::write(outside.path().join("file"), "kept").unwrap();
    let root = folder();
    let link = |to: &Path, name: &str| std::os::unix::fs::symlink(to, root.path().join(name)).unwrap();
    link(outside.path(), "out");
    link(&outside.path().join("file"), "link");
    link(Path::new("sub"), "in");
    let uploads = uploads(root.path());
    for (target, status) in [
        ("/../x", 400),
        ("/%2e%2e/x", 400),
        ("/a%2Fb", 400),
        ("/out/file", 409),
        ("/out/new", 409),
        ("/link", 409),
        ("/sub", 409),
        ("/sub/", 409),
        ("/", 409),
        ("/none/a", 409),
        ("/.hidden", 404),
        ("/.tercel-upload-0", 404),
        (&format!("/{}", "x".repeat(300)), 414),
        ("/in/through", 201),
    ] {
        assert_eq!(put(&uploads, target, "x", &[]).0, status, "{target}");
    }
    assert_eq!(put(&uploads, "/part", "x", &[("content-range", "bytes 0-0/2")]).0, 400);
    let open = Uploads::new(Root::open(root.path()).unwrap(), DotFiles::Serve, MAX);
    assert_eq!(put(&open, "/.tercel-upload-0", "x", &[]).0, 404);
    assert_eq!(
        (names(outside.path()), names(&root.path().join("sub"))),
        (vec!["file".into()], vec!["through".into()])
    );
    assert_eq!(std::fs::read(outside.path().join("file")).unwrap(), b"kept");
}

/// Deleted, a client could fill the disk or the memory, or leave pieces of files.
#[test]
fn what_is_too_large_too_many_or_breaks_off_leaves_nothing() {
    let root = folder();
    let uploads = uploads(root.path());
    assert_eq!(put(&uploads, "/a", vec![0; MAX as usize + 1], &[]).0, 413);
    assert_eq!(put(&uploads, "/a", "", &[("content-length", "300001")]).0, 413);
    let broken = async {
        let (mut sender, body) = Body::channel(1_000_000);
        let request = Request::put("/a").body(body).unwrap();
        sender.send(Bytes::from(vec![1; UNWRITTEN])).await.unwrap();
        sender.abort("gone");
        uploads.put(request).await.unwrap_err().status
    };
    assert_eq!(run(broken), 400);

    // As many as there may be; each has a file by the time it is polled again.
    run(async {
        let mut senders = Vec::new();
        let mut under_way: Vec<_> = (0..MOST)
            .map(|number| {
                let (sender, body) = Body::channel(1_000);
                senders.push(sender);
                Box::pin(uploads.put(Request::put(format!("/{number}")).body(body).unwrap()))
            })
            .collect();
        while names(root.path()).len() <= MOST {
            for upload in &mut under_way {
                let polled = poll_fn(|cx| std::task::Poll::Ready(upload.as_mut().poll(cx).is_ready())).await;
                assert!(!polled);
            }
        }
        let request = Request::put("/more").body(Body::empty()).unwrap();
        assert_eq!(uploads.put(request).await.unwrap_err().status, 503);
        drop(under_way);
        // They are removed by threads.
        for _ in 0..1_000 {
            if names(root.path()).len() == 1 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    });
    assert_eq!(names(root.path()), ["sub"]);
    assert_eq!(put(&uploads, "/a", "x", &[]).0, 201);
}
