//! The sums of tensor cores against their definition, term by term in integers.

use ptx_exec::{ErrorKind, Module, TensorCores};

use crate::forms::{Form, Inputs, LANES, forms, module, operand};
use crate::numbers::compute_on;

/// How a chip adds: bits that it keeps below the largest exponent, and products of 16 bits in a step.
struct Chip {
    cores: TensorCores,
    fraction: i32,
    products: usize,
}

const CHIPS: [Chip; 2] = [
    Chip { cores: TensorCores::Hopper, fraction: 25, products: 16 },
    // MMA-Sim, arXiv 2511.10909.
    Chip { cores: TensorCores::Ampere, fraction: 24, products: 8 },
];

/// A number `significand * 2^lowest`; `top` is its exponent.
#[derive(Clone, Copy)]
struct Term {
    significand: i128,
    lowest: i32,
    top: i32,
}

fn term(bits: u64, exponent_bits: u32, fraction_bits: u32) -> Term {
    let biased = (bits >> fraction_bits & ((1 << exponent_bits) - 1)) as i32;
    let fraction = (bits & ((1 << fraction_bits) - 1)) as i128;
    let significand = fraction | i128::from(biased != 0) << fraction_bits;
    let top = biased.max(1) - ((1 << (exponent_bits - 1)) - 1);
    let negative = bits >> (exponent_bits + fraction_bits) & 1 != 0;
    Term { significand: if negative { -significand } else { significand }, lowest: top - fraction_bits as i32, top }
}

fn times(a: Term, b: Term) -> Term {
    Term { significand: a.significand * b.significand, lowest: a.lowest + b.lowest, top: a.top + b.top }
}

/// The exact sum of terms that are cut below the largest exponent.
fn sum(terms: &[Term], fraction: i32) -> f64 {
    let Some(largest) = terms.iter().filter(|t| t.significand != 0).map(|t| t.top).max() else { return 0.0 };
    let last = largest - fraction;
    let cut = |t: &Term| match t.lowest - last {
        by @ 0.. => t.significand << by,
        by => t.significand / (1_i128 << (-by).min(120)),
    };
    terms.iter().filter(|t| t.significand != 0).map(cut).sum::<i128>() as f64 * 2_f64.powi(last)
}

fn cut_to_f32(v: f64) -> u32 {
    let near = v as f32;
    if f64::from(near).abs() > v.abs() { near.to_bits() - 1 } else { near.to_bits() }
}

/// A chip's sum of C and the products of a row and a column.
fn chain(chip: &Chip, products: &[Term], in_step: usize, c: u64, halves: bool) -> u64 {
    products.chunks(in_step).fold(c, |c, step| {
        // Products are finite here, and no NaN or infinity but C's.
        if halves && c & 0x7c00 == 0x7c00 {
            return if c & 0x3ff != 0 { 0x7fff } else { c };
        }
        let mut terms = step.to_vec();
        terms.push(if halves { term(c, 5, 10) } else { term(c, 8, 23) });
        let v = sum(&terms, chip.fraction);
        if halves { u64::from(half::f16::from_f64(v).to_bits()) } else { u64::from(cut_to_f32(v)) }
    })
}

/// The results of a form by its definition, as its lanes hold them.
fn defined(chip: &Chip, form: &Form) -> Vec<u64> {
    let is = |word: &str| form.name.contains(word);
    let (k, tf32) = (
        if is("k16") {
            16
        } else if is("k4.") {
            4
        } else {
            8
        },
        is("tf32"),
    );
    let (per, shape) = match form.inputs {
        Inputs::MmaTf32 => (1, (8, 10)),
        Inputs::MmaBf16 => (2, (8, 7)),
        _ => (2, (5, 10)),
    };
    let halves = is(".f16.f16.f16.f16");
    let in_step = if tf32 { chip.products / 2 } else { chip.products };
    let element = |plane: usize, lane: usize, e: usize| {
        let bits = operand(form.inputs, plane, lane);
        if tf32 {
            term(bits >> 13 & 0x7_ffff, shape.0, shape.1)
        } else {
            term(bits >> (16 * e) & 0xffff, shape.0, shape.1)
        }
    };
    let mut out = vec![0; LANES * form.results];
    for warp in (0..LANES).step_by(32) {
        // Row or column, and place along K, of element e of a register: its figures in the manual.
        let a = |row: usize, x: usize| {
            let register = row / 8 + 2 * (x / (4 * per));
            element(register, warp + row % 8 * 4 + x % (4 * per) / per, x % per)
        };
        let b = |x: usize, column: usize| element(4 + x / (4 * per), warp + column * 4 + x % (4 * per) / per, x % per);
        for row in 0..16 {
            for column in 0..8 {
                let lane = warp + row % 8 * 4 + column / 2;
                let products: Vec<Term> = (0..k).map(|x| times(a(row, x), b(x, column))).collect();
                let (register, shift) = if halves { (row / 8, column % 2 * 16) } else { (row / 8 * 2 + column % 2, 0) };
                let keep = if halves { 0xffff } else { 0xffff_ffff };
                let c = operand(form.inputs, 6 + register, lane) >> shift & keep;
                out[register * LANES + lane] |= chain(chip, &products, in_step, c, halves) << shift;
            }
        }
    }
    out
}

#[test]
fn sums_of_both_chips_are_those_of_their_definitions() {
    let of_16_bits = [Inputs::MmaF16, Inputs::MmaBf16, Inputs::MmaTf32];
    let is_mma = |f: &Form| f.name.starts_with("mma") && of_16_bits.contains(&f.inputs);
    let forms: Vec<Form> = forms().into_iter().filter(is_mma).collect();
    assert_eq!(forms.len(), 8);
    let text = Module::parse(module(&forms)).expect("PTX");
    let mut differ = 0;
    for (number, form) in forms.iter().enumerate() {
        let results = CHIPS.each_ref().map(|chip| {
            let found = compute_on(&text, number, form, chip.cores, None);
            let expected = defined(chip, form);
            let wrong = found.iter().zip(&expected).position(|(f, e)| f != e);
            assert_eq!(wrong, None, "{} of {:?}", form.name, chip.cores);
            found
        });
        differ += usize::from(results[0] != results[1]);
    }
    assert!(differ >= 6, "the chips differ in all sums of f32: {differ}");
}

/// 1, and eight products of 2^-25: Hopper's sum sees them.
#[test]
fn ampere_keeps_one_bit_less() {
    let text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n.reg .b32 %a, %b, %z, %d<4>, %c;\n\
        .reg .b64 %o;\nld.param.u64 %o, [out];\nmov.b32 %a, 0x0c000c00;\nmov.b32 %b, 0x08000800;\nmov.b32 %z, 0;\nmov.b32 %c, 0f3F800000;\n\
        mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%d0,%d1,%d2,%d3}, {%a,%z}, {%b}, {%c,%c,%c,%c};\nst.global.b32 [%o], %d0;\n\
        ret;\n}\n";
    let module = Module::parse(text).expect("PTX");
    for (cores, expected) in [(TensorCores::Hopper, 1.0 + 2.0 * f32::EPSILON), (TensorCores::Ampere, 1.0)] {
        let mut out = [0; 4];
        let launch = module.launch("k").expect("an entry").block(&[32]).output("out", &mut out).tensor_cores(cores);
        assert!(launch.run().expect("it runs").is_clean());
        assert_eq!(f32::from_le_bytes(out), expected, "{cores:?}");
    }
}

#[test]
fn ampere_has_no_8_bit_floats() {
    let forms: Vec<Form> = forms().into_iter().filter(|f| f.inputs == Inputs::MmaE4m3).take(1).collect();
    let text = Module::parse(module(&forms)).expect("PTX");
    let launch = text.launch("f0").expect("an entry").block(&[32]).tensor_cores(TensorCores::Ampere);
    let error = launch.run().expect_err("Ampere has none");
    assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
    assert!(error.position.is_some() && error.to_string().contains("mma.sync"), "{error}");
}
