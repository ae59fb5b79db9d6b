//! The fuzz corpus of this crate, replayed. See fuzz/replay.rs.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
#[path = "corpus/seeds.rs"]
mod seeds;

use qpack::fuzz_targets::TARGETS;
