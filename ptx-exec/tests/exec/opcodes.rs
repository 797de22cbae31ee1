//! The opcode forms: each instruction with each type that it has.

use crate::forms::{Compare, Form, Inputs, form};

pub(crate) fn integers(all: &mut Vec<Form>) {
    let mut add = |op: &str, to: &str, from: &[&str]| all.push(form(op, to, from, Inputs::Integers));
    for t in ["u16", "s16", "u32", "s32", "u64", "s64"] {
        for op in ["add", "sub", "mul.lo", "mul.hi", "div", "rem", "min", "max"] {
            add(&format!("{op}.{t}"), t, &[t, t]);
        }
        add(&format!("mad.lo.{t}"), t, &[t; 3]);
        add(&format!("mad.hi.{t}"), t, &[t; 3]);
        add(&format!("sad.{t}"), t, &[t; 3]);
        add(&format!("shr.{t}"), t, &[t, "u32"]);
        for cmp in ["eq", "ne", "lt", "le", "gt", "ge"] {
            add(&format!("setp.{cmp}.{t}"), "pred", &[t, t]);
        }
    }
    for (t, wide) in [("u16", "u32"), ("s16", "s32"), ("u32", "u64"), ("s32", "s64")] {
        add(&format!("mul.wide.{t}"), wide, &[t, t]);
        add(&format!("mad.wide.{t}"), wide, &[t, t, wide]);
    }
    for t in ["s16", "s32", "s64"] {
        add(&format!("abs.{t}"), t, &[t]);
        add(&format!("neg.{t}"), t, &[t]);
    }
    for t in ["b16", "b32", "b64"] {
        for op in ["and", "or", "xor"] {
            add(&format!("{op}.{t}"), t, &[t, t]);
        }
        add(&format!("not.{t}"), t, &[t]);
        add(&format!("cnot.{t}"), t, &[t]);
        add(&format!("shl.{t}"), t, &[t, "u32"]);
    }
    for t in ["b32", "b64"] {
        add(&format!("popc.{t}"), "u32", &[t]);
        add(&format!("clz.{t}"), "u32", &[t]);
        add(&format!("brev.{t}"), t, &[t]);
    }
    for t in ["u32", "s32", "u64", "s64"] {
        add(&format!("bfind.{t}"), "u32", &[t]);
        add(&format!("bfind.shiftamt.{t}"), "u32", &[t]);
        add(&format!("bfe.{t}"), t, &[t, "u32", "u32"]);
    }
    for op in ["add.sat.s32", "sub.sat.s32"] {
        add(op, "s32", &["s32", "s32"]);
    }
    add("mad.hi.sat.s32", "s32", &["s32"; 3]);
    for op in ["mul24.lo.u32", "mul24.hi.u32", "mul24.lo.s32", "mul24.hi.s32"] {
        add(op, "u32", &["u32", "u32"]);
    }
    for op in ["mad24.lo.u32", "mad24.lo.s32", "mad24.hi.u32", "mad24.hi.s32"] {
        add(op, "u32", &["u32"; 3]);
    }
    for op in
        ["prmt.b32", "prmt.b32.f4e", "prmt.b32.b4e", "prmt.b32.rc8", "prmt.b32.ecl", "prmt.b32.ecr", "prmt.b32.rc16"]
    {
        add(op, "b32", &["b32"; 3]);
    }
    for op in ["shf.l.clamp.b32", "shf.l.wrap.b32", "shf.r.clamp.b32", "shf.r.wrap.b32"] {
        add(op, "b32", &["b32", "b32", "u32"]);
    }
    for op in [
        "dp4a.u32.u32",
        "dp4a.s32.s32",
        "dp4a.u32.s32",
        "dp4a.s32.u32",
        "dp2a.lo.s32.s32",
        "dp2a.hi.u32.u32",
        "dp2a.lo.s32.u32",
    ] {
        add(op, "b32", &["b32"; 3]);
    }
    add("fns.b32", "b32", &["b32", "b32", "b32"]);
    for op in ["bmsk.clamp.b32", "bmsk.wrap.b32"] {
        add(op, "b32", &["b32", "b32"]);
    }
    for op in ["szext.clamp.s32", "szext.wrap.s32", "szext.clamp.u32", "szext.wrap.u32"] {
        add(op, "b32", &["b32", "b32"]);
    }
    add("slct.b32.s32", "b32", &["b32", "b32", "s32"]);
    for op in
        ["add.u16x2", "add.s16x2", "min.u16x2", "max.u16x2", "min.s16x2", "max.s16x2", "min.relu.s16x2", "max.relu.s32"]
    {
        add(op, "b32", &["b32", "b32"]);
    }
    for t in ["b32", "b64"] {
        let mut f = form(&format!("bfi.{t}"), t, &[t, t, "u32"], Inputs::Integers);
        f.body = f.body.replacen(";\n", ", %w4;\n", 1);
        all.push(f);
    }
    for table in [0x96, 0xe8, 0x1b] {
        let mut f = form("lop3.b32", "b32", &["b32"; 3], Inputs::Integers);
        f.body = f.body.replacen(";\n", &format!(", {table};\n"), 1);
        f.name = format!("lop3.b32 {table:#x}");
        all.push(f);
    }
    for (name, low, high) in [
        ("carry add", "add.cc.u32 %w0, %w1, %w2", "addc.u32 %w5, %w3, %w4"),
        ("carry sub", "sub.cc.u32 %w0, %w1, %w2", "subc.u32 %w5, %w3, %w4"),
        ("carry mad", "mad.lo.cc.u32 %w0, %w1, %w2, %w3", "madc.hi.u32 %w5, %w1, %w2, %w4"),
    ] {
        let mut f = form("add.u32", "u32", &["u32"], Inputs::Integers);
        f.name = name.to_owned();
        f.body = format!("    {low};\n    {high};\n    mov.b64 %o0, {{%w0, %w5}};\n");
        all.push(f);
    }
    for (name, low, high) in [
        ("carry add 64", "add.cc.u64 %d0, %d1, %d2", "addc.u64 %d5, %d3, %d4"),
        ("carry sub 64", "sub.cc.s64 %d0, %d1, %d2", "subc.s64 %d5, %d3, %d4"),
    ] {
        let mut f = form("add.u32", "u32", &["u32"], Inputs::Integers);
        f.name = name.to_owned();
        f.results = 2;
        f.body = format!("    {low};\n    {high};\n    mov.b64 %o0, %d0;\n    mov.b64 %o1, %d5;\n");
        all.push(f);
    }
}

pub(crate) fn floats(all: &mut Vec<Form>) {
    let mut add = |op: &str, to: &str, from: &[&str]| {
        all.push(form(op, to, from, if from[0] == "f64" { Inputs::F64 } else { Inputs::F32 }));
    };
    for rnd in ["rn", "rz", "rm", "rp"] {
        for ftz in ["", ".ftz"] {
            for sat in ["", ".sat"] {
                for op in ["add", "sub", "mul"] {
                    add(&format!("{op}.{rnd}{ftz}{sat}.f32"), "f32", &["f32"; 2]);
                }
                add(&format!("fma.{rnd}{ftz}{sat}.f32"), "f32", &["f32"; 3]);
            }
            add(&format!("div.{rnd}{ftz}.f32"), "f32", &["f32"; 2]);
            add(&format!("rcp.{rnd}{ftz}.f32"), "f32", &["f32"]);
            add(&format!("sqrt.{rnd}{ftz}.f32"), "f32", &["f32"]);
        }
        for op in ["add", "sub", "mul", "div"] {
            add(&format!("{op}.{rnd}.f64"), "f64", &["f64"; 2]);
        }
        add(&format!("fma.{rnd}.f64"), "f64", &["f64"; 3]);
        add(&format!("rcp.{rnd}.f64"), "f64", &["f64"]);
        add(&format!("sqrt.{rnd}.f64"), "f64", &["f64"]);
    }
    for flags in ["", ".ftz", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs", ".ftz.NaN"] {
        add(&format!("min{flags}.f32"), "f32", &["f32"; 2]);
        add(&format!("max{flags}.f32"), "f32", &["f32"; 2]);
    }
    for op in ["abs", "neg", "abs.ftz", "neg.ftz"] {
        add(&format!("{op}.f32"), "f32", &["f32"]);
    }
    for op in ["abs", "neg"] {
        add(&format!("{op}.f64"), "f64", &["f64"]);
    }
    for op in ["min", "max", "copysign"] {
        add(&format!("{op}.f64"), "f64", &["f64"; 2]);
    }
    add("copysign.f32", "f32", &["f32"; 2]);
    for cmp in ["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"] {
        add(&format!("setp.{cmp}.f32"), "pred", &["f32"; 2]);
        add(&format!("setp.{cmp}.ftz.f32"), "pred", &["f32"; 2]);
        add(&format!("setp.{cmp}.f64"), "pred", &["f64"; 2]);
        add(&format!("set.{cmp}.u32.f32"), "u32", &["f32"; 2]);
    }
    for p in ["finite", "infinite", "number", "notanumber", "normal", "subnormal"] {
        add(&format!("testp.{p}.f32"), "pred", &["f32"]);
        add(&format!("testp.{p}.f64"), "pred", &["f64"]);
    }
    add("slct.f32.f32", "f32", &["f32"; 3]);
}

pub(crate) fn halves(all: &mut Vec<Form>) {
    for (t, inputs) in
        [("f16", Inputs::Halves), ("f16x2", Inputs::Halves), ("bf16", Inputs::Brains), ("bf16x2", Inputs::Brains)]
    {
        let mut add = |op: &str, n: usize| all.push(form(&format!("{op}.{t}"), t, &vec![t; n], inputs));
        for op in ["add", "sub", "mul", "min", "max", "min.NaN", "max.NaN", "max.xorsign.abs"] {
            add(op, 2);
        }
        for op in ["fma.rn", "fma.rn.relu"] {
            add(op, 3);
        }
        for op in ["abs", "neg"] {
            add(op, 1);
        }
        if t.starts_with("f16") {
            for op in ["add.ftz", "mul.sat", "add.ftz.sat", "sub.sat", "max.ftz", "min.ftz"] {
                add(op, 2);
            }
            add("fma.rn.ftz.sat", 3);
        }
        if !t.ends_with("x2") {
            for cmp in ["eq", "ne", "lt", "geu", "nan", "num"] {
                all.push(form(&format!("setp.{cmp}.{t}"), "pred", &[t; 2], inputs));
            }
        }
    }
}

pub(crate) fn conversions(all: &mut Vec<Form>) {
    let ints = ["u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64"];
    for to in ints {
        for from in ints {
            for sat in ["", ".sat"] {
                // ptxas refuses `.sat` where nothing can be out of range.
                let bits = |t: &str| t[1..].parse::<u32>().unwrap_or(0);
                let (signed_to, signed_from) = (to.starts_with('s'), from.starts_with('s'));
                let fits = match (signed_to, signed_from) {
                    (true, false) => bits(to) > bits(from),
                    (false, true) => false,
                    _ => bits(to) >= bits(from),
                };
                if if sat.is_empty() { to == from } else { fits } {
                    continue;
                }
                all.push(form(&format!("cvt{sat}.{to}.{from}"), wide(to), &[wide(from)], Inputs::Integers));
            }
        }
        for rnd in ["rni", "rzi", "rmi", "rpi"] {
            for (from, inputs) in [("f32", Inputs::F32), ("f64", Inputs::F64), ("f16", Inputs::Halves)] {
                all.push(form(&format!("cvt.{rnd}.{to}.{from}"), wide(to), &[from], inputs));
            }
            all.push(form(&format!("cvt.{rnd}.ftz.sat.{to}.f32"), wide(to), &["f32"], Inputs::F32));
        }
        for rnd in ["rn", "rz", "rm", "rp"] {
            for f in ["f32", "f64", "f16"] {
                all.push(form(&format!("cvt.{rnd}.{f}.{to}"), f, &[wide(to)], Inputs::Integers));
            }
        }
        all.push(form(&format!("cvt.rn.sat.f32.{to}"), "f32", &[wide(to)], Inputs::Integers));
    }
    let mut add = |op: String, to: &str, from: &[&str], inputs| all.push(form(&op, to, from, inputs));
    for rnd in ["rn", "rz", "rm", "rp"] {
        add(format!("cvt.{rnd}.f32.f64"), "f32", &["f64"], Inputs::F64);
        add(format!("cvt.{rnd}.ftz.f32.f64"), "f32", &["f64"], Inputs::F64);
        add(format!("cvt.{rnd}.sat.f32.f64"), "f32", &["f64"], Inputs::F64);
        add(format!("cvt.{rnd}.f16.f64"), "f16", &["f64"], Inputs::F64);
        add(format!("cvt.{rnd}.f16.f32"), "f16", &["f32"], Inputs::F32);
        add(format!("cvt.{rnd}i.f32.f32"), "f32", &["f32"], Inputs::F32);
        add(format!("cvt.{rnd}i.ftz.f32.f32"), "f32", &["f32"], Inputs::F32);
        add(format!("cvt.{rnd}i.f64.f64"), "f64", &["f64"], Inputs::F64);
        add(format!("cvt.{rnd}i.f16.f16"), "f16", &["f16"], Inputs::Halves);
    }
    for rnd in ["rn", "rz"] {
        for relu in ["", ".relu"] {
            add(format!("cvt.{rnd}{relu}.bf16.f32"), "bf16", &["f32"], Inputs::F32);
            add(format!("cvt.{rnd}{relu}.f16x2.f32"), "f16x2", &["f32"; 2], Inputs::F32);
            add(format!("cvt.{rnd}{relu}.bf16x2.f32"), "bf16x2", &["f32"; 2], Inputs::F32);
        }
    }
    add("cvt.f32.f16".into(), "f32", &["f16"], Inputs::Halves);
    add("cvt.f64.f16".into(), "f64", &["f16"], Inputs::Halves);
    add("cvt.f32.bf16".into(), "f32", &["bf16"], Inputs::Brains);
    add("cvt.f64.f32".into(), "f64", &["f32"], Inputs::F32);
    add("cvt.ftz.f64.f32".into(), "f64", &["f32"], Inputs::F32);
    add("cvt.rna.tf32.f32".into(), "b32", &["f32"], Inputs::F32);
    add("cvt.rn.tf32.f32".into(), "b32", &["f32"], Inputs::F32);
    add("cvt.rz.relu.tf32.f32".into(), "b32", &["f32"], Inputs::F32);
    for f in ["e4m3x2", "e5m2x2"] {
        for relu in ["", ".relu"] {
            add(format!("cvt.rn.satfinite{relu}.{f}.f32"), "b16", &["f32"; 2], Inputs::F32);
            add(format!("cvt.rn.satfinite{relu}.{f}.f16x2"), "b16", &["f16x2"], Inputs::Halves);
            add(format!("cvt.rn{relu}.f16x2.{f}"), "f16x2", &["b16"], Inputs::Halves);
        }
    }
}

/// Values of 8 bits are in registers of 32.
fn wide(ty: &str) -> &str {
    match ty {
        "u8" | "s8" => "b32",
        other => other,
    }
}

pub(crate) fn approximate(all: &mut Vec<Form>) {
    let mut add = |op: &str, n: usize, inputs, ulp, absolute| {
        let mut f = form(op, "f32", &vec!["f32"; n], inputs);
        f.compare = Compare::Within(ulp, absolute);
        all.push(f);
    };
    // The bounds are from the PTX ISA, plus one rounding.
    for inputs in [Inputs::Moderate, Inputs::F32] {
        add("rcp.approx.f32", 1, inputs, 2, 0.0);
        add("rcp.approx.ftz.f32", 1, inputs, 2, 0.0);
        add("sqrt.approx.f32", 1, inputs, 3, 0.0);
        add("sqrt.approx.ftz.f32", 1, inputs, 3, 0.0);
        add("rsqrt.approx.f32", 1, inputs, 4, 0.0);
        add("ex2.approx.f32", 1, inputs, 3, 0.0);
        add("ex2.approx.ftz.f32", 1, inputs, 3, 0.0);
        add("lg2.approx.f32", 1, inputs, 3, 3e-7);
        add("tanh.approx.f32", 1, inputs, 8192, 0.0);
    }
    add("div.approx.f32", 2, Inputs::Moderate, 3, 0.0);
    add("div.full.f32", 2, Inputs::Moderate, 3, 0.0);
}

pub(crate) fn products(all: &mut Vec<Form>) {
    use Inputs::{MmaBf16, MmaBits, MmaE4m3, MmaE5m2, MmaF16, MmaF64, MmaTf32};
    let mut add = |shape: &str, d: &str, a: &str, b: &str, c: &str, counts: [usize; 4], inputs: Inputs, tail: &str| {
        let name = format!(
            "mma.sync.aligned.{shape}.row.col{tail}.{d}.{a}.{b}.{c}{}",
            if a == "b1" { ".xor.popc" } else { "" }
        );
        let wide = d == "f64";
        let r = if wide { "d" } else { "w" };
        // A begins at plane 0, B at 4, C at 6; f64's fragments come one after the other.
        let list = |first: usize, n: usize, p: &str| {
            let all: Vec<String> = (0..n).map(|i| format!("%{p}{}", first + i)).collect();
            format!("{{{}}}", all.join(", "))
        };
        let results = list(20, counts[0], r);
        let body = format!(
            "    {name} {results}, {}, {}, {};\n",
            list(1, counts[1], r),
            list(5, counts[2], r),
            list(7, counts[3], r)
        );
        let out: String = (0..counts[0])
            .map(|i| {
                let from = 20 + i;
                if wide {
                    format!("    mov.b64 %o{i}, %d{from};\n")
                } else {
                    format!("    cvt.u64.u32 %o{i}, %w{from};\n")
                }
            })
            .collect();
        all.push(Form { name, inputs, results: counts[0], compare: Compare::Exact, body: body + &out });
    };
    add("m16n8k16", "f32", "f16", "f16", "f32", [4, 4, 2, 4], MmaF16, "");
    add("m16n8k8", "f32", "f16", "f16", "f32", [4, 2, 1, 4], MmaF16, "");
    add("m16n8k16", "f16", "f16", "f16", "f16", [2, 4, 2, 2], MmaF16, "");
    add("m16n8k8", "f16", "f16", "f16", "f16", [2, 2, 1, 2], MmaF16, "");
    add("m16n8k16", "f32", "bf16", "bf16", "f32", [4, 4, 2, 4], MmaBf16, "");
    add("m16n8k8", "f32", "bf16", "bf16", "f32", [4, 2, 1, 4], MmaBf16, "");
    add("m16n8k8", "f32", "tf32", "tf32", "f32", [4, 4, 2, 4], MmaTf32, "");
    add("m16n8k4", "f32", "tf32", "tf32", "f32", [4, 2, 1, 4], MmaTf32, "");
    add("m16n8k32", "f32", "e4m3", "e4m3", "f32", [4, 4, 2, 4], MmaE4m3, "");
    add("m16n8k32", "f32", "e5m2", "e5m2", "f32", [4, 4, 2, 4], MmaE5m2, "");
    add("m16n8k32", "f32", "e4m3", "e5m2", "f32", [4, 4, 2, 4], MmaE4m3, "");
    for t in ["s8", "u8"] {
        add("m16n8k32", "s32", t, t, "s32", [4, 4, 2, 4], MmaBits, "");
        add("m16n8k32", "s32", t, t, "s32", [4, 4, 2, 4], MmaBits, ".satfinite");
        add("m16n8k16", "s32", t, t, "s32", [4, 2, 1, 4], MmaBits, "");
        add("m8n8k16", "s32", t, t, "s32", [2, 1, 1, 2], MmaBits, "");
    }
    add("m16n8k32", "s32", "s8", "u8", "s32", [4, 4, 2, 4], MmaBits, "");
    add("m16n8k64", "s32", "s4", "u4", "s32", [4, 4, 2, 4], MmaBits, "");
    add("m16n8k256", "s32", "b1", "b1", "s32", [4, 4, 2, 4], MmaBits, "");
    add("m8n8k4", "f64", "f64", "f64", "f64", [2, 1, 1, 2], MmaF64, "");
    add("m16n8k8", "f64", "f64", "f64", "f64", [4, 4, 2, 4], MmaF64, "");
}

/// Types of products of warpgroups: D, A, B, and elements of K.
pub(crate) const WGMMA_TYPES: [(&str, &str, &str, u32); 16] = [
    ("f32", "f16", "f16", 16),
    ("f16", "f16", "f16", 16),
    ("f32", "bf16", "bf16", 16),
    ("f32", "tf32", "tf32", 8),
    ("f32", "e4m3", "e4m3", 32),
    ("f32", "e4m3", "e5m2", 32),
    ("f32", "e5m2", "e4m3", 32),
    ("f32", "e5m2", "e5m2", 32),
    ("f16", "e4m3", "e4m3", 32),
    ("f16", "e4m3", "e5m2", 32),
    ("f16", "e5m2", "e4m3", 32),
    ("f16", "e5m2", "e5m2", 32),
    ("s32", "s8", "s8", 32),
    ("s32", "s8", "u8", 32),
    ("s32", "u8", "s8", 32),
    ("s32", "u8", "u8", 32),
];

/// How a product of a warpgroup gets its operands. All have eight columns: B is plane 4, D is planes 6 to 9.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Warpgroup {
    /// A from registers.
    Registers,
    /// A from shared memory, and a second product with the B of plane 5 right behind.
    Chain,
    /// A from registers, all bits at random: NaN and infinities among them; A is negated, integers saturate.
    AnyBits,
}

pub(crate) fn warpgroups(all: &mut Vec<Form>) {
    for (d, a, b, k) in WGMMA_TYPES {
        let inputs = match a {
            "f16" => Inputs::MmaF16,
            "bf16" => Inputs::MmaBf16,
            "tf32" => Inputs::MmaTf32,
            "e4m3" => Inputs::MmaE4m3,
            "e5m2" => Inputs::MmaE5m2,
            _ => Inputs::MmaBits,
        };
        for how in [Warpgroup::Registers, Warpgroup::Chain, Warpgroup::AnyBits] {
            let any = how == Warpgroup::AnyBits;
            let inputs = if any { Inputs::MmaBits } else { inputs };
            all.push(warpgroup([d, a, b], k, inputs, how));
        }
    }
}

fn warpgroup([d, a, b]: [&str; 3], k: u32, inputs: Inputs, how: Warpgroup) -> Form {
    let any = how == Warpgroup::AnyBits;
    let saturate = if any && d == "s32" { ".satfinite" } else { "" };
    let name = format!("wgmma.mma_async.sync.aligned.m64n8k{k}{saturate}.{d}.{a}.{b}");
    let results = if d == "f16" { 2 } else { 4 };
    let to: Vec<String> = (21..21 + results).map(|i| format!("%w{i}")).collect();
    let majors = match (k, how) {
        (16, Warpgroup::Chain) => ", 0, 0",
        (16, _) => ", 0",
        _ => "",
    };
    let tail = match d {
        "s32" => String::new(),
        _ => format!(", {}, 1{majors}", if any { -1 } else { 1 }),
    };
    // Rows of 32 bytes in groups of eight, of which the first halves come first.
    let mut body = String::from(
        "    .shared .align 128 .b8 sm[3072];\n    mov.b32 %t0, sm;\n    shl.b32 %t3, %t1, 2;\n    add.u32 %t3, %t3, %t0;\n",
    );
    for plane in 0..6 {
        body += &format!("    st.shared.b32 [%t3+{}], %w{};\n", plane * 512, plane + 1);
    }
    body += "    fence.proxy.async.shared::cta;\n    bar.sync 0;\n    cvt.u64.u32 %a5, %t0;\n    shr.u64 %a5, %a5, 4;\n    \
             or.b64 %a5, %a5, 0x0000001000080000;\n    add.u64 %a6, %a5, 128;\n    add.u64 %a7, %a5, 160;\n    \
             setp.eq.u32 %p1, %t0, %t0;\n";
    for (i, to) in to.iter().enumerate() {
        body += &format!("    mov.b32 {to}, %w{};\n", 7 + i);
    }
    body += "    wgmma.fence.sync.aligned;\n";
    let from = if how == Warpgroup::Chain { "%a5" } else { "{%w1, %w2, %w3, %w4}" };
    let columns: &[&str] = if how == Warpgroup::Chain { &["%a6", "%a7"] } else { &["%a6"] };
    for columns in columns {
        body += &format!("    {name} {{{}}}, {from}, {columns}, %p1{tail};\n", to.join(", "));
    }
    body += "    wgmma.commit_group.sync.aligned;\n    wgmma.wait_group.sync.aligned 0;\n";
    for (i, to) in to.iter().enumerate() {
        body += &format!("    cvt.u64.u32 %o{i}, {to};\n");
    }
    Form { name: format!("{name} {how:?}"), inputs, results, compare: Compare::Exact, body }
}
