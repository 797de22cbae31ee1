//! Addresses of a fragment's elements in memory: loads and stores of lanes, one for each register or for each element.

use std::collections::HashMap;

use super::wmma::Fragment;
use super::{Lower, Result, push};
use crate::ast::Operand;
use crate::code::{Class, Inst, MemInfo, Op};
use crate::lower::special::SPECIAL;
use crate::types::{Space, Ty};

/// The addresses of a fragment.
pub(super) struct FragmentAddresses {
    pub(super) of: Fragment,
    /// Whether the elements of a register lie beside each other.
    is_along: bool,
    space: Space,
    wide: bool,
    offset: i64,
    /// The address of the lane's first element, and bytes from a row to the next: of the mode that is not contiguous.
    first: u32,
    row: u32,
    /// Addresses by distance in rows from the first.
    rows: HashMap<u32, u32>,
}

impl<'a> Lower<'a, '_> {
    /// The lane's part of the address: lane / 4 along `outer`, lane % 4 along `inner`.
    pub(super) fn wmma_access(
        &mut self,
        of: Fragment,
        is_along: bool,
        space: Space,
        address: &Operand<'a>,
        stride: Option<u32>,
    ) -> Result<FragmentAddresses> {
        let (base, offset, place) = self.address(address)?;
        let space = self.space_of(space, place, false)?;
        let wide = self.class_of(base) == Class::W64;
        let bits = of.ty.bits();
        let row = match stride {
            None => {
                let elements = if is_along { of.inner() } else { of.outer() };
                self.number(u64::from(elements * bits / 8))?
            }
            Some(stride) => {
                let size = self.number(u64::from(bits))?;
                let three = self.number(3)?;
                let row = self.register(Class::W32, 32)?;
                self.fast(Op::Mul32, row, &[stride, size])?;
                self.fast(Op::ShrU32, row, &[row, three])?;
                row
            }
        };
        let number = SPECIAL.iter().position(|s| *s == "%laneid").unwrap_or(0) as u32;
        let lane = self.special(number)?;
        let (two, three) = (self.number(2)?, self.number(3)?);
        let (group, quad) = (self.register(Class::W32, 32)?, self.register(Class::W32, 32)?);
        self.fast(Op::ShrU32, group, &[lane, two])?;
        self.fast(Op::And32, quad, &[lane, three])?;
        let step = of.lane_step();
        let bytes = self.number(u64::from(if is_along { step * bits / 8 } else { bits / 8 }))?;
        let step = self.number(u64::from(step))?;
        // Rows and bytes in them.
        let (rows, along) = if is_along { (group, quad) } else { (self.register(Class::W32, 32)?, group) };
        if !is_along {
            self.fast(Op::Mul32, rows, &[quad, step])?;
        }
        let class = if wide { Class::W64 } else { Class::W32 };
        let mad = if wide { Op::MadWideU32 } else { Op::Mad32 };
        let first = self.register(class, if wide { 64 } else { 32 })?;
        self.fast(mad, first, &[along, bytes, base])?;
        self.fast(mad, first, &[rows, row, first])?;
        Ok(FragmentAddresses { of, is_along, space, wide, offset, first, row, rows: HashMap::from([(0, first)]) })
    }

    /// The address `n` rows after the first.
    fn wmma_row(&mut self, access: &mut FragmentAddresses, n: u32) -> Result<u32> {
        if let Some(known) = access.rows.get(&n) {
            return Ok(*known);
        }
        let (class, bits, mad) =
            if access.wide { (Class::W64, 64, Op::MadWideU32) } else { (Class::W32, 32, Op::Mad32) };
        let times = self.number(u64::from(n))?;
        let row = self.register(class, bits)?;
        self.fast(mad, row, &[times, access.row, access.first])?;
        access.rows.insert(n, row);
        Ok(row)
    }

    /// One access of an element, or of all of a register.
    fn wmma_move(
        &mut self,
        access: &mut FragmentAddresses,
        op: Op,
        at: (u32, u32),
        bytes: u32,
        register: u32,
    ) -> Result<()> {
        let (outer, inner) = at;
        let (rows, elements) = if access.is_along { (outer, inner) } else { (inner, outer) };
        let a = self.wmma_row(access, rows)?;
        let (wide, bits) = (bytes == 8, if bytes == 8 { 64 } else { 32 });
        let offset = access.offset.wrapping_add(i64::from(elements * access.of.ty.bits() / 8));
        let mem = MemInfo { wide, bits, ..MemInfo::weak(access.space, bytes, access.wide, offset) };
        let x = push(&mut self.code.mems, mem);
        let list = self.list(&[register]);
        self.emit(Inst { a, list, len: 1, defs: u8::from(op == Op::Ld), x, ..Inst::new(op) })
    }

    pub(super) fn wmma_load_register(&mut self, access: &mut FragmentAddresses, n: u32) -> Result<u32> {
        let of = access.of;
        let (outer, inner) = of.place(n);
        let (class, bits) = if of.ty == Ty::F64 { (Class::W64, 64) } else { (Class::W32, 32) };
        if access.is_along || of.per() == 1 {
            let register = self.register(class, bits)?;
            self.wmma_move(access, Op::Ld, (outer, inner), bits / 8, register)?;
            return Ok(register);
        }
        // The elements one by one, then pairs of them, until there is one register.
        let mut parts = Vec::new();
        for e in 0..of.per() {
            let register = self.register(Class::W32, 32)?;
            self.wmma_move(access, Op::Ld, (outer, inner + e), of.ty.bits() / 8, register)?;
            parts.push(register);
        }
        let mut width = of.ty.bits();
        while let [_, _, ..] = parts[..] {
            let mut joined = Vec::new();
            for pair in parts.chunks_exact(2) {
                let register = self.register(Class::W32, 32)?;
                self.join(register, pair[0], pair[1], width)?;
                joined.push(register);
            }
            (parts, width) = (joined, 2 * width);
        }
        Ok(parts[0])
    }

    pub(super) fn wmma_store(&mut self, access: &mut FragmentAddresses, registers: &[u32]) -> Result<()> {
        let of = access.of;
        for (n, register) in (0..).zip(registers) {
            let (outer, inner) = of.place(n);
            let bytes = of.ty.bits() / 8;
            if access.is_along || of.per() == 1 {
                self.wmma_move(access, Op::St, (outer, inner), bytes * of.per(), *register)?;
                continue;
            }
            for e in 0..of.per() {
                let shift = self.number(u64::from(of.ty.bits() * e))?;
                let part = self.register(Class::W32, 32)?;
                self.fast(Op::ShrU32, part, &[*register, shift])?;
                self.wmma_move(access, Op::St, (outer, inner + e), bytes, part)?;
            }
        }
        Ok(())
    }
}
