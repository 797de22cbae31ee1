//! The accesses of a block's warps to a tensor.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::sums::Sums;
use crate::layout::Layout;
use crate::model::banks::{SharedOp, WARP};
use crate::units::{Bytes, Elements};

/// What one warp does in one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) warp: u32,
    pub(super) step: i64,
    /// The first element that each lane moves, as a number in the domain of the tensor's layout.
    pub(super) lanes: Vec<Option<i64>>,
    /// For copies: where each lane reads, in bytes.
    pub(super) sources: Vec<i64>,
    /// How many warps and steps do just this.
    pub(super) times: u64,
}

/// The elements that the lanes of a warp move, and for copies where they read.
type Asked = (Vec<Option<i64>>, Vec<i64>);

/// A fast hash of indices, which no attacker chooses: the standard hash took a tenth of a plan's time.
#[derive(Default)]
struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..part.len()].copy_from_slice(part);
            self.0 = (self.0.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

/// One instruction of a kernel that moves elements of a tensor in shared memory, for every warp of a block and every step of
/// its loops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WarpAccess {
    what: String,
    op: SharedOp,
    bytes: Bytes,
    asked: Requests,
}

/// The requests of the warps, step by step.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // A tensor has a handful of them.
enum Requests {
    Each(Vec<Touch>),
    Sums(Sums),
}

impl WarpAccess {
    /// An access of threads and steps that each add to the number of an element.
    pub(crate) fn of_sums(what: &str, op: SharedOp, bytes: Bytes, sums: Sums) -> Self {
        Self { what: what.to_owned(), op, bytes, asked: Requests::Sums(sums) }
    }

    /// Each of `threads` threads moves `bytes` in each of `steps` steps, from element `element(thread, step)` on: its number
    /// in the domain of the tensor's layout, `m + M * n` for coordinate `(m,n)` of a tensor of `(M,N)`; or takes no part.
    pub fn new(
        what: &str,
        op: SharedOp,
        bytes: Bytes,
        threads: u32,
        steps: i64,
        element: impl Fn(i64, i64) -> Option<i64>,
    ) -> Self {
        let touches = gather(threads.into(), steps, element, |_, _| None);
        Self { what: what.to_owned(), op, bytes, asked: Requests::Each(touches) }
    }

    /// A copy (`cp.async`), which reads at `source(thread, step)`: bytes from an address that is a multiple of 128
    /// bytes. The cost of a copy of 16 bytes depends on where in lines of 128 bytes it reads.
    pub fn copy(
        what: &str,
        bytes: Bytes,
        threads: u32,
        steps: i64,
        element: impl Fn(i64, i64) -> Option<i64>,
        source: impl Fn(i64, i64) -> i64,
    ) -> Self {
        let touches = gather(threads.into(), steps, element, |thread, step| Some(source(thread, step)));
        Self { what: what.to_owned(), op: SharedOp::Copy, bytes, asked: Requests::Each(touches) }
    }

    /// A thread layout `(ThrM,ThrN) -> tid` laid over a tensor of `(M,N)`, each thread with a vector of `values` elements along
    /// mode `along` (0 or 1): as `make_tiled_copy` makes of it. Step by step down mode 0, then along mode 1. Threads whose
    /// vectors lie outside take no part.
    ///
    /// ```
    /// use cutemplate::model::{SharedOp, WarpAccess};
    /// use cutemplate::units::{Bytes, Elements};
    /// // 256 threads store a tile of (128,8), contiguous along M, 16 bytes each: all of it in one step.
    /// let threads = "(32,8):(1,32)".parse()?;
    /// let store =
    ///     WarpAccess::tiled("store of the copy", SharedOp::Store, Bytes(16), (128, 8), &threads, Elements(4), 0);
    /// assert_eq!(store.requests(), 8);
    /// # Ok::<(), cutemplate::layout::LayoutError>(())
    /// ```
    pub fn tiled(
        what: &str,
        op: SharedOp,
        bytes: Bytes,
        (rows, columns): (i64, i64),
        threads: &Layout,
        values: Elements,
        along: usize,
    ) -> Self {
        let (thr_m, size) = (threads.mode(0).map_or(1, |mode| mode.size()).max(1), threads.size());
        let place: HashMap<i64, i64> = (0..size).filter_map(|i| Some((threads.at(i).ok()?, i))).collect();
        let values = values.0.max(1) as i64;
        let (value_m, value_n) = if along == 0 { (values, 1) } else { (1, values) };
        let (tile_m, tile_n) = (thr_m * value_m, (size / thr_m).max(1) * value_n);
        let down = (rows + tile_m - 1) / tile_m;
        let steps = down * ((columns + tile_n - 1) / tile_n);
        Self::new(what, op, bytes, size.clamp(0, i64::from(u32::MAX)) as u32, steps, |thread, step| {
            let at = place.get(&thread)?;
            let m = at % thr_m * value_m + step % down * tile_m;
            let n = at / thr_m * value_n + step / down * tile_n;
            (m < rows && n < columns).then_some(m + rows * n)
        })
    }

    /// A thread-value layout `(tid,vid) -> (M,N)`, vectors of `values` elements: one step for each.
    ///
    /// ```
    /// use cutemplate::model::{SharedOp, WarpAccess};
    /// use cutemplate::units::{Bytes, Elements};
    /// let tv = "((4,8),(2,2)):((32,1),(16,8))".parse()?;
    /// let load = WarpAccess::tv("load of a fragment", SharedOp::Load, Bytes(4), &tv, Elements(1));
    /// assert_eq!(load.requests(), 4);
    /// # Ok::<(), cutemplate::layout::LayoutError>(())
    /// ```
    pub fn tv(what: &str, op: SharedOp, bytes: Bytes, tv: &Layout, values: Elements) -> Self {
        let threads = tv.mode(0).map_or(1, |mode| mode.size());
        let values = values.0.max(1) as i64;
        let steps = tv.mode(1).map_or(1, |mode| mode.size()) / values;
        Self::new(what, op, bytes, threads.clamp(0, i64::from(u32::MAX)) as u32, steps, |thread, step| {
            tv.at(thread + threads * step * values).ok()
        })
    }

    /// Its name: `store of the copy`.
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Its operation.
    pub fn op(&self) -> SharedOp {
        self.op
    }

    /// Bytes that each thread moves with one instruction.
    pub fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// Requests of a block: one for each warp and step in which a lane takes part.
    pub fn requests(&self) -> u64 {
        match &self.asked {
            Requests::Each(touches) => touches.iter().map(|touch| touch.times).sum(),
            Requests::Sums(sums) => sums.requests(),
        }
    }

    /// Each request that is another than those before it.
    pub(super) fn touches(&self) -> Cow<'_, [Touch]> {
        match &self.asked {
            Requests::Each(touches) => touches.into(),
            Requests::Sums(sums) => sums.touches().into(),
        }
    }

    /// The sums, where it is one of those.
    pub(super) fn sums(&self) -> Option<&Sums> {
        match &self.asked {
            Requests::Each(_) => None,
            Requests::Sums(sums) => Some(sums),
        }
    }
}

/// The requests of the warps in each step, if they differ from earlier ones.
pub(super) fn gather(
    threads: i64,
    steps: i64,
    element: impl Fn(i64, i64) -> Option<i64>,
    source: impl Fn(i64, i64) -> Option<i64>,
) -> Vec<Touch> {
    let mut touches: Vec<Touch> = Vec::new();
    let mut known: HashMap<Asked, usize, BuildHasherDefault<Quick>> = HashMap::default();
    for (warp, first) in (0..threads).step_by(WARP).enumerate() {
        let lanes = first..(first + WARP as i64).min(threads);
        for step in 0..steps {
            let elements: Vec<Option<i64>> = lanes.clone().map(|thread| element(thread, step)).collect();
            let sources: Vec<i64> = lanes.clone().filter_map(|thread| source(thread, step)).collect();
            let number = *known.entry((elements, sources)).or_insert_with_key(|(lanes, sources)| {
                let (lanes, sources) = (lanes.clone(), sources.clone());
                touches.push(Touch { warp: warp as u32, step, lanes, sources, times: 0 });
                touches.len() - 1
            });
            touches[number].times += 1;
        }
    }
    // A warp without an active lane requests nothing.
    touches.retain(|touch| touch.lanes.iter().any(Option::is_some));
    touches
}
