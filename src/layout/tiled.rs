//! Thread-value layouts of tiled copies and tiled MMAs, and the partitions that they make of a tensor.
//!
//! The derivations are those of `cute/atom/copy_atom.hpp` (`TiledCopy`) and `cute/atom/mma_atom.hpp` (`TiledMMA`),
//! CUTLASS 4.2. A TV layout maps `(thread, value)` to the column-major index of an element in the tile.

use super::coalesce::coalesce_by;
use super::complement::complement_in_cosize;
use super::composition::{composition, composition_by};
use super::construct::make_layout;
use super::core::Layout;
use super::divide::{logical_divide, zip, zipped_divide};
use super::error::{Class, LayoutError, mul};
use super::int_tuple::{IntTuple, Shape};
use super::inverse::right_inverse;
use super::product::tiled_product;
use super::tiler::{Tiler, TilerModes};
use super::tv::make_layout_tv;

/// A tiled copy: a copy atom repeated over threads and values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TiledCopy {
    tiler: Shape,
    tv: Layout,
    source: Layout,
    destination: Layout,
}

impl TiledCopy {
    /// CuTe's `make_tiled_copy(atom, threads, values)`. The atom is given by three layouts of `(thread, value)`, in
    /// elements: the reference, the source and the destination.
    ///
    /// # Errors
    /// As for [`TiledCopy::from_tv`].
    ///
    /// ```
    /// use cutemplate::layout::{Layout, TiledCopy};
    /// // One thread that moves 16 bytes, eight elements of 2 bytes.
    /// let vector: Layout = "(1,8):(0,1)".parse()?;
    /// let copy = TiledCopy::new(&vector, &vector, &vector, &"(8,4):(4,1)".parse()?, &"(2,4):(4,1)".parse()?)?;
    /// assert_eq!(copy.source_tv()?.to_string(), "((4,8),((4,2),1)):((64,2),((16,1),0))");
    /// # Ok::<(), cutemplate::layout::LayoutError>(())
    /// ```
    pub fn new(
        reference: &Layout,
        source: &Layout,
        destination: &Layout,
        threads: &Layout,
        values: &Layout,
    ) -> Result<TiledCopy, LayoutError> {
        let (tiler, tv) = make_layout_tv(threads, values)?;
        TiledCopy::from_tv(reference, source, destination, tiler, tv)
    }

    /// A tiled copy for a given TV layout of a tile, as CuTe's `make_tiled_copy_A(atom, mma)` makes one for an MMA.
    ///
    /// # Errors
    /// The tile's threads or values are not a multiple of the atom's, or the atom's layouts do not compose.
    pub fn from_tv(
        reference: &Layout,
        source: &Layout,
        destination: &Layout,
        tiler: Shape,
        tv: Layout,
    ) -> Result<TiledCopy, LayoutError> {
        let (threads, values) = counts("TiledCopy", reference)?;
        let (tile_threads, tile_values) = counts("TiledCopy", &tv)?;
        if tile_threads % threads != 0 || tile_values % values != 0 {
            return Err(LayoutError::new("make_tiled_copy", Class::Argument)
                .operand("atom", reference)
                .operand("tv", &tv)
                .found(format!("{tile_threads} threads with {tile_values} values each"))
                .required(format!("multiples of the atom's {threads} threads and {values} values"))
                .because("the atom moves all its values or none")
                .cute("refuses: TiledCopy uses too few vals for selected CopyAtom"));
        }
        let back = right_inverse(reference)?;
        Ok(TiledCopy {
            tiler,
            tv: atom_modes(&tv, threads, values)?,
            source: composition(&back, source)?,
            destination: composition(&back, destination)?,
        })
    }

    /// The shape of the tile.
    #[must_use]
    pub fn tiler(&self) -> &Shape {
        &self.tiler
    }

    /// The TV layout of the source: `(thread, (values of the atom, atoms))` (CuTe's `get_layoutS_TV`).
    ///
    /// # Errors
    /// A composition is refused.
    pub fn source_tv(&self) -> Result<Layout, LayoutError> {
        self.in_tile(&self.source)
    }

    /// The TV layout of the destination (CuTe's `get_layoutD_TV`).
    ///
    /// # Errors
    /// A composition is refused.
    pub fn destination_tv(&self) -> Result<Layout, LayoutError> {
        self.in_tile(&self.destination)
    }

    fn in_tile(&self, target: &Layout) -> Result<Layout, LayoutError> {
        let tile = make_layout(&self.tiler)?;
        composition(&tile, &self.thread_values(target)?)
    }

    /// `((atom thread, other threads), (atom value, other values))` to the index in the tile.
    fn thread_values(&self, target: &Layout) -> Result<Layout, LayoutError> {
        let keep = Tiler::Shape(IntTuple::any());
        let in_order = composition_by(&self.tv, &Tiler::Tuple(vec![Tiler::Layout(target.clone()), keep]))?;
        coalesce_by(&zip(&in_order)?, &IntTuple::from((1, (1, 1))))
    }

    /// A tensor's layout as `(thread, values, tiles..)` of the source (CuTe's `tidfrg_S`).
    ///
    /// # Errors
    /// The tiler does not divide the tensor as a layout, or a composition is refused.
    ///
    /// ```
    /// use cutemplate::layout::{Layout, TiledCopy};
    /// let vector: Layout = "(1,8):(0,1)".parse()?;
    /// let copy = TiledCopy::new(&vector, &vector, &vector, &"(16,2):(2,1)".parse()?, &"(1,8):(0,1)".parse()?)?;
    /// let partition = copy.partition_source(&"(64,32):(32,1)".parse()?)?;
    /// assert_eq!(partition.to_string(), "((2,16),(8,1),(4,2)):((8,32),(1,0),(512,16))");
    /// # Ok::<(), cutemplate::layout::LayoutError>(())
    /// ```
    pub fn partition_source(&self, tensor: &Layout) -> Result<Layout, LayoutError> {
        self.partition(tensor, &self.source)
    }

    /// A tensor's layout as `(thread, values, tiles..)` of the destination (CuTe's `tidfrg_D`).
    ///
    /// # Errors
    /// As for [`TiledCopy::partition_source`].
    pub fn partition_destination(&self, tensor: &Layout) -> Result<Layout, LayoutError> {
        self.partition(tensor, &self.destination)
    }

    fn partition(&self, tensor: &Layout, target: &Layout) -> Result<Layout, LayoutError> {
        let tiled = zipped_divide(tensor, &Tiler::Shape(self.tiler.clone()))?;
        let by = Tiler::Tuple(vec![Tiler::Layout(self.thread_values(target)?), Tiler::Shape(IntTuple::any())]);
        let parts = composition_by(&tiled, &by)?;
        let own = parts.mode(0).map_or_else(Vec::new, |mode| mode.modes().collect());
        Layout::from_modes(own.into_iter().chain(parts.mode(1)))
    }
}

/// The numbers of threads and values of a TV layout.
fn counts(op: &'static str, tv: &Layout) -> Result<(i64, i64), LayoutError> {
    match (tv.mode(0), tv.mode(1), tv.rank()) {
        (Some(threads), Some(values), 2) => Ok((threads.size(), values.size())),
        _ => Err(LayoutError::new(op, Class::MismatchedRanks)
            .operand("tv", tv)
            .found(format!("rank {}", tv.rank()))
            .required("a layout of threads and values")),
    }
}

/// `((atom thread, atom value), (other threads, other values))`.
fn atom_modes(tv: &Layout, threads: i64, values: i64) -> Result<Layout, LayoutError> {
    zipped_divide(tv, &Tiler::Shape(IntTuple::from((threads, values))))
}

/// The layouts that describe an MMA atom (CuTe's `MMA_Traits`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MmaLayouts {
    /// M, N and K of one instruction.
    pub shape: (i64, i64, i64),
    /// Logical thread to thread of the block, `ThrID`.
    pub threads: Layout,
    /// `(thread, value)` to the index in the M x K operand.
    pub a: Layout,
    /// `(thread, value)` to the index in the N x K operand.
    pub b: Layout,
    /// `(thread, value)` to the index in the M x N accumulator.
    pub c: Layout,
}

/// An operand of an MMA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MmaOperand {
    /// M x K.
    A,
    /// N x K.
    B,
    /// M x N.
    C,
}

/// An MMA atom repeated over threads and values (CuTe's `TiledMMA`).
///
/// ```
/// use cutemplate::layout::{MmaLayouts, MmaOperand, TiledMma};
/// // mma.sync.m16n8k16 with f16 operands and f32 accumulators (PTX ISA, warp-level matrix instructions).
/// let atom = MmaLayouts {
///     shape: (16, 8, 16),
///     threads: "32:1".parse()?,
///     a: "((4,8),(2,2,2)):((32,1),(16,8,128))".parse()?,
///     b: "((4,8),(2,2)):((16,1),(8,64))".parse()?,
///     c: "((4,8),(2,2)):((32,1),(16,8))".parse()?,
/// };
/// let mma = TiledMma::new(atom, &"(2,1,1):(1,0,0)".parse()?, &"[32,(8,2,2):(1,16,8),16]".parse()?)?;
/// assert_eq!(mma.tv(MmaOperand::C)?.to_string(), "((4,8,2),((2,2),(1,(2,2)))):((64,1,16),((32,8),(0,(512,256))))");
/// # Ok::<(), cutemplate::layout::LayoutError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TiledMma {
    atom: MmaLayouts,
    /// `(thread of the atom, in M, in N, in K)` to a thread of the block.
    threads: Layout,
    permutation: [Tiler; 3],
}

impl TiledMma {
    /// The atom repeated over a layout of atoms in M, N and K, with a permutation of the tile: an extent, a layout or `_`
    /// for each of M, N and K (CuTe's `make_tiled_mma`). `_` is the extent that the threads cover.
    ///
    /// # Errors
    /// The layout of atoms or the permutation does not have three modes; a product is refused.
    pub fn new(atom: MmaLayouts, atoms: &Layout, permutation: &Tiler) -> Result<TiledMma, LayoutError> {
        let entries = match permutation.modes() {
            TilerModes::ByMode(entries) => entries,
            _ => Vec::new(),
        };
        let Ok(permutation) = <[Tiler; 3]>::try_from(entries) else {
            return Err(LayoutError::new("make_tiled_mma", Class::MismatchedRanks)
                .operand("permutation", permutation)
                .required("one entry for each of M, N and K"));
        };
        if atoms.rank() != 3 {
            return Err(LayoutError::new("make_tiled_mma", Class::MismatchedRanks)
                .operand("atoms", atoms)
                .found(format!("rank {}", atoms.rank()))
                .required("one mode for each of M, N and K"));
        }
        let threads = tiled_product(&atom.threads, &Tiler::Layout(atoms.clone()))?;
        Ok(TiledMma { atom, threads, permutation })
    }

    /// `(thread of the atom, in M, in N, in K)` to a thread of the block (CuTe's `get_thr_layout_vmnk`).
    #[must_use]
    pub fn threads(&self) -> &Layout {
        &self.threads
    }

    /// How many atoms the threads do side by side in M (0), N (1) or K (2).
    fn atoms_in(&self, axis: usize) -> i64 {
        self.threads.mode(axis + 1).map_or(1, |mode| mode.size())
    }

    fn axes(operand: MmaOperand) -> (usize, usize) {
        match operand {
            MmaOperand::A => (0, 2),
            MmaOperand::B => (1, 2),
            MmaOperand::C => (0, 1),
        }
    }

    fn extent(&self, axis: usize) -> i64 {
        let (m, n, k) = self.atom.shape;
        [m, n, k][axis]
    }

    /// The permutation of an axis; for `_`, the extent that the threads cover.
    fn permutation(&self, axis: usize) -> Result<Tiler, LayoutError> {
        match self.permutation[axis].modes() {
            TilerModes::Keep => Ok(Tiler::Shape(IntTuple::int(mul(self.extent(axis), self.atoms_in(axis))?))),
            _ => Ok(self.permutation[axis].clone()),
        }
    }

    /// The extent of the tile in M (0), N (1) or K (2) (CuTe's `tile_size_mnk`).
    ///
    /// # Errors
    /// The permutation is by mode, or the extent does not fit in 64 bits.
    pub fn tile_size(&self, axis: usize) -> Result<i64, LayoutError> {
        match self.permutation(axis)?.modes() {
            TilerModes::Extent(extent) => extent.size(),
            TilerModes::Terminal(layout) => Ok(layout.size()),
            _ => Err(LayoutError::new("tile_size", Class::Argument)
                .operand("permutation", &self.permutation[axis])
                .required("an extent or a layout")),
        }
    }

    /// A tensor of the operand's two axes as `((thread of the atom, (threads)), (value, (rests)))` (CuTe's `thrfrg_A`,
    /// `thrfrg_B` and `thrfrg_C`).
    ///
    /// # Errors
    /// A division or a composition is refused.
    pub fn thrfrg(&self, operand: MmaOperand, tensor: &Layout) -> Result<Layout, LayoutError> {
        let (rows, columns) = TiledMma::axes(operand);
        let permuted =
            logical_divide(tensor, &Tiler::Tuple(vec![self.permutation(rows)?, self.permutation(columns)?]))?;
        let atom = IntTuple::from((self.extent(rows), self.extent(columns)));
        let by_atom = zipped_divide(&permuted, &Tiler::Shape(atom))?;
        let tv = match operand {
            MmaOperand::A => &self.atom.a,
            MmaOperand::B => &self.atom.b,
            MmaOperand::C => &self.atom.c,
        };
        let keep = Tiler::Shape(IntTuple::any());
        let by_thread = composition_by(&by_atom, &Tiler::Tuple(vec![Tiler::Layout(tv.clone()), keep.clone()]))?;
        let threads = IntTuple::from((self.atoms_in(rows), self.atoms_in(columns)));
        zipped_divide(&by_thread, &Tiler::Tuple(vec![keep, Tiler::Shape(threads)]))
    }

    /// The TV layout of an operand's tile: thread of the block and value to the element (CuTe's `get_layoutA_TV`,
    /// `get_layoutB_TV` and `get_layoutC_TV`). Threads that share elements have stride 0.
    ///
    /// # Errors
    /// As for [`TiledMma::thrfrg`].
    pub fn tv(&self, operand: MmaOperand) -> Result<Layout, LayoutError> {
        let (rows, columns) = TiledMma::axes(operand);
        let tile = make_layout(&IntTuple::from((self.tile_size(rows)?, self.tile_size(columns)?)))?;
        let mut parts = self.thrfrg(operand, &tile)?;
        let keep = Tiler::Shape(IntTuple::any());
        // Threads along the axis that the operand does not have see the same elements.
        let pair = IntTuple::from((self.atoms_in(0), self.atoms_in(1)));
        let shared = match operand {
            MmaOperand::A => Some(Layout::new(pair, IntTuple::from((1, 0)))?),
            MmaOperand::B => Some(Layout::new(pair, IntTuple::from((0, 1)))?),
            MmaOperand::C => None,
        };
        if let Some(layout) = shared {
            let within = Tiler::Tuple(vec![Tiler::Layout(layout), keep.clone()]);
            let threads = Tiler::Tuple(vec![keep.clone(), within]);
            parts = composition_by(&parts, &Tiler::Tuple(vec![threads, keep.clone()]))?;
        }
        let block = Layout::from_modes([self.threads.clone(), complement_in_cosize(&self.threads)?])?;
        let index = Layout::new(IntTuple::from((self.threads.size(), 1)), IntTuple::from((1, 0)))?;
        let to_mode = composition(&index, &right_inverse(&block)?)?;
        composition_by(&parts, &Tiler::Tuple(vec![Tiler::Layout(to_mode), keep]))
    }
}
