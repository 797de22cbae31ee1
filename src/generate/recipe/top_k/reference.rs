//! What the results of a row must be: there is one answer.

use core::cmp::Ordering;

use crate::reference::{At, Each};

/// NaN first, then larger numbers, then lower columns.
fn order(a: &(f64, i64), b: &(f64, i64)) -> Ordering {
    let numbers = || b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal);
    b.0.is_nan().cmp(&a.0.is_nan()).then_with(numbers).then(a.1.cmp(&b.1))
}

/// The element and the column that a coordinate of the results has.
fn found(at: &At<'_>) -> (f64, i64) {
    let ([m, place], [_, n]) = (at.coordinate(), at.shape(0)) else { return (f64::NAN, -1) };
    let mut row: Vec<(f64, i64)> = (0..*n).map(|column| (at.input(0, &[*m, column]), column)).collect();
    match usize::try_from(*place) {
        Ok(place) if place < row.len() => *row.select_nth_unstable_by(place, order).1,
        _ => (f64::NAN, -1),
    }
}

/// Values and columns, each exactly.
pub(super) fn top_k() -> Each {
    Each::new().output(|at| (found(at).0, 0.0)).output(|at| (found(at).1 as f64, 0.0))
}
