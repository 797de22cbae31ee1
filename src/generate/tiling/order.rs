//! In which order the tiles of the output are computed: [`Order`], and the proof that each is computed once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Tiling;
use super::cover::{Flaws, Law};
use crate::int::{Int, Step, Steps};

/// Which tile of the output each piece of work is, and over which steps of the inner loop it runs. Both are integer expressions
/// of a launch's numbers, so that offsets of a table, windows and ranges of K are said as a plain tile is.
#[derive(Clone, Debug, PartialEq)]
pub struct Order {
    /// The values: first those of a launch, then the coordinates of a piece, then what follows from both.
    pub steps: Steps,
    /// The numbers of a launch: extents of the problem, and parameters.
    pub known: Vec<Known>,
    /// The coordinates of a piece of work, such as the number of a CTA, and how many there are.
    pub pieces: Vec<Axis>,
    /// The tile of the output, mode by mode, and the tiles along the mode. A piece may lie past the last tile: it writes nothing.
    pub tile: Vec<Axis>,
    /// The steps of the inner loop.
    pub inner: Inner,
    /// How CTAs take the pieces.
    pub takes: Takes,
    /// The number of [`Order::known`] that each group has of its own, as the device finds it, where there are groups. The pieces of a group
    /// are those of a launch with that number; a launch numbers them behind those of the group before.
    pub groups: Option<Int>,
}

/// A number of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// Which value of [`Order::steps`].
    pub value: Int,
    /// Elements of a tile along it; 1 for a count. The proof tries few tiles, and one that is not whole.
    pub unit: i64,
}

/// A coordinate, and how many there are.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The coordinate.
    pub at: Int,
    /// One more than the largest.
    pub extent: Int,
}

/// The inner loop of a piece. All pieces of a tile together run over its steps once.
#[derive(Clone, Debug, PartialEq)]
pub struct Inner {
    /// The first step of the piece.
    pub first: Int,
    /// The trip count of the piece.
    pub trips: Int,
    /// The first step of the tile, and the one behind its last.
    pub tile: [Int; 2],
}

/// How CTAs take the pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// A CTA for each.
    One,
    /// As many clusters as are resident take pieces in turn.
    Turns {
        /// Groups of consumers with a piece each. The groups of a CTA take its pieces in turn.
        teams: u32,
        /// stream-K: the least saving, in k-tiles a cluster, before the last wave is split along K, and the shortest piece. The
        /// partial sums lie in the workspace. 0 disables stream-K.
        stream_k: u32,
    },
}

impl Order {
    /// An order without pieces yet: the numbers of a launch, each with the elements of a tile along it, and the coordinates of
    /// a piece.
    pub fn new<const KNOWN: usize, const PIECES: usize>(
        known: [(&str, i64); KNOWN],
        pieces: [&str; PIECES],
    ) -> (Self, [Int; KNOWN], [Int; PIECES]) {
        let mut steps = Steps::default();
        let values = known.map(|(name, _)| steps.input(name));
        let pieces = pieces.map(|name| steps.input(name));
        let known = values.iter().zip(known).map(|(value, (_, unit))| Known { value: value.clone(), unit }).collect();
        let inner = Inner { first: 0.into(), trips: 1.into(), tile: [0.into(), 1.into()] };
        (
            Self { steps, known, pieces: Vec::new(), tile: Vec::new(), inner, takes: Takes::One, groups: None },
            values,
            pieces,
        )
    }

    /// A further number of a launch.
    pub fn known(&mut self, name: &str, unit: i64) -> Int {
        let value = self.steps.input(name);
        self.known.push(Known { value: value.clone(), unit });
        value
    }

    /// A CTA for each tile of these modes, numbered along the first mode first, each with the elements of a tile along it. The inner
    /// loop, where there is one, runs over all steps of a further extent.
    pub fn numbered(modes: &[(&str, i64)], inner: Option<(&str, i64)>) -> Self {
        let (mut order, _, [cta]) = Self::new([], ["cta"]);
        let mut add = |(name, unit): (&str, i64)| order.known(name, unit).ceil_div(unit);
        let tiles: Vec<Int> = modes.iter().map(|mode| add(*mode)).collect();
        let trips = inner.map_or(Int::from(1), &mut add);
        order.inner = Inner { first: 0.into(), trips: trips.clone(), tile: [0.into(), trips] };
        let (mut before, last) = (Int::from(1), tiles.len().saturating_sub(1));
        for (mode, extent) in tiles.into_iter().enumerate() {
            let number = if mode == 0 { cta.clone() } else { cta.clone() / before.clone() };
            let at = if mode == last { number } else { number % extent.clone() };
            before = if mode == 0 { extent.clone() } else { before * extent.clone() };
            order.tile.push(Axis { at, extent });
        }
        order.pieces = vec![Axis { at: cta, extent: before }];
        order
    }

    /// How many there are along up to three of these axes, 1 along others, for numbers of a launch by name. Those of pieces that are
    /// numbered along x, y and z are the blocks of a grid.
    pub fn extents(&self, axes: &[Axis], known: impl Fn(&str) -> Int) -> [Int; 3] {
        let mut extents = axes.iter().map(|axis| self.resolved(&axis.extent, &known));
        [(); 3].map(|()| extents.next().unwrap_or(Int::Const(1)))
    }

    /// An expression of the numbers of a launch alone. What follows from others is written out.
    fn resolved(&self, of: &Int, known: &impl Fn(&str) -> Int) -> Int {
        of.with(&|index| match self.follows(index) {
            Some(value) => self.resolved(value, known),
            None => self.steps.names.get(index).map_or(Int::Value(index), |name| known(name)),
        })
    }

    /// What a value follows from, if it is not given.
    fn follows(&self, index: usize) -> Option<&Int> {
        self.steps.steps.iter().find_map(|step| match step {
            Step::Let(of, value) if *of == index => Some(value),
            _ => None,
        })
    }

    /// The values that follow from a coordinate of a piece, by name and in order: what a CTA computes for each of its pieces.
    pub fn of_piece(&self) -> Vec<(&str, &Int)> {
        let mut depends: Vec<usize> = Vec::new();
        self.pieces.iter().for_each(|axis| axis.at.values(&mut depends));
        let mut found = Vec::new();
        for step in &self.steps.steps {
            let Step::Let(index, value) = step else { continue };
            let mut of = Vec::new();
            value.values(&mut of);
            if of.iter().any(|value| depends.contains(value)) {
                depends.push(*index);
                found.push((self.steps.names.get(*index).map_or("", String::as_str), value));
            }
        }
        found
    }

    /// All values for these numbers of a launch and this piece; `None` past 64 bits.
    pub fn eval(&self, known: &[i64], piece: &[i64]) -> Option<Vec<i64>> {
        let mut inputs = vec![0; self.steps.names.len()];
        let places = self.known.iter().map(|known| &known.value).chain(self.pieces.iter().map(|axis| &axis.at));
        for (place, value) in places.zip(known.iter().chain(piece)) {
            if let Int::Value(index) = place {
                *inputs.get_mut(*index)? = *value;
            }
        }
        self.steps.eval(&inputs)
    }

    /// The numbers of a launch by name, each with the elements of a tile along it.
    pub fn names(&self) -> impl Iterator<Item = (&str, i64)> {
        self.known.iter().map(|known| match known.value {
            Int::Value(index) => (self.steps.names.get(index).map_or("", String::as_str), known.unit),
            _ => ("", known.unit),
        })
    }

    /// The numbers of a launch in their order.
    pub fn known_as(&self, number: impl Fn(&str) -> i64) -> Vec<i64> {
        self.names().map(|(name, _)| number(name)).collect()
    }

    /// Pieces along each of their coordinates; `None` past 64 bits.
    fn counts(&self, known: &[i64]) -> Option<Vec<i64>> {
        let values = self.eval(known, &vec![0; self.pieces.len()])?;
        self.pieces.iter().map(|axis| axis.extent.eval(&values)).collect()
    }

    /// How many pieces a launch has; `None` past 64 bits.
    pub fn count(&self, known: &[i64]) -> Option<i64> {
        self.counts(known)?.into_iter().try_fold(1_i64, i64::checked_mul)
    }

    /// The output tile of each piece, in the order of pieces; `None` past 64 bits.
    pub fn tiles(&self, known: Vec<i64>) -> Option<impl Iterator<Item = Option<Vec<i64>>>> {
        let (pieces, count) = (self.counts(&known)?, self.count(&known)?);
        Some((0..count).map(move |number| {
            let values = self.eval(&known, &coordinate(number, &pieces))?;
            self.tile.iter().map(|axis| axis.at.eval(&values)).collect()
        }))
    }

    /// What the proof tries: few tiles and a part of one along each extent.
    fn samples(&self) -> Vec<Vec<i64>> {
        let of = |unit: i64| if unit > 1 { vec![unit, 4 * unit + 1] } else { vec![1, 2] };
        self.known.iter().fold(vec![Vec::new()], |all, known| {
            let values = of(known.unit);
            let longer = |sample: &Vec<i64>, value: &i64| [&sample[..], &[*value]].concat();
            all.iter().flat_map(|sample| values.iter().map(move |value| longer(sample, value))).collect()
        })
    }

    /// Numbers of a launch for which a group of none has pieces.
    fn pieces_of_none(&self) -> Option<Vec<i64>> {
        let own = self.known.iter().position(|known| Some(&known.value) == self.groups.as_ref())?;
        let none = |mut known: Vec<i64>| {
            known[own] = 0;
            known
        };
        let has_pieces = |known: &Vec<i64>| {
            let number = |name: &str| self.names().zip(known).find(|((of, _), _)| *of == name).map_or(1, |(_, n)| *n);
            let extents = self.extents(&self.pieces, |name| number(name).into());
            extents.iter().map(|extent| extent.eval(&[])).try_fold(1, |all, extent| Some(all * extent?)) != Some(0)
        };
        self.samples().into_iter().map(none).find(has_pieces)
    }

    /// What is wrong for these numbers of a launch, if anything is.
    fn broken(&self, known: &[i64]) -> Option<String> {
        let of = |axes: &[Axis], values: &[i64]| -> Option<Vec<i64>> {
            axes.iter().map(|axis| axis.extent.eval(values)).collect()
        };
        let past = || Some("numbers past 64 bits".to_owned());
        let Some(values) = self.eval(known, &vec![0; self.pieces.len()]) else { return past() };
        let (Some(pieces), Some(tiles)) = (of(&self.pieces, &values), of(&self.tile, &values)) else { return past() };
        let mut taken: BTreeMap<Vec<i64>, ([i64; 2], Vec<u32>)> = BTreeMap::new();
        for number in 0..pieces.iter().product() {
            let Some(values) = self.eval(known, &coordinate(number, &pieces)) else { return past() };
            let int = |of: &Int| of.eval(&values);
            let Some(tile) = self.tile.iter().map(|axis| int(&axis.at)).collect::<Option<Vec<i64>>>() else {
                return past();
            };
            if tile.iter().any(|at| *at < 0) {
                return Some(format!("tile {tile:?}"));
            }
            if tile.iter().zip(&tiles).any(|(at, extent)| at >= extent) {
                continue;
            }
            let [begin, end] = self.inner.tile.each_ref();
            let all = [int(begin), int(end), int(&self.inner.first), int(&self.inner.trips)];
            let [Some(begin), Some(end), Some(first), Some(trips)] = all else { return past() };
            let steps = usize::try_from(end - begin).unwrap_or(0);
            let (range, times) = taken.entry(tile.clone()).or_insert_with(|| ([begin, end], vec![0; steps]));
            if *range != [begin, end] || trips < 0 || (trips > 0 && (first < begin || first + trips > end)) {
                return Some(format!("steps {first} to {} of {begin} to {end} for tile {tile:?}", first + trips));
            }
            (first..first + trips).for_each(|step| times[(step - begin) as usize] += 1);
        }
        for number in 0..tiles.iter().product() {
            let tile = coordinate(number, &tiles);
            let Some((range, times)) = taken.get(&tile) else { return Some(format!("tile {tile:?} in no piece")) };
            if let Some(at) = times.iter().position(|times| *times != 1) {
                return Some(format!("step {} of tile {tile:?} in {} pieces", range[0] + at as i64, times[at]));
            }
        }
        None
    }
}

/// The coordinate of a number, the first mode fastest.
fn coordinate(mut number: i64, extents: &[i64]) -> Vec<i64> {
    let mut digit = |extent: &i64| {
        let at = number % extent.max(&1);
        number /= extent.max(&1);
        at
    };
    extents.iter().map(&mut digit).collect()
}

impl Tiling {
    /// Each step of each tile of the output is in one piece of work, for the numbers that are tried.
    pub(super) fn order_flaws(&self, flaws: &mut Flaws) {
        let order = &self.order;
        let none = order.pieces_of_none().map(|known| ("pieces of a group of none".to_owned(), known));
        let wrong = none.or_else(|| order.samples().into_iter().find_map(|known| Some((order.broken(&known)?, known))));
        let Some((mut found, known)) = wrong else { return };
        for ((name, _), value) in order.names().zip(known) {
            let _ = write!(found, ", {name} = {value}");
        }
        let because = "a tile that is computed twice is written twice, and one that is left out is never written";
        flaws.push(Law::Order, found, "each step of each tile of the output in one piece of work", because);
    }
}
