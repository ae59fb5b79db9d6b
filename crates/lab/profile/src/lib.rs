//! Where CPU time goes: samples of a process, a flame graph of them, and a ledger by what the time was for.
//!
//! perf takes the samples: a hundred times a second and more it notes where each thread of the process is, with a copy of its
//! stack, from which the callers are found by the unwinding tables that every release build has. Frame pointers would be
//! cheaper to follow, but the whole program, its assembly included, would have to be built for them. With link-time
//! optimisation most functions are inlined into a few; [`inlines`] gets them back from the line tables. Then each stack is
//! given to one part of the work by a table of names ([`parts`]), and what no name claims is shown as such.
#![forbid(unsafe_code)]

mod flame;
pub mod inlines;
pub mod ledger;
mod names;
pub mod parts;
mod profile;
pub mod recorder;
pub mod script;

pub use ledger::Ledger;
pub use profile::{Profile, record};
pub use recorder::{Recorder, Target};
