use std::collections::HashSet;
use std::time::Duration;

use sim::networks::{Axis, Work};

use super::lane::{Attempt, CellResult, Lane, Outcome, Standing};
use super::plan::{LIMIT, Plan};
use super::simulated::Compared;
use super::{sender, trial, words};
use crate::contestants::{Http, look};
use crate::context::Effort;

/// Deleted, a cell that the simulator's study renames would vanish from this one without a word.
#[test]
fn the_cells_are_the_simulators_and_span_its_axes() {
    let plan = Plan::new(Effort::Full);
    assert_eq!((plan.cells.len(), plan.seeds.len()), (30, 3));
    let names: HashSet<String> = plan.cells.iter().map(super::PlannedCell::name).collect();
    assert_eq!(names.len(), 30, "{names:?}");
    let axes: HashSet<Axis> = plan.cells.iter().map(|cell| cell.cell.axis).collect();
    assert_eq!(axes.len(), 10, "{axes:?}");
    for cell in &plan.cells {
        assert!(cell.cell.profile.bits_per_second <= 100_000_000 && cell.cell.runs(cell.work), "{cell:?}");
        let best = cell.bytes() as f64 * 8.0 / cell.cell.profile.bits_per_second as f64;
        assert!(best < LIMIT.as_secs_f64() / 3.0, "{cell:?}");
        assert_eq!(cell.files().len(), if cell.work == Work::Page { 30 } else { 1 });
    }
    assert_eq!(Plan::new(Effort::Quick).cells.len(), 6);
}

/// Deleted, the emulated link could differ from the simulated one that it is to confirm.
#[test]
fn the_link_is_the_cells() {
    let plan = Plan::new(Effort::Full);
    let link = |axis: Axis, name: &str| {
        let found = plan.cells.iter().find(|cell| cell.cell.axis == axis && cell.cell.name == name);
        found.expect("a cell").link(7)
    };
    let [to_client, to_server] = link(Axis::Queue, "0.1 products");
    assert_eq!((to_client.queue_bytes, to_server.queue_bytes), (50_000, 500_000));
    assert_eq!((to_client.rate_bits, to_client.delay), (Some(100_000_000), Duration::from_millis(20)));
    assert_ne!(to_client.seed, to_server.seed);
    assert!(to_client.events.is_empty() && to_client.reorder.is_none());
    let [to_client, to_server] = link(Axis::Policer, "20 Mbit/s, 25 kB at once");
    assert_eq!(to_client.events, [sim::Node::Police { bits_per_second: 20_000_000, burst_bytes: 25_000 }]);
    assert!(to_server.events.is_empty());
    let [late, _] = link(Axis::Reordering, "30 % by 20 ms");
    let reorder = late.reorder.expect("late datagrams");
    assert!((reorder.share - 0.3).abs() < 1e-9 && reorder.by == Duration::from_millis(20));
    let [silent, _] = link(Axis::Outage, "1 s");
    assert!(matches!(silent.events[..], [sim::Node::Blackhole { .. }]), "{silent:?}");
    let [lossy, back] = link(Axis::Loss, "3 %");
    assert!(matches!(lossy.events[..], [sim::Node::Loss(_)]) && lossy.events == back.events);
}

fn lane(sender: &str, times: &[Option<f64>]) -> Lane {
    let attempts = times.iter().map(|seconds| Attempt { seconds: *seconds, ..Attempt::default() }).collect();
    Lane { attempts, ..Lane::new(sender) }
}

fn cell(name: &str, lanes: Vec<Lane>) -> CellResult {
    CellResult { name: name.to_owned(), lanes }
}

/// Deleted, a sender that mostly fails could have the median of its successes, or be waited for without need.
#[test]
fn downloads_that_are_not_there_count_as_the_longest() {
    let median = |times: &[Option<f64>]| lane("x", times).median();
    assert_eq!(median(&[]), Outcome::Unknown);
    assert_eq!(median(&[Some(3.0), None, Some(1.0)]), Outcome::Seconds(3.0));
    assert_eq!(median(&[Some(3.0), None, None]), Outcome::NotThere);
    assert_eq!(median(&[Some(3.0), Some(2.0)]), Outcome::Seconds(2.0));
    assert!(lane("x", &[None]).is_open(3) && !lane("x", &[None, None]).is_open(3));
    assert!(lane("x", &[Some(1.0), None]).is_open(3));
    let left_out = Lane { problem: Some("it broke".to_owned()), ..lane("x", &[]) };
    assert!(!left_out.is_open(3));
}

fn pretended() -> Vec<CellResult> {
    let mut missed = cell("missed", vec![lane("tercel auto", &[Some(9.0)]), lane("quinn", &[Some(1.0)])]);
    missed.lanes[0].attempts[0].missed = 4;
    vec![
        cell(
            "won",
            vec![
                lane("tercel auto", &[Some(1.0)]),
                lane("tercel BBR", &[Some(1.05)]),
                lane("quinn", &[Some(4.0)]),
            ],
        ),
        cell(
            "lost",
            vec![
                lane("tercel auto", &[Some(4.0)]),
                lane("tercel BBR", &[Some(1.0)]),
                lane("quinn", &[Some(2.0)]),
            ],
        ),
        cell(
            "alone",
            vec![lane("tercel auto", &[Some(2.0)]), lane("tercel BBR", &[Some(2.0)]), lane("quinn", &[None])],
        ),
        missed,
    ]
}

/// Deleted, the findings could count what is not valid, or call a sender the best that is not.
#[test]
fn standings_count_the_best_the_near_and_the_absent() {
    let cells = pretended();
    let auto = Standing::of(&cells, "tercel auto", |_| true);
    assert_eq!((auto.cells, auto.best, auto.near, auto.not_there), (3, 2, 2, 0));
    assert_eq!(auto.worst, Some((4.0, "lost".to_owned())));
    assert!((auto.mean - 4.0_f64.cbrt()).abs() < 1e-9, "{auto:?}");
    let beside = Standing::of(&cells, "tercel auto", |name| name != "tercel BBR");
    assert_eq!((beside.best, beside.worst), (2, Some((2.0, "lost".to_owned()))));
    let quinn = Standing::of(&cells, "quinn", |_| true);
    assert_eq!((quinn.cells, quinn.near, quinn.not_there), (3, 0, 1));
    assert_eq!(cells[2].ratio("quinn", |_| true), Some(f64::INFINITY));
    assert_eq!(cells[0].ratio("a sender that is not there", |_| true), None);
}

/// Deleted, a sender that is faster than ours could be missing among the findings.
#[test]
fn findings_name_who_is_faster() {
    let field = look(std::path::Path::new("/nowhere/else/tercel"), &[Http::Three]);
    let (mut senders, _) = sender::senders(&field, "");
    senders.retain(|sender| ["tercel auto", "tercel BBR"].contains(&sender.name.as_str()));
    assert_eq!(senders.len(), 2);
    let mut other = senders[0].clone();
    // A sender that is not ours.
    other.name = "quinn".to_owned();
    other.server.who = crate::contestants::Contestant::Quinn;
    senders.push(other);
    let cells = pretended();
    let compared = |simulated, measured| Compared {
        cell: "won".to_owned(),
        controller: "auto".to_owned(),
        simulated,
        measured,
    };
    let all =
        [compared(1.0, Some(1.1)), compared(1.0, Some(1.3)), compared(50.0, None), compared(50.0, Some(9.0))];
    assert_eq!(all.each_ref().map(Compared::agrees), [true, false, true, false]);
    let findings = words::findings(&senders, &cells, &all);
    let has = |text: &str| findings.iter().any(|finding| finding.contains(text));
    assert!(has("within 10 % of the best sender in 2 of 3 cells, and the best in 2"), "{findings:?}");
    assert!(has("lost: tercel auto takes 4.00 s, 2.00 times the 2.00 s of quinn."), "{findings:?}");
    assert!(
        has("quinn is within 10 % of the best in 0 of 3 cells, the best in 0, not there in 1"),
        "{findings:?}"
    );
    assert!(has("agree in 2 of 4 downloads"), "{findings:?}");
    assert!(!has("won: tercel auto") && !has("missed"), "{findings:?}");
    let notes = words::notes(&cells);
    assert!(notes[0].contains("NOT VALID") && notes[0].contains("missed 4 frames"), "{notes:?}");
    let table = words::times(&senders, &cells);
    assert!(table.rows[3].name.contains("NOT VALID") && table.columns.len() == 3, "{table:?}");
}

/// Deleted, a download of which a resource is missing, or that went over another version, could be a fast one.
#[test]
fn a_download_counts_if_all_of_it_is_there() {
    let plan = Plan::new(Effort::Quick);
    let cell = &plan.cells[0];
    let read = |output: &str, http| trial::read(output, cell, http);
    let line = r#"{"bytes":1000000,"status":200,"error":null,"seconds":1.5,"http_version":"2.0"}"#;
    assert_eq!(read(line, Http::Three), Ok(Some(1.5)));
    assert_eq!(read(line, Http::Two), Ok(Some(1.5)));
    assert_eq!(read(&line.replace("2.0", "1.1"), Http::Two), Err("it was not HTTP/2".to_owned()));
    assert_eq!(read(&line.replace("1.5", "31.5"), Http::Three), Ok(None), "it came too late");
    assert!(read(&line.replace("1000000", "999999"), Http::Three).is_err());
    assert!(read(&line.replace("200,", "404,"), Http::Three).is_err());
    assert_eq!(read(&line.replace("null", "\"it broke\""), Http::Three), Err("it broke".to_owned()));
    assert!(read("", Http::Three).is_err() && read("no JSON", Http::Three).is_err());
}

/// Deleted, a controller of the kernel that is missing could make its TCP run with another one.
#[test]
fn tcp_is_there_with_the_controllers_that_the_kernel_has() {
    let field = look(std::path::Path::new("/nowhere/else/tercel"), &Http::ALL);
    let has_nginx = field.installed.iter().any(|server| server.who == crate::contestants::Contestant::Nginx);
    let (senders, absent) = sender::senders(&field, "reno cubic");
    let tcp: Vec<&str> =
        senders.iter().filter(|one| one.http == Http::Two).map(|one| one.name.as_str()).collect();
    assert_eq!(tcp, if has_nginx { vec!["TCP CUBIC"] } else { vec![] });
    assert_eq!(absent.iter().any(|line| line.contains("no bbr")), has_nginx);
    assert_eq!(senders.iter().filter(|one| one.is_ours()).count(), 5);
}
