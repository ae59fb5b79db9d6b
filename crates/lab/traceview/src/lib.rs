//! Traces of connections (qlog), of any implementation, as a summary in the terminal and as pictures of their curves.
//!
//! | file | what is in it |
//! |---|---|
//! | records.rs | reads a file: JSON text sequences, lines of JSON, or one document with all events |
//! | summary.rs | what the events say of the connection: figures, and their curves over time |
//! | sequence.rs | numbers of packets over time, with losses and repetitions |
//! | requests.rs | the requests of HTTP/3: what was asked, what was answered, how long it took |
//! | study.rs | the same as tables and plots of crate `report` |
//! | document.rs | traces of the current drafts as a document of qlog 0.3, for public viewers |
//!
//! The reader is lenient. Names of events and fields changed from draft to draft; what it does not know, it counts.

mod document;
mod records;
mod requests;
mod sequence;
mod study;
mod summary;
#[cfg(test)]
mod tests;

pub use document::Document;
pub use records::{Trace, Unreadable, read};
pub use requests::Request;
pub use study::study;
pub use summary::{Stall, Summary};
