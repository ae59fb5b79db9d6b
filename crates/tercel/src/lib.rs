//! The tercel library: what an embedder uses.
