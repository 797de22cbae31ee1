//! The Rust module that gives the kernel for a problem.

use askama::Template;

use super::Problem;
use crate::emit::text;

#[derive(Template)]
#[template(path = "dispatch.rs")]
struct Dispatch<'a> {
    name: &'a str,
    by: &'a str,
    rows: &'a [(Problem, String)],
    kernels: &'a [&'a String],
    /// The first kernel, where all take what it takes.
    first: Option<&'a String>,
}

impl Dispatch<'_> {
    fn index(&self, kernel: &String) -> usize {
        self.kernels.iter().position(|known| *known == kernel).unwrap_or_default()
    }
}

/// Writes a Rust module that gives the kernel for a problem: each row names the kernel for it. With `same`, all take the same
/// arguments.
pub fn dispatch_module(name: &str, by: &str, rows: &[(Problem, String)], same: bool) -> String {
    let mut kernels: Vec<&String> = Vec::new();
    for (_, kernel) in rows {
        if !kernels.contains(&kernel) {
            kernels.push(kernel);
        }
    }
    let first = kernels.first().copied().filter(|_| same);
    text(&Dispatch { name, by, rows, kernels: &kernels, first })
}
