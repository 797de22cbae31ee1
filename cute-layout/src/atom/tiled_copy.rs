//! [`TiledCopy`]: a copy atom repeated over more threads and more values.

use super::copy::CopyAtom;
use super::tiled_mma::{keep, no_such_thread, pair};
use crate::layout::{
    Class, IntTuple, Layout, LayoutError, Shape, Tiler, coalesce_by, composition, composition_by, element_numbers,
    logical_product, make_layout, prepend, product_each, right_inverse, slice, slice_and_offset, zip, zipped_divide,
};

/// A copy atom tiled by a TV layout over a tile (CuTe's `TiledCopy<Atom, LayoutCopy_TV, ShapeTiler_MN>`).
///
/// The TV layout maps `(thread, value)` to the column-major index in the tile, in the atom's *reference* (see
/// [`CopyAtom`]). [`TiledCopy::layout_s_tv`] is the same map for the threads that read, [`TiledCopy::layout_d_tv`] for
/// the threads that receive.
///
/// Sources: `cute/atom/copy_atom.hpp`, `TiledCopy`, `ThrCopy`, `make_tiled_copy`.
///
/// ```
/// use cute_layout::atom::{CopyAtom, make_tiled_copy};
/// let atom = CopyAtom::named("UniversalCopy<uint128_t>", 16)?;
/// let copy = make_tiled_copy(&atom, &"(8,4):(4,1)".parse()?, &"(2,4):(4,1)".parse()?)?;
/// assert_eq!(copy.tiler().to_string(), "(16,16)");
/// assert_eq!(copy.layout_s_tv()?.to_string(), "((4,8),((4,2),1)):((64,2),((16,1),0))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TiledCopy {
    atom: CopyAtom,
    layout_tv: Layout,
    tiler: Tiler,
}

impl TiledCopy {
    /// A tiled copy from a TV layout and its tile (CuTe's `make_tiled_copy_impl`).
    ///
    /// *Law.* Threads and values of the TV layout are multiples of the atom's.
    ///
    /// *Source.* `cute/atom/copy_atom.hpp`, `make_tiled_copy_impl`.
    ///
    /// # Errors
    /// The TV layout is not of rank 2, or its threads or values are not a multiple of the atom's.
    ///
    /// ```
    /// use cute_layout::atom::{CopyAtom, TiledCopy};
    /// use cute_layout::layout::IntTuple;
    /// let atom = CopyAtom::named("UniversalCopy<uint64_t>", 16)?;
    /// let copy = TiledCopy::new(atom, "((32,4),4):((4,128),1)".parse()?, IntTuple::from((4, 128)).into())?;
    /// assert_eq!(copy.threads(), 128);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn new(atom: CopyAtom, layout_tv: Layout, tiler: Tiler) -> Result<TiledCopy, LayoutError> {
        let refuse = |because: &'static str, required: String| {
            LayoutError::on("TiledCopy", Class::Argument, &[("atom", &atom.name()), ("layout_tv", &layout_tv)])
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

    /// The elements that all threads with all values cover (CuTe's `Tiler_MN`): a shape, or for each mode the layout
    /// that picks from it.
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

    /// A layout tiled for the threads that read: `(M,N,...)` to `(Thr,(FrgV,FrgX),(RestM,RestN,...))` (CuTe's `tidfrg_S`).
    ///
    /// *Law.* `result(t, (v, x), r) == layout(m, n)` for the element that thread `t` reads as value `v` of the atom `x`
    /// in tile `r`.
    ///
    /// *Source.* `cute/atom/copy_atom.hpp`, `TiledCopy::tidfrg_S`.
    ///
    /// # Errors
    /// The layout cannot be divided by the tile, or does not compose with the TV layout.
    ///
    /// ```
    /// use cute_layout::atom::{CopyAtom, make_tiled_copy};
    /// let atom = CopyAtom::named("UniversalCopy<uint128_t>", 16)?;
    /// let copy = make_tiled_copy(&atom, &"(16,8):(8,1)".parse()?, &"(1,8):(0,1)".parse()?)?;   // a tile of (16,64)
    /// let tiled = copy.tidfrg_s(&"(32,128):(128,1)".parse()?)?;
    /// assert_eq!(tiled.to_string(), "((8,16),(8,1),(2,2)):((8,128),(1,0),(2048,64))");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn tidfrg_s(&self, layout: &Layout) -> Result<Layout, LayoutError> {
        self.tile_to_thrfrg(&zipped_divide(layout, &self.tiler)?, self.atom.src())
    }

    /// A layout tiled for the threads that receive (CuTe's `tidfrg_D`).
    ///
    /// *Law.* As for [`TiledCopy::tidfrg_s`], for the thread that receives the element.
    ///
    /// *Source.* `cute/atom/copy_atom.hpp`, `TiledCopy::tidfrg_D`.
    ///
    /// # Errors
    /// As for [`TiledCopy::tidfrg_s`].
    ///
    /// ```
    /// use cute_layout::atom::{CopyAtom, make_tiled_copy};
    /// let atom = CopyAtom::named("UniversalCopy<uint128_t>", 16)?;
    /// let copy = make_tiled_copy(&atom, &"(16,8):(8,1)".parse()?, &"(1,8):(0,1)".parse()?)?;   // a tile of (16,64)
    /// let matrix = "(32,128):(128,1)".parse()?;
    /// assert_eq!(copy.tidfrg_d(&matrix)?, copy.tidfrg_s(&matrix)?);   // one thread reads and receives
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
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

    /// `(thread, value)` to the column-major index in the tile, for the threads that read (CuTe's `get_layoutS_TV`).
    ///
    /// *Law.* `tile(result(t, v))` is the element that thread `t` reads as its value `v`.
    ///
    /// *Source.* `cute/atom/copy_atom.hpp`, `TiledCopy::get_layoutS_TV`.
    ///
    /// # Errors
    /// The atom's map does not compose with the TV layout.
    ///
    /// ```
    /// use cute_layout::atom::{CopyAtom, make_tiled_copy};
    /// let atom = CopyAtom::named("SM75_U32x4_LDSM_N", 16)?;
    /// let copy = make_tiled_copy(&atom, &"(8,4):(4,1)".parse()?, &"(2,4):(4,1)".parse()?)?;
    /// assert_eq!(copy.layout_s_tv()?.to_string(), "((8,2,2),((2,4),1)):((2,32,1),((16,64),0))");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn layout_s_tv(&self) -> Result<Layout, LayoutError> {
        self.of_tile(self.atom.src())
    }

    /// `(thread, value)` to the column-major index in the tile, for the threads that receive (CuTe's `get_layoutD_TV`).
    ///
    /// *Law.* `tile(result(t, v))` is the element that thread `t` receives as its value `v`.
    ///
    /// *Source.* `cute/atom/copy_atom.hpp`, `TiledCopy::get_layoutD_TV`.
    ///
    /// # Errors
    /// As for [`TiledCopy::layout_s_tv`].
    ///
    /// ```
    /// use cute_layout::atom::{CopyAtom, make_tiled_copy};
    /// let atom = CopyAtom::named("SM75_U32x4_LDSM_N", 16)?;
    /// let copy = make_tiled_copy(&atom, &"(8,4):(4,1)".parse()?, &"(2,4):(4,1)".parse()?)?;
    /// assert_eq!(copy.layout_d_tv()?.size(), 32 * 8);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn layout_d_tv(&self) -> Result<Layout, LayoutError> {
        self.of_tile(self.atom.dst())
    }

    fn of_tile(&self, target: &Layout) -> Result<Layout, LayoutError> {
        let tile = make_layout(&IntTuple::tuple([shape_of(&self.tiler)?, IntTuple::int(1)])?)?;
        slice(&"(_,_,0)".parse()?, &self.tile_to_thrfrg(&tile, target)?)
    }

    /// What one thread reads: a layout of shape `((FrgV,FrgX),RestM,RestN,...)` and its offset (CuTe's `partition_S`).
    ///
    /// *Law.* `offset + result(v, r..) == tidfrg_s(layout)(thread, v, r)`.
    ///
    /// *Source.* `cute/atom/copy_atom.hpp`, `ThrCopy::partition_S`.
    ///
    /// # Errors
    /// As for [`TiledCopy::tidfrg_s`], or the thread is not one of [`TiledCopy::threads`].
    ///
    /// ```
    /// use cute_layout::atom::{CopyAtom, make_tiled_copy};
    /// let atom = CopyAtom::named("UniversalCopy<uint128_t>", 16)?;
    /// let copy = make_tiled_copy(&atom, &"(16,8):(8,1)".parse()?, &"(1,8):(0,1)".parse()?)?;   // a tile of (16,64)
    /// let (own, offset) = copy.partition_s(9, &"(32,128):(128,1)".parse()?)?;
    /// assert_eq!((own.to_string(), offset), ("((8,1),2,2):((1,0),2048,64)".into(), 128 + 8));
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn partition_s(&self, thread: i64, layout: &Layout) -> Result<(Layout, i64), LayoutError> {
        self.of_thread(thread, layout.rank(), &self.tidfrg_s(layout)?)
    }

    /// What one thread receives (CuTe's `partition_D`).
    ///
    /// *Law.* `offset + result(v, r..) == tidfrg_d(layout)(thread, v, r)`.
    ///
    /// *Source.* `cute/atom/copy_atom.hpp`, `ThrCopy::partition_D`.
    ///
    /// # Errors
    /// As for [`TiledCopy::partition_s`].
    ///
    /// ```
    /// use cute_layout::atom::{CopyAtom, make_tiled_copy};
    /// let atom = CopyAtom::named("UniversalCopy<uint128_t>", 16)?;
    /// let copy = make_tiled_copy(&atom, &"(16,8):(8,1)".parse()?, &"(1,8):(0,1)".parse()?)?;   // a tile of (16,64)
    /// let (_, offset) = copy.partition_d(127, &"(32,128):(128,1)".parse()?)?;
    /// assert_eq!(offset, 15 * 128 + 56);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
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
    /// *Law.* The same values of the fragment, with the first mode as this copy's atoms take them.
    ///
    /// *Source.* `cute/atom/copy_atom.hpp`, `TiledCopy::retile`.
    ///
    /// # Errors
    /// The fragment does not have the values of this copy in its first mode.
    ///
    /// ```
    /// use cute_layout::atom::{CopyAtom, MmaAtom, TiledMma, make_tiled_copy_c};
    /// let mma = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
    /// let mma = TiledMma::new(mma, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
    /// let copy = make_tiled_copy_c(&CopyAtom::named("UniversalCopy<uint64_t>", 32)?, &mma)?;
    /// let retiled = copy.retile(&"((2,2),2,4):((1,2),16,4)".parse()?)?;
    /// assert_eq!(retiled.to_string(), "((2,4),2,2):((1,2),16,8)");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn retile(&self, fragment: &Layout) -> Result<Layout, LayoutError> {
        let values = fragment.mode(0).map_or(1, |first| first.size());
        let inverse = right_inverse(&self.layout_tv)?;
        let in_tile = composition(&inverse, &make_layout(&shape_of(&self.tiler)?)?)?;
        let factor = self.threads().checked_mul(values);
        let factor = factor.ok_or_else(|| LayoutError::overflow("retile", fragment.to_string()))?;
        let order = element_numbers(&in_tile, factor)?;
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
