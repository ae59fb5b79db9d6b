//! Bytes to values and back: variable-length integers, headers, frames, transport parameters, connection IDs.
