//! `wmma`: loads, stores and products of whole matrices. Fragments have the register layout of `mma`, as seen on an H200, and a product
//! is made of several `mma`. A product with 32 columns is computed as the product of the transposes.

use super::alu::class;
use super::wmma_access::FragmentAddresses;
use super::{Lower, Result, push};
use crate::ast::{Instruction, Operand};
use crate::code::{Class, Inst, MmaInfo, Op};
use crate::machine::products::mma;
use crate::num::{RM, RN, RP, RZ, convert};
use crate::types::{Space, Ty};

/// Rows of A, columns of B, elements of a sum.
pub(super) type Shape = [u32; 3];

/// The matrix of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matrix {
    A,
    B,
    C,
}

/// A fragment: how many registers it has, and which element each holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    pub(super) matrix: Matrix,
    pub(super) shape: Shape,
    pub(super) ty: Ty,
}

pub(super) fn shape(word: &str) -> Option<Shape> {
    let numbers: Vec<u32> = word.split(['m', 'n', 'k']).skip(1).map_while(|n| n.parse().ok()).collect();
    let shape: Shape = numbers.try_into().ok()?;
    let [m, n, k] = shape;
    (word == format!("m{m}n{n}k{k}")).then_some(shape)
}

impl Fragment {
    /// Elements of a register.
    pub(super) fn per(&self) -> u32 {
        (32 / self.ty.bits()).max(1)
    }

    /// Whether the product is computed from the transposes.
    fn is_turned(&self) -> bool {
        self.shape[1] == 32
    }

    /// Rows of A, columns of B; of C and D rows, or columns where the product is turned.
    pub(super) fn outer(&self) -> u32 {
        let [m, n, _] = self.shape;
        match self.matrix {
            Matrix::A => m,
            Matrix::B => n,
            Matrix::C if self.is_turned() => n,
            Matrix::C => m,
        }
    }

    /// Elements along the other mode: of a sum, or of C and D.
    pub(super) fn inner(&self) -> u32 {
        let [m, n, k] = self.shape;
        match self.matrix {
            Matrix::A | Matrix::B => k,
            Matrix::C if self.is_turned() => m,
            Matrix::C => n,
        }
    }

    /// Whether elements along `inner` lie beside each other in memory, by the layout's word.
    pub(super) fn is_along(&self, row: bool) -> bool {
        match self.matrix {
            Matrix::A => row,
            Matrix::B => !row,
            Matrix::C => row != self.is_turned(),
        }
    }

    /// How the elements of a lane differ from those of lane 0: along `inner` for each of four neighbours.
    pub(super) fn lane_step(&self) -> u32 {
        if self.matrix == Matrix::C { 2 } else { self.per() }
    }

    /// Registers that hold elements.
    pub(super) fn used(&self) -> u32 {
        self.outer() * self.inner() / 32 / self.per()
    }

    /// Registers: fragments of f16 have eight, of which the last may hold nothing new.
    fn registers(&self) -> u32 {
        if self.ty == Ty::F16 && self.matrix != Matrix::C { 8 } else { self.used() }
    }

    /// What a register's first element differs by from that of register 0: along `outer` and along `inner`.
    pub(super) fn place(&self, register: u32) -> (u32, u32) {
        let mut bits = register;
        let mut bit = || {
            let set = bits & 1;
            bits >>= 1;
            set
        };
        let (mut outer, mut inner) = (0, 0);
        if self.matrix == Matrix::C {
            if self.per() == 1 {
                inner += bit();
            }
            outer += 8 * bit();
            if self.outer() == 32 {
                outer += 16 * bit();
            } else {
                inner += 8 * bit();
            }
            return (outer, inner);
        }
        let block = 4 * self.per();
        let deep = self.inner() > block;
        // The first factor of `mma` has 16 rows, its second 8 columns.
        let is_first = if self.matrix == Matrix::A { self.outer() >= 16 } else { self.is_turned() };
        if is_first {
            outer += 8 * bit();
        }
        if deep {
            inner += block * bit();
        }
        if is_first {
            outer += 16 * bit();
        } else {
            outer += 8 * bit();
        }
        (outer, inner)
    }

    /// Whether `wmma` has such a fragment.
    fn exists(&self) -> bool {
        use Ty::{B1, Bf16, F16, F32, F64, S4, S8, S32, Tf32, U4, U8};
        let [m, n, k] = self.shape;
        let large = matches!((m, n, k), (16, 16, 16) | (8, 32, 16) | (32, 8, 16));
        match (self.matrix, self.ty) {
            (Matrix::A | Matrix::B, F16 | Bf16 | U8 | S8) | (Matrix::C, F16) => large,
            (Matrix::A | Matrix::B, Tf32) => (m, n, k) == (16, 16, 8),
            (Matrix::C, F32) => large || (m, n, k) == (16, 16, 8),
            (_, F64) => (m, n, k) == (8, 8, 4),
            (Matrix::A | Matrix::B, U4 | S4) => (m, n, k) == (8, 8, 32),
            (Matrix::A | Matrix::B, B1) => (m, n, k) == (8, 8, 128),
            (Matrix::C, S32) => large || matches!((m, n, k), (8, 8, 32 | 128)),
            _ => false,
        }
    }
}

impl<'a> Lower<'a, '_> {
    pub(super) fn wmma(&mut self, i: &Instruction<'a>) -> Result<()> {
        match i.modifiers.first() {
            Some(&"load" | &"store") => self.wmma_memory(i),
            Some(&"mma") => self.wmma_product(i),
            _ => Err(self.unsupported(i)),
        }
    }

    /// The registers of a fragment, without those that hold no elements.
    fn fragment(&mut self, i: &Instruction<'a>, operand: &Operand<'a>, of: Fragment, write: bool) -> Result<Vec<u32>> {
        let all = operand.elements();
        if all.len() != of.registers() as usize {
            return Err(self.malformed(i, &format!("{} registers in a fragment", of.registers())));
        }
        let ty = match of.ty {
            Ty::F64 => Ty::F64,
            _ => Ty::B32,
        };
        let mut registers = Vec::new();
        for e in all {
            let register = if write { self.destination_of(e, ty)? } else { self.source(e, ty)? };
            registers.push(register);
        }
        if write {
            // Registers that only repeat others are written too, as copies.
            return Ok(registers);
        }
        registers.truncate(of.used() as usize);
        Ok(registers)
    }

    fn wmma_memory(&mut self, i: &Instruction<'a>) -> Result<()> {
        let (words, space) = match &i.modifiers[..] {
            [rest @ .., ty] if rest.len() == 6 => ([rest, &[*ty]].concat(), Space::Generic),
            [rest @ .., space @ ("global" | "shared" | "shared::cta"), ty] if rest.len() == 6 => {
                ([rest, &[*ty]].concat(), if *space == "global" { Space::Global } else { Space::Shared })
            }
            _ => return Err(self.unsupported(i)),
        };
        let [what, matrix, "sync", "aligned", layout @ ("row" | "col"), shape_word, ty] = words[..] else {
            return Err(self.unsupported(i));
        };
        let matrix = match (what, matrix) {
            ("load", "a") => Matrix::A,
            ("load", "b") => Matrix::B,
            ("load", "c") | ("store", "d") => Matrix::C,
            _ => return Err(self.unsupported(i)),
        };
        let (Some(shape), Some(ty)) = (shape(shape_word), Ty::parse(ty)) else { return Err(self.unsupported(i)) };
        let of = Fragment { matrix, shape, ty };
        let is_along = of.is_along(layout == "row");
        // Elements of less than a byte cannot be taken one by one.
        if !of.exists() || ty.bits() < 8 && !is_along && matrix != Matrix::C {
            return Err(self.unsupported(i));
        }
        let is_load = what == "load";
        let (registers, address, stride) = match (is_load, &i.operands[..]) {
            (true, [registers, address, stride @ ..]) | (false, [address, registers, stride @ ..])
                if stride.len() < 2 =>
            {
                (registers, address, stride.first())
            }
            _ => return Err(self.malformed(i, "registers, an address and at most a stride")),
        };
        let registers = self.fragment(i, registers, of, is_load)?;
        let stride = match stride {
            Some(stride) => Some(self.source(stride, Ty::U32)?),
            None => None,
        };
        self.emit(Inst::new(Op::Converge))?;
        let mut access = self.wmma_access(of, is_along, space, address, stride)?;
        if is_load { self.wmma_load(&mut access, &registers) } else { self.wmma_store(&mut access, &registers) }
    }

    fn wmma_load(&mut self, access: &mut FragmentAddresses, registers: &[u32]) -> Result<()> {
        let used = access.of.used() as usize;
        // A destination may be a register of the address, so all values are loaded first.
        let mut loaded = Vec::new();
        for n in 0..used as u32 {
            loaded.push(self.wmma_load_register(access, n)?);
        }
        let op = if access.of.ty == Ty::F64 { Op::Mov64 } else { Op::Mov32 };
        for (n, d) in registers.iter().enumerate() {
            self.fast(op, *d, &[loaded[n % used]])?;
        }
        Ok(())
    }

    fn wmma_product(&mut self, i: &Instruction<'a>) -> Result<()> {
        let mut words = i.modifiers[1..].to_vec();
        let saturate = words.last() == Some(&"satfinite");
        if saturate {
            words.pop();
        }
        let is_bits = words.get(1) == Some(&"popc");
        let is_and = is_bits && words[0] == "and";
        if is_bits {
            if !matches!(words[0], "xor" | "and") {
                return Err(self.unsupported(i));
            }
            words.drain(..2);
        }
        let round = match words.get(5) {
            Some(&"rz") => RZ,
            Some(&"rm") => RM,
            Some(&"rp") => RP,
            _ => RN,
        };
        if matches!(words.get(5), Some(&"rn" | &"rz" | &"rm" | &"rp")) {
            words.remove(5);
            if words.last() != Some(&"f64") {
                return Err(self.unsupported(i));
            }
        }
        // For f16 operands, the text may name the types of D and C alone.
        let words = match words[..] {
            [.., "f16", "f16", _] => return Err(self.unsupported(i)),
            [a, b, c, d, e, to, from] => vec![a, b, c, d, e, to, "f16", "f16", from],
            _ => words,
        };
        let ["sync", "aligned", first @ ("row" | "col"), second @ ("row" | "col"), word, d, a, b, c] = words[..] else {
            return Err(self.unsupported(i));
        };
        let layouts = [first, second];
        let (Some(shape), Some(d), Some(a), Some(b), Some(c)) =
            (shape(word), Ty::parse(d), Ty::parse(a), Ty::parse(b), Ty::parse(c))
        else {
            return Err(self.unsupported(i));
        };
        let of = |matrix, ty| Fragment { matrix, shape, ty };
        let all = [of(Matrix::C, d), of(Matrix::A, a), of(Matrix::B, b), of(Matrix::C, c)];
        let info =
            MmaInfo { m: 0, n: 8, k: shape[2], d, a, b, c, a_column: false, b_column: true, saturate, is_and, round };
        let info = MmaInfo { m: if shape[0] * shape[1] == 64 { 8 } else { 16 }, ..info };
        let fits = all.iter().all(Fragment::exists)
            && is_bits == (a == Ty::B1)
            && a == b
            && mma::is_known(&MmaInfo { c: d, ..info })
            && (c == d || matches!((c, d), (Ty::F16 | Ty::F32, Ty::F16 | Ty::F32)) && a == Ty::F16)
            && (!saturate || matches!(a, Ty::U8 | Ty::S8 | Ty::U4 | Ty::S4))
            && (a.bits() >= 8 || layouts == ["row", "col"]);
        if !fits {
            return Err(self.unsupported(i));
        }
        self.expect_operands(i, 4)?;
        let mut registers = Vec::new();
        for (n, of) in all.iter().enumerate() {
            registers.push(self.fragment(i, &i.operands[n], *of, n == 0)?);
        }
        self.wmma_products(i, info, shape, &registers)
    }

    /// The products of 16 by 8 that it is made of.
    fn wmma_products(&mut self, i: &Instruction<'a>, info: MmaInfo, [m, n, _]: Shape, of: &[Vec<u32>]) -> Result<()> {
        let [d, a, b, c] = of else { return Err(self.unsupported(i)) };
        // The first factor has its rows in registers of their own where it has 32, the second its columns where it has 16.
        let (first, second) = if n == 32 { (b, a) } else { (a, b) };
        let info = if n == 32 { MmaInfo { a: info.b, b: info.a, ..info } } else { info };
        let times = m * n / (info.m * info.n);
        let part = |of: &[u32], t: u32| {
            let each = of.len() / times as usize;
            of[each * t as usize..][..each].to_vec()
        };
        // D may be A or B: all products read before one of them is written.
        let mut results = Vec::new();
        for t in 0..times {
            let rows = if m * n == 256 && m != n { part(first, t) } else { first.clone() };
            let columns = if m == n && times == 2 { part(second, t) } else { second.clone() };
            if info.a == Ty::Tf32 {
                // The tensor core takes four elements of a sum at a time.
                let info = MmaInfo { k: 4, ..info };
                let half = self.product(info, &rows[..2], &columns[..1], &part(c, t))?;
                results.extend(self.product(info, &rows[2..], &columns[1..], &half)?);
            } else {
                results.extend(self.product(info, &rows, &columns, &part(c, t))?);
            }
        }
        let op = if info.d == Ty::F64 { Op::Mov64 } else { Op::Mov32 };
        for (d, result) in d.iter().zip(results) {
            self.fast(op, *d, &[result])?;
        }
        Ok(())
    }

    /// One `mma`, into new registers. Where C and D differ in type, the tensor core adds in f32.
    pub(super) fn product(&mut self, info: MmaInfo, a: &[u32], b: &[u32], c: &[u32]) -> Result<Vec<u32>> {
        let mixed = info.c != info.d;
        let mut c = c.to_vec();
        if mixed && info.c == Ty::F16 {
            let mut wide = Vec::new();
            for pair in &c {
                let shift = self.number(16)?;
                let high = self.register(Class::W32, 32)?;
                self.fast(Op::ShrU32, high, &[*pair, shift])?;
                for half in [*pair, high] {
                    let to = self.register(Class::W32, 32)?;
                    let own = convert::ctl(Ty::F32, Ty::F16, false).unwrap_or(0);
                    self.lane_as(None, convert::scalar, own, to, &[half])?;
                    wide.push(to);
                }
            }
            c = wide;
        }
        let in_f32 = if mixed { MmaInfo { c: Ty::F32, d: Ty::F32, ..info } } else { info };
        let counts = mma::registers(&in_f32);
        let mut d = Vec::new();
        for _ in 0..counts[0] {
            d.push(self.register(class(in_f32.d), in_f32.d.bits().max(32))?);
        }
        let x = push(&mut self.code.mmas, in_f32);
        let all = [&d[..], a, b, &c].concat();
        let list = self.list(&all);
        self.emit(Inst { list, len: all.len() as u8, defs: counts[0] as u8, x, ..Inst::new(Op::Mma) })?;
        if !mixed || info.d != Ty::F16 {
            return Ok(d);
        }
        let mut halves = Vec::new();
        for pair in d.chunks_exact(2) {
            let to = self.register(Class::W32, 32)?;
            self.lane_as(None, convert::pair_f16, RN, to, &[pair[1], pair[0]])?;
            halves.push(to);
        }
        Ok(halves)
    }
}
