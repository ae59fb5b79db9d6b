//! Experiments, processes, pinning, CPU accounting, statistics.
#![forbid(unsafe_code)]

pub mod cpu;
pub mod roofline;
