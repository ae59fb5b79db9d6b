//! Field sections as HTTP understands them: which lines may stand where, what they mean, and how they become the types of
//! the `http` crate and back. RFC 9114 §4.1 to §4.4.

mod buffer;
mod characters;
mod convert;
mod encode;
mod head;
mod in_place;
mod names;
mod reader;
mod target;
mod validate;

pub use buffer::HeadBuffer;
pub use convert::{HeadMemory, InvalidHead};
pub use head::{RequestHead, ResponseHead, Trailers};
pub use in_place::convert_in_place;
pub use target::{Target, is_authority, is_trimmed};

pub use encode::Protocol;
pub(crate) use encode::{write_lines, write_request, write_response, write_trailers};
pub(crate) use reader::SectionReader;
pub(crate) use target::ExtendedConnect;

#[cfg(test)]
mod tests;
