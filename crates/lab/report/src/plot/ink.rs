//! Colours of plots, and how they become the page's.
//!
//! Every ink has one colour that no other ink has. After drawing, each place where it stands gets a class beside it, so that
//! a page gives it another colour in the dark, and a program that knows no style sheets still shows the right one. The six
//! colours of series are those of Okabe and Ito, which remain distinct to colour-blind eyes; the seventh series begins anew
//! with broken lines.

use plotters::style::RGBColor;
use std::fmt::Write as _;

/// What something is drawn with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ink {
    /// Titles, whiskers on bars, values.
    Text,
    /// Labels of axes.
    Muted,
    /// Lines behind the figures.
    Grid,
    /// What others published.
    Published,
    /// The same as a line, which is broken.
    PublishedLine,
    /// What was measured here, by its place among the series.
    Series(usize),
    /// The same as a line, which is broken from the seventh on.
    SeriesLine(usize),
    /// A cell of a heat map, by its step.
    Heat(usize),
}

/// How many series differ by colour.
const COLOURS: usize = 6;

/// Light and dark colour of each ink, in the order of its place.
const TABLE: [(u32, u32); 15] = [
    (0x1D_23_2B, 0xE6_E9_ED),
    (0x5B_65_72, 0x9A_A4_B1),
    (0xE1_E5_EA, 0x2E_35_3E),
    (0x9A_A1_AB, 0x7C_85_91),
    (0x00_72_B2, 0x56_AE_E8),
    (0xD5_5E_00, 0xF0_8A_45),
    (0x00_9E_73, 0x35_C4_9B),
    (0xB8_5C_96, 0xE0_9A_C6),
    (0xE6_9F_00, 0xF3_C3_55),
    (0x56_B4_E9, 0xA6_DA_F8),
    (0xD2_EB_DD, 0x1F_4A_38),
    (0xFF_F1_C2, 0x55_4A_20),
    (0xFB_D5_85, 0x70_55_1C),
    (0xF3_A6_5E, 0x8F_50_1E),
    (0xE0_75_62, 0xA5_3E_30),
];

/// Where the series begin in the table.
const FIRST_SERIES: usize = 4;
/// Where the steps of heat maps do.
const FIRST_HEAT: usize = FIRST_SERIES + COLOURS;

impl Ink {
    /// Of the series at `place`, for areas and markers.
    pub(super) fn of_series(place: usize, is_published: bool) -> Ink {
        if is_published { Ink::Published } else { Ink::Series(place) }
    }

    /// The same for lines.
    pub(super) fn as_line(self) -> Ink {
        match self {
            Ink::Published => Ink::PublishedLine,
            Ink::Series(place) => Ink::SeriesLine(place),
            other => other,
        }
    }

    fn is_broken(self) -> bool {
        match self {
            Ink::PublishedLine => true,
            Ink::SeriesLine(place) => place >= COLOURS,
            _ => false,
        }
    }

    fn place(self) -> usize {
        match self {
            Ink::Text => 0,
            Ink::Muted => 1,
            Ink::Grid => 2,
            Ink::Published | Ink::PublishedLine => 3,
            Ink::Series(place) | Ink::SeriesLine(place) => FIRST_SERIES + place % COLOURS,
            Ink::Heat(step) => FIRST_HEAT + step,
        }
    }

    /// What the plotting library draws with: broken lines differ from whole ones in the last bit.
    pub(super) fn colour(self) -> RGBColor {
        let light = TABLE.get(self.place()).map_or(0, |row| row.0) ^ u32::from(self.is_broken());
        let [_, red, green, blue] = light.to_be_bytes();
        RGBColor(red, green, blue)
    }
}

/// Gives everything that was drawn with an ink the ink's class.
pub(super) fn classify(svg: &str) -> String {
    let mut svg = svg.to_owned();
    for (place, (light, _)) in TABLE.iter().enumerate() {
        svg = svg
            .replace(&format!("fill=\"#{light:06X}\""), &format!("class=\"f{place}\" fill=\"#{light:06X}\""));
        let whole = format!("class=\"s{place}\" stroke=\"#{light:06X}\"");
        svg = svg.replace(&format!("stroke=\"#{light:06X}\""), &whole);
        let broken = format!("{whole} stroke-dasharray=\"60 40\"");
        svg = svg.replace(&format!("stroke=\"#{:06X}\"", light ^ 1), &broken);
    }
    svg
}

/// The style sheet of plots: the same for each, so it does no harm twice.
pub(super) fn style_sheet() -> String {
    let (mut light, mut dark, mut rules) = (String::new(), String::new(), String::new());
    for (place, (by_day, by_night)) in TABLE.iter().enumerate() {
        // Writing to a string does not fail.
        let _ = write!(light, "--plot{place}:#{by_day:06x};");
        let _ = write!(dark, "--plot{place}:#{by_night:06x};");
        let _ = write!(
            rules,
            ".plot .f{place}{{fill:var(--plot{place})}}.plot .s{place}{{stroke:var(--plot{place})}}"
        );
    }
    format!(
        ".plot{{{light}font-family:system-ui,sans-serif}}@media(prefers-color-scheme:dark){{.plot{{{dark}}}}}{rules}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_inks_share_a_colour() {
        let series = (0..12).flat_map(|place| [Ink::Series(place), Ink::SeriesLine(place)]);
        let all =
            [Ink::Text, Ink::Muted, Ink::Grid, Ink::Published, Ink::PublishedLine].into_iter().chain(series);
        let all = all.chain((0..5).map(Ink::Heat));
        let mut seen = std::collections::BTreeMap::new();
        for ink in all {
            let RGBColor(red, green, blue) = ink.colour();
            let as_drawn = (ink.place(), ink.is_broken());
            assert_eq!(*seen.entry((red, green, blue)).or_insert(as_drawn), as_drawn, "{ink:?}");
        }
        assert_eq!(seen.len(), 4 + 1 + 6 + 6 + 5);
    }
}
