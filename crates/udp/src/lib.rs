//! Kernel UDP as a data path: GSO, GRO, recvmmsg, ECN and packet-info control messages.
