//! Congestion controllers on links: real endpoints send without end over one bottleneck, alone or two at a time, and what
//! they make of it is measured once they have settled.
//!
//! link_profile.rs says what a link is like, run.rs lets flows run over it, ends.rs holds the two applications. startup.rs watches a
//! first slow start. grid.rs lists what is
//! run for the published table, record.rs is what is kept of a run, and study.rs makes one study of the records: tables.rs,
//! plots.rs, findings.rs. markdown.rs writes the page.
//!
//! All flows go from the client host to the server host, over one queue: a client's connections can each have a controller
//! of their own, a server's cannot. Acknowledgements come back over a path that has nothing but its delay.
//! Rejected: the closed-loop model of crate `recovery`'s tests, which knows neither trains, nor the pacer, nor delayed and
//! thinned acknowledgements: half of what controllers suffer from.

mod ends;
mod findings;
mod grid;
mod link_profile;
mod markdown;
mod plots;
mod record;
mod run;
mod startup;
mod study;
mod tables;

pub use grid::{Item, Part, items};
pub use link_profile::{Dropping, LinkProfile, Marking};
pub use markdown::markdown;
pub use record::Record;
pub use run::{ContestRun, Flow, FlowPlan, Outcome, jain, run, run_through};
pub use startup::{Startup, startup};
pub use study::{study, unpack};
