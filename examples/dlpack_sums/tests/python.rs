//! The script, with NumPy's tensors.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};

#[path = "../../../tests/support/numpy.rs"]
mod numpy;

#[test]
fn the_script_agrees_with_numpy_and_shows_what_was_refused() {
    let this = std::env::current_exe().expect("this binary");
    let library = this.parent().expect("its folder").join(format!("{DLL_PREFIX}dlpack_sums{DLL_SUFFIX}"));
    let said = numpy::run(include_str!("../sums.py"), &[library.to_str().expect("UTF-8")]);
    assert!(said.starts_with("error[CT111]: a view has other strides than the kernel was generated for\n"), "{said}");
    assert!(said.contains(": right\n"), "{said}");
}
