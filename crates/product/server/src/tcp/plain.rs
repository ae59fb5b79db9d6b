//! A request in plain HTTP on the port of TLS: one answer, then the end of the connection.
//!
//! A GET that a certificate authority was promised an answer to gets it (RFC 8555 §8.3). Another GET or HEAD with a valid Host is redirected
//! to https with 308; anything else gets 400 and a hint. The head is read up to
//! [`MAX_HEAD`] bytes and within the time of a handshake; nothing of its content is.

use super::stream::Stream;
use super::timeouts::{ConnectionTimeouts, NextAction};
use crate::challenges::Challenges;
use crate::date;
use http::uri::Authority;
use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll, ready};

/// A head that is longer, in bytes, is not waited for.
const MAX_HEAD: usize = 8 * 1024;

/// Answers the request that begins with `head`.
pub(super) async fn answer(
    stream: &Stream,
    head: Vec<u8>,
    timeouts: &ConnectionTimeouts,
    challenges: &Challenges,
) {
    let mut exchange = Exchange { head, reply: Vec::new(), challenges };
    poll_fn(|cx| match timeouts.order(cx.waker()) {
        NextAction::Serve | NextAction::Leave => exchange.poll(stream, cx).map(|_| ()),
        NextAction::Finish | NextAction::Close => Poll::Ready(()),
    })
    .await;
}

struct Exchange<'c> {
    head: Vec<u8>,
    challenges: &'c Challenges,
    /// What is left to send of the answer, once it is known.
    reply: Vec<u8>,
}

impl Exchange<'_> {
    fn poll(&mut self, stream: &Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.reply.is_empty() {
            match reply(&self.head, &date::http_date(date::unix_now()), self.challenges) {
                Some(reply) => self.reply = reply,
                None => ready!(stream.poll_read_plain(cx, &mut self.head))?,
            }
        }
        stream.poll_write_plain(cx, &mut self.reply)
    }
}

/// The answer to `head`; `None` until enough of it is there.
fn reply(head: &[u8], date: &[u8], challenges: &Challenges) -> Option<Vec<u8>> {
    let date = String::from_utf8_lossy(date);
    let location = match end_of(head) {
        Some(end) => {
            let whole = head.get(..end).unwrap_or_default();
            if let Some(text) = got(whole).and_then(|path| challenges.text(path)) {
                return Some(challenge(&text, &date));
            }
            location(whole)
        }
        None if head.len() >= MAX_HEAD => None,
        None => return None,
    };
    let (status, location) = match location {
        Some(location) => ("308 Permanent Redirect", format!("location: {location}\r\n")),
        None => ("400 Bad Request", String::new()),
    };
    let text = format!("{status}: this port speaks HTTPS; begin the URL with https://\n");
    // HEAD has no content, and a client that asked by it does not wait for any.
    let text = if head.starts_with(b"HEAD ") { String::new() } else { text };
    Some(
        format!(
            "HTTP/1.1 {status}\r\ndate: {date}\r\n{location}content-type: text/plain; charset=utf-8\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n{text}",
            text.len()
        )
        .into_bytes(),
    )
}

/// The answer that an authority waits for.
fn challenge(text: &str, date: &str) -> Vec<u8> {
    let len = text.len();
    format!(
        "HTTP/1.1 200 OK\r\ndate: {date}\r\ncontent-type: application/octet-stream\r\ncontent-length: {len}\r\n\
         connection: close\r\n\r\n{text}"
    )
    .into_bytes()
}

/// The path of a GET.
fn got(head: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(head).ok()?.lines().next()?;
    let (path, version) = line.strip_prefix("GET ")?.split_once(' ')?;
    version.starts_with("HTTP/1.").then_some(path)
}

/// Where the head ends: behind its empty line.
fn end_of(head: &[u8]) -> Option<usize> {
    let ends = |pattern: &[u8]| head.windows(pattern.len()).position(|window| window == pattern);
    ends(b"\r\n\r\n").or_else(|| ends(b"\n\n"))
}

/// The https URL of a request that can be redirected.
fn location(head: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.lines();
    let mut request = lines.next()?.split(' ');
    let (method, target, version) = (request.next()?, request.next()?, request.next()?);
    let is_safe =
        matches!(method, "GET" | "HEAD") && version.starts_with("HTTP/1.") && request.next().is_none();
    let is_path = target.starts_with('/') && target.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_safe || !is_path {
        return None;
    }
    // RFC 9112 §3.2: exactly one Host, and a valid one.
    let mut hosts =
        lines.filter_map(|line| line.split_once(':')).filter(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = hosts.next()?.1.trim_matches([' ', '\t']);
    let authority: Authority = host.parse().ok()?;
    let is_valid = !authority.host().is_empty() && !host.contains('@') && !host.ends_with(':');
    (is_valid && hosts.next().is_none()).then(|| format!("https://{authority}{target}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(head: &str) -> Option<String> {
        reply(head.as_bytes(), b"now", &Challenges::default()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn a_get_with_a_host_is_sent_to_https_and_all_else_is_told_why_not() {
        let to = |head: &str| {
            let answer = answered(head).unwrap();
            let line =
                |name: &str| answer.lines().find_map(|line| line.strip_prefix(name).map(str::to_owned));
            let status: u16 = answer.split(' ').nth(1).unwrap().parse().unwrap();
            let (_, text) = answer.split_once("\r\n\r\n").unwrap();
            assert_eq!(line("content-length: "), Some(text.len().to_string()), "{answer}");
            assert!(line("connection: ").unwrap() == "close" && line("date: ").unwrap() == "now");
            assert!(text.contains("https") || head.starts_with("HEAD"), "{answer}");
            (status, line("location: "))
        };
        let redirect = |location: &str| (308, Some(location.to_owned()));
        let refusal = (400, None);
        let table = [
            ("GET / HTTP/1.1\r\nHost: h:4433\r\n\r\n", redirect("https://h:4433/")),
            ("HEAD /a?b=c HTTP/1.1\r\nx: y\r\nhost:\th\r\n\r\n", redirect("https://h/a?b=c")),
            ("GET / HTTP/1.1\nHost: [::1]:8\n\n", redirect("https://[::1]:8/")),
            ("POST / HTTP/1.1\r\nHost: h\r\n\r\n", refusal.clone()),
            ("GET / HTTP/1.0\r\n\r\n", refusal.clone()),
            ("GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", refusal.clone()),
            ("GET / HTTP/1.1\r\nHost: u@h\r\n\r\n", refusal.clone()),
            ("GET / HTTP/1.1\r\nHost: h/x\r\n\r\n", refusal.clone()),
            ("GET / HTTP/1.1\r\nHost: h x\r\n\r\n", refusal.clone()),
            ("GET / HTTP/1.1\r\nHost:\r\n\r\n", refusal.clone()),
            ("GET http://h/ HTTP/1.1\r\nHost: h\r\n\r\n", refusal.clone()),
            ("GET //evil\\ HTTP/1.1\r\nHost: h\r\n\r\n", redirect("https://h//evil\\")),
            ("GET /\u{7f} HTTP/1.1\r\nHost: h\r\n\r\n", refusal.clone()),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", refusal.clone()),
            ("EHLO\r\n\r\n", refusal),
        ];
        for (head, expected) in table {
            assert_eq!(to(head), expected, "{head:?}");
        }
    }

    /// Deleted, an authority would be sent to https, where the certificate is that it is asked for.
    #[test]
    fn a_promised_text_is_given_to_a_get_alone() {
        let challenges = Challenges::default();
        let told = challenges.tell_text("token", "token.key".into());
        let status = |line: &str| {
            let head = format!("{line} HTTP/1.1\r\nhost: h\r\n\r\n");
            let answer = String::from_utf8(reply(head.as_bytes(), b"now", &challenges).unwrap()).unwrap();
            (answer[9..12].to_owned(), answer.split_once("\r\n\r\n").unwrap().1.to_owned())
        };
        let path = "/.well-known/acme-challenge/token";
        assert_eq!(status(&format!("GET {path}")), ("200".into(), "token.key".into()));
        for line in
            [format!("HEAD {path}"), format!("GET {path}2"), "GET /.well-known/acme-challenge/".into()]
        {
            assert_eq!(status(&line).0, "308", "{line}");
        }
        assert_eq!(status(&format!("POST {path}")).0, "400");
        drop(told);
        assert_eq!(status(&format!("GET {path}")).0, "308");
    }

    /// Deleted, a head without an end could fill the memory.
    #[test]
    fn a_head_is_waited_for_up_to_a_bound() {
        assert_eq!(answered("GET / HTTP/1.1\r\nHost: h\r\n"), None);
        assert_eq!(answered(&"x".repeat(MAX_HEAD - 1)), None);
        assert!(answered(&"x".repeat(MAX_HEAD)).unwrap().starts_with("HTTP/1.1 400 "));
    }
}
