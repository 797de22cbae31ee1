//! The banks of shared memory: how many passes one access of a warp takes.
//!
//! An H200 counts the same (`l1tex__data_pipe_lsu_wavefronts_mem_shared`, and for `cp.async`
//! `sm__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ldgsts`).

/// Banks, each one word of 4 bytes wide (CUDA C++ Programming Guide, "Shared Memory" of compute capability 5.x and later).
const BANKS: u64 = 32;
const WORD: u64 = 4;
/// Bytes of a pass at most.
const PASS: u64 = BANKS * WORD;
/// Bytes of a `cp.async` that goes past L1.
const CHUNK: u64 = 16;

/// What a warp does with shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SharedOp {
    /// Lanes that read the same word are served together.
    Load,
    Store,
    /// `cp.async`; lanes that write the same word are not merged.
    Copy,
}

/// The passes of one access. `at` has the address of each lane that takes part, `None` for the others; `sources` has the global
/// address of each lane of a copy.
pub(crate) fn wavefronts(op: SharedOp, bytes: u64, at: &[Option<u64>], sources: &[u64]) -> u64 {
    if op == SharedOp::Copy && bytes == CHUNK {
        return lines(at, sources);
    }
    let together = lanes_together(op, bytes, at);
    at.chunks(together).map(|lanes| passes(op, bytes, lanes)).sum()
}

/// How many lanes are served together: enough to move 128 bytes. A load serves twice as many if every lane `l` reads the address of
/// lane `l ^ 1`, or every lane that of lane `l ^ 2`. Inactive lanes do not matter.
fn lanes_together(op: SharedOp, bytes: u64, at: &[Option<u64>]) -> usize {
    let lanes = (PASS / bytes.max(1)).clamp(1, 32) as usize;
    let address = |lane: usize| at.get(lane).copied().flatten();
    let same = |distance: usize| {
        (0..at.len()).all(|lane| match (address(lane), address(lane ^ distance)) {
            (Some(a), Some(b)) => a == b,
            _ => true,
        })
    };
    if op == SharedOp::Load && lanes < 32 && (same(1) || same(2)) { 2 * lanes } else { lanes }
}

/// The passes of lanes that are served together: a bank serves one word a pass.
fn passes(op: SharedOp, bytes: u64, lanes: &[Option<u64>]) -> u64 {
    let words = |at: u64| at / WORD..=(at + bytes.max(1) - 1) / WORD;
    let mut asked: Vec<u64> = match op {
        SharedOp::Copy => lanes.iter().flatten().map(|at| at / WORD).collect(),
        _ => lanes.iter().flatten().flat_map(|at| words(*at)).collect(),
    };
    if op != SharedOp::Copy {
        asked.sort_unstable();
        asked.dedup();
    }
    let mut used = [0_u64; BANKS as usize];
    asked.iter().for_each(|word| used[(word % BANKS) as usize] += 1);
    used.into_iter().max().unwrap_or(0)
}

/// The passes of a copy of 16-byte chunks: one for each line of 128 bytes and each way in which a chunk changes its place in it.
fn lines(at: &[Option<u64>], sources: &[u64]) -> u64 {
    let chunk = |address: u64| address / CHUNK % (PASS / CHUNK);
    let lane = |(lane, at): (usize, &Option<u64>)| {
        let at = (*at)?;
        Some((at / PASS, sources.get(lane).map_or(0, |source| chunk(at) ^ chunk(*source))))
    };
    let mut lines: Vec<(u64, u64)> = at.iter().enumerate().filter_map(lane).collect();
    lines.sort_unstable();
    lines.dedup();
    lines.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(op: SharedOp, bytes: u64, address: fn(u64) -> u64) -> u64 {
        let at: Vec<Option<u64>> = (0..32).map(|lane| Some(address(lane))).collect();
        wavefronts(op, bytes, &at, &[])
    }

    #[test]
    fn passes_are_those_that_an_h200_counts() {
        // A row and a column of 32 x 32 floats.
        assert_eq!((of(SharedOp::Load, 4, |l| 4 * l), of(SharedOp::Load, 4, |l| 128 * l)), (1, 32));
        // 16 bytes a lane are 512 bytes, 128 in one pass; where neighbours read the same, half as many.
        assert_eq!((of(SharedOp::Load, 16, |l| 16 * l), of(SharedOp::Load, 16, |l| 16 * (l / 8))), (4, 2));
        assert_eq!(of(SharedOp::Load, 16, |l| 16 * (l % 4)), 4);
        assert_eq!((of(SharedOp::Store, 4, |_| 0), of(SharedOp::Copy, 4, |_| 0)), (1, 32));
        assert_eq!((of(SharedOp::Copy, 16, |l| 16 * l), of(SharedOp::Copy, 16, |l| 128 * l)), (4, 32));
        assert_eq!(wavefronts(SharedOp::Load, 4, &[None; 32], &[]), 0);
    }
}
