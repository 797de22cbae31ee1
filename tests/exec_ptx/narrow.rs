//! Products of 8-bit floats: every pair of types, sums that tensor cores keep and sums that move to f32, in every mode. Integers are
//! right bit by bit, also as a chip adds; others are within the bound of how a chip adds.

use std::sync::LazyLock;

use cutemplate::arch::Arch;
use cutemplate::exec::Options;
use cutemplate::exec::ptx::{Modes, TensorCores};
use cutemplate::verify::Fill;

use crate::kernels::Kernel;
use crate::kernels::gemm::sized;
use crate::own::{BOUNDED, gemm, launch, program};
use crate::ptx_batch::text;
use crate::together::of_entries;

/// Two tiles a CTA and more, a k-tile of one instruction; each pair of types once, and each type of D.
const KERNELS: [&str; 5] = [
    "dtype=e4m3\nout=f32\ntile=64x64x32\nstages=2\ncluster=1x1\nctas=2",
    "dtype=e4m3\ndtype_b=e5m2\nout=e4m3\npromote=128\ntile=128x64x64\nstages=3\ncluster=2x1\nctas=4\nepilogue=|a, c, scale_a, scale_b; beta| a * scale_a * scale_b + beta * c\naux=f32:(1,0), f32:(0,1)",
    "dtype=e5m2\ndtype_b=e4m3\nout=bf16\na=col\nb=row\nd=col\npromote=32\nschedule=pingpong\ntile=64x64x32\nstages=3\ncluster=1x1\nctas=2\nepilogue=|a, scale| a * scale\naux=f32:(0,0)",
    "dtype=e5m2\nout=f16\npromote=64\nsplit_k=2\ntile=64x64x64\nstages=2\ncluster=1x2\nctas=4",
    "dtype=e4m3\nout=e4m3\npromote=64\nstream_k=1\nbatched=true\ntile=64x64x32\nstages=2\ncluster=1x1\nctas=3\nepilogue=relu(a), a",
];

static COMPILED: LazyLock<Vec<(Kernel, String)>> = LazyLock::new(|| {
    let kernels: Vec<Kernel> = KERNELS.iter().map(|settings| gemm(settings, Arch::Sm90a)).collect();
    let sources: Vec<_> = kernels.iter().map(|kernel| (&kernel.plan, kernel.unit.files())).collect();
    let whole = text(&sources).unwrap_or_else(|e| panic!("{e}"));
    let texts: Vec<String> = kernels.iter().map(|kernel| of_entries(&whole, kernel)).collect();
    kernels.into_iter().zip(texts).collect()
});

/// M, N, K: on all sides more than a tile, and less; k-tiles that are no multiple of those between additions in f32; one element.
const EXTENTS: [[i64; 3]; 4] = [[136, 72, 176], [200, 130, 400], [65, 129, 33], [1, 1, 16]];

fn are_right(fill: Fill, modes: Modes, tensor_cores: TensorCores) {
    for (kernel, ptx) in &*COMPILED {
        let program = program(kernel, ptx.as_str()).with(Options { modes, tensor_cores, ..BOUNDED });
        for (seed, extents) in (1_u64..).zip(&EXTENTS) {
            // Rows of A and B begin at multiples of 16 bytes, or anywhere.
            for gap in [8, 1] {
                let problem = sized(&kernel.plan, extents, Some(gap), fill, seed);
                let ran = launch(kernel, &program, &problem);
                assert!(ran.report.is_clean(), "{kernel}\n{problem}\n{}", ran.report);
                assert_eq!(ran.wrong, None, "{kernel}\n{problem}, {tensor_cores:?}");
            }
        }
    }
}

#[test]
fn integers_of_8_bits_are_right_and_silent() {
    are_right(Fill::Integers, Modes::ALL, TensorCores::Hopper);
}

#[test]
fn sums_of_a_chip_are_within_the_bound() {
    for fill in [Fill::Normal, Fill::Specials] {
        are_right(fill, Modes::PLAIN, TensorCores::Hopper);
    }
}
