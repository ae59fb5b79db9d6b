//! QPACK field compression, RFC 9204, with the static table and without a dynamic one.
//!
//! [`encode`] writes an encoded field section; [`FieldSection`] decodes one into memory that is reused from section to
//! section, and [`SectionDecoder`] those of one sender after each other. We announce a dynamic table capacity of 0 and never insert into the peer's, so sections never block, nothing
//! is tracked between them, and a section may be encoded once and sent many times. [`instructions`] holds the rules that
//! the two QPACK streams follow then.
//!
//! Everything a peer can make grow here is bounded before data is taken in: the decoded size of a section (name, value
//! and 32 bytes for each line, RFC 9114 §4.2.2), its number of lines, and every prefixed integer. Every decoder is total:
//! any input gives a value or an error, never a panic.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::expect_used, clippy::indexing_slicing))]

mod decoder;
mod encoder;
mod error;
#[doc(hidden)]
pub mod fuzz_targets;
mod huffman;
pub mod instructions;
mod integer;
mod section;
pub mod static_table;

pub use decoder::{Limits, News, SectionDecoder};
pub use encoder::{encode, write_line, write_prefix};
pub use error::{Code, DecodeError, Error};
pub use huffman::{InvalidHuffman, decode as huffman_decode, encode as huffman_encode};
pub use section::{FieldSection, Line};
