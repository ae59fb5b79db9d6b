//! The fuzz corpus of this crate, replayed. See fuzz/replay.rs.

#[path = "../../../../fuzz/replay.rs"]
mod replay;
#[path = "corpus/seeds.rs"]
mod seeds;

use http3::fuzz_targets::TARGETS;
