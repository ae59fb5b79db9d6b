//! The judgement over trials, without running any.

use super::*;

fn trial(goodput: f64, server: f64, content: f64) -> Trial {
    let side = |cpu| Side { usage: Usage::default(), cpu_s_per_gb: cpu };
    let (server, client) = (side(server), side(0.5));
    Trial { goodput_gbit_s: goodput, server, client, datagrams: 1, content_mean: content }
}

fn plan() -> PeersPlan {
    PeersPlan::new("tercel".into(), "/no/such/quinn-peer".into(), "/no/such/quiche-peer".into())
}

/// A table whose cells have these trials: client, buffer, server.
fn comparison(
    cells: &[(Implementation, Buffer, Implementation, &[Trial])],
    problem: Option<String>,
) -> Comparison {
    let cell = |(client, buffer, server, trials): &(Implementation, Buffer, Implementation, &[Trial])| {
        (Cell { client: *client, buffer: *buffer, server: *server }, trials.to_vec())
    };
    let measured = Measured {
        cells: cells.iter().map(cell).collect(),
        roofline: Vec::new(),
        versions: vec!["quinn 0.11.9".to_owned()],
    };
    measured.conclude(&plan(), Environment::here(), problem)
}

fn finding<'a>(result: &'a Comparison, of: &str) -> &'a Finding {
    result.findings.iter().find(|finding| finding.of.contains(of)).unwrap_or_else(|| panic!("{of}: {result}"))
}

/// Deleted, a comparison could not say which releases of others it is of.
#[test]
fn each_implementation_is_named_with_its_version() {
    let version = |who, told: serde_json::Value| implementation::version(who, &told);
    let told = serde_json::json!({ "port": 1, "with": "quinn 0.11.9, h3 0.0.8" });
    assert_eq!(version(Implementation::Quinn, told), "quinn 0.11.9, h3 0.0.8");
    assert!(
        version(Implementation::Quiche, serde_json::json!({ "port": 1 }))
            .contains("does not say its version")
    );
    assert!(version(Implementation::Tercel, serde_json::json!({})).starts_with("tercel 0."));
    assert!(comparison(&[], None).to_string().contains("quinn 0.11.9"));
}

#[test]
fn servers_are_compared_for_the_same_client_and_buffer() {
    let ours = [trial(20.0, 0.30, 1_435.0), trial(21.0, 0.31, 1_436.0), trial(19.0, 0.30, 1_435.0)];
    let theirs = [trial(6.0, 1.20, 1_434.0), trial(6.1, 1.25, 1_434.0), trial(5.9, 1.20, 1_434.0)];
    let even = [trial(12.0, 0.31, 1_435.0), trial(28.0, 0.30, 1_435.0), trial(20.0, 0.31, 1_435.0)];
    let result = comparison(
        &[
            (Implementation::Quinn, Buffer::Large, Implementation::Tercel, &ours),
            (Implementation::Quinn, Buffer::Large, Implementation::Quinn, &theirs),
            (Implementation::Quinn, Buffer::Large, Implementation::Quiche, &even),
            (Implementation::Quinn, Buffer::Default, Implementation::Tercel, &theirs),
            (Implementation::Quinn, Buffer::Default, Implementation::Quinn, &ours),
        ],
        None,
    );
    let better = |of: &str| finding(&result, of).better;
    assert_eq!(better("quinn's client, large buffer: goodput, tercel / quinn"), Some("tercel"));
    assert_eq!(better("quinn's client, large buffer: server CPU, tercel / quinn"), Some("tercel"));
    assert_eq!(better("quinn's client, large buffer: goodput, tercel / quiche"), None);
    assert_eq!(better("quinn's client, default buffer: goodput, tercel / quinn"), Some("quinn"));
    assert_eq!(
        better("quinn's client, default buffer: server CPU, tercel / quinn"),
        Some("quinn"),
        "more is worse"
    );
    // What the table is for: a sender that a small buffer slows down.
    let kept = finding(&result, "tercel's server: goodput, default / large").ratio.unwrap();
    assert!((0.29..0.31).contains(&kept.ratio), "{kept:?}");
    let text = result.to_string();
    assert!(text.contains("quinn   default") && text.contains("quiche's server"), "{text}");
    assert!(text.contains("no difference shown") && !text.contains("NOT COMPARABLE"), "{text}");
}

#[test]
fn every_client_meets_every_server_with_both_buffers() {
    let folder = Folder::make().unwrap();
    let program = |name: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, "").unwrap();
        path
    };
    let plan = PeersPlan { quinn_peer: program("quinn-peer"), ..plan() };
    assert_eq!(plan.cells().len(), 2 * 2 * 2, "quiche is not there");
    assert!(notes(&plan, &[]).iter().any(|note| note.contains("quiche is left out")));
    let plan = PeersPlan { quiche_peer: program("quiche-peer"), ..plan };
    let cells = plan.cells();
    assert_eq!(cells.len(), 3 * 3 * 2);
    for client in Implementation::ALL {
        for server in Implementation::ALL {
            for buffer in Buffer::ALL {
                assert!(cells.contains(&Cell { client, buffer, server }), "{client:?} {server:?} {buffer:?}");
            }
        }
    }
}

/// quinn and quiche leave the default buffer to the system; the kernel doubles what tercel asks for.
#[test]
fn a_default_buffer_is_the_systems() {
    let buffer = |client: Implementation, buffer| -> Option<String> {
        let command = client.get(&plan(), buffer, 4_433);
        let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let flag = args.iter().position(|arg| arg.ends_with("-buffer"))?;
        args.get(flag + 1).cloned()
    };
    let both = |client| Buffer::ALL.map(|size| buffer(client, size));
    assert_eq!(both(Implementation::Tercel), [None, Some("106496".to_owned())]);
    assert_eq!(both(Implementation::Quinn), [None, Some("0".to_owned())]);
    assert_eq!(both(Implementation::Quiche), [Some("4194304".to_owned()), None]);
}

#[test]
fn a_payload_that_was_not_reached_is_said() {
    let result = comparison(
        &[(Implementation::Quinn, Buffer::Large, Implementation::Tercel, &[trial(20.0, 0.3, 1_180.0)])],
        None,
    );
    assert!(result.to_string().contains("NOT COMPARABLE: the tercel server sent 1180"), "{result}");
}

#[test]
fn what_was_measured_before_an_interruption_is_shown() {
    let result = comparison(
        &[
            (Implementation::Tercel, Buffer::Large, Implementation::Tercel, &[trial(20.0, 0.3, 1_435.0)]),
            (Implementation::Tercel, Buffer::Large, Implementation::Quinn, &[]),
        ],
        Some("interrupted".to_owned()),
    );
    let text = result.to_string();
    assert!(text.contains("20.00") && text.contains("two trials of each are needed"), "{text}");
    let json = serde_json::to_string(&result).unwrap();
    assert!(json.contains("\"problem\":\"interrupted\"") && json.contains("\"server\":\"quinn\""), "{json}");
    assert!(comparison(&[], None).findings.is_empty());
}

#[test]
fn a_missing_peer_says_how_to_get_it() {
    let launch = |_: &str| Err(io::Error::other("not needed"));
    let error = run(&plan(), &launch, &AtomicBool::new(false), &mut |_| {}).unwrap_err().to_string();
    assert!(error.contains("/no/such/quinn-peer") && error.contains("tests/setup"), "{error}");
}
