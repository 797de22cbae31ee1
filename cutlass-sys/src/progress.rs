//! Progress of a download, for whoever wants to draw it.

use std::path::Path;

/// A step of fetching a component. Amounts are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step<'a> {
    /// Another process fetches the same component; this one waits for its lock.
    Wait {
        /// The component's name.
        component: &'a str,
        /// The lock that is waited for.
        lock: &'a Path,
    },
    /// pip downloads the component's wheels.
    Download {
        /// The component's name.
        component: &'a str,
        /// Bytes on disk so far, never more than `total`.
        done: u64,
        /// The size of all wheels.
        total: u64,
    },
    /// The wheels are unpacked.
    Unpack {
        /// The component's name.
        component: &'a str,
        /// Bytes of wheels read so far.
        done: u64,
        /// The size of all wheels.
        total: u64,
    },
    /// The component is in the cache.
    Ready {
        /// The component's name.
        component: &'a str,
        /// Its directory.
        path: &'a Path,
    },
}

/// Is told each step. `()` ignores them; a closure works too.
///
/// # Examples
/// ```
/// use cutlass_sys::{Progress, Step};
/// let mut seen = Vec::new();
/// let mut progress = |step: Step<'_>| seen.push(format!("{step:?}"));
/// progress.step(Step::Download { component: "cutlass", done: 1, total: 2 });
/// assert_eq!(seen, [r#"Download { component: "cutlass", done: 1, total: 2 }"#]);
/// ```
pub trait Progress {
    /// Is called from the thread that fetches, a few times a second at most.
    fn step(&mut self, step: Step<'_>);
}

impl Progress for () {
    fn step(&mut self, _: Step<'_>) {}
}

impl<F: FnMut(Step<'_>)> Progress for F {
    fn step(&mut self, step: Step<'_>) {
        self(step);
    }
}
