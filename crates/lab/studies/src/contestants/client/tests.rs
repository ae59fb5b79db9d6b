use super::*;

/// Deleted, another version of ab or h2load could be misread, and its figures be another quantity.
#[test]
fn reports_of_other_clients_are_understood() {
    let ab = "Time taken for tests:   0.500 seconds\nComplete requests:      40\nFailed requests:        1\n\
        HTML transferred:       400000000 bytes\nRequests per second:    80.00 [#/sec] (mean)\n  50%    100\n  99%    250\n";
    let run = read_ab(ab).unwrap();
    assert_eq!((run.rate, run.succeeded, run.content_bytes), (80.0, 39, 400_000_000));
    assert_eq!(run.latency_ms, Some([100.0, 250.0]));
    let h2load = "finished in 1.23s, 32.52 req/s, 310.20MB/s\n\
        requests: 40 total, 40 started, 40 done, 40 succeeded, 0 failed, 0 errored, 0 timeout\n\
        status codes: 40 2xx, 0 3xx, 0 4xx, 0 5xx\n\
        traffic: 381.68MB (400222410) total, 1.23KB (1260) headers (space savings 92.22%), 381.47MB (400000000) data\n";
    let run = read_h2load(h2load).unwrap();
    assert_eq!((run.rate, run.succeeded, run.content_bytes), (32.52, 40, 400_000_000));
    assert!(read_ab("").is_none() && read_h2load("finished in nothing").is_none());
}

#[test]
fn our_own_report_is_understood() {
    let load = r#"{"seconds":2.0,"succeeded":10,"requests_per_second":5.5,"content_bytes":6300,"limit":"perhaps_generator",
        "latency":{"p50_us":1000.0,"p99_us":2500.0},"generator":{"received_datagrams":12}}"#;
    let run = read_load(&load.replace('\n', "")).unwrap();
    assert_eq!((run.rate, run.succeeded, run.received_datagrams), (5.5, 10, Some(12.0)));
    assert_eq!((run.limit.as_deref(), run.latency_ms), (Some("perhaps generator"), Some([1.0, 2.5])));
    assert!(read_load("nothing").is_none());
}

/// Deleted, a slow client could be taken for a slow server.
#[test]
fn the_busy_side_limits() {
    assert_eq!(
        [limit(0.95, 0.5), limit(0.5, 0.95), limit(0.5, 0.5)],
        ["generator", "server", "neither alone"]
    );
}
