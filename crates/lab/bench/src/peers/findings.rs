//! What the table says, each sentence with the ratio of two series of trials.

use super::{Buffer, Cell, Implementation, Row};
use crate::stats::{Ratio, Summary};
use serde::Serialize;

/// One figure of one cell over the same figure of another.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// Which figure, for which client.
    pub of: String,
    /// The first over the second; none with fewer than two trials of either.
    pub ratio: Option<Ratio>,
    /// The better one; none while the interval spans 1, and where the two are one server with different buffers.
    pub better: Option<&'static str>,
}

/// Which of two figures is better.
#[derive(Clone, Copy)]
enum Better {
    More,
    Less,
}

/// All findings of a table.
pub(super) fn of(rows: &[Row]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for client in Implementation::ALL {
        for buffer in Buffer::ALL {
            let ours = find(rows, Cell { client, buffer, server: Implementation::Tercel });
            for server in [Implementation::Quinn, Implementation::Quiche] {
                if let (Some(ours), Some(theirs)) = (ours, find(rows, Cell { client, buffer, server })) {
                    findings.push(beside("goodput", (ours, theirs), |row| &row.goodput_gbit_s, Better::More));
                    findings.push(beside(
                        "server CPU",
                        (ours, theirs),
                        |row| &row.server_cpu_s_per_gb,
                        Better::Less,
                    ));
                }
            }
        }
        for server in Implementation::ALL {
            let [large, default] = Buffer::ALL.map(|buffer| find(rows, Cell { client, buffer, server }));
            if let (Some(large), Some(default)) = (large, default) {
                findings.push(kept(default, large));
            }
        }
    }
    findings
}

fn find(rows: &[Row], cell: Cell) -> Option<&Row> {
    rows.iter().find(|row| row.cell == cell)
}

/// tercel's server beside another.
fn beside(
    figure: &str,
    (ours, theirs): (&Row, &Row),
    of: fn(&Row) -> &Summary,
    more_is_better: Better,
) -> Finding {
    let names = [ours, theirs].map(|row| row.cell.server.name());
    let ratio = Ratio::by_rounds(&of(ours).values, &of(theirs).values);
    let better = ratio.filter(|ratio| !ratio.spans_one()).map(|ratio| match more_is_better {
        Better::More if ratio.ratio > 1.0 => names[0],
        Better::Less if ratio.ratio < 1.0 => names[0],
        Better::More | Better::Less => names[1],
    });
    let Cell { client, buffer, .. } = ours.cell;
    let of = format!(
        "{}'s client, {} buffer: {figure}, {} / {}",
        client.name(),
        buffer.name(),
        names[0],
        names[1]
    );
    Finding { of, ratio, better }
}

/// What a default buffer leaves of the goodput.
fn kept(default: &Row, large: &Row) -> Finding {
    let Cell { client, server, .. } = default.cell;
    Finding {
        of: format!(
            "{}'s client, {}'s server: goodput, default / large buffer",
            client.name(),
            server.name()
        ),
        ratio: Ratio::by_rounds(&default.goodput_gbit_s.values, &large.goodput_gbit_s.values),
        better: None,
    }
}
