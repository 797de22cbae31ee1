//! The opcode forms of video instructions, packed comparisons, and saturating conversions into parts of a word.

use crate::forms::{Compare, Form, Inputs, form};

const TYPES: [&str; 2] = ["u32", "s32"];
const COMPARISONS: [&str; 6] = ["eq", "ne", "lt", "le", "gt", "ge"];

/// A form that writes `%w0` by the lines of its body.
fn word(name: String, inputs: Inputs, body: &str) -> Form {
    let body = format!("    {body}\n    cvt.u64.u32 %o0, %w0;\n");
    Form { name, inputs, results: 1, compare: Compare::Exact, body }
}

fn instruction(all: &mut Vec<Form>, op: &str, operands: &str) {
    all.push(word(format!("{op} {operands}"), Inputs::Integers, &format!("{op} {operands};")));
}

/// An H200 has no video instructions, so ptxas emulates them. The emulation differs from the manual in four cases: unsigned `.sat`,
/// an unsigned result compared with a third operand, a destination in the upper half, and products of other types than `.s32`. The
/// executor follows the manual there, and no result of the GPU is kept.
pub(crate) fn video(all: &mut Vec<Form>) {
    for (n, op) in ["vadd", "vsub", "vabsdiff", "vmin", "vmax"].into_iter().enumerate() {
        for (t, types) in triples().enumerate() {
            instruction(all, &format!("{op}.{types}"), "%w0, %w1, %w2");
            if types.starts_with("s32") {
                instruction(all, &format!("{op}.{types}.sat"), "%w0, %w1, %w2");
            }
            // Each operation meets each part and each second operation with some of the types.
            let merged = ["%w0.b0, %w1.b3", "%w0.b3, %w1.h1", "%w0.h0, %w1", "%w0.b2, %w1.b1"][(n + t) % 4];
            instruction(all, &format!("{op}.{types}"), &format!("{merged}, %w2.h0, %w3"));
            let second = if types.starts_with('u') { "add" } else { ["add", "max", "min"][(n + t) % 3] };
            instruction(all, &format!("{op}.{types}.{second}"), "%w0, %w1.b2, %w2.h1, %w3");
        }
    }
    for op in ["vshl", "vshr"] {
        for d in TYPES {
            for a in TYPES {
                for mode in ["clamp", "wrap"] {
                    instruction(all, &format!("{op}.{d}.{a}.u32.{mode}"), "%w0, %w1, %w2");
                }
                instruction(all, &format!("{op}.{d}.{a}.u32.clamp"), "%w0.b2, %w1.h1, %w2.b0, %w3");
                instruction(all, &format!("{op}.{d}.{a}.u32.wrap.add"), "%w0, %w1.b3, %w2.b1, %w3");
            }
        }
    }
    for d in TYPES {
        for (flags, operands) in [
            ("", "%w0, %w1, %w2, %w3"),
            (".sat", "%w0, %w1, %w2, %w3"),
            (".po.shr7", "%w0, %w1.h0, %w2.b3, %w3"),
            (".shr15", "%w0, -%w1, %w2, %w3"),
            (".sat", "%w0, %w1.h1, -%w2.h0, %w3"),
            (".sat.shr7", "%w0, %w1, %w2, -%w3"),
        ] {
            instruction(all, &format!("vmad.{d}.s32.s32{flags}"), operands);
        }
    }
    for a in TYPES {
        for b in TYPES {
            for cmp in COMPARISONS {
                instruction(all, &format!("vset.{a}.{b}.{cmp}"), "%w0, %w1.h1, %w2.h0");
            }
            instruction(all, &format!("vset.{a}.{b}.lt"), "%w0.h0, %w1.b0, %w2, %w3");
            instruction(all, &format!("vset.{a}.{b}.ge.add"), "%w0, %w1, %w2, %w3");
            instruction(all, &format!("vset.{a}.{b}.le.min"), "%w0, %w1, %w2, %w3");
        }
    }
}

/// Types of D, A and B.
fn triples() -> impl Iterator<Item = String> {
    TYPES.iter().flat_map(|d| TYPES.iter().flat_map(move |a| TYPES.iter().map(move |b| format!("{d}.{a}.{b}"))))
}

pub(crate) fn simd(all: &mut Vec<Form>) {
    for (lanes, selectors, masks) in
        [(2, ["h10", "h32", "h03", "h21"], ["h0", "h1"]), (4, ["b3210", "b7654", "b0426", "b5170"], ["b20", "b310"])]
    {
        for (n, op) in ["vadd", "vsub", "vavrg", "vabsdiff", "vmin", "vmax"].into_iter().enumerate() {
            for (t, types) in triples().enumerate() {
                let flag = ["", ".sat", ".add"][(n + t + 1) % 3];
                instruction(all, &format!("{op}{lanes}.{types}{flag}"), "%w0, %w1, %w2, %w3");
                let (mask, a, b) = (masks[t % 2], selectors[(n + t) % 4], selectors[(n + t / 2 + 1) % 4]);
                let flag = ["", ".sat", ".add"][(n + t) % 3];
                let operands = format!("%w0.{mask}, %w1.{a}, %w2.{b}, %w3");
                instruction(all, &format!("{op}{lanes}.{types}{flag}"), &operands);
            }
        }
        for a in TYPES {
            for b in TYPES {
                for (n, cmp) in COMPARISONS.into_iter().enumerate() {
                    let flag = ["", ".add"][n % 2];
                    instruction(all, &format!("vset{lanes}.{a}.{b}.{cmp}{flag}"), "%w0, %w1, %w2, %w3");
                }
            }
        }
    }
}

/// `cvt.pack`, `lop3` with a predicate, and other forms that have operands of their own.
pub(crate) fn parts(all: &mut Vec<Form>) {
    for t in ["u16", "s16"] {
        instruction(all, &format!("cvt.pack.sat.{t}.s32"), "%w0, %w1, %w2");
    }
    for t in ["u8", "s8", "u4", "s4", "u2", "s2"] {
        instruction(all, &format!("cvt.pack.sat.{t}.s32.b32"), "%w0, %w1, %w2, %w3");
    }
    instruction(all, "mad24.hi.sat.s32", "%w0, %w1, %w2, %w3");
    for (op, table, q) in [("and", 0x96, "%p1"), ("or", 0xe8, "!%p1"), ("or", 0, "0"), ("and", 0x1b, "1")] {
        let op = format!("lop3.{op}.b32");
        let body = format!(
            "    setp.lt.u32 %p1, %w4, %w5;\n    {op} %w0|%p0, %w1, %w2, %w3, {table}, {q};\n    \
             selp.b64 %o1, 1, 0, %p0;\n    cvt.u64.u32 %o0, %w0;\n"
        );
        let name = format!("{op} {table:#x} {q}");
        all.push(Form { name, inputs: Inputs::Integers, results: 2, compare: Compare::Exact, body });
    }
}

/// Comparisons of packed f16, and comparisons with other results than a word of ones.
pub(crate) fn comparisons(all: &mut Vec<Form>) {
    for (t, inputs, ftz) in [("f16x2", Inputs::Halves, &["", ".ftz"][..]), ("bf16x2", Inputs::Brains, &[""])] {
        for cmp in ["eq", "ne", "lt", "geu", "nan", "num"] {
            for ftz in ftz {
                for to in ["u32", t] {
                    all.push(form(&format!("set.{cmp}{ftz}.{to}.{t}"), to, &[t; 2], inputs));
                }
            }
            let body = format!(
                "    setp.{cmp}.{t} %p0|%p1, %w1, %w2;\n    selp.b64 %o0, 1, 0, %p0;\n    selp.b64 %o1, 1, 0, %p1;\n"
            );
            all.push(Form { name: format!("setp.{cmp}.{t}"), inputs, results: 2, compare: Compare::Exact, body });
        }
        for combine in ["and", "or", "xor"] {
            let op = format!("set.gt.{combine}.u32.{t}");
            let body = format!("setp.lt.u32 %p1, %w3, %w4;\n    {op} %w0, %w1, %w2, !%p1;");
            all.push(word(op, inputs, &body));
        }
    }
    for (op, to, from, inputs) in [
        ("set.lt.f16.s32", "f16", "s32", Inputs::Integers),
        ("set.eq.bf16.u16", "bf16", "u16", Inputs::Integers),
        ("set.ne.f32.b64", "f32", "b64", Inputs::Integers),
        ("set.gt.f16.f64", "f16", "f64", Inputs::F64),
        ("set.leu.bf16.f32", "bf16", "f32", Inputs::F32),
        ("set.lt.u16.f16", "u16", "f16", Inputs::Halves),
        ("set.geu.s16.bf16", "s16", "bf16", Inputs::Brains),
        ("set.gt.ftz.f16.f16", "f16", "f16", Inputs::Halves),
        ("set.num.bf16.f16", "bf16", "f16", Inputs::Halves),
        ("set.nan.bf16.bf16", "bf16", "bf16", Inputs::Brains),
    ] {
        all.push(form(op, to, &[from; 2], inputs));
    }
}
