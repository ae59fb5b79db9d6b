//! Plans at random.

use super::ask::{Ask, Shape};
use super::run::Workload;
use crate::draw::Draw;

/// Most bytes of one run: enough for slow start, recovery and window updates, and over in milliseconds.
const MAX_BYTES: u64 = 2 << 20;

/// The plan of `seed` for a network that carries `capacity` bytes in a reasonable time.
pub fn plan(seed: u64, capacity: u64) -> Workload {
    let mut draw = Draw::new(seed ^ 0x6874_7470);
    let mut budget = capacity.min(MAX_BYTES);
    let count = draw.pick(&[1, 1, 3, 10, 40], 1);
    let mut asks = Vec::new();
    for _ in 0..count {
        let ask = ask(&mut draw, budget);
        budget = budget.saturating_sub(ask.up + ask.down + ask.padding as u64);
        asks.push(ask);
    }
    Workload {
        asks,
        parallel: draw.pick(&[1, 4, 100], 100),
        connections: 1,
        pause_ppm: draw.pick(&[0, 0, 50_000, 300_000], 0),
        key_updates: draw.pick(&[0, 0, 3], 0),
    }
}

fn ask(draw: &mut Draw, budget: u64) -> Ask {
    let (small, large) = (draw.magnitude(12), draw.magnitude(21));
    let (kind, offset, cancels) = (draw.between(0, 4), draw.magnitude(40), draw.one_in(12));
    let (plain, shape) = (draw.one_in(2), draw.between(0, Shape::COUNT - 1));
    let (padded, padding) = (draw.one_in(6), draw.magnitude(13));
    let (small, large) = (small.min(budget), large.min(budget));
    let (up, down) = match kind {
        0 | 1 => (0, large),
        2 => (small, large),
        3 => (large, small),
        _ => (large / 2, large / 2),
    };
    let shape = if plain { Shape::default() } else { Shape(shape) };
    Ask {
        up,
        down,
        offset,
        shape,
        padding: if padded { padding.min(budget) as usize } else { 0 },
        is_cancelled: cancels && down > 1 && !shape.has(Shape::HEAD),
    }
}
