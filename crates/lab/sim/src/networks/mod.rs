//! The study of bad networks: downloads over links that lose, reorder, delay, police and fall silent, by each controller.
//!
//! | file | holds |
//! |---|---|
//! | link_profile.rs | what a link is like, and the nodes that make it |
//! | cell.rs | the links of the study: a base, one axis at a time, and pairs that matter |
//! | work.rs | what is downloaded |
//! | run.rs | one download: how long it took, and what it cost |
//! | record.rs | a cell's downloads over several seeds as one record, also as JSON |
//! | page.rs, heat.rs | the page of the study, and its picture |
//!
//! `cargo xtask networks` runs it whole and writes docs/networks; tests/networks.rs holds floors for a part of it.

pub mod beside;
mod cell;
mod heat;
mod link_profile;
mod page;
mod record;
mod run;
mod upload;
mod work;

pub use beside::{Beside, beside_bulk};
pub use cell::{Axis, Cell, cells};
pub use heat::heat;
pub use link_profile::{AckPath, Changes, NetworkProfile};
pub use page::page;
pub use record::{ALGORITHMS, Record, from_json, measure, name, to_json};
pub use run::{LIMIT, Trial, run};
pub use upload::{Upload, upload};
pub use work::Work;
