//! Products whose neighbouring columns are pairs, such as gate and up of a layer. They run by warpgroups and by warps, in every mode, with
//! inputs of each kind, scales, groups, indices of rows, a quantised D, and E. Pairs of other columns are found.

use std::sync::LazyLock;

use cutemplate::arch::Arch;
use cutemplate::dtype::DType;
use cutemplate::emit::SourceFile;
use cutemplate::exec;
use cutemplate::recipe::Gemm;
use cutemplate::recipe::gemm::{Block, GemmArgs};
use cutemplate::recipe::product::Extents;
use cutemplate::verify::Fill;
use cutemplate::view::{View, ViewLayout, ViewMut};
use half::bf16;

use crate::kernels::gemm::{grouped, sized};
use crate::kernels::{Kernel, Problem};
use crate::narrow::quantised;
use crate::own::{BOUNDED, built, gemm, is_right, launch, program, targets};
use crate::ptx_batch::text;
use crate::together::of_entries;
use crate::whole;

/// The planted defects are of the first.
const OF_WARPGROUPS: [&str; 4] = [
    "dtype=bf16\nout=bf16\npairs=true\ntile=64x64x32\nstages=3\ncluster=1x2\nctas=4\nepilogue=|gate, up| silu(gate) * up",
    "dtype=bf16\nout=f32\npairs=true\nbatched=true\nschedule=pingpong\ntile=128x96x32\nstages=3\ncluster=2x1\nctas=4\nepilogue=|gate, up, c, weight, bias, bias_up; beta| relu(gate + bias) * (up - bias_up) * weight + beta * c\naux=f32:(1,0,0), f32:(0,1,0)",
    "dtype=e4m3\nout=e4m3\npairs=true\nscale_d=1x128\ntile=64x256x32\nstages=2\ncluster=1x1\nctas=2\nepilogue=|gate, up, bias, bias_up| (gate + bias) * (1 - min(abs(up + bias_up), 3))\naux=f32:(0,1)",
    "dtype=e4m3\nout=bf16\npairs=true\npromote=128\nscale_a=1x128\nscale_b=128x128\ngroups=rows\ngather=true\nschedule=pingpong\ntile=64x64x128\nstages=2\ncluster=1x1\nctas=3\nepilogue=|gate, up| silu(gate) * up",
];

/// What a whole run compiles, too.
const OTHERS: [&str; 4] = [
    "pairs=true\na=col\nb=row\nsplit_k=2\ntile=128x64x32\nstages=2\ncluster=1x1\nctas=4\nepilogue=|gate, up, s, t| gate * s - up * t, up\naux=f16:(?,1)",
    "dtype=e4m3\nout=bf16\npairs=true\nschedule=pingpong\ntile=64x96x64\nstages=2\ncluster=1x1\nctas=2\nepilogue=|gate, up, scale_a, scale_b, scale_b_up| silu(gate * scale_a * scale_b) * (up * scale_a * scale_b_up)\naux=f32:(1,0), f32:(0,1)",
    "dtype=i8\nout=f16\npairs=true\ngroups=masked\ntile=64x64x64\nstages=2\ncluster=1x2\nctas=4\nepilogue=|gate, up, c, s, t| relu(gate) * s - up * t + c\naux=f32:(0,1,?)",
    "pairs=true\nout=f32\ngroups=rows\nscatter=true\nschedule=pingpong\ntile=64x64x32\nstages=3\ncluster=1x2\nctas=4\nepilogue=|gate, up, weight| gate * up * weight, gate\naux=f32:(1,0)",
];

/// The same of the text for older architectures.
const OF_WARPS: [&str; 3] = [
    "dtype=bf16\nout=bf16\npairs=true\nsm80_tile=64x64x32\nsm80_stages=3\nsm80_ctas=3\nepilogue=|gate, up| silu(gate) * up",
    "pairs=true\nout=f32\nbatched=true\na=col\nb=row\nsm80_tile=64x96x32\nsm80_stages=2\nepilogue=|gate, up, c, weight, bias, bias_up; beta| relu(gate + bias) * (up - bias_up) * weight + beta * c, up\naux=f32:(1,0,0), f16:(0,1,0)",
    "dtype=i8\nout=bf16\npairs=true\ngroups=rows\ngather=true\nscatter=true\nsm80_tile=64x64x64\nsm80_stages=2\nsm80_ctas=3\nepilogue=|gate, up, s, t| gate * s - up * t\naux=f32:(0,1,?)",
];

/// Up in place of gate, one column for both, and pairs that are two rows: so that a sum of the wrong place becomes an element of D.
const DEFECTS: [(Arch, &str, &str); 5] = [
    (
        Arch::Sm90a,
        "op(a, tRrC(make_coord(1, first + i + j), m, _0{})",
        "op(tRrC(make_coord(1, first + i + j), m, _0{}), a",
    ),
    (Arch::Sm90a, "tRrC(make_coord(1, first", "tRrC(make_coord(0, first"),
    (Arch::Sm90a, "logical_divide(tCrC, make_tile(_2{}))", "logical_divide(tCrC, make_tile(Layout<_2,_2>{}))"),
    (Arch::Sm80, "op(a, tCrC(i + 1,part,n)", "op(tCrC(i + 1,part,n), a"),
    (Arch::Sm80, "tCrC(i + 1,part,n)", "tCrC(i,part,n)"),
];

type Texts = Vec<(Kernel, String)>;

fn compiled(all: Vec<(Kernel, Vec<SourceFile>)>) -> Texts {
    let sources: Vec<_> = all.iter().map(|(kernel, files)| (&kernel.plan, files.as_slice())).collect();
    let whole = text(&sources).unwrap_or_else(|e| panic!("{e}"));
    let texts: Vec<String> = all.iter().map(|(kernel, _)| of_entries(&whole, kernel)).collect();
    all.into_iter().map(|(kernel, _)| kernel).zip(texts).collect()
}

/// The kernels, and those with a defect.
static COMPILED: LazyLock<[Texts; 2]> = LazyLock::new(|| {
    let (mut right, mut wrong) = (Texts::new(), Texts::new());
    for (arch, all) in [(Arch::Sm90a, whole::of(&OF_WARPGROUPS, &OTHERS)), (Arch::Sm80, OF_WARPS.to_vec())] {
        let of = |settings: &&str| {
            let kernel = gemm(settings, arch);
            let files = kernel.unit.files().to_vec();
            (kernel, files)
        };
        let planted = DEFECTS.iter().filter(|(of, ..)| *of == arch).zip(1..).map(|((_, from, to), number)| {
            // Each has a name of its own.
            let kernel = gemm(&format!("{}\ngroup={number}", all[0]), arch);
            let files = kernel.changed(all[0], from, to);
            (kernel, files)
        });
        let mut texts = compiled(all.iter().map(of).chain(planted).collect());
        wrong.extend(texts.split_off(all.len()));
        right.extend(texts);
    }
    [right, wrong]
});

/// More than a tile on all sides; columns that are no multiple of anything but 2; one pair.
fn problems(kernel: &Kernel) -> Vec<Problem> {
    let has = |name: &str| kernel.plan.operands().iter().any(|operand| operand.name == name);
    let extents = [[136, 144, 176], [70, 270, 130], [65, 66, 33], [1, 2, 16]];
    let of = |(seed, extents): (u64, [i64; 3])| {
        let (gap, fill) = if seed % 2 == 0 { (16, Fill::Integers) } else { (1, Fill::Normal) };
        let ends = if has("Counts") { [40, 0, extents[0], 1] } else { [1, 1, extents[0] / 2, extents[0] - 1] };
        match has("Offsets") || has("Counts") {
            true => grouped(&kernel.plan, extents, &ends, Some(gap), fill, seed),
            false => sized(&kernel.plan, &extents, Some(gap), fill, seed),
        }
    };
    (0..).zip(extents).map(of).collect()
}

#[test]
fn pairs_are_right_and_silent() {
    for (kernel, ptx) in &COMPILED[0] {
        is_right(kernel, program(kernel, ptx.as_str()), problems(kernel));
    }
}

#[test]
fn sums_of_other_columns_are_found() {
    for ((kernel, ptx), (.., from, to)) in COMPILED[1].iter().zip(DEFECTS) {
        let problem = sized(&kernel.plan, &[136, 144, 176], Some(16), Fill::Integers, 1);
        let ran = launch(kernel, &program(kernel, ptx.as_str()).with(BOUNDED), &problem);
        assert!(ran.wrong.is_some(), "{kernel}: {to} in place of {from}");
    }
}

/// A layer as models quantise it: activations by 128 channels of a token, columns of weights by 128 channels, gate and up interleaved.
/// Products of a column have one sign, so that its sum is off by a small part of itself. Gates have both signs.
#[test]
fn a_layer_is_quantised_and_multiplied_within_the_bound() {
    let [m, n, k] = [70_i64, 40, 300];
    let x = |rows: i64, seed: i64, scale: f32, signs: bool| -> Vec<f32> {
        let of = |i: i64| {
            let (row, column) = (i / k, i % k);
            let size = (row + 3 * (column / 128) + seed) % 7 - 3;
            let sign = if signs && row * 5 % 7 < 3 { -scale } else { scale };
            (1.0 + (i * 7919 % 1013) as f32 / 1013.0) * 2.0_f32.powi(size as i32) * sign
        };
        (0..rows * k).map(of).collect()
    };
    let (a, b) = (x(m, 1, 1.0, false), x(n, 2, 1.0 / 2048.0, true));
    let ((of_a, scales_a), (of_b, scales_b)) = (quantised(&a, [m, k]), quantised(&b, [n, k]));
    let e4m3 = Gemm::of(DType::E4m3).expect("a type").gated().block_scaled(Block::Row, Block::Row);
    let recipe = Gemm { tile: Extents([64, 64, 128]), cluster: Extents([1, 1]), stages: 3, ctas: 2, ..e4m3 };
    let kernel = Kernel::new("ptx_layer", 0, &recipe, &targets()).expect("a right recipe");
    let ptx = built(&kernel);
    let text = exec::Kernel::<Gemm>::from_ptx(kernel.plan.clone(), &ptx, BOUNDED).unwrap_or_else(|e| panic!("{e}"));
    let blocks = (k + 127) / 128;
    let by_columns = |rows: i64| ViewLayout::strided(&[rows, n], &[1, rows]).expect("few elements");
    let mut d = vec![bf16::NAN; (m * n / 2) as usize];
    let args = GemmArgs::new(
        View::host(&of_a, [m, k], k),
        View::host_strided(&of_b, by_columns(k)),
        ViewMut::host(&mut d, [m, n / 2], n / 2),
    )
    .aux(View::host(&scales_a, [m, blocks], blocks))
    .aux(View::host_strided(&scales_b, by_columns(blocks)));
    text.launch(args).unwrap_or_else(|e| panic!("{e}"));
    let silu = |x: f64| x / (1.0 + (-x).exp());
    // Quantising changes a number by at most 2^-4 of itself, or by 2^-10 of its scale; tensor cores lose at most 0.018 of the terms.
    let off = |x: f64, scale: f32| (x.abs() / 16.0 + f64::from(scale) / 1024.0) * (1.0 + 1.0 / f64::from(1 << 20));
    let sum = |row: i64, column: i64| {
        let terms = (0..k).map(|i| {
            let [a, b] = [a[(row * k + i) as usize], b[(column * k + i) as usize]].map(f64::from);
            let of_a = off(a, scales_a[(row * blocks + i / 128) as usize]);
            let of_b = off(b, scales_b[(column * blocks + i / 128) as usize]);
            [a * b, a.abs() * of_b + b.abs() * of_a + of_a * of_b]
        });
        let [sum, lost] = terms.fold([0.0; 2], |[sum, lost], [term, off]| [sum + term, lost + off]);
        (sum, lost + 0.018 * (sum.abs() + lost))
    };
    let [mut below, mut above, mut apart] = [0, 0, 0];
    for at in 0..m * n / 2 {
        let (row, pair) = (at / (n / 2), at % (n / 2));
        let ((gate, of_gate), (up, of_up)) = (sum(row, 2 * pair), sum(row, 2 * pair + 1));
        let found = f64::from(d[at as usize].to_f32());
        // No slope of silu is steeper than 1.1, and bf16 rounds by 2^-9.
        let lost = 1.1 * of_gate * (up.abs() + of_up) + silu(gate).abs() * of_up;
        let allowed = lost + found.abs() / 256.0;
        assert!((found - silu(gate) * up).abs() <= allowed, "({row},{pair}): {found}, not {}", silu(gate) * up);
        apart += i32::from((found - silu(up) * gate).abs() > allowed);
        if gate < 0.0 {
            below += 1
        } else {
            above += 1
        }
        assert!(of_gate < 0.3 * gate.abs() && of_up < 0.3 * up.abs(), "a bound that says something");
    }
    // Most elements are not those of gate and up the other way around.
    assert!(below > 100 && above > 100 && apart > 500, "{below} and {above}, {apart}");
}
