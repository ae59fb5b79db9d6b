use super::*;
use proptest::prelude::*;

fn parameter(id: u64, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_bytes(&mut bytes, id, value);
    bytes
}

fn integer(id: u64, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    write_integer(&mut bytes, id, value);
    bytes
}

fn written(parameters: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    parameters.write(&mut bytes);
    bytes
}

fn full() -> TransportParameters {
    TransportParameters {
        original_destination_connection_id: ConnectionId::new(&[1; 8]),
        max_idle_timeout_ms: 30_000,
        stateless_reset_token: Some([2; 16]),
        max_udp_payload_size: 1472,
        initial_max_data: 1 << 24,
        initial_max_stream_data_bidi_local: 1 << 20,
        initial_max_stream_data_bidi_remote: 1 << 21,
        initial_max_stream_data_uni: 1 << 22,
        initial_max_streams_bidi: 100,
        initial_max_streams_uni: 3,
        ack_delay_exponent: 0,
        max_ack_delay_ms: 5,
        disable_active_migration: true,
        preferred_address: Some(PreferredAddress {
            ipv4: Some("192.0.2.1:443".parse().unwrap()),
            ipv6: Some("[2001:db8::1]:8443".parse().unwrap()),
            cid: ConnectionId::new(&[3; 20]).unwrap(),
            reset_token: [4; 16],
        }),
        active_connection_id_limit: 8,
        initial_source_connection_id: Some(ConnectionId::EMPTY),
        retry_source_connection_id: ConnectionId::new(&[5; 4]),
        max_datagram_frame_size: 65_535,
        grease_quic_bit: true,
        version_information: Some(VersionInformation {
            chosen: Version::V2,
            available: vec![Version::V2, Version::V1, Version(0x1a2a_3a4a)],
        }),
        min_ack_delay_us: Some(1000),
        reset_stream_at: true,
        initial_max_path_id: Some(3),
        timestamps: Some(TimestampSupport::Sends),
    }
}

#[test]
fn everything_roundtrips() {
    let parameters = full();
    assert_eq!(TransportParameters::parse(&written(&parameters), Side::Server), Ok(parameters));
    assert_eq!(TransportParameters::parse(&[], Side::Client), Ok(TransportParameters::default()));
    assert!(written(&TransportParameters::default()).is_empty(), "defaults need no bytes");
}

/// RFC 9000 §18.2, byte by byte for a few: a wrong identifier would survive a roundtrip.
#[test]
fn published_layout() {
    let bytes = [
        0x01, 0x02, 0x67, 0x10, // max_idle_timeout 10,000
        0x04, 0x04, 0x80, 0x10, 0x00, 0x00, // initial_max_data 2^20
        0x0c, 0x00, // disable_active_migration
        0x0f, 0x02, 0xaa, 0xbb, // initial_source_connection_id
        0x20, 0x01, 0x3f, // max_datagram_frame_size 63
        0x6a, 0xb2, 0x00, // grease_quic_bit
        0x11, 0x0c, 0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf, 0, 0, 0, 1, // version_information
        0xc0, 0x00, 0x00, 0x00, 0xff, 0x04, 0xde, 0x1b, 0x02, 0x43, 0xe8, // min_ack_delay 1,000
        0x1b, 0x03, 0x01, 0x02, 0x03, // reserved (27): passed over
        0x1d, 0x00, // reset_stream_at
        0x3e, 0x01, 0x00, // initial_max_path_id 0: offered all the same
        0x80, 0x00, 0x71, 0x58, 0x01, 0x03, // enable_timestamp: sends and receives
    ];
    let parsed = TransportParameters::parse(&bytes, Side::Client).unwrap();
    let expected = TransportParameters {
        max_idle_timeout_ms: 10_000,
        initial_max_data: 1 << 20,
        disable_active_migration: true,
        initial_source_connection_id: ConnectionId::new(&[0xaa, 0xbb]),
        max_datagram_frame_size: 63,
        grease_quic_bit: true,
        version_information: Some(VersionInformation {
            chosen: Version::V1,
            available: vec![Version::V2, Version::V1],
        }),
        min_ack_delay_us: Some(1000),
        reset_stream_at: true,
        initial_max_path_id: Some(0),
        timestamps: Some(TimestampSupport::Both),
        ..TransportParameters::default()
    };
    assert_eq!(parsed, expected);
}

#[test]
fn bounds_of_the_rfc() {
    let valid = |bytes: &[u8]| TransportParameters::parse(bytes, Side::Server).is_ok();
    for (id, value, is_valid) in [
        (id::MAX_UDP_PAYLOAD_SIZE, 1199, false),
        (id::MAX_UDP_PAYLOAD_SIZE, 1200, true),
        (id::ACK_DELAY_EXPONENT, 20, true),
        (id::ACK_DELAY_EXPONENT, 21, false),
        (id::MAX_ACK_DELAY, (1 << 14) - 1, true),
        (id::MAX_ACK_DELAY, 1 << 14, false),
        (id::ACTIVE_CONNECTION_ID_LIMIT, 1, false),
        (id::ACTIVE_CONNECTION_ID_LIMIT, 2, true),
        (id::INITIAL_MAX_STREAMS_BIDI, MAX_STREAM_COUNT, true),
        (id::INITIAL_MAX_STREAMS_BIDI, MAX_STREAM_COUNT + 1, false),
        (id::INITIAL_MAX_STREAMS_UNI, MAX_STREAM_COUNT + 1, false),
        (id::MIN_ACK_DELAY, 25_000, true),
        (id::MIN_ACK_DELAY, 25_001, false),
        (id::INITIAL_MAX_DATA, varint::MAX, true),
        (id::INITIAL_MAX_PATH_ID, MAX_PATH_ID, true),
        (id::INITIAL_MAX_PATH_ID, MAX_PATH_ID + 1, false),
        (id::ENABLE_TIMESTAMP, 0, false),
        (id::ENABLE_TIMESTAMP, 1, true),
        (id::ENABLE_TIMESTAMP, 3, true),
        (id::ENABLE_TIMESTAMP, 4, false),
    ] {
        assert_eq!(valid(&integer(id, value)), is_valid, "{id:#x} = {value}");
    }
    // min_ack_delay is held against max_ack_delay wherever the two stand.
    assert!(valid(&[integer(id::MIN_ACK_DELAY, 90_000), integer(id::MAX_ACK_DELAY, 100)].concat()));
}

#[test]
fn values_of_the_wrong_size() {
    let invalid = |id: u64, value: &[u8]| {
        let result = TransportParameters::parse(&parameter(id, value), Side::Server);
        assert!(result.is_err(), "{id:#x} {value:02x?}");
    };
    invalid(id::MAX_IDLE_TIMEOUT, &[]);
    invalid(id::MAX_IDLE_TIMEOUT, &[0x40]);
    invalid(id::MAX_IDLE_TIMEOUT, &[1, 1]);
    invalid(id::STATELESS_RESET_TOKEN, &[1; 15]);
    invalid(id::STATELESS_RESET_TOKEN, &[1; 17]);
    invalid(id::DISABLE_ACTIVE_MIGRATION, &[0]);
    invalid(id::GREASE_QUIC_BIT, &[1]);
    invalid(id::INITIAL_SOURCE_CONNECTION_ID, &[1; 21]);
    invalid(id::VERSION_INFORMATION, &[]);
    invalid(id::VERSION_INFORMATION, &[0, 0, 0, 0]);
    invalid(id::VERSION_INFORMATION, &[0, 0, 0, 1, 0, 0, 0, 0]);
    invalid(id::VERSION_INFORMATION, &[0, 0, 0, 1, 0]);
    // The connection ID's length stands behind 24 bytes of addresses.
    invalid(id::PREFERRED_ADDRESS, &[0; 24 + 1 + 16]);
    invalid(id::PREFERRED_ADDRESS, &[1; 24 + 1 + 1 + 15]);
    invalid(id::PREFERRED_ADDRESS, &[21; 24 + 1 + 21 + 16]);
    let whole = parameter(id::PREFERRED_ADDRESS, &[1; 24 + 1 + 1 + 16]);
    assert!(TransportParameters::parse(&whole, Side::Server).is_ok());
}

#[test]
fn repeated_and_misplaced_parameters() {
    let bytes = written(&full());
    let twice = [bytes.clone(), bytes.clone()].concat();
    assert_eq!(
        TransportParameters::parse(&twice, Side::Server),
        Err(Malformed("transport parameter sent twice"))
    );
    let flag = parameter(id::GREASE_QUIC_BIT, &[]);
    assert!(TransportParameters::parse(&flag.repeat(2), Side::Client).is_err());
    for (id, value) in [
        (id::ORIGINAL_DESTINATION_CONNECTION_ID, &[1; 8][..]),
        (id::STATELESS_RESET_TOKEN, &[1; 16]),
        (id::PREFERRED_ADDRESS, &[1; 42]),
        (id::RETRY_SOURCE_CONNECTION_ID, &[1; 8]),
    ] {
        assert!(TransportParameters::parse(&parameter(id, value), Side::Server).is_ok());
        assert!(TransportParameters::parse(&parameter(id, value), Side::Client).is_err(), "{id:#x}");
    }
}

#[test]
fn address_families_may_be_missing() {
    let mut parameters = full();
    let address = parameters.preferred_address.as_mut().unwrap();
    address.ipv4 = None;
    assert_eq!(TransportParameters::parse(&written(&parameters), Side::Server).as_ref(), Ok(&parameters));
}

/// A long list of versions must not become our memory.
#[test]
fn version_list_is_bounded() {
    let list = parameter(id::VERSION_INFORMATION, &[0, 0, 0, 1].repeat(10_000));
    let parsed = TransportParameters::parse(&list, Side::Client).unwrap();
    assert_eq!(parsed.version_information.unwrap().available.len(), MAX_AVAILABLE_VERSIONS);
}

proptest! {
    /// CVE-2026-31812 was a panic on these bytes. Whatever is cut or changed gives parameters or an error, and parameters
    /// within their bounds.
    #[test]
    fn damaged_parameters_do_no_harm(cut in 0usize..400, at in 0usize..400, with: u8) {
        let mut bytes = written(&full());
        let index = at % bytes.len();
        bytes[index] = with;
        bytes.truncate(cut.max(1));
        for sender in [Side::Client, Side::Server] {
            if let Ok(parameters) = TransportParameters::parse(&bytes, sender) {
                prop_assert!(parameters.check().is_ok());
                prop_assert_eq!(TransportParameters::parse(&written(&parameters), sender), Ok(parameters));
            }
        }
    }
}

/// RFC 9368 §4: a client that does not list the version it has chosen contradicts itself; a server may be about to retire it.
#[test]
fn a_client_lists_the_version_that_it_has_chosen() {
    let with = |available: Vec<Version>| {
        let version_information = Some(VersionInformation { chosen: Version::V1, available });
        let mut bytes = Vec::new();
        TransportParameters { version_information, ..TransportParameters::default() }.write(&mut bytes);
        bytes
    };
    for available in [vec![], vec![Version::V2], vec![Version(0x1a2a_3a4a), Version::V2]] {
        let bytes = with(available);
        let expected = Malformed("the chosen version is not among the available ones");
        assert_eq!(TransportParameters::parse(&bytes, Side::Client), Err(expected));
        assert!(TransportParameters::parse(&bytes, Side::Server).is_ok());
    }
    // Also where it is listed behind those that are kept.
    let mut many = vec![Version::V2; 2 * MAX_AVAILABLE_VERSIONS];
    many.push(Version::V1);
    assert!(TransportParameters::parse(&with(many), Side::Client).is_ok());
}
