//! Branches where a warp must not diverge, because a barrier of the whole warp is on one path only.
//!
//! The barrier lies between the branch and the instruction where its paths meet again. That is the branch's immediate post-dominator
//! (Cooper, Harvey, Kennedy, "A Simple, Fast Dominance Algorithm"). A branch with paths that meet only at the end of the thread does not
//! count, since threads may exit before a barrier.

use super::regs::{leaders, successors};
use crate::code::{Draft, Op};

/// Levels of nested branches around a barrier.
const NESTED: usize = 64;
/// No block.
const NONE: u32 = u32::MAX;

struct Flow {
    /// The first instruction of each block; then the place behind the last.
    starts: Vec<usize>,
    /// Blocks that follow each block; the last one stands for the end of a thread.
    next: Vec<Vec<u32>>,
    /// The immediate post-dominator of each block, and its distance from the end.
    meets: Vec<u32>,
    depth: Vec<u32>,
    /// Blocks from which the end is reached: each after its post-dominator.
    order: Vec<u32>,
}

/// Each such branch, with the instruction where its two paths meet again.
pub(super) fn partings(code: &Draft) -> Vec<(u32, u32)> {
    let is_barrier = |i: usize| {
        let inst = &code.insts[i];
        matches!(inst.op, Op::Bar | Op::BarArrive | Op::BarRed) && code.bars[inst.x as usize].aligned
    };
    if !(0..code.insts.len()).any(is_barrier) {
        return Vec::new();
    }
    let flow = Flow::of(code);
    let blocks = flow.next.len() - 1;
    let any = |b: usize, is: &dyn Fn(usize) -> bool| (flow.starts[b]..flow.starts[b + 1]).any(is);
    let mut has: Vec<bool> = (0..blocks).map(|b| any(b, &is_barrier)).collect();
    has.push(false);
    let mut marked = vec![false; blocks];
    for _ in 0..NESTED {
        let inner = flow.nearest(&has);
        let mut more = false;
        for b in (0..blocks).filter(|b| flow.next[*b].len() > 1 && flow.meets[*b] != NONE) {
            let below = |s: &u32| inner[*s as usize] > flow.depth[flow.meets[b] as usize] + 1;
            if !marked[b] && flow.next[b].iter().any(below) {
                (marked[b], has[b], more) = (true, true, true);
            }
        }
        if !more {
            break;
        }
    }
    let works = flow.reaches(&(0..blocks).map(|b| any(b, &|i| is_work(code.insts[i].op))).collect::<Vec<_>>());
    let of = |b: usize| {
        let meets = flow.meets[b] as usize;
        (marked[b] && meets < blocks && works[meets])
            .then(|| (flow.starts[b + 1] as u32 - 1, flow.starts[meets] as u32))
    };
    (0..blocks).filter_map(of).collect()
}

/// Whether an instruction does something that another thread, or the caller, may see.
fn is_work(op: Op) -> bool {
    op as u32 >= Op::Ld as u32 && !matches!(op, Op::LdParam | Op::Sleep)
}

impl Flow {
    fn of(code: &Draft) -> Flow {
        let mut starts = leaders(code);
        let blocks = starts.len();
        starts.push(code.insts.len());
        let mut block_of = vec![0_u32; code.insts.len()];
        for b in 0..blocks {
            block_of[starts[b]..starts[b + 1]].fill(b as u32);
        }
        let mut next: Vec<Vec<u32>> = (0..blocks)
            .map(|b| {
                let (last, mut to) = (starts[b + 1] - 1, Vec::new());
                successors(code, last, |i| to.push(block_of[i]));
                if matches!(code.insts[last].op, Op::Exit | Op::Trap) {
                    to.push(blocks as u32);
                }
                to.sort_unstable();
                to.dedup();
                to
            })
            .collect();
        next.push(Vec::new());
        let mut flow = Flow { starts, next, meets: Vec::new(), depth: Vec::new(), order: Vec::new() };
        flow.post_dominators();
        flow
    }

    fn before(&self) -> Vec<Vec<u32>> {
        let mut before = vec![Vec::new(); self.next.len()];
        for (b, next) in self.next.iter().enumerate() {
            next.iter().for_each(|n| before[*n as usize].push(b as u32));
        }
        before
    }

    fn post_dominators(&mut self) {
        let (n, before) = (self.next.len(), self.before());
        // Blocks backwards from the end, in postorder.
        let (mut number, mut postorder) = (vec![NONE; n], Vec::new());
        let (mut seen, mut stack) = (vec![false; n], vec![(n as u32 - 1, 0)]);
        seen[n - 1] = true;
        while let Some((b, at)) = stack.last_mut() {
            match before[*b as usize].get(*at) {
                Some(p) => {
                    *at += 1;
                    if !core::mem::replace(&mut seen[*p as usize], true) {
                        stack.push((*p, 0));
                    }
                }
                None => {
                    number[*b as usize] = postorder.len() as u32;
                    postorder.push(*b);
                    stack.pop();
                }
            }
        }
        postorder.reverse();
        let mut meets = vec![NONE; n];
        meets[n - 1] = n as u32 - 1;
        let mut changes = true;
        while changes {
            changes = false;
            for b in &postorder[1..] {
                let known = self.next[*b as usize].iter().filter(|s| meets[**s as usize] != NONE);
                let new = known.copied().reduce(|a, b| common(a, b, &meets, &number)).unwrap_or(NONE);
                changes |= core::mem::replace(&mut meets[*b as usize], new) != new;
            }
        }
        let mut depth = vec![0; n];
        for b in &postorder[1..] {
            depth[*b as usize] = depth[meets[*b as usize] as usize] + 1;
        }
        meets[n - 1] = NONE;
        (self.meets, self.depth, self.order) = (meets, depth, postorder);
    }

    /// For each block, finds the nearest block with `has` among it and its post-dominators. Returns that block's distance from the end
    /// plus one, or 0 without such a block.
    fn nearest(&self, has: &[bool]) -> Vec<u32> {
        let mut nearest = vec![0; has.len()];
        for b in self.order.iter().map(|b| *b as usize) {
            nearest[b] = match (has[b], self.meets[b]) {
                (true, _) => self.depth[b] + 1,
                (false, NONE) => 0,
                (false, meets) => nearest[meets as usize],
            };
        }
        nearest
    }

    /// Whether each block has something, or a block that may come after it.
    fn reaches(&self, has: &[bool]) -> Vec<bool> {
        let (mut all, before) = (has.to_vec(), self.before());
        let mut stack: Vec<usize> = (0..has.len()).filter(|b| has[*b]).collect();
        while let Some(b) = stack.pop() {
            for p in before[b].iter().map(|p| *p as usize) {
                if !core::mem::replace(&mut all[p], true) {
                    stack.push(p);
                }
            }
        }
        all
    }
}

/// The first block that post-dominates both.
fn common(mut a: u32, mut b: u32, meets: &[u32], number: &[u32]) -> u32 {
    while a != b {
        while number[a as usize] < number[b as usize] {
            a = meets[a as usize];
        }
        while number[b as usize] < number[a as usize] {
            b = meets[b as usize];
        }
    }
    a
}
