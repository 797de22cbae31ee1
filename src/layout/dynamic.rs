//! Composition over symbolic extents: what can be decided from what is known to divide them.

use super::core::{Flat, Layout};
use super::error::{Class, LayoutError, mul};
use super::int_tuple::{IntTuple, Leaves};
use super::leaf::{Leaf, nest_pieces};

/// `A o B` where A has symbolic extents, or B has. A step stays inside a symbolic mode where it is below the known
/// divisor of its extent; the last mode has no bound, so its extent need not be known at all.
pub(super) fn compose(a: &Layout, lhs: &Flat, b: &Layout) -> Result<Layout, LayoutError> {
    let mut shape = Leaves::new();
    let mut stride = Leaves::new();
    let mut span = vec![0i64; lhs.len()];
    for (t, e) in b.pairs() {
        let first = shape.len();
        if e.value == 0 {
            shape.push(t.bare());
            stride.push(e.bare());
        } else {
            for (s, d) in leaf(lhs, t, e, &mut span).ok_or_else(|| unknown(a, b))?? {
                shape.push(s.bare());
                stride.push(d.bare());
            }
        }
        nest_pieces(&mut shape[first..], t);
        nest_pieces(&mut stride[first..], t);
    }
    let carries = span[..lhs.len() - 1].iter().zip(lhs).any(|(span, (s, _))| *span >= at_least(*s));
    if carries {
        return Err(unknown(a, b));
    }
    Ok(Layout::from_parts(IntTuple::from_leaves(shape), IntTuple::from_leaves(stride)))
}

/// The least that an extent can be: itself, or its known divisor.
fn at_least(extent: Leaf) -> i64 {
    match extent.tag().as_symbol() {
        Some(symbol) => extent.value.saturating_mul(symbol.divisor()),
        None => extent.value,
    }
}

type Pieces = Vec<(Leaf, Leaf)>;

/// The pieces of one leaf of B, or `None` where what is known does not decide.
fn leaf(lhs: &Flat, extent: Leaf, stride: Leaf, span: &mut [i64]) -> Option<Result<Pieces, LayoutError>> {
    if stride.value < 0 || !stride.is_int() {
        return None;
    }
    let (last, before) = lhs.split_last()?;
    let mut pieces = Pieces::new();
    let (mut rest, mut step) = (extent, stride.value);
    for (k, (s, d)) in before.iter().enumerate() {
        let known = at_least(*s);
        if s.is_int() && step >= s.value {
            if step % s.value != 0 {
                return None;
            }
            step /= s.value;
            continue;
        }
        if !rest.is_int() || step >= known {
            return None;
        }
        let fits = (known - 1) / step + 1;
        if rest.value <= fits {
            span[k] = span[k].checked_add((rest.value - 1) * step)?;
            pieces.push((rest, d.scaled(step)?));
            return Some(Ok(pieces));
        }
        if !s.is_int() || known % step != 0 || rest.value % fits != 0 {
            return None;
        }
        span[k] = span[k].checked_add((fits - 1) * step)?;
        pieces.push((Leaf::int(fits), d.scaled(step)?));
        rest.value /= fits;
        step = 1;
    }
    let by = match mul(last.1.value, step) {
        Ok(value) => Leaf { value, ..last.1 },
        Err(error) => return Some(Err(error)),
    };
    pieces.push((rest, by));
    Some(Ok(pieces))
}

fn unknown(a: &Layout, b: &Layout) -> LayoutError {
    LayoutError::new("composition", Class::StrideKind)
        .operand("A", a)
        .operand("B", b)
        .found("steps of B that may or may not cross the end of a symbolic mode of A")
        .required("steps below the known divisor of each symbolic extent")
        .help("give the extent a divisor (`M{div=64}`), or tile each mode of A by itself")
}
