//! Tickets between both ends of a handshake, keys that rotate, and the file that servers share.

use super::key_file::KeyFile;
use super::key_set::KeySet;
use super::ticket_keys::Opened;
use super::*;
use crate::config::{ClientTls, ServerTls, TlsOptions};
use crate::level::Level;
use crate::packet::TAG_LEN;
use crate::session::EarlyStatus;
use crate::testing::{Authority, End, Pair};
use crate::{ServerId, TlsSession};
use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use wire::Version;

/// A clock that stands still until it is told.
#[derive(Debug)]
struct Clock(AtomicU64);

impl Clock {
    fn at(time_s: u64) -> Arc<Clock> {
        Arc::new(Clock(AtomicU64::new(time_s)))
    }

    fn now() -> Arc<Clock> {
        Clock::at(UnixTime::now().as_secs())
    }

    fn advance(&self, by_s: u64) {
        self.0.fetch_add(by_s, Ordering::Relaxed);
    }
}

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(std::time::Duration::from_secs(self.0.load(Ordering::Relaxed))))
    }
}

const LIFETIME_S: u32 = 1_000;

fn keys(clock: &Arc<Clock>) -> TicketKeys {
    TicketKeys::with_time(LIFETIME_S, None, clock.clone())
}

fn shared(path: &Path, clock: &Arc<Clock>) -> Result<TicketKeys, TicketFileError> {
    let keys = TicketKeys::with_time(LIFETIME_S, Some(KeyFile::new(path)), clock.clone());
    keys.refresh().map(|()| keys)
}

fn is_open(opened: Option<Opened>) -> bool {
    opened.is_some_and(|opened| opened.session[..] == *b"session")
}

#[test]
fn a_ticket_opens_for_its_lifetime_whatever_keys_come_and_then_no_more() {
    let clock = Clock::at(1_000_000);
    let keys = keys(&clock);
    for _ in 0..40 {
        let ticket = keys.seal(b"context", b"session").unwrap();
        assert!(is_open(keys.open(b"context", &ticket)));
        clock.advance(LIFETIME_S.into());
        assert!(is_open(keys.open(b"context", &ticket)), "in the last second");
        clock.advance(1);
        assert!(keys.open(b"context", &ticket).is_none(), "a second later");
        clock.advance(76);
    }
}

/// The objective of rotation: what was sealed long ago stays secret though the server is broken into.
#[test]
fn a_key_is_gone_when_the_last_of_its_tickets_is_too_old() {
    let clock = Clock::at(1_000_000);
    let mut set = KeySet::default().rotated(1_000_000, 1_000).unwrap();
    assert_eq!(set.0.len(), 2, "one that seals and the next one");
    let first = set.0[0].name;
    for (now_s, expected) in [(1_000_999, true), (1_001_000, true), (1_001_999, true), (1_002_000, false)] {
        set = set.rotated(now_s, 1_000).unwrap_or(set);
        assert_eq!(set.0.iter().any(|key| key.name == first), expected, "{now_s}");
        assert!(set.0.len() <= 3 && set.0.last().unwrap().from_s > now_s, "the next key is always known");
    }
    // A server that slept: none of the keys is of use.
    let slept = set.rotated(9_000_000, 1_000).unwrap();
    assert_eq!(slept.0.iter().map(|key| key.from_s).collect::<Vec<_>>(), [9_000_000, 9_001_000]);
    drop(clock);
}

#[test]
fn a_ticket_that_is_changed_or_for_another_context_is_none() {
    let keys = keys(&Clock::now());
    let ticket = keys.seal(b"context", b"session").unwrap();
    assert!(keys.open(b"other", &ticket).is_none());
    for place in 0..ticket.len() {
        let mut changed = ticket.clone();
        changed[place] ^= 1;
        assert!(keys.open(b"context", &changed).is_none(), "{place}");
        assert!(keys.open(b"context", &ticket[..place]).is_none(), "{place}");
    }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn servers_that_share_a_file_open_each_others_tickets_across_rotations() {
    let (folder, clock) = (folder(), Clock::at(1_000_000));
    let path = folder.path().join("tickets");
    let [one, other] = [(); 2].map(|()| shared(&path, &clock).unwrap());
    assert_eq!(mode(&path), 0o600);
    for step in 0..12 {
        let (sealing, opening) = if step % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let ticket = sealing.seal(b"", b"session").unwrap();
        assert!(is_open(opening.open(b"", &ticket)), "step {step}");
        clock.advance(400);
        // Only one of them looks at the file, the other works with the keys that it knows of in time.
        sealing.refresh().unwrap();
        assert!(is_open(opening.open(b"", &ticket)), "step {step}, 400 s later");
        opening.refresh().unwrap();
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no file is left beside it");
    let later = shared(&path, &clock).unwrap();
    let ticket = one.seal(b"", b"session").unwrap();
    assert!(is_open(later.open(b"", &ticket)), "a server that starts later");
}

/// Of a file that is not whole nothing is taken, and it is not overwritten: another server may have it whole.
#[test]
fn a_file_that_is_torn_foreign_or_open_to_all_is_refused_in_words_and_left_as_it_is() {
    let (folder, clock) = (folder(), Clock::at(1_000_000));
    let path = folder.path().join("tickets");
    let running = shared(&path, &clock).unwrap();
    let ticket = running.seal(b"", b"session").unwrap();
    let whole = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let error = shared(&path, &clock).expect_err("it is refused");
        assert!(running.refresh().is_err());
        assert!(is_open(running.open(b"", &ticket)), "the server that runs keeps its keys");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
        let text = error.to_string();
        assert!(!text.contains('\n') && text.contains("tickets"), "{text}");
        error
    };
    for len in 21..whole.len() {
        assert!(matches!(refused(&whole[..len]), TicketFileError::Torn { .. }), "{len} bytes");
    }
    for place in (21..whole.len()).step_by(7) {
        let mut changed = whole.clone();
        changed[place] = if changed[place] == b'0' { b'1' } else { b'0' };
        assert!(matches!(refused(&changed), TicketFileError::Torn { .. }), "{place}");
    }
    for foreign in [&b""[..], b"{}", b"tercel ticket keys 2\n", &[0xff; 100], &[b'x'; 10_000]] {
        assert!(matches!(refused(foreign), TicketFileError::Foreign { .. }));
    }
    std::fs::write(&path, &whole).unwrap();
    set_mode(&path, 0o604);
    assert!(matches!(shared(&path, &clock), Err(TicketFileError::Exposed { .. })));
    set_mode(&path, 0o600);
    running.refresh().unwrap();
    let nowhere = PathBuf::from("/nonexistent/tickets");
    let text = shared(&nowhere, &clock).expect_err("no such folder").to_string();
    assert!(text.contains("/nonexistent/tickets"), "{text}");
}

/// A server with tickets and the clients of it.
struct Setup {
    authority: Authority,
    server: ServerTls,
    client: ClientTls,
    store: Arc<MemorySessions>,
    clock: Arc<Clock>,
    keys: Arc<TicketKeys>,
    register: Arc<StrikeRegister>,
    terms: EarlyTerms,
    version: Version,
    name: &'static str,
}

impl Setup {
    fn new() -> Setup {
        let (authority, clock) = (Authority::new(), Clock::now());
        let (keys, register) = (Arc::new(keys(&clock)), Arc::new(StrikeRegister::new(1_000)));
        let store = Arc::new(MemorySessions::default());
        let options = TlsOptions::default();
        let client = ClientTls::new(&authority.roots(), &options).unwrap();
        let client = client.with_sessions(store.clone()).with_early_data();
        let server = ServerTls::new(&authority.identity().unwrap(), &options).unwrap();
        let terms = EarlyTerms { limits: vec![100, 200], is_permitted: true };
        let mut setup = Setup {
            authority,
            server,
            client,
            store,
            clock,
            keys,
            register,
            terms,
            version: Version::V1,
            name: "localhost",
        };
        setup.server = setup.serving(TlsOptions::default());
        setup
    }

    fn tickets(&self) -> TicketOptions {
        TicketOptions {
            early_data: Some(Arc::clone(&self.register)),
            application: b"settings".to_vec(),
            ..TicketOptions::new(Arc::clone(&self.keys))
        }
    }

    fn serving(&self, options: TlsOptions) -> ServerTls {
        let server = ServerTls::new(&self.authority.identity().unwrap(), &options).unwrap();
        server.with_tickets(self.tickets())
    }

    fn pair(&self) -> Pair {
        let server = ServerId { name: self.name, port: 443 };
        let client = TlsSession::client(&self.client, self.version, &server, b"client parameters").unwrap();
        let server =
            TlsSession::server(&self.server, self.version, b"server parameters", self.terms.clone()).unwrap();
        Pair { client: End::new(client), server: End::new(server) }
    }

    /// A handshake. Whether it was resumed, as both ends say, and what they say of early data.
    fn connect(&self) -> (bool, EarlyStatus) {
        let mut pair = self.pair();
        pair.run(1_000).unwrap();
        let Pair { client: End { tls: client, .. }, server: End { tls: server, .. } } = pair;
        assert_eq!(client.is_resumed(), server.is_resumed());
        let (early, servers) = (client.early_status(), server.early_status());
        assert_eq!(early == EarlyStatus::Accepted, servers == EarlyStatus::Accepted);
        assert_eq!(client.peer_parameters(), Some(&b"server parameters"[..]));
        assert!(client.peer_certificates().is_some(), "those of the first handshake");
        (client.is_resumed(), early)
    }
}

const FULL: (bool, EarlyStatus) = (false, EarlyStatus::None);
const RESUMED: (bool, EarlyStatus) = (true, EarlyStatus::Rejected);
const EARLY: (bool, EarlyStatus) = (true, EarlyStatus::Accepted);

#[test]
fn a_client_that_comes_back_resumes_without_a_certificate_in_each_version() {
    for version in Version::SUPPORTED {
        let setup = Setup { version, ..Setup::new() };
        assert_eq!(setup.connect(), FULL);
        assert_eq!(setup.store.tickets(), 2);
        let mut pair = setup.pair();
        let hello = pair.client.take_output();
        hello.iter().for_each(|(level, bytes)| pair.server.tls.read(*level, bytes).unwrap());
        let flights = pair.server.take_output();
        let handshake: usize = flights
            .iter()
            .filter(|(level, _)| *level == Level::Handshake)
            .map(|(_, bytes)| bytes.len())
            .sum();
        assert!(handshake < 300, "{handshake} bytes are no certificate");
        assert_eq!(setup.store.tickets(), 1, "each ticket is used once");
    }
}

#[test]
fn both_ends_have_the_same_keys_for_early_data_before_the_server_answers() {
    let setup = Setup::new();
    assert_eq!(setup.connect(), FULL);
    let mut pair = setup.pair();
    assert_eq!(pair.client.tls.early_status(), EarlyStatus::Offered);
    assert_eq!(pair.client.tls.remembered_parameters(), Some(&b"server parameters"[..]));
    assert_eq!(pair.client.tls.peer_parameters(), None);
    let hello = pair.client.take_output();
    hello.iter().for_each(|(level, bytes)| pair.server.tls.read(*level, bytes).unwrap());
    let (ours, theirs) = (pair.client.tls.zero_rtt_keys().unwrap(), pair.server.tls.zero_rtt_keys().unwrap());
    let mut packet = [7; 60 + TAG_LEN];
    ours.packet.seal(3, &mut packet, 20);
    assert_eq!(theirs.packet.open(3, &mut packet, 20), Ok(40));
    pair.run(1_000).unwrap();
    assert_eq!(pair.client.tls.early_status(), EarlyStatus::Accepted);
    assert_eq!(pair.client.tls.remembered_parameters(), None);
}

/// RFC 8446 §8: an attacker sends a client's first flight again.
#[test]
fn a_copied_first_flight_has_its_early_data_refused() {
    let setup = Setup::new();
    assert_eq!(setup.connect(), FULL);
    let mut pair = setup.pair();
    let hello = pair.client.take_output();
    let deliver = |after_s| {
        setup.clock.advance(after_s);
        let mut copy = setup.pair().server;
        hello.iter().for_each(|(level, bytes)| copy.tls.read(*level, bytes).unwrap());
        let keys = copy.tls.zero_rtt_keys();
        assert_eq!(keys.is_some(), copy.tls.early_status() == EarlyStatus::Accepted);
        copy.tls.early_status()
    };
    assert_eq!(deliver(0), EarlyStatus::Accepted);
    for after_s in [0, 1, 8, 1, 1, 1, 10, 500] {
        assert_eq!(deliver(after_s), EarlyStatus::Rejected);
    }
}

/// RFC 8446 §8.3: a flight that was held back.
#[test]
fn a_first_flight_that_comes_late_or_early_has_its_early_data_refused() {
    for (shift_s, expected) in [(0, EARLY), (9, EARLY), (13, RESUMED), (900, RESUMED), (1_001, FULL)] {
        let setup = Setup::new();
        assert_eq!(setup.connect(), FULL);
        setup.clock.advance(shift_s);
        let expected = if expected == FULL { (false, EarlyStatus::Rejected) } else { expected };
        assert_eq!(setup.connect(), expected, "{shift_s} s");
    }
}

#[test]
fn early_data_needs_limits_and_settings_that_are_kept_and_the_servers_permission() {
    let limits = |limits: &[u64]| EarlyTerms { limits: limits.to_vec(), is_permitted: true };
    for (terms, expected) in [
        (limits(&[100, 200]), EARLY),
        (limits(&[101, 200]), EARLY),
        (limits(&[100, 199]), RESUMED),
        (limits(&[100]), RESUMED),
        (EarlyTerms { is_permitted: false, ..limits(&[100, 200]) }, RESUMED),
    ] {
        let mut setup = Setup::new();
        assert_eq!(setup.connect(), FULL);
        setup.terms = terms;
        assert_eq!(setup.connect(), expected, "{:?}", setup.terms);
    }
    let mut setup = Setup::new();
    assert_eq!(setup.connect(), FULL);
    let server = ServerTls::new(&setup.authority.identity().unwrap(), &TlsOptions::default()).unwrap();
    setup.server = server.with_tickets(TicketOptions { application: b"others".to_vec(), ..setup.tickets() });
    assert_eq!(setup.connect(), RESUMED);
    setup.server = {
        let server = ServerTls::new(&setup.authority.identity().unwrap(), &TlsOptions::default()).unwrap();
        server.with_tickets(TicketOptions { early_data: None, ..setup.tickets() })
    };
    assert_eq!(setup.connect(), RESUMED, "a server that takes early data no more");
}

/// CVE-2026-53622 and others: a ticket must not lead around what another name, certificate, protocol or version asks for.
#[test]
fn a_ticket_serves_its_name_certificate_protocols_and_version_only() {
    let both = TlsOptions { alpn: vec![b"h3".to_vec(), b"other".to_vec()], ..TlsOptions::default() };
    let changes: [fn(&mut Setup, TlsOptions); 4] = [
        |setup, _| setup.name = "127.0.0.1",
        |setup, options| setup.server = setup.serving(options),
        |setup, _| {
            // The same authority and names, another certificate.
            let other = Setup::new();
            let roots = [setup.authority.ca_pem.clone(), other.authority.ca_pem.clone()].concat();
            let roots = crate::Roots::Pem(roots.into_bytes());
            let client = ClientTls::new(&roots, &TlsOptions::default()).unwrap();
            setup.client = client.with_sessions(setup.store.clone()).with_early_data();
            assert_eq!(setup.connect(), FULL, "a client's tickets are of one configuration");
            setup.authority = other.authority;
            setup.server = setup.serving(TlsOptions::default());
        },
        |setup, _| setup.version = Version::V2,
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let mut setup = Setup::new();
        assert_eq!(setup.connect(), FULL);
        change(&mut setup, both.clone());
        let (is_resumed, early) = setup.connect();
        assert!(!is_resumed && early != EarlyStatus::Accepted, "change {number}");
        assert!(setup.connect().0, "change {number}: tickets of the new server are taken");
    }
}

/// RFC 8446 §8.2: a server that was restarted does not know what the one before it has taken.
#[test]
fn a_server_that_has_just_begun_refuses_early_data_with_tickets_of_the_one_before_it() {
    let (folder, mut setup) = (folder(), Setup::new());
    let path = folder.path().join("tickets");
    let restart = |setup: &mut Setup| {
        setup.keys = Arc::new(shared(&path, &setup.clock).unwrap());
        setup.server = setup.serving(TlsOptions::default());
    };
    restart(&mut setup);
    assert_eq!(setup.connect(), FULL);
    setup.clock.advance(2);
    restart(&mut setup);
    assert_eq!(setup.connect(), RESUMED);
    assert_eq!(setup.connect(), RESUMED, "the other ticket of before");
    setup.clock.advance(1);
    assert_eq!(setup.connect(), RESUMED, "one of its first second");
    assert_eq!(setup.connect(), EARLY, "one that it has issued itself");
}

#[test]
fn tokens_and_what_the_application_keeps_come_back_with_the_next_connection() {
    let setup = Setup::new();
    let pair = setup.pair();
    pair.client.tls.keep_token(b"token");
    pair.client.tls.keep_application(b"settings");
    assert_eq!(setup.pair().client.tls.application().as_deref(), Some(&b"settings"[..]));
    assert_eq!(setup.client.take_token("LOCALHOST", 443, Version::V1), b"token");
    assert_eq!(setup.client.take_token("localhost", 443, Version::V1), b"", "once");
}

/// Without tickets nothing of this is there, and with them no client is made to come back.
#[test]
fn a_client_without_a_store_and_a_server_without_tickets_shake_hands_in_full() {
    let mut setup = Setup::new();
    setup.client = ClientTls::new(&setup.authority.roots(), &TlsOptions::default()).unwrap();
    assert_eq!([setup.connect(), setup.connect()], [FULL, FULL]);
    let mut setup = Setup::new();
    setup.server = ServerTls::new(&setup.authority.identity().unwrap(), &TlsOptions::default()).unwrap();
    assert_eq!([setup.connect(), setup.connect()], [FULL, FULL]);
    assert_eq!(setup.store.tickets(), 0);
}

/// Deleted, a client could keep the access of a certificate whose authority is accepted no more, or lose its name by coming back.
#[test]
fn a_client_that_comes_back_has_the_certificate_of_before_and_only_where_its_authority_is_accepted() {
    let (clients, others) = (Authority::new(), Authority::new());
    let asking = |of: &Authority| {
        let accepted = crate::Authorities::from_pem(of.ca_pem.as_bytes()).unwrap();
        TlsOptions { client_auth: crate::ClientAuth::Required(accepted), ..TlsOptions::default() }
    };
    let mut setup = Setup::new();
    setup.server = setup.serving(asking(&clients));
    let client_identity = Some(clients.identity().unwrap());
    let options = TlsOptions { client_identity, ..TlsOptions::default() };
    let client = ClientTls::new(&setup.authority.roots(), &options).unwrap();
    setup.client = client.with_sessions(Arc::new(MemorySessions::default()));
    for is_resumed in [false, true] {
        let mut pair = setup.pair();
        pair.run(1_000).unwrap();
        assert_eq!(pair.server.tls.is_resumed(), is_resumed);
        assert_eq!(pair.server.tls.peer_certificates().map(<[_]>::len), Some(1));
    }
    setup.server = setup.serving(asking(&others));
    assert!(setup.pair().run(1_000).is_err(), "a full handshake, in which the certificate is refused");
}

/// Deleted, an upgrade would cost each client that comes back a full handshake, or let a copied first flight count again.
#[test]
fn a_process_that_inherits_keys_opens_the_tickets_of_the_one_before() {
    let before = TicketKeys::in_memory(LIFETIME_S);
    let ticket = before.seal(b"context", b"session").unwrap();
    let after = TicketKeys::inherited(&before.bequeath(), LIFETIME_S);
    assert!(is_open(after.open(b"context", &ticket)) && after.are_shared() && !before.are_shared());
    assert!(is_open(before.open(b"context", &after.seal(b"context", b"session").unwrap())));
    let third = TicketKeys::inherited(&after.bequeath(), LIFETIME_S);
    assert!(is_open(third.open(b"context", &ticket)));
    for bytes in [&[][..], &[7; 47], &before.bequeath()[..47]] {
        let fresh = TicketKeys::inherited(bytes, LIFETIME_S);
        assert!(fresh.open(b"context", &ticket).is_none());
        assert!(is_open(fresh.open(b"context", &fresh.seal(b"context", b"session").unwrap())));
    }
}
