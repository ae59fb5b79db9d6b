//! The fuzz corpus of this crate, replayed. See fuzz/replay.rs.
#![expect(clippy::unwrap_used, reason = "a helper of a test may panic as the test itself may")]

#[path = "../../../../fuzz/replay.rs"]
mod replay;
#[path = "corpus/seeds.rs"]
mod seeds;

use wire::fuzz_targets::TARGETS;
