//! Proves the tables of an entry: the machine can run every table entry.

use super::{Error, RowKind, defect};
use crate::code::{Base, Class, Draft, InitialAddress, Inst, LaneInfo, MemInfo, Op};
use crate::code_async::{BulkInfo, BulkWay, WgmmaInfo};
use crate::lower::wgmma::depth;
use crate::machine::products::mma;
use crate::types::Ty;

/// The largest alignment that a text can ask for.
const MOST_ALIGN: u64 = 1 << 20;

/// Whether an instruction's table entry suits its operation. Missing entries are found earlier.
pub(super) fn has_sound_entry(code: &Draft, inst: &Inst) -> bool {
    let x = inst.x as usize;
    let end = code.insts.len();
    match inst.op {
        Op::Bra => x < end,
        Op::Brx => code.tables.get(x).is_some_and(|table| table.iter().all(|target| (*target as usize) < end)),
        Op::SetpS32 | Op::SetpU32 | Op::SetpF32 => code.setps.get(x).is_some_and(|info| !info.wide),
        Op::SetpS64 | Op::SetpU64 => code.setps.get(x).is_some_and(|info| info.wide),
        Op::Lane => code.lanes.get(x).is_some_and(is_sound_lane),
        Op::Ld => code.mems.get(x).is_some_and(|mem| is_sound(mem) && mem.bits >= 8 * mem.bytes),
        Op::St => code.mems.get(x).is_some_and(is_sound),
        Op::Discard => code.mems.get(x).is_some_and(|mem| (mem.bytes, mem.elements) == (128, 1)),
        Op::LdParam => {
            code.mems.get(x).is_some_and(|mem| is_sound(mem) && mem.bits >= 8 * mem.bytes && lies(code, mem))
        }
        Op::Atom => code.atoms.get(x).is_some_and(|info| is_sound(&info.mem)),
        Op::CpAsync => code.copies.get(x).is_some_and(|info| matches!(info.bytes, 4 | 8 | 16)),
        Op::Bar | Op::BarArrive | Op::BarRed => x < code.bars.len(),
        Op::LdMatrix | Op::StMatrix => code
            .matrices
            .get(x)
            .is_some_and(|info| matches!(info.count, 1 | 2 | 4) && (info.mem.bytes, info.mem.elements) == (16, 1)),
        Op::Mma => code.mmas.get(x).is_some_and(mma::is_known),
        Op::Wgmma => code.asyncs.wgmmas.get(x).is_some_and(is_sound_wgmma),
        Op::Bulk => code.asyncs.bulks.get(x).is_some_and(is_sound_bulk),
        Op::StAsync => {
            let fits = |bytes: u32| matches!(bytes, 4 | 8) && bytes * u32::from(inst.len) <= 16;
            matches!(inst.len, 1 | 2 | 4) && code.asyncs.stores.get(x).is_some_and(|info| fits(info.bytes))
        }
        _ => true,
    }
}

/// Elements that a register holds, at an alignment that is a power of two.
fn is_sound(mem: &MemInfo) -> bool {
    let sizes = matches!(mem.bytes, 1 | 2 | 4 | 8) && matches!(mem.elements, 1 | 2 | 4 | 8);
    sizes && mem.bytes * mem.elements <= 32 && (mem.bytes < 8 || mem.wide) && mem.bits <= 64
}

/// Whether it lies among the parameters.
fn lies(code: &Draft, mem: &MemInfo) -> bool {
    let start = u64::try_from(mem.offset).ok();
    start
        .and_then(|start| start.checked_add(u64::from(mem.bytes * mem.elements)))
        .is_some_and(|end| end <= code.param_bytes)
}

fn is_sound_lane(info: &LaneInfo) -> bool {
    let has_classes = info.row.is_none_or(|row| {
        let (d, from) = row.classes();
        d == info.d && from.iter().zip([info.a, info.b, info.c]).all(|(class, of)| *class == of)
    });
    let fits = match info.d {
        Class::Pred => info.bits == 1,
        Class::W32 => (1..=32).contains(&info.bits),
        Class::W64 => info.bits == 64,
    };
    has_classes && fits
}

fn is_sound_wgmma(info: &WgmmaInfo) -> bool {
    let has_n = info.n.is_multiple_of(8) && (8..=256).contains(&info.n);
    let registers = if info.d == Ty::F16 { info.n / 4 } else { info.n / 2 };
    let fits = info.d_registers == registers && matches!(info.a_registers, 0 | 4);
    has_n && fits && depth(info.d, info.a, info.b) == Some(info.k)
}

fn is_sound_bulk(info: &BulkInfo) -> bool {
    info.modes <= 5 && info.way != BulkWay::Registers && info.grouped == (info.way == BulkWay::Store)
}

/// How many registers of its list `wgmma` writes.
pub(super) fn written_by_wgmma(code: &Draft, inst: &Inst) -> usize {
    code.asyncs.wgmmas.get(inst.x as usize).map_or(0, |info| info.d_registers as usize)
}

/// Proves the tables that belong to no single instruction.
pub(super) fn prove(code: &Draft, kinds: &[RowKind], first_constant: u32) -> Result<(), Error> {
    let n = code.insts.len();
    let whole = code.places.len() == n
        && code.opcodes.len() == n
        && code.opcodes.iter().all(|name| (*name as usize) < code.names.len())
        && matches!(code.asyncs.touches.len(), touches if touches == 0 || touches == n);
    let fails = |found: &str, required: &str| Err(defect(code, n, found, required));
    if !whole {
        return fails("instructions without a place or a name", "one of each for every instruction");
    }
    if kinds.len() != code.rows as usize || !has_pairs(kinds) {
        return fails("rows that are half a value", "two rows for every value of 64 bits");
    }
    if code.alive.iter().flatten().any(|row| *row >= code.rows) {
        return fails("a row that begins with zeros, beyond the last", "rows of the warp");
    }
    if !are_sound_constants(code, kinds, first_constant) {
        return fails("a constant without a row or a variable", "the last rows, one value each");
    }
    let is_align = |align: u64| align.is_power_of_two() && align <= MOST_ALIGN;
    if !code.globals.iter().all(|v| is_align(v.align)) || !code.shared.iter().all(|v| is_align(v.align)) {
        return fails("the alignment of a variable", "a power of two of at most 2^20");
    }
    let is_address = |bytes: usize, a: &InitialAddress| {
        let fits = a.at.checked_add(a.bytes).is_some_and(|end| end <= bytes as u64);
        fits && a.bytes <= 8 && a.byte.is_none_or(|byte| byte < 8) && (a.of as usize) < code.globals.len()
    };
    if !code.globals.iter().all(|v| v.addresses.iter().all(|a| is_address(v.bytes.len(), a))) {
        return fails("the address of a variable, outside of the variable that holds it", "a place inside");
    }
    Ok(())
}

/// Whether the two rows of each value follow each other.
fn has_pairs(kinds: &[RowKind]) -> bool {
    let follows = |at: usize| kinds.get(at + 1) == Some(&RowKind::Second);
    let precedes = |at: usize| at.checked_sub(1).is_some_and(|before| kinds[before] == RowKind::First);
    kinds.iter().enumerate().all(|(at, kind)| match kind {
        RowKind::Single => true,
        RowKind::First => follows(at),
        RowKind::Second => precedes(at),
    })
}

/// Whether constants fill the rows from the first of them on, and are relative to variables that are there.
fn are_sound_constants(code: &Draft, kinds: &[RowKind], first_constant: u32) -> bool {
    let mut rows = 0;
    for c in &code.constants {
        let kind = if c.wide { RowKind::First } else { RowKind::Single };
        let has_base = match c.base {
            Base::Zero | Base::Param => true,
            Base::Global(i) => (i as usize) < code.globals.len(),
            Base::Shared(i) | Base::SharedGeneric(i) => (i as usize) < code.shared.len(),
        };
        if kinds.get(c.row as usize) != Some(&kind) || !has_base {
            return false;
        }
        rows += if c.wide { 2 } else { 1 };
    }
    first_constant <= code.rows && code.rows - first_constant == rows
}
