//! The budget of warp instructions of a launch. It is exact for any number of host threads.
//!
//! Each worker takes a part of the rest, and another part when that is used. The parts become small towards the end. If nothing is left,
//! a worker waits for others to return unused instructions, since their blocks may end early.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The largest part that a worker takes at once.
const PART: u64 = 1 << 20;

struct Rest {
    instructions: u64,
    /// Workers that hold a part.
    holders: usize,
}

/// The rest of the budget.
pub(crate) struct Budget {
    left: Mutex<Rest>,
    given_back: Condvar,
    workers: u64,
}

impl Budget {
    pub(crate) fn new(instructions: u64, workers: usize) -> Budget {
        let left = Mutex::new(Rest { instructions, holders: 0 });
        Budget { left, given_back: Condvar::new(), workers: workers.max(1) as u64 }
    }

    fn left(&self) -> MutexGuard<'_, Rest> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a part; 0 if nothing is left and no other worker can return any.
    fn take(&self) -> u64 {
        let mut left = self.left();
        while left.instructions == 0 && left.holders > 0 {
            left = self.given_back.wait(left).unwrap_or_else(PoisonError::into_inner);
        }
        let part = (left.instructions / (2 * self.workers)).clamp(1, PART).min(left.instructions);
        left.instructions -= part;
        left.holders += usize::from(part > 0);
        part
    }

    fn give_back(&self, rest: u64) {
        let mut left = self.left();
        left.instructions += rest;
        left.holders -= 1;
        self.given_back.notify_all();
    }
}

/// A worker's part of the budget.
pub(crate) struct Purse<'b> {
    budget: &'b Budget,
    rest: u64,
    holds: bool,
    /// Whether the budget is exhausted.
    pub(crate) is_empty: bool,
}

impl<'b> Purse<'b> {
    pub(crate) fn new(budget: &'b Budget) -> Purse<'b> {
        Purse { budget, rest: 0, holds: false, is_empty: false }
    }

    fn give_back(&mut self) {
        if core::mem::take(&mut self.holds) {
            self.budget.give_back(core::mem::take(&mut self.rest));
        }
    }

    /// Offers up to `wanted` instructions, and at least one if the budget has one.
    pub(crate) fn offers(&mut self, wanted: u64) -> u64 {
        if self.rest == 0 {
            self.give_back();
            self.rest = self.budget.take();
            self.holds = self.rest > 0;
            self.is_empty = !self.holds;
        }
        self.rest.min(wanted)
    }

    /// Subtracts the executed instructions of an offer.
    pub(crate) fn spend(&mut self, used: u64) {
        self.rest -= used.min(self.rest);
    }
}

impl Drop for Purse<'_> {
    fn drop(&mut self) {
        self.give_back();
    }
}

#[cfg(test)]
mod tests {
    use super::{Budget, Purse};

    /// Workers that each want so many instructions; how many all of them got.
    fn spent(budget: u64, wants: &[u64]) -> u64 {
        let budget = Budget::new(budget, wants.len());
        let spent = std::sync::atomic::AtomicU64::new(0);
        std::thread::scope(|scope| {
            for wanted in wants {
                scope.spawn(|| {
                    let (mut purse, mut left) = (Purse::new(&budget), *wanted);
                    while left > 0 {
                        let n = purse.offers(left.min(1000));
                        if n == 0 {
                            break;
                        }
                        purse.spend(n);
                        left -= n;
                        spent.fetch_add(n, std::sync::atomic::Ordering::Relaxed);
                    }
                });
            }
        });
        spent.into_inner()
    }

    #[test]
    fn workers_get_all_of_it_and_no_more() {
        for budget in [0, 1, 7, 1000, 5_000_000] {
            for wants in [vec![u64::MAX], vec![u64::MAX; 5], vec![3, u64::MAX, 0, 10_000_000], vec![1; 16]] {
                let wanted = wants.iter().fold(0, |all: u64, n| all.saturating_add(*n));
                assert_eq!(spent(budget, &wants), budget.min(wanted), "{budget} for {wants:?}");
            }
        }
    }
}
