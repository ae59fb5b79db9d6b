//! What a comparison of servers says in sentences, and what it must warn of.

use bench::stats::{Ratio, Summary};
use report::model::{Cell, Point, Row};

use super::race::EntryResult;
use super::{Contestant, Http, InstalledServers, TestSite};

/// How far the mean datagram may be from the size asked for: the handshake, a search for the size, the last packet.
const PAYLOAD_SLACK: f64 = 0.03;

/// What a reader must know of the client that is ours.
pub const CLIENT: &str = "The client is tercel load where no other is named. Over HTTP/3 it acknowledges every tenth packet of a steady \
    path, and more rarely where the server asks for it (draft-ietf-quic-ack-frequency), which tercel does.";

/// Why a race ended early.
pub fn problem(error: std::io::Error) -> String {
    if error.kind() == std::io::ErrorKind::Interrupted { "interrupted".to_owned() } else { error.to_string() }
}

/// One sentence about two lanes' times; none is declared faster while the interval spans 1.
pub fn verdict(of: &str, over: &str, ratio: Option<Ratio>) -> String {
    let Some(ratio) = ratio else {
        return format!("{of} against {over}: fewer than two trials of one of them.");
    };
    let Ratio { ratio: factor, low, high } = ratio;
    let measured =
        format!("{of} took {factor:.2} times the time of {over} (95 % interval {low:.2} to {high:.2})");
    if ratio.spans_one() {
        return format!("{measured}: neither is shown to be faster.");
    }
    let faster = if factor > 1.0 { over } else { of };
    format!("{measured}: {faster} is faster.")
}

/// The lane of ours that a lane is compared with: the same version of HTTP and the same client.
pub fn ours<'a>(lanes: &'a [EntryResult], lane: &EntryResult) -> Option<&'a EntryResult> {
    lanes.iter().find(|other| {
        other.who == Contestant::Tercel && (other.http, other.client) == (lane.http, lane.client)
    })
}

/// Time over that of tercel, for the table; empty in tercel's own rows.
pub fn time_over_ours(lanes: &[EntryResult], lane: &EntryResult) -> Cell {
    let base = ours(lanes, lane).filter(|_| lane.who != Contestant::Tercel);
    base.and_then(|base| lane.time_over(base)).into()
}

/// A published row, which names its time and no more.
pub fn published(name: &str, columns: usize, mean: f64, sd: Option<f64>) -> Row {
    // Its single trials were not published, so it is no series.
    let time = sd.map_or(Cell::Number(mean, 3), |sd| format!("{mean:.3} ± {sd:.3}").into());
    let mut cells = vec![Cell::Empty; columns];
    if let Some(first) = cells.first_mut() {
        *first = time;
    }
    Row { name: format!("{name} (published)"), is_published: true, cells }
}

/// A bar with its standard deviation.
pub fn bar(place: usize, figures: &Summary) -> Point {
    let interval =
        (figures.values.len() > 1).then_some([figures.mean - figures.sd, figures.mean + figures.sd]);
    Point { x: place as f64, y: figures.mean, interval }
}

/// What every study of several servers must say beside its figures.
pub fn notes(
    field: &InstalledServers,
    ground: &TestSite,
    lanes: &[EntryResult],
    cores: [usize; 2],
) -> Vec<String> {
    let mut notes = field.absent.clone();
    if let Some(problem) = &ground.problem {
        notes.push(format!(
            "Measured over loopback, because no namespaces could be made ({problem}). TCP's segments are up to 64 KB there: HTTP/1.1 \
             and HTTP/2 are NOT COMPARABLE with HTTP/3. As root it is measured over veth with Ethernet's MTU."
        ));
    }
    if cores[0] == cores[1] {
        notes.push("Server and client shared one core.".to_owned());
    }
    for lane in lanes {
        let name = format!("{} over {} with {}", lane.who.name(), lane.http.name(), lane.client.name());
        if let Some(problem) = &lane.problem {
            notes.push(format!("{name} was left out after {} trials: {problem}", lane.trials.len()));
        }
    }
    notes
}

/// The mean datagram that the client received, for the table; empty over TCP.
pub fn payload(lane: &EntryResult) -> Cell {
    lane.payload_per_datagram().map_or(Cell::Empty, |bytes| Cell::Number(bytes, 0))
}

/// A warning for each lane whose datagrams were not as large as asked for, though bodies filled them.
pub fn payload_notes(ground: &TestSite, lanes: &[EntryResult]) -> Vec<String> {
    let asked = f64::from(ground.payload_size);
    let warning = |lane: &EntryResult| {
        let reached = lane.payload_per_datagram()?;
        let is_wrong = (reached / asked - 1.0).abs() > PAYLOAD_SLACK;
        is_wrong.then(|| {
            let name = lane.who.name();
            format!(
                "NOT COMPARABLE: {name} sent datagrams of {reached:.0} bytes on average instead of {asked}."
            )
        })
    };
    lanes.iter().filter(|lane| lane.http == Http::Three).filter_map(warning).collect()
}

/// The versions of all servers that ran.
pub fn versions(lanes: &[EntryResult]) -> String {
    let mut all: Vec<String> = Vec::new();
    for lane in lanes.iter().filter(|lane| !lane.version.is_empty()) {
        let named = match lane.who {
            Contestant::Caddy => format!("Caddy {}", lane.version),
            _ => lane.version.clone(),
        };
        if !all.contains(&named) {
            all.push(named);
        }
    }
    all.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Deleted, a winner could be declared that the trials do not show.
    #[test]
    fn no_winner_while_the_interval_spans_one() {
        let ratio = |ratio, low, high| Some(Ratio { ratio, low, high });
        assert!(verdict("nginx", "tercel", ratio(1.1, 0.9, 1.3)).ends_with("neither is shown to be faster."));
        assert!(verdict("nginx", "tercel", ratio(1.5, 1.2, 1.8)).ends_with("tercel is faster."));
        assert!(verdict("nginx", "tercel", ratio(0.7, 0.6, 0.8)).ends_with("nginx is faster."));
        assert!(verdict("nginx", "tercel", None).contains("fewer than two trials"));
    }

    #[test]
    fn a_published_row_is_marked() {
        let row = published("LiteSpeed", 3, 12.829, Some(0.079));
        assert!(row.is_published && row.cells.len() == 3 && row.name.contains("published"));
        assert_eq!(row.cells[0], Cell::Text("12.829 ± 0.079".to_owned()));
    }
}
