//! The flame graph, drawn by the library inferno: width is time, and colours are the parts of the ledger.

use crate::inlines::Function;
use crate::ledger::Ledger;
use crate::parts::{self, Part};
use crate::script::Side;
use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{self, Options};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

/// Stands where the legend will be.
const LEGEND: &str = "the legend of parts";

/// Parts below this share are not in the legend, which has one line.
const SEEN: f64 = 0.02;

/// So that the legend fits narrow screens.
const PHONES: &str = "@media (max-width: 560px) { #subtitle { font-size: 7px; } }\n";

/// The colour of a part: light enough for dark letters.
const fn colour(part: Part) -> [u8; 3] {
    match part {
        Part::KernelSend => [0xf4, 0xa3, 0x5c],
        Part::KernelReceive => [0xf6, 0xcc, 0x66],
        Part::KernelRest => [0xdc, 0xc7, 0xa6],
        Part::DataPath => [0xc8, 0xb5, 0xe6],
        Part::PacketProtection => [0x86, 0xbf, 0xee],
        Part::HeaderProtection => [0xb4, 0xe0, 0xf5],
        Part::Handshake => [0x7f, 0xd1, 0xcb],
        Part::Transport => [0x95, 0xd5, 0xb0],
        Part::Http => [0xd3, 0xe3, 0x7c],
        Part::Application => [0xf3, 0xb3, 0xc4],
        Part::Unexplained => [0xd8, 0xdc, 0xe1],
    }
}

/// Draws stacks that were folded into lines; `stacks` says whose each function is.
pub(crate) fn svg(
    folded: &str,
    stacks: &[(&[Function], u64)],
    ledger: &Ledger,
    title: &str,
) -> io::Result<String> {
    let mut palette = palette(folded, stacks);
    let mut options = Options::default();
    options.title = title.to_owned();
    options.subtitle = Some(LEGEND.to_owned());
    options.palette_map = Some(&mut palette);
    options.bgcolors = Some(BackgroundColor::Flat(rgb([0xff; 3])));
    options.font_type = "sans-serif".to_owned();
    options.font_size = 11;
    options.frame_height = 17;
    options.deterministic = true;
    let mut drawn = Vec::new();
    flamegraph::from_lines(&mut options, folded.lines(), &mut drawn).map_err(io::Error::other)?;
    let drawn = String::from_utf8(drawn).map_err(io::Error::other)?;
    let drawn = drawn.replacen("</style>", &format!("{PHONES}</style>"), 1);
    Ok(drawn.replacen(LEGEND, &legend(ledger), 1))
}

/// A patch, a name and a share for each part that can be seen, largest first.
fn legend(ledger: &Ledger) -> String {
    let mut lines = ledger.lines.clone();
    lines.sort_by(|a, b| b.share.total_cmp(&a.share));
    let mut legend = String::new();
    for line in lines.iter().filter(|line| line.share >= SEEN) {
        let [red, green, blue] = colour(line.part);
        // Writing to a string does not fail.
        let _ = write!(
            legend,
            "<tspan fill=\"#{red:02x}{green:02x}{blue:02x}\">■</tspan> {} {:.0} %   ",
            line.part.name(),
            line.share * 100.0
        );
    }
    legend.trim_end().to_owned()
}

/// A function has one colour everywhere: that of its module, or of the part in whose stacks it is most often.
fn palette(folded: &str, stacks: &[(&[Function], u64)]) -> PaletteMap {
    let mut seen: BTreeMap<&str, BTreeMap<Part, u64>> = BTreeMap::new();
    for (functions, count) in stacks {
        let of_stack = parts::part(functions);
        for function in *functions {
            let part = match (function.side, parts::of_module(&function.name)) {
                (Side::Kernel, _) => of_stack,
                (Side::User, Some(part)) => part,
                (Side::User, None) if is_ours(of_stack) => of_stack,
                (Side::User, None) => Part::Unexplained,
            };
            *seen.entry(&function.name).or_default().entry(part).or_insert(0) += count;
        }
    }
    let mut palette = PaletteMap::default();
    // Below everything stand the threads, and one frame below them.
    for thread in folded.lines().filter_map(|line| line.split(';').next()).chain(["all"]) {
        palette.insert(thread, rgb(colour(Part::Unexplained)));
    }
    for (name, counts) in seen {
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let part = most.map_or(Part::Unexplained, |(part, _)| part);
        palette.insert(name.replace(';', ":"), rgb(colour(part)));
    }
    palette
}

/// Whether a part is outside the kernel.
fn is_ours(part: Part) -> bool {
    !matches!(part, Part::KernelSend | Part::KernelReceive | Part::KernelRest)
}

fn rgb([r, g, b]: [u8; 3]) -> Color {
    Color { r, g, b }
}
