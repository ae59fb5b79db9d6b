//! HTTP clients: downloads and generated load.
