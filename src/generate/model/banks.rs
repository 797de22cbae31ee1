//! The banks of shared memory: how many passes over them one access of a warp takes.
//!
//! The counts here equal those of an H200 (`l1tex__data_pipe_lsu_wavefronts_mem_shared`, and for `cp.async`
//! `sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts`), in every experiment of `tests/data/h200_banks.txt`.

use crate::units::Bytes;

/// Threads of a warp.
pub const WARP: usize = 32;
/// Banks of shared memory, 4 bytes wide each (CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and
/// later).
pub(crate) const BANKS: i64 = 32;
pub(crate) const WORD: i64 = 4;
/// Bytes that one pass moves at most.
pub(crate) const PASS: i64 = BANKS * WORD;
/// Bytes that `cp.async` moves past L1, as one chunk.
const CHUNK: i64 = 16;

/// The operations of a warp on shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SharedOp {
    /// `ld.shared`: lanes that read the same word are served together.
    Load,
    /// `st.shared`.
    Store,
    /// `cp.async`, from global memory. Lanes that write the same word race, so nothing is claimed of such copies.
    Copy,
}

impl std::fmt::Display for SharedOp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SharedOp::Load => "load",
            SharedOp::Store => "store",
            SharedOp::Copy => "copy",
        })
    }
}

/// One access of one warp.
///
/// ```
/// use cutemplate::model::{Request, SharedOp};
/// use cutemplate::units::Bytes;
///
/// let wavefronts = |bytes: u64, address: fn(i64) -> i64| {
///     let addresses = (0..32).map(|lane| Some(address(lane))).collect();
///     Request::new(SharedOp::Load, Bytes(bytes), addresses).wavefronts()
/// };
/// // A row and a column of 32 x 32 floats.
/// assert_eq!((wavefronts(4, |lane| 4 * lane), wavefronts(4, |lane| 128 * lane)), (1, 32));
/// // 16 bytes for each lane are 512 bytes, 128 in one pass; where neighbours read the same, half as many.
/// assert_eq!((wavefronts(16, |lane| 16 * lane), wavefronts(16, |lane| 16 * (lane / 8))), (4, 2));
/// // It is the neighbours that count: here too only 4 different chunks are read.
/// assert_eq!(wavefronts(16, |lane| 16 * (lane % 4)), 4);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// The operation.
    pub op: SharedOp,
    /// Bytes that each lane moves: 1, 2, 4, 8 or 16.
    pub bytes: Bytes,
    /// The address in bytes of each lane, a multiple of its width; `None` for a lane that takes no part.
    pub addresses: Vec<Option<i64>>,
    /// For a copy, the address in bytes in global memory of each lane. Empty where source and destination lie alike in their
    /// lines of 128 bytes.
    pub sources: Vec<i64>,
}

impl Request {
    /// An access to these addresses.
    pub fn new(op: SharedOp, bytes: Bytes, addresses: Vec<Option<i64>>) -> Self {
        Self { op, bytes, addresses, sources: Vec::new() }
    }

    /// The passes over the banks that it takes.
    pub fn wavefronts(&self) -> u32 {
        count(self.op, self.bytes, &self.addresses, &self.sources).wavefronts
    }

    /// The passes that it takes with any addresses, as long as the same lanes take part and share elements: the parts in which
    /// a warp is served.
    pub fn least(&self) -> u32 {
        count(self.op, self.bytes, &self.addresses, &self.sources).least
    }

    /// The passes that it could do without: the profiler's bank conflicts (`l1tex__data_bank_conflicts_pipe_lsu_mem_shared`).
    pub fn extra(&self) -> u32 {
        let Count { wavefronts, least } = count(self.op, self.bytes, &self.addresses, &self.sources);
        wavefronts.saturating_sub(least)
    }
}

/// Passes over the banks: the actual number, and the least possible one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Count {
    pub(crate) wavefronts: u32,
    pub(crate) least: u32,
}

/// The passes of one access of a warp.
pub(crate) fn count(op: SharedOp, bytes: Bytes, addresses: &[Option<i64>], sources: &[i64]) -> Count {
    let width = (bytes.0 as i64).max(1);
    let parts = addresses.chunks(part(op, width, addresses)).filter(|part| part.iter().any(Option::is_some));
    let least = parts.clone().count() as u32;
    let wavefronts = match op {
        SharedOp::Copy if width == CHUNK => lines(addresses, sources),
        _ => parts.map(|part| u32::from(passes(op, width, part))).sum(),
    };
    Count { wavefronts, least }
}

/// The number of lanes that are served together: as many as move 128 bytes. Twice as many for loads where every lane
/// reads the same as lane `l ^ 1`, or every lane the same as lane `l ^ 2`. A lane that takes no part hinders nobody.
pub(crate) fn part(op: SharedOp, width: i64, addresses: &[Option<i64>]) -> usize {
    let lanes = (PASS / width).clamp(1, WARP as i64) as usize;
    let at = |lane: usize| addresses.get(lane).copied().flatten();
    let same = |distance: usize| {
        (0..addresses.len()).all(|lane| match (at(lane), at(lane ^ distance)) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        })
    };
    if op == SharedOp::Load && lanes < WARP && (same(1) || same(2)) { 2 * lanes } else { lanes }
}

/// The passes of lanes that are served together. In one pass a bank gives one word to any number of lanes, or takes one.
fn passes(op: SharedOp, width: i64, lanes: &[Option<i64>]) -> u8 {
    if op == SharedOp::Copy {
        // Words that meet are not merged.
        let mut used = [0_u8; BANKS as usize];
        for address in lanes.iter().flatten() {
            used[(address / WORD).rem_euclid(BANKS) as usize] += 1;
        }
        return used.into_iter().max().unwrap_or(0);
    }
    let mut words = [i64::MAX; 3 * WARP];
    let mut length = 0;
    for address in lanes.iter().flatten() {
        for word in address.div_euclid(WORD)..=(address + width - 1).div_euclid(WORD) {
            if let Some(slot) = words.get_mut(length) {
                *slot = word;
                length += 1;
            }
        }
    }
    crowd(&words[..length])
}

/// The most different words that lie in one bank: the passes that they take together.
pub(crate) fn crowd(words: &[i64]) -> u8 {
    // How many words of a bank were asked for, and which one last: lanes side by side ask for the same one, or for those of others.
    let (mut used, mut last) = ([0_u8; BANKS as usize], [0_i64; BANKS as usize]);
    for (place, word) in words.iter().enumerate() {
        let bank = word.rem_euclid(BANKS) as usize;
        let is_known = used[bank] > 0 && (last[bank] == *word || words[..place].contains(word));
        used[bank] += u8::from(!is_known);
        last[bank] = *word;
    }
    used.into_iter().max().unwrap_or(0)
}

/// The key of a lane of a copy of 16-byte chunks. It holds the lane's line of 128 bytes of shared memory. It also holds
/// the exclusive or of the chunk's places in that line and in its line of global memory. One pass serves all lanes with
/// the same key. The measured copies read global memory in one piece; that rows which lie apart share a pass is
/// assumed.
pub(crate) fn line(address: i64, source: Option<i64>) -> (i64, i64) {
    let chunk = |address: i64| address.div_euclid(CHUNK) % (PASS / CHUNK);
    (address.div_euclid(PASS), source.map_or(0, |source| chunk(address) ^ chunk(source)))
}

/// The passes of a copy of 16-byte chunks.
fn lines(addresses: &[Option<i64>], sources: &[i64]) -> u32 {
    let mut served = [(i64::MAX, 0); WARP];
    let mut length = 0;
    for (lane, address) in addresses.iter().enumerate() {
        let Some(address) = address else { continue };
        let line = line(*address, sources.get(lane).copied());
        if let (false, Some(slot)) = (served[..length].contains(&line), served.get_mut(length)) {
            *slot = line;
            length += 1;
        }
    }
    length as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::test_runner::{Config as ProptestConfig, RngSeed};

    fn count_of(op: SharedOp, bytes: u64, address: impl Fn(i64) -> Option<i64>) -> Count {
        let addresses: Vec<Option<i64>> = (0..32).map(address).collect();
        count(op, Bytes(bytes), &addresses, &[])
    }

    /// The definition, written as sets: lanes in parts, words by bank.
    fn by_definition(op: SharedOp, bytes: i64, addresses: &[Option<i64>]) -> u32 {
        use std::collections::{BTreeMap, BTreeSet};
        let neighbours = |distance: usize| {
            addresses.iter().enumerate().all(|(lane, a)| {
                let other = addresses[lane ^ distance];
                a.is_none() || other.is_none() || *a == other
            })
        };
        let twice = op == SharedOp::Load && bytes > 4 && (neighbours(1) || neighbours(2));
        let lanes = (128 / bytes).min(32) as usize * if twice { 2 } else { 1 };
        let mut total = 0;
        for first in (0..32).step_by(lanes) {
            let mut banks: BTreeMap<i64, BTreeSet<i64>> = BTreeMap::new();
            for address in addresses[first..first + lanes].iter().flatten() {
                for byte in *address..address + bytes {
                    banks.entry(byte / 4 % 32).or_default().insert(byte / 4);
                }
            }
            total += banks.values().map(BTreeSet::len).max().unwrap_or(0);
        }
        total as u32
    }

    proptest::proptest! {
        #![proptest_config(ProptestConfig {
            rng_seed: RngSeed::Fixed(0x5eed_ba2c),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]

        #[test]
        fn the_count_is_the_definition(
            log in 0_u32..5,
            store: bool,
            pool in proptest::collection::vec(0_i64..512, 1..33),
            picks in proptest::collection::vec(0_usize..64, 32),
            pattern in 0_usize..8,
            absent in 0_u32..4,
        ) {
            let bytes = 1 << log;
            let op = if store { SharedOp::Store } else { SharedOp::Load };
            // In some, neighbours read the same.
            let merge = [0, 0, 1, 2, 3, 4, 8, 17][pattern];
            let addresses: Vec<Option<i64>> = (0..32_usize).map(|lane| {
                let pick = picks[lane & !merge];
                let taken = absent == 0 || (pick + lane) % 4 >= absent as usize;
                taken.then(|| pool[pick % pool.len()] * bytes)
            }).collect();
            let counted = count(op, Bytes(bytes as u64), &addresses, &[]);
            proptest::prop_assert_eq!(counted.wavefronts, by_definition(op, bytes, &addresses));
            proptest::prop_assert!(counted.least <= counted.wavefronts);
        }
    }

    #[test]
    fn one_word_serves_any_number_of_threads() {
        for address in [|_| Some(64), |lane| Some(2 * lane)] {
            assert_eq!(count_of(SharedOp::Load, 2, address), Count { wavefronts: 1, least: 1 });
        }
    }

    #[test]
    fn wide_accesses_take_as_many_passes_as_their_bytes_need() {
        for op in [SharedOp::Load, SharedOp::Store, SharedOp::Copy] {
            for (bytes, passes) in [(4, 1), (8, 2), (16, 4)] {
                let counted = count_of(op, bytes as u64, |lane| Some(bytes * lane));
                assert_eq!(counted, Count { wavefronts: passes, least: passes }, "{op} {bytes}");
            }
        }
    }

    #[test]
    fn only_loads_are_merged() {
        let pairs = |lane: i64| Some(lane / 2 * 16);
        let [load, store] = [SharedOp::Load, SharedOp::Store].map(|op| count_of(op, 16, pairs));
        assert_eq!((load.wavefronts, store.wavefronts), (2, 4));
    }
}
