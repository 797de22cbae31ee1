//! Arithmetic of leaves that are integers or symbolic: exact, and decided only where the answer is the same for all
//! values of the names.

use std::collections::BTreeMap;
use std::fmt;

use super::error::{Class, LayoutError, mul};
use super::int_tuple::IntTuple;
use super::leaf::Leaf;
use super::symbol::{Atom, Term, without};

/// The product of two leaves, one of which may be a basis element where the other is an integer.
pub(crate) fn times(a: Leaf, b: Leaf) -> Result<Leaf, LayoutError> {
    if let (Some(x), Some(y)) = (Term::of(a), Term::of(b)) {
        return x.times(&y)?.leaf();
    }
    match (a.is_int(), b.is_int()) {
        (true, false) => Ok(Leaf { value: mul(a.value, b.value)?, ..b.bare() }),
        (false, true) => Ok(Leaf { value: mul(a.value, b.value)?, ..a.bare() }),
        _ => Err(LayoutError::new("multiply", Class::StrideKind)
            .found(format!("{} * {}", IntTuple::leaf(a), IntTuple::leaf(b)))
            .required("integers or symbols; or an integer times a basis element")),
    }
}

/// The product of leaves.
pub(crate) fn product(leaves: impl IntoIterator<Item = Leaf>) -> Result<Leaf, LayoutError> {
    leaves.into_iter().try_fold(Leaf::int(1), times)
}

/// The quotient, where `b` divides `a` for all values of the names.
pub(crate) fn quotient(a: Leaf, b: Leaf) -> Option<Leaf> {
    Term::of(a)?.divided(&Term::of(b)?)?.leaf().ok()
}

/// The least `q` with `q * b >= a`, for positive numbers, or an error that names the unknown relation.
pub(crate) fn ceil_div(a: Leaf, b: Leaf) -> Result<Leaf, LayoutError> {
    if let Some(exact) = quotient(a, b) {
        return Ok(exact);
    }
    if at_most(a, b) && at_most(Leaf::int(1), a) {
        return Ok(Leaf::int(1));
    }
    match Term::of(a) {
        Some(term) if b.value > 0 && (b.is_int() || a.value > 0) => match Term::of(b) {
            Some(by) => term.ceil_div(&by)?.leaf(),
            None => Err(not_known(a, b)),
        },
        _ => Err(not_known(a, b)),
    }
}

fn not_known(a: Leaf, b: Leaf) -> LayoutError {
    unknown("ceil_div", format!("{} / {}", IntTuple::leaf(a), IntTuple::leaf(b)))
        .required("a positive divisor, of integers or symbols")
}

/// Whether `a <= b` for all values of the names.
pub(crate) fn at_most(a: Leaf, b: Leaf) -> bool {
    apart(a, b, 0)
}

/// Whether `a < b` for all values of the names.
pub(crate) fn below(a: Leaf, b: Leaf) -> bool {
    apart(a, b, 1)
}

/// Whether `a + by <= b` for all values of the names.
fn apart(a: Leaf, b: Leaf, by: i64) -> bool {
    if a.is_int() && b.is_int() {
        return i128::from(a.value) + i128::from(by) <= i128::from(b.value);
    }
    let mut difference = Sum::of(-by);
    difference.add(&[b], 1).is_ok() && difference.add(&[a], -1).is_ok() && difference.never_negative()
}

/// Whether two numbers are the same, or are not, for all values of the names; `None` where that depends.
pub(crate) fn equal(a: Leaf, b: Leaf) -> Option<bool> {
    if a.same(b) { Some(true) } else { (below(a, b) || below(b, a)).then_some(false) }
}

/// Whether an extent is at least 2 for all values of the names.
pub(crate) fn never_one(extent: Leaf) -> bool {
    below(Leaf::int(1), extent)
}

/// The magnitude of an integer or a symbolic number.
pub(crate) fn magnitude(leaf: Leaf) -> Result<Leaf, LayoutError> {
    Ok(Leaf { value: super::error::abs(leaf.value)?, ..leaf })
}

/// An error for what depends on the values of names.
pub(crate) fn unknown(op: &'static str, found: String) -> LayoutError {
    LayoutError::new(op, Class::StrideKind)
        .found(found)
        .because("the answer depends on the numbers that the names stand for")
        .help("state what divides a name (`M{div=64}`), or use numbers instead of names")
}

/// The most terms of a sum whose sign is looked for.
const MOST_TERMS: usize = 64;

/// A sum of terms, for sizes of images and for differences.
#[derive(Clone, Default, PartialEq, Debug)]
pub(crate) struct Sum(BTreeMap<Vec<Atom>, i64>);

impl Sum {
    pub(crate) fn of(value: i64) -> Sum {
        Sum(BTreeMap::from([(Vec::new(), value)]))
    }

    /// Adds `sign` times a product.
    pub(crate) fn add(&mut self, factors: &[Leaf], sign: i64) -> Result<(), LayoutError> {
        let mut term = Term::int(sign);
        for leaf in factors {
            let Some(factor) = Term::of(*leaf) else {
                return Err(unknown("add", IntTuple::leaf(*leaf).to_string()).required("integers or symbols"));
            };
            term = term.times(&factor)?;
        }
        let entry = self.0.entry(term.atoms).or_default();
        *entry = super::error::add(*entry, term.factor)?;
        Ok(())
    }

    /// The sum as one leaf, where it is one term.
    pub(crate) fn leaf(&self) -> Option<Leaf> {
        let mut terms = self.0.iter().filter(|(_, factor)| **factor != 0);
        let Some((atoms, factor)) = terms.next() else { return Some(Leaf::int(0)) };
        if terms.next().is_some() {
            return None;
        }
        Term { factor: *factor, atoms: atoms.clone() }.leaf().ok()
    }

    /// Whether the sum is provably at least 0 for all values of the names. Positive terms that are multiples of a
    /// negative term must cover it. Such a term counts as the negative term times the least value of its other factors.
    pub(crate) fn never_negative(&self) -> bool {
        if self.0.len() > MOST_TERMS {
            return false;
        }
        let mut left: Vec<(&Vec<Atom>, i64)> = self.0.iter().filter(|(_, f)| **f > 0).map(|(a, f)| (a, *f)).collect();
        for (atoms, factor) in self.0.iter().filter(|(_, factor)| **factor < 0) {
            let Some(mut missing) = factor.checked_neg() else { return false };
            for (larger, have) in &mut left {
                let Some(rest) = without(larger, atoms) else { continue };
                let worth = Term { factor: 1, atoms: rest }.least();
                let taken = (*have).min((missing - 1) / worth + 1);
                *have -= taken;
                missing = missing.saturating_sub(taken.saturating_mul(worth)).max(0);
                if missing == 0 {
                    break;
                }
            }
            if missing > 0 {
                return false;
            }
        }
        true
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut first = true;
        for (atoms, factor) in self.0.iter().rev().filter(|(_, factor)| **factor != 0) {
            let sign = match (first, *factor < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            let term = Term { factor: factor.saturating_abs(), atoms: atoms.clone() };
            write!(f, "{sign}{term}")?;
            first = false;
        }
        if first { f.write_str("0") } else { Ok(()) }
    }
}
