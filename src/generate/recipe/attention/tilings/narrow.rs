//! K and V of 8 bits, in the text for sm_80: they lie in shared memory as they are, and become 16 bits in registers.

use super::{ALIGN, ATOM, VECTOR, apart, threads};
use crate::atom::Operand;
use crate::layout::{IntTuple, Layout, LayoutError, Tiler};
use crate::recipe::attention::Attention;
use crate::tiling::{CopyOp, Engine, Place, SmemTensor, TileCopy, Tiling};
use crate::units::Bytes;

/// Columns of V and O that are multiplied at once: four atoms, whose elements of a thread are four neighbours of each key.
pub(super) const COLUMNS: i64 = 32;

/// Bytes of K and V that a thread loads at once.
const LOADED: Bytes = Bytes(4);

/// Elements of a row of Q that lie together: a thread's two of eight, and two of the other eight, are four neighbours of K.
const TOGETHER: i64 = 2;

fn extent(extent: i64) -> Tiler {
    Tiler::Shape(IntTuple::int(extent))
}

fn layout<const MODES: usize>(extents: [i64; MODES], strides: [i64; MODES]) -> Result<Layout, LayoutError> {
    Layout::new(IntTuple::tuple(extents.map(IntTuple::int))?, IntTuple::tuple(strides.map(IntTuple::int))?)
}

/// The tiling of 16 bits with K and V of 8: a thread multiplies the elements that it loads, four at a time.
pub(super) fn narrow(recipe: &Attention, mut tiling: Tiling, warps: i64) -> Result<Tiling, LayoutError> {
    let (vector, all) = (recipe.vector_kv(), 32 * warps);
    let [m, dv, n] = tiling.tile;
    let [d, _] = recipe.padded();
    // Along D, elements 4t to 4t + 3 are those of lane t of four, whose own are 2t, 2t + 1, 2t + 8, 2t + 9.
    let along_d = Tiler::Layout(layout([2, 4, 2], [1, 4, 2])?);
    // Along DV, column g of atom a is column 4g + a.
    let along_dv = Tiler::Layout(layout([8, COLUMNS / 8], [COLUMNS / 8, 1])?);
    let permutations = [[extent(ATOM * warps), extent(ATOM), along_d], [extent(ATOM * warps), along_dv, extent(ATOM)]];
    for (mma, permutation) in tiling.mmas.iter_mut().zip(permutations) {
        mma.permutation = Some(Tiler::Tuple(permutation.into()));
    }
    for tensor in &mut tiling.smem {
        let (names, lives) = ([tensor.name, tensor.modes], tensor.lives);
        let [_, _, stages] = tensor.extents();
        *tensor = match tensor.name {
            "Q" => {
                // The elements that ldmatrix takes from a row lie side by side.
                let row = layout([TOGETHER, 2, 4, d / ATOM], [1, VECTOR, TOGETHER, ATOM])?;
                let of = [Layout::mode_of(m, d + VECTOR)?, row, Layout::mode_of(1, m * (d + VECTOR))?];
                SmemTensor { layout: Layout::from_modes(of)?, ..apart(names, tensor.dtype, [m, d, 1], 1)? }
            }
            "K" => apart(names, recipe.dtype_kv(), [n, d, stages], 1)?,
            "V" => apart(names, recipe.dtype_kv(), [dv, n, stages], 0)?,
            _ => tensor.clone(),
        };
        tensor.lives = lives;
    }
    for copy in &mut tiling.copies {
        change(recipe, copy, [d, vector, all])?;
    }
    Ok(tiling)
}

fn change(recipe: &Attention, copy: &mut TileCopy, [d, vector, all]: [i64; 3]) -> Result<(), LayoutError> {
    let [x, y] = copy.tile;
    let of = |op, [threads, values]: [Layout; 2]| Engine::Threads { op, threads, values };
    let load = |[row, elements]: [i64; 2], along_rows| {
        Ok::<_, LayoutError>(of(CopyOp::CpAsync(ALIGN), threads([row, elements, vector], all, along_rows)?))
    };
    match (copy.name, copy.from, copy.to) {
        ("CopyQ", ..) => copy.engine = of(CopyOp::CpAsync(LOADED), threads([x, d, TOGETHER], all, true)?),
        ("CopyK", ..) => copy.engine = load([x, y], true)?,
        ("CopyV", ..) => copy.engine = load([y, x], false)?,
        (_, Place::Shared("K" | "V"), _) => copy.engine = Engine::Fragments(CopyOp::Universal(LOADED)),
        // A thread's columns of O are no neighbours in pairs.
        (_, Place::Fragments(_, Operand::C), Place::Shared(_)) => {
            copy.engine = Engine::Fragments(CopyOp::Universal(recipe.dtype.bytes()));
        }
        _ => {}
    }
    if matches!(copy.from, Place::Shared("K" | "V")) || matches!(copy.to, Place::Shared("K" | "V")) {
        copy.dtype = recipe.dtype_kv();
    }
    Ok(())
}
