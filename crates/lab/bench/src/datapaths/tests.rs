//! What the table says must follow from the trials alone.

use super::table::{Colours, Text};
use super::*;

fn side(share: f64) -> Side {
    Side { cpu_s: share, cpu_s_per_gb: 2.0, share, core_share: share, datagrams_per_call: 1.0 }
}

fn trials(goodput: [f64; 3], server: f64, payload_mean: f64) -> Vec<Trial> {
    let trial = |goodput| Trial {
        goodput,
        server: side(server),
        client: side(0.6),
        payload_mean,
        datagrams: 1,
        path_in_use: "xdp driver".to_owned(),
        course: Vec::new(),
    };
    goodput.map(trial).to_vec()
}

fn result(rows: Vec<Row>) -> DataPaths {
    let plan = DataPathsPlan::new("tercel".into());
    DataPaths {
        notes: notes(&plan, &rows),
        plan,
        environment: Environment::here(),
        link: "veth",
        cipher: "",
        congestion: "",
        published: [PUBLISHED_UDP, PUBLISHED_XDP],
        rows,
        was_interrupted: false,
    }
}

/// Deleted, a table could claim the study's gain where the trials do not show it, or compare packets of different sizes.
#[test]
fn the_gain_is_told_with_its_interval_and_doubts_are_named() {
    let plain = trials([100e6, 101e6, 99e6], 1.0, 1_470.0);
    let rows = vec![
        row(Method::Plain, plain.clone(), None, &plain),
        row(Method::Gso, trials([300e6, 310e6, 305e6], 0.5, 1_470.0), None, &plain),
        row(Method::XdpDriver, trials([150e6, 151e6, 152e6], 0.99, 1_200.0), None, &plain),
        row(Method::XdpGeneric, Vec::new(), Some("no driver".to_owned()), &plain),
    ];
    let result = result(rows);
    let text = Text { result: &result, colours: Colours::None }.to_string();
    assert!(text.contains("xdp driver / plain, goodput: 1.51") && text.contains("beats the study"), "{text}");
    assert!(
        text.contains(
            "xdp driver / plain, GB per CPU second of the server: 1.00 (1.00 to 1.00), study 1.43: less"
        ),
        "{text}"
    );
    assert!(text.contains("gso: the server is not at full load (50 %"), "{text}");
    assert!(text.contains("NOT COMPARABLE: xdp driver sent datagrams of 1200"), "{text}");
    assert!(text.contains("no driver") && text.contains("111 / 98 / 97"), "{text}");
    assert!(!text.contains('\x1b') && serde_json::to_string(&result).unwrap().contains("xdp-driver"));
    let grey = Text { result: &result, colours: Colours::Terminal }.to_string();
    assert!(grey.contains("\x1b[90m111 / 98 / 97\x1b[0m"));
}

/// Deleted, published results would tell the names of a machine's folders.
#[test]
fn results_do_not_say_where_the_program_lies() {
    let plan = serde_json::to_string(&DataPathsPlan::new("/somewhere/tercel".into())).unwrap();
    assert!(plan.contains("trials") && !plan.contains("somewhere"), "{plan}");
}
