//! The published studies, repeated: what is run, on what, and what is printed beside it.
//!
//! A study is a function from a [`context::Context`] to a [`report::model::Study`]. It starts processes, counts what they
//! used and did, and says what a reader must know to judge the figures. How a report looks is not its business.
#![forbid(unsafe_code)]

pub mod acks;
pub mod ceiling;
pub mod contestants;
pub mod context;
mod courses;
mod downloads;
pub mod e1;
pub mod e2;
pub mod e3;
pub mod e4;
pub mod e5;
pub mod e6;
pub mod e7;
pub mod e8;
pub mod laboratory;
mod profiles;
pub mod shares;
