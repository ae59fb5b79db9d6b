//! RFC 9114 §4.1.2 to §4.4 as tables: a section, and what becomes of it.

use super::*;
use qpack::{FieldSection, Limits};

type Lines = &'static [(&'static str, &'static str)];
/// Method, scheme, authority, path; "-" leaves the field out. Then what becomes of it.
type Target = (&'static str, &'static str, &'static str, &'static str, Result<(), &'static str>);

/// The lines as they come out of the decoder, names of the static table by index.
fn section(lines: &[(&str, &str)]) -> FieldSection {
    let mut encoded = Vec::new();
    // The encoder insists on lower case, as it should; wrong names go in by hand.
    if lines.iter().any(|(name, _)| name.bytes().any(|byte| byte.is_ascii_uppercase())) {
        let mut section = FieldSection::new();
        lines.iter().for_each(|(name, value)| section.push(name.as_bytes(), value.as_bytes()));
        return section;
    }
    qpack::encode(lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut encoded);
    let mut section = FieldSection::new();
    let limits = Limits { max_field_section_size: 1 << 20, max_lines: 100_000 };
    section.decode(&encoded, &limits).unwrap();
    section
}

/// The same lines, all names spelled out: no rule may depend on how a name was encoded.
fn spelled_out(lines: &[(&str, &str)]) -> FieldSection {
    let mut section = FieldSection::new();
    lines.iter().for_each(|(name, value)| section.push(name.as_bytes(), value.as_bytes()));
    section
}

const GET: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "https"), (":authority", "example.com"), (":path", "/")];

fn get_with(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    GET.iter().chain(more).copied().collect()
}

/// As where extended CONNECT was not announced.
fn request(section: &FieldSection) -> Result<RequestHead<'_>, &'static str> {
    judged(section, ExtendedConnect::Unknown)
}

fn judged(section: &FieldSection, extended: ExtendedConnect) -> Result<RequestHead<'_>, &'static str> {
    let judgement = validate::request(section, 0..section.len(), extended)?;
    Ok(RequestHead { section, judgement })
}

fn status(section: &FieldSection) -> Result<u16, &'static str> {
    validate::response(section, 0..section.len()).map(|(status, _)| status)
}

fn check_request(lines: &[(&str, &str)]) -> Result<(), &'static str> {
    let outcome = request(&section(lines)).map(|_| ());
    assert_eq!(outcome, request(&spelled_out(lines)).map(|_| ()), "{lines:?}");
    outcome
}

#[test]
fn fields_of_requests() {
    let good: [Lines; 12] = [
        &[],
        &[("te", "trailers")],
        &[("host", "example.com")],
        &[("host", "EXAMPLE.com")],
        &[("content-length", "0")],
        &[("content-length", "18446744073709551615")],
        &[("x-empty", "")],
        &[("x-tab", "a\tb")],
        &[("x-obs", "caf\u{e9}")],
        &[("x!#$%&'*+-.^_`|~9", "v")],
        &[("cookie", "a=b"), ("cookie", "c=d")],
        &[("priority", "u=1, i")],
    ];
    for more in good {
        assert_eq!(check_request(&get_with(more)), Ok(()), "{more:?}");
    }
    let bad: [(Lines, &str); 38] = [
        (&[("Accept", "*/*")], "field name with characters that it must not have"),
        (&[("x-Upper", "v")], "field name with characters that it must not have"),
        (&[("", "v")], "field name with characters that it must not have"),
        (&[("x y", "v")], "field name with characters that it must not have"),
        (&[("x\0", "v")], "field name with characters that it must not have"),
        (&[("x\r\ny", "v")], "field name with characters that it must not have"),
        (&[("x:y", "v")], "field name with characters that it must not have"),
        (&[("caf\u{e9}", "v")], "field name with characters that it must not have"),
        (&[("x", "a\r\nb: c")], "field value with characters that it must not have"),
        (&[("x", "a\nb")], "field value with characters that it must not have"),
        (&[("x", "a\rb")], "field value with characters that it must not have"),
        (&[("x", "a\0b")], "field value with characters that it must not have"),
        (&[("x", "\u{7f}")], "field value with characters that it must not have"),
        (&[("x", " a")], "field value with characters that it must not have"),
        (&[("x", "a\t")], "field value with characters that it must not have"),
        (&[("accept", "a\r\nb")], "field value with characters that it must not have"),
        (&[("connection", "close")], "connection-specific field"),
        (&[("keep-alive", "1")], "connection-specific field"),
        (&[("proxy-connection", "close")], "connection-specific field"),
        (&[("transfer-encoding", "chunked")], "connection-specific field"),
        (&[("upgrade", "websocket")], "connection-specific field"),
        (&[("te", "gzip")], "te with another value than trailers"),
        (&[("te", "trailers, gzip")], "te with another value than trailers"),
        (&[("host", "other.com")], ":authority and host differ"),
        (&[("host", "")], ":authority and host differ"),
        (&[("host", "example.com"), ("host", "example.com")], "more than one host"),
        (&[("content-length", "1"), ("content-length", "1")], "more than one content-length"),
        (&[("content-length", "1"), ("content-length", "2")], "more than one content-length"),
        (&[("content-length", "")], "content-length is not a number"),
        (&[("content-length", "+1")], "content-length is not a number"),
        (&[("content-length", "-1")], "content-length is not a number"),
        (&[("content-length", "0x10")], "content-length is not a number"),
        (&[("content-length", "1, 1")], "content-length is not a number"),
        (&[("content-length", "18446744073709551616")], "content-length is not a number"),
        (&[("x", "y"), (":path", "/")], "pseudo-header field after a field"),
        (&[(":path", "/")], "pseudo-header field occurs twice"),
        (&[(":status", "200")], "response pseudo-header field in a request"),
        (&[(":protocol", "websocket")], "undefined pseudo-header field"),
    ];
    for (more, reason) in bad {
        assert_eq!(check_request(&get_with(more)), Err(reason), "{more:?}");
    }
}

/// RFC 9114 §4.3.1: each pseudo-header field, changed or left out.
#[test]
fn targets_of_requests() {
    let table: [Target; 45] = [
        ("GET", "https", "example.com:443", "/a?b=c", Ok(())),
        ("GET", "https", "[2001:db8::1]:443", "/", Ok(())),
        ("GET", "https", "[::1]", "/", Ok(())),
        ("GET", "https", "example.com:", "/", Ok(())),
        ("OPTIONS", "https", "example.com", "*", Ok(())),
        ("PATCH~1", "https", "example.com", "/", Ok(())),
        ("GET", "HTTPS", "example.com", "/%2e%2e/", Ok(())),
        ("GET", "coap", "-", "", Ok(())),
        ("-", "https", "example.com", "/", Err("no :method")),
        ("", "https", "example.com", "/", Err("invalid :method")),
        ("GET ", "https", "example.com", "/", Err("invalid :method")),
        ("GE\tT", "https", "example.com", "/", Err("invalid :method")),
        ("GET", "-", "example.com", "/", Err("no :scheme")),
        ("GET", "", "example.com", "/", Err("invalid :scheme")),
        ("GET", "1https", "example.com", "/", Err("invalid :scheme")),
        ("GET", "ht tps", "example.com", "/", Err("invalid :scheme")),
        ("GET", "https", "-", "/", Err("neither :authority nor host")),
        ("GET", "https", "", "/", Err("invalid :authority")),
        ("GET", "https", "user@example.com", "/", Err("invalid :authority")),
        ("GET", "https", "user:secret@example.com", "/", Err("invalid :authority")),
        ("GET", "https", ":443", "/", Err("invalid :authority")),
        ("GET", "https", "example.com:99999", "/", Err("invalid :authority")),
        ("GET", "https", "example.com:44 3", "/", Err("invalid :authority")),
        ("GET", "https", "example.com:4:3", "/", Err("invalid :authority")),
        ("GET", "https", "example.com/x", "/", Err("invalid :authority")),
        ("GET", "https", "[::1", "/", Err("invalid :authority")),
        ("GET", "https", "::1]", "/", Err("invalid :authority")),
        ("GET", "https", "[]", "/", Err("invalid :authority")),
        ("GET", "https", "[[::1]]", "/", Err("invalid :authority")),
        ("GET", "https", "exa\rmple.com", "/", Err("invalid :authority")),
        ("GET", "https", "example.com", "-", Err("no :path")),
        ("GET", "https", "example.com", "", Err("invalid :path")),
        ("GET", "http", "example.com", "", Err("invalid :path")),
        ("GET", "https", "example.com", "*", Err("invalid :path")),
        ("GET", "https", "example.com", "a", Err("invalid :path")),
        ("GET", "https", "example.com", "https://example.com/", Err("invalid :path")),
        ("GET", "https", "example.com", "/a#b", Err("invalid :path")),
        ("GET", "https", "example.com", "/a b", Err("invalid :path")),
        ("GET", "https", "example.com", "/a\r\nHost: b", Err("invalid :path")),
        ("GET", "https", "example.com", "/caf\u{e9}", Err("invalid :path")),
        ("CONNECT", "-", "example.com:443", "-", Ok(())),
        ("CONNECT", "https", "example.com:443", "-", Err("CONNECT with :scheme or :path")),
        ("CONNECT", "-", "example.com:443", "/", Err("CONNECT with :scheme or :path")),
        ("CONNECT", "-", "-", "-", Err("CONNECT without :authority")),
        ("CONNECT", "-", "example.com", "-", Err("CONNECT with an invalid :authority")),
    ];
    for (method, scheme, authority, path, outcome) in table {
        let all = [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path)];
        let lines: Vec<_> = all.into_iter().filter(|(_, value)| *value != "-").collect();
        assert_eq!(check_request(&lines), outcome, "{lines:?}");
        // The order of pseudo-header fields among themselves is free.
        let reversed: Vec<_> = lines.into_iter().rev().collect();
        assert_eq!(check_request(&reversed), outcome);
    }
    let host_only = [(":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "example.com")];
    assert_eq!(check_request(&host_only), Ok(()));
    assert_eq!(request(&section(&host_only)).unwrap().authority(), Some(&b"example.com"[..]));
    let bad_host = [(":method", "GET"), (":scheme", "https"), (":path", "/"), ("host", "a@b")];
    assert_eq!(check_request(&bad_host), Err("invalid host"));
    assert_eq!(check_request(&[]), Err("no :method"));
}

/// RFC 8441 §4, RFC 9220 §3: what a request with `:protocol` says beside it.
#[test]
fn requests_that_name_a_protocol() {
    const HEAD: [(&str, &str); 5] = [
        (":method", "CONNECT"),
        (":protocol", "websocket"),
        (":scheme", "https"),
        (":authority", "example.com"),
        (":path", "/chat?a=b"),
    ];
    let check = |lines: &[(&str, &str)]| {
        let outcome = judged(&section(lines), ExtendedConnect::Announced).map(|_| ());
        let spelled_out = spelled_out(lines);
        assert_eq!(judged(&spelled_out, ExtendedConnect::Announced).map(|_| ()), outcome, "{lines:?}");
        outcome
    };
    let changed = |name: &str, value: &'static str| {
        HEAD.map(|line| if line.0 == name { (line.0, value) } else { line })
    };
    let without = |name: &str| HEAD.into_iter().filter(|line| line.0 != name).collect::<Vec<_>>();
    assert_eq!(check(&HEAD), Ok(()));
    // Deleted, a client could open tunnels at a server that has not announced them.
    assert_eq!(check_request(&HEAD), Err("undefined pseudo-header field"));
    for protocol in ["connect-udp", "WebSocket", "a+b.c"] {
        assert_eq!(check(&changed(":protocol", protocol)), Ok(()));
    }
    for protocol in ["", "web socket", "a/1", "a, b", "caf\u{e9}"] {
        assert_eq!(check(&changed(":protocol", protocol)), Err("invalid :protocol"), "{protocol}");
    }
    for method in ["GET", "POST", "connect"] {
        assert_eq!(check(&changed(":method", method)), Err(":protocol without CONNECT"));
    }
    assert_eq!(check(&without(":method")), Err("no :method"));
    assert_eq!(check(&without(":scheme")), Err("no :scheme"));
    assert_eq!(check(&without(":path")), Err("no :path"));
    assert_eq!(check(&without(":authority")), Err("neither :authority nor host"));
    assert_eq!(check(&changed(":authority", "a@b")), Err("invalid :authority"));
    for path in ["", "*", "chat", "/a b"] {
        assert_eq!(check(&changed(":path", path)), Err("invalid :path"), "{path}");
    }
    assert_eq!(check(&[HEAD.as_slice(), &[HEAD[1]]].concat()), Err("pseudo-header field occurs twice"));
    let late = [without(":protocol"), vec![("x", "y"), (":protocol", "websocket")]].concat();
    assert_eq!(check(&late), Err("pseudo-header field after a field"));
    let section = section(&HEAD);
    let head = judged(&section, ExtendedConnect::Announced).unwrap();
    assert_eq!((head.protocol(), head.path()), (Some(&b"websocket"[..]), Some(&b"/chat?a=b"[..])));
    assert_eq!((head.scheme(), head.authority()), (Some(&b"https"[..]), Some(&b"example.com"[..])));
}

#[test]
fn fields_of_responses_and_trailers() {
    let responses: [(Lines, Result<u16, &str>); 16] = [
        (&[(":status", "200")], Ok(200)),
        (&[(":status", "404"), ("content-length", "5")], Ok(404)),
        (&[(":status", "103")], Ok(103)),
        (&[(":status", "599")], Ok(599)),
        (&[], Err("no :status")),
        (&[("server", "x")], Err("no :status")),
        (&[("server", "x"), (":status", "200")], Err(":status occurs twice or after a field")),
        (&[(":status", "200"), (":status", "200")], Err(":status occurs twice or after a field")),
        (&[(":status", "101")], Err("status 101")),
        (&[(":status", "099")], Err("invalid :status")),
        (&[(":status", "600")], Ok(600)),
        (&[(":status", "20")], Err("invalid :status")),
        (&[(":status", "2000")], Err("invalid :status")),
        (
            &[(":status", "200"), (":path", "/")],
            Err("undefined or request pseudo-header field in a response"),
        ),
        (&[(":status", "200"), ("te", "trailers")], Err("te with another value than trailers")),
        (&[(":status", "200"), ("transfer-encoding", "chunked")], Err("connection-specific field")),
    ];
    for (lines, outcome) in responses {
        assert_eq!(status(&section(lines)), outcome, "{lines:?}");
        assert_eq!(status(&spelled_out(lines)), outcome, "{lines:?}");
    }
    let trailer_sections: [(Lines, Result<(), &str>); 6] = [
        (&[], Ok(())),
        (&[("x-checksum", "1")], Ok(())),
        (&[(":status", "200")], Err("pseudo-header field in trailers")),
        (&[("x", "y"), (":path", "/")], Err("pseudo-header field in trailers")),
        (&[("content-length", "1")], Err("content-length or host in trailers")),
        (&[("te", "trailers")], Err("te with another value than trailers")),
    ];
    for (lines, outcome) in trailer_sections {
        assert_eq!(validate::trailers(&section(lines), 0..lines.len()), outcome, "{lines:?}");
    }
}

#[test]
fn heads_become_http_types_and_back() {
    let lines = get_with(&[("cookie", "a=b"), ("accept", "*/*"), ("cookie", "c=d"), ("x", "1"), ("x", "2")]);
    let section = section(&lines);
    let parts = request(&section).unwrap().to_request().unwrap().into_parts().0;
    assert_eq!(parts.uri, "https://example.com/");
    assert_eq!(parts.version, http::Version::HTTP_3);
    assert_eq!(parts.headers.get("cookie").unwrap(), "a=b; c=d", "RFC 9114 §4.2.1");
    assert_eq!(parts.headers.get_all("x").iter().count(), 2);

    let mut encoded = Vec::new();
    let size = write_request(&parts, &mut encoded);
    let mut again = FieldSection::new();
    again.decode(&encoded, &Limits { max_field_section_size: size, max_lines: 20 }).unwrap();
    assert_eq!(again.size(), size);
    assert_eq!(request(&again).unwrap().to_request().unwrap().into_parts().0.headers, parts.headers);
}

/// Deleted, a value that an application keeps could change with the next request of its connection.
#[test]
fn memory_of_heads_is_used_again_once_nothing_of_the_last_one_is_kept() {
    let mut memory = HeadMemory::default();
    let mut kept = Vec::new();
    for number in 0..100 {
        let (text, path) = (format!("value {number}"), format!("/{number}?q={}", "x".repeat(number)));
        let more = [("x", text.as_str()), ("cookie", "a=b"), ("user-agent", &text), ("cookie", "c")];
        let mut lines: Vec<(&str, &str)> = GET.iter().copied().chain(more).collect();
        lines.iter_mut().filter(|line| line.0 == ":path").for_each(|line| line.1 = &path);
        let section = section(&lines);
        let head = request(&section).unwrap();
        let mut written = http::Request::new(());
        head.write_request(&mut written, &mut memory).unwrap();
        let parts = written.into_parts().0;
        let fresh = head.to_request().unwrap().into_parts().0;
        assert_eq!((&parts.uri, &parts.headers), (&fresh.uri, &fresh.headers));
        assert_eq!(parts.uri.path_and_query().unwrap().as_str(), path);
        assert_eq!(parts.headers["cookie"], "a=b; c");
        if number % 3 == 0 {
            kept.push((text, parts));
        }
    }
    for (text, parts) in kept {
        assert!(parts.headers["x"] == text && parts.headers["user-agent"] == text);
    }
    assert!(memory.bytes() < 4_096);
}

/// RFC 8441 §4. Deleted, a server could take a WebSocket for a tunnel to a host, or a protocol reach it by another method.
#[test]
fn an_extended_connect_has_a_protocol_and_a_target() {
    let encode = |method: &str, protocol: Option<Protocol>| {
        let mut head =
            http::Request::builder().method(method).uri("https://example.com/chat?a").body(()).unwrap();
        protocol.into_iter().for_each(|protocol| _ = head.extensions_mut().insert(protocol));
        let (mut encoded, mut section) = (Vec::new(), FieldSection::new());
        let size = write_request(&head.into_parts().0, &mut encoded);
        section.decode(&encoded, &Limits { max_field_section_size: size, max_lines: 20 }).unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        section.lines().map(|line| text(line.name) + "=" + &text(line.value)).collect::<Vec<_>>().join(" ")
    };
    let websocket = Some(Protocol("websocket"));
    assert_eq!(
        encode("CONNECT", websocket),
        ":method=CONNECT :protocol=websocket :scheme=https :authority=example.com :path=/chat?a"
    );
    assert_eq!(encode("CONNECT", None), ":method=CONNECT :authority=example.com");
    assert_eq!(encode("GET", websocket), ":method=GET :scheme=https :authority=example.com :path=/chat?a");
}

#[test]
fn what_http3_does_not_have_is_not_sent() {
    let parts = http::Request::builder()
        .uri("https://user:secret@example.com")
        .header("host", "example.com")
        .header("connection", "close")
        .header("te", "gzip")
        .header("upgrade", "h2c")
        .body(())
        .unwrap()
        .into_parts()
        .0;
    let mut encoded = Vec::new();
    write_request(&parts, &mut encoded);
    let mut section = FieldSection::new();
    section.decode(&encoded, &Limits { max_field_section_size: 4_096, max_lines: 20 }).unwrap();
    assert_eq!(section.len(), 4);
    let head = request(&section).unwrap();
    assert_eq!((head.authority(), head.path()), (Some(&b"example.com"[..]), Some(&b"/"[..])));
}

/// hyperium/h2 #909: a header map panics beyond some 24,000 fields. Ours refuses, whatever the cap on lines lets through.
#[test]
fn a_header_map_never_overflows() {
    let names: Vec<String> = (0..40_000).map(|number| format!("x{number}")).collect();
    let lines: Vec<(&str, &str)> =
        GET.into_iter().chain(names.iter().map(|name| (name.as_str(), ""))).collect();
    let mut section = FieldSection::new();
    lines.iter().for_each(|(name, value)| section.push(name.as_bytes(), value.as_bytes()));
    assert_eq!(request(&section).unwrap().to_request().map(|_| ()), Err(InvalidHead("too many fields")));
}

/// RFC 9110 §5.5. Values are looked at in words of eight bytes: a control character must be found wherever it stands.
#[test]
fn a_control_character_in_a_value_is_found_at_every_place() {
    for len in 1..26 {
        for at in 0..len {
            for byte in 0..=255_u8 {
                let mut text = vec![b'x'; len];
                text[at] = byte;
                let is_blank = byte == b' ' || byte == b'\t';
                let expected = match is_blank {
                    true => at > 0 && at + 1 < len,
                    false => byte >= 0x20 && byte != 0x7f,
                };
                assert_eq!(super::characters::is_value(&text), expected, "{byte:#x} at {at} of {len}");
            }
        }
    }
}

/// RFC 3986 §3.3: the same of paths. Deleted, a fragment or a blank could pass in a long one.
#[test]
fn a_character_that_no_path_has_is_found_at_every_place() {
    for len in 2..26 {
        for at in 1..len {
            for byte in 0..=255_u8 {
                let mut text = vec![b'x'; len];
                (text[0], text[at]) = (b'/', byte);
                let expected = byte.is_ascii_graphic() && byte != b'#';
                assert_eq!(super::characters::is_path(&text), expected, "{byte:#x} at {at} of {len}");
            }
        }
    }
}
