//! Data paths by name: opening, measuring which is best, explaining what this machine allows.
#![forbid(unsafe_code)]
