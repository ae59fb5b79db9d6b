use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::*;
use crate::test_port::{TestPort, receive, send};

/// A file in memory that outlives the capture.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn record(source: &str, destination: &str, payload: &'static [u8]) -> Record<'static> {
    Record {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        ecn: Ecn::Ect0,
        payload,
    }
}

#[test]
fn headers_have_the_right_checksums() {
    // Known by hand: RFC 1071 sums over the words below.
    let mut out = [0; 48];
    let size = write_headers(&mut out, &record("127.0.0.1:1", "127.0.0.1:2", b"abc"));
    assert_eq!(size, 28);
    assert_eq!(fold(sum_of(&out[..20])), 0, "an intact IPv4 header sums to zero");
    let pseudo = sum_of(&out[12..20]) + 17 + 11;
    assert_eq!(fold(pseudo + sum_of(&out[20..28]) + sum_of(b"abc")), 0);

    let size = write_headers(&mut out, &record("[::1]:1", "[2001:db8::2]:2", b"abcd"));
    assert_eq!((size, out[0], out[1]), (48, 0x60, 0x20));
    assert_eq!(fold(sum_of(&out[8..40]) + 17 + 12 + sum_of(&out[40..48]) + sum_of(b"abcd")), 0);
}

#[test]
fn an_unknown_local_address_takes_the_family_of_the_peer() {
    let mut out = [0; 48];
    assert_eq!(write_headers(&mut out, &record("[::]:1", "192.0.2.1:2", b"x")), 28);
    assert_eq!(write_headers(&mut out, &record("0.0.0.0:1", "[::1]:2", b"x")), 48);
    assert_eq!(write_headers(&mut out, &record("[::ffff:192.0.2.1]:1", "192.0.2.2:2", b"x")), 28);
}

#[test]
fn a_failing_file_ends_the_capture_and_not_the_traffic() {
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let writer = PcapWriter { out: BufWriter::with_capacity(16, Full), secrets: None, held: Vec::new() };
    let mut port = Capture::new(TestPort::default(), writer, Duration::ZERO);
    send(&mut port, &[vec![1; 100], vec![2; 100]]);
    port.flush().unwrap();
    assert_eq!(receive(&mut port).len(), 2);
    assert_eq!(port.take_error().unwrap().kind(), io::ErrorKind::StorageFull);
}

/// Lines that become known one after the other.
#[derive(Clone, Debug, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Secrets for Lines {
    fn take(&mut self) -> Vec<u8> {
        core::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// The blocks of a file, by type, with their bodies; their two lengths agree and are multiples of four.
fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
    let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut found = Vec::new();
    while !file.is_empty() {
        let len = word(file, 4) as usize;
        assert_eq!((len % 4, word(file, len - 4) as usize), (0, len));
        found.push((word(file, 0), file[8..len - 4].to_vec()));
        file = &file[len..];
    }
    found
}

/// Deleted, a dissector could meet packets before the secrets that open them, or no secrets at all.
#[test]
fn secrets_stand_before_the_packets_that_they_open() {
    let (file, lines) = (Shared::default(), Lines::default());
    let log = |line: &str| lines.0.lock().unwrap().extend_from_slice(line.as_bytes());
    {
        let writer = PcapWriter::new(file.clone()).unwrap().with_secrets(Box::new(lines.clone()));
        let mut port = Capture::new(TestPort::default(), writer, Duration::from_secs(1_700_000_000));
        send(&mut port, &[vec![1; 101]]);
        port.flush().unwrap();
        assert_eq!(receive(&mut port).len(), 1);
        // By what arrived a connection has learned its secrets; the last ones come when nothing more is sent.
        log("LABEL aa bb\n");
        send(&mut port, &[vec![2; 102]]);
        log("LABEL cc dd\n");
    }
    let found = blocks(&file.0.lock().unwrap());
    let types: Vec<u32> = found.iter().map(|(ty, _)| *ty).collect();
    assert_eq!(types, [block::SECTION_HEADER, 1, 6, 10, 6, 6, 10]);
    let secrets = [&b"KSLT"[..], &12_u32.to_le_bytes(), b"LABEL aa bb\n"].concat();
    assert_eq!(found[3].1, secrets);
    let nanos = 1_700_000_000_000_000_000_u64;
    let packet = &found[2].1;
    assert_eq!(packet[..4], [0; 4], "of the first interface");
    assert_eq!(packet[4..8], ((nanos >> 32) as u32).to_le_bytes());
    assert_eq!(packet[12..20], [129, 0, 0, 0, 129, 0, 0, 0], "IP and UDP headers and the payload");
    assert_eq!(packet[20..].len(), 132, "padded to words");
    assert_eq!(found[4].1[20 + 28..], packet[20 + 28..], "as the receiver saw it");
}

/// What tshark makes of a capture; `None` where it is not installed.
fn tshark(capture: &[u8]) -> Option<String> {
    let mut child = Command::new("tshark")
        .args(["-r", "-", "-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-T", "fields"])
        .args(["-e", "ip.src", "-e", "ipv6.src", "-e", "udp.dstport", "-e", "udp.length"])
        .args(["-e", "ip.checksum.status", "-e", "udp.checksum.status", "-e", "frame.time_epoch"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    child.stdin.take().unwrap().write_all(capture).unwrap();
    let output = child.wait_with_output().unwrap();
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn tshark_reads_what_a_port_sent_and_received() {
    let file = Shared::default();
    {
        let writer = PcapWriter::new(file.clone()).unwrap();
        let mut port = Capture::new(TestPort::default(), writer, Duration::from_secs(1_700_000_000));
        send(&mut port, &[vec![1; 1200], vec![2; 1200], vec![3; 77]]);
        port.flush().unwrap();
        assert_eq!(receive(&mut port).len(), 3);
        let v6 = record("[2001:db8::1]:5", "[2001:db8::2]:7777", b"hello");
        port.writer.as_mut().unwrap().write(Duration::from_nanos(1_500_000_001), &v6).unwrap();
    }
    let capture = file.0.lock().unwrap().clone();
    let Some(lines) = tshark(&capture) else {
        return requirements::missing("tshark is not installed");
    };
    let lines: Vec<Vec<&str>> = lines.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(lines.len(), 7);
    assert_eq!(lines[0][..6], ["192.0.2.1", "", "50000", "1208", "1", "1"]);
    assert_eq!(lines[2][3], "85");
    assert_eq!(lines[3][..6], ["192.0.2.1", "", "50000", "1208", "1", "1"], "as the receiver saw it");
    assert_eq!(lines[6][..4], ["", "2001:db8::1", "7777", "13"]);
    assert_eq!(lines[6][5], "1");
    assert!(lines[0][6].contains("1700000000") || lines[0][6].contains("2023-11-14"), "{}", lines[0][6]);
}
