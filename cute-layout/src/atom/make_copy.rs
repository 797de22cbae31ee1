//! Making tiled copies: from thread and value layouts, from offsets, for an MMA's operands, after another copy.

use super::copy::CopyAtom;
use super::mma::Operand;
use super::tiled_copy::TiledCopy;
use super::tiled_mma::{TiledMma, pair};
use crate::layout::{
    Class, IntTuple, Layout, LayoutError, Shape, Tiler, coalesce, composition, composition_by, filter, left_inverse,
    make_layout, make_layout_tv, product_each,
};

/// A tiled copy from a thread layout and a value layout, `(m,n)` to thread and `(m,n)` to value (CuTe's
/// `make_tiled_copy`).
///
/// With `mn = raked_product(threads, values)`: the TV layout is `right_inverse(mn)` with the shape
/// `(size(threads),size(values))`, and the tiler is `product_each(shape(mn))`.
///
/// *Law.* That of [`make_layout_tv`]: `mn(layout_tv(t, v)) == t + v * size(threads)`.
///
/// *Source.* `cute/atom/copy_atom.hpp`, `make_tiled_copy`.
///
/// # Errors
/// The layouts have no such product, or they have too few threads or values for the atom.
///
/// ```
/// use cute_layout::atom::{CopyAtom, make_tiled_copy};
/// let atom = CopyAtom::named("UniversalCopy<uint128_t>", 32)?;
/// let copy = make_tiled_copy(&atom, &"(32,8):(1,32)".parse()?, &"(4,1):(1,1)".parse()?)?;
/// assert_eq!((copy.tiler().to_string(), copy.threads()), ("(128,8)".into(), 256));
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_tiled_copy(atom: &CopyAtom, threads: &Layout, values: &Layout) -> Result<TiledCopy, LayoutError> {
    let (tiler, layout_tv) = make_layout_tv(threads, values)?;
    TiledCopy::new(atom.clone(), layout_tv, tiler.into())
}

/// The tiled copy that fills an MMA's fragments of A (CuTe's `make_tiled_copy_A`).
///
/// *Law.* `layout_tv() == mma.layout_tv(Operand::A)`, over the tile `(M,K)`.
///
/// *Source.* `cute/atom/copy_atom.hpp`, `make_tiled_copy_A`.
///
/// # Errors
/// The MMA's TV layout is refused, or the atom wants more threads or values than the MMA has.
///
/// ```
/// use cute_layout::atom::{CopyAtom, MmaAtom, TiledMma, make_tiled_copy_a};
/// let mma = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
/// let mma = TiledMma::new(mma, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
/// let copy = make_tiled_copy_a(&CopyAtom::named("SM75_U32x4_LDSM_N", 16)?, &mma)?;
/// assert_eq!(copy.layout_s_tv()?.to_string(), "((16,2,2,2),(8,1)):((1,256,16,0),(32,0))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_tiled_copy_a(atom: &CopyAtom, mma: &TiledMma) -> Result<TiledCopy, LayoutError> {
    make_tiled_copy_of(atom, mma, Operand::A)
}

/// The tiled copy that fills an MMA's fragments of B (CuTe's `make_tiled_copy_B`).
///
/// *Law.* `layout_tv() == mma.layout_tv(Operand::B)`, over the tile `(N,K)`.
///
/// *Source.* `cute/atom/copy_atom.hpp`, `make_tiled_copy_B`.
///
/// # Errors
/// As for [`make_tiled_copy_a`].
///
/// ```
/// use cute_layout::atom::{CopyAtom, MmaAtom, TiledMma, make_tiled_copy_b};
/// let mma = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
/// let mma = TiledMma::new(mma, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
/// let copy = make_tiled_copy_b(&CopyAtom::named("SM75_U32x2_LDSM_N", 16)?, &mma)?;
/// assert_eq!(copy.tiler().to_string(), "(32,16)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_tiled_copy_b(atom: &CopyAtom, mma: &TiledMma) -> Result<TiledCopy, LayoutError> {
    make_tiled_copy_of(atom, mma, Operand::B)
}

/// The tiled copy that reads or writes an MMA's accumulators (CuTe's `make_tiled_copy_C`).
///
/// *Law.* `layout_tv() == mma.layout_tv(Operand::C)`, over the tile `(M,N)`.
///
/// *Source.* `cute/atom/copy_atom.hpp`, `make_tiled_copy_C`.
///
/// # Errors
/// As for [`make_tiled_copy_a`].
///
/// ```
/// use cute_layout::atom::{CopyAtom, MmaAtom, Operand, TiledMma, make_tiled_copy_c};
/// let mma = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
/// let mma = TiledMma::new(mma, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
/// let copy = make_tiled_copy_c(&CopyAtom::named("UniversalCopy<uint64_t>", 32)?, &mma)?;
/// assert_eq!(*copy.layout_tv(), mma.layout_tv(Operand::C)?);
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_tiled_copy_c(atom: &CopyAtom, mma: &TiledMma) -> Result<TiledCopy, LayoutError> {
    make_tiled_copy_of(atom, mma, Operand::C)
}

fn make_tiled_copy_of(atom: &CopyAtom, mma: &TiledMma, operand: Operand) -> Result<TiledCopy, LayoutError> {
    let (rows, columns) = mma.tile(operand)?;
    TiledCopy::new(atom.clone(), mma.layout_tv(operand)?, pair(rows, columns)?.into())
}

/// The smallest tiled copy that can retile an MMA's accumulators: each thread moves the first values of C that one atom
/// takes (CuTe's `make_tiled_copy_C_atom`). For epilogues that store C in parts.
///
/// *Law.* With `tv` the first values of the MMA's C: `tile(layout_tv(t, v)) == tv(t, v)`, where `tile` is the column-major
/// tile of the MMA, tiled by the result's tiler, which picks the rows and columns that `tv` touches.
///
/// *Source.* `cute/atom/copy_atom.hpp`, `make_tiled_copy_C_atom`.
///
/// # Errors
/// The atom takes more values than a thread has; or a step of the derivation is refused.
///
/// ```
/// use cute_layout::atom::{CopyAtom, MmaAtom, TiledMma, make_tiled_copy_c_atom};
/// let mma = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
/// let mma = TiledMma::new(mma, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
/// let copy = make_tiled_copy_c_atom(&CopyAtom::named("UniversalCopy<uint64_t>", 32)?, &mma)?;
/// assert_eq!(copy.tiler().to_string(), "[(8,2):(1,16),(8,2):(2,1)]");
/// assert_eq!(copy.layout_tv().to_string(), "((4,8,2,2),2):((16,1,8,64),128)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_tiled_copy_c_atom(atom: &CopyAtom, mma: &TiledMma) -> Result<TiledCopy, LayoutError> {
    let all = mma.layout_tv(Operand::C)?;
    let size = |layout: &Layout, mode| layout.mode(mode).map_or(1, |mode| mode.size());
    let (threads, values, taken) = (size(&all, 0), size(&all, 1), size(atom.src(), 1));
    if taken > values {
        return Err(LayoutError::new("make_tiled_copy_C_atom", Class::Argument)
            .of(&[("atom", &atom.name()), ("layoutC_TV", &all)])
            .found(format!("{taken} values of the atom, {values} of a thread"))
            .required("an atom that takes at most the values of a thread"));
    }
    let first = composition(&all, &make_layout(&pair(threads, taken)?)?)?;
    let (rows, columns) = mma.tile(Operand::C)?;
    of_touched(atom, &pair(rows, columns)?, &first)
}

/// A tiled copy from offsets: `(thread, value)` to an offset in memory, and the data's layout, which says the coordinate
/// that lies there (CuTe's `make_cotiled_copy`). For copies to which the width of a vector matters and not which elements a
/// thread gets.
///
/// *Law.* `data(tile(layout_tv(t, v))) == atom_tv(t, v)`, where `tile` is the data's shape, tiled by the result's tiler.
///
/// *Source.* `cute/atom/copy_atom.hpp`, `make_cotiled_copy`.
///
/// # Errors
/// An offset is not one of the data; the data's layout has no left inverse; or a step of the derivation is refused.
///
/// ```
/// use cute_layout::atom::{CopyAtom, make_cotiled_copy};
/// let atom = CopyAtom::named("UniversalCopy<uint128_t>", 16)?;
/// // 128 threads with eight neighbours each, in rows of 64 halves that are 72 apart.
/// let copy = make_cotiled_copy(&atom, &"((8,16),8):((8,72),1)".parse()?, &"(32,64):(72,1)".parse()?)?;
/// assert_eq!(copy.tiler().to_string(), "[16:1,(8,8):(8,1)]");
/// assert_eq!(copy.layout_tv().to_string(), "((8,16),8):((16,1),128)");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
pub fn make_cotiled_copy(atom: &CopyAtom, atom_tv: &Layout, data: &Layout) -> Result<TiledCopy, LayoutError> {
    let context = |e: LayoutError| e.within("make_cotiled_copy", &[("atom_tv", atom_tv), ("data", data)]);
    // Past the ends: one more mode, which stays where it is.
    let unbounded = |layout: Layout| Layout::from_modes([layout, Layout::unit()]);
    let inverse = unbounded(left_inverse(data).map_err(context)?)?;
    let in_data = composition(&inverse, atom_tv).map_err(context)?;
    let values = |layout: &Layout| layout.mode(1).unwrap_or_else(Layout::unit);
    let reached = composition(&unbounded(data.clone())?, &values(&in_data)).map_err(context)?;
    if coalesce(&reached)? != coalesce(&values(atom_tv))? {
        return Err(LayoutError::on("make_cotiled_copy", Class::Argument, &[("atom_tv", atom_tv), ("data", data)])
            .found(format!("values at {}; the data has {reached} of them", values(atom_tv)))
            .required("offsets that the data's layout has")
            .cute("refuses: The memory pointed to by AtomTVLayout does not exist in the DataLayout."));
    }
    of_touched(atom, &product_each(data.shape())?, &in_data).map_err(context)
}

/// The tiled copy of the elements that a TV layout into a shape touches: for each mode the tiler picks the coordinates
/// that occur.
fn of_touched(atom: &CopyAtom, shape: &Shape, tv: &Layout) -> Result<TiledCopy, LayoutError> {
    let along = |mode: usize| -> Result<Tiler, LayoutError> {
        let stride = IntTuple::tuple((0..shape.rank()).map(|i| IntTuple::int(i64::from(i == mode))))?;
        Ok(filter(&composition(&Layout::new(shape.clone(), stride)?, tv)?)?.into())
    };
    let tiler = Tiler::Tuple((0..shape.rank()).map(along).collect::<Result<_, _>>()?);
    let tile = composition_by(&make_layout(shape)?, &tiler)?;
    TiledCopy::new(atom.clone(), composition(&left_inverse(&tile)?, tv)?, tiler)
}
