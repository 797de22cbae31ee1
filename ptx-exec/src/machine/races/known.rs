//! The knowledge of clocks, shared between equal clocks, since most of it is learnt again and again.

use std::hash::Hash;
use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Epochs up to which something is known.
pub(crate) trait Epochs: Clone {
    /// Whether it includes the knowledge of another.
    fn covers(&self, other: &Self) -> bool;
    fn join(&mut self, other: &Self);
}

impl Epochs for u32 {
    fn covers(&self, other: &u32) -> bool {
        self >= other
    }

    fn join(&mut self, other: &u32) {
        *self = (*self).max(*other);
    }
}

impl Epochs for [u32; 32] {
    fn covers(&self, other: &[u32; 32]) -> bool {
        self.iter().zip(other).fold(true, |all, (mine, other)| all & (mine >= other))
    }

    fn join(&mut self, other: &[u32; 32]) {
        self.iter_mut().zip(other).for_each(|(mine, other)| mine.join(other));
    }
}

/// An epoch of each lane of a warp. Most often it is one.
#[derive(Clone, Debug)]
pub(crate) enum LaneEpochs {
    All(u32),
    Each(Arc<[u32; 32]>),
}

impl LaneEpochs {
    pub(crate) fn new(of: [u32; 32]) -> LaneEpochs {
        if of.iter().all(|epoch| *epoch == of[0]) { LaneEpochs::All(of[0]) } else { LaneEpochs::Each(Arc::new(of)) }
    }

    pub(crate) fn each(&self) -> [u32; 32] {
        match self {
            LaneEpochs::All(epoch) => [*epoch; 32],
            LaneEpochs::Each(of) => **of,
        }
    }
}

impl Epochs for LaneEpochs {
    fn covers(&self, other: &LaneEpochs) -> bool {
        match (self, other) {
            (LaneEpochs::All(mine), LaneEpochs::All(other)) => mine >= other,
            (mine, other) => mine.each().covers(&other.each()),
        }
    }

    fn join(&mut self, other: &LaneEpochs) {
        if !self.covers(other) {
            let mut all = self.each();
            all.join(&other.each());
            *self = LaneEpochs::new(all);
        }
    }
}

type Table<K, V> = Option<Arc<FxHashMap<K, V>>>;

fn is_one<K, V>(map: &Table<K, V>, other: &Table<K, V>) -> bool {
    match (map, other) {
        (Some(map), Some(other)) => Arc::ptr_eq(map, other),
        (map, other) => map.is_none() && other.is_none(),
    }
}

/// A map of epochs, which only ever grow.
#[derive(Clone, Debug)]
pub(crate) struct Known<K, V> {
    map: Table<K, V>,
    /// The last map that it joined, which it includes: lanes of a warp join one map in turn.
    joined: Table<K, V>,
}

impl<K, V> Default for Known<K, V> {
    fn default() -> Self {
        Known { map: None, joined: None }
    }
}

impl<K: Copy + Eq + Hash, V: Epochs> FromIterator<(K, V)> for Known<K, V> {
    fn from_iter<T: IntoIterator<Item = (K, V)>>(all: T) -> Self {
        let known = FxHashMap::from_iter(all);
        Known { map: (!known.is_empty()).then(|| Arc::new(known)), joined: None }
    }
}

impl<K: Copy + Eq + Hash, V: Epochs> Known<K, V> {
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.map.as_ref().map_or(0, |known| known.len())
    }

    #[inline(always)]
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.map.as_ref()?.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.map.iter().flat_map(|known| known.iter())
    }

    /// Whether both are the same shared map. Different maps may still be equal.
    pub(crate) fn is(&self, other: &Self) -> bool {
        is_one(&self.map, &other.map)
    }

    /// Learns of one key.
    pub(crate) fn learn(&mut self, key: K, epochs: V) {
        if self.get(&key).is_none_or(|known| !known.covers(&epochs)) {
            Arc::make_mut(self.map.get_or_insert_default()).entry(key).or_insert_with(|| epochs.clone()).join(&epochs);
        }
    }

    /// Whether it includes the knowledge of another.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let is_known = |(key, epochs): (&K, &V)| self.get(key).is_some_and(|known| known.covers(epochs));
        self.is(other) || self.len() >= other.len() && other.iter().all(is_known)
    }

    /// Learns the knowledge of another.
    pub(crate) fn join(&mut self, other: &Self) {
        if is_one(&self.joined, &other.map) || self.covers(other) {
            self.joined.clone_from(&other.map);
            return;
        }
        if other.covers(self) {
            self.clone_from(other);
            return;
        }
        self.joined.clone_from(&other.map);
        let known = Arc::make_mut(self.map.get_or_insert_default());
        for (key, epochs) in other.iter() {
            known.entry(*key).or_insert_with(|| epochs.clone()).join(epochs);
        }
    }
}
