//! Which elements of a tile each thread moves, with which instruction: read from the layouts of the copy.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use super::cover::tile_layout;
use super::{CopyOp, Engine, Place, TileCopy, TileMma, Tiling};
use crate::atom::{
    CopyAtom, Operand, TiledCopy, TiledMma, make_cotiled_copy, make_tiled_copy, make_tiled_copy_a, make_tiled_copy_b,
    make_tiled_copy_c_atom,
};
use crate::dtype::DType;
use crate::layout::{Layout, LayoutError, composition, filter, take};
use crate::units::Bytes;

/// Lanes of a warp.
pub(super) const WARP: usize = 32;

/// One side of a copy: column-major indices in the tile. Layouts add up over their modes, so that value `v` of thread `t` is
/// `threads[t] + values[v]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    pub(super) threads: Vec<i64>,
    pub(super) values: Vec<i64>,
    /// Values that one instruction moves.
    pub(super) vector: usize,
    /// Extents and strides whose multiples add up to all elements, where threads and values are modes of one layout.
    pub(super) leaves: Option<Vec<(i64, i64)>>,
}

impl Moves {
    /// From `(thread, values, ..)` to the tile.
    pub(super) fn new(tv: &Layout, vector: i64) -> Result<Self, LayoutError> {
        let threads = tv.mode(0).unwrap_or_else(Layout::unit).values()?;
        let values = take(tv, 1, tv.rank())?.values()?;
        let leaves = tv.shape().ints().zip(tv.stride().ints());
        let leaves = leaves.map(|(extents, strides)| extents.into_iter().zip(strides).collect());
        Ok(Self { threads, values, vector: usize::try_from(vector).unwrap_or(1).max(1), leaves })
    }

    /// Values in the order in which a tile lies in memory, along rows (0) or columns (1).
    fn sort(&mut self, [rows, _]: [i64; 2], contiguous: Option<usize>) {
        match contiguous {
            Some(1) => self.values.sort_unstable_by_key(|value| (value % rows, value / rows)),
            _ => self.values.sort_unstable(),
        }
    }

    /// Values that one instruction moves.
    pub fn vector(&self) -> i64 {
        self.vector as i64
    }

    /// Instructions of a thread.
    pub(super) fn steps(&self) -> i64 {
        self.values.len().div_ceil(self.vector) as i64
    }

    /// Instructions of all warps.
    pub(super) fn instructions(&self) -> u64 {
        self.threads.len().div_ceil(WARP) as u64 * self.steps() as u64
    }

    /// All elements of all threads.
    pub(super) fn elements(&self) -> impl Iterator<Item = i64> {
        self.threads.iter().flat_map(|thread| self.values.iter().map(move |value| thread + value))
    }

    /// All elements of one thread; none where there is no such thread.
    pub(super) fn of_thread(&self, thread: usize) -> impl Iterator<Item = i64> {
        let thread = self.threads.get(thread);
        thread.into_iter().flat_map(|thread| self.values.iter().map(move |value| thread + value))
    }

    /// What each instruction of a thread adds to its first element.
    pub(super) fn firsts(&self) -> Vec<i64> {
        self.values.iter().step_by(self.vector).copied().collect()
    }

    /// For each instruction of each warp, the first element of each lane, where an instruction moves so many values.
    pub(crate) fn requests(&self, vector: i64) -> impl Iterator<Item = impl Iterator<Item = i64> + '_> {
        let each = usize::try_from(vector).unwrap_or(1).max(1);
        let all = move |warp| self.values.iter().step_by(each).map(move |value| (warp, *value));
        self.threads.chunks(WARP).flat_map(all).map(lanes)
    }
}

/// The elements of the lanes of a warp, where one value of each thread is asked for.
fn lanes<'a>((warp, value): (&'a [i64], i64)) -> impl Iterator<Item = i64> + use<'a> {
    warp.iter().map(move |thread| thread + value)
}

/// Both sides of a copy.
#[derive(Debug)]
pub(super) struct Sides {
    pub(super) from: Moves,
    pub(super) to: Moves,
}

/// What a copy's sides are derived from.
#[derive(PartialEq)]
struct Asked {
    engine: Engine,
    tile: [i64; 2],
    dtype: DType,
    places: [Place; 2],
    contiguous: Option<usize>,
    mma: Option<TileMma>,
}

type Known = (Asked, Option<Rc<Sides>>);

/// How many sides are kept: more than one tiling has copies.
const KEPT: usize = 16;

thread_local! {
    /// The sides that were asked for last: each reader of a tiling asks for all of them, and to derive them is most of its work.
    static KNOWN: RefCell<VecDeque<Known>> = const { RefCell::new(VecDeque::new()) };
}

impl TileCopy {
    /// Whether elements are neighbours in memory along rows (0) or columns (1).
    fn contiguous(&self, tiling: &Tiling) -> Option<usize> {
        [self.from, self.to].into_iter().find_map(|place| match place {
            Place::Global(global) => Some(global.contiguous),
            Place::Shared(name) => tiling.smem(name).map(super::SmemTensor::contiguous),
            Place::Fragments(..) | Place::Pairs(_) | Place::Threads => None,
        })
    }

    /// Whether it is of accumulators to shared memory: of the tile of D, a part at a time.
    pub(crate) fn hands_over_accumulators(&self) -> bool {
        matches!((self.from, self.to), (Place::Fragments(_, Operand::C) | Place::Pairs(_), Place::Shared(_)))
    }

    fn values(&self, bytes: Bytes) -> i64 {
        (bytes.0 / self.dtype.bytes().0) as i64
    }

    /// The atom, as `make_tiled_copy` spreads it.
    ///
    /// # Errors
    /// The instruction does not copy values of this type, or threads and values are no tile.
    pub(crate) fn tiled(&self, op: CopyOp, threads: &Layout, values: &Layout) -> Result<TiledCopy, LayoutError> {
        make_tiled_copy(&op.atom(self.dtype)?, threads, values)
    }
}

impl Tiling {
    /// What the threads move, on the side in global memory, or where it has none on the side that is read; `None` for a copy that
    /// no threads do.
    ///
    /// # Errors
    /// A copy that [`Tiling::flaws`] refuses.
    pub fn moves(&self, copy: &TileCopy) -> Result<Option<Moves>, LayoutError> {
        let writes = matches!(copy.to, Place::Global(_));
        Ok(self.sides(copy)?.map(|sides| if writes { sides.to.clone() } else { sides.from.clone() }))
    }

    /// What the threads move; `None` for a copy that no threads do.
    pub(super) fn sides(&self, copy: &TileCopy) -> Result<Option<Rc<Sides>>, LayoutError> {
        let is_of_mma = matches!(copy.engine, Engine::Fragments(_));
        let asked = Asked {
            engine: copy.engine.clone(),
            tile: copy.tile,
            dtype: copy.dtype,
            places: [copy.from, copy.to],
            contiguous: copy.contiguous(self),
            mma: if is_of_mma { self.fragments_of(copy).map(|(mma, _)| mma.clone()) } else { None },
        };
        let known = |all: &VecDeque<Known>| all.iter().find(|(of, _)| *of == asked).map(|(_, sides)| sides.clone());
        if let Some(sides) = KNOWN.with_borrow(known) {
            return Ok(sides);
        }
        let sides = self.derived(copy)?.map(Rc::new);
        KNOWN.with_borrow_mut(|all| {
            all.push_front((asked, sides.clone()));
            all.truncate(KEPT);
        });
        Ok(sides)
    }

    fn derived(&self, copy: &TileCopy) -> Result<Option<Sides>, LayoutError> {
        match &copy.engine {
            Engine::Threads { op, threads, values } => {
                let mut sides = of_tiled(&copy.tiled(*op, threads, values)?, copy.tile)?;
                if let CopyOp::Through { load, store } = op {
                    sides.from.vector = copy.values(*load) as usize;
                    sides.to.vector = copy.values(*store) as usize;
                }
                Ok(Some(sides))
            }
            Engine::Fragments(op) => self.fragments(copy, *op).map(Some),
            Engine::Tma { .. } => Ok(None),
        }
    }

    /// The tiled copy whose values are those of fragments: of a copy by `ldmatrix`, and of one that hands over accumulators.
    ///
    /// # Errors
    /// The MMA's fragments are none that the instruction copies.
    pub(crate) fn tiled_as_fragments(&self, copy: &TileCopy) -> Result<Option<TiledCopy>, LayoutError> {
        let (Engine::Fragments(op), Some((mma, _))) = (&copy.engine, self.fragments_of(copy)) else { return Ok(None) };
        let (atom, mma) = (op.atom(copy.dtype), mma.tiled()?);
        Ok(match copy.to {
            Place::Fragments(_, Operand::A) if op.is_ldmatrix() => Some(make_tiled_copy_a(&atom?, &mma)?),
            Place::Fragments(_, Operand::B) if op.is_ldmatrix() => Some(make_tiled_copy_b(&atom?, &mma)?),
            _ if matches!(copy.from, Place::Pairs(_)) => Some(tiled_of_pairs(&atom?, &mma)?),
            _ if copy.hands_over_accumulators() => Some(make_tiled_copy_c_atom(&atom?, &mma)?),
            _ => None,
        })
    }

    /// The MMA whose fragments a copy fills or reads, and which operand they are.
    pub(super) fn fragments_of(&self, copy: &TileCopy) -> Option<(&TileMma, Operand)> {
        [copy.from, copy.to].into_iter().find_map(|place| match place {
            Place::Fragments(name, operand) => Some((self.mma(name)?, operand)),
            Place::Pairs(name) => Some((self.mma(name)?, Operand::C)),
            _ => None,
        })
    }

    fn fragments(&self, copy: &TileCopy, op: CopyOp) -> Result<Sides, LayoutError> {
        let Some((mma, operand)) = self.fragments_of(copy) else {
            return Err(LayoutError::new("fragments", crate::layout::Class::Argument)
                .found(format!("{}: from {:?} to {:?}", copy.what, copy.from, copy.to))
                .required("fragments of an MMA that there is"));
        };
        if let Some(tiled) = self.tiled_as_fragments(copy)? {
            return of_tiled(&tiled, copy.tile);
        }
        let mma = mma.tiled()?;
        let vector = copy.values(op.width());
        let tv = mma.thread_values(operand, &tile_layout(copy.tile)?)?;
        // Vectors along the columns: those of a thread come first.
        let tv = match (tv.mode(0), tv.mode(1)) {
            (Some(threads), Some(values)) if vector > 1 && copy.contiguous(self) == Some(1) => {
                let (value, rest) = (values.mode(0), values.mode(1));
                let (value, rest) = (value.unwrap_or_else(Layout::unit), rest.unwrap_or_else(Layout::unit));
                let turned = rest.modes().collect::<Vec<_>>().into_iter().rev();
                Layout::from_modes([threads, Layout::from_modes([value, Layout::from_modes(turned)?])?])?
            }
            _ => tv,
        };
        let mut moves = Moves::new(&tv, vector)?;
        if vector > 1 && matches!(copy.to, Place::Fragments(..)) {
            // In the order of memory: a thread loads neighbours at once, whichever fragments they are of.
            moves.sort(copy.tile, copy.contiguous(self));
        }
        Ok(Sides { from: moves.clone(), to: moves })
    }
}

/// `(thread, value)` of the elements that a thread's accumulators give two by two, to the column-major tile of these.
pub(super) fn of_pairs(mma: &TiledMma, [rows, columns]: [i64; 2]) -> Result<Layout, LayoutError> {
    let along_n = [Layout::mode_of(2, 0)?, Layout::mode_of(columns / 2, rows)?];
    let both = Layout::from_modes([Layout::mode_of(rows, 1)?, Layout::from_modes(along_n)?])?;
    let all = mma.thread_values(Operand::C, &both)?;
    let values = filter(&take(&all, 1, all.rank())?)?;
    Layout::from_modes([all.mode(0).unwrap_or_else(Layout::unit), values])
}

/// Of as many of them as the atom copies.
fn tiled_of_pairs(atom: &CopyAtom, mma: &TiledMma) -> Result<TiledCopy, LayoutError> {
    let (rows, columns) = mma.tile(Operand::C)?;
    let all = of_pairs(mma, [rows, columns])?;
    let taken = atom.src().mode(1).map_or(1, |values| values.size());
    let [threads, values] = [0, 1].map(|mode| all.mode(mode).unwrap_or_else(Layout::unit));
    let first = composition(&values, &Layout::mode_of(taken, 1)?)?;
    make_cotiled_copy(atom, &Layout::from_modes([threads, first])?, &tile_layout([rows, columns / 2])?)
}

/// What each thread of a TiledCopy moves.
pub(super) fn of_tiled(tiled: &TiledCopy, extents: [i64; 2]) -> Result<Sides, LayoutError> {
    let tile = tile_layout(extents)?;
    let width = |side: &Layout| side.mode(1).map_or(1, |values| values.size());
    let (src, dst) = (tiled.atom().src(), tiled.atom().dst());
    // One step, in which each thread copies its own: the layout of threads and values itself.
    let alone = src.mode(0).is_none_or(|threads| threads.size() == 1);
    if src == dst && alone && tiled.tile()?.ints().as_deref() == Some(&extents[..]) {
        let own = Moves::new(tiled.layout_tv(), width(src))?;
        return Ok(Sides { from: own.clone(), to: own });
    }
    let from = Moves::new(&tiled.tidfrg_s(&tile)?, width(src))?;
    // Most instructions give each thread what it reads.
    let to = if src == dst { from.clone() } else { Moves::new(&tiled.tidfrg_d(&tile)?, width(dst))? };
    Ok(Sides { from, to })
}
