use super::*;

fn lanes() -> Vec<EntryResult> {
    let lane = EntryResult::pretended;
    vec![
        lane(Contestant::Tercel, Http::One, Client::Load, &[1.0, 1.1, 0.9]),
        lane(Contestant::Tercel, Http::One, Client::Ab, &[1.0, 1.1, 0.9]),
        lane(Contestant::Nginx, Http::One, Client::Ab, &[1.5, 1.6, 1.7]),
        lane(Contestant::Tercel, Http::Three, Client::Load, &[0.5, 0.55, 0.45]),
        lane(Contestant::QuicGo, Http::Three, Client::Load, &[]),
    ]
}

/// Deleted, a column could be added to the head and not to the rows, and every figure after it stand in the wrong place.
#[test]
fn every_row_has_a_cell_for_each_column() {
    let table = table(&lanes(), &Ceiling::default());
    assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    assert_eq!(table.rows.iter().filter(|row| row.is_published).count(), PUBLISHED.len());
    let names: Vec<&str> = table.rows.iter().map(|row| row.name.as_str()).collect();
    assert_eq!(
        names[..2],
        ["tercel, HTTP/1.1", "tercel, HTTP/1.1, ab"],
        "the client is named where it is not ours"
    );
    assert!(
        matches!(table.rows[2].cells[3], Cell::Ratio(_)),
        "nginx with ab is compared with tercel with ab"
    );
}

/// Deleted, a server could be compared with ours over another protocol or with another client.
#[test]
fn findings_compare_like_with_like() {
    let found = findings(&lanes());
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found[0].starts_with("tercel over HTTP/3 took 0.50 times the time of tercel over HTTP/1.1"),
        "{found:?}"
    );
    assert_eq!(
        found[1],
        "Slower than tercel over the same version and with the same client: nginx, HTTP/1.1, ab."
    );
    let beside = |name: &str, ratio, low, high| (name.to_owned(), Ratio { ratio, low, high });
    let found =
        standings(&[beside("a", 0.8, 0.7, 0.9), beside("b", 1.1, 0.9, 1.3), beside("c", 1.0, 0.9, 1.1)]);
    assert_eq!(found, ["Faster: a.", "Neither is shown to be faster: b; c."]);
}

/// Deleted, datagrams of half the size could pass for equal ones.
#[test]
fn small_datagrams_are_told() {
    let mut ground = TestSite::prepare().unwrap();
    assert!(
        words::payload_notes(&ground, &lanes()).is_empty(),
        "1,450 bytes on average are full datagrams of 1,452"
    );
    ground.payload_size = 4_096;
    let notes = words::payload_notes(&ground, &lanes());
    assert!(
        notes.len() == 1 && notes[0].starts_with("NOT COMPARABLE: tercel sent datagrams of 1450 bytes"),
        "{notes:?}"
    );
}

#[test]
fn every_speaker_of_a_version_is_asked_by_every_client_of_it() {
    let stop = std::sync::atomic::AtomicBool::new(false);
    let context = Context {
        program: "/nowhere/tercel".into(),
        cores: [0, 0],
        effort: crate::context::Effort::Quick,
        cells: crate::context::CellChoice::default(),
        profiles: crate::context::Profiles::None,
        stop: &stop,
        progress: &mut |_| (),
    };
    let field = look(&context.program, &Http::ALL);
    let (entries, absent) = entries(&field, &context);
    let ours = entries.iter().filter(|entry| entry.server.who == Contestant::Tercel).count();
    assert_eq!(ours + absent.len(), 5, "three versions by tercel load, ab, h2load");
}

/// Deleted, what several files cost could be set beside another protocol's one file, or beside nothing.
#[test]
fn several_files_are_compared_with_one_of_the_same_entry() {
    let lanes = lanes();
    let several = |http, seconds: &[f64]| {
        let mut lane = EntryResult::pretended(Contestant::Tercel, http, Client::Load, seconds);
        lane.files = 20;
        lane
    };
    let different = [several(Http::One, &[1.5, 1.65, 1.35]), several(Http::Three, &[1.0, 1.1, 0.9])];
    let table = table_of_different(&lanes, &different);
    assert!(table.rows.iter().all(|row| row.cells.len() == table.columns.len()));
    assert_eq!(table.title, "Requests for 20 different files of 10 MB");
    let found = findings_of_different(&lanes, &different);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("Different files cost most over one with tercel, HTTP/3: 20 of them 2.00 times"),
        "{found:?}"
    );
    let same = [several(Http::One, &[1.1, 0.9, 1.0])];
    let found = findings_of_different(&lanes, &same);
    assert_eq!(found, ["Different files make no measurable difference with tercel, HTTP/1.1."]);
}
