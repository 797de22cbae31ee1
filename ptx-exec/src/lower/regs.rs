//! Register allocation: registers that are not live at the same time share a row, so that a warp's registers stay in the cache.

use std::collections::HashMap;

use crate::code::{Class, Draft, Inst, NONE, Op};
use crate::proof::RowKind;

/// Bits of the largest liveness table. Beyond it, registers of several blocks count as live everywhere.
const MOST: usize = 1 << 31;

/// Calls `f` with each operand: whether it is written.
pub(super) fn operands(inst: &mut Inst, list: &mut [u32], mut f: impl FnMut(&mut u32, bool)) {
    if inst.guard != NONE {
        let mut register = inst.guard >> 1;
        f(&mut register, false);
        inst.guard = register << 1 | inst.guard & 1;
    }
    for operand in [&mut inst.a, &mut inst.b, &mut inst.c] {
        if *operand != NONE {
            f(operand, false);
        }
    }
    let at = inst.list as usize;
    for i in (0..usize::from(inst.len)).rev() {
        let operand = &mut list[at + i];
        if *operand != NONE {
            f(operand, i < usize::from(inst.defs));
        }
    }
    for operand in [&mut inst.d, &mut inst.e] {
        if *operand != NONE {
            f(operand, true);
        }
    }
}

fn ends_block(op: Op) -> bool {
    matches!(op, Op::Bra | Op::Brx | Op::Exit | Op::Trap)
}

/// Blocks: the first instruction of each.
pub(super) fn leaders(code: &Draft) -> Vec<usize> {
    let n = code.insts.len();
    let mut is = vec![false; n + 1];
    is[0] = true;
    for (i, inst) in code.insts.iter().enumerate() {
        if inst.op == Op::Bra {
            is[inst.x as usize] = true;
        }
        if ends_block(inst.op) {
            is[i + 1] = true;
        }
    }
    for target in code.tables.iter().flatten() {
        is[*target as usize] = true;
    }
    (0..n).filter(|i| is[*i]).collect()
}

pub(super) fn successors(code: &Draft, last: usize, mut f: impl FnMut(usize)) {
    let inst = code.insts[last];
    match inst.op {
        Op::Bra => f(inst.x as usize),
        Op::Brx => code.tables[inst.x as usize].iter().for_each(|t| f(*t as usize)),
        _ => {}
    }
    if (!ends_block(inst.op) || inst.guard != NONE) && last + 1 < code.insts.len() {
        f(last + 1);
    }
}

/// First and last instruction of each register.
struct Spans {
    first: Vec<u32>,
    last: Vec<u32>,
}

impl Spans {
    fn add(&mut self, register: u32, at: usize) {
        let r = register as usize;
        self.first[r] = self.first[r].min(at as u32);
        self.last[r] = self.last[r].max(at as u32);
    }
}

fn spans(code: &mut Draft, registers: usize) -> Spans {
    let starts = leaders(code);
    let mut block_of = vec![0_u32; code.insts.len()];
    for (b, start) in starts.iter().enumerate() {
        let end = starts.get(b + 1).copied().unwrap_or(code.insts.len());
        block_of[*start..end].fill(b as u32);
    }
    let mut spans = Spans { first: vec![u32::MAX; registers], last: vec![0; registers] };
    // Registers that more than one block sees, or that a block reads before it writes them.
    let mut seen_in = vec![u32::MAX; registers];
    let mut number = vec![NONE; registers];
    let mut many = 0_u32;
    let (mut insts, mut list) = (core::mem::take(&mut code.insts), core::mem::take(&mut code.list));
    for (i, inst) in insts.iter_mut().enumerate() {
        let guarded = inst.guard != NONE;
        operands(inst, &mut list, |r, def| {
            spans.add(*r, i);
            let at = *r as usize;
            let first_here = seen_in[at] == u32::MAX;
            let elsewhere = seen_in[at] != block_of[i];
            if number[at] == NONE && ((first_here && (!def || guarded)) || (!first_here && elsewhere)) {
                number[at] = many;
                many += 1;
            }
            seen_in[at] = block_of[i];
        });
    }
    let words = (many as usize).div_ceil(64);
    if starts.len() * words * 64 > MOST {
        let end = insts.len() as u32;
        for (r, n) in number.iter().enumerate() {
            if *n != NONE {
                (spans.first[r], spans.last[r]) = (0, end);
            }
        }
        (code.insts, code.list) = (insts, list);
        return spans;
    }
    let blocks = starts.len();
    let mut gen_set = vec![0_u64; blocks * words];
    let mut kill = vec![0_u64; blocks * words];
    for (i, inst) in insts.iter_mut().enumerate() {
        let base = block_of[i] as usize * words;
        let guarded = inst.guard != NONE;
        operands(inst, &mut list, |r, def| {
            let n = number[*r as usize];
            if n == NONE {
                return;
            }
            let (word, bit) = (base + n as usize / 64, 1_u64 << (n % 64));
            if !def || guarded {
                if kill[word] & bit == 0 {
                    gen_set[word] |= bit;
                }
            } else {
                kill[word] |= bit;
            }
        });
    }
    (code.insts, code.list) = (insts, list);
    let live_in = alive(code, &starts, &block_of, words, &gen_set, &kill);
    let mut register_of = vec![0_u32; many as usize];
    for (r, n) in number.iter().enumerate() {
        if *n != NONE {
            register_of[*n as usize] = r as u32;
        }
    }
    // A register that is live at the entry may be read before it is written. It shares its row with no other, so its shadow stays valid.
    for (r, n) in number.iter().enumerate().filter(|(_, n)| **n != NONE) {
        if live_in[*n as usize / 64] >> (n % 64) & 1 != 0 {
            (spans.first[r], spans.last[r]) = (0, code.insts.len() as u32);
        }
    }
    for b in 0..blocks {
        let end = starts.get(b + 1).copied().unwrap_or(code.insts.len()) - 1;
        let mut extend = |of: usize, at: usize| {
            for w in 0..words {
                let mut bits = live_in[of * words + w];
                while bits != 0 {
                    spans.add(register_of[w * 64 + bits.trailing_zeros() as usize], at);
                    bits &= bits - 1;
                }
            }
        };
        extend(b, starts[b]);
        successors(code, end, |target| extend(block_of[target] as usize, end));
    }
    spans
}

/// The live registers at the start of each block.
fn alive(code: &Draft, starts: &[usize], block_of: &[u32], words: usize, gen_set: &[u64], kill: &[u64]) -> Vec<u64> {
    let blocks = starts.len();
    let last = |b: usize| starts.get(b + 1).copied().unwrap_or(code.insts.len()) - 1;
    let mut predecessors: Vec<Vec<u32>> = vec![Vec::new(); blocks];
    for b in 0..blocks {
        successors(code, last(b), |target| predecessors[block_of[target] as usize].push(b as u32));
    }
    let mut live = gen_set.to_vec();
    let mut queued = vec![true; blocks];
    let mut work: Vec<u32> = (0..blocks as u32).collect();
    while let Some(b) = work.pop() {
        let b = b as usize;
        queued[b] = false;
        for p in &predecessors[b] {
            let p = *p as usize;
            let mut changed = false;
            for w in 0..words {
                let new = live[p * words + w] | live[b * words + w] & !kill[p * words + w];
                changed |= new != live[p * words + w];
                live[p * words + w] = new;
            }
            if changed && !queued[p] {
                queued[p] = true;
                work.push(p as u32);
            }
        }
    }
    live
}

/// Gives each register its row, or each predicate its number, and rewrites the instructions. Says what each row holds.
pub(in super::super) fn assign(code: &mut Draft, classes: &[Class], constants: &HashMap<u32, usize>) -> Vec<RowKind> {
    let mut spans = spans(code, classes.len());
    // `wgmma` accesses its registers while other instructions run, so these registers share no row.
    for inst in code.insts.iter().filter(|i| i.op == Op::Wgmma) {
        for r in code.listed(inst) {
            (spans.first[*r as usize], spans.last[*r as usize]) = (0, code.insts.len() as u32);
        }
    }
    let mut order: Vec<u32> = (0..classes.len() as u32)
        .filter(|r| spans.first[*r as usize] != u32::MAX && !constants.contains_key(r))
        .collect();
    order.sort_by_key(|r| (spans.first[*r as usize], *r));
    let mut place = vec![NONE; classes.len()];
    let mut kinds: Vec<RowKind> = Vec::new();
    let mut preds = 0_u32;
    let mut free: [Vec<u32>; 3] = Default::default();
    let mut active: std::collections::BinaryHeap<core::cmp::Reverse<(u32, u32)>> = Default::default();
    let index = |class: Class| match class {
        Class::Pred => 0,
        Class::W32 => 1,
        Class::W64 => 2,
    };
    for r in order {
        let class = classes[r as usize];
        while let Some(core::cmp::Reverse((end, old))) = active.peek().copied() {
            if end >= spans.first[r as usize] {
                break;
            }
            active.pop();
            free[index(classes[old as usize])].push(place[old as usize]);
        }
        place[r as usize] = free[index(class)].pop().unwrap_or_else(|| {
            if class == Class::Pred {
                preds += 1;
                return preds - 1;
            }
            new_rows(&mut kinds, class == Class::W64)
        });
        active.push(core::cmp::Reverse((spans.last[r as usize], r)));
    }
    // Constants in order of their first use; unused ones get no row.
    let mut all: Vec<(&u32, &usize)> = constants.iter().collect();
    all.sort_by_key(|(_, c)| **c);
    for (r, c) in all {
        if spans.first[*r as usize] == u32::MAX {
            code.constants[*c].row = NONE;
            continue;
        }
        let row = new_rows(&mut kinds, code.constants[*c].wide);
        place[*r as usize] = row;
        code.constants[*c].row = row;
    }
    code.constants.retain(|c| c.row != NONE);
    (code.rows, code.preds) = (kinds.len() as u32, preds);
    let mut insts = core::mem::take(&mut code.insts);
    let end = insts.len() as u32;
    // Registers that are live at the entry, and destinations of accesses that may be refused.
    let mut unwritten: Vec<bool> = spans.first.iter().zip(&spans.last).map(|span| span == (&0, &end)).collect();
    for inst in &mut insts {
        let may_fail = matches!(inst.op, Op::Ld | Op::Atom);
        operands(inst, &mut code.list, |r, def| {
            unwritten[*r as usize] |= def && may_fail;
            *r = place[*r as usize];
        });
    }
    code.alive = (!insts.iter().any(|inst| inst.op.crosses())).then(|| {
        let of = |r: usize| match classes[r] {
            _ if constants.contains_key(&(r as u32)) => 0..0,
            Class::Pred => 0..0,
            Class::W32 => place[r]..place[r] + 1,
            Class::W64 => place[r]..place[r] + 2,
        };
        let mut rows: Vec<u32> = (0..classes.len()).filter(|r| unwritten[*r]).flat_map(of).collect();
        rows.sort_unstable();
        rows.dedup();
        rows
    });
    code.insts = insts;
    kinds
}

/// One more row, or two for a value of 64 bits; the number of the first.
fn new_rows(kinds: &mut Vec<RowKind>, wide: bool) -> u32 {
    let row = kinds.len() as u32;
    kinds.extend_from_slice(if wide { &[RowKind::First, RowKind::Second] } else { &[RowKind::Single] });
    row
}
