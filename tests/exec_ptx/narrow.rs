//! Products of 8-bit floats and integers: every pair of types, sums that tensor cores keep and sums that move to f32, in every mode.
//! Integers are right bit by bit, also as a chip adds; others are within the bound of how a chip adds.
//!
//! Here are the defects that kernels of others had: tiles with fewer rows than a block of scales, tiles that begin within one (`KERNELS`),
//! and rows of scales of any length. `grouped` has groups that end within a tile, and with A; `plans`, `packed`, has offsets beyond 32 bits.
//! No tensor map changes while a kernel runs: a launch makes them of its views, and the text takes them as `__grid_constant__`.

use std::sync::LazyLock;

use cutemplate::arch::Arch;
use cutemplate::dtype::{DType, E4m3};
use cutemplate::exec::ptx::{Modes, TensorCores};
use cutemplate::exec::{self, Options};
use cutemplate::recipe::gemm::GemmArgs;
use cutemplate::recipe::rows::Preset;
use cutemplate::recipe::{Gemm, Rows, TensorArgs};
use cutemplate::verify::Fill;
use cutemplate::view::{View, ViewLayout, ViewMut};
use half::bf16;

use crate::kernels::Kernel;
use crate::kernels::gemm::sized;
use crate::own::{BOUNDED, built, gemm, launch, program, targets};
use crate::ptx_batch::text;
use crate::together::of_entries;
use crate::whole;

/// Two tiles a CTA and more, a k-tile of one instruction; each pair of types once, and each type of D.
const KERNELS: [&str; 10] = [
    // D is quantised, in tiles of two groups of 128 columns.
    "dtype=e4m3\nout=e4m3\nscale_d=1x128\nbatched=true\ntile=64x256x32\nstages=2\ncluster=1x1\nctas=2\nepilogue=|a, c, bias; beta| 1000 - gelu(a + bias) + beta * c\naux=f32:(0,1,0)",
    "dtype=e4m3\nout=f32\ntile=64x64x32\nstages=2\ncluster=1x1\nctas=2",
    "dtype=e4m3\ndtype_b=e5m2\nout=e4m3\npromote=128\ntile=128x64x64\nstages=3\ncluster=2x1\nctas=4\nepilogue=|a, c, scale_a, scale_b; beta| a * scale_a * scale_b + beta * c\naux=f32:(1,0), f32:(0,1)",
    "dtype=e5m2\ndtype_b=e4m3\nout=bf16\na=col\nb=row\nd=col\npromote=32\nschedule=pingpong\ntile=64x64x32\nstages=3\ncluster=1x1\nctas=2\nepilogue=|a, scale| a * scale\naux=f32:(0,0)",
    "dtype=e5m2\nout=f16\npromote=64\nsplit_k=2\ntile=64x64x64\nstages=2\ncluster=1x2\nctas=4",
    "dtype=e4m3\nout=e4m3\npromote=64\nstream_k=1\nbatched=true\ntile=64x64x32\nstages=2\ncluster=1x1\nctas=3\nepilogue=relu(a), a",
    // Scales of blocks: of tiles with fewer than 128 rows, of tiles that begin within a block, and of products that are turned.
    "dtype=e4m3\nout=f32\npromote=128\nscale_a=1x128\nscale_b=128x128\ntile=64x96x128\nstages=2\ncluster=2x1\nctas=4",
    "dtype=e4m3\ndtype_b=e5m2\nout=f32\npromote=128\nscale_a=128x128\nscale_b=1x128\na=col\nd=col\nbatched=true\nschedule=pingpong\ntile=128x64x128\nstages=2\ncluster=1x2\nctas=2\nepilogue=|a, c, bias; beta| a + beta * c + bias\naux=f32:(0,1,0)",
    // Powers of two: one for each of more rows than a warp has lanes, and one for 128 columns.
    "dtype=e4m3\nout=f32\npromote=128\nscale_a=1x128\nscale_b=128x128\nscale_type=ue8m0\nschedule=pingpong\ntile=64x96x128\nstages=2\ncluster=1x2\nctas=4",
    "dtype=e4m3\nout=bf16\npromote=128\nscale_a=1x128\nscale_b=1x128\nstream_k=1\ntile=192x32x128\nstages=2\ncluster=1x1\nctas=3",
];

/// Integers: sums as they are, sums of several CTAs and of parts of K, and sums that scales make floats of.
const OF_INTEGERS: [&str; 4] = [
    "dtype=i8\ntile=64x64x32\nstages=2\ncluster=1x1\nctas=2",
    "dtype=i8\na=col\nd=col\nsplit_k=2\ntile=64x64x64\nstages=2\ncluster=1x2\nctas=4\nepilogue=|a, c; beta| max(a + beta * c, 7 - a)",
    "dtype=i8\nout=bf16\nb=row\nbatched=true\nstream_k=1\ntile=64x64x32\nstages=2\ncluster=1x1\nctas=3\nepilogue=|a, scale_a, scale_b| a * scale_a * scale_b\naux=f32:(1,0,?), f32:(0,1,?)",
    "dtype=i8\nout=f32\nschedule=pingpong\ntile=64x96x128\nstages=2\ncluster=1x1\nctas=2\nepilogue=|a; s| a * s, a",
];

/// By `mma.sync`: integers and floats of 8 bits in the text of older architectures.
const OF_WARPS: [&str; 4] = [
    "dtype=i8\nsm80_tile=64x64x64\nsm80_stages=3\nsm80_ctas=3\nepilogue=|a, c; beta| max(a + beta * c, 7 - a)",
    "dtype=i8\nout=f16\na=col\nb=row\nbatched=true\nsm80_tile=64x32x32\nsm80_stages=2\nsm80_stream_k=1\nsm80_ctas=4\nepilogue=|a, scale_a, scale_b| a * scale_a * scale_b\naux=f32:(1,0,?), f32:(0,1,?)",
    "dtype=e4m3\ndtype_b=e5m2\nout=e4m3\nsm80_tile=64x96x64\nsm80_stages=2\nsm80_ctas=3\nepilogue=|a, c, scale_a, scale_b; beta| a * scale_a * scale_b + beta * c\naux=f32:(1,0), f32:(0,1)",
    "dtype=e5m2\nd=col\nout=f32\nsm80_tile=128x64x32\nsm80_stages=3\nsm80_stream_k=1\nsm80_ctas=3\nepilogue=relu(a), a",
];

fn compiled(all: &[&str], arch: Arch) -> Vec<(Kernel, String)> {
    let kernels: Vec<Kernel> = all.iter().map(|settings| gemm(settings, arch)).collect();
    let sources: Vec<_> = kernels.iter().map(|kernel| (&kernel.plan, kernel.unit.files())).collect();
    let whole = text(&sources).unwrap_or_else(|e| panic!("{e}"));
    let texts: Vec<String> = kernels.iter().map(|kernel| of_entries(&whole, kernel)).collect();
    kernels.into_iter().zip(texts).collect()
}

static COMPILED: LazyLock<Vec<(Kernel, String)>> = LazyLock::new(|| compiled(&KERNELS, Arch::Sm90a));

static WITH_INTEGERS: LazyLock<Vec<(Kernel, String)>> = LazyLock::new(|| compiled(&OF_INTEGERS, Arch::Sm90a));

static WITH_WARPS: LazyLock<Vec<(Kernel, String)>> = LazyLock::new(|| compiled(&OF_WARPS, Arch::Sm89));

/// M, N, K: more than a tile on all sides, and less; k-tiles that promotion does not divide; one element.
const EXTENTS: [[i64; 3]; 4] = [[136, 72, 176], [208, 144, 400], [65, 129, 33], [1, 1, 16]];

fn is_right((kernel, ptx): &(Kernel, String), extents: &[i64; 3], gap: i64, fill: Fill, modes: Modes) {
    let tensor_cores = TensorCores::Hopper;
    let program = program(kernel, ptx.as_str()).with(Options { modes, tensor_cores, ..BOUNDED });
    let problem = sized(&kernel.plan, extents, Some(gap), fill, extents.iter().sum::<i64>() as u64);
    let ran = launch(kernel, &program, &problem);
    assert!(ran.report.is_clean(), "{kernel}\n{problem}\n{}", ran.report);
    assert_eq!(ran.wrong, None, "{kernel}\n{problem}, {tensor_cores:?}");
}

/// Rows of A and B, of the second extents those of any D, begin at multiples of 16 bytes, or anywhere.
const GAPS: [i64; 2] = [16, 1];

fn are_right(kernels: &[(Kernel, String)], extents: &[[i64; 3]], fill: Fill) {
    for kernel in kernels {
        for extents in extents {
            GAPS.into_iter().for_each(|gap| is_right(kernel, extents, gap, fill, Modes::ALL));
        }
    }
}

#[test]
fn integers_of_8_bits_are_right_and_silent() {
    are_right(&COMPILED, &EXTENTS, Fill::Integers);
}

#[test]
fn products_of_integers_are_right_and_silent() {
    are_right(&WITH_INTEGERS, &EXTENTS, Fill::Integers);
    are_within_the_bound(&WITH_INTEGERS);
}

#[test]
fn products_by_warps_are_right_and_silent() {
    are_right(&WITH_WARPS, &EXTENTS, Fill::Integers);
    are_within_the_bound(&WITH_WARPS);
}

#[test]
fn sums_of_a_chip_are_within_the_bound() {
    are_within_the_bound(&COMPILED);
}

/// Each kernel has each pair of a gap and a fill with other extents; asked for, with all.
fn are_within_the_bound(kernels: &[(Kernel, String)]) {
    let pairs = GAPS.map(|gap| [(gap, Fill::Normal), (gap, Fill::Specials)]).concat();
    for (turn, kernel) in kernels.iter().enumerate() {
        for (at, (gap, fill)) in pairs.iter().enumerate() {
            let extents = EXTENTS.iter().enumerate().filter(|(i, _)| whole::is_asked_for() || (turn + at) % 4 == *i);
            extents.for_each(|(_, extents)| is_right(kernel, extents, *gap, *fill, Modes::PLAIN));
        }
    }
}

/// Fewer rows than a tile has, and scales in rows of 1, 3, 5 or 130 elements: TMA would take multiples of four.
#[test]
fn scales_lie_in_rows_of_any_length() {
    are_right(&COMPILED, &[[1, 257, 640], [3, 7, 129], [130, 5, 300]], Fill::Small);
}

/// Elements of e4m3 and a scale for 128 of each row, by `rows`.
pub(crate) fn quantised(x: &[f32], [rows, k]: [i64; 2]) -> (Vec<E4m3>, Vec<f32>) {
    static QUANTIZE: LazyLock<(Kernel, String)> = LazyLock::new(|| {
        let rows = Rows::preset(Preset::Quantize, DType::F32);
        let kernel = Kernel::new("ptx_quantize", 0, &rows, &targets()).expect("a right recipe");
        let ptx = built(&kernel);
        (kernel, ptx)
    });
    let (kernel, ptx) = &*QUANTIZE;
    let blocks = (k + 127) / 128;
    let (mut q, mut s) = (vec![E4m3(0); (rows * k) as usize], vec![0.0_f32; (rows * blocks) as usize]);
    let text = exec::Kernel::<Rows>::from_ptx(kernel.plan.clone(), ptx, BOUNDED).unwrap_or_else(|e| panic!("{e}"));
    let args = TensorArgs::new()
        .input(View::host(x, [rows, k], k))
        .output(ViewMut::host(&mut q, [rows, k], k))
        .output(ViewMut::host(&mut s, [rows, blocks], blocks));
    text.launch(args).unwrap_or_else(|e| panic!("{e}"));
    (q, s)
}

/// Each block of positive numbers has another size, so the scale of another block is far off. e4m3 has three bits of fraction, and its
/// smallest number is 2^-9. Quantising changes a number by at most 2^-4 of itself, or by 2^-10 of its scale. A few roundings in f32 follow.
#[test]
fn what_is_quantised_and_multiplied_is_within_the_bound() {
    let [m, n, k] = [70_i64, 40, 300];
    let x = |rows: i64, seed: i64| -> Vec<f32> {
        let of = |i: i64| {
            let (row, column) = (i / k, i % k);
            let size = (row + 3 * (column / 128) + seed) % 7 - 3;
            (1.0 + (i * 7919 % 1013) as f32 / 1013.0) * 2.0_f32.powi(size as i32)
        };
        (0..rows * k).map(of).collect()
    };
    let (a, b) = (x(m, 1), x(n, 2));
    let ((of_a, scales_a), (of_b, scales_b)) = (quantised(&a, [m, k]), quantised(&b, [n, k]));
    let blocks = (k + 127) / 128;
    let scaled = |rows: &[i64]| ViewLayout::strided(rows, &[1, rows[0]]).expect("few elements");
    let (kernel, ptx) = COMPILED.last().expect("1x128 by 1x128");
    let text = exec::Kernel::<Gemm>::from_ptx(kernel.plan.clone(), ptx, BOUNDED).unwrap_or_else(|e| panic!("{e}"));
    let mut d = vec![bf16::NAN; (m * n) as usize];
    let of_b = View::host_strided(&of_b, scaled(&[k, n]));
    let args = GemmArgs::new(View::host(&of_a, [m, k], k), of_b, ViewMut::host(&mut d, [m, n], n))
        .aux(View::host(&scales_a, [m, blocks], blocks))
        .aux(View::host_strided(&scales_b, scaled(&[blocks, n])));
    text.launch(args).unwrap_or_else(|e| panic!("{e}"));
    let off = |x: f64, scale: f32| (x / 16.0 + f64::from(scale) / 1024.0) * (1.0 + 1.0 / f64::from(1 << 20));
    for at in 0..m * n {
        let (row, column) = (at / n, at % n);
        let terms = (0..k).map(|i| {
            let [a, b] = [a[(row * k + i) as usize], b[(column * k + i) as usize]].map(f64::from);
            let of_a = off(a, scales_a[(row * blocks + i / 128) as usize]);
            let of_b = off(b, scales_b[(column * blocks + i / 128) as usize]);
            [a * b, a * of_b + b * of_a + of_a * of_b]
        });
        let [sum, lost] = terms.fold([0.0; 2], |[sum, lost], [term, off]| [sum + term, lost + off]);
        let found = f64::from(d[at as usize].to_f32());
        // The sum is off by 0.018 of its terms, and bf16 by 2^-9.
        let allowed = lost + 0.018 * (sum + lost) + found / 512.0;
        assert!((found - sum).abs() <= allowed && allowed < 0.3 * sum, "({row},{column}): {found}, not {sum}");
    }
}
