//! The laws of the operations, executable: each takes operands and a result and says where the law does not hold.
//!
//! These are definitions, checked at every coordinate by evaluating layouts; they share nothing with the code that
//! computes results. They look at up to [`MOST_CHECKED`] coordinates and refuse to judge larger domains.

mod products;

use std::collections::BTreeSet;
use std::fmt;

use super::composed::AnyLayout;
use super::coord::idx2crd;
use super::core::Layout;
use super::error::{LayoutError, add, mul};
use super::int_tuple::IntTuple;
use super::shape::compatible;
pub use products::{blocked_product, make_layout_tv, raked_product};

/// The most coordinates that a law is checked at.
pub const MOST_CHECKED: i64 = 1 << 18;

/// Where a law does not hold.
#[derive(Clone, PartialEq, Eq)]
pub struct Violation {
    /// The law, as an equation.
    pub law: &'static str,
    /// Where, and both sides.
    pub at: String,
}

/// As `Display`: `fn main() -> Result<(), _>` and `unwrap` show a message and not a struct.
impl fmt::Debug for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} does not hold: {}", self.law, self.at)
    }
}

impl std::error::Error for Violation {}

impl From<LayoutError> for Violation {
    fn from(error: LayoutError) -> Violation {
        Violation { law: "every value fits in 64 bits", at: error.to_string() }
    }
}

/// A law holds, or where it does not.
pub type Judged = Result<(), Violation>;

fn broken(law: &'static str, at: impl Into<String>) -> Judged {
    Err(Violation { law, at: at.into() })
}

/// `count` values of a function, or a violation that the domain is too large.
fn each(law: &'static str, count: i64, mut holds: impl FnMut(i64) -> Result<Option<String>, LayoutError>) -> Judged {
    if count > MOST_CHECKED {
        return broken(law, format!("{count} coordinates are more than {MOST_CHECKED}, and none was looked at"));
    }
    for i in 0..count {
        if let Some(at) = holds(i)? {
            return broken(law, at);
        }
    }
    Ok(())
}

/// The layout's value at the `i`-th coordinate by the definition: the coordinate's digits times the strides.
fn defined(layout: &Layout, i: i64) -> Result<i64, LayoutError> {
    let coord = idx2crd(&IntTuple::int(i), layout.shape())?;
    let (coord, stride) = (coord.ints().unwrap_or_default(), layout.stride().ints().unwrap_or_default());
    coord.iter().zip(stride).try_fold(0, |sum, (c, d)| add(sum, mul(*c, d)?))
}

/// Two layouts of the same size with the same value at every index.
///
/// # Errors
/// Where they differ.
pub fn same_function(law: &'static str, a: &Layout, b: &Layout) -> Judged {
    if a.size() != b.size() {
        return broken(law, format!("sizes {} and {}", a.size(), b.size()));
    }
    each(law, a.size(), |i| {
        let (x, y) = (defined(a, i)?, defined(b, i)?);
        Ok((x != y).then(|| format!("index {i}: {x} and {y}")))
    })
}

/// `coalesce(L)(i) == L(i)`, in at most one level, with no mode of extent 1.
///
/// # Errors
/// Where the law does not hold.
pub fn coalesce(layout: &Layout, result: &Layout) -> Judged {
    const LAW: &str = "coalesce(L)(i) = L(i), flat";
    if result.depth() > 1 {
        return broken(LAW, format!("depth {}", result.depth()));
    }
    same_function(LAW, layout, result)
}

/// `R(c) == A(B(c))`, with `compatible(B, R)`.
///
/// # Errors
/// Where the law does not hold.
pub fn composition(a: &Layout, b: &Layout, result: &Layout) -> Judged {
    const LAW: &str = "R(c) = A(B(c)), compatible(B, R)";
    if !compatible(b.shape(), result.shape())? {
        return broken(LAW, format!("{} is not compatible with {}", b.shape(), result.shape()));
    }
    each(LAW, b.size(), |i| {
        let (left, right) = (defined(result, i)?, a.at(defined(b, i)?)?);
        Ok((left != right).then(|| format!("index {i}: R = {left}, A(B) = {right}")))
    })
}

/// `R(i) == L(i)` at every index below the shape's size, with `compatible(S, R)`.
///
/// # Errors
/// Where the law does not hold.
pub fn with_shape(layout: &Layout, shape: &IntTuple, result: &Layout) -> Judged {
    const LAW: &str = "with_shape(L, S)(i) = L(i), compatible(S, R)";
    if !compatible(shape, result.shape())? {
        return broken(LAW, format!("{shape} is not compatible with {}", result.shape()));
    }
    each(LAW, result.size(), |i| {
        let (left, right) = (defined(result, i)?, defined(layout, i)?);
        Ok((left != right).then(|| format!("index {i}: {left}, not {right}")))
    })
}

/// `C` increases, its values but 0 are not values of `L`, and `(L, C)` is injective up to the zero strides of `L`.
///
/// # Errors
/// Where the law does not hold.
pub fn complement(layout: &Layout, result: &Layout) -> Judged {
    const LAW: &str = "complement(L) increases, meets L in 0 only, and (L, C) is injective";
    if layout.size() > MOST_CHECKED {
        return broken(LAW, "more coordinates than are looked at");
    }
    let mut image = BTreeSet::new();
    for i in 0..layout.size() {
        image.insert(defined(layout, i)?);
    }
    if (image.len() as i64).saturating_mul(result.size()) > MOST_CHECKED {
        return broken(LAW, "more coordinates than are looked at");
    }
    let mut before = -1;
    let mut sums = BTreeSet::new();
    for j in 0..result.size() {
        let step = defined(result, j)?;
        if step <= before {
            return broken(LAW, format!("C({j}) = {step} after {before}"));
        }
        before = step;
        if j > 0 && image.contains(&step) {
            return broken(LAW, format!("C({j}) = {step} is a value of L"));
        }
        for value in &image {
            if !sums.insert(value + step) {
                return broken(LAW, format!("{value} + C({j}) = {} twice", value + step));
            }
        }
    }
    Ok(())
}

/// Where `L` is admissible for complement in `size`, `(L, C)` covers `0 .. size`.
///
/// # Errors
/// Where the law does not hold.
pub fn complement_covers(layout: &Layout, size: i64, result: &Layout) -> Judged {
    const LAW: &str = "(L, complement(L, n)) covers 0 .. n where L is admissible";
    if super::properties::is_admissible_for_complement(layout, size).is_err() {
        return Ok(());
    }
    if layout.size().saturating_mul(result.size()) > MOST_CHECKED {
        return broken(LAW, "more coordinates than are looked at");
    }
    let mut covered = BTreeSet::new();
    for i in 0..layout.size() {
        for j in 0..result.size() {
            covered.insert(defined(layout, i)? + defined(result, j)?);
        }
    }
    if covered.len() as i64 != size || covered.last() != Some(&(size - 1)) {
        return broken(LAW, format!("{} values up to {:?}, not {size}", covered.len(), covered.last()));
    }
    Ok(())
}

/// `L(R(i)) == i` for every `i` below the size of `R`.
///
/// # Errors
/// Where the law does not hold.
pub fn right_inverse(layout: &Layout, result: &Layout) -> Judged {
    each("L(right_inverse(L)(i)) = i", result.size(), |i| {
        let back = layout.at(defined(result, i)?)?;
        Ok((back != i).then(|| format!("index {i}: {back}")))
    })
}

/// `L(R(L(i))) == L(i)` for every `i` below the size of `L`.
///
/// # Errors
/// Where the law does not hold.
pub fn left_inverse(layout: &Layout, result: &Layout) -> Judged {
    each("L(left_inverse(L)(L(i))) = L(i)", layout.size(), |i| {
        let value = defined(layout, i)?;
        let back = layout.at(result.at(value)?)?;
        Ok((back != value).then(|| format!("index {i}: {back}, not {value}")))
    })
}

/// `L(N(i)) == 0`, and the size of `N` is the product of the extents of stride 0.
///
/// # Errors
/// Where the law does not hold.
pub fn nullspace(layout: &Layout, result: &Layout) -> Judged {
    const LAW: &str = "L(nullspace(L)(i)) = 0, of the size of the zero strides";
    let zeros: i64 = layout.pairs().filter(|(_, d)| d.value == 0).map(|(s, _)| s.value).product();
    if zeros != result.size() {
        return broken(LAW, format!("size {}, not {zeros}", result.size()));
    }
    each(LAW, result.size(), |i| {
        let value = layout.at(defined(result, i)?)?;
        Ok((value != 0).then(|| format!("index {i}: {value}")))
    })
}

/// `result(i) == L((T, C)(i))` with `C` the complement of the tiler in the layout's coalesced shape.
///
/// # Errors
/// Where the law does not hold.
pub fn logical_divide(layout: &Layout, tiler: &Layout, result: &Layout) -> Judged {
    let target = super::coalesce::coalesce(layout)?;
    let rest = super::complement::complement(tiler, target.shape())?;
    composition(layout, &Layout::from_modes([tiler.clone(), rest])?, result)
}

/// `P(i, 0) == B(i)` and `P(0, j) == C(T(j))` with `C` the complement of the block; the copies do not meet where block and
/// tiler are injective.
///
/// # Errors
/// Where the law does not hold.
pub fn logical_product(block: &Layout, tiler: &Layout, result: &Layout) -> Judged {
    const LAW: &str = "logical_product(B, T) = (B, complement(B) o T)";
    let (Some(first), Some(second), 2) = (result.mode(0), result.mode(1), result.rank()) else {
        return broken(LAW, format!("rank {}", result.rank()));
    };
    if first != *block {
        return broken(LAW, format!("mode 0 is {first}"));
    }
    let reach = mul(block.size(), tiler.cosize()?)?;
    let copies = super::complement::complement(block, &IntTuple::int(reach))?;
    composition(&copies, tiler, &second)
}

/// The first values of both layouts count up together.
///
/// # Errors
/// Where the law does not hold.
pub fn max_common_layout(a: &Layout, b: &Layout, result: &Layout) -> Judged {
    each("a(R(i)) = i and b(R(i)) = i", result.size(), |i| {
        let at = defined(result, i)?;
        let (x, y) = (a.at(at)?, b.at(at)?);
        Ok((x != i || y != i).then(|| format!("index {i}: {x} and {y}")))
    })
}

/// The same bytes, block by block, in elements of another size. `old / new = down / up`: an old element is `down`
/// units, a new one `up`. Profiles are congruent. Both domains are cut into the same number of blocks along each mode,
/// as many as both extents allow. Blocks at the same coordinate cover the same units, each equally often.
///
/// # Errors
/// Where the law does not hold.
pub fn recast(layout: &Layout, up: i64, down: i64, result: &Layout) -> Judged {
    let (domains, values) = ((layout, result), (|i| defined(layout, i), |i| defined(result, i)));
    same_bytes(domains, up, down, values.0, values.1)
}

/// [`recast`] where the layouts may be swizzled.
///
/// # Errors
/// Where the law does not hold.
pub fn recast_any(layout: &AnyLayout, up: i64, down: i64, result: &AnyLayout) -> Judged {
    same_bytes((layout.domain()?, result.domain()?), up, down, |i| layout.at(i), |i| result.at(i))
}

fn same_bytes(
    (old, new): (&Layout, &Layout),
    up: i64,
    down: i64,
    old_at: impl Fn(i64) -> Result<i64, LayoutError>,
    new_at: impl Fn(i64) -> Result<i64, LayoutError>,
) -> Judged {
    const LAW: &str = "recast(L) covers the bytes of L, block by block";
    if !old.shape().congruent(new.shape()) {
        return broken(LAW, format!("{} and {} are not congruent", old.shape(), new.shape()));
    }
    let (before, after) = (mul(old.size(), down)?, mul(new.size(), up)?);
    if before != after {
        return broken(LAW, format!("{before} and {after} units"));
    }
    if before > MOST_CHECKED {
        return broken(LAW, "more coordinates than are looked at");
    }
    let (old_extents, new_extents) = (old.shape().ints().unwrap_or_default(), new.shape().ints().unwrap_or_default());
    let counts: Vec<i64> =
        old_extents.iter().zip(&new_extents).map(|(o, n)| super::inverse::greatest_common_divisor(*o, *n)).collect();
    let old_blocks = blocks(&old_extents, &counts, down, old_at)?;
    let new_blocks = blocks(&new_extents, &counts, up, new_at)?;
    for (block, (left, right)) in old_blocks.iter().zip(&new_blocks).enumerate() {
        if left != right {
            return broken(LAW, format!("block {block}: units {} and {}", listed(left), listed(right)));
        }
    }
    Ok(())
}

/// The units that each block covers, in order: of `counts` blocks along each mode, with `width` units in an element.
fn blocks(
    extents: &[i64],
    counts: &[i64],
    width: i64,
    at: impl Fn(i64) -> Result<i64, LayoutError>,
) -> Result<Vec<Vec<i64>>, LayoutError> {
    let mut blocks = vec![Vec::new(); counts.iter().product::<i64>() as usize];
    for i in 0..extents.iter().product() {
        let (mut rest, mut block, mut weight) = (i, 0, 1);
        for (extent, count) in extents.iter().zip(counts) {
            block += rest % extent / (extent / count) * weight;
            weight *= count;
            rest /= extent;
        }
        let first = mul(at(i)?, width)?;
        for unit in 0..width {
            blocks[block as usize].push(add(first, unit)?);
        }
    }
    blocks.iter_mut().for_each(|block| block.sort_unstable());
    Ok(blocks)
}

/// The first numbers of a list.
fn listed(numbers: &[i64]) -> String {
    const MOST: usize = 16;
    let more = if numbers.len() > MOST { ", .." } else { "" };
    let first: Vec<String> = numbers.iter().take(MOST).map(i64::to_string).collect();
    format!("{}{more}", first.join(", "))
}

/// The values are `0 .. size`, each once.
///
/// # Errors
/// Where the law does not hold.
pub fn compact(result: &Layout) -> Judged {
    let mut image = BTreeSet::new();
    each("the image of a compact layout is 0 .. size", result.size(), |i| {
        let value = defined(result, i)?;
        let fits = (0..result.size()).contains(&value) && image.insert(value);
        Ok((!fits).then(|| format!("index {i}: {value}")))
    })
}

/// `crd2idx(idx2crd(i, S), S) == i`, also past the size, and the coordinate is congruent with the shape.
///
/// # Errors
/// Where the law does not hold.
pub fn idx2crd_inverts(shape: &IntTuple, count: i64) -> Judged {
    each("crd2idx(idx2crd(i, S), S) = i", count, |i| {
        let coord = idx2crd(&IntTuple::int(i), shape)?;
        let back = super::coord::crd2idx_shape(&coord, shape)?;
        Ok((back != i || !coord.congruent(shape)).then(|| format!("index {i}: {coord}, {back}")))
    })
}
