//! AF_XDP as a data path.
