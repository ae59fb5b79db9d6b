//! The generator against the truth, on a clock of its own: a server that is a rule, and what the rule says must be measured.
//!
//! All that decides what is counted takes part: the course, the budget, the books, the histograms and the report. What is left
//! out is the network.

use super::accounts::RequestAccounts;
use super::plan::{Bound, HANDSHAKES_AT_A_TIME, LoadPlan, Pace, Protocol, Reuse, Tcp};
use super::record::Record;
use super::report::{self, Report, RunContext};
use super::run_phase::{ConnectionSummary, PhaseChange, RunPhase, ThreadContext};
use super::run_state::{ProgressWatch, RunState};
use super::traffic::Traffic;
use base::time::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::AtomicBool;

/// What is found may differ this much from what is true.
const TOLERANCE: f64 = 0.02;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn plan(pace: Pace, bound: Bound, places: usize) -> LoadPlan {
    LoadPlan {
        server_name: "virtual".to_owned(),
        address: ([127, 0, 0, 1], 1).into(),
        requests: vec![http::Request::get("http://virtual/").body(()).unwrap().into_parts().0],
        content: 0,
        connections: places,
        handshakes: HANDSHAKES_AT_A_TIME,
        streams: 1,
        bound,
        warm_up: ms(100),
        pace,
        timeout: Duration::from_secs(100),
        series: Some(ms(500)),
        protocol: Protocol::Http1(Tcp { tls: None, handshake_timeout: ms(1_000) }),
        reuse: Reuse::Always,
    }
}

/// Carries out a plan against a server that answers the n-th counted request, begun at some time, at the time that the rule
/// says. Returns the report and when measuring began.
fn run(plan: &LoadPlan, mut answered_at: impl FnMut(Instant) -> Instant) -> (Report, Instant) {
    let (run_state, halt) = (RunState::new(1, None, ProgressWatch::No), AtomicBool::new(false));
    let post = ThreadContext { index: 0, threads: 1, run_state: &run_state, halt: &halt };
    let share = plan.share(0, 1);
    let mut now = Instant::from_nanos(1_000_000_007);
    let mut run_phase = RunPhase::new(share.rules(), post, now);
    run_phase.on_up(now);
    let mut accounts = RequestAccounts::new(&share.rules());
    let connection_summary =
        ConnectionSummary { is_settled: true, has_up: true, is_under_way: true, has_failed: false };
    let mut outstanding: BinaryHeap<Reverse<(Instant, u64)>> = BinaryHeap::new();
    let mut asked = Vec::new();
    loop {
        while outstanding.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Some(Reverse((_, index))) = outstanding.pop() else { break };
            accounts.on_answer(now, &asked[index as usize], 200);
        }
        while run_phase.look(now, &mut accounts, connection_summary, Traffic::default()) == PhaseChange::Begin
        {
        }
        if run_phase.is_over(now, &accounts, connection_summary) {
            break;
        }
        while outstanding.len() < plan.connections
            && let Some(intended) = accounts.peek(now)
        {
            outstanding.push(Reverse((answered_at(now), asked.len() as u64)));
            asked.push(accounts.begin(now, intended));
        }
        let answer = outstanding.peek().map(|Reverse((at, _))| *at);
        let events =
            [answer, accounts.budget.next_due_after(now), Some(run_phase.next_look(now, &accounts, ms(1)))];
        now = events.into_iter().flatten().min().unwrap().max(now + Duration::from_nanos(1));
    }
    let began = accounts.record.began;
    run_phase.finish(now, &mut accounts, Duration::ZERO, Traffic::default());
    let mut all = Record::new();
    all.merge(&RunPhase::take_record(&mut accounts));
    let around = RunContext { threads: 1, server: None, interrupted: false };
    (report::of(plan, &all, around), began)
}

#[track_caller]
fn agrees(found_us: f64, truth: Duration) {
    let truth_us = truth.as_nanos() as f64 / 1e3;
    assert!(
        (found_us - truth_us).abs() <= truth_us * TOLERANCE,
        "{found_us} µs were found, {truth_us} are true"
    );
}

#[track_caller]
fn all_agree(report: &Report, mut truth: Vec<Duration>) {
    truth.sort();
    let at = |share: f64| truth[((truth.len() as f64 * share).ceil() as usize).clamp(1, truth.len()) - 1];
    let latency = &report.latency;
    assert_eq!(latency.count, truth.len() as u64);
    for (found, share) in [
        (latency.min_us, 0.0),
        (latency.p50_us, 0.5),
        (latency.p90_us, 0.9),
        (latency.p99_us, 0.99),
        (latency.p99_9_us, 0.999),
        (latency.p99_99_us, 0.9999),
        (latency.max_us, 1.0),
    ] {
        agrees(found, at(share));
    }
    let mean = truth.iter().map(|span| span.as_nanos()).sum::<u64>() / truth.len() as u64;
    agrees(latency.mean_us, Duration::from_nanos(mean));
}

/// Delays from a tenth of a millisecond to two seconds, in an order without a pattern.
fn delays() -> impl FnMut() -> Duration {
    let mut state = 1_u64;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let draw = (state >> 33) % 10_000;
        match draw {
            0..=8_999 => Duration::from_micros(100 + draw % 900),
            9_000..=9_899 => ms(20 + draw % 30),
            9_900..=9_989 => ms(200),
            _ => ms(2_000),
        }
    }
}

/// Closed loop: what the server took is what is reported.
#[test]
fn known_delays_are_recovered() {
    let (mut next, mut truth) = (delays(), Vec::new());
    let plan = LoadPlan { warm_up: Duration::ZERO, ..plan(Pace::Closed, Bound::Requests(50_000), 16) };
    let (report, _) = run(&plan, |now| {
        truth.push(next());
        now + *truth.last().unwrap()
    });
    assert!(report.is_clean() && report.requests == 50_000, "{report}");
    all_agree(&report, truth);
}

/// Open loop with one place: a queue forms, and what is reported is service and waiting, from when each request was due. The
/// truth is Lindley's recursion.
#[test]
fn waiting_for_room_is_part_of_an_open_loop_s_latency() {
    const COUNT: u64 = 20_000;
    let rate = 400.0;
    let services: Vec<Duration> = {
        let mut next = delays();
        (0..COUNT).map(|_| next()).collect()
    };
    let mut served = services.iter();
    let plan = LoadPlan { warm_up: Duration::ZERO, ..plan(Pace::Open(rate), Bound::Requests(COUNT), 1) };
    let (report, began) = run(&plan, |now| now + *served.next().unwrap());
    let mut free_at = began;
    let truth = services.iter().enumerate().map(|(index, service)| {
        let due = began + Duration::from_nanos((index as f64 * 1e9 / rate) as u64);
        free_at = free_at.max(due) + *service;
        free_at.saturating_since(due)
    });
    all_agree(&report, truth.collect());
}

/// A server that answers in a millisecond, but for one second in ten answers nothing. Deleted, the difference between the loops
/// could vanish, and with it the reason to have both.
#[test]
fn an_open_loop_shows_a_stall_that_a_closed_one_hides() {
    let bound = Bound::Span(Duration::from_secs(10));
    let stalling = |pace| {
        let mut stall = None;
        run(&plan(pace, bound, 200), |now| {
            let from = *stall.get_or_insert(now + Duration::from_secs(5));
            let until = from + Duration::from_secs(1);
            if (from..until).contains(&now) { until + ms(1) } else { now + ms(1) }
        })
        .0
    };
    let (open, closed) = (stalling(Pace::Open(100.0)), stalling(Pace::Closed));
    // One request in ten was due in that second, and waited for what was left of it.
    agrees(open.latency.p99_us, ms(900));
    agrees(open.latency.max_us, ms(1_000));
    agrees(open.latency.p50_us, ms(1));
    assert!((990..=1_001).contains(&open.requests), "{open}");
    // 200 of nearly two million.
    agrees(closed.latency.max_us, ms(1_001));
    agrees(closed.latency.p99_9_us, ms(1));
    let longest = open.series.iter().map(|slice| slice.max_us).fold(0.0, f64::max);
    agrees(longest, ms(1_000));
}
