//! What would break a page, or lie, unnoticed.

use super::*;
use crate::model::{Axis, Point, Scale, Series};

fn point(x: f64, y: f64) -> Point {
    Point { x, y, interval: Some([y * 0.9, y * 1.1]) }
}

fn bars() -> Plot {
    let series = |name: &str, is_published, points| Series { name: name.to_owned(), is_published, points };
    Plot {
        title: "Goodput <of> \"each\" path".to_owned(),
        kind: PlotKind::Bars(["plain", "gso & gro", "xdp"].map(str::to_owned).to_vec()),
        x: Axis::default(),
        y: Axis { label: "bytes/s".to_owned(), scale: Scale::Linear },
        series: vec![
            series("tercel", false, vec![point(0.0, 140e6), point(1.0, 600e6), point(2.0, 700e6)]),
            series("LSQUIC, published", true, vec![point(0.0, 102e6), point(2.0, 146e6)]),
        ],
    }
}

fn lines(scale: Scale) -> Plot {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h"];
    let series = names.iter().enumerate().map(|(number, name)| Series {
        name: (*name).to_owned(),
        is_published: number == 1,
        points: [0.0, 50.0, 90.0, 99.0, 100.0].map(|x| point(x, x * (number as f64 + 1.0))).to_vec(),
    });
    Plot {
        title: "Latency".to_owned(),
        kind: PlotKind::Lines,
        x: Axis { label: "percentile".to_owned(), scale },
        y: Axis { label: "ms".to_owned(), scale: Scale::Logarithmic },
        series: series.collect(),
    }
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[test]
fn every_bar_is_there_with_its_whisker_and_published_ones_are_grey() {
    let svg = inlined(&bars(), Width::Wide);
    // Two patches of the legend, and a bar for each point.
    assert_eq!(count(&svg, "<rect"), 2 + 5, "{svg}");
    assert_eq!(count(&svg, "class=\"f3\""), 1 + 2, "grey: a patch and two bars");
    // A whisker is a line with two ends, in the ink of texts.
    assert_eq!(count(&svg, "class=\"s0\""), 3 * 5);
    for text in ["gso &amp; gro", "140M", "102M", "LSQUIC, published"] {
        assert!(svg.contains(text), "{text} is missing: {svg}");
    }
}

/// Deleted, a figure could have the colour of a better one, or what did not come that of the best.
#[test]
fn a_heat_map_has_a_colour_for_each_figure() {
    let column = |name: &str, figures: [f64; 3]| {
        let points = figures.iter().enumerate().map(|(row, figure)| point(row as f64, *figure));
        Series { name: name.to_owned(), points: points.collect(), ..Series::default() }
    };
    let plot = Plot {
        title: "Times".to_owned(),
        kind: PlotKind::Heat(["clean", "1 % loss", "30 % loss"].map(str::to_owned).to_vec()),
        series: vec![column("auto", [1.0, 1.1, 1.49]), column("other", [2.0, 4.9, crate::model::NEVER])],
        ..Plot::default()
    };
    let svg = inlined(&plot, Width::Wide);
    // A patch of the legend for each colour.
    for (class, patches) in [(10, 1 + 2), (11, 1 + 1), (12, 1 + 1), (13, 1 + 1), (14, 1 + 1)] {
        assert_eq!(count(&svg, &format!("class=\"f{class}\"")), patches, "{class}: {svg}");
    }
    for text in ["30 % loss", "auto", "1.49", "–", "rotate(270"] {
        assert!(svg.contains(text), "{text} is missing: {svg}");
    }
}

#[test]
fn lines_are_drawn_on_every_scale() {
    for (scale, label) in [(Scale::Linear, "100"), (Scale::Logarithmic, "90"), (Scale::Percentile, "99 %")] {
        let svg = inlined(&lines(scale), Width::Wide);
        // A line of each series, in the legend and in the chart.
        assert_eq!(count(&svg, "<polyline"), 2 * 8 + count_grid(&svg), "{scale:?} {svg}");
        assert!(svg.contains(label), "{scale:?}: no label {label}: {svg}");
        assert_eq!(
            count(&svg, "stroke-dasharray"),
            2 * 2,
            "the published series and the seventh measured one"
        );
    }
}

/// Deleted, events could be joined by lines, which says that there was something between them.
#[test]
fn events_are_marks_that_nothing_joins() {
    let (mut plot, joined) = (lines(Scale::Linear), inlined(&lines(Scale::Linear), Width::Wide));
    plot.kind = PlotKind::LinesAndMarks(vec!["b".to_owned(), "h".to_owned()]);
    let svg = inlined(&plot, Width::Wide);
    assert_eq!(count(&svg, "<polyline"), count(&joined, "<polyline") - 4, "{svg}");
    assert_eq!(count(&svg, "<polygon"), count(&joined, "<polygon"), "each point has its mark");
}

/// Lines of the grid and the axes that the library draws as polylines.
fn count_grid(svg: &str) -> usize {
    svg.lines().filter(|line| line.starts_with("<polyline") && line.contains("class=\"s2\"")).count()
}

#[test]
fn pictures_fit_a_page_with_others() {
    for plot in [bars(), lines(Scale::Percentile)] {
        for svg in [svg(&plot), inlined(&plot, Width::Wide), inlined(&plot, Width::Narrow)] {
            assert!(svg.starts_with("<svg xmlns=") && svg.trim_end().ends_with("</svg>"), "{svg}");
            assert_eq!(count(&svg, "<svg"), 1);
            assert!(!svg.contains(" id=") && !svg.contains("NaN") && !svg.contains("href"), "{svg}");
            assert!(!svg.contains("<of>"), "the title is escaped");
        }
        assert!(svg(&plot).contains("prefers-color-scheme:dark"));
        assert!(inlined(&plot, Width::Narrow).contains("width=\"350\""));
    }
}

#[test]
fn strange_figures_leave_a_picture() {
    let mut plot = lines(Scale::Logarithmic);
    for series in &mut plot.series {
        series.points = vec![point(f64::NAN, 0.0), point(-1.0, f64::INFINITY), point(0.0, -3.0)];
    }
    assert!(svg(&plot).contains("</svg>"));
    assert!(svg(&Plot::default()).contains("</svg>"));
    let mut plot = bars();
    plot.kind = PlotKind::Bars(Vec::new());
    assert!(svg(&plot).contains("</svg>"));
    plot.kind = PlotKind::Bars(vec!["x".repeat(200), String::new()]);
    plot.series[0].points = vec![point(0.0, -5.0), point(7.0, f64::NAN)];
    assert!(inlined(&plot, Width::Narrow).contains("</svg>"));
}

/// Where a text begins and ends, in pixels from the left, by its anchor and its letters.
fn extents(svg: &str) -> Vec<(String, f64, f64)> {
    let attribute = |tag: &str, name: &str| {
        let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
        rest.split('"').next().map(str::to_owned)
    };
    let extent = |part: &str| {
        let (tag, rest) = part.split_once('>').unwrap();
        let text = rest.split("</text>").next().unwrap().trim().replace("&amp;", "&");
        let x = attribute(tag, "x").unwrap().parse::<f64>().unwrap() / sheet::TENTHS;
        let width = sheet::text_width(&text);
        let begin = match attribute(tag, "text-anchor").as_deref() {
            Some("end") => x - width,
            Some("middle") => x - width / 2.0,
            _ => x,
        };
        (text, begin, begin + width)
    };
    svg.split("<text").skip(1).map(extent).collect()
}

/// Deleted, a label could be cut where the sheet ends: `4000` read `000`.
#[test]
fn no_label_is_cut_at_the_edge_of_the_sheet() {
    let line = |figures: &[f64]| Series {
        points: (0..).zip(figures).map(|(x, y)| point(f64::from(x), *y)).collect(),
        ..Series::default()
    };
    let plot = |figures: &[f64]| Plot {
        title: "Rates".to_owned(),
        x: Axis { label: "round of trials".to_owned(), ..Axis::default() },
        y: Axis { label: "content, MB/s".to_owned(), ..Axis::default() },
        series: vec![line(figures)],
        ..Plot::default()
    };
    let plots = vec![plot(&[900.0, 4_000.0]), plot(&[-0.000_15, 0.000_2]), plot(&[12_345.0, 999_999_999.0])];
    let grid = crate::model::PlotGrid { title: String::new(), plots: plots.clone() };
    let mut drawn: Vec<(f64, String)> = Vec::new();
    for plot in plots.iter().chain([&bars(), &lines(Scale::Percentile)]) {
        let widths = [Width::Wide, Width::Narrow];
        drawn.extend(widths.map(|width| (width.pixels(), inlined(plot, width))));
    }
    drawn.extend(plots.iter().map(|plot| (Width::Small.pixels(), inlined_of(plot, &grid))));
    for (width, svg) in drawn {
        let texts = extents(&svg);
        assert!(texts.len() >= 4, "{svg}");
        for (text, begin, end) in texts {
            assert!(begin >= 0.0 && end <= width, "{text} from {begin} to {end} of {width}: {svg}");
        }
    }
}

/// Deleted, the contestants of a grid could look alike though one is a tenth of the other.
#[test]
fn plots_of_a_grid_share_the_vertical_axis() {
    let plot = |top: f64| Plot {
        series: vec![Series { points: vec![point(0.0, 0.0), point(1.0, top)], ..Series::default() }],
        ..Plot::default()
    };
    let grid = crate::model::PlotGrid { title: String::new(), plots: vec![plot(40.0), plot(400.0)] };
    let [small, large] = [0, 1].map(|at| inlined_of(&grid.plots[at], &grid));
    for svg in [&small, &large] {
        assert!(extents(svg).iter().any(|(text, ..)| text == "400"), "{svg}");
    }
    assert!(!extents(&inlined(&grid.plots[0], Width::Narrow)).iter().any(|(text, ..)| text == "400"));
    assert_eq!(svgs(&grid).len(), 2);
}
