//! A store in a file, with clients that know nothing of each other but the file: as processes that come one after the other.

use super::*;
use crate::config::{Identity, Roots};
use crate::resumption::{EarlyTerms, StrikeRegister, TicketKeys, TicketOptions};
use crate::suite::Suite;
use crate::testing::{Authority, End, Pair};
use crate::{
    Authorities, ClientAuth, ClientTls, EarlyStatus, ServerId, ServerTls, SuiteChoice, TlsOptions, TlsSession,
};
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use tempfile::TempDir;

/// A server with tickets, and a file of its clients.
struct Setup {
    authority: Authority,
    server: ServerTls,
    folder: TempDir,
}

impl Setup {
    fn new() -> Setup {
        Setup::with(TlsOptions::default())
    }

    fn with(options: TlsOptions) -> Setup {
        let authority = Authority::new();
        let keys = Arc::new(TicketKeys::in_memory(1_000));
        let early_data = Some(Arc::new(StrikeRegister::new(1_000)));
        let tickets = TicketOptions { early_data, ..TicketOptions::new(keys) };
        let server = ServerTls::new(&authority.identity().unwrap(), &options).unwrap().with_tickets(tickets);
        Setup { authority, server, folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("sessions")
    }

    fn store(&self) -> FileSessions {
        FileSessions::open(self.path()).unwrap()
    }

    /// A client of a new process.
    fn client(&self, roots: &Roots, options: &TlsOptions) -> ClientTls {
        let client = ClientTls::new(roots, options).unwrap();
        client.with_sessions(Arc::new(self.store())).with_early_data()
    }

    fn usual(&self) -> ClientTls {
        self.client(&self.authority.roots(), &TlsOptions::default())
    }

    /// A handshake: whether it was resumed, and what became of early data.
    fn connect(&self, client: &ClientTls) -> (bool, EarlyStatus) {
        let terms = EarlyTerms { limits: vec![100], is_permitted: true };
        let server = ServerId { name: "localhost", port: 443 };
        let client = TlsSession::client(client, Version::V1, &server, b"client parameters").unwrap();
        let server = TlsSession::server(&self.server, Version::V1, b"server parameters", terms).unwrap();
        let mut pair = Pair { client: End::new(client), server: End::new(server) };
        if pair.client.tls.early_status() == EarlyStatus::Offered {
            assert_eq!(pair.client.tls.remembered_parameters(), Some(&b"server parameters"[..]));
        }
        pair.run(1_000).unwrap();
        let client = &pair.client.tls;
        assert_eq!(client.is_resumed(), pair.server.tls.is_resumed());
        let shown = client.peer_certificates().unwrap();
        let identity = self.authority.identity().unwrap();
        assert!(identity.certificates().eq(shown.iter().map(AsRef::as_ref)), "those of the real server");
        (client.is_resumed(), client.early_status())
    }
}

const FULL: (bool, EarlyStatus) = (false, EarlyStatus::None);
const EARLY: (bool, EarlyStatus) = (true, EarlyStatus::Accepted);

/// Deleted, each process of a client could begin with full handshakes.
#[test]
fn the_next_process_resumes_and_sends_early_data_with_every_suite() {
    for suite in Suite::ALL {
        let options = TlsOptions { suites: SuiteChoice::Only(suite), ..TlsOptions::default() };
        let setup = Setup::with(options.clone());
        let client = || setup.client(&setup.authority.roots(), &options);
        assert_eq!(setup.connect(&client()), FULL, "{suite}");
        for _ in 0..6 {
            assert_eq!(setup.connect(&client()), EARLY, "{suite}");
        }
        // Of this process, too.
        let client = client();
        assert_eq!([setup.connect(&client), setup.connect(&client)], [EARLY; 2]);
        let mode = std::fs::metadata(setup.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(setup.folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }
}

/// Deleted, a client that trusts no such authority could be spoken to by a server whose session it got when it trusted everybody, and a client
/// without a certificate could have the access of one that had shown one.
#[test]
fn a_ticket_serves_only_who_trusts_the_server_now_and_shows_the_same_certificate() {
    let clients = Authority::new();
    let accepted = Authorities::from_pem(clients.ca_pem.as_bytes()).unwrap();
    let setup =
        Setup::with(TlsOptions { client_auth: ClientAuth::Optional(accepted), ..TlsOptions::default() });
    let showing =
        |identity: Identity| TlsOptions { client_identity: Some(identity), ..TlsOptions::default() };
    let (own, other) = (clients.identity().unwrap(), clients.identity().unwrap());
    let options = TlsOptions::default();
    assert_eq!(setup.connect(&setup.client(&Roots::Insecure, &options)), FULL);
    let distrusting = setup.client(&Authority::new().roots(), &options);
    let server = ServerId { name: "localhost", port: 443 };
    let session = TlsSession::client(&distrusting, Version::V1, &server, b"client parameters").unwrap();
    assert_eq!(session.early_status(), EarlyStatus::None);
    assert_eq!(
        setup.connect(&setup.client(&setup.authority.roots(), &options)),
        EARLY,
        "it is trusted here, too"
    );
    let roots = setup.authority.roots();
    assert_eq!(
        setup.connect(&setup.client(&roots, &showing(own.clone()))),
        FULL,
        "a certificate, none before"
    );
    let _ = std::fs::remove_file(setup.path());
    assert_eq!(setup.connect(&setup.client(&roots, &showing(own))), FULL);
    assert_eq!(
        setup.connect(&setup.client(&roots, &showing(other))),
        EARLY,
        "the same certificate, read again"
    );
    assert_eq!(setup.connect(&setup.client(&roots, &options)), FULL, "none any more");
    let chacha = SuiteChoice::Only(Suite::ChaCha20Poly1305);
    let setup = Setup::new();
    assert_eq!(setup.connect(&setup.usual()), FULL);
    let narrower = TlsOptions { suites: chacha, ..TlsOptions::default() };
    let suite_changed = setup.connect(&setup.client(&setup.authority.roots(), &narrower));
    assert!(!suite_changed.0, "a suite that it does not use any more");
}

fn server(port: u16) -> ServerKey {
    ServerKey { name: "localhost".into(), port, version: Version::V1, protocols: b"\x02h3".to_vec() }
}

/// Deleted, two processes could send the same ticket or token, by which an observer links them, or one could drop what the other keeps.
#[test]
fn of_several_processes_each_gets_what_no_other_gets_and_keeps_what_others_keep() {
    let setup = Setup::new();
    let stores = [(); 4].map(|()| setup.store());
    for port in 1..=10 {
        for byte in [1, 2] {
            stores[usize::from(port) % 4].put_token(&server(port), vec![byte]);
        }
    }
    let taken: usize = std::thread::scope(|scope| {
        let take = |store: &FileSessions| {
            (1..=10).map(|port| std::iter::from_fn(|| store.take_token(&server(port))).count()).sum::<usize>()
        };
        let threads: Vec<_> = stores.iter().map(|store| scope.spawn(move || take(store))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(taken, 20, "each once");
    for (store, state) in stores.iter().zip(1..) {
        store.put_application(&server(state.into()), vec![state]);
    }
    for state in 1..=4 {
        assert_eq!(stores[0].application(&server(state.into())), Some(vec![state]));
    }
    assert!(stores.iter().all(|store| store.take_error().is_none()));
}

#[test]
fn what_is_kept_is_bounded_and_the_server_not_used_for_longest_gives_way() {
    let setup = Setup::new();
    let store = setup.store();
    for port in 1..=MAX_SERVERS as u16 + 3 {
        store.put_application(&server(port), vec![7]);
    }
    let store = setup.store();
    let known = |port| store.application(&server(port)).is_some();
    assert_eq!([1, 3, 4, MAX_SERVERS as u16 + 3].map(known), [false, false, true, true]);
    store.put_token(&server(1), vec![0; MAX_LEN + 1]);
    store.put_application(&ServerKey { name: "two words".into(), ..server(1) }, vec![1]);
    assert_eq!(store.take_token(&server(1)), None);
    assert!(setup.store().take_error().is_none(), "the file is one that can be read");
}

/// Deleted, a client could write over a file that it was pointed at by mistake, or take half a file for a whole one.
#[test]
fn a_file_that_is_torn_foreign_of_another_version_or_open_to_all_is_refused_in_words_and_left_as_it_is() {
    let setup = Setup::new();
    assert_eq!(setup.connect(&setup.usual()), FULL);
    let (path, running) = (setup.path(), setup.store());
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = FileSessions::open(&path).expect_err("it is refused");
        running.put_token(&server(1), vec![1]);
        assert!(running.take_token(&server(1)).is_none());
        assert_eq!(
            running.take_error().unwrap().to_string(),
            error.to_string(),
            "a process that runs says it too"
        );
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        let text = error.to_string();
        assert!(!text.contains('\n') && text.contains(path.to_str().unwrap()), "{text}");
        error
    };
    for len in (20..whole.len()).step_by(97).chain([whole.len() - 1]) {
        assert!(matches!(refused(&whole[..len]), SessionFileError::Torn { .. }), "{len} bytes");
    }
    for place in (20..whole.len()).step_by(211) {
        let mut changed = whole.clone();
        changed[place] = if changed[place] == b'0' { b'1' } else { b'0' };
        assert!(matches!(refused(&changed), SessionFileError::Torn { .. }), "{place}");
    }
    for foreign in [&b""[..], b"{}", b"tercel ticket keys 1\n", &[0xff; 100]] {
        assert!(matches!(refused(foreign), SessionFileError::Foreign { .. }));
    }
    let newer = String::from_utf8(whole.clone()).unwrap().replace("sessions 1\n", "sessions 2\n");
    assert!(matches!(refused(newer.as_bytes()), SessionFileError::OtherVersion { .. }));
    std::fs::write(&path, &whole).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o604)).unwrap();
    assert!(matches!(FileSessions::open(&path), Err(SessionFileError::Exposed { .. })));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(setup.connect(&setup.usual()), EARLY, "nothing was lost");
    let text = FileSessions::open("/nonexistent/sessions").expect_err("no such folder").to_string();
    assert!(text.contains("/nonexistent/sessions"), "{text}");
}

#[test]
fn a_ticket_in_bytes_is_the_ticket_until_its_lifetime_is_over_and_damaged_bytes_are_none() {
    let setup = Setup::new();
    assert_eq!(setup.connect(&setup.usual()), FULL);
    let key = ServerKey { port: 443, ..server(443) };
    let bytes = setup.store().take_ticket(&key).unwrap().to_bytes().unwrap();
    let ticket = WrittenTicket::from_bytes(&bytes).unwrap();
    assert_eq!(ticket.to_bytes(), bytes);
    let end_s = ticket.received_s + 1_000;
    assert_eq!([end_s, end_s + 1].map(|now_s| ticket.is_expired(now_s)), [false, true]);
    for len in 0..bytes.len() {
        let cut = WrittenTicket::from_bytes(&bytes[..len]);
        // Between two certificates the chain is a shorter one.
        assert!(cut.is_none_or(|cut| cut.chain.len() < ticket.chain.len()), "{len} bytes");
    }
    let lines = std::fs::read_to_string(setup.path()).unwrap();
    let body = &lines[lines.find('\n').unwrap() + 1..lines.rfind("end ").unwrap()];
    assert!(parse(body, end_s).unwrap().find(&key).is_some_and(|server| !server.tickets.is_empty()));
    assert!(parse(body, end_s + 1).unwrap().find(&key).is_some_and(|server| server.tickets.is_empty()));
}
