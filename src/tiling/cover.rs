//! The proofs: each element is copied exactly once, by vectors that are whole and aligned, from the base on; what is outside of a
//! matrix is guarded; an MMA takes each element of its tile once.

use core::fmt;

use super::{Engine, Global, Guard, Place, Proxy, SmemTensor, TileCopy, TileMma, Tiling};
use crate::atom::{Operand, TiledCopy};
use crate::layout::{IntTuple, Layout, LayoutError, make_layout};
use crate::units::Bytes;

/// Which law a tiling breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Each element of a tile is copied, or computed, exactly once.
    CoversOnce,
    /// The elements of one instruction are neighbours on both sides.
    Contiguous,
    /// The address of each instruction is a multiple of what it moves.
    Aligned,
    /// What lies outside of a matrix is neither read nor written.
    Guarded,
    /// A tensor in shared memory has one address for each coordinate.
    Injective,
    /// The box of a tensor map is one that TMA has.
    Box,
    /// Tensors lie in shared memory as the hardware reads them.
    Swizzle,
    /// Warps and clusters do what the copies and MMAs ask for.
    Roles,
    /// A step of the algebra is refused.
    Algebra,
}

/// What is wrong with a tiling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flaw {
    /// The law that is broken.
    pub law: Law,
    /// What is there.
    pub found: String,
    /// What has to be there.
    pub required: String,
    /// Why.
    pub because: &'static str,
}

impl fmt::Display for Flaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: found {}, required {}, because {}", self.law, self.found, self.required, self.because)
    }
}

/// Collects flaws.
pub(super) struct Flaws(pub(super) Vec<Flaw>);

impl Flaws {
    pub(super) fn push(&mut self, law: Law, found: String, required: impl Into<String>, because: &'static str) {
        self.0.push(Flaw { law, found, required: required.into(), because });
    }

    /// The value, or the refusal of the algebra as a flaw.
    pub(super) fn take<T>(&mut self, what: &str, result: Result<T, LayoutError>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                let found = format!("{what}: {}", error.what_was_found());
                let required = error.what_is_required().to_string();
                self.push(Law::Algebra, found, required, "the algebra refuses what has no exact result");
                None
            }
        }
    }
}

impl Tiling {
    /// Everything that is wrong; nothing for a tiling whose kernel is right.
    pub fn flaws(&self) -> Vec<Flaw> {
        let mut flaws = Flaws(Vec::new());
        for mma in &self.mmas {
            self.mma_flaws(mma, &mut flaws);
        }
        if !flaws.0.is_empty() {
            // Copies between memories and fragments that there are not would say the same once more.
            return flaws.0;
        }
        for tensor in &self.smem {
            tensor.injective(&mut flaws);
        }
        for copy in &self.copies {
            self.copy_flaws(copy, &mut flaws);
        }
        self.descriptor_flaws(&mut flaws);
        self.role_flaws(&mut flaws);
        flaws.0
    }

    fn copy_flaws(&self, copy: &TileCopy, flaws: &mut Flaws) {
        copy.guard_flaws(flaws);
        for place in [copy.from, copy.to] {
            if let Place::Shared(name) = place
                && self.smem(name).is_none_or(|t| t.extents()[..2] != copy.tile || t.dtype != copy.dtype)
            {
                let [rows, columns] = copy.tile;
                let required = format!("a tensor {name} of ({rows},{columns},STAGES) {}", copy.dtype);
                flaws.push(Law::CoversOnce, format!("{}: none in shared memory", copy.what), required, ONCE);
                return;
            }
        }
        match &copy.engine {
            Engine::Threads { copy: tiled, .. } => self.threads_flaws(copy, tiled, flaws),
            Engine::Fragments => self.fragment_flaws(copy, flaws),
            Engine::Tma { extents } => self.tma_flaws(copy, *extents, flaws),
        }
    }

    /// A TiledCopy: each element once; its vectors.
    fn threads_flaws(&self, copy: &TileCopy, tiled: &TiledCopy, flaws: &mut Flaws) {
        let threads = tiled.threads();
        if threads > i64::from(self.threads()) {
            let required = format!("at most the {} threads of the CTA", self.threads());
            flaws.push(
                Law::Roles,
                format!("{}: {threads} threads", copy.what),
                required,
                "there are no others to copy",
            );
            return;
        }
        let Some(sides) = flaws.take(copy.what, copy.elements(tiled)) else { return };
        match copy.to {
            // A fragment is filled once for each thread that multiplies with the element.
            Place::Registers(operand) => self.fills(copy, operand, &sides.to, flaws),
            _ => once(copy.what, copy.tile, sides.to.iter().flatten().flatten().copied(), flaws),
        }
        for (place, side) in [(copy.from, &sides.from), (copy.to, &sides.to)] {
            self.vector_flaws(copy, place, side, flaws);
        }
    }

    /// Whether what each thread receives is what the MMA takes of it.
    fn fills(&self, copy: &TileCopy, operand: Operand, received: &[Vec<Vec<i64>>], flaws: &mut Flaws) {
        let [rows, columns] = copy.tile;
        for mma in &self.mmas {
            let Some((mma, tile)) =
                flaws.take(copy.what, mma.tiled().and_then(|mma| Ok((mma, tile_layout(copy.tile)?))))
            else {
                return;
            };
            for (thread, received) in (0..mma.threads()).zip(received) {
                let Some((own, offset)) = flaws.take(copy.what, mma.partition(operand, thread, &tile)) else { return };
                let mut wanted: Vec<i64> = (0..own.size()).filter_map(|i| own.at(i).ok()).map(|i| i + offset).collect();
                let mut found: Vec<i64> = received.iter().flatten().copied().collect();
                wanted.sort_unstable();
                found.sort_unstable();
                if wanted != found {
                    flaws.push(
                        Law::CoversOnce,
                        format!(
                            "{}: thread {thread} receives {} elements of ({rows},{columns})",
                            copy.what,
                            found.len()
                        ),
                        format!("the {} elements that it multiplies", wanted.len()),
                        ONCE,
                    );
                    return;
                }
            }
        }
    }

    /// The vectors of one side: neighbours, and aligned from the base on.
    fn vector_flaws(&self, copy: &TileCopy, place: Place, side: &[Vec<Vec<i64>>], flaws: &mut Flaws) {
        let size = copy.dtype.bytes().0;
        let address: Box<dyn Fn(i64) -> Option<i64> + '_> = match place {
            Place::Registers(_) => return,
            Place::Global(global) => {
                // Rows lie anywhere, at multiples of `align`; so far apart that no vector goes on in the next.
                let (rows, far) = (copy.tile[0], 1 << 20);
                let contiguous = global.contiguous;
                Box::new(move |index| {
                    let (row, column) = (index % rows, index / rows);
                    Some(if contiguous == 1 { column + row * far } else { row + column * far })
                })
            }
            Place::Shared(name) => {
                let Some(tensor) = self.smem(name) else { return };
                Box::new(move |index| tensor.at([index % copy.tile[0], index / copy.tile[0], 0]).ok())
            }
        };
        let base = match place {
            Place::Global(Global { align, .. }) => align,
            Place::Shared(name) => self.smem(name).map_or(Bytes(size), |t| t.align),
            Place::Registers(_) => return,
        };
        for (thread, vectors) in side.iter().enumerate() {
            for vector in vectors {
                let bytes = Bytes(vector.len() as u64 * size);
                let at: Vec<i64> = vector.iter().filter_map(|index| address(*index)).collect();
                let first = at.first().copied().unwrap_or(0);
                if at.len() != vector.len() || at.iter().zip(first..).any(|(a, b)| *a != b) {
                    flaws.push(
                        Law::Contiguous,
                        format!("{}: thread {thread} moves elements {at:?} at once", copy.what),
                        format!("{} neighbours", vector.len()),
                        "one instruction moves bytes that lie side by side",
                    );
                    return;
                }
                if !base.0.is_multiple_of(bytes.0) || !(first as u64 * size).is_multiple_of(bytes.0) {
                    flaws.push(
                        Law::Aligned,
                        format!(
                            "{}: thread {thread} moves {bytes} at element {first}, from a multiple of {base}",
                            copy.what
                        ),
                        format!("an address that is a multiple of {bytes}"),
                        "the GPU faults on an address that is not aligned to what is moved",
                    );
                    return;
                }
            }
        }
    }

    /// Fragments to global memory: each element of the tile belongs to one thread.
    fn fragment_flaws(&self, copy: &TileCopy, flaws: &mut Flaws) {
        let (Place::Registers(operand), [mma]) = (copy.from, &self.mmas[..]) else {
            let found = format!("{}: from {:?}, {} MMAs", copy.what, copy.from, self.mmas.len());
            flaws.push(Law::CoversOnce, found, "the registers of one MMA", ONCE);
            return;
        };
        let all = mma.tiled().and_then(|mma| mma.thrfrg(operand, &tile_layout(copy.tile)?));
        let Some(all) = flaws.take(copy.what, all) else { return };
        once(copy.what, copy.tile, (0..all.size()).filter_map(|i| all.at(i).ok()), flaws);
    }

    /// Each element of A, B and C of the CTA tile has one place in the MMA's fragments, and its threads are there.
    fn mma_flaws(&self, mma: &TileMma, flaws: &mut Flaws) {
        let Some(tiled) = flaws.take("MMA", mma.tiled()) else { return };
        let [m, n, k] = self.tile;
        for (operand, tile) in [(Operand::A, [m, k]), (Operand::B, [n, k]), (Operand::C, [m, n])] {
            let tile_mnk = flaws.take("MMA", tiled.tile(operand));
            let Some((rows, columns)) = tile_mnk else { return };
            if tile[0] % rows != 0 || tile[1] % columns != 0 {
                flaws.push(
                    Law::CoversOnce,
                    format!("{operand:?} of ({},{}), tiles of the MMA of ({rows},{columns})", tile[0], tile[1]),
                    "extents that the MMA divides",
                    "an MMA computes whole tiles",
                );
                return;
            }
            let all = tiled.thrfrg(operand, &tile_layout_or_unit(tile));
            let Some(all) = flaws.take("MMA", all) else { return };
            if mma.operands == super::MmaOperands::Registers || operand == Operand::C {
                once("MMA", tile, (0..all.size()).filter_map(|i| all.at(i).ok()), flaws);
            }
        }
    }

    fn role_flaws(&self, flaws: &mut Flaws) {
        for mma in &self.mmas {
            let threads = mma.tiled().map_or(0, |mma| mma.threads());
            let consumers = i64::from(self.threads_of(super::Task::Consume));
            if threads != consumers {
                flaws.push(
                    Law::Roles,
                    format!("{consumers} threads that compute"),
                    format!("{threads}: those of the MMA"),
                    "an MMA is computed by all of its threads, and by no others",
                );
            }
        }
        if self.cluster != [1, 1, 1] {
            let found = format!("a cluster of {:?}", self.cluster);
            flaws.push(Law::Roles, found, "(1,1,1)", "no copy here is shared by the CTAs of a cluster");
        }
    }
}

const ONCE: &str = "each element is copied, or computed, exactly once";

/// The elements of a tile that each thread moves with each instruction, column-major indices, on both sides.
pub(super) struct Sides {
    pub(super) from: Vec<Vec<Vec<i64>>>,
    pub(super) to: Vec<Vec<Vec<i64>>>,
}

impl TileCopy {
    /// What each thread of a TiledCopy moves.
    pub(super) fn elements(&self, tiled: &TiledCopy) -> Result<Sides, LayoutError> {
        let tile = tile_layout(self.tile)?;
        let width = |side: &Layout| side.mode(1).map_or(1, |values| values.size()).max(1);
        let vectors = |all: Layout, vector: i64| -> Result<Vec<Vec<Vec<i64>>>, LayoutError> {
            let threads = all.mode(0).map_or(1, |mode| mode.size());
            let values = all.size() / threads.max(1);
            (0..threads)
                .map(|thread| {
                    let one = |value: i64| all.at(thread + threads * value);
                    let vector_at = |first: i64| (first..first + vector).map(one).collect::<Result<Vec<_>, _>>();
                    (0..values / vector).map(|i| vector_at(i * vector)).collect()
                })
                .collect()
        };
        let atom = tiled.atom();
        Ok(Sides {
            from: vectors(tiled.tidfrg_s(&tile)?, width(atom.src()))?,
            to: vectors(tiled.tidfrg_d(&tile)?, width(atom.dst()))?,
        })
    }

    /// What guards the elements outside of a matrix.
    fn guard_flaws(&self, flaws: &mut Flaws) {
        let global = [self.from, self.to].into_iter().find_map(|place| match place {
            Place::Global(global) => Some(global),
            _ => None,
        });
        let Some(global) = global else {
            if self.guard != Guard::None {
                let found = format!("{}: {:?}", self.what, self.guard);
                flaws.push(Law::Guarded, found, "no guard", "a tile in shared memory has no outside");
            }
            return;
        };
        let writes = matches!(self.to, Place::Global(_));
        let fits = match (self.guard, &self.engine) {
            (Guard::TensorMap, Engine::Tma { .. }) => true,
            (Guard::ZeroFill, Engine::Threads { op, .. }) => !writes && op.zero_filling().is_some(),
            (Guard::Predicate, Engine::Threads { .. } | Engine::Fragments) => writes,
            _ => false,
        };
        if !fits {
            flaws.push(
                Law::Guarded,
                format!("{}: {:?}", self.what, self.guard),
                "a predicate for each instruction, or a tensor map",
                "the last tiles of a matrix reach past its end",
            );
        }
        // One predicate decides over a whole vector.
        if let (Guard::ZeroFill | Guard::Predicate, Engine::Threads { copy, .. }) = (self.guard, &self.engine) {
            let vector = copy.atom().counts().1;
            if global.multiple % vector != 0 {
                flaws.push(
                    Law::Guarded,
                    format!("{}: one predicate for {vector} elements", self.what),
                    format!("extents that are a multiple of {vector}, found multiples of {}", global.multiple),
                    "a vector would lie across the end of a row",
                );
            }
        }
    }
}

impl SmemTensor {
    fn injective(&self, flaws: &mut Flaws) {
        let [rows, columns, stages] = self.extents();
        let Some(cosize) = flaws.take(self.name, self.layout.cosize()) else { return };
        let mut taken = vec![false; cosize.max(0) as usize];
        for index in 0..rows * columns * stages {
            let at = self.at([index % rows, index / rows % columns, index / rows / columns]).ok();
            let slot = at.and_then(|at| taken.get_mut(usize::try_from(at).ok()?));
            match slot {
                Some(slot) if !*slot => *slot = true,
                found => {
                    let what = if found.is_some() { "has been taken" } else { "lies outside" };
                    flaws.push(
                        Law::Injective,
                        format!("s{}: coordinate {index} at element {at:?}, which {what}", self.name),
                        format!("an element of its own among {cosize}"),
                        "what is written for one coordinate must be there for it alone",
                    );
                    return;
                }
            }
        }
        // The swizzle exchanges addresses within a block of its own size.
        let block = self.swizzle.map_or(1, |swizzle| swizzle.block()) as u64 * self.dtype.bytes().0;
        if self.proxy == Proxy::Async && !self.align.0.is_multiple_of(block) {
            flaws.push(
                Law::Swizzle,
                format!("s{} at a multiple of {}", self.name, self.align),
                format!("a multiple of {}", Bytes(block)),
                "TMA and WGMMA exchange bits of the address itself (PTX ISA, \"Swizzling Modes\")",
            );
        }
    }
}

/// (rows, columns), column-major: what indices of a tile mean.
pub(super) fn tile_layout([rows, columns]: [i64; 2]) -> Result<Layout, LayoutError> {
    make_layout(&IntTuple::tuple([IntTuple::int(rows), IntTuple::int(columns)])?)
}

fn tile_layout_or_unit(tile: [i64; 2]) -> Layout {
    tile_layout(tile).unwrap_or_else(|_| Layout::unit())
}

/// Each element of a tile, once.
fn once(what: &str, [rows, columns]: [i64; 2], elements: impl Iterator<Item = i64>, flaws: &mut Flaws) {
    let mut times = vec![0_u32; (rows * columns).max(0) as usize];
    let mut outside = None;
    for element in elements {
        match usize::try_from(element).ok().and_then(|at| times.get_mut(at)) {
            Some(slot) => *slot += 1,
            None => outside = Some(element),
        }
    }
    let at = |index: usize| format!("({},{})", index as i64 % rows, index as i64 / rows);
    let found = match (outside, times.iter().position(|n| *n != 1)) {
        (Some(element), _) => format!("{what}: element {element}, which is not in ({rows},{columns})"),
        (None, Some(index)) => format!("{what}: element {} {} times", at(index), times[index]),
        (None, None) => return,
    };
    flaws.push(Law::CoversOnce, found, format!("each element of ({rows},{columns}) once"), ONCE);
}
