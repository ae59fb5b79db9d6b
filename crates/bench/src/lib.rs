//! Experiments, processes, pinning, CPU accounting, statistics.
#![forbid(unsafe_code)]

pub mod cpu;
pub mod environment;
pub mod fetch;
pub mod floor;
pub mod peers;
pub mod process;
pub mod roofline;
pub mod site;
pub mod stats;
