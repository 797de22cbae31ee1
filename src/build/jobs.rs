//! How many compilers may run at once.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};

use cutlass_sys::Env;

/// What one nvcc was seen to need at most for a CuTe kernel, in bytes.
const MEMORY_PER_JOB: u64 = 5 << 30;

/// Cores, bounded by memory and by `NUM_JOBS`, which cargo sets for build scripts; at least one.
pub(super) fn limit(env: &Env) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    let wanted = env.get("NUM_JOBS").and_then(|v| v.to_str()?.parse().ok());
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok();
    bounded(cores, meminfo.as_deref().and_then(available), wanted)
}

fn bounded(cores: usize, memory: Option<u64>, wanted: Option<usize>) -> usize {
    let by_memory = memory.map_or(cores, |bytes| usize::try_from(bytes / MEMORY_PER_JOB).unwrap_or(cores));
    cores.min(by_memory).min(wanted.unwrap_or(cores)).max(1)
}

/// `MemAvailable` of Linux's `/proc/meminfo`, in bytes.
fn available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// Places for compilers: whoever starts one takes a place before, and waits while all are taken.
#[derive(Debug)]
pub(super) struct Places {
    all: usize,
    free: Mutex<usize>,
    left: Condvar,
}

/// A place that is taken; given back when it is dropped.
pub(super) struct Place<'p>(&'p Places);

impl Places {
    pub(super) fn new(all: usize) -> Places {
        Places { all, free: Mutex::new(all), left: Condvar::new() }
    }

    pub(super) fn all(&self) -> usize {
        self.all
    }

    pub(super) fn take(&self) -> Place<'_> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self.left.wait_while(free, |free| *free == 0).unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        Place(self)
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.left.notify_one();
    }
}

/// Calls `work` for each item, on at most `limit` threads; results in the order of the items.
pub(super) fn in_parallel<T: Sync, R: Send>(items: &[T], limit: usize, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(items.len()));
    std::thread::scope(|scope| {
        for _ in 0..limit.min(items.len()) {
            scope.spawn(|| {
                while let Some((index, item)) =
                    Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, items.get(i)?)))
                {
                    let result = work(item);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn jobs_are_bounded_by_cores_memory_and_wish() {
        assert_eq!(bounded(8, Some(64 * GIB), None), 8);
        assert_eq!(bounded(8, Some(12 * GIB), None), 2);
        assert_eq!(bounded(8, Some(GIB), None), 1);
        assert_eq!(bounded(8, None, Some(3)), 3);
        assert_eq!(bounded(2, None, Some(16)), 2);
        assert_eq!(bounded(2, None, Some(0)), 1);
        assert_eq!(available("MemTotal: 8 kB\nMemAvailable:       4 kB\n"), Some(4096));
    }

    #[test]
    fn no_more_places_are_taken_than_there_are() {
        let (places, running, most) = (Places::new(2), AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<usize> = (0..40).collect();
        in_parallel(&items, 8, |_| {
            let _place = places.take();
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
        });
        assert!((1..=2).contains(&most.load(Ordering::SeqCst)));
        assert_eq!(*places.free.lock().expect("no thread panicked"), 2);
    }

    #[test]
    fn no_more_run_at_once_than_are_allowed() {
        let (running, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<usize> = (0..40).collect();
        let results = in_parallel(&items, 3, |item| {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            std::thread::yield_now();
            running.fetch_sub(1, Ordering::SeqCst);
            item * 2
        });
        assert_eq!(results, items.iter().map(|i| i * 2).collect::<Vec<_>>());
        assert!((1..=3).contains(&most.load(Ordering::SeqCst)));
        assert!(in_parallel(&[0_u8; 0], 3, |i| *i).is_empty());
    }
}
