//! Network namespaces joined by veth, and a link emulator, that vanish with their owner.
#![forbid(unsafe_code)]
