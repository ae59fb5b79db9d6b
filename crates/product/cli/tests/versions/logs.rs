//! The access log in JSON, of a share of the requests, and standard error as the journal reads it.

use crate::message::Ask;
use crate::server::Server;
use crate::{http3, site, tcp};

/// Deleted, a program that reads the log could stumble over what a client has sent.
#[test]
fn the_log_in_json_is_the_same_for_all_versions() {
    let root = site();
    let words = [
        "--access-log-format",
        "json",
        "--access-log-fields",
        "method,host,target,status,bytes,user_agent,protocol",
    ];
    let server = Server::start(root.path(), &words);
    let asks = [
        Ask::get("/hello.txt?a=%22").of("a.org").with("user-agent", "\"}\\é"),
        Ask::get("/none").of("a.org"),
    ];
    tcp::run(tcp::http1(server.port, &asks));
    tcp::run(tcp::http2(server.port, &asks));
    http3::http3(server.port, &asks);
    let (_, log) = server.stop();
    let lines: Vec<&str> = log.lines().collect();
    assert_eq!(lines.len(), 6, "{log}");
    for protocol in ["HTTP/1.1", "HTTP/2", "HTTP/3"] {
        let first = format!(
            "{{\"method\":\"GET\",\"host\":\"a.org\",\"target\":\"/hello.txt?a=%22\",\"status\":200,\"bytes\":12,\
             \"user_agent\":\"\\\"}}\\\\\\u00c3\\u00a9\",\"protocol\":\"{protocol}\"}}"
        );
        assert!(lines.contains(&first.as_str()), "{first}: {log}");
    }
    for line in lines {
        let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert_eq!(value.as_object().map(serde_json::Map::len), Some(7), "{line}");
    }
}

#[test]
fn a_share_of_the_requests_is_logged_and_every_error() {
    let root = site();
    let server = Server::start(root.path(), &["--access-log-sample", "0.25"]);
    let asks: Vec<Ask> =
        (0..40).map(|number| Ask::get(if number < 32 { "/hello.txt" } else { "/none" })).collect();
    tcp::run(tcp::http2(server.port, &asks));
    let (_, log) = server.stop();
    let count = |what: &str| log.lines().filter(|line| line.contains(what)).count();
    assert_eq!((count("\" 200 "), count("\" 404 ")), (8, 8), "{log}");
}

/// Deleted, the journal could take warnings for news, and a terminal show marks that are not for people.
#[test]
fn lines_have_their_level_where_the_journal_reads_them_and_only_there() {
    let root = site();
    let is_marked = |line: &str| line.starts_with('<');
    let script = "JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec \"$0\" \"$@\"";
    let server = Server::start_by(script, root.path(), &["--admin", "0.0.0.0:0"]);
    let said = server.wait_for("said", ("<6>tercel serves ", 1));
    assert!(said.contains("<4>tercel: warning: the admin address ") && said.lines().all(is_marked), "{said}");
    server.signal("HUP");
    server.wait_for("said", ("<6>tercel: reloaded: ", 1));
    server.stop();
    let server = Server::start(root.path(), &["--admin", "0.0.0.0:0", "--log-level", "warning"]);
    let said = server.wait_for("said", ("tercel: warning: the admin address ", 1));
    assert!(!said.lines().any(is_marked) && !said.contains("tercel serves"), "{said}");
    server.stop();
}
