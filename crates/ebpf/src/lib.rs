//! The eBPF programs, and their loading.
#![forbid(unsafe_code)]
