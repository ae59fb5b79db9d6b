use std::collections::HashSet;
use std::time::Duration;

use sim::networks::{Axis, Work};

use netns::emulator::Waits;

use super::answers::{Answers, SmallRequests};
use super::lane::{Attempt, CellResult, Lane, Outcome, QueueWait, SecondVisit, Standing};
use super::plan::{Beside, LIMIT, Plan};
use super::simulated::Compared;
use super::{second, sender, trial, words};
use crate::contestants::{Http, look};
use crate::context::{CellChoice, Effort};

/// Deleted, a cell that the simulator's study renames would vanish from this one without a word.
#[test]
fn the_cells_are_the_simulators_and_span_its_axes() {
    let plan = plan(Effort::Full);
    assert_eq!((plan.cells.len(), plan.seeds.len()), (38, 3));
    let names: HashSet<String> = plan.cells.iter().map(super::PlannedCell::name).collect();
    assert_eq!(names.len(), 38, "{names:?}");
    let axes: HashSet<Axis> = plan.cells.iter().map(|cell| cell.cell.axis).collect();
    assert_eq!(axes.len(), 10, "{axes:?}");
    for cell in &plan.cells {
        let rate = cell.cell.profile.bits_per_second;
        if cell.work == Work::Large {
            assert!((100_000_000..=500_000_000).contains(&rate), "{cell:?}");
        } else {
            assert!(rate <= 100_000_000 && cell.cell.runs(cell.work), "{cell:?}");
        }
        let best = cell.bytes() as f64 * 8.0 / rate as f64;
        assert!(best < cell.limit().as_secs_f64() / 2.0 && cell.limit() <= LIMIT, "{cell:?}");
        assert_eq!(cell.files().len(), if cell.work == Work::Page { 30 } else { 1 });
    }
    let quick = self::plan(Effort::Quick);
    assert_eq!((quick.cells.len(), quick.seeds.len()), (7, 1));
    assert_eq!(quick.cells.iter().filter(|cell| cell.beside == Beside::Requests).count(), 1);
}

fn plan(effort: Effort) -> Plan {
    Plan::new(effort, &CellChoice::default())
}

/// Deleted, the study could lack long downloads over fast links, or requests beside a download that outlasts them.
#[test]
fn there_are_cells_of_100_mb_and_of_requests_beside_a_download() {
    let plan = plan(Effort::Full);
    let large: Vec<&super::PlannedCell> = plan.cells.iter().filter(|cell| cell.work == Work::Large).collect();
    let has = |loss: bool, late: bool, rate: u64| {
        let is_alike = |cell: &&&super::PlannedCell| {
            let profile = &cell.cell.profile;
            (profile.loss.is_some(), profile.reordering.is_some(), profile.bits_per_second)
                == (loss, late, rate * 1_000_000)
        };
        large.iter().filter(is_alike).count() == 1
    };
    assert_eq!(large.len(), 5);
    assert!(has(false, false, 100) && has(false, false, 500), "{large:?}");
    assert!(has(true, false, 100) && has(true, false, 500) && has(false, true, 100), "{large:?}");
    // The emulator sends no more than 500 Mbit/s at a time, but where packets are lost.
    for cell in &large {
        let rate = cell.at_once() as u64 * cell.cell.profile.bits_per_second;
        assert!(rate <= 500_000_000 || !cell.cell.profile.loses_nothing(), "{cell:?}");
        assert_eq!(
            (cell.times(1), cell.times(2), cell.times(3)),
            (1, 1, 2),
            "the longest are not in every round"
        );
    }
    assert_eq!(plan.cells.iter().filter(|cell| cell.times(3) == 3).count(), 33);
    let beside: Vec<&super::PlannedCell> =
        plan.cells.iter().filter(|cell| cell.beside == Beside::Requests).collect();
    assert_eq!(beside.len(), 3);
    for cell in beside {
        let line = cell.bytes() as f64 * 8.0 / cell.cell.profile.bits_per_second as f64;
        let asking = Duration::from(sim::networks::beside::APART) * sim::networks::beside::COUNT as u32;
        assert!(line > asking.as_secs_f64() && cell.name().ends_with("10 MB, requests beside"), "{cell:?}");
    }
}

/// Deleted, who wants one cell could have to wait for all.
#[test]
fn cells_are_chosen_by_words_of_their_names() {
    let chosen = |words: &[&str], rounds| {
        let only = words.iter().map(|word| (*word).to_owned()).collect();
        let plan = Plan::new(Effort::Full, &CellChoice { only, rounds });
        (plan.cells.iter().map(super::PlannedCell::name).collect::<Vec<_>>(), plan.seeds)
    };
    let (names, seeds) = chosen(&["beside", "BUFFERBLOAT"], Some(2));
    assert_eq!(names, ["bufferbloat: 10 Mbit/s, 10 products; 10 MB, requests beside"]);
    assert_eq!(seeds, [1, 2]);
    assert_eq!(chosen(&["; 100 MB"], None).0.len(), 5);
    assert!(chosen(&["no such cell"], None).0.is_empty());
}

/// Deleted, the emulated link could differ from the simulated one that it is to confirm.
#[test]
fn the_link_is_the_cells() {
    let plan = plan(Effort::Full);
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

fn answers(latencies_ms: &[f64], unanswered: usize) -> Answers {
    Answers { latencies_ms: latencies_ms.to_vec(), unanswered }
}

/// Deleted, requests that were never answered could make a percentile look better, or those of one round hide those of others.
#[test]
fn requests_without_an_answer_count_as_the_longest() {
    let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
    let all = answers(&hundred, 0);
    assert_eq!((all.percentile(50), all.percentile(99), all.asked()), (Some(50.0), Some(99.0), 100));
    let mut some = answers(&hundred[..98], 2);
    assert_eq!((some.percentile(50), some.percentile(99)), (Some(50.0), Some(f64::INFINITY)));
    assert_eq!(answers(&[], 0).percentile(50), None);
    assert_eq!(answers(&[], 3).percentile(50), Some(f64::INFINITY));
    some.join(&answers(&[0.5; 200], 0));
    assert_eq!((some.asked(), some.percentile(50), some.percentile(67)), (300, Some(0.5), Some(1.0)));
}

/// Deleted, the wait of a sender could be that of its best round, or a download that was not there could leave no wait.
#[test]
fn waits_are_medians_of_what_the_emulator_has_counted() {
    let mut waits = Waits::default();
    for ms in 1..=100 {
        waits.note(base::time::Duration::from_millis(ms));
    }
    let wait = QueueWait::of(&waits);
    assert!((wait.mean_ms - 50.5).abs() < 1e-9 && (96.0..=99.0).contains(&wait.p99_ms), "{wait:?}");
    let mut three = lane("x", &[Some(1.0), None, Some(2.0)]);
    for (attempt, mean_ms) in three.attempts.iter_mut().zip([30.0, 90.0, 10.0]) {
        attempt.queue = QueueWait { mean_ms, p99_ms: 100.0 - mean_ms };
    }
    assert_eq!(three.queue(), Some(QueueWait { mean_ms: 30.0, p99_ms: 70.0 }));
    assert_eq!(lane("x", &[]).queue(), None);
    let other = cell("other", vec![Lane { attempts: three.attempts[1..2].to_vec(), ..Lane::new("x") }]);
    let cells = [cell("one", vec![three]), other];
    // No sender was there in the other cell, so it is in no count.
    assert_eq!(Standing::of(&cells, "x", |_| true).queue, QueueWait { mean_ms: 30.0, p99_ms: 70.0 });
}

/// tercel's auto, and a sender that passes for quinn.
fn auto_and_quinn() -> Vec<sender::Sender> {
    let field = look(std::path::Path::new("/nowhere/else/tercel"), &[Http::Three]);
    let (mut senders, _) = sender::senders(&field, "");
    senders.retain(|sender| ["tercel auto", "tercel BBR"].contains(&sender.name.as_str()));
    let other = senders.iter_mut().find(|sender| sender.name == "tercel BBR").expect("a sender");
    (other.name, other.server.who) = ("quinn".to_owned(), crate::contestants::Contestant::Quinn);
    senders
}

/// Deleted, the tables could mix up connections, show the waits of another sender, or leave them out.
#[test]
fn tables_have_requests_and_waits_of_each_sender() {
    let senders = auto_and_quinn();
    let with = |sender: &str, same: &[f64], mean_ms: f64| {
        let mut lane = lane(sender, &[Some(8.5)]);
        let requests = SmallRequests { same: answers(same, 0), other: answers(&[40.0], 1) };
        lane.attempts[0].requests = Some(requests);
        lane.attempts[0].queue = QueueWait { mean_ms, p99_ms: 12.25 };
        lane
    };
    let cells = [
        cell("plain", vec![lane("tercel auto", &[Some(1.0)]), lane("quinn", &[Some(2.0)])]),
        cell(
            "beside; 10 MB",
            vec![with("tercel auto", &[50.0, 60.0], 7.34), with("quinn", &[45.0, 300.0], 90.0)],
        ),
    ];
    let text = |table: &report::model::Table, row: usize, sender: &str| {
        let column = table.columns.iter().position(|name| name == sender).expect("a column");
        table.rows[row].cells[column].clone()
    };
    let requests = words::requests(&senders, &cells);
    let names: Vec<&str> = requests.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(names, ["beside; the download's", "beside; another"]);
    assert_eq!(text(&requests, 0, "tercel auto"), "50/60".into());
    assert_eq!(text(&requests, 0, "quinn"), "45/300".into());
    assert_eq!(text(&requests, 1, "quinn"), "40/∞".into());
    let queues = words::queues(&senders, &cells);
    assert_eq!(text(&queues, 1, "tercel auto"), "7.3/12".into());
    assert_eq!(text(&queues, 1, "quinn"), "90/12".into());
    let standings = words::standings("How the senders stand", &senders, &cells);
    let place = standings.columns.iter().position(|name| name == "wait in the queue, ms").expect("a column");
    let auto = standings.rows.iter().find(|row| row.name == "tercel auto").expect("a row");
    assert_eq!(auto.cells[place], report::model::Cell::Number(3.67, 1));
    let findings = words::findings(&senders, &cells, &[]);
    let wanted = "beside; 10 MB: on the connection of a download by tercel auto small requests take 50 ms at the median, 99 of 100 at most 60. \
        Of the other implementations quinn delays them least: 45 and 300 ms.";
    assert!(findings.iter().any(|finding| finding == wanted), "{findings:?}");
    assert!(words::requests(&senders, &cells[..1]).rows.is_empty());
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
    assert!(has("agree in 2 of 4 downloads"), "{findings:?}");
    assert!(!has("won: tercel auto") && !has("missed"), "{findings:?}");
    let notes = words::notes(cells.iter());
    assert!(notes[0].contains("NOT VALID") && notes[0].contains("missed 4 frames"), "{notes:?}");
    let table = words::times(&senders, &cells);
    assert!(table.rows[3].name.contains("NOT VALID") && table.columns.len() == 3, "{table:?}");
}

/// Deleted, a setting that is no default could take places from senders that have defaults, or be compared with itself.
#[test]
fn another_initial_window_is_compared_with_the_others_and_they_not_with_it() {
    let mut cells = pretended();
    cells[1].lanes.push(lane(sender::TEN, &[Some(0.5)]));
    let auto = Standing::of(&cells, "tercel auto", words::by_default);
    assert_eq!(auto.worst, Some((4.0, "lost".to_owned())), "as without it");
    assert_eq!(cells[1].ratio(sender::TEN, words::by_default), Some(0.5));
    let mut senders = auto_and_quinn();
    senders.push(sender::Sender { name: sender::TEN.to_owned(), ..senders[0].clone() });
    let findings = words::auto_stands(&senders, &cells);
    let wanted = "tercel auto, ten packets is within 10 % of the best of the other implementations in 1 of 1 cells, and as fast or faster in 1.";
    assert!(findings.iter().any(|finding| finding == wanted), "{findings:?}");
}

/// Deleted, a download of which a resource is missing, or that went over another version, could be a fast one.
#[test]
fn a_download_counts_if_all_of_it_is_there() {
    let plan = plan(Effort::Quick);
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
    assert_eq!(senders.iter().filter(|one| one.is_ours()).count(), 6);
    let ten = senders.iter().find(|one| one.name == sender::TEN).expect("a sender");
    assert_eq!(
        ten.control.flags(),
        ["--congestion", "auto", "--initial-window", "10", "--mtu-search", "fast"]
    );
}

/// Deleted, a cell could be measured once although its time is a beginning, or a second visit could meet another link than the first.
#[test]
fn small_downloads_are_made_twice_unless_the_link_falls_silent() {
    let plan = plan(Effort::Full);
    let twice: Vec<&super::PlannedCell> = plan.cells.iter().filter(|cell| cell.is_visited_twice()).collect();
    assert_eq!(twice.len(), 16);
    for cell in &plan.cells {
        let is_small = cell.bytes() <= 1_000_000 && cell.cell.axis != Axis::Outage;
        assert_eq!(cell.is_visited_twice(), is_small, "{cell:?}");
    }
    assert_eq!(self::plan(Effort::Quick).cells.iter().filter(|cell| cell.is_visited_twice()).count(), 4);
}

/// Deleted, second visits could stand among the first, be those of another sender, or count where the emulator failed.
#[test]
fn second_visits_have_figures_of_their_own() {
    let senders = auto_and_quinn();
    let twice = |sender: &str, first: f64, second: Option<f64>, missed: u64| {
        let mut lane = lane(sender, &[Some(first)]);
        lane.attempts[0].second = Some(SecondVisit { seconds: second, missed, ..SecondVisit::default() });
        lane
    };
    let cells = [
        cell("page", vec![twice("tercel auto", 2.0, Some(0.5), 0), twice("quinn", 2.0, Some(1.0), 0)]),
        cell("1 MB", vec![twice("tercel auto", 3.0, Some(3.0), 0), twice("quinn", 3.0, Some(1.5), 0)]),
        cell("rain", vec![twice("tercel auto", 1.0, Some(1.0), 0), twice("quinn", 1.0, None, 0)]),
        cell("fog", vec![twice("tercel auto", 1.0, Some(9.0), 2), lane("quinn", &[None])]),
        cell("10 MB", vec![lane("tercel auto", &[Some(1.0)]), lane("quinn", &[Some(2.0)])]),
    ];
    let again = second::visits(&cells);
    let names: Vec<&str> = again.iter().map(|cell| cell.name.as_str()).collect();
    assert_eq!(names, ["page", "1 MB", "rain", "fog"].map(|name| format!("{name}, second visit")));
    let table = second::table(&senders, &again);
    let auto = table.columns.iter().position(|name| name == "tercel auto").expect("a column");
    let row = |row: usize| [table.rows[row].cells[auto].clone(), table.rows[row].cells[1 - auto].clone()];
    assert_eq!(row(0), ["0.50/1.00".into(), "1.00/2.00".into()]);
    assert_eq!(row(1), ["3.00/2.00".into(), "1.50/1.00".into()]);
    assert_eq!(row(2), ["1.00/1.00".into(), "not there".into()]);
    assert!(table.rows[3].name.contains("NOT VALID"), "{table:?}");
    let findings = second::findings(&senders, &cells, &again);
    for wanted in [
        // The cube root of 1/4, and the square root of 1/4; what is not valid or not there has no ratio.
        "Second visits by tercel auto take 0.63 of the time of the first ones, on the geometric mean.",
        "Second visits: tercel auto is within 10 % of the best sender in 2 of 3 cells, and the best in 2.",
        "1 MB, second visit: tercel auto takes 3.00 s, 2.00 times the 1.50 s of quinn.",
    ] {
        assert!(findings.iter().any(|finding| finding == wanted), "{wanted}: {findings:?}");
    }
    assert_eq!(findings.len(), 4, "{findings:?}");
    let standings = second::standings(&senders, &cells, &again);
    let of_quinn = standings.rows.iter().find(|row| row.name == "quinn").expect("a row");
    // Cells, best, near, not there, the mean ratio; it is not there in one.
    let figures = [(3.0, 0), (1.0, 0), (1.0, 0), (1.0, 0), (2.0_f64.sqrt(), 2)];
    for (cell, (figure, digits)) in of_quinn.cells.iter().zip(figures) {
        let report::model::Cell::Number(shown, with) = cell else { panic!("{standings:?}") };
        assert!((shown - figure).abs() < 1e-9 && *with == digits, "{standings:?}");
    }
    assert_eq!(of_quinn.cells.last(), Some(&report::model::Cell::Number(0.5, 2)));
    assert_eq!(standings.columns.len(), of_quinn.cells.len());
    assert!(second::standings(&senders, &cells[4..], &[]).rows.is_empty());
    let line = words::line(&cells[0].lanes[0].attempts[0], LIMIT);
    assert!(line.ends_with("; again 0.500 s"), "{line}");
    assert!(second::findings(&senders, &cells[4..], &second::visits(&cells[4..])).is_empty());
}
