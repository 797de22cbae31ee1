//! The proofs: [`Tiling::flaws`] runs them all. Those of copies and MMAs are here, the others in `factors`, `guard`, `injective`,
//! `order`, `pipeline`, `reduce`, `roles` and `tma`. Each element is copied exactly once. Vectors are whole, and aligned from the base on. Elements outside of a matrix are
//! guarded. An MMA takes each element of its tile once.

use core::fmt;

use super::moves::{Moves, of_pairs};
use super::{Engine, Factor, Global, Guard, Place, TileCopy, TileMma, Tiling};
use crate::atom::Operand;
use crate::layout::{IntTuple, Layout, LayoutError, Swizzle, make_layout};
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
    /// A thread has the registers that its accumulators take.
    Registers,
    /// A tensor in shared memory is there while it is used.
    Lifetime,
    /// Producers fill the stages of a pipeline; consumers wait for them and free them.
    Pipeline,
    /// A reduction goes over all threads that hold a part of it.
    Reduces,
    /// Each step of each tile of the output is in one piece of work.
    Order,
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
            self.lifetime_flaws(tensor, &mut flaws);
        }
        for copy in &self.copies {
            self.copy_flaws(copy, &mut flaws);
        }
        self.handed_flaws(&mut flaws);
        self.descriptor_flaws(&mut flaws);
        self.factor_flaws(&mut flaws);
        self.pipeline_flaws(&mut flaws);
        self.reduce_flaws(&mut flaws);
        self.role_flaws(&mut flaws);
        self.order_flaws(&mut flaws);
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
        if let Engine::Tma { extents, sharers, .. } = copy.engine {
            self.tma_flaws(copy, extents, sharers, flaws);
        } else {
            self.threads_flaws(copy, flaws);
        }
    }

    /// Each element once; vectors of neighbours.
    fn threads_flaws(&self, copy: &TileCopy, flaws: &mut Flaws) {
        if let Some((mma, operand)) = self.fragments_of(copy) {
            let tile = mma.tile_of(operand);
            let fits = if copy.hands_over_accumulators() {
                (0..2).all(|mode| copy.tile[mode] > 0 && tile[mode] % copy.tile[mode] == 0)
            } else {
                copy.tile == tile
            };
            if !fits {
                let found = format!("{}: {:?} of {operand}", copy.what, copy.tile);
                flaws.push(Law::CoversOnce, found, format!("{tile:?}"), ONCE);
                return;
            }
        }
        let Some(Some(sides)) = flaws.take(copy.what, self.sides(copy)) else { return };
        let threads = sides.from.threads.len();
        if threads > self.threads() as usize {
            let required = format!("at most the {} threads of the CTA", self.threads());
            let found = format!("{}: {threads} threads", copy.what);
            flaws.push(Law::Roles, found, required, "there are no others to copy");
            return;
        }
        match (copy.to, &copy.engine) {
            // What the MMA itself says that a thread holds.
            (Place::Fragments(..), Engine::Fragments(op)) if !op.is_ldmatrix() => {}
            // A fragment is filled once for each thread that multiplies with the element.
            (Place::Fragments(..), _) => self.fills(copy, &sides.to, flaws),
            _ => once(copy.what, copy.tile, &sides.to, flaws),
        }
        if copy.hands_over_accumulators() {
            self.stores_what_it_has(copy, &sides.from, flaws);
        }
        for (place, side) in [(copy.from, &sides.from), (copy.to, &sides.to)] {
            self.vector_flaws(copy, place, side, flaws);
        }
    }

    /// Whether a thread that stores from its registers has loaded the same elements of that tile into them. What it stores to shared
    /// memory is what it has loaded of that tensor from global memory, and that it stores nowhere else.
    fn handed_flaws(&self, flaws: &mut Flaws) {
        let loads = || self.copies.iter().filter(|copy| copy.to == Place::Threads);
        let stores = || self.copies.iter().filter(|copy| copy.from == Place::Threads);
        let staged_by = |store: &TileCopy, load: &TileCopy| matches!((load.from, store.to), (Place::Global(_), Place::Shared(name)) if name == load.name);
        let is_staged = |load: &TileCopy| stores().any(|store| staged_by(store, load));
        for store in stores() {
            let is_its_own = |load: &&TileCopy| match store.to {
                Place::Shared(_) if loads().any(|load| staged_by(store, load)) => staged_by(store, load),
                _ => !is_staged(load),
            };
            for load in loads().filter(is_its_own).filter(|load| load.tile == store.tile) {
                let (Ok(Some(got)), Ok(Some(given))) = (self.sides(load), self.sides(store)) else { continue };
                if let Some(thread) = others_in(&got.to, &given.from) {
                    let found =
                        format!("{}: thread {thread} stores others than it has by the {}", store.what, load.what);
                    let because = "a thread computes with its own registers: nothing moves them between threads";
                    flaws.push(Law::CoversOnce, found, "the elements of the same thread", because);
                }
            }
        }
    }

    /// Whether what a thread stores, part by part of the tile of D, is what it has accumulated.
    fn stores_what_it_has(&self, copy: &TileCopy, stored: &Moves, flaws: &mut Flaws) {
        let Some((mma, _)) = self.fragments_of(copy) else { return };
        let ([m, n, _], [rows, columns]) = (mma.tile, copy.tile);
        let parts = || (0..m / rows).flat_map(|r| (0..n / columns).map(move |c| (r * rows, c * columns)));
        let (n, own) = match copy.from {
            Place::Pairs(_) => (n / 2, mma.tiled().and_then(|mma| of_pairs(&mma, [m, n]))),
            _ => (n, mma.tiled().and_then(|mma| mma.thread_values(Operand::C, &tile_layout([m, n])?))),
        };
        let Some(own) = flaws.take(copy.what, own.and_then(|own| Moves::new(&own, 1))) else { return };
        if stored.part_by_part([m, n], copy.tile).is_some_and(|stored| own.are_those_of(&stored)) {
            return;
        }
        let in_tile = |element: i64, (row, column): (i64, i64)| (element % rows + row) + (element / rows + column) * m;
        let mut marks = Marks::default();
        let wrong = (0..own.threads.len().max(stored.threads.len())).find(|thread| {
            let in_part = |part| stored.of_thread(*thread).map(move |element| in_tile(element, part));
            !marks.are_the_same(own.of_thread(*thread), parts().flat_map(in_part))
        });
        if let Some(thread) = wrong {
            let found = format!("{}: thread {thread} stores others than it holds", copy.what);
            flaws.push(Law::CoversOnce, found, format!("its accumulators of ({m},{n})"), ONCE);
        }
    }

    /// Whether each thread receives the elements that the MMA takes from it.
    fn fills(&self, copy: &TileCopy, received: &Moves, flaws: &mut Flaws) {
        let ([rows, columns], Some((mma, operand))) = (copy.tile, self.fragments_of(copy)) else { return };
        let own = mma.tiled().and_then(|mma| mma.thread_values(operand, &tile_layout(copy.tile)?));
        let Some(own) = flaws.take(copy.what, own.and_then(|own| Moves::new(&own, 1))) else { return };
        if let Some(thread) = others_in(&own, received) {
            let received = received.values.len();
            let found = format!("{}: thread {thread} receives {received} elements of ({rows},{columns})", copy.what);
            flaws.push(Law::CoversOnce, found, format!("the {} elements that it multiplies", own.values.len()), ONCE);
        }
    }

    /// Where the elements of a copy's tile lie on one side, as a layout and what exchanges its elements, and what the base is a multiple
    /// of; `None` where it has no addresses.
    fn addresses(&self, copy: &TileCopy, place: Place, side: &Moves) -> Option<(Layout, Option<Swizzle>, Bytes)> {
        match place {
            // Rows lie anywhere, at multiples of `align`; so far apart that no vector goes on in the next.
            Place::Global(Global { contiguous, align, .. }) => {
                let strides = if contiguous == 1 { [FAR, 1] } else { [1, FAR] };
                let modes = [0, 1].map(|mode| Layout::mode_of(copy.tile[mode], strides[mode]));
                let far = modes.into_iter().collect::<Result<Vec<_>, _>>().and_then(Layout::from_modes).ok()?;
                // The text may ask whether vectors are aligned, and whole.
                let asked = Bytes(side.vector as u64 * copy.dtype.bytes().0);
                Some((far, None, if copy.guard == Guard::Elements { asked } else { align }))
            }
            // `copy_flaws` has seen that the tensor has the extents of the tile.
            Place::Shared(name) => {
                let tensor = self.smem(name)?;
                Some((tensor.stage(), tensor.swizzle, tensor.align))
            }
            Place::Fragments(..) | Place::Pairs(_) | Place::Threads => None,
        }
    }

    /// The vectors of one side: neighbours, and aligned from the base on.
    fn vector_flaws(&self, copy: &TileCopy, place: Place, side: &Moves, flaws: &mut Flaws) {
        let Some((layout, swizzle, base)) = self.addresses(copy, place, side) else { return };
        let size = copy.dtype.bytes().0;
        let bytes = Bytes(side.vector as u64 * size);
        if base.0.is_multiple_of(bytes.0) && side.are_vectors(&layout, swizzle) {
            return;
        }
        let Some(mut addresses) = flaws.take(copy.what, layout.values()) else { return };
        if let Some(swizzle) = swizzle {
            addresses.iter_mut().for_each(|at| *at = swizzle.apply(*at));
        }
        for (thread, element) in side.threads.iter().enumerate() {
            let at = |value: &i64| addresses.get(usize::try_from(element + value).ok()?).copied();
            for values in side.values.chunks(side.vector) {
                let first = values.first().and_then(at).unwrap_or(0);
                let whole = values.len() == side.vector;
                if !whole || values.iter().zip(first..).any(|(value, neighbour)| at(value) != Some(neighbour)) {
                    let place = |value: &i64| copy.coordinate(element + value);
                    let found: Vec<String> = values.iter().map(place).collect();
                    flaws.push(
                        Law::Contiguous,
                        format!("{}: thread {thread} moves {} at once", copy.what, found.join(", ")),
                        format!("{} neighbours", side.vector),
                        "one instruction moves bytes that lie side by side",
                    );
                    return;
                }
                if !base.0.is_multiple_of(bytes.0) || !(first as u64 * size).is_multiple_of(bytes.0) {
                    let place = copy.coordinate(element + values.first().copied().unwrap_or(0));
                    let found = format!("{}: thread {thread} moves {bytes} at {place}", copy.what);
                    flaws.push(
                        Law::Aligned,
                        format!("{found}, element {first} from a multiple of {base}"),
                        format!("an address that is a multiple of {bytes}"),
                        "the GPU faults on an address that is not aligned to what is moved",
                    );
                    return;
                }
            }
        }
    }

    /// Each element of A, B and C of the CTA tile has one place in the MMA's fragments, and its threads are there.
    fn mma_flaws(&self, mma: &TileMma, flaws: &mut Flaws) {
        let Some(tiled) = flaws.take("MMA", mma.tiled()) else { return };
        for operand in [Operand::A, Operand::B, Operand::C] {
            let tile = mma.tile_of(operand);
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
            let all = tile_layout(tile).and_then(|tile| tiled.thrfrg(operand, &tile));
            let Some(all) = flaws.take("MMA", all.and_then(|all| Moves::new(&all, 1))) else { return };
            // WGMMA reads B through descriptors, and A where it is in shared memory.
            let is_shared = |factor| matches!(factor, Factor::Shared(_));
            let by_descriptors = match operand {
                Operand::A => is_shared(mma.a),
                Operand::B => is_shared(mma.a) || is_shared(mma.b),
                Operand::C => false,
            };
            if !by_descriptors {
                once("MMA", tile, &all, flaws);
            }
        }
    }
}

pub(super) const ONCE: &str = "each element is copied, or computed, exactly once";

/// Elements from one row of a matrix to the next: more than any vector has.
pub(super) const FAR: i64 = 1 << 20;

/// (rows, columns), column-major: what indices of a tile mean.
pub(super) fn tile_layout([rows, columns]: [i64; 2]) -> Result<Layout, LayoutError> {
    make_layout(&IntTuple::tuple([IntTuple::int(rows), IntTuple::int(columns)])?)
}

/// The first thread that has other elements in one than in the other.
pub(super) fn others_in(own: &Moves, other: &Moves) -> Option<usize> {
    if own.are_those_of(other) {
        return None;
    }
    let mut marks = Marks::default();
    let mut same = |thread| marks.are_the_same(own.of_thread(thread), other.of_thread(thread));
    (0..own.threads.len()).find(|thread| !same(*thread))
}

/// Compares what two sets have, without a set of its own for each.
#[derive(Default)]
struct Marks {
    marks: Vec<u32>,
    turn: u32,
}

impl Marks {
    /// Whether two lists of elements of a tile have the same, whatever their order, and each once.
    fn are_the_same(&mut self, first: impl Iterator<Item = i64>, second: impl Iterator<Item = i64>) -> bool {
        self.turn += 2;
        let (in_first, in_both) = (self.turn - 1, self.turn);
        let mut left = 0_usize;
        for element in first {
            let Ok(at) = usize::try_from(element) else { return false };
            if at >= self.marks.len() {
                self.marks.resize(at + 1, 0);
            }
            if self.marks[at] == in_first {
                return false;
            }
            self.marks[at] = in_first;
            left += 1;
        }
        for element in second {
            let slot = usize::try_from(element).ok().and_then(|at| self.marks.get_mut(at));
            let Some(slot) = slot.filter(|slot| **slot == in_first) else { return false };
            *slot = in_both;
            left -= 1;
        }
        left == 0
    }
}

/// Each element of a tile, once.
fn once(what: &str, [rows, columns]: [i64; 2], moves: &Moves, flaws: &mut Flaws) {
    if moves.cover(rows * columns) {
        return;
    }
    let mut times = vec![0_u32; (rows * columns).max(0) as usize];
    let mut outside = None;
    for element in moves.elements() {
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All lists of up to three of the elements 0 to 2, each pair compared by the same marks, in turn.
    #[test]
    fn marks_are_sets_however_often_they_are_used() {
        let mut lists: Vec<Vec<i64>> = vec![Vec::new()];
        for length in 0..3 {
            let longer = lists
                .iter()
                .filter(|list| list.len() == length)
                .flat_map(|list| (0..3).map(|element| list.iter().copied().chain([element]).collect()));
            let longer: Vec<Vec<i64>> = longer.collect();
            lists.extend(longer);
        }
        let set = |list: &[i64]| list.iter().copied().collect::<BTreeSet<i64>>();
        let mut marks = Marks::default();
        for (first, second) in lists.iter().flat_map(|first| lists.iter().map(move |second| (first, second))) {
            let each_once = set(first).len() == first.len() && set(second).len() == second.len();
            let same = each_once && set(first) == set(second);
            let found = marks.are_the_same(first.iter().copied(), second.iter().copied());
            assert_eq!(found, same, "{first:?} {second:?}");
        }
        assert!(!marks.are_the_same([-1].into_iter(), [-1].into_iter()), "no element of a tile");
    }
}
