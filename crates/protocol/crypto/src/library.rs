//! What implements the ciphers.

/// What implements the AEADs, and the masks of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Tercel's own, for AES-GCM on CPUs with the instructions; elsewhere aws-lc-rs.
    Kernel,
    /// aws-lc-rs.
    AwsLc,
}

impl Library {
    /// What is compiled in.
    pub const ALL: [Library; 2] = [Library::Kernel, Library::AwsLc];
}
