//! Experiments, processes, pinning, CPU accounting, statistics.
