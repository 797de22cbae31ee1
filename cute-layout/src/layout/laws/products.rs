//! The laws of products whose modes pair a mode of the block with one of the tiler.

use super::{Judged, Violation, add, broken, defined, each, mul};
use crate::layout::{IntTuple, Layout, LayoutError, complement};

/// `R((b0, t0), (b1, t1), ..) == B(b0, b1, ..) + C(T(t0, t1, ..))`, with `C` as in [`logical_product`](super::logical_product).
///
/// # Errors
/// Where the law does not hold.
pub fn blocked_product(block: &Layout, tiler: &Layout, result: &Layout) -> Judged {
    const LAW: &str = "R((b0, t0), ..) = B(b0, ..) + C(T(t0, ..)), C = complement(B)";
    Pairs::new(block, tiler, [0, 1])?.judge(LAW, result)
}

/// `R((t0, b0), (t1, b1), ..) == B(b0, b1, ..) + C(T(t0, t1, ..))`, with `C` as in [`logical_product`](super::logical_product).
///
/// # Errors
/// Where the law does not hold.
pub fn raked_product(block: &Layout, tiler: &Layout, result: &Layout) -> Judged {
    const LAW: &str = "R((t0, b0), ..) = B(b0, ..) + C(T(t0, ..)), C = complement(B)";
    Pairs::new(block, tiler, [1, 0])?.judge(LAW, result)
}

/// `raked_product(threads, values)` at `tv(t, v)` is `t + v * size(threads)`.
///
/// # Errors
/// Where the law does not hold.
pub fn make_layout_tv(threads: &Layout, values: &Layout, tv: &Layout) -> Judged {
    const LAW: &str = "raked_product(threads, values)(tv(t, v)) = t + v * size(threads)";
    let sizes: Vec<i64> = tv.modes().map(|mode| mode.size()).collect();
    if sizes != [threads.size(), values.size()] {
        return broken(LAW, format!("modes of {sizes:?}, not {:?}", [threads.size(), values.size()]));
    }
    let tile = Pairs::new(threads, values, [1, 0])?;
    each(LAW, tv.size(), |i| {
        let at = defined(tv, i)?;
        let found = tile.value(at)?;
        Ok((found != i).then(|| format!("index {i}: element {at} is {found}")))
    })
}

/// The definition of a product.
struct Pairs<'a> {
    /// The block, and the tiler.
    halves: [&'a Layout; 2],
    /// Where the copies of the block begin.
    copies: Layout,
    /// The sizes of each mode of block and tiler.
    sizes: Vec<[i64; 2]>,
    /// Which half the first, and which the second index of a pair belongs to.
    order: [usize; 2],
}

impl<'a> Pairs<'a> {
    fn new(block: &'a Layout, tiler: &'a Layout, order: [usize; 2]) -> Result<Self, Violation> {
        let reach = mul(block.size(), tiler.cosize()?)?;
        let halves = [block, tiler];
        let size = |of: &Layout, mode: usize| of.modes().nth(mode).map_or(1, |mode| mode.size());
        let sizes = (0..block.rank().max(tiler.rank())).map(|mode| halves.map(|of| size(of, mode))).collect();
        Ok(Pairs { halves, copies: complement(block, &IntTuple::int(reach))?, sizes, order })
    }

    /// The value at an index.
    fn value(&self, index: i64) -> Result<i64, LayoutError> {
        let (mut rest, mut at, mut step) = (index, [0, 0], [1, 1]);
        for sizes in &self.sizes {
            for half in self.order {
                at[half] += rest % sizes[half] * step[half];
                step[half] *= sizes[half];
                rest /= sizes[half];
            }
        }
        let [block, tiler] = self.halves;
        add(defined(block, at[0])?, self.copies.at(defined(tiler, at[1])?)?)
    }

    fn judge(&self, law: &'static str, result: &Layout) -> Judged {
        let (found, required): (Vec<i64>, Vec<i64>) =
            (result.modes().map(|mode| mode.size()).collect(), self.sizes.iter().map(|[a, b]| a * b).collect());
        if found != required {
            return broken(law, format!("modes of {found:?}, not {required:?}"));
        }
        each(law, result.size(), |i| {
            let (left, right) = (defined(result, i)?, self.value(i)?);
            Ok((left != right).then(|| format!("index {i}: {left}, not {right}")))
        })
    }
}
