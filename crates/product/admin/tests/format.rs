//! The metrics as a program reads them: a parser of the text formats, written from their descriptions, and docs/metrics.md.

#![expect(clippy::expect_used, clippy::panic, reason = "a test ends where something is not as it should be")]

use admin::{Expiry, Format, Snapshot, Upstream, exposition};
use std::collections::{BTreeMap, BTreeSet};

/// A family as it was read.
#[derive(Debug, Default)]
struct Family {
    help: String,
    kind: String,
    samples: Vec<(String, BTreeMap<String, String>, f64)>,
}

/// Whether it is the name of a metric or, without colons, of a label.
fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

/// Labels up to the brace that ends them, and what follows.
fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let (mut found, mut rest) = (BTreeMap::new(), text);
    while let Some((name, value)) = rest.split_once("=\"") {
        assert!(is_name(name), "{text}");
        let (mut end, mut is_escaped, mut content) = (None, false, String::new());
        for (at, letter) in value.char_indices() {
            match (is_escaped, letter) {
                (false, '\\') => is_escaped = true,
                (false, '"') => {
                    end = Some(at);
                    break;
                }
                (true, 'n') => (is_escaped, content) = (false, content + "\n"),
                (_, letter) => {
                    assert!(!is_escaped || "\\\"".contains(letter), "{text}");
                    is_escaped = false;
                    content.push(letter);
                }
            }
        }
        assert!(found.insert(name.to_owned(), content).is_none(), "a label twice: {text}");
        rest = &value[end.expect("an end") + 1..];
        rest = match rest.strip_prefix(',') {
            Some(next) => next,
            None => return (found, rest.strip_prefix('}').expect("a brace")),
        };
    }
    panic!("{text}");
}

/// The families of a text, which must be one of this format.
fn parse(text: &str, format: Format) -> BTreeMap<String, Family> {
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    let mut seen = BTreeSet::new();
    assert!(text.ends_with('\n'));
    let (mut text, is_open) = (text, format == Format::OpenMetrics);
    if is_open {
        text = text.strip_suffix("# EOF\n").expect("an end");
    }
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').expect("help");
            assert!(is_name(name) && !families.contains_key(name), "{line}");
            families.insert(name.to_owned(), Family { help: help.to_owned(), ..Family::default() });
            current = name.to_owned();
            continue;
        }
        let family = families.get_mut(&current).expect("help goes first");
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a type");
            assert!(name == current && ["counter", "gauge", "histogram"].contains(&kind), "{line}");
            family.kind = kind.to_owned();
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, unit) = rest.split_once(' ').expect("a unit");
            assert!(is_open && name == current && name.ends_with(&format!("_{unit}")), "{line}");
        } else {
            let end = line.find(['{', ' ']).expect("a value");
            let (name, rest) = line.split_at(end);
            let (labels, rest) = rest.strip_prefix('{').map_or((BTreeMap::new(), rest), labels);
            let value: f64 = rest.strip_prefix(' ').expect("a space").parse().expect("a number");
            assert!(seen.insert((name.to_owned(), labels.clone())), "a sample twice: {line}");
            let suffix = name.strip_prefix(&current).expect("samples follow their family");
            let is_known = match family.kind.as_str() {
                "counter" => suffix == if is_open { "_total" } else { "" } && name.ends_with("_total"),
                "histogram" => ["_bucket", "_sum", "_count"].contains(&suffix),
                _ => suffix.is_empty() && !name.ends_with("_total"),
            };
            assert!(is_known && value.is_finite() && value >= 0.0, "{line}");
            family.samples.push((suffix.to_owned(), labels, value));
        }
    }
    families.values().for_each(check_histogram);
    families
}

/// Bounds and counts.
type Buckets = Vec<(f64, f64)>;

/// Buckets rise, end with +Inf, and that is the count.
fn check_histogram(family: &Family) {
    if family.kind != "histogram" {
        return;
    }
    let mut series: BTreeMap<Vec<(String, String)>, (Buckets, f64)> = BTreeMap::new();
    for (suffix, labels, value) in &family.samples {
        let mut labels = labels.clone();
        let bound = labels.remove("le");
        let entry = series.entry(labels.into_iter().collect()).or_default();
        match (suffix.as_str(), bound) {
            ("_bucket", Some(bound)) => {
                let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("a bound") };
                entry.0.push((bound, *value));
            }
            ("_count", None) => entry.1 = *value,
            (suffix, None) => assert_eq!(suffix, "_sum"),
            (suffix, bound) => panic!("{suffix} {bound:?}"),
        }
    }
    assert!(!series.is_empty());
    for (buckets, count) in series.values() {
        assert!(buckets.is_sorted_by(|(low, few), (high, many)| low < high && few <= many), "{buckets:?}");
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, *count)));
    }
}

/// A server with something in each place.
fn snapshot() -> Snapshot {
    let certificate = Expiry { file: "/etc/a \"b\"\n\\c.pem".into(), expires_s: 1_800_000_000 };
    Snapshot {
        version: "0.1.0",
        threads: 3,
        sites: vec![String::new(), "a.org".to_owned()],
        memory_limit: Some(5),
        certificates: vec![certificate],
        upstreams: vec![Upstream {
            name: "unix:/a".to_owned(),
            is_healthy: Some(true),
            ..Upstream::default()
        }],
        ..Snapshot::default()
    }
}

/// Deleted, Prometheus could refuse a whole scrape for one line.
#[test]
fn both_formats_are_what_their_parsers_take() {
    for format in [Format::Text, Format::OpenMetrics] {
        let text = exposition(&snapshot(), format);
        let families = parse(&text, format);
        assert!(families.len() > 40, "{text}");
        let certificate = &families["tercel_certificate_expiry_timestamp_seconds"].samples[0];
        assert_eq!(certificate.1["file"], "/etc/a \"b\"\n\\c.pem");
        assert_eq!(families["tercel_build_info"].samples[0].1["version"], "0.1.0");
    }
}

/// Fails for a metric that the chapter does not have, and for one that it has and the server has not.
#[test]
fn the_chapter_has_every_metric() {
    let chapter = include_str!("../../../../docs/metrics.md");
    let rows = chapter.lines().filter_map(|line| line.strip_prefix("| `"));
    let told: Vec<Vec<&str>> =
        rows.map(|row| row.split(" | ").collect()).filter(|row: &Vec<&str>| row.len() == 4).collect();
    let families = parse(&exposition(&snapshot(), Format::Text), Format::Text);
    let names: BTreeSet<&str> = told.iter().filter_map(|row| row.first()?.strip_suffix('`')).collect();
    assert_eq!(names, families.keys().map(String::as_str).collect(), "docs/metrics.md");
    for row in &told {
        let [name, kind, labels, help] = row.as_slice() else { panic!("{row:?}") };
        let name = name.strip_suffix('`').expect("a name");
        let family = &families[name];
        assert_eq!(
            (*kind, help.trim_end_matches(" |")),
            (family.kind.as_str(), family.help.as_str()),
            "{name}"
        );
        let used: BTreeSet<&str> = family
            .samples
            .iter()
            .flat_map(|(_, labels, _)| labels.keys())
            .map(String::as_str)
            .filter(|label| *label != "le")
            .collect();
        let in_chapter: BTreeSet<&str> = labels.split('`').skip(1).step_by(2).collect();
        assert!(used.is_subset(&in_chapter), "{name} {used:?} {in_chapter:?}");
    }
}
