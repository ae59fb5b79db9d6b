//! The tercel command.

fn main() {}
