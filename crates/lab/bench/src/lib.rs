//! Experiments, processes, pinning, CPU accounting, statistics.
#![forbid(unsafe_code)]

pub mod course;
pub mod datapaths;
pub mod environment;
pub mod estimate;
pub mod fetch;
pub mod floor;
pub mod folder;
pub mod idle;
pub mod library;
pub mod method;
pub mod pair;
pub mod peers;
pub mod process;
pub mod roofline;
pub mod site;
pub mod soak;
pub use report::stats;
pub mod workers;
