//! The judgement over trials, without running any.

use super::*;

fn trial(goodput: f64, server: f64, client: f64, payload: f64) -> Trial {
    let side = |cpu| Side { usage: Usage::default(), cpu_s_per_gb: cpu, datagrams_per_call: None };
    Trial {
        goodput_gbit_s: goodput,
        server: side(server),
        client: side(client),
        datagrams: 1,
        payload_mean: payload,
    }
}

fn comparison(tercel: &[Trial], quinn: &[Trial], problem: Option<String>) -> Comparison {
    let measured = Measured { trials: [tercel.to_vec(), quinn.to_vec()], ..Measured::default() };
    measured.conclude(&Plan::new("tercel".into(), "quinn-peer".into()), Environment::here(), problem)
}

#[test]
fn a_winner_is_named_only_when_the_trials_show_one() {
    let ours =
        [trial(20.0, 0.3, 0.50, 1_470.0), trial(21.0, 0.31, 0.8, 1_471.0), trial(19.0, 0.3, 0.6, 1_470.0)];
    let theirs =
        [trial(6.0, 1.2, 0.7, 1_471.0), trial(6.1, 1.25, 0.5, 1_471.0), trial(5.9, 1.2, 0.65, 1_471.0)];
    let result = comparison(&ours, &theirs, None);
    let better: Vec<_> = result.findings.iter().map(|finding| finding.better).collect();
    assert_eq!(better, [Some("tercel"), Some("tercel"), None]);
    let mirrored = comparison(&theirs, &ours, None);
    assert_eq!(mirrored.findings[1].better, Some("quinn"), "more CPU is worse");
    let text = result.to_string();
    assert!(text.contains("no difference shown") && !text.contains("NOT COMPARABLE"), "{text}");
}

#[test]
fn a_payload_that_was_not_reached_is_said() {
    let result = comparison(&[trial(20.0, 0.3, 0.5, 1_215.0)], &[trial(6.0, 1.2, 0.7, 1_471.0)], None);
    assert!(result.to_string().contains("NOT COMPARABLE: tercel"), "{result}");
}

#[test]
fn what_was_measured_before_an_interruption_is_shown() {
    let result = comparison(&[trial(20.0, 0.3, 0.5, 1_470.0)], &[], Some("interrupted".to_owned()));
    let text = result.to_string();
    assert!(text.contains("20.00") && text.contains("two trials of each are needed"), "{text}");
    assert!(serde_json::to_string(&result).unwrap().contains("\"problem\":\"interrupted\""));
    assert!(comparison(&[], &[], None).findings.iter().all(|finding| finding.ratio.is_none()));
}

#[test]
fn a_missing_peer_says_how_to_get_it() {
    let plan = Plan::new("tercel".into(), "/no/such/quinn-peer".into());
    let launch = |_: &str| Err(io::Error::other("not needed"));
    let error = run(&plan, &launch, &AtomicBool::new(false), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("/no/such/quinn-peer") && error.contains("tests/setup"), "{error}");
}
