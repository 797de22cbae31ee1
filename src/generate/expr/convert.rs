//! Conversions between element types and the compute type, as C++.
//!
//! CUTLASS's own conversions to narrow floats are right from `float`: to nearest, ties to even, e4m3 and e5m2 saturating
//! for infinite values too, in hardware and on the host (`float8.h`, `convert_float_to_fp8`). From other types they are not
//! used: from `double` they round twice, by way of `float`, and `bfloat16_t` of an integer cuts digits off
//! (`bfloat16.h`).

use super::check::Compute;
use super::cxx;
use super::domain::saturation;
use super::helpers::{Helper, Helpers};
use super::write::{Piece, Precedence};
use crate::dtype::DType;

fn call(name: &str, x: &Piece) -> Piece {
    Piece::call(name, core::slice::from_ref(x))
}

/// Floats that CUTLASS converts from and to `float`.
fn is_small(dtype: DType) -> bool {
    matches!(dtype, DType::F16 | DType::Bf16 | DType::E4m3 | DType::E5m2)
}

/// Whether every value of the compute type is one of the element type.
fn holds(dtype: DType, compute: Compute) -> bool {
    match compute {
        Compute::F32 => matches!(dtype, DType::F32 | DType::F64),
        Compute::F64 => dtype == DType::F64,
        Compute::I32 => dtype == DType::I32,
    }
}

fn saturating(dtype: DType, x: &Piece, helpers: &mut Helpers) -> Piece {
    let name = helpers.call(Helper::SaturateCast);
    call(&format!("{name}<{}>", dtype.cxx()), x)
}

fn load(dtype: DType, x: &Piece, helpers: &mut Helpers) -> Piece {
    let compute = helpers.compute;
    if dtype.cxx() == compute.cxx() {
        return x.clone();
    }
    match (dtype, compute) {
        (DType::Bool, _) => call(compute.cxx(), &Piece::infix("!=", Precedence::Comparison, x, &Piece::atom("0"))),
        (DType::F64 | DType::F32, Compute::I32) => saturating(DType::I32, x, helpers),
        (_, Compute::I32) if is_small(dtype) => saturating(DType::I32, &call("float", x), helpers),
        _ => call(compute.cxx(), x),
    }
}

fn store(dtype: DType, x: &Piece, helpers: &mut Helpers) -> Piece {
    let compute = helpers.compute;
    let to = dtype.cxx();
    if to == compute.cxx() {
        return x.clone();
    }
    match (dtype, compute) {
        (DType::Bool, _) => {
            let zero = Piece::atom(cxx::literal(0.0, compute));
            call(to, &Piece::infix("!=", Precedence::Comparison, x, &zero))
        }
        (DType::I32 | DType::I16 | DType::I8 | DType::U8, Compute::F32 | Compute::F64) => saturating(dtype, x, helpers),
        (_, Compute::F64) if is_small(dtype) => call(to, &call(helpers.call(Helper::RoundToOdd), x)),
        // An integer beyond 2^24 is rounded once on its way to float; only bf16 holds values beyond to be rounded twice.
        (DType::Bf16, Compute::I32) => call(to, &call(helpers.call(Helper::RoundToOdd), &call("double", x))),
        (_, Compute::I32) if is_small(dtype) => call(to, &call("float", x)),
        _ => call(to, x),
    }
}

/// To the element type and back.
pub(super) fn cast(dtype: DType, x: &Piece, helpers: &mut Helpers) -> Piece {
    if holds(dtype, helpers.compute) {
        return x.clone();
    }
    if dtype == DType::Bool {
        let zero = Piece::atom(cxx::literal(0.0, helpers.compute));
        return call(helpers.compute.cxx(), &Piece::infix("!=", Precedence::Comparison, x, &zero));
    }
    let stored = store(dtype, x, helpers);
    load(dtype, &stored, helpers)
}

/// As [`cast`], but to the nearest finite value.
pub(super) fn saturate(dtype: DType, x: &Piece, helpers: &mut Helpers) -> Piece {
    let compute = helpers.compute;
    let Some((lowest, highest)) = saturation(dtype, compute) else {
        return cast(dtype, x, helpers);
    };
    let [lowest, highest] = [lowest, highest].map(|limit| Piece::atom(cxx::literal(limit, compute)));
    if compute == Compute::I32 {
        // A value in range is not changed by the cast.
        return Piece::call("cute::min", &[Piece::call("cute::max", &[x.clone(), lowest]), highest]);
    }
    let name = helpers.call(Helper::ClampFinite);
    cast(dtype, &Piece::call(name, &[x.clone(), highest]), helpers)
}

impl Helpers {
    /// The C++ expression that converts an element `x` of type `dtype` to the compute type. A Bool is a `uint8_t`.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::expr::{Compute, Helpers};
    ///
    /// let mut helpers = Helpers::new(Compute::F32);
    /// assert_eq!(helpers.load(DType::F32, "x"), "x");
    /// assert_eq!(helpers.load(DType::Bf16, "x"), "float(x)");
    /// ```
    pub fn load(&mut self, dtype: DType, x: &str) -> String {
        load(dtype, &Piece::atom(x), self).text
    }

    /// The C++ expression that converts `x` of the compute type to an element of type `dtype`. A Bool is a `uint8_t`.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::expr::{Compute, Helpers};
    ///
    /// let mut helpers = Helpers::new(Compute::F64);
    /// assert_eq!(helpers.store(DType::F16, "x"), "cute::half_t(round_to_odd(x))");
    /// ```
    pub fn store(&mut self, dtype: DType, x: &str) -> String {
        store(dtype, &Piece::atom(x), self).text
    }
}
