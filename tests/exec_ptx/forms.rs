//! Programs of one instruction each, for every opcode form and type: what they compute was computed once by an H200.

/// Threads of a program: 64 warps.
pub(crate) const LANES: usize = 2048;
/// Operands that a thread may have.
pub(crate) const PLANES: usize = 10;

/// Where a program's operands come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Inputs {
    Integers,
    F32,
    F64,
    Halves,
    Brains,
    /// Near the range in which approximate functions are bounded.
    Moderate,
    /// Products of matrices: values of moderate exponents, and a few of all.
    MmaF16,
    MmaBf16,
    MmaTf32,
    MmaE4m3,
    MmaE5m2,
    MmaBits,
    MmaF64,
}

pub(crate) const ALL_INPUTS: [Inputs; 13] = [
    Inputs::Integers,
    Inputs::F32,
    Inputs::F64,
    Inputs::Halves,
    Inputs::Brains,
    Inputs::Moderate,
    Inputs::MmaF16,
    Inputs::MmaBf16,
    Inputs::MmaTf32,
    Inputs::MmaE4m3,
    Inputs::MmaE5m2,
    Inputs::MmaBits,
    Inputs::MmaF64,
];

/// How a result is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Compare {
    Exact,
    /// Approximate functions of f32: units in the last place, and an absolute error that is as good.
    Within(u32, f64),
}

#[derive(Clone, Debug)]
pub(crate) struct Form {
    pub(crate) name: String,
    pub(crate) inputs: Inputs,
    /// Results of a thread, 64 bits each.
    pub(crate) results: usize,
    pub(crate) compare: Compare,
    body: String,
}

fn mix(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

const EDGES_F32: [u32; 22] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x8080_0000,
    0x3f80_0000,
    0xbf80_0000,
    0x3f80_0001,
    0x3fc0_0000,
    0x4b00_0001,
    0x4f00_0000,
    0xcf00_0000,
    0x7f7f_ffff,
    0xff7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x3f00_0000,
    0xc020_0000,
];
const EDGES_F64: [u64; 22] = [
    0,
    1 << 63,
    1,
    1 << 63 | 1,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x8010_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3ff0_0000_0000_0001,
    0x3fe0_0000_0000_0000,
    0x4330_0000_0000_0001,
    0x41e0_0000_0000_0000,
    0xc1e0_0000_0000_0000,
    0x43e0_0000_0000_0000,
    0x7fef_ffff_ffff_ffff,
    0xffef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x3810_0000_0000_0000,
    0x36a0_0000_0000_0000,
    0x47ef_ffff_f000_0000,
];
const EDGES_F16: [u32; 22] = [
    0, 0x8000, 1, 0x8001, 0x3ff, 0x83ff, 0x400, 0x8400, 0x3c00, 0xbc00, 0x3c01, 0x3e00, 0x6401, 0x7800, 0xf800, 0x7bff,
    0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3800, 0xc100,
];
const EDGES_INT: [u64; 22] = [
    0,
    1,
    2,
    3,
    5,
    31,
    32,
    33,
    63,
    64,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0x8000,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    u64::MAX,
];

/// A float of a format whose exponent lies around the middle.
fn near(r: u64, fraction_bits: u32, exponent_bits: u32, spread: u64) -> u64 {
    let bias = (1_u64 << (exponent_bits - 1)) - 1;
    let exponent = (bias + (r >> 40) % (2 * spread + 1)).saturating_sub(spread).clamp(0, (1 << exponent_bits) - 2);
    (r & 1) << (fraction_bits + exponent_bits) | exponent << fraction_bits | (r >> 3) & ((1 << fraction_bits) - 1)
}

/// The operand of a thread.
pub(crate) fn operand(inputs: Inputs, plane: usize, lane: usize) -> u64 {
    let r = mix((inputs as u64) << 40 | (plane as u64) << 20 | lane as u64);
    // The first lanes are all pairs of edge cases.
    let edge = if plane == 0 { lane % 22 } else { (lane / 22 + 7 * (plane - 1) * (lane % 22 + 1)) % 22 };
    let is_edge = lane < 484;
    let two = |f: &dyn Fn(u64) -> u64| f(r) | f(mix(r)) << 16;
    let four = |f: &dyn Fn(u64) -> u64| two(f) & 0xffff | (f(mix(r ^ 5)) | f(mix(r ^ 9)) << 8) << 16;
    match inputs {
        Inputs::Integers if is_edge => EDGES_INT[edge],
        Inputs::Integers if lane.is_multiple_of(3) => r >> (r % 64),
        Inputs::Integers | Inputs::MmaBits => r,
        Inputs::F32 if is_edge => u64::from(EDGES_F32[edge]),
        Inputs::F32 if lane.is_multiple_of(2) => near(r, 23, 8, 12),
        Inputs::F32 => u64::from((r >> 7) as u32),
        Inputs::F64 if is_edge => EDGES_F64[edge],
        Inputs::F64 if lane.is_multiple_of(2) => near(mix(r), 52, 11, 40),
        Inputs::F64 => mix(r),
        Inputs::Halves if is_edge => u64::from(EDGES_F16[edge] | EDGES_F16[21 - edge] << 16),
        Inputs::Halves if lane.is_multiple_of(2) => two(&|r| near(r, 10, 5, 6)),
        Inputs::Halves => r & 0xffff_ffff,
        Inputs::Brains if is_edge => u64::from((EDGES_F32[edge] >> 16) | EDGES_F32[21 - edge] & 0xffff_0000),
        Inputs::Brains if lane.is_multiple_of(2) => two(&|r| near(r, 7, 8, 12)),
        Inputs::Brains => r & 0xffff_ffff,
        Inputs::Moderate => near(r, 23, 8, 5),
        Inputs::MmaF16 if plane >= 6 => near(r, 23, 8, if lane % 64 < 32 { 3 } else { 20 }),
        Inputs::MmaF16 => two(&|r| near(r, 10, 5, if lane % 256 < 128 { 2 } else { 12 })),
        Inputs::MmaBf16 if plane >= 6 => near(r, 23, 8, if lane % 64 < 32 { 3 } else { 20 }),
        Inputs::MmaBf16 => two(&|r| near(r, 7, 8, if lane % 256 < 128 { 2 } else { 15 })),
        Inputs::MmaTf32 if plane >= 6 => near(r, 23, 8, if lane % 64 < 32 { 3 } else { 20 }),
        Inputs::MmaTf32 => near(r, 23, 8, if lane % 256 < 128 { 2 } else { 15 }),
        Inputs::MmaE4m3 | Inputs::MmaE5m2 if plane >= 6 => near(r, 23, 8, if lane % 64 < 32 { 3 } else { 12 }),
        Inputs::MmaE4m3 => four(&|r| near(r, 3, 4, if lane % 256 < 128 { 2 } else { 7 })),
        Inputs::MmaE5m2 => four(&|r| near(r, 2, 5, if lane % 256 < 128 { 2 } else { 10 })),
        Inputs::MmaF64 => near(mix(r), 52, 11, 20),
    }
}

fn reg(ty: &str) -> (&'static str, &'static str) {
    match ty {
        "u16" | "s16" | "b16" | "f16" | "bf16" => ("h", "b16"),
        "u64" | "s64" | "b64" | "f64" => ("d", "b64"),
        "pred" => ("p", "pred"),
        _ => ("w", "b32"),
    }
}

/// `op d, a, b, c;` with operands of these types.
fn form(op: &str, to: &str, from: &[&str], inputs: Inputs) -> Form {
    let mut body = String::new();
    let mut names = Vec::new();
    for (i, ty) in from.iter().enumerate() {
        let (prefix, _) = reg(ty);
        names.push(format!("%{prefix}{}", i + 1));
    }
    let (d, _) = reg(to);
    body.push_str(&format!("    {op} %{d}0, {};\n", names.join(", ")));
    body.push_str(match to {
        "pred" => "    selp.b64 %o0, 1, 0, %p0;\n",
        _ if d == "h" => "    cvt.u64.u16 %o0, %h0;\n",
        _ if d == "w" => "    cvt.u64.u32 %o0, %w0;\n",
        _ => "    mov.b64 %o0, %d0;\n",
    });
    Form { name: op.to_owned(), inputs, results: 1, compare: Compare::Exact, body }
}

/// Every form.
pub(crate) fn forms() -> Vec<Form> {
    let mut all = Vec::new();
    integers(&mut all);
    floats(&mut all);
    halves(&mut all);
    conversions(&mut all);
    approximate(&mut all);
    products(&mut all);
    all
}

fn integers(all: &mut Vec<Form>) {
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

fn floats(all: &mut Vec<Form>) {
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

fn halves(all: &mut Vec<Form>) {
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

fn conversions(all: &mut Vec<Form>) {
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

/// Values of 8 bits stand in registers of 32.
fn wide(ty: &str) -> &str {
    match ty {
        "u8" | "s8" => "b32",
        other => other,
    }
}

fn approximate(all: &mut Vec<Form>) {
    let mut add = |op: &str, n: usize, inputs, ulp, absolute| {
        let mut f = form(op, "f32", &vec!["f32"; n], inputs);
        f.compare = Compare::Within(ulp, absolute);
        all.push(f);
    };
    // The bounds are those of the PTX ISA, one rounding more.
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

fn products(all: &mut Vec<Form>) {
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

/// All programs as one text; entry `f12` is form 12.
pub(crate) fn module(forms: &[Form]) -> String {
    let mut text = String::from(".version 8.6\n.target sm_90a\n.address_size 64\n");
    for (i, f) in forms.iter().enumerate() {
        text.push_str(&format!(
            "// {}\n.visible .entry f{i}(.param .u64 out, .param .u64 in)\n{{\n    .reg .pred %p<2>;\n    .reg .b16 %h<12>;\n    \
             .reg .b32 %w<30>;\n    .reg .b64 %d<30>, %o<8>, %a<8>;\n    .reg .b32 %t<4>;\n    mov.u32 %t0, %ctaid.x;\n    \
             mov.u32 %t1, %tid.x;\n    mad.lo.u32 %t2, %t0, 128, %t1;\n    mul.wide.u32 %a0, %t2, 8;\n    \
             ld.param.u64 %a1, [in];\n    add.u64 %a2, %a1, %a0;\n    ld.param.u64 %a3, [out];\n    add.u64 %a4, %a3, %a0;\n",
            f.name
        ));
        for plane in 0..PLANES {
            let n = plane + 1;
            text.push_str(&format!(
                "    ld.global.b64 %d{n}, [%a2+{}];\n    cvt.u32.u64 %w{n}, %d{n};\n    cvt.u16.u64 %h{n}, %d{n};\n",
                plane * LANES * 8
            ));
        }
        text.push_str(&f.body);
        for r in 0..f.results {
            text.push_str(&format!("    st.global.b64 [%a4+{}], %o{r};\n", r * LANES * 8));
        }
        text.push_str("    ret;\n}\n");
    }
    text
}
