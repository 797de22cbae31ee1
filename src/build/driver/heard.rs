//! What a build script says of what takes long: downloads and compilations.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cutlass_sys::Step;

use super::nvcc::Done;

/// From when on a kernel has a line of its own. cargo shows the line when the build script ends, and again at later builds.
const SLOW: Duration = Duration::from_secs(20);

/// Compilations of this build. Standard error has a line for each, which cargo shows while it runs with `-vv`, and where the build fails.
#[derive(Clone, Default)]
pub(super) struct Heard(Arc<Mutex<Vec<(String, Duration)>>>);

impl Heard {
    /// A compilation ended.
    pub(super) fn made(&self, done: &Done<'_>) {
        eprintln!("nvcc: {done}");
        if done.took >= SLOW {
            let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            all.push((done.unit.to_owned(), done.took));
        }
    }

    /// A line for each kernel that was slow, in the order of names.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        // A kernel is asked for its machine code and its PTX: the longer time has both.
        all.sort_by(|(x, longer), (y, shorter)| x.cmp(y).then(shorter.cmp(longer)));
        all.dedup_by(|(x, _), (y, _)| x == y);
        let line = |(kernel, took): &(String, Duration)| {
            format!(
                "warning=nvcc took {:.0} s for kernel {kernel}, once: it is kept for all later builds. `cargo build -vv` shows kernels as \
                 they are made",
                took.as_secs_f64()
            )
        };
        all.iter().map(line).collect()
    }
}

/// A line for each download that begins and ends.
pub(super) fn fetching() -> impl FnMut(Step<'_>) {
    let mut begun: Option<String> = None;
    move |step| match step {
        Step::Wait { component, .. } => eprintln!("waiting: another process fetches {component}"),
        Step::Download { component, total, .. } if begun.as_deref() != Some(component) => {
            eprintln!("downloading {component}, {:.0} MB", total as f64 / 1e6);
            begun = Some(component.to_owned());
        }
        Step::Ready { component, path } => eprintln!("{component} is in {}", path.display()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Targets;

    #[test]
    fn a_slow_kernel_has_one_line() {
        let (heard, targets) = (Heard::default(), Targets::default());
        let told = [("b", "PTX", 31), ("b", "machine code", 38), ("a", "machine code", 25), ("quick", "PTX", 19)];
        for (unit, what, seconds) in told {
            heard.made(&Done { unit, what, targets: &targets, took: Duration::from_secs(seconds) });
        }
        let lines = heard.lines();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].starts_with("warning=nvcc took 25 s for kernel a, once") && lines[1].contains("38 s for kernel b")
        );
    }
}
