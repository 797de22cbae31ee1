//! The offline reorder of the weights, as a layout.

use crate::diagnostic::debug_as_display;
use crate::layout::{Layout, LayoutError};

/// Rows of B whose weights lie together.
pub(super) const ROWS: i64 = 64;
/// Columns of B whose weights lie together: K of an MMA.
pub(super) const COLUMNS: i64 = 16;
/// Weights of an i32.
pub(super) const PER_WORD: i64 = 8;

/// The offline reorder: (n,k) of 64 x 16 weights to their place among them, in nibbles.
///
/// A lane of a warp has 32 of them in 16 bytes: the fragments of B of 8 MMAs of 16x8x16, where column c of MMA j is row
/// `c % 2 + 2 * j + 16 * (c / 2)` of the 64. A nibble and the one 16 bits above it are neighbours along K, so that shift and mask make a
/// pair of 16-bit numbers of them.
///
/// | mode | extents | places in nibbles |
/// |---|---|---|
/// | n | c % 2, j % 2, j / 2, c / 2 | 4 lanes, 2 nibbles, a word, 8 lanes |
/// | k | even or odd, lane % 4, upper half | 4 nibbles, a lane, a nibble |
pub(super) fn order() -> Result<Layout, LayoutError> {
    "((2,2,4,4),(2,4,2)):((128,2,8,256),(4,32,1))".parse()
}

/// Weights that cannot be packed.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// Not as many as N and K say.
    #[error(
        "found {found} numbers, required {required} for N = {n}, K = {k}, because W has the weights of an (N,K) matrix; help: pass rows without gaps"
    )]
    Count {
        /// How many there are.
        found: usize,
        /// How many there have to be.
        required: usize,
        /// N.
        n: usize,
        /// K.
        k: usize,
    },
    /// An extent that the kernel does not have.
    #[error(
        "found {name} = {found}, required a multiple of {multiple}, because {multiple} coordinates are packed together; help: pad the weights with zeros"
    )]
    Extent {
        /// N or K.
        name: &'static str,
        /// The extent.
        found: usize,
        /// What it has to be a multiple of.
        multiple: usize,
    },
    /// A number that has more than four bits.
    #[error(
        "found {found} at ({n},{k}), required 0 to 15, because a weight has four bits; help: shift signed weights by 8"
    )]
    Weight {
        /// The number.
        found: u8,
        /// Its row.
        n: usize,
        /// Its column.
        k: usize,
    },
}

debug_as_display!(PackError);

/// The place of each weight of 64 x 16, rows first, in nibbles.
fn places() -> Vec<usize> {
    let order = order().and_then(|order| order.values());
    let order = order.unwrap_or_else(|error| unreachable!("a constant is a layout: {error}"));
    order.into_iter().map(|place| usize::try_from(place).unwrap_or_default()).collect()
}

fn extents(n: usize, k: usize) -> Result<(), PackError> {
    let check = |name, found: usize, multiple: usize| match found % multiple {
        0 => Ok(()),
        _ => Err(PackError::Extent { name, found, multiple }),
    };
    check("N", n, ROWS as usize)?;
    check("K", k, 2 * COLUMNS as usize)
}

/// Calls `of` for each weight of an (N,K) matrix: its number in the matrix, rows without gaps, and its place in W, in nibbles.
fn each<E>(n: usize, k: usize, mut of: impl FnMut(usize, usize) -> Result<(), E>) -> Result<(), E> {
    let (places, rows, columns) = (places(), ROWS as usize, COLUMNS as usize);
    for at in 0..n * k {
        let (row, column) = (at / k, at % k);
        let block = row / rows * (k / columns) + column / columns;
        of(at, block * rows * columns + places[row % rows + column % columns * rows])?;
    }
    Ok(())
}

/// Packs the weights of B `(N,K)`, a number from 0 to 15 each, rows without gaps: W `(N,K/8)` of a launch of [`W4a16`](super::W4a16).
///
/// W is a matrix in name only: its i32 lie in the order in which the kernel reads them, 64 rows at a time.
///
/// # Errors
/// Another count than N * K, extents that are not multiples of 64 and of 32, a number of more than four bits.
///
/// ```
/// use cutemplate::recipe::w4a16::{pack, unpack};
///
/// let weights: Vec<u8> = (0..64 * 32).map(|i| (i * 7 % 16) as u8).collect();
/// let w = pack(&weights, 64, 32)?;
/// assert_eq!(w.len(), 64 * 32 / 8);
/// assert_eq!(unpack(&w, 64, 32)?, weights);
/// # Ok::<(), cutemplate::recipe::w4a16::PackError>(())
/// ```
pub fn pack(weights: &[u8], n: usize, k: usize) -> Result<Vec<i32>, PackError> {
    extents(n, k)?;
    let (found, required) = (weights.len(), n.saturating_mul(k));
    if found != required {
        return Err(PackError::Count { found, required, n, k });
    }
    let mut words = vec![0_u32; required / PER_WORD as usize];
    each(n, k, |at, place| {
        let weight = weights[at];
        if weight > 15 {
            return Err(PackError::Weight { found: weight, n: at / k, k: at % k });
        }
        words[place / PER_WORD as usize] |= u32::from(weight) << (4 * (place % PER_WORD as usize));
        Ok(())
    })?;
    Ok(words.into_iter().map(u32::cast_signed).collect())
}

/// The weights of a packed W, as [`pack`] takes them.
///
/// # Errors
/// Another count than N * K / 8, extents that are not multiples of 64 and of 32.
pub fn unpack(words: &[i32], n: usize, k: usize) -> Result<Vec<u8>, PackError> {
    extents(n, k)?;
    let (found, required) = (words.len(), n.saturating_mul(k) / PER_WORD as usize);
    if found != required {
        return Err(PackError::Count { found, required, n, k });
    }
    let mut weights = vec![0; n * k];
    each(n, k, |at, place| {
        let word = words[place / PER_WORD as usize].cast_unsigned();
        weights[at] = (word >> (4 * (place % PER_WORD as usize)) & 15) as u8;
        Ok::<(), PackError>(())
    })?;
    Ok(weights)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atom::Operand;
    use crate::layout::{IntTuple, make_layout};
    use crate::recipe::W4a16;
    use crate::recipe::product::Extents;
    use crate::recipe::w4a16::tilings::mma;

    /// Each weight has a place of its own: a layout onto all nibbles of a block.
    #[test]
    fn the_order_is_a_bijection() {
        let mut places = places();
        places.sort_unstable();
        assert!(places.into_iter().eq(0..1024));
    }

    /// What the text's shifts take from a lane's words is what the MMA multiplies in that lane: register `b` of MMA `j` are the nibbles
    /// `i = 2 * (j % 2) + b` and `i + 4` of word `j / 2`.
    #[test]
    fn a_lane_has_the_fragments_of_its_mmas() {
        let recipe = W4a16 { tile: Extents([16, 128, 64]), ..W4a16::default() };
        let tiled = mma(&recipe).expect("an MMA").tiled().expect("a tiled MMA");
        let tile = make_layout(&IntTuple::tuple([128, 16].map(IntTuple::int)).expect("two modes")).expect("a layout");
        let values = tiled.thread_values(Operand::B, &tile).expect("values of a thread");
        let places = places();
        assert_eq!(values.size(), 64 * 32);
        for thread in 0..64 {
            for value in 0..32 {
                let at = values.at(thread + 64 * value).expect("an element");
                let (n, k) = (at % 128, at / 128);
                // Even or odd k, register, MMA.
                let (odd, b, j) = (value % 2, value / 2 % 2, value / 4);
                let nibble = thread % 32 * 32 + j / 2 * 8 + 2 * (j % 2) + b + 4 * odd;
                assert_eq!(n / 64, thread / 32, "a warp has 64 rows");
                assert_eq!(
                    places[(n % 64 + k * 64) as usize] as i64,
                    nibble,
                    "thread {thread}, value {value}: ({n},{k})"
                );
            }
        }
    }

    #[test]
    fn what_cannot_be_packed_is_refused() {
        assert_eq!(
            pack(&[0; 32 * 32], 32, 32).expect_err("32 rows").to_string(),
            "found N = 32, required a multiple of 64, because 64 coordinates are packed together; help: pad the weights with zeros"
        );
        assert!(matches!(pack(&[0; 64 * 16], 64, 16), Err(PackError::Extent { name: "K", .. })));
        assert!(matches!(pack(&[0; 64 * 31], 64, 32), Err(PackError::Count { required: 2048, .. })));
        assert!(matches!(unpack(&[0; 64], 64, 32), Err(PackError::Count { required: 256, .. })));
        let mut weights = vec![15; 64 * 32];
        weights[33] = 16;
        assert!(matches!(pack(&weights, 64, 32), Err(PackError::Weight { found: 16, n: 1, k: 1 })));
    }
}
