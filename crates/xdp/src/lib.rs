//! AF_XDP as a data path. Nothing is built here yet: the crate holds its place among the rooms.
