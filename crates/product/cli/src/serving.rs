//! `tercel serve` around the server of the crate `server`: limits by flags, the ready file, what it reports.
//!
//! | file | holds |
//! |---|---|
//! | limits.rs | how many connections there may be, and from where |
//! | log.rs | what is said on standard error, by levels; how requests are logged |
//! | operations.rs | the admin address, and what it tells |
//! | orders.rs | certificates that the server orders by itself |
//! | places.rs | files and folders of the wrong kind |
//! | process.rs | what the process asks of the system |
//! | proxies.rs | proxies in front that say whose a connection is |
//! | ready.rs | the ready file |
//! | reload.rs | what a running server reads again |
//! | report.rs | what is said at the start, the summary |
//! | sites.rs | the sites of a configuration file, with their certificates |
//! | systemd.rs | what a service tells systemd |
//! | start.rs | what this process gets from the one before it, or from a service manager |
//! | upgrade.rs | another process takes the place of this one |
//! | user.rs | the user that it becomes |
//! | watchdog.rs | signs of life for systemd |

pub(crate) mod limits;
pub(crate) mod log;
pub(crate) mod operations;
pub(crate) mod orders;
pub(crate) mod places;
pub(crate) mod process;
pub(crate) mod proxies;
pub(crate) mod ready;
pub(crate) mod reload;
pub(crate) mod report;
pub(crate) mod sites;
pub(crate) mod start;
pub(crate) mod systemd;
pub(crate) mod upgrade;
pub(crate) mod user;
pub(crate) mod watchdog;
