//! The Rust module that gives the kernel for a problem.

use askama::Template;

use super::Problem;
use crate::emit::text;

#[derive(Template)]
#[template(path = "dispatch.rs")]
struct Dispatch<'a> {
    name: &'a str,
    device: &'a str,
    rows: &'a [(Problem, String)],
}

/// Writes a Rust module that gives the kernel for a problem: each row names the kernel that was the fastest on it.
pub fn dispatch_module(name: &str, device: &str, rows: &[(Problem, String)]) -> String {
    text(&Dispatch { name, device, rows })
}
