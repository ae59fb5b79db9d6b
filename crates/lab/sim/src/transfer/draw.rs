//! Plans at random.

use super::client::Transfer;
use super::header::Header;
use super::run::Workload;
use crate::draw::{Draw, RandomScenario};
use transport::Dir;

/// Most bytes of one run: enough for slow start, recovery and window updates, and over in milliseconds.
const MAX_BYTES: u64 = 2 << 20;

/// The plan of `seed` for the scenario of the same seed.
pub fn plan(seed: u64, drawn: &RandomScenario) -> Workload {
    let mut draw = Draw::new(seed ^ 0x706c_616e);
    let (connections, at_once) = (draw.pick(&[1, 1, 1, 3], 1), draw.pick(&[1, 1, 1, 4], 1));
    // A rebinding during a handshake ends it, and only the first handshakes are waited for.
    let connections = if drawn.rebinds { 1 } else { connections };
    let mut budget = drawn.capacity.min(MAX_BYTES) / (connections * at_once);
    let count = draw.pick(&[1, 1, 3, 10, 40], 1);
    let mut transfers = Vec::new();
    for _ in 0..count {
        let transfer = transfer(&mut draw, budget);
        budget = budget.saturating_sub(transfer.header.up + transfer.header.down);
        transfers.push(transfer);
    }
    Workload {
        transfers,
        parallel: draw.pick(&[1, 4, 100], 100),
        connections,
        at_once,
        datagrams: draw.pick(&[0, 0, 20, 300], 0),
        pause_ppm: draw.pick(&[0, 0, 50_000, 300_000], 0),
        key_updates: draw.pick(&[0, 0, 3], 0),
    }
}

fn transfer(draw: &mut Draw, budget: u64) -> Transfer {
    let (small, large) = (draw.magnitude(12), draw.magnitude(21));
    let (shape, offset, cancels) = (draw.between(0, 5), draw.magnitude(40), draw.one_in(12));
    let (small, large) = (small.min(budget), large.min(budget));
    let (up, down) = match shape {
        0 | 1 => (0, large),
        2 => (small, large),
        3 => (large, small),
        4 => (large, 0),
        _ => (large / 2, large / 2),
    };
    let dir = if shape == 4 && offset.is_multiple_of(2) { Dir::Uni } else { Dir::Bidi };
    let cancel_after = (cancels && down > 1 && dir == Dir::Bidi).then_some(down / 2);
    Transfer { header: Header { up, down, offset }, dir, cancel_after }
}
