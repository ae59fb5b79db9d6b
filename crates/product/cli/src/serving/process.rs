//! What a process that serves many connections over TCP asks of the system. A library leaves this to its program.

/// Tells the C library's allocator to keep what is freed: it learns from the largest block that was freed so far. Otherwise it
/// returns the memory of TLS records to the kernel after each write and gets it back by page faults, a tenth of the time.
pub(crate) fn keep_memory() {
    const LARGE: usize = 8 << 20;
    drop(std::hint::black_box(Vec::<u8>::with_capacity(LARGE)));
}

/// Takes as many descriptors as the system lets us have: each connection costs one, and shells often give a thousand.
pub(crate) fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // If it is refused, what there was must do.
    let _ = setrlimit(Resource::Nofile, limit);
}
