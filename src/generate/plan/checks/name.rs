//! The name of a kernel.

use super::Checks;
use crate::diagnostic::Code;
use crate::reserved;

/// What C++ calls by itself.
const RESERVED: &[&str] = &["main"];

/// Functions of CUDA's `math_functions.h` with C linkage, of doubles; those of floats have an `f` behind. An entry of that name would be
/// another overload of them, and C has none.
const FUNCTIONS: &str = "acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 erf erfc \
     erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ilogb j0 j1 jn ldexp \
     lgamma llrint llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter norm norm3d norm4d \
     normcdf normcdfinv pow rcbrt remainder remquo rhypot rint rnorm rnorm3d rnorm4d round rsqrt scalbln scalbn sin \
     sincos sincospi sinh sinpi sqrt tan tanh tgamma trunc y0 y1 yn";

/// The name becomes a namespace in C++ and a module in Rust.
fn is_reserved(name: &str) -> bool {
    let is_function = |name: &str| FUNCTIONS.split(' ').any(|function| function == name);
    is_function(name)
        || name.strip_suffix('f').is_some_and(is_function)
        || RESERVED.contains(&name)
        || reserved::in_cxx(name)
        || reserved::in_rust(name)
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
        "a letter, then letters, digits and single underscores, lower case, at most 64, no keyword, no function of CUDA".into(),
        "the name becomes a C++ namespace, an `extern \"C\"` function, a Rust module and the stem of three files",
        "a name such as vector_add".into(),
    );
}
