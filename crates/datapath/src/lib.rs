//! The batch traits behind which kernel UDP, AF_XDP and the simulator are interchangeable.
