//! Certificates as operators meet them: the first start, the next one, the last days, and every wrong file.

use super::*;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const NOW: u64 = 1_795_235_480;
const DAY: u64 = 86_400;

fn text_of(result: Result<Identity, CertificateError>) -> String {
    let text = result.map(|_| ()).unwrap_err().to_string();
    assert!(!text.contains('\n') && !text.contains("os error"), "{text}");
    text
}

#[test]
fn the_first_start_makes_it_and_the_next_ones_keep_it() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("data/tercel");
    let first = Development::load_or_make(&folder, NOW).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(&folder.join("development.pem"))), (0o700, 0o600));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 2, "no left-overs");
    let public = std::fs::read_to_string(&first.certificate_path).unwrap();
    assert!(public.starts_with("-----BEGIN CERTIFICATE") && !public.contains("PRIVATE"));
    std::fs::set_permissions(folder.join("development.pem"), std::fs::Permissions::from_mode(0o644)).unwrap();
    std::fs::remove_file(&first.certificate_path).unwrap();
    let again = Development::load_or_make(&folder, NOW + 8 * DAY).unwrap();
    assert_eq!(again.identity.chain, first.identity.chain);
    assert_eq!(mode(&folder.join("development.pem")), 0o600);
    assert_eq!(
        Identity::load(&again.certificate_path, &folder.join("development.pem")).unwrap().chain,
        again.identity.chain
    );
}

/// Chromium wants at most 14 days; a renewed certificate keeps its key, so that flags given once stay right.
#[test]
fn short_lived_and_renewed_in_time() {
    let home = tempfile::tempdir().unwrap();
    let first = Development::load_or_make(home.path(), NOW).unwrap();
    let facts = der::facts(&first.identity.chain[0]).unwrap();
    assert!(facts.not_before_s < NOW && facts.not_after_s - facts.not_before_s <= 14 * DAY);
    assert_eq!(first.not_after_s, facts.not_after_s);
    let next = Development::load_or_make(home.path(), first.renew_at_s() + 1).unwrap();
    assert_ne!(next.identity.chain, first.identity.chain);
    assert_eq!(next.spki_hash, first.spki_hash);
    assert!(next.not_after_s > first.not_after_s);
    // A clock that was wrong on the first start.
    let past = Development::load_or_make(home.path(), NOW - 400 * DAY).unwrap();
    assert!(past.not_after_s < NOW);
}

#[test]
fn a_damaged_store_is_mended_and_an_unusable_one_is_told() {
    let home = tempfile::tempdir().unwrap();
    let first = Development::load_or_make(home.path(), NOW).unwrap();
    let pair = home.path().join("development.pem");
    let text = std::fs::read_to_string(&pair).unwrap();
    for damaged in ["", "garbage", &text[..text.len() / 2]] {
        std::fs::write(&pair, damaged).unwrap();
        let mended = Development::load_or_make(home.path(), NOW).unwrap();
        assert_ne!(mended.identity.chain, first.identity.chain);
    }
    let error = Development::load_or_make(&pair, NOW).unwrap_err().to_string();
    assert!(error.contains("--cert and --key") && !error.contains('\n'), "{error}");
}

#[test]
fn where_it_is_kept() {
    let folder = |data: Option<&str>, home: Option<&str>| {
        default_folder(|name| if name == "HOME" { home } else { data }.map(Into::into))
            .map_err(|error| error.to_string())
    };
    assert_eq!(folder(Some("/data"), Some("/home/u")), Ok(PathBuf::from("/data/tercel")));
    assert_eq!(folder(None, Some("/home/u")), Ok(PathBuf::from("/home/u/.local/share/tercel")));
    assert_eq!(folder(Some("relative"), Some("/home/u")), Ok(PathBuf::from("/home/u/.local/share/tercel")));
    assert!(folder(Some(""), None).unwrap_err().contains("set HOME"));
}

#[test]
fn browsers_are_told_what_they_need() {
    let home = tempfile::tempdir().unwrap();
    let made = Development::load_or_make(home.path(), NOW).unwrap();
    assert_eq!(made.spki_hash.len(), 44);
    let table = [
        ("[::]:4433", "localhost", ""),
        ("0.0.0.0:4433", "127.0.0.1", ""),
        ("127.0.0.1:4433", "127.0.0.1", ""),
        ("[::1]:4433", "[::1]", ""),
        ("192.0.2.1:4433", "192.0.2.1", "--resolve localhost:4433:192.0.2.1 "),
        ("[2001:db8::1]:4433", "[2001:db8::1]", "--resolve localhost:4433:[2001:db8::1] "),
    ];
    for (listening, host, detour) in table {
        let text = made.how_to_use(listening.parse().unwrap());
        let name = if detour.is_empty() { host } else { "localhost" };
        assert!(text.contains(&format!("{detour}https://{name}:4433/\n")), "{text}");
        let chromium = format!(
            "--origin-to-force-quic-on={host}:4433 --ignore-certificate-errors-spki-list={} https://{host}:4433/\n",
            made.spki_hash
        );
        assert!(text.contains(&chromium), "{text}");
    }
}

#[test]
fn wrong_files_get_one_clear_line_each() {
    let home = tempfile::tempdir().unwrap();
    let path = |name: &str| home.path().join(name);
    Development::load_or_make(&path("one"), NOW).unwrap();
    Development::load_or_make(&path("two"), NOW).unwrap();
    let (certificate, key) = (path("one/development-certificate.pem"), path("one/development.pem"));
    let only_key = path("key.pem");
    let pair = std::fs::read_to_string(&key).unwrap();
    std::fs::write(&only_key, &pair[..pair.find("-----BEGIN CERT").unwrap()]).unwrap();
    assert!(Identity::load(&certificate, &only_key).is_ok());

    let absent = path("absent.pem");
    assert!(text_of(Identity::load(&absent, &key)).contains("does not exist: give --cert"));
    assert!(text_of(Identity::load(&certificate, &absent)).contains("does not exist: give --key"));
    assert!(text_of(Identity::load(home.path(), &key)).starts_with("cannot read the certificate file"));
    assert!(text_of(Identity::load(Path::new("/dev/zero"), &key)).contains("1 MiB"));
    assert!(
        text_of(Identity::load(&only_key, &certificate)).contains("holds a private key and no certificate")
    );
    assert!(
        text_of(Identity::load(&certificate, &certificate))
            .contains("holds a certificate and no private key")
    );
    let mismatch = text_of(Identity::load(&certificate, &path("two/development.pem")));
    assert!(mismatch.contains("is not the key of the certificate in"), "{mismatch}");

    let odd = path("odd.pem");
    let cases: &[(&str, &str, &str)] = &[
        ("", "is not a PEM file with a certificate", "is not a PEM file with a private key"),
        ("\u{0}\u{1}binary", "is not a PEM file with a certificate", "is not a PEM file with a private key"),
        (&pair[..pair.len() - 40], "is not a PEM file with a certificate", ""),
        (
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "cannot be parsed",
            "holds a certificate and no private key",
        ),
        (
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "is not a PEM file",
            "has a passphrase",
        ),
    ];
    for (content, as_certificate, as_key) in cases {
        std::fs::write(&odd, content).unwrap();
        let text = text_of(Identity::load(&odd, &only_key));
        assert!(text.contains(as_certificate), "{content:?}: {text}");
        if !as_key.is_empty() {
            let text = text_of(Identity::load(&certificate, &odd));
            assert!(text.contains(as_key), "{content:?}: {text}");
        }
    }
}

/// Fails without it: a certificate that every client refuses is served without a word. The weakest of the chain counts.
#[test]
fn the_validity_of_a_chain_is_that_of_its_weakest_certificate() {
    let made = |from: u64, until: u64| {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut params = rcgen::CertificateParams::new(["localhost".to_string()]).unwrap();
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + std::time::Duration::from_secs(from);
        params.not_after = epoch + std::time::Duration::from_secs(until);
        (params.self_signed(&key).unwrap().der().clone(), key)
    };
    let (first, key) = made(NOW - DAY, NOW + 100 * DAY);
    let (weak, _) = made(NOW - 10 * DAY, NOW + 20 * DAY);
    let key = rustls_pki_types::PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let alone = Identity { chain: vec![first.clone()], key: key.clone_key() };
    let both = Identity { chain: vec![first, weak], key };
    assert_eq!(alone.validity(NOW), Validity::Good);
    assert_eq!(alone.validity(NOW - 2 * DAY), Validity::NotYet { from_s: NOW - DAY });
    assert_eq!(alone.validity(NOW + 87 * DAY), Validity::Soon { until_s: NOW + 100 * DAY });
    assert_eq!(both.validity(NOW + 6 * DAY), Validity::Good);
    assert_eq!(both.validity(NOW + 7 * DAY), Validity::Soon { until_s: NOW + 20 * DAY });
    assert_eq!(both.validity(NOW + 21 * DAY), Validity::Expired { since_s: NOW + 20 * DAY });
    assert!(both.validity(NOW + 21 * DAY).to_string().starts_with("has expired, on "));
}
