//! Products of groups of rows: groups of any length, none, one row, all rows in one; ends that go back, and past the last row. Each in
//! every mode, element by element; rows of no group are never written.

use std::sync::LazyLock;

use cutemplate::arch::Arch;
use cutemplate::verify::Fill;

use crate::kernels::gemm::grouped;
use crate::kernels::{Kernel, Problem};
use crate::own::{gemm, is_right, program};
use crate::ptx_batch::text;
use crate::together::of_entries;

/// Teams that take turns, CTAs that share A, or B, and that wait for each other; every kind of operand beside A and B.
const KERNELS: [(Arch, &[&str]); 2] = [
    (
        Arch::Sm90a,
        &[
            "dtype=bf16\nout=bf16\ngroups=rows\nschedule=pingpong\ntile=64x64x32\nstages=3\ncluster=1x2\nctas=4",
            "groups=rows\na=col\nb=row\ntile=128x64x32\nstages=2\ncluster=2x1\nctas=4\nepilogue=|a, c, bias| relu(a + c + bias), a\naux=f16:(0,1,?)",
            "dtype=e4m3\nout=bf16\npromote=32\ngroups=rows\nschedule=pingpong\ntile=64x64x32\nstages=2\ncluster=1x1\nctas=2\nepilogue=|a, scale_a, scale_b| a * scale_a * scale_b\naux=f32:(1,0), f32:(0,1,?)",
            "dtype=bf16\nout=f32\ngroups=masked\nschedule=pingpong\ntile=64x64x32\nstages=3\ncluster=2x1\nctas=4\nepilogue=|a, bias| a + bias\naux=f32:(0,1,?)",
        ],
    ),
    (
        Arch::Sm80,
        &[
            "groups=rows\nsm80_tile=64x64x32\nsm80_stages=3\nsm80_ctas=3\nepilogue=|a, c, bias| relu(a + c + bias), a\naux=f16:(0,1,?)",
            "dtype=bf16\nout=f32\ngroups=masked\na=col\nb=row\nsm80_tile=64x64x32\nsm80_stages=2",
            "dtype=i8\ngroups=rows\nsm80_tile=64x64x64\nsm80_stages=2\nsm80_ctas=3",
        ],
    ),
];

static COMPILED: LazyLock<Vec<(Kernel, String)>> = LazyLock::new(|| {
    let of = |(arch, all): (Arch, &[&str])| {
        let kernels: Vec<Kernel> = all.iter().map(|settings| gemm(settings, arch)).collect();
        let sources: Vec<_> = kernels.iter().map(|kernel| (&kernel.plan, kernel.unit.files())).collect();
        let whole = text(&sources).unwrap_or_else(|e| panic!("{e}"));
        let texts: Vec<String> = kernels.iter().map(|kernel| of_entries(&whole, kernel)).collect();
        kernels.into_iter().zip(texts).collect::<Vec<_>>()
    };
    KERNELS.into_iter().flat_map(of).collect()
});

/// Ragged groups with every kind of length; a last group that ends with the matrix, and is shorter than a tile; all rows in one; ends that go back, and past the last row; more groups than a warp has
/// lanes; no rows; no groups.
fn ends() -> [Vec<i64>; 7] {
    let many = (0..70).map(|group| group * 7 % 41 / 9).scan(0, |end, rows| {
        *end += rows;
        Some(*end)
    });
    [
        vec![0, 1, 1, 65, 129, 130, 194],
        vec![100, 172, 202],
        vec![0, 0, 200, 200],
        vec![40, 7, -3, 90, 1000, 20],
        many.collect(),
        vec![0, 0, 0],
        vec![],
    ]
}

fn problems(kernel: &Kernel) -> Vec<Problem> {
    let of = |(seed, ends): (u64, Vec<i64>)| {
        let (gap, fill) = if seed % 2 == 0 { (8, Fill::Integers) } else { (1, Fill::Normal) };
        grouped(&kernel.plan, [202 + seed as i64 % 2, 72, 80], &ends, Some(gap), fill, seed)
    };
    (1..).zip(ends()).map(of).collect()
}

#[test]
fn groups_of_any_length_are_right_and_silent() {
    for (kernel, ptx) in &*COMPILED {
        is_right(kernel, program(kernel, ptx.as_str()), problems(kernel));
    }
}
