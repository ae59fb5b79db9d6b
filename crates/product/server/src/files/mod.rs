//! Files below a root: from names to open files, and what is remembered of them.

pub(crate) mod cache;
pub(crate) mod path;
pub(crate) mod root;
#[cfg(test)]
mod tests;

pub use cache::CacheLimits;
pub use path::{DotFiles, MAX_TARGET};
pub use root::{Root, RootError};
