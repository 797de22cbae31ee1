//! [`TiledMma`]: an MMA atom repeated over more threads and more values.

use super::mma::{MmaAtom, Operand};
use crate::layout::{
    Class, IntTuple, Layout, LayoutError, Tiler, append, complement_in_cosize, composition, composition_by,
    logical_divide, make_layout, right_inverse, slice_and_offset, tiled_product, zipped_divide,
};

/// An MMA atom tiled over threads (the *atom layout*) and over values (the *permutations*), CuTe's `TiledMMA`.
///
/// The atom layout maps an atom's `(m, n, k)` to its number; the permutations are one tiler for each of M, N and K, and
/// `_` stands for atom times threads. See [`TiledMma::layout_tv`] for what comes out.
///
/// Sources: `cute/atom/mma_atom.hpp`, `TiledMMA`, `ThrMMA`, `make_tiled_mma`.
///
/// ```
/// use cute_layout::atom::{MmaAtom, Operand, TiledMma};
/// let atom = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
/// // Two warps along M; the permutation of N gives each thread four neighbouring columns of C.
/// let mma = TiledMma::new(atom, &"(2,1,1):(1,2,2)".parse()?, &"[32,(8,2,2):(1,16,8),16]".parse()?)?;
/// let c = mma.layout_tv(Operand::C)?;
/// assert_eq!(c.to_string(), "((4,8,2),((2,2),(1,(2,2)))):((64,1,16),((32,8),(0,(512,256))))");
/// # Ok::<(), cute_layout::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TiledMma {
    atom: MmaAtom,
    atoms: Layout,
    vmnk: Layout,
    permutations: [Tiler; 3],
}

impl TiledMma {
    /// The atom tiled by an atom layout of rank up to 3 and a tuple of up to three permutations
    /// (CuTe's `make_tiled_mma`).
    ///
    /// *Law.* `thr_layout_vmnk() == tiled_product(thr_id, atom_layout)`.
    ///
    /// *Source.* `cute/atom/mma_atom.hpp`, `make_tiled_mma`.
    ///
    /// # Errors
    /// More than three modes, or a permutation that is neither an extent nor a layout.
    ///
    /// ```
    /// use cute_layout::atom::{MmaAtom, TiledMma};
    /// let atom = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
    /// let mma = TiledMma::new(atom, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
    /// assert_eq!(mma.thr_layout_vmnk().to_string(), "(32,2,2,1):(1,32,64,128)");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn new(atom: MmaAtom, atom_layout: &Layout, permutations: &Tiler) -> Result<TiledMma, LayoutError> {
        let too_many = |found: String| {
            LayoutError::new("make_tiled_mma", Class::TooManyModes)
                .found(found)
                .required("at most one mode for each of M, N and K")
        };
        let mut wide = atom_layout.clone();
        if wide.shape().is_leaf() {
            wide = Layout::from_modes([wide])?;
        }
        if wide.rank() > 3 {
            return Err(too_many(format!("the atom layout {atom_layout}")));
        }
        let wide = append(&wide, 3, &Layout::unit())?;
        let entries: Vec<Tiler> = match permutations {
            Tiler::Tuple(entries) => entries.clone(),
            Tiler::Shape(shape) => shape.modes().map(Tiler::Shape).collect(),
            Tiler::Layout(_) => {
                return Err(too_many(format!("the permutation {permutations} for M, N and K together")));
            }
        };
        if entries.len() > 3 {
            return Err(too_many(format!("the permutations {permutations}")));
        }
        let mut entries = entries.into_iter();
        let mut next = || entries.next().unwrap_or_else(|| Tiler::Shape(IntTuple::any()));
        let permutations = [next(), next(), next()];
        let vmnk = tiled_product(atom.thr_id(), &Tiler::Layout(wide.clone()))?;
        Ok(TiledMma { atom, atoms: wide, vmnk, permutations })
    }

    /// The atom.
    #[must_use]
    pub fn atom(&self) -> &MmaAtom {
        &self.atom
    }

    /// The atom layout, `(m,n,k)` to the number of the atom.
    #[must_use]
    pub fn atom_layout(&self) -> &Layout {
        &self.atoms
    }

    /// The permutations of M, N and K.
    #[must_use]
    pub fn permutations(&self) -> &[Tiler; 3] {
        &self.permutations
    }

    /// `(ThrV,ThrM,ThrN,ThrK)` to thread index (CuTe's `get_thr_layout_vmnk`).
    #[must_use]
    pub fn thr_layout_vmnk(&self) -> &Layout {
        &self.vmnk
    }

    /// The number of threads.
    #[must_use]
    pub fn threads(&self) -> i64 {
        self.vmnk.size()
    }

    /// M, N and K of the tile that all threads with all values cover (CuTe's `tile_shape`).
    ///
    /// *Law.* `size` of each permutation; for `_` the atom's extent times the threads along the mode.
    ///
    /// *Source.* `cute/atom/mma_atom.hpp`, `tile_shape`.
    ///
    /// # Errors
    /// A product does not fit in 64 bits.
    ///
    /// ```
    /// use cute_layout::atom::{MmaAtom, TiledMma};
    /// let atom = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
    /// let mma = TiledMma::new(atom, &"(2,2,1):(1,2,4)".parse()?, &"[_,32,_]".parse()?)?;
    /// assert_eq!(mma.tile_mnk()?, [32, 32, 16]);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn tile_mnk(&self) -> Result<[i64; 3], LayoutError> {
        let extent = |mode: usize| tiler_size(&self.permutation(mode)?);
        Ok([extent(0)?, extent(1)?, extent(2)?])
    }

    /// Rows and columns of an operand's tile.
    ///
    /// # Errors
    /// As for [`TiledMma::tile_mnk`].
    pub fn tile(&self, operand: Operand) -> Result<(i64, i64), LayoutError> {
        let tile = self.tile_mnk()?;
        let (rows, columns) = operand.modes();
        Ok((tile[rows], tile[columns]))
    }

    fn threads_along(&self, mode: usize) -> i64 {
        self.vmnk.mode(mode + 1).map_or(1, |threads| threads.size())
    }

    /// The tiler that is applied to a mode before the atom tiles it; for `_`, the atom's extent times the threads.
    fn permutation(&self, mode: usize) -> Result<Tiler, LayoutError> {
        match &self.permutations[mode] {
            Tiler::Shape(shape) if shape.is_leaf() && shape.has_underscore() => {
                let extent = self.atom.shape_mnk()[mode].checked_mul(self.threads_along(mode));
                let extent = extent.ok_or_else(|| LayoutError::overflow("make_tiled_mma", "the tile"))?;
                Ok(Tiler::Shape(IntTuple::int(extent)))
            }
            other => Ok(other.clone()),
        }
    }

    /// A layout of shape `(rows, columns, ...)` of an operand, tiled to
    /// `((ThrV,(ThrRow,ThrColumn)),(FrgV,(RestRow,RestColumn,...)))` (CuTe's `thrfrg_A`, `thrfrg_B`, `thrfrg_C`).
    ///
    /// *Law.* `result((v, (tr, tc)), (f, (r, c)))` is the layout at the element that a thread holds: each element once.
    ///
    /// *Source.* `cute/atom/mma_atom.hpp`, `TiledMMA::thrfrg_A`, `thrfrg_B`, `thrfrg_C`.
    ///
    /// # Errors
    /// The layout cannot be divided by the tile, or the atom does not compose with it.
    ///
    /// ```
    /// use cute_layout::atom::{MmaAtom, Operand, TiledMma};
    /// let atom = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
    /// let mma = TiledMma::new(atom, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
    /// let tiled = mma.thrfrg(Operand::A, &"(64,32):(32,1)".parse()?)?;
    /// assert_eq!(tiled.size(), 64 * 32);
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn thrfrg(&self, operand: Operand, layout: &Layout) -> Result<Layout, LayoutError> {
        let (rows, columns) = operand.modes();
        let permuted =
            logical_divide(layout, &Tiler::Tuple(vec![self.permutation(rows)?, self.permutation(columns)?]))?;
        let (atom_rows, atom_columns) = self.atom.tile(operand);
        let atoms = zipped_divide(&permuted, &Tiler::Tuple(vec![extent(atom_rows)?, extent(atom_columns)?]))?;
        let tv = composition_by(&atoms, &Tiler::Tuple(vec![self.atom.layout_tv(operand).clone().into(), keep()]))?;
        let threads = Tiler::Tuple(vec![extent(self.threads_along(rows))?, extent(self.threads_along(columns))?]);
        zipped_divide(&tv, &Tiler::Tuple(vec![keep(), threads]))
    }

    /// `(thread index, value)` to the column-major index in the operand's tile (CuTe's `get_layoutA_TV` and the others).
    /// Threads that differ only along the mode that the operand does not have hold the same values: their stride is 0.
    ///
    /// *Law.* Every value is an index in the tile. CuTe C++ breaks it for C where atoms are tiled along both N and K: it
    /// lets the threads along K run on past the tile.
    ///
    /// *Source.* `cute/atom/mma_atom.hpp`, `TiledMMA::get_layoutA_TV`, `get_layoutB_TV`, `get_layoutC_TV`.
    ///
    /// # Errors
    /// A step of the derivation is refused: the permutations do not fit the atom, or the atom layout leaves gaps.
    ///
    /// ```
    /// use cute_layout::atom::{MmaAtom, Operand, TiledMma};
    /// let atom = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
    /// let mma = TiledMma::new(atom, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
    /// let a = mma.layout_tv(Operand::A)?;
    /// // Threads that differ along N alone hold the same values of A.
    /// assert_eq!(a.to_string(), "((4,8,2,2),((2,2,2),(1,1))):((64,1,16,0),((32,8,256),(0,0)))");
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn layout_tv(&self, operand: Operand) -> Result<Layout, LayoutError> {
        let (rows, columns) = self.tile(operand)?;
        self.thread_values(operand, &make_layout(&pair(rows, columns)?)?)
    }

    /// `(thread index, (FrgV,(RestRow,RestColumn)))` to the values of a layout of `(rows, columns)` there.
    ///
    /// *Law.* `r(t, (f, rest)) == thrfrg(operand, layout)((v, (tr, tc)), (f, rest))`, where `(v, tr, tc)` are the
    /// coordinates of thread `t`. CuTe has it for the tile alone, as `get_layoutA_TV`: see [`TiledMma::layout_tv`].
    ///
    /// *Source.* `cute/atom/mma_atom.hpp`, `thrfrg_A`, `get_layoutA_TV`.
    ///
    /// # Errors
    /// As for [`TiledMma::thrfrg`].
    ///
    /// ```
    /// use cute_layout::atom::{MmaAtom, Operand, TiledMma};
    /// let atom = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
    /// let mma = TiledMma::new(atom, &"(2,2,1):(1,2,4)".parse()?, &"[_,_,_]".parse()?)?;
    /// // B is (N,K) in memory with a row of 64 elements: lane 1 begins two elements after lane 0.
    /// let b = mma.thread_values(Operand::B, &"(16,64):(64,1)".parse()?)?;
    /// assert_eq!((b.at(0)?, b.at(1)?, b.at(4)?), (0, 2, 64));
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn thread_values(&self, operand: Operand, layout: &Layout) -> Result<Layout, LayoutError> {
        let [m, n, k] = [0, 1, 2].map(|mode| self.threads_along(mode));
        let frg = self.thrfrg(operand, layout)?;
        // (ThrV,(ThrRow,ThrColumn)) to (ThrV,(ThrM,ThrN,ThrK)): stride 0 along the mode that the operand does not have.
        let threads = match operand {
            Operand::A => vec![Layout::new(pair(m, n)?, pair(1, 0)?)?.into(), keep()],
            Operand::B => vec![Layout::new(pair(m, n)?, pair(0, 1)?)?.into(), keep()],
            Operand::C if k > 1 => vec![keep(), Layout::new(pair(n, k)?, pair(1, 0)?)?.into()],
            Operand::C => vec![keep(), keep()],
        };
        let all = Tiler::Tuple(vec![keep(), Tiler::Tuple(threads)]);
        let frg = composition_by(&frg, &Tiler::Tuple(vec![all, keep()]))?;
        composition_by(&frg, &Tiler::Tuple(vec![self.thread_to_vmnk()?.into(), keep()]))
    }

    /// Thread index to `(ThrV,ThrM,ThrN,ThrK)`.
    fn thread_to_vmnk(&self) -> Result<Layout, LayoutError> {
        let all = Layout::from_modes([self.vmnk.clone(), complement_in_cosize(&self.vmnk)?])?;
        let counts = Layout::new(pair(self.vmnk.size(), 1)?, pair(1, 0)?)?;
        composition(&counts, &right_inverse(&all)?)
    }

    /// What one thread holds of a layout of shape `(rows, columns, ...)`: a layout of shape `(FrgV,RestRow,RestColumn,..)`
    /// and its offset (CuTe's `ThrMMA::partition_A`, `partition_B`, `partition_C`).
    ///
    /// *Law.* `offset + result(f, r..) == thrfrg(operand, layout)((v, (tr, tc)), (f, (r..)))` for the coordinate of the
    /// thread.
    ///
    /// *Source.* `cute/atom/mma_atom.hpp`, `ThrMMA::partition_A`, `partition_B`, `partition_C`.
    ///
    /// # Errors
    /// As for [`TiledMma::thrfrg`], or the thread is not one of [`TiledMma::threads`].
    ///
    /// ```
    /// use cute_layout::atom::{MmaAtom, Operand, TiledMma};
    /// let atom = MmaAtom::named("SM80_16x8x16_F32F16F16F32_TN")?;
    /// let mma = TiledMma::new(atom, &"(2,2,1):(1,2,4)".parse()?, &"(32,32,16)".parse()?)?;
    /// let (own, offset) = mma.partition(Operand::C, 5, &"(64,64):(64,1)".parse()?)?;
    /// assert_eq!((own.to_string(), offset), ("((2,2),2,4):((1,512),2048,16)".into(), 64 + 2));
    /// # Ok::<(), cute_layout::layout::LayoutError>(())
    /// ```
    pub fn partition(&self, operand: Operand, thread: i64, layout: &Layout) -> Result<(Layout, i64), LayoutError> {
        if !(0..self.threads()).contains(&thread) {
            return Err(no_such_thread("ThrMMA", thread, self.threads()));
        }
        let tiled = self.thrfrg(operand, layout)?;
        let own = self.coordinate(thread)?;
        let (rows, columns) = operand.modes();
        let threads = IntTuple::tuple([
            IntTuple::int(own[0]),
            IntTuple::tuple([IntTuple::int(own[rows + 1]), IntTuple::int(own[columns + 1])])?,
        ])?;
        let rest = layout.rank();
        let values = IntTuple::tuple([IntTuple::any(), IntTuple::tuple((0..rest).map(|_| IntTuple::any()))?])?;
        let (own, offset) = slice_and_offset(&IntTuple::tuple([threads, values])?, &tiled)?;
        Ok((own, offset.size()?))
    }

    /// Where a thread is in each of V, M, N and K (CuTe's `get_flat_coord` of the thread layout).
    fn coordinate(&self, thread: i64) -> Result<[i64; 4], LayoutError> {
        let mut own = [0; 4];
        for (mode, slot) in self.vmnk.modes().zip(&mut own) {
            let (shape, stride) = (mode.shape().ints(), mode.stride().ints());
            let (Some(shape), Some(stride)) = (shape, stride) else { continue };
            let mut scale = 1;
            for (s, d) in shape.into_iter().zip(stride) {
                // Neither a leaf of extent 1 nor one of stride 0 has a digit.
                let digit = if s == 1 || d == 0 { 0 } else { (thread / d).rem_euclid(s) };
                *slot += digit * scale;
                scale *= s;
            }
        }
        Ok(own)
    }
}

/// The tiler that leaves a mode alone.
pub(super) fn keep() -> Tiler {
    Tiler::Shape(IntTuple::any())
}

/// `n:1` as a tiler, with CuTe's stride 0 for one element.
fn extent(n: i64) -> Result<Tiler, LayoutError> {
    Ok(make_layout(&IntTuple::int(n))?.into())
}

pub(super) fn pair(a: i64, b: i64) -> Result<IntTuple, LayoutError> {
    IntTuple::tuple([IntTuple::int(a), IntTuple::int(b)])
}

/// CuTe's `size` of a tiler.
fn tiler_size(tiler: &Tiler) -> Result<i64, LayoutError> {
    match tiler {
        Tiler::Layout(layout) => Ok(layout.size()),
        Tiler::Shape(shape) => shape.size(),
        Tiler::Tuple(entries) => entries.iter().try_fold(1i64, |product, entry| {
            let size = tiler_size(entry)?;
            product.checked_mul(size).ok_or_else(|| LayoutError::overflow("size", tiler.to_string()))
        }),
    }
}

pub(super) fn no_such_thread(op: &'static str, thread: i64, threads: i64) -> LayoutError {
    LayoutError::new(op, Class::Argument)
        .found(format!("thread {thread}"))
        .required(format!("a thread from 0 to {}", threads - 1))
}
