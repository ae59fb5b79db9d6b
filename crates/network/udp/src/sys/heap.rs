//! The allocator's own verb, which no safe wrapper covers.

/// Returns memory that was freed, and that the allocator keeps, to the operating system. Takes milliseconds after a large peak, during
/// which other threads may have to wait for memory. Does nothing where the C library is not glibc. Source: `malloc_trim(3)`.
pub fn return_freed_memory() {
    #[cfg(all(target_env = "gnu", not(miri)))]
    {
        #[expect(unsafe_code, reason = "no crate wraps malloc_trim")]
        // SAFETY: malloc_trim(3) may be called by any thread at any time; it touches no memory that is allocated.
        unsafe {
            libc::malloc_trim(0);
        }
    }
}
