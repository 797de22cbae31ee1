//! The name of a kernel.

use super::Checks;
use crate::diagnostic::Code;
use crate::reserved;

/// What C++ calls by itself.
const RESERVED: &[&str] = &["main"];

/// The name becomes a namespace in C++ and a module in Rust.
fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || reserved::in_cxx(name) || reserved::in_rust(name)
}

/// The kernel's name: an identifier of C, C++ and Rust.
pub fn kernel_name(checks: &mut Checks, name: &str) {
    let starts = name.starts_with(|c: char| c.is_ascii_lowercase());
    let legal = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
    if starts && legal && name.len() <= 64 && !name.contains("__") && !is_reserved(name) {
        return;
    }
    checks.push(
        Code::Name,
        format!("`{}`", name.escape_debug()),
        "a letter, then letters, digits and single underscores, lower case, at most 64, no keyword".into(),
        "the name becomes a C++ namespace, an `extern \"C\"` function, a Rust module and the stem of three files",
        "a name such as vector_add".into(),
    );
}
