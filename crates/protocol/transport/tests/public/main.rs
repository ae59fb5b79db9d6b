//! The public interface of `transport`, used as an embedder uses it: two endpoints, a wire in memory, virtual time.
//!
//! No test looks inside the crate. setup.rs, tls.rs, ends.rs and world.rs are what an embedder writes; each other file is one subject.
#![expect(clippy::expect_used, reason = "a test that meets an error has failed")]
#![expect(clippy::panic, reason = "a wait that ends without its event has failed")]

mod close;
mod endpoint;
mod ends;
mod handshake;
mod loss;
mod migration;
mod network;
mod own_moves;
mod paths;
mod setup;
mod slow_steps;
mod streams;
mod tls;
mod versions;
mod without;
mod world;
