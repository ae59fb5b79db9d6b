//! A server's rooms: who it is, its workers on their threads, what it reports.
//!
//! | file | holds |
//! |---|---|
//! | credentials.rs | certificate and key |
//! | cores.rs | how many workers, and which cores they keep |
//! | crew.rs | the threads: one worker on each, one order to stop for all |
//! | shift.rs | one worker from its first turn to its good-bye |
//! | report.rs | the ready file, the summary, advice |

pub(crate) mod cores;
pub(crate) mod credentials;
pub(crate) mod crew;
pub(crate) mod report;
pub(crate) mod shift;
