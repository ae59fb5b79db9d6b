use std::sync::atomic::AtomicBool;

use profile::inlines::Function;
use profile::script::Side;
use report::model::Cell;

use super::*;
use crate::context::{CellChoice, Effort};

/// A profile of a server that was never run: samples of sending and of sealing.
pub(crate) fn pretended(send: u64, seal: u64) -> Profile {
    let stack = |name: &str, side| vec![Function { name: name.to_owned(), side }];
    let (sends, seals) = (stack("__sys_sendmsg", Side::Kernel), stack("crypto::packet::seal", Side::User));
    let ledger = Ledger::of([(sends.as_slice(), send), (seals.as_slice(), seal)]);
    let ledger = ledger.with_work(Work { cpu_seconds: 1.0, packets: 1_000_000 });
    Profile { ledger, svg: "<svg/>".to_owned(), notes: vec!["rough".to_owned()], ..Profile::default() }
}

fn context<'a>(profiles: Profiles, stop: &'a AtomicBool, progress: &'a mut dyn FnMut(&str)) -> Context<'a> {
    let (program, cells) = ("/nowhere/tercel".into(), CellChoice::default());
    Context { program, cores: [0, 0], effort: Effort::Quick, cells, profiles, stop, progress }
}

#[test]
fn a_part_that_is_largest_everywhere_is_named_once() {
    let [one, other] = [pretended(75, 25), pretended(60, 40)];
    let said = largest(&[("a", &one.ledger), ("b", &other.ledger)]);
    assert_eq!(said.as_deref(), Some("The largest part of the server's CPU time is kernel send."));
    assert_eq!(largest(&[]), None);
}

/// Deleted, a profile could be taken and shown nowhere, or take its time where it was not asked for.
#[test]
fn profiles_are_shown_where_they_were_asked_for() {
    let stop = AtomicBool::new(false);
    let looks = || {
        vec![
            Look::new("plain", |_| Ok(pretended(75, 25))),
            Look::new("xdp driver", |_| Ok(pretended(40, 60))),
            Look::new("broken", |_| Err(io::Error::other("no perf"))),
        ]
    };
    let whole = || Study { raw: serde_json::json!([1, 2]), ..Study::default() };
    let mut study = whole();
    let found = add(&mut context(Profiles::Taken, &stop, &mut |_| ()), looks(), &mut study);
    assert_eq!(found.len(), 2);
    let said = "The largest part of the server's CPU time is kernel send with plain, packet protection with xdp driver.";
    assert_eq!(study.findings, [said]);
    let Some(Block::Table(table)) = study.blocks.first() else { panic!("{study:?}") };
    assert_eq!(table.rows[0].cells[1], Cell::Number(750.0, 0), "nanoseconds per packet");
    assert_eq!(study.blocks.len(), 3, "a table and two flame graphs");
    assert_eq!(
        study.notes,
        ["No profile of broken: no perf.", "Profile of plain: rough", "Profile of xdp driver: rough"]
    );
    assert_eq!(study.raw["profiles"]["plain"]["samples"], 100);
    assert_eq!(study.raw["trials"][1], 2, "what was there stays");

    let mut study = whole();
    assert!(add(&mut context(Profiles::None, &stop, &mut |_| ()), looks(), &mut study).is_empty());
    assert_eq!(study, whole());
    let mut broken = Study { problem: Some("interrupted".to_owned()), ..whole() };
    assert!(add(&mut context(Profiles::Taken, &stop, &mut |_| ()), looks(), &mut broken).is_empty());
    assert!(broken.blocks.is_empty());
}
