//! Tiles that are turned in shared memory: an input comes in along M and goes out along N.

use super::decide::{Class, Tensor};
use super::tilings::{self, Walk};
use crate::arch::Arch;
use crate::diagnostic::Code;
use crate::plan::checks::Checks;
use crate::plan::{ConflictLevel, judge};
use crate::tiling::Tiling;

/// Vectors of a row of the tile that neighbouring threads take when they write: 8 of 16 bytes are 128 bytes, all the banks
/// of shared memory and four whole sectors of global memory.
const ROW_THREADS: i64 = 8;

impl Tensor {
    fn is_turned(&self) -> bool {
        self.class == Class::Transposed
    }
}

/// The tiling of a block that turns a square tile, with the swizzles that have the fewest passes.
pub(super) fn tiling(tensors: &[Tensor], vec: i64, threads: u32, checks: &mut Checks) -> Option<Tiling> {
    let turned = || tensors.iter().filter(|tensor| tensor.is_turned());
    let bytes = |side: i64| turned().map(|t| side * side * t.dtype.bytes().0 as i64).sum::<i64>() as u64;
    let fits = |side: &i64| {
        let vectors = side / vec;
        let whole = |threads: i64, along: i64| threads % along == 0 && side % (threads / along) == 0;
        bytes(*side) <= Arch::STATIC_SMEM.0
            && vectors >= ROW_THREADS
            && whole(threads.into(), vectors)
            && whole(threads.into(), ROW_THREADS)
    };
    // Small tiles leave room for several blocks on a multiprocessor; narrow types need larger ones.
    let sides = [128, 64, 32, 16];
    let small = sides.into_iter().filter(|side| bytes(*side) <= 32 << 10 || *side <= 64).find(fits);
    let Some(side) = small.or_else(|| sides.into_iter().find(fits)) else {
        checks.push(
            Code::Variant,
            format!("{threads} threads, {} turned inputs, vectors of {vec} elements", turned().count()),
            format!("a square tile of 16 to 128 whose vectors the threads divide, in {}", Arch::STATIC_SMEM),
            "every thread loads equally many whole vectors, and static shared memory has 48 KiB",
            "threads=256, a smaller vector, or variant=vectorized".into(),
        );
        return None;
    };
    let (along, threads) = (side / vec, i64::from(threads));
    let come_in = Walk::along(0, [along, threads / along], vec);
    let go_out = Walk::along(1, [threads / ROW_THREADS, ROW_THREADS], vec);
    let come_in = checks.sound("threads that bring in are a layout", come_in)?;
    let go_out = checks.sound("threads that take out are a layout", go_out)?;
    let tiling = tilings::turned(tensors, side, vec, [&come_in, &go_out]);
    let mut tiling = checks.sound("a square tile is a layout", tiling)?;
    for index in 0..tiling.smem.len() {
        let lies = checks.sound("a square tile lies in shared memory", tiling.shared_tensor(&tiling.smem[index]))?;
        let best = checks.sound("a square tile has swizzles", lies.swizzles(1))?;
        tiling.smem[index].swizzle = best.first().and_then(|best| best.swizzle);
        let spread = checks.sound("a swizzle that was found fits", tiling.shared_tensor(&tiling.smem[index]))?;
        let help = "another vector or thread count; no swizzle of this tile is free of conflicts";
        judge(checks, &spread, ConflictLevel::Deny, |_| help.into())?;
    }
    Some(tiling)
}
