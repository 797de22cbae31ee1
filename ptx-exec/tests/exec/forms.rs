//! Programs of one instruction each, for every opcode form and type. An H200 computed the reference results once.

use crate::{opcodes, opcodes_matrix, opcodes_video};

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
    pub(crate) body: String,
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
pub(crate) fn form(op: &str, to: &str, from: &[&str], inputs: Inputs) -> Form {
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
    opcodes::integers(&mut all);
    opcodes::floats(&mut all);
    opcodes::halves(&mut all);
    opcodes::conversions(&mut all);
    opcodes::approximate(&mut all);
    opcodes::products(&mut all);
    opcodes::warpgroups(&mut all);
    opcodes_video::video(&mut all);
    opcodes_video::simd(&mut all);
    opcodes_video::parts(&mut all);
    opcodes_video::comparisons(&mut all);
    opcodes_matrix::fragments(&mut all);
    opcodes_matrix::whole_products(&mut all);
    opcodes_matrix::others(&mut all);
    all
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
