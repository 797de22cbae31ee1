//! Scalar expressions, traced from Rust closures or read from text, written as C++ and evaluated on the host.
//!
//! ```
//! use cutemplate::expr::{Compute, Function, Helpers};
//!
//! let f = Function::binary(|a, b| (a * b).relu());
//! assert_eq!(f.to_string(), "relu(a * b)");
//!
//! let checked = f.check(Compute::F32).expect("every operation exists in f32");
//! let mut helpers = Helpers::new(Compute::F32);
//! assert_eq!(
//!     checked.functor("Op", &mut helpers),
//!     "struct Op {\n  CUTE_DEVICE float operator()(float a, float b) const { return relu(__fmul_rn(a, b)); }\n};\n"
//! );
//! ```
//!
//! # Conversions
//!
//! A function is evaluated in one type, [`Compute`]. Elements are converted to it when they are loaded, and from it when
//! they are stored; [`cast`](Expr::cast) does both. The rules are those of Rust's `as`:
//!
//! - float to float rounds to nearest, ties to even; f16 and bf16 overflow to inf; e4m3 and e5m2 become their largest
//!   finite value instead, for infinite values too (PTX ISA, `cvt.rn.satfinite`). NaN stays NaN.
//! - float to integer cuts the fraction off and saturates; NaN gives 0.
//! - integer to float rounds to nearest, ties to even.
//! - integer to integer wraps.
//! - to Bool: 1 where `x != 0`, so for NaN too, else 0. From Bool: 0 for a zero byte, 1 for any other.
//!
//! Each is one rounding: f64 is not rounded to f32 on its way to f16.
//!
//! # Arithmetic
//!
//! Every operation is rounded by itself, and the C++ says so. Products, quotients and roots are intrinsics
//! (`__fmul_rn`, `__fdiv_rn`, `__fsqrt_rn`), which mean the same under any `-fmad` and `-prec-sqrt`. No text is immune
//! to `-ftz=true`, which flushes subnormal numbers in intrinsics too. `-use_fast_math` replaces `expf` by an
//! approximation. So a kernel that is compiled with either does not link. `-prec-div=false` does not link either: it is
//! the trace that `-use_fast_math -ftz=false` leaves. Integers wrap. NaN's sign and payload are not part of a value.

mod accept;
mod check;
mod convert;
mod cxx;
mod domain;
mod emptied;
mod error;
mod eval;
mod function;
mod helpers;
mod interval;
mod names;
mod op;
mod parse;
mod print;
mod ranges;
mod real;
pub mod round;
pub mod rows;
mod tape;
mod terms;
mod write;

pub use accept::Accept;
pub use check::{Checked, Compute};
pub use emptied::Emptied;
pub use error::{ExprError, ExprErrorKind};
pub use eval::{Bounds, Evaluator, Outputs};
pub use function::{Function, MAX_INPUTS, MAX_OUTPUTS, MAX_SCALARS};
pub use helpers::Helpers;
pub(crate) use names::free as free_names;
pub use names::row_signatures as row_functions;
pub use names::signatures as functions;
pub use tape::{Cond, Expr, Operand, Tape};
pub use terms::{Term, Terms};
