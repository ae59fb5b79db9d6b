//! What a measurement found: trials, tables, plots, as JSON, text, Markdown and a page.
//!
//! A study fills a [`model::Study`]; everything that people or machines read is made from it here. Nothing here measures.
#![forbid(unsafe_code)]

mod escape;
pub mod model;
pub mod plot;
pub mod stats;
