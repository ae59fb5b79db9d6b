//! What implements the ciphers.

/// What implements the AEADs, and the masks of headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// Tercel's own, for AES-GCM on CPUs with the instructions; elsewhere aws-lc-rs.
    Kernel,
    /// The same, which copies what it seals from elsewhere into the packet first: to measure what reading it there is worth.
    CopyingKernel,
    /// aws-lc-rs.
    AwsLc,
}

impl Library {
    /// What is compiled in.
    pub const ALL: [Library; 3] = [Library::Kernel, Library::CopyingKernel, Library::AwsLc];
}
