//! What a measurement found: trials, tables, plots, as JSON, text, Markdown and a page.
//!
//! A study fills a [`model::Study`]; everything that people or machines read is made from it here. Nothing here measures.
#![forbid(unsafe_code)]

mod cells;
pub mod compare;
pub mod date;
mod escape;
pub mod html;
pub mod markdown;
pub mod model;
pub mod plot;
#[cfg(test)]
mod sample;
pub mod stats;
pub mod text;
pub mod write;
