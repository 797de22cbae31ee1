//! [`TiledCopy`]: a copy atom repeated over more threads and more values.

use super::copy::CopyAtom;
use super::mma::Operand;
use super::tiled_mma::{TiledMma, keep, no_such_thread, pair};
use crate::layout::{
    Class, IntTuple, Layout, LayoutError, Shape, Tiler, coalesce, coalesce_by, composition, composition_by, filter,
    left_inverse, logical_product, make_layout, make_layout_tv, prepend, product_each, right_inverse, slice,
    slice_and_offset, upcast, zip, zipped_divide,
};

/// A copy atom tiled by a TV layout over a tile (CuTe's `TiledCopy<Atom, LayoutCopy_TV, ShapeTiler_MN>`).
///
/// The TV layout maps `(thread, value)` to the column-major index in the tile, and is meant in the atom's *reference*
/// (see [`CopyAtom`]). [`TiledCopy::layout_s_tv`] and [`TiledCopy::layout_d_tv`] are the same map for who reads and for
/// who receives.
///
/// Sources: `cute/atom/copy_atom.hpp`, `TiledCopy`, `ThrCopy`, `make_tiled_copy`.
///
/// ```
/// use cutemplate::atom::{CopyAtom, make_tiled_copy};
/// let atom = CopyAtom::named("UniversalCopy<uint128_t>", 16)?;
/// let copy = make_tiled_copy(&atom, &"(8,4):(4,1)".parse()?, &"(2,4):(4,1)".parse()?)?;
/// assert_eq!(copy.tiler().to_string(), "(16,16)");
/// assert_eq!(copy.layout_s_tv()?.to_string(), "((4,8),((4,2),1)):((64,2),((16,1),0))");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TiledCopy {
    atom: CopyAtom,
    layout_tv: Layout,
    tiler: Tiler,
}

/// A tiled copy from a thread layout and a value layout, `(m,n)` to thread and `(m,n)` to value (CuTe's
/// `make_tiled_copy`).
///
/// With `mn = raked_product(threads, values)`: the TV layout is `right_inverse(mn)` with the shape
/// `(size(threads),size(values))`, and the tiler is `product_each(shape(mn))`.
///
/// # Errors
/// The layouts have no such product, or they have too few threads or values for the atom.
pub fn make_tiled_copy(atom: &CopyAtom, threads: &Layout, values: &Layout) -> Result<TiledCopy, LayoutError> {
    let (tiler, layout_tv) = make_layout_tv(threads, values)?;
    TiledCopy::new(atom.clone(), layout_tv, tiler.into())
}

/// The tiled copy that fills an MMA's fragments of A (CuTe's `make_tiled_copy_A`).
///
/// # Errors
/// The MMA's TV layout is refused, or the atom wants more threads or values than the MMA has.
///
/// ```
/// use cutemplate::atom::{CopyAtom, MmaAtom, TiledMma, make_tiled_copy_a};
/// let mma = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
/// let mma = TiledMma::new(mma, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
/// let copy = make_tiled_copy_a(&CopyAtom::named("SM75_U32x4_LDSM_N", 16)?, &mma)?;
/// assert_eq!(copy.layout_s_tv()?.to_string(), "((16,2,2,2),(8,1)):((1,256,16,0),(32,0))");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn make_tiled_copy_a(atom: &CopyAtom, mma: &TiledMma) -> Result<TiledCopy, LayoutError> {
    make_tiled_copy_of(atom, mma, Operand::A)
}

/// The tiled copy that fills an MMA's fragments of B (CuTe's `make_tiled_copy_B`).
///
/// # Errors
/// As for [`make_tiled_copy_a`].
pub fn make_tiled_copy_b(atom: &CopyAtom, mma: &TiledMma) -> Result<TiledCopy, LayoutError> {
    make_tiled_copy_of(atom, mma, Operand::B)
}

/// The tiled copy that reads or writes an MMA's accumulators (CuTe's `make_tiled_copy_C`).
///
/// # Errors
/// As for [`make_tiled_copy_a`].
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
/// # Errors
/// The atom takes more values than a thread has; or a step of the derivation is refused.
///
/// ```
/// use cutemplate::atom::{CopyAtom, MmaAtom, TiledMma, make_tiled_copy_c_atom};
/// let mma = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
/// let mma = TiledMma::new(mma, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
/// let copy = make_tiled_copy_c_atom(&CopyAtom::named("UniversalCopy<uint64_t>", 32)?, &mma)?;
/// assert_eq!(copy.tiler().to_string(), "[(8,2):(1,16),(8,2):(2,1)]");
/// assert_eq!(copy.layout_tv().to_string(), "((4,8,2,2),2):((16,1,8,64),128)");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
pub fn make_tiled_copy_c_atom(atom: &CopyAtom, mma: &TiledMma) -> Result<TiledCopy, LayoutError> {
    let all = mma.layout_tv(Operand::C)?;
    let size = |layout: &Layout, mode| layout.mode(mode).map_or(1, |mode| mode.size());
    let (threads, values, taken) = (size(&all, 0), size(&all, 1), size(atom.src(), 1));
    if taken > values {
        return Err(LayoutError::new("make_tiled_copy_C_atom", Class::Argument)
            .operand("atom", &atom.name())
            .operand("layoutC_TV", &all)
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
/// # Errors
/// An offset is not one of the data; the data's layout has no left inverse; or a step of the derivation is refused.
///
/// ```
/// use cutemplate::atom::{CopyAtom, make_cotiled_copy};
/// let atom = CopyAtom::named("UniversalCopy<uint128_t>", 16)?;
/// // 128 threads with eight neighbours each, in rows of 64 halves that are 72 apart.
/// let copy = make_cotiled_copy(&atom, &"((8,16),8):((8,72),1)".parse()?, &"(32,64):(72,1)".parse()?)?;
/// assert_eq!(copy.tiler().to_string(), "[16:1,(8,8):(8,1)]");
/// assert_eq!(copy.layout_tv().to_string(), "((8,16),8):((16,1),128)");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
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
        return Err(LayoutError::new("make_cotiled_copy", Class::Argument)
            .operand("atom_tv", atom_tv)
            .operand("data", data)
            .found(format!("values at {}, of which the data has {reached}", values(atom_tv)))
            .required("offsets that the data's layout has")
            .cute("refuses: The memory pointed to by AtomTVLayout does not exist in the DataLayout."));
    }
    of_touched(atom, &product_each(data.shape())?, &in_data).map_err(context)
}

/// The tiled copy of what a TV layout into a shape touches: the tiler picks of each mode the coordinates that occur.
fn of_touched(atom: &CopyAtom, shape: &Shape, tv: &Layout) -> Result<TiledCopy, LayoutError> {
    let along = |mode: usize| -> Result<Tiler, LayoutError> {
        let stride = IntTuple::tuple((0..shape.rank()).map(|i| IntTuple::int(i64::from(i == mode))))?;
        Ok(filter(&composition(&Layout::new(shape.clone(), stride)?, tv)?)?.into())
    };
    let tiler = Tiler::Tuple((0..shape.rank()).map(along).collect::<Result<_, _>>()?);
    let tile = composition_by(&make_layout(shape)?, &tiler)?;
    TiledCopy::new(atom.clone(), composition(&left_inverse(&tile)?, tv)?, tiler)
}

/// The tiled copy whose layout is another's source layout (CuTe's `make_tiled_copy_S`).
///
/// # Errors
/// As for [`TiledCopy::new`].
pub fn make_tiled_copy_s(atom: &CopyAtom, copy: &TiledCopy) -> Result<TiledCopy, LayoutError> {
    TiledCopy::new(atom.clone(), copy.layout_s_tv()?, copy.tiler.clone())
}

/// The tiled copy whose layout is another's destination layout (CuTe's `make_tiled_copy_D`).
///
/// # Errors
/// As for [`TiledCopy::new`].
pub fn make_tiled_copy_d(atom: &CopyAtom, copy: &TiledCopy) -> Result<TiledCopy, LayoutError> {
    TiledCopy::new(atom.clone(), copy.layout_d_tv()?, copy.tiler.clone())
}

impl TiledCopy {
    /// A tiled copy from a TV layout and its tile (CuTe's `make_tiled_copy_impl`).
    ///
    /// # Errors
    /// The TV layout is not of rank 2, or its threads or values are not a multiple of the atom's.
    pub fn new(atom: CopyAtom, layout_tv: Layout, tiler: Tiler) -> Result<TiledCopy, LayoutError> {
        let refuse = |because: &'static str, required: String| {
            LayoutError::new("TiledCopy", Class::Argument)
                .operand("atom", &atom.name())
                .operand("layout_tv", &layout_tv)
                .found(layout_tv.shape().to_string())
                .required(required)
                .because(because)
        };
        let (Some(threads), Some(values), 2) = (layout_tv.mode(0), layout_tv.mode(1), layout_tv.rank()) else {
            return Err(refuse("its modes are the threads and the values", "a layout of rank 2".into()));
        };
        let (atom_threads, atom_values) = atom.counts();
        if threads.size() % atom_threads != 0 {
            let required = format!("a multiple of {atom_threads} threads");
            return Err(refuse("TiledCopy uses too few thrs for selected CopyAtom", required));
        }
        if values.size() % atom_values != 0 {
            let required = format!("a multiple of {atom_values} values of {} bits", atom.value_bits());
            return Err(refuse("TiledCopy uses too few vals for selected CopyAtom", required)
                .help("give each thread more values, or take a narrower instruction"));
        }
        Ok(TiledCopy { atom, layout_tv, tiler })
    }

    /// The atom.
    #[must_use]
    pub fn atom(&self) -> &CopyAtom {
        &self.atom
    }

    /// `(thread, value)` to the column-major index in the tile, as the atom's reference counts them.
    #[must_use]
    pub fn layout_tv(&self) -> &Layout {
        &self.layout_tv
    }

    /// What all threads with all values cover (CuTe's `Tiler_MN`): a shape, or for each mode the layout that picks from it.
    #[must_use]
    pub fn tiler(&self) -> &Tiler {
        &self.tiler
    }

    /// The extents of the tile that all threads with all values cover.
    ///
    /// # Errors
    /// A product does not fit in 64 bits.
    pub fn tile(&self) -> Result<Shape, LayoutError> {
        product_each(&shape_of(&self.tiler)?)
    }

    /// The number of threads.
    #[must_use]
    pub fn threads(&self) -> i64 {
        self.layout_tv.mode(0).map_or(1, |threads| threads.size())
    }

    /// A layout tiled for who reads: `(M,N,...)` to `(Thr,(FrgV,FrgX),(RestM,RestN,...))` (CuTe's `tidfrg_S`).
    ///
    /// # Errors
    /// The layout cannot be divided by the tile, or does not compose with the TV layout.
    pub fn tidfrg_s(&self, layout: &Layout) -> Result<Layout, LayoutError> {
        self.tile_to_thrfrg(&zipped_divide(layout, &self.tiler)?, self.atom.src())
    }

    /// A layout tiled for who receives (CuTe's `tidfrg_D`).
    ///
    /// # Errors
    /// As for [`TiledCopy::tidfrg_s`].
    pub fn tidfrg_d(&self, layout: &Layout) -> Result<Layout, LayoutError> {
        self.tile_to_thrfrg(&zipped_divide(layout, &self.tiler)?, self.atom.dst())
    }

    /// `((TileM,TileN,...),(RestM,RestN,...))` to `(Thr,(FrgV,FrgX),(RestM,RestN,...))` (CuTe's `tile2thrfrg`).
    fn tile_to_thrfrg(&self, tiled: &Layout, target: &Layout) -> Result<Layout, LayoutError> {
        let (threads, values) = self.atom.counts();
        // ((atom thread, atom value),(rest thread, rest value)) to the tile
        let atoms = zipped_divide(&self.layout_tv, &Tiler::Shape(pair(threads, values)?))?;
        let from_target = composition(&right_inverse(self.atom.reference())?, target)?;
        let moved = composition_by(&atoms, &Tiler::Tuple(vec![from_target.into(), keep()]))?;
        // ((thread, rest thread),(value, rest value)) to the tile
        let profile: IntTuple = "(1,(1,1))".parse()?;
        let thr_val = coalesce_by(&zip(&moved)?, &profile)?;
        let all = composition_by(tiled, &Tiler::Tuple(vec![thr_val.into(), keep()]))?;
        slice(&"((_,_),_)".parse()?, &all)
    }

    /// `(thread, value)` to the column-major index in the tile, for who reads (CuTe's `get_layoutS_TV`).
    ///
    /// # Errors
    /// The atom's map does not compose with the TV layout.
    pub fn layout_s_tv(&self) -> Result<Layout, LayoutError> {
        self.of_tile(self.atom.src())
    }

    /// `(thread, value)` to the column-major index in the tile, for who receives (CuTe's `get_layoutD_TV`).
    ///
    /// # Errors
    /// As for [`TiledCopy::layout_s_tv`].
    pub fn layout_d_tv(&self) -> Result<Layout, LayoutError> {
        self.of_tile(self.atom.dst())
    }

    fn of_tile(&self, target: &Layout) -> Result<Layout, LayoutError> {
        let tile = make_layout(&IntTuple::tuple([shape_of(&self.tiler)?, IntTuple::int(1)])?)?;
        slice(&"(_,_,0)".parse()?, &self.tile_to_thrfrg(&tile, target)?)
    }

    /// What one thread reads: a layout of shape `((FrgV,FrgX),RestM,RestN,...)` and its offset (CuTe's `partition_S`).
    ///
    /// # Errors
    /// As for [`TiledCopy::tidfrg_s`], or the thread is not one of [`TiledCopy::threads`].
    pub fn partition_s(&self, thread: i64, layout: &Layout) -> Result<(Layout, i64), LayoutError> {
        self.of_thread(thread, layout.rank(), &self.tidfrg_s(layout)?)
    }

    /// What one thread receives (CuTe's `partition_D`).
    ///
    /// # Errors
    /// As for [`TiledCopy::partition_s`].
    pub fn partition_d(&self, thread: i64, layout: &Layout) -> Result<(Layout, i64), LayoutError> {
        self.of_thread(thread, layout.rank(), &self.tidfrg_d(layout)?)
    }

    fn of_thread(&self, thread: i64, rank: usize, tiled: &Layout) -> Result<(Layout, i64), LayoutError> {
        if !(0..self.threads()).contains(&thread) {
            return Err(no_such_thread("ThrCopy", thread, self.threads()));
        }
        let rest = IntTuple::tuple((0..rank).map(|_| IntTuple::any()))?;
        let coord = IntTuple::tuple([IntTuple::int(thread), IntTuple::any(), rest])?;
        let (own, offset) = slice_and_offset(&coord, tiled)?;
        Ok((own, offset.size()?))
    }

    /// A fragment laid out by one partitioning, seen with the modes of this copy (CuTe's `retile_S` and `retile_D`,
    /// which are the same).
    ///
    /// # Errors
    /// The fragment does not have the values of this copy in its first mode.
    pub fn retile(&self, fragment: &Layout) -> Result<Layout, LayoutError> {
        let values = fragment.mode(0).map_or(1, |first| first.size());
        let inverse = right_inverse(&self.layout_tv)?;
        let in_tile = composition(&inverse, &make_layout(&shape_of(&self.tiler)?)?)?;
        let factor = self.threads().checked_mul(values);
        let factor = factor.ok_or_else(|| LayoutError::overflow("retile", fragment.to_string()))?;
        let order = upcast(&in_tile, factor)?;
        let all = make_layout(&IntTuple::int(values))?;
        let by_value = logical_product(&all, &right_inverse(&order)?.into())?;
        let atom = make_layout(&IntTuple::int(self.atom.counts().1))?;
        let by_atom = zipped_divide(&by_value, &atom.into())?;
        let tile = product_each(order.shape())?;
        let tile = prepend(&make_layout(&tile)?, tile.rank() + 1, &make_layout(&IntTuple::int(values))?)?;
        let tiled = zipped_divide(fragment, &Tiler::Shape(tile.shape().clone()))?;
        let moved = composition_by(&tiled, &Tiler::Tuple(vec![by_atom.into(), keep()]))?;
        let rest = (1..fragment.rank()).map(|_| IntTuple::any());
        let rest = IntTuple::tuple(std::iter::once(IntTuple::int(0)).chain(rest))?;
        slice(&IntTuple::tuple([IntTuple::any(), rest])?, &moved)
    }
}

/// The shape that a tiler covers (CuTe's `shape` of a tuple of layouts).
fn shape_of(tiler: &Tiler) -> Result<Shape, LayoutError> {
    match tiler {
        Tiler::Layout(layout) => Ok(layout.shape().clone()),
        Tiler::Shape(shape) => Ok(shape.clone()),
        Tiler::Tuple(entries) => IntTuple::tuple(entries.iter().map(shape_of).collect::<Result<Vec<_>, _>>()?),
    }
}
