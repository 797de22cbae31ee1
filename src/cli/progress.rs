//! Progress of downloads and compilations on a terminal; one line for each step elsewhere; nothing for machines.

use std::io::IsTerminal;
use std::time::Duration;

use cutlass_sys::{Progress, Step};
use indicatif::{ProgressBar, ProgressStyle};

use crate::cli::output::{Output, complain};

/// Draws the steps of fetching.
pub(crate) struct Fetching {
    quiet: bool,
    bar: Option<(String, ProgressBar)>,
}

impl Fetching {
    pub(crate) fn new(out: &Output) -> Self {
        Self { quiet: out.is_json(), bar: None }
    }

    /// The bar of one step of one component. A new step replaces it; without a terminal it is one line.
    fn bar(&mut self, what: String, total: u64) -> &ProgressBar {
        if self.bar.as_ref().is_none_or(|(name, _)| *name != what) {
            if let Some((_, bar)) = self.bar.take() {
                bar.finish_and_clear();
            }
            let bar = if self.quiet || !std::io::stderr().is_terminal() { ProgressBar::hidden() } else { bytes(total) };
            if !self.quiet && !std::io::stderr().is_terminal() {
                complain(format_args!("{what} ({:.1} MB)", total as f64 / 1e6));
            }
            bar.set_message(what.clone());
            self.bar = Some((what, bar));
        }
        match &self.bar {
            Some((_, bar)) => bar,
            None => unreachable!("it was set above"),
        }
    }
}

fn bytes(total: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{msg:40} {bar:30} {bytes:>10} / {total_bytes}");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

impl Progress for Fetching {
    fn step(&mut self, step: Step<'_>) {
        match step {
            Step::Wait { component, .. } if !self.quiet => {
                complain(format_args!("waiting: another process fetches {component}"))
            }
            Step::Download { component, done, total } => {
                self.bar(format!("downloading {component}"), total).set_position(done);
            }
            Step::Unpack { component, done, total } => {
                self.bar(format!("unpacking {component}"), total).set_position(done);
            }
            Step::Ready { .. } => {
                if let Some((_, bar)) = self.bar.take() {
                    bar.finish_and_clear();
                }
            }
            _ => {}
        }
    }
}

/// A spinner on a terminal, nothing elsewhere: for work that is silent, and short unless the problem is large.
pub(crate) fn on_terminal<T>(out: &Output, what: &str, work: impl FnOnce() -> T) -> T {
    if out.is_json() || !std::io::stderr().is_terminal() {
        return work();
    }
    while_working(out, what, work)
}

/// The same for work of known length: `work` gets a function that it calls with each amount that it has done.
pub(crate) fn counting<T>(out: &Output, what: &str, total: u64, work: impl FnOnce(&(dyn Fn(u64) + Sync)) -> T) -> T {
    if out.is_json() || !std::io::stderr().is_terminal() {
        return work(&|_| {});
    }
    let style = ProgressStyle::with_template("{msg:40} {bar:30} {percent:>3} %  {eta} left");
    let bar = ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_message(what.to_owned());
    bar.enable_steady_tick(Duration::from_millis(100));
    let result = work(&|more| bar.inc(more));
    bar.finish_and_clear();
    result
}

/// A spinner for work of unknown length, such as a compilation; a plain line if stderr is not a terminal.
pub(crate) fn while_working<T>(out: &Output, what: &str, work: impl FnOnce() -> T) -> T {
    if out.is_json() {
        return work();
    }
    if !std::io::stderr().is_terminal() {
        complain(what);
        return work();
    }
    let style = ProgressStyle::with_template("{spinner} {msg} {elapsed}");
    let spinner = ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    spinner.set_message(what.to_owned());
    spinner.enable_steady_tick(Duration::from_millis(100));
    let result = work();
    spinner.finish_and_clear();
    result
}
