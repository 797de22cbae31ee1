//! The system's allocator, counted for each thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

pub(crate) struct Counted;

fn grew(bytes: usize) {
    // Memory that another thread frees counts as live here; what an input holds is a difference.
    let live = LIVE.get().saturating_add_unsigned(bytes);
    LIVE.set(live);
    PEAK.set(PEAK.get().max(live));
}

fn shrank(bytes: usize) {
    LIVE.set(LIVE.get().saturating_sub_unsigned(bytes));
}

// SAFETY: every call is handed to the system's allocator as it is; the counters are plain numbers that need no memory.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, block: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        grew(block.size());
        // SAFETY: the caller keeps the contract of `alloc`, which is the same.
        unsafe { System.alloc(block) }
    }

    unsafe fn dealloc(&self, at: *mut u8, block: Layout) {
        shrank(block.size());
        // SAFETY: `at` comes from `alloc` or `realloc` here, that is from the system's allocator.
        unsafe { System.dealloc(at, block) }
    }

    unsafe fn realloc(&self, at: *mut u8, block: Layout, size: usize) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        grew(size);
        shrank(block.size());
        // SAFETY: as for `dealloc`; the caller keeps the contract of `realloc`.
        unsafe { System.realloc(at, block, size) }
    }
}

/// How often this thread has asked for memory.
pub(crate) fn asked() -> u64 {
    ASKED.get()
}

/// The most bytes that `work` holds at one time on this thread, and what it returns.
pub(crate) fn held<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let base = LIVE.get();
    PEAK.set(base);
    let result = work();
    (result, usize::try_from(PEAK.get() - base).unwrap_or(0))
}
