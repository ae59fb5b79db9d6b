//! A virtual clock and virtual links as a data path.
