//! DASH (ISO/IEC 23009-1): manifests, players that choose their bitrate, and how they fared.
//!
//! A player is arithmetic: it is told the time and what has arrived, and says what to fetch next or when to ask again. What it
//! would show and for how long it would stand still follows from that, so no picture is ever decoded.
//!
//! ```text
//! manifest ─▶ Presentation ─▶ Player (pure: a clock as argument) ◀─▶ PlayerApp: a worker's application, a connection each
//!                              │ Rule: which quality next                                        │
//!                              └──────────▶ PlaybackRecord ──────────────────────────────────▶ Report ◀──┘
//! ```
#![forbid(unsafe_code)]

pub mod manifest;
mod plan;
pub mod player;
mod player_connection;
mod report;
pub mod rule;
mod watch;

pub use plan::WatchPlan;
pub use report::{PlayerReport, Report};
pub use watch::watch;
