//! A section is the same whether it is decoded alone or after others.

use super::*;
use crate::encoder::encode;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};

const LIMITS: Limits = Limits { max_field_section_size: 1_500, max_lines: 12 };

/// Lines of requests: few names and values, so that sections have much in common.
fn lines() -> impl Strategy<Value = Vec<(&'static str, String)>> {
    const NAMES: [&str; 6] = ["user-agent", "accept", ":path", "x-a", "x-b", "cookie"];
    let value = prop_oneof![Just(String::new()), Just("*/*".into()), "[a-c/]{0,3}", "[ -~]{40,200}"];
    vec((select(&NAMES[..]), value), 0..14)
}

fn encoded(lines: &[(&str, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    encode(lines.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())), &mut out);
    out
}

/// What happens to the section before: lines are changed, added and taken away; or bytes are, which mostly is an error.
#[derive(Clone, Debug)]
enum Change {
    Same,
    Fresh(Vec<(&'static str, String)>),
    Replace(Index, (&'static str, String)),
    Insert(Index, (&'static str, String)),
    Remove(Index),
    Byte(Index, u8),
    Cut(Index),
}

fn change() -> impl Strategy<Value = Change> {
    let line = || lines().prop_map(|lines| lines.into_iter().next().unwrap_or(("accept", "a".into())));
    prop_oneof![
        Just(Change::Same),
        lines().prop_map(Change::Fresh),
        (any::<Index>(), line()).prop_map(|(at, line)| Change::Replace(at, line)),
        (any::<Index>(), line()).prop_map(|(at, line)| Change::Insert(at, line)),
        any::<Index>().prop_map(Change::Remove),
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Change::Byte(at, byte)),
        any::<Index>().prop_map(Change::Cut),
    ]
}

fn agrees(decoder: &mut SectionDecoder, bytes: &[u8]) -> Result<(), TestCaseError> {
    let mut alone = FieldSection::new();
    let expected = alone.decode(bytes, &LIMITS);
    prop_assert_eq!(decoder.decode(bytes), expected);
    if expected.is_ok() {
        let section = decoder.section();
        prop_assert!(section.lines().eq(alone.lines()), "{:?}", bytes);
        prop_assert_eq!(section.size(), alone.size());
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_section_after_others_is_what_it_is_alone(first in lines(), changes in vec(change(), 1..12)) {
        let mut decoder = SectionDecoder::new(LIMITS);
        let mut lines = first;
        agrees(&mut decoder, &encoded(&lines))?;
        for change in changes {
            let mut bytes = None;
            match change {
                Change::Same => {}
                Change::Fresh(fresh) => lines = fresh,
                Change::Replace(at, line) if !lines.is_empty() => *at.get_mut(&mut lines) = line,
                Change::Insert(at, line) => lines.insert(at.index(lines.len() + 1), line),
                Change::Remove(at) if !lines.is_empty() => _ = lines.remove(at.index(lines.len())),
                Change::Byte(at, byte) => *at.get_mut(bytes.insert(encoded(&lines))) = byte,
                Change::Cut(at) => {
                    let whole = bytes.insert(encoded(&lines));
                    whole.truncate(at.index(whole.len()));
                }
                Change::Replace(..) | Change::Remove(_) => {}
            }
            agrees(&mut decoder, &bytes.unwrap_or_else(|| encoded(&lines)))?;
        }
    }

    #[test]
    fn any_bytes_in_any_order(pieces in vec(vec(any::<u8>(), 0..24), 1..6)) {
        let mut decoder = SectionDecoder::new(LIMITS);
        for piece in &pieces {
            agrees(&mut decoder, piece)?;
            agrees(&mut decoder, &[&[0, 0], &piece[..]].concat())?;
        }
    }

    #[test]
    fn what_is_common_is_found(one in vec(0..2u8, 0..70), other in vec(0..2u8, 0..70), same in vec(any::<u8>(), 0..70)) {
        let (front, back) = ([&same[..], &one[..]].concat(), [&same[..], &other[..]].concat());
        let prefix = front.iter().zip(&back).take_while(|(one, other)| one == other).count();
        prop_assert_eq!(common_prefix(&front, &back), prefix);
        let (front, back) = ([&one[..], &same[..]].concat(), [&other[..], &same[..]].concat());
        let suffix = front.iter().rev().zip(back.iter().rev()).take_while(|(one, other)| one == other).count();
        prop_assert_eq!(common_suffix(&front, &back), suffix);
    }
}

/// Deleted, everything could be decoded each time, and no other test would tell.
#[test]
fn only_the_line_that_differs_is_decoded() {
    let head = |path: &str| {
        let lines =
            [(":method", "GET"), (":path", path), ("user-agent", "some/1.0"), ("accept", "text/html")];
        encoded(&lines.map(|(name, value)| (name, value.to_owned())))
    };
    let (first, second) = (head("/one"), head("/another"));
    let mut decoder = SectionDecoder::new(LIMITS);
    decoder.decode(&first).unwrap();
    let Common { head, between, tail } = decoder.last.common_with(&second);
    assert_eq!((head, tail), (0..1, 2..4));
    let alone = encoded(&[(":path", "/another".to_owned())]);
    assert_eq!(second[between], alone[2..]);
}

/// A section of 1,024 bytes at most is kept: the peer decides what, but not how much.
#[test]
fn what_is_kept_is_bounded() {
    let limits = Limits { max_field_section_size: 1 << 20, max_lines: 1_000 };
    let mut decoder = SectionDecoder::new(limits);
    for size in [1_000, 100_000, 900] {
        // A line of the static table, again and again: the most lines for the bytes.
        let mut bytes = vec![0xc1; size.min(1_000)];
        bytes[..2].fill(0);
        decoder.decode(&bytes).unwrap();
        decoder.decode(&encoded(&[("a", "x".repeat(size))])).unwrap();
    }
    assert!(decoder.memory() < 2 * (24 * 1_024 + 5 * 1_024 + 16 * 1_024), "{} bytes", decoder.memory());
}
