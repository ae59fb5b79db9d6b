use crate::case::requested;
use crate::{Case, Error, client, server};
use std::path::Path;
use std::sync::Arc;

/// Serves a folder with a few files, downloads them as the case says, and compares.
fn transfer(name: &str) -> Result<(), Error> {
    let case: Case = name.parse()?;
    let folder = tempfile::tempdir()?;
    let (root, output) = (folder.path().join("root"), folder.path().join("output"));
    std::fs::create_dir(&root)?;
    std::fs::create_dir(&output)?;
    let paths: Vec<String> = (0..4).map(|number| format!("file-{number}")).collect();
    for (path, len) in paths.iter().zip([100, 600_000, 0, 5_000]) {
        std::fs::write(root.join(path), vec![7; len])?;
    }
    let made = rcgen::generate_simple_self_signed(vec!["server".to_owned()])?;
    let (cert, key) = (folder.path().join("cert"), folder.path().join("key"));
    std::fs::write(&cert, made.cert.pem())?;
    std::fs::write(&key, made.signing_key.serialize_pem())?;
    let serving = server::Options {
        case,
        listen: ([127, 0, 0, 1], 0).into(),
        cert: cert.clone(),
        key,
        root: root.clone(),
        ready_file: None,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let endpoint = server::open(&serving)?;
        let connect = endpoint.local_addr()?;
        tokio::spawn(server::accept(endpoint.clone(), root.clone()));
        let options = client::Options {
            case,
            connect,
            name: "server".to_owned(),
            cacert: cert,
            output: output.clone(),
            migrate_to: Some([127, 0, 0, 2].into()),
            paths: paths.clone(),
        };
        client::download(Arc::new(options)).await?;
        let handshakes = endpoint.stats().accepted_handshakes;
        let expected = match case {
            Case::MultiConnect => 4,
            Case::Resumption | Case::ZeroRtt => 2,
            _ => 1,
        };
        assert_eq!(handshakes, expected, "{name}");
        Ok::<_, Error>(())
    })?;
    let content = |folder: &Path, path: &String| std::fs::read(folder.join(path));
    for path in &paths {
        assert_eq!(content(&root, path)?, content(&output, path)?, "{name}: {path}");
    }
    Ok(())
}

/// Would break: a cell of the interoperability table would fail by the laboratory's own fault.
#[test]
fn every_case_transfers_its_files_by_as_many_connections_as_it_says() -> Result<(), Error> {
    let cases = ["transfer", "chacha20", "retry", "resumption", "zerortt", "keyupdate", "multiconnect"];
    cases.into_iter().chain(["connectionmigration", "v2", "multipath"]).try_for_each(transfer)
}

/// Would break: a case that is not offered would count as one that fails.
#[test]
fn a_case_that_is_not_offered_says_so() {
    let refused = "juggling".parse::<Case>().map_err(|unknown| unknown.to_string());
    assert_eq!(refused, Err("case juggling is not offered".to_owned()));
}

#[test]
fn a_request_names_a_file_below_the_folder() {
    assert_eq!(requested(b"GET /a/b\r\n").ok(), Some("a/b"));
    for bad in [&b"GET /../a"[..], b"GET //etc/passwd", b"GET /", b"PUT /a", b"GET a", b"\xff"] {
        assert!(requested(bad).is_err(), "{bad:?}");
    }
}
