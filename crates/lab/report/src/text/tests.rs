//! That columns stand below each other, and that nothing of a study is left out.

use super::*;
use crate::sample;

#[test]
fn figures_stand_below_each_other() {
    let mut shown = sample::table();
    shown.title = "Goodput".to_owned();
    shown.rows.remove(2);
    shown.columns[2] = "path in use by the server".to_owned();
    let text = table(&shown, Colours::None);
    let lines: Vec<&str> = text.lines().collect();
    let at = |line: &str, part: &str| line.find(part).map(|byte| line[..byte].chars().count());
    assert_eq!(lines.len(), 1 + 3 + 1 + 3 + 1, "{text}");
    let (plain, mmsg) = (lines[5], lines[6]);
    for part in ["±", "≈", "–", "send"] {
        assert_eq!(at(plain, part), at(mmsg, part), "{part} in\n{text}");
    }
    assert!(lines[7].starts_with("LSQUIC (published)") && lines[7].ends_with("102,077,709"), "{text}");
    assert!(lines[8].starts_with("≈: "), "{text}");
    assert!(lines[3].starts_with("path "), "heads stand on the rule: {text}");
}

#[test]
fn a_study_is_told_whole() {
    let text = run(&sample::run(), Colours::None);
    for part in
        ["E1 · Paths", "Which is", "• gso is 4.6", "Note: One core", "4 pictures are", "Not finished: killed"]
    {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(!text.contains('\x1b'));
    let coloured = run(&sample::run(), Colours::Terminal);
    assert!(coloured.contains("\x1b[90mLSQUIC (published)"), "{coloured}");
}

#[test]
fn long_texts_are_broken() {
    let mut out = String::new();
    paragraph(&mut out, "• ", &"word ".repeat(40));
    assert!(out.lines().count() == 3 && out.lines().all(|line| width(line) <= WIDTH), "{out}");
    assert!(out.lines().skip(1).all(|line| line.starts_with("  word")), "{out}");
}
