//! Each form of an expectation, against reports that meet it and that do not.

use super::*;
use crate::Latency;
use crate::sample::report;

#[test]
fn every_form_is_read_and_judged() {
    let mut run = report();
    run.latency =
        Latency { count: 1_000, p99_us: 4_000.0, p99_9_us: 19_000.0, mean_us: 900.0, ..Latency::default() };
    run.handshake = Latency { count: 4, p50_us: 2_500.0, ..Latency::default() };
    (run.requests_per_second, run.content_bytes_per_second) = (1_500.0, 2e6);
    (run.succeeded, run.failed) = (995, 5);
    let table = [
        ("p99<5ms", true),
        ("p99 < 4000us", false),
        ("p99<=4000us", true),
        ("p99.9<20ms", true),
        ("mean<0.001s", true),
        ("handshake_p50<3ms", true),
        ("handshake_p50>3ms", false),
        ("rate>1000", true),
        ("rate>=1.5k", true),
        ("rate>2k", false),
        ("bytes>1MB", true),
        ("errors<1%", true),
        ("errors<0.5%", false),
        ("errors=0", false),
        ("errors=5", true),
    ];
    for (text, met) in table {
        let verdict = text.parse::<Expectation>().unwrap().judge(std::slice::from_ref(&run));
        assert!(verdict.met == met && verdict.measured.is_some(), "{verdict}");
    }
}

/// Deleted, a run in which nothing was answered could meet `p99<5ms`.
#[test]
fn nothing_measured_meets_nothing() {
    let mut run = report();
    run.not_begun = 10;
    for text in ["p99<5ms", "handshake_max<1s", "errors=0", "errors<1%", "rate>0"] {
        let verdict = text.parse::<Expectation>().unwrap().judge(std::slice::from_ref(&run));
        assert!(!verdict.met, "{verdict}");
    }
    assert!(!"p99<5ms".parse::<Expectation>().unwrap().judge(&[]).met);
}

#[test]
fn what_cannot_be_read_explains_the_grammar() {
    for text in [
        "",
        "p99",
        "p98<5ms",
        "p99<5",
        "p99<5m",
        "p99<ms",
        "rate>fast",
        "errors<1s",
        "latency<5ms",
        "p99!5ms",
    ] {
        let error = text.parse::<Expectation>().unwrap_err();
        assert!(error.contains("p99<5ms") && error.contains("errors<1%"), "{error}");
    }
}

#[test]
fn several_trials_are_judged_by_their_mean_and_errors_by_their_sum() {
    let (mut first, mut second) = (report(), report());
    (first.requests_per_second, second.requests_per_second) = (100.0, 200.0);
    (first.failed, second.failed) = (0, 3);
    let judge =
        |text: &str| text.parse::<Expectation>().unwrap().judge(&[first.clone(), second.clone()]).measured;
    assert_eq!((judge("rate>1"), judge("errors=0")), (Some(150.0), Some(3.0)));
}
