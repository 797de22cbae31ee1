//! Accesses whose threads and steps each add to the number of an element: one request stands for all with equally many
//! passes.

use std::borrow::Cow;

use super::SharedTensor;
use super::access::{Touch, WarpAccess, gather};
use super::digits::apart;
use crate::layout::{Layout, Swizzle};
use crate::model::banks::{PASS, SharedOp, WARP, WORD};
use crate::units::Bytes;

/// Thread `t` moves in step `s` from element `threads[t] + steps[s]` on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) threads: Vec<i64>,
    pub(crate) steps: Vec<i64>,
    /// For copies: where it reads.
    pub(crate) source: Option<Source>,
}

/// Thread `t` reads in step `s` at byte `layout(threads[t] + steps[s])`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Source {
    pub(crate) layout: Layout,
    pub(crate) threads: Vec<i64>,
    pub(crate) steps: Vec<i64>,
}

fn at(of: &[i64], index: i64) -> Option<i64> {
    of.get(usize::try_from(index).ok()?).copied()
}

impl Source {
    fn at(&self, thread: i64, step: i64) -> Option<i64> {
        self.layout.at(at(&self.threads, thread)? + at(&self.steps, step)?).ok()
    }
}

impl Sums {
    fn at(&self, thread: i64, step: i64) -> Option<i64> {
        Some(at(&self.threads, thread)? + at(&self.steps, step)?)
    }

    pub(super) fn requests(&self) -> u64 {
        (self.threads.len().div_ceil(WARP) * self.steps.len()) as u64
    }

    /// Each request that is another than those before it.
    pub(super) fn touches(&self) -> Vec<Touch> {
        let source = |thread, step| self.source.as_ref().and_then(|source| source.at(thread, step));
        gather(self.threads.len() as i64, self.steps.len() as i64, |thread, step| self.at(thread, step), source)
    }

    fn touch(&self, warp: usize, step: usize) -> Touch {
        let (threads, step) = (warp * WARP..((warp + 1) * WARP).min(self.threads.len()), step as i64);
        let lanes = threads.clone().map(|thread| self.at(thread as i64, step)).collect();
        let source = |thread| self.source.as_ref().and_then(|source| source.at(thread as i64, step));
        Touch { warp: warp as u32, step, lanes, sources: threads.filter_map(source).collect(), times: 0 }
    }
}

/// What one warp adds to each step: the least of its lanes, the others counted from it, and the bits that those have.
#[derive(PartialEq)]
struct Lanes {
    least: i64,
    others: Vec<i64>,
    bits: i64,
}

fn lanes(warp: &[i64]) -> Lanes {
    let least = warp.iter().copied().min().unwrap_or(0);
    let others: Vec<i64> = warp.iter().map(|lane| lane - least).collect();
    let bits = others.iter().fold(0, |bits, lane| bits | lane);
    Lanes { least, others, bits }
}

/// The key of a request's begin. Requests with the same lanes and keys take equally many passes.
///
/// If the begin shares no bit with any lane's offset, their sum is their exclusive or. Its swizzle is then the
/// exclusive or of both swizzled values, so the begin only exchanges banks, or lines. Otherwise, a begin that is a
/// multiple of the period of swizzle and banks moves all lanes equally far. In both cases, vectors stay aligned or not.
fn key(begin: i64, bits: i64, low: i64, period: i64) -> i64 {
    if begin & bits == 0 { low } else { !(begin & (period - 1)) }
}

/// The steps and warps that stand for others, and for how many.
struct Kinds {
    /// First warp with these lanes, key of the begin, key of the source's.
    keys: Vec<(usize, i64, i64)>,
    touches: Vec<Touch>,
}

impl SharedTensor {
    /// The requests of an access, one for each kind: requests of a kind take as many passes with a swizzle of any block up to `block`
    /// elements that keeps the access's vectors whole, and with `swizzle`. Where kinds cannot be told all that differ.
    pub(super) fn requests<'a>(
        &self,
        access: &'a WarpAccess,
        swizzle: Option<Swizzle>,
        block: i64,
    ) -> Cow<'a, [Touch]> {
        let kinds = access.sums().and_then(|sums| self.kinds(access.op(), access.bytes(), sums, swizzle, block));
        kinds.map_or_else(|| access.touches(), Into::into)
    }

    fn kinds(
        &self,
        op: SharedOp,
        bytes: Bytes,
        sums: &Sums,
        swizzle: Option<Swizzle>,
        block: i64,
    ) -> Option<Vec<Touch>> {
        let (size, width) = (self.element.0 as i64, bytes.0 as i64);
        (bytes.0.is_power_of_two() && bytes.0 <= 16 && bytes >= self.element).then_some(())?;
        let [threads, steps] = apart(&self.layout, &sums.threads, &sums.steps)?;
        let vector = width / size;
        // All vectors end within the tensor, which is one or is whole blocks of a swizzle.
        let (elements, most) = (self.elements().0 as i64, |of: &[i64]| of.iter().copied().max().unwrap_or(0));
        let within = match swizzle {
            Some(swizzle) => elements % vector == 0 && elements % swizzle.block() == 0,
            None => most(&threads) + most(&steps) + vector <= elements,
        };
        within.then_some(())?;
        let source = match &sums.source {
            Some(source) => apart(&source.layout, &source.threads, &source.steps)?,
            None => [vec![0; threads.len()], vec![0; steps.len()]],
        };
        // Copies of 16 bytes are served by the line. Without a swizzle, other accesses repeat with the banks.
        let lined = op == SharedOp::Copy && width == 16;
        let period = if lined || block > 1 { block.max(PASS / size) } else { vector.max(WORD / size) };
        let mut all: Vec<[Lanes; 2]> = Vec::new();
        let mut kinds = Kinds { keys: Vec::new(), touches: Vec::new() };
        for (warp, (own, read)) in threads.chunks(WARP).zip(source[0].chunks(WARP)).enumerate() {
            let [own, read] = [lanes(own), lanes(read)];
            let alike = |known: &[Lanes; 2]| known[0].others == own.others && known[1].others == read.others;
            let first = all.iter().position(alike).unwrap_or(warp);
            for (step, (at, from)) in steps.iter().zip(&source[1]).enumerate() {
                let begin = own.least + at;
                let low = swizzle.map_or(begin, |swizzle| swizzle.apply(begin)) & (vector - 1);
                let from = if lined { key((read.least + from) & (PASS - 1), read.bits, 0, PASS) } else { 0 };
                kinds.add((first, key(begin, own.bits, low, period), from), || sums.touch(warp, step));
            }
            all.push([own, read]);
        }
        Some(kinds.touches)
    }
}

impl Kinds {
    fn add(&mut self, key: (usize, i64, i64), touch: impl FnOnce() -> Touch) {
        let place = self.keys.iter().position(|known| *known == key).unwrap_or_else(|| {
            self.keys.push(key);
            self.touches.push(touch());
            self.keys.len() - 1
        });
        self.touches[place].times += 1;
    }
}
