//! Work on many elements, on all cores: the result does not depend on how many there are.

use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Elements that one core takes at a time.
pub(crate) const GRAIN: u64 = 1 << 16;

/// Receives the number of elements that were just finished. Called from several threads.
pub type Done<'a> = &'a (dyn Fn(u64) + Sync);

/// How many threads work on this many parts.
fn threads(parts: u64) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    cores.min(usize::try_from(parts).unwrap_or(usize::MAX))
}

/// Takes what `next` gives until it gives nothing more, in each thread with a state of its own; the states, when all is done.
fn until_none<T, S: Send>(
    parts: u64,
    next: impl Fn() -> Option<T> + Sync,
    new: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, T) + Sync,
) -> Vec<S> {
    let worker = || {
        let mut state = new();
        while let Some(part) = next() {
            work(&mut state, part);
        }
        state
    };
    let threads = threads(parts);
    if threads <= 1 {
        return vec![worker()];
    }
    std::thread::scope(|scope| {
        let handles: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut states = vec![worker()];
        for handle in handles {
            match handle.join() {
                Ok(state) => states.push(state),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        states
    })
}

/// Works on `0..total` in parts of `grain`. A thread's parts ascend.
pub(crate) fn ranges<S: Send>(
    total: u64,
    grain: u64,
    new: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, Range<u64>) + Sync,
) -> Vec<S> {
    let (grain, at) = (grain.max(1), AtomicU64::new(0));
    let parts = total.div_ceil(grain);
    let next = || {
        let part = at.fetch_add(1, Ordering::Relaxed);
        (part < parts).then(|| part * grain..total.min((part + 1).saturating_mul(grain)))
    };
    until_none(parts, next, new, work)
}

/// Works on parts of `all`, which are cut off from its front: `cut(n)` says where the n-th part ends, and the last one ends
/// where `all` does.
pub(crate) fn slices<T: Send>(
    all: &mut [T],
    parts: u64,
    cut: impl Fn(u64) -> usize + Sync,
    work: impl Fn(u64, usize, &mut [T]) + Sync,
) {
    let rest = Mutex::new((0_u64, 0_usize, all));
    let next = || {
        let mut rest = rest.lock().unwrap_or_else(PoisonError::into_inner);
        let (part, start, all) = &mut *rest;
        (*part < parts).then_some(())?;
        let (own, first) = (*part, *start);
        *part += 1;
        let end = if *part == parts { first + all.len() } else { cut(own) };
        let (taken, left) = core::mem::take(all).split_at_mut_checked(end - first)?;
        (*start, *all) = (end, left);
        Some((own, first, taken))
    };
    until_none(parts, next, || (), |(), (part, first, taken)| work(part, first, taken));
}
