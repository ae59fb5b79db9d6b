//! Handshakes in memory, and what must make them fail.

use super::*;
use crate::config::{Ech, EchConfigs, Identity, KeyExchange, KeyLog, Roots, TlsOptions};
use crate::packet::TAG_LEN;
use crate::suite::SuiteChoice;
use crate::testing::{Authority, Pair, pair};
use proptest::prelude::*;
use rustls::crypto::hpke::Hpke;
use wire::Code;

fn only(suite: Suite) -> TlsOptions {
    TlsOptions { suites: SuiteChoice::Only(suite), ..TlsOptions::default() }
}

/// What one end seals the other opens, with these keys.
fn check_keys(ours: &Keys, theirs: &Keys, suite: Suite) {
    assert_eq!(ours.local.packet.suite(), suite);
    for (from, to) in [(&ours.local, &theirs.peer), (&theirs.local, &ours.peer)] {
        let mut packet = [7; 60 + TAG_LEN];
        from.packet.seal(3, &mut packet, 20);
        assert_eq!(to.packet.open(3, &mut packet, 20), Ok(40));
        assert_eq!(packet[..60], [7; 60]);
        assert_eq!(from.header.mask(&[9; 16]), to.header.mask(&[9; 16]));
    }
}

/// The whole journey with each suite and version, in pieces of each size that matters: what is left out here cannot be
/// relied on, because the keys come out of rustls by a way of our own.
#[test]
fn handshakes_with_each_suite_and_version() {
    for suite in Suite::ALL {
        for version in [Version::V1, Version::V2] {
            for piece in [1, 3, 4, 1_000, 100_000] {
                let mut pair = pair(version, &only(suite));
                pair.run(piece).unwrap();
                check_complete(&mut pair, suite);
            }
        }
    }
}

fn check_complete(pair: &mut Pair, suite: Suite) {
    let Pair { client, server } = pair;
    assert!(!client.tls.is_handshaking() && !server.tls.is_handshaking());
    assert_eq!((client.tls.suite(), server.tls.suite()), (Some(suite), Some(suite)));
    assert_eq!(client.tls.alpn(), Some(&b"h3"[..]));
    assert_eq!(server.tls.alpn(), Some(&b"h3"[..]));
    assert_eq!(client.tls.peer_parameters(), Some(&b"server parameters"[..]));
    assert_eq!(server.tls.peer_parameters(), Some(&b"client parameters"[..]));
    assert_eq!(server.tls.server_name(), Some("localhost"));
    assert_eq!(client.tls.key_exchange(), Some("X25519MLKEM768"));
    assert!(client.tls.zero_rtt_keys().is_none() && server.tls.zero_rtt_keys().is_none());
    check_keys(client.handshake.as_ref().unwrap(), server.handshake.as_ref().unwrap(), suite);
    let (client_keys, client_secrets) = client.one_rtt.as_mut().unwrap();
    let (server_keys, server_secrets) = server.one_rtt.as_mut().unwrap();
    check_keys(client_keys, server_keys, suite);
    for _ in 0..3 {
        client_secrets.advance();
        server_secrets.advance();
        let ((ours, our_peer), (theirs, their_peer)) =
            (client_secrets.packet_keys(), server_secrets.packet_keys());
        for (from, to) in [(ours, their_peer), (theirs, our_peer)] {
            let mut packet = [7; 60 + TAG_LEN];
            from.seal(3, &mut packet, 20);
            assert_eq!(client_keys.peer.packet.open(3, &mut packet.clone(), 20), Err(crate::OpenError));
            assert_eq!(to.open(3, &mut packet, 20), Ok(40));
        }
    }
}

/// The version may be settled after the session was made: a client that began with version 1 and was answered in version 2
/// must have the keys of version 2.
#[test]
fn version_may_change_before_keys() {
    let mut pair = pair(Version::V1, &only(Suite::Aes128Gcm));
    pair.server.tls.set_version(Version::V2);
    pair.client.tls.set_version(Version::V2);
    pair.run(1_000).unwrap();
    check_complete(&mut pair, Suite::Aes128Gcm);
}

#[test]
fn classic_key_exchange_fits_one_packet_and_post_quantum_falls_back() {
    let classic = TlsOptions { key_exchange: KeyExchange::X25519, ..TlsOptions::default() };
    let authority = Authority::new();
    let identity = authority.identity().unwrap();
    for (client, server) in
        [(&classic, &classic), (&classic, &TlsOptions::default()), (&TlsOptions::default(), &classic)]
    {
        let client_tls = ClientTls::new(&authority.roots(), client).unwrap();
        let server_tls = ServerTls::new(&identity, server).unwrap();
        let mut pair = Pair::new(Version::V1, &client_tls, &server_tls);
        pair.run(1_000).unwrap();
        assert_eq!(pair.server.tls.key_exchange(), Some("X25519"));
    }
    let client = ClientTls::new(&Roots::Insecure, &classic).unwrap();
    let mut hello = Vec::new();
    let mut tls =
        TlsSession::client(&client, Version::V1, &ServerId { name: "localhost", port: 443 }, &[0; 100])
            .unwrap();
    assert!(tls.write(&mut hello).is_none());
    assert!(hello.len() < 1_000, "{} bytes", hello.len());
}

/// With all suites at both ends the fastest is taken.
#[test]
fn the_first_choice_wins() {
    let mut pair = pair(Version::V1, &TlsOptions::default());
    pair.run(1_000).unwrap();
    assert_eq!(pair.client.tls.suite(), SuiteChoice::All.suites().first().copied());
}

/// The alert and the words of each failure that a user can cause.
#[test]
fn failures_have_their_alert_and_say_what_to_do() {
    let (authority, unknown) = (Authority::new(), Authority::new());
    let options = TlsOptions::default();
    let fail = |roots: &Roots, client: &TlsOptions, server: &TlsOptions, name: &str| {
        let client = ClientTls::new(roots, client).unwrap();
        let server = ServerTls::new(&authority.identity().unwrap(), server).unwrap();
        let error = Pair::named(Version::V1, &client, &server, name).run(1_000).unwrap_err();
        assert!(!error.reason.contains('\n'));
        assert_eq!(error.code, Code::crypto(error.alert));
        (error.alert, error.reason)
    };
    // unknown_ca
    let (alert, reason) = fail(&unknown.roots(), &options, &options, "localhost");
    assert!(alert == 48 && reason.contains("not from a trusted authority"), "{alert} {reason}");
    // bad_certificate
    let (alert, reason) = fail(&authority.roots(), &options, &options, "example.com");
    assert!(alert == 42 && reason.contains("for another name"), "{alert} {reason}");
    // no_application_protocol
    let other = TlsOptions { alpn: vec![b"perf".to_vec()], ..TlsOptions::default() };
    let (alert, reason) = fail(&authority.roots(), &other, &options, "localhost");
    assert!(alert == 120 && reason.contains("application protocols"), "{alert} {reason}");
    // handshake_failure
    let (alert, _) = fail(&authority.roots(), &only(Suite::Aes128Gcm), &only(Suite::Aes256Gcm), "localhost");
    assert_eq!(alert, 40);
}

#[test]
fn expired_certificates_are_refused_unless_nobody_looks() {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(2001, 1, 1);
    params.not_after = rcgen::date_time_ymd(2002, 1, 1);
    let authority = Authority::issuing(params);
    let options = TlsOptions::default();
    let server = ServerTls::new(&authority.identity().unwrap(), &options).unwrap();
    let strict = ClientTls::new(&authority.roots(), &options).unwrap();
    let error = Pair::new(Version::V1, &strict, &server).run(1_000).unwrap_err();
    assert!(error.alert == 45 && error.reason.contains("expired"), "{error:?}");
    let insecure = ClientTls::new(&Roots::Insecure, &options).unwrap();
    Pair::named(Version::V1, &insecure, &server, "somewhere.example").run(1_000).unwrap();
}

#[test]
fn names_are_hosts_or_addresses() {
    let authority = Authority::new();
    let options = TlsOptions::default();
    let client = ClientTls::new(&authority.roots(), &options).unwrap();
    let server = ServerTls::new(&authority.identity().unwrap(), &options).unwrap();
    let mut pair = Pair::named(Version::V1, &client, &server, "127.0.0.1");
    pair.run(1_000).unwrap();
    assert_eq!(pair.server.tls.server_name(), None, "addresses are not sent as names");
    for name in ["", "not a name", "[::1]", "a..b"] {
        assert!(
            TlsSession::client(&client, Version::V1, &ServerId { name, port: 443 }, &[]).is_err(),
            "{name:?}"
        );
    }
}

/// A message header with this type and length, and the error that reading it must give.
fn read_error(level: Level, bytes: &[u8]) -> TlsError {
    let mut pair = pair(Version::V1, &TlsOptions::default());
    pair.server.tls.read(level, bytes).unwrap_err()
}

/// Each message type in a level where it does not belong. CVE-2025-61730.
#[test]
fn messages_belong_to_their_levels() {
    for (level, kind) in [
        (Level::Initial, 8),
        (Level::Initial, 20),
        (Level::Handshake, 1),
        (Level::Handshake, 2),
        (Level::OneRtt, 1),
        (Level::OneRtt, 20),
        (Level::ZeroRtt, 5),
        (Level::OneRtt, 24),
        (Level::Handshake, 24),
    ] {
        // One byte is enough: nothing is kept for a message that can never be welcome.
        assert_eq!(read_error(level, &[kind]).code, Code::crypto(10), "{level:?} {kind}");
    }
    assert_eq!(read_error(Level::OneRtt, &[13]).code, Code::PROTOCOL_VIOLATION);
}

/// RFC 9001 §4.1.3. The server here would otherwise wait for the rest of a message that began at another level.
#[test]
fn levels_only_go_up_and_messages_do_not_reach_across() {
    let mut partial = pair(Version::V1, &TlsOptions::default());
    partial.server.tls.read(Level::Initial, &[1, 0, 1]).unwrap();
    let error = partial.server.tls.read(Level::Handshake, &[0]).unwrap_err();
    assert_eq!(error.code, Code::PROTOCOL_VIOLATION);

    let mut complete = pair(Version::V1, &TlsOptions::default());
    complete.run(1_000).unwrap();
    complete.client.tls.read(Level::OneRtt, &[]).unwrap();
    let error = complete.client.tls.read(Level::Initial, &[2]).unwrap_err();
    assert_eq!(error.code, Code::PROTOCOL_VIOLATION);
    assert_eq!(complete.client.tls.read(Level::OneRtt, &[4]).unwrap_err(), error, "a failure is for good");
}

/// A declared length must not reserve memory, and a message of more than 64 KiB must not be collected at all.
#[test]
fn message_size_is_bounded() {
    assert_eq!(read_error(Level::Initial, &[1, 1, 0, 0]).alert, 50);
    let mut pair = pair(Version::V1, &TlsOptions::default());
    pair.server.tls.read(Level::Initial, &[1, 0, 0xff, 0xff]).unwrap();
    assert!(pair.server.tls.partial.capacity() < 64);
}

/// A client must not be able to make a server take a second hello, nor a server a client.
#[test]
fn repeated_hellos_are_refused() {
    let mut pair = pair(Version::V1, &TlsOptions::default());
    let hello = pair.client.take_output().remove(0).1;
    pair.server.tls.read(Level::Initial, &hello).unwrap();
    assert_eq!(pair.server.tls.read(Level::Initial, &hello).unwrap_err().alert, 10);
}

/// Both ends log, and log the same secrets: without it no dissector could read a capture.
#[test]
fn key_logs_of_both_ends_agree() {
    let directory = std::env::temp_dir().join(format!("tercel-keylog-{}", std::process::id()));
    std::fs::create_dir_all(&directory).unwrap();
    let options =
        |name: &str| TlsOptions { key_log: KeyLog::File(directory.join(name)), ..TlsOptions::default() };
    let authority = Authority::new();
    let client = ClientTls::new(&authority.roots(), &options("client")).unwrap();
    let server = ServerTls::new(&authority.identity().unwrap(), &options("server")).unwrap();
    Pair::new(Version::V1, &client, &server).run(1_000).unwrap();
    let lines = |name: &str| {
        let text = std::fs::read_to_string(directory.join(name)).unwrap();
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(lines("client"), lines("server"));
    for label in [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET ",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET ",
        "CLIENT_TRAFFIC_SECRET_0 ",
        "SERVER_TRAFFIC_SECRET_0 ",
    ] {
        assert_eq!(lines("client").iter().filter(|line| line.starts_with(label)).count(), 1, "{label}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// A damaged handshake fails at one of the ends, and neither panics.
    #[test]
    fn damaged_handshakes_fail(at: usize, bit in 0u8..8, from_client: bool, piece in 1usize..3_000) {
        let mut pair = pair(Version::V1, &TlsOptions { key_exchange: KeyExchange::X25519, ..TlsOptions::default() });
        let mut hello = pair.client.take_output().remove(0).1;
        if from_client {
            // Behind the header: a length that is too long makes the server wait, which is not a failure.
            let at = 4 + at % (hello.len() - 4);
            hello[at] ^= 1 << bit;
        }
        let mut outcome = Ok(());
        for piece in hello.chunks(piece) {
            outcome = outcome.and_then(|()| pair.server.tls.read(Level::Initial, piece));
        }
        let mut flights = pair.server.take_output();
        if !from_client {
            let (_, flight) = flights.last_mut().unwrap();
            let at = 4 + at % (flight.len() - 4);
            flight[at] ^= 1 << bit;
        }
        for (level, bytes) in flights {
            outcome = outcome.and_then(|()| pair.client.tls.read(level, &bytes));
        }
        let outcome = outcome.and_then(|()| pair.run(piece));
        let handshaking = pair.client.tls.is_handshaking() || pair.server.tls.is_handshaking();
        prop_assert!(outcome.is_err() || handshaking);
    }

    /// Whatever comes, no panic, and no more is kept than has arrived.
    #[test]
    fn invented_messages_do_no_harm(
        pieces in proptest::collection::vec((0usize..4, proptest::collection::vec(any::<u8>(), 0..300)), 0..8),
        first in prop::sample::select(vec![1u8, 2, 8, 11, 15, 20, 4]),
    ) {
        let mut pair = pair(Version::V1, &TlsOptions { key_exchange: KeyExchange::X25519, ..TlsOptions::default() });
        drop(pair.client.take_output());
        for (level, mut bytes) in pieces {
            if let Some(byte) = bytes.first_mut() {
                *byte = first;
            }
            if bytes.len() > 3 {
                (bytes[1], bytes[2]) = (0, 0);
            }
            let level = [Level::Initial, Level::ZeroRtt, Level::Handshake, Level::OneRtt][level];
            for end in [&mut pair.client, &mut pair.server] {
                let _ = end.tls.read(level, &bytes);
                prop_assert!(end.tls.partial.len() <= 300 * 8);
            }
        }
    }
}

/// RFC 9001 §4.2: whatever is older knows nothing of QUIC's keys.
#[test]
fn tls_is_1_3_or_nothing() {
    const PROTOCOL_VERSION: u8 = 70;
    let [mut first, mut second] = [0; 2].map(|_| pair(Version::V1, &TlsOptions::default()));
    let hello: Vec<u8> = first.client.take_output().into_iter().flat_map(|(_, bytes)| bytes).collect();
    // The extension supported_versions, its length, its list's length, and a list of TLS 1.3 alone.
    let offer = [0, 43, 0, 3, 2, 3, 4];
    let at = hello.windows(offer.len()).position(|window| window == offer).unwrap();
    let mut older = hello.clone();
    older[at + offer.len() - 1] = 3;
    assert_eq!(second.server.tls.read(Level::Initial, &older).unwrap_err().alert, PROTOCOL_VERSION);
    first.server.tls.read(Level::Initial, &hello).unwrap();
}

/// RFC 9001 §8.2: rustls takes the drafts' code point, 0xffa5, where the real one is missing.
#[test]
fn transport_parameters_at_the_code_point_of_the_drafts_are_none() {
    use rustls::quic::Version as Tls;
    let (authority, options) = (Authority::new(), TlsOptions::default());
    let client_tls = ClientTls::new(&authority.roots(), &options).unwrap();
    let server_tls = ServerTls::new(&authority.identity().unwrap(), &options).unwrap();
    for draft in [wire::Side::Client, wire::Side::Server] {
        let mut pair = Pair::new(Version::V1, &client_tls, &server_tls);
        if draft.is_client() {
            let name = ServerName::try_from("localhost").unwrap();
            let tls = ClientConnection::new(client_tls.config(), Tls::V1Draft, name, vec![1; 20]).unwrap();
            pair.client.tls = TlsSession::new(tls.into(), Version::V1);
        } else {
            let tls = ServerConnection::new(server_tls.config(), Tls::V1Draft, vec![1; 20]).unwrap();
            pair.server.tls = TlsSession::new(tls.into(), Version::V1);
        }
        let error = pair.run(1_000).expect_err("the extension is mandatory");
        assert_eq!((error.alert, error.code), (109, Code::crypto(109)), "{draft:?}: {error}");
    }
}

/// A server with five certificates in its chain, a client that trusts it, and what the server answers at the level Handshake; then the
/// bytes of the chain.
fn long_chain() -> (Pair, Vec<u8>, usize) {
    let authority = Authority::new();
    let others: Vec<Authority> = (0..4).map(|_| Authority::new()).collect();
    let chain: String = core::iter::once(&authority.certificate_pem)
        .chain(others.iter().map(|other| &other.ca_pem))
        .map(String::as_str)
        .collect();
    let identity = Identity::from_pem(chain.as_bytes(), authority.key_pem.as_bytes()).unwrap();
    let options = TlsOptions::default();
    let client = ClientTls::new(&authority.roots(), &options).unwrap();
    let mut pair = Pair::new(Version::V1, &client, &ServerTls::new(&identity, &options).unwrap());
    for (level, bytes) in pair.client.take_output() {
        pair.server.tls.read(level, &bytes).unwrap();
    }
    let mut flight = Vec::new();
    for (level, bytes) in pair.server.take_output() {
        match level {
            Level::Handshake => flight.extend_from_slice(&bytes),
            level => pair.client.tls.read(level, &bytes).unwrap(),
        }
    }
    // The client takes its keys of the level.
    assert!(pair.client.take_output().is_empty());
    let chain = identity.certificates().map(<[u8]>::len).sum();
    (pair, flight, chain)
}

/// Where the message with the compressed chain begins. RFC 8879 §4.
fn compressed_certificate(flight: &[u8]) -> usize {
    const COMPRESSED_CERTIFICATE: u8 = 25;
    let mut at = 0;
    while flight[at] != COMPRESSED_CERTIFICATE {
        at += 4 + u32::from_be_bytes([0, flight[at + 1], flight[at + 2], flight[at + 3]]) as usize;
    }
    at
}

/// RFC 8879. Deleted, a long chain could cost one round trip more: it does not fit into three times the client's first datagrams.
#[test]
fn a_long_chain_is_compressed() {
    let (mut pair, flight, chain) = long_chain();
    assert!(flight.len() < chain, "{} bytes with all else for {chain} of certificates", flight.len());
    const BROTLI: [u8; 2] = [0, 2];
    let at = compressed_certificate(&flight);
    assert_eq!(flight[at + 4..at + 6], BROTLI);
    pair.client.tls.read(Level::Handshake, &flight).unwrap();
    assert_eq!(pair.client.tls.peer_certificates().map(<[_]>::len), Some(5));
}

/// RFC 8879 §5. Deleted, a server could make its client hold 16 MiB for a few bytes.
#[test]
fn a_chain_that_says_it_is_large_is_refused_unread() {
    const BAD_CERTIFICATE: u8 = 42;
    let (mut pair, mut flight, _) = long_chain();
    let at = compressed_certificate(&flight);
    // Behind the header and the algorithm.
    flight[at + 6..at + 9].fill(0xff);
    let refused = pair.client.tls.read(Level::Handshake, &flight).unwrap_err();
    assert_eq!(refused.alert, BAD_CERTIFICATE, "{refused}");
}

/// An ECHConfigList with a new key of X25519 whose public name is `public`. Source: RFC 9849 §4.
fn ech_config_list(public: &str) -> Vec<u8> {
    let suite = rustls::crypto::aws_lc_rs::hpke::DH_KEM_X25519_HKDF_SHA256_AES_128;
    let (key, _) = suite.generate_key_pair().unwrap();
    let prefixed = |bytes: &[u8]| [&u16::try_from(bytes.len()).unwrap().to_be_bytes(), bytes].concat();
    // The configuration's number, the KEM, its key, HKDF-SHA256 with AES-128-GCM, the longest name, the public name, no extensions.
    let key_config = [&[7, 0, 0x20][..], &prefixed(&key.0), &prefixed(&[0, 1, 0, 1])].concat();
    let name = [&[64, u8::try_from(public.len()).unwrap()][..], public.as_bytes(), &[0, 0]].concat();
    prefixed(&[&[0xfe, 0x0d][..], &prefixed(&[key_config, name].concat())].concat())
}

/// Whether `bytes` stand in the first flight of a client.
fn is_in_the_clear(first_flight: &[(Level, Vec<u8>)], bytes: &[u8]) -> bool {
    first_flight.iter().any(|(_, sent)| sent.windows(bytes.len()).any(|window| window == bytes))
}

/// Whether a client's first flight, a ClientHello, has an extension of that type. Chance has any two bytes in one of 40. Source: RFC 8446 §4.1.2.
fn has_extension(first_flight: &[(Level, Vec<u8>)], extension: u16) -> bool {
    let hello: Vec<u8> = first_flight.iter().flat_map(|(_, sent)| sent).copied().collect();
    let number = |at: usize| usize::from(u16::from_be_bytes([hello[at], hello[at + 1]]));
    // Behind the header, the version and the random bytes: a session ID, cipher suites, compression methods.
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(hello[at]);
    at += 2 + number(at);
    at += 1 + usize::from(hello[at]);
    let end = at + 2 + number(at);
    at += 2;
    while at < end {
        if number(at) == usize::from(extension) {
            return true;
        }
        at += 4 + number(at + 2);
    }
    false
}

#[test]
fn a_client_hello_shows_the_public_name_alone_and_a_server_without_the_key_is_refused() {
    let authority = Authority::issuing(
        rcgen::CertificateParams::new(vec!["localhost".to_owned(), "public.example".to_owned()]).unwrap(),
    );
    let server = ServerTls::new(&authority.identity().unwrap(), &TlsOptions::default()).unwrap();
    let configs = EchConfigs::from_list(&ech_config_list("public.example")).unwrap();
    for (ech, public, hidden) in
        [(Ech::Off, false, false), (Ech::Grease, false, false), (Ech::Configs(configs), true, true)]
    {
        let options = TlsOptions { ech, ..TlsOptions::default() };
        let client = ClientTls::new(&authority.roots(), &options).unwrap();
        let first = Pair::new(Version::V1, &client, &server).client.take_output();
        assert_eq!(is_in_the_clear(&first, b"localhost"), !hidden, "{options:?}");
        assert_eq!(is_in_the_clear(&first, b"public.example"), public, "{options:?}");
        assert_eq!(has_extension(&first, 0xfe0d), !matches!(options.ech, Ech::Off), "{options:?}");
        let outcome = Pair::new(Version::V1, &client, &server).run(1_000);
        match outcome {
            Ok(()) => assert!(!hidden),
            Err(error) => {
                assert!(hidden && error.to_string().contains("take the ECHConfigList"), "{error}");
            }
        }
    }
}

#[test]
fn an_ech_config_list_that_cannot_be_used_is_refused_in_words() {
    let mut unknown = ech_config_list("public.example");
    unknown[2] = 0xfd;
    for (list, reason) in
        [(&b""[..], "malformed"), (b"no list", "malformed"), (&unknown, "no key of a kind that is known")]
    {
        let error = EchConfigs::from_list(list).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("HTTPS record"), "{error}");
    }
}
