//! HTTP clients: downloads and generated load.
//!
//! What a download needs beside its connection: where it goes ([`target`]), where it is put ([`output`], [`destination`], [`part`]), what
//! is still missing ([`pieces`]), whether an answer is what was asked for ([`answer`]), and how it fails ([`error`]).
#![forbid(unsafe_code)]

pub mod answer;
pub mod destination;
pub mod download;
pub mod error;
pub mod job;
pub mod output;
pub mod part;
pub mod pieces;
pub mod tally;
pub mod target;
