//! A server's parts: its identity, its workers on their threads, its report.
//!
//! | file | holds |
//! |---|---|
//! | credentials.rs | certificate and key |
//! | cores.rs | how many workers, and which cores they keep |
//! | threads.rs | the threads: one worker on each, one stop flag for all |
//! | listeners.rs | the ports, UDP and TCP |
//! | keys.rs | the keys that outlive a restart |
//! | endpoint_warnings.rs | counters that become warnings |
//! | ready.rs | the ready file |
//! | limits.rs | how many connections there may be, and from where |
//! | worker_thread.rs | one worker of HTTP/3 from its first turn to its last |
//! | tcp.rs | one thread of HTTP/1.1 and 2 |
//! | versions.rs | which versions are served |
//! | report.rs | what is said at the start, the summary, advice |

pub(crate) mod cores;
pub(crate) mod credentials;
pub(crate) mod endpoint_warnings;
pub(crate) mod keys;
pub(crate) mod limits;
pub(crate) mod listeners;
pub(crate) mod ready;
pub(crate) mod report;
pub(crate) mod tcp;
pub(crate) mod threads;
pub(crate) mod versions;
pub(crate) mod worker_thread;
