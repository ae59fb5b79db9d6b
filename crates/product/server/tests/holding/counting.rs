//! How much memory a test's thread holds.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
}

/// Bytes that this thread has allocated and not freed. What other threads free or allocate for it is not counted.
pub(crate) fn held() -> usize {
    HELD.with(Cell::get)
}

fn book(freed: usize, taken: usize) {
    let _ = HELD.try_with(|held| held.set(held.get().wrapping_sub(freed).wrapping_add(taken)));
}

#[expect(unsafe_code, reason = "an allocator cannot be written without")]
// SAFETY: every call is passed to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        book(0, layout.size());
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        book(layout.size(), 0);
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        book(layout.size(), size);
        // SAFETY: the caller keeps `System`'s contract, which is ours.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
