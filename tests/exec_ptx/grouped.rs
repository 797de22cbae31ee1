//! Products of groups of rows and of groups along K, and of rows that an index names: groups of any length, none, one row, all rows in one; ends that go back, and past the last row. Each in
//! every mode, element by element; rows of no group are never written. Planted defects are found.

use std::sync::LazyLock;

use cutemplate::arch::Arch;
use cutemplate::emit::SourceFile;
use cutemplate::exec::FindingKind;
use cutemplate::verify::Fill;

use crate::kernels::gemm::grouped;
use crate::kernels::{Kernel, Problem};
use crate::own::{BOUNDED, gemm, is_right, launch, program};
use crate::ptx_batch::text;
use crate::together::of_entries;

/// Scales of blocks: a tile begins at any row of ScaleA, and each group has a matrix of ScaleB. And a D that is quantised.
const SCALED: [&str; 2] = [
    "dtype=e4m3\nout=f32\npromote=128\nscale_a=1x128\nscale_b=128x128\ngroups=rows\nschedule=pingpong\ntile=64x64x128\nstages=2\ncluster=1x2\nctas=4",
    "dtype=e4m3\ndtype_b=e5m2\nout=e4m3\npromote=128\nscale_a=128x128\nscale_b=1x128\nscale_d=1x128\ngroups=masked\ntile=64x128x128\nstages=2\ncluster=1x1\nctas=3\nepilogue=|a, bias| 448 - min(abs(a + bias), 300)\naux=f32:(0,1,?)",
];

/// The planted defect reads rows of A that belong to other groups.
const OF_INTEGERS: &str = "dtype=i8\ngroups=rows\nsm80_tile=64x64x64\nsm80_stages=2\nsm80_ctas=3";

/// Rows that an index names: of A and D, by teams and by all warpgroups of a CTA, in groups and without, with a weight for each row, scales
/// of blocks, and E.
const OF_WARPGROUPS: [&str; 3] = [
    "dtype=bf16\nout=bf16\ngroups=rows\ngather=true\nscatter=true\nschedule=pingpong\ntile=64x64x32\nstages=3\ncluster=1x2\nctas=4\nepilogue=|a, weight| a * weight\naux=f32:(1,0)",
    "out=f32\nscatter=true\ntile=128x64x32\nstages=2\ncluster=2x1\nctas=4\nepilogue=|a, c; beta| a + beta * c, a",
    "dtype=e4m3\nout=bf16\npromote=128\nscale_a=1x128\nscale_b=128x128\ngroups=rows\ngather=true\nschedule=pingpong\ntile=64x64x128\nstages=2\ncluster=1x1\nctas=3",
];

/// The same by warps. The planted defect stores rows behind a group.
const OF_WARPS: [&str; 2] = [
    "dtype=bf16\nout=bf16\ngroups=rows\ngather=true\nscatter=true\nsm80_tile=64x64x32\nsm80_stages=3\nsm80_ctas=3\nepilogue=|a, c, weight| relu(a + c) * weight, a\naux=f32:(1,0)",
    "dtype=tf32\nb=row\ngather=true\nscatter=true\nsm80_tile=64x96x16\nsm80_stages=2",
];

/// Groups along K: tiles of CTAs that share A, or B, and of several warpgroups.
const OF_K: [&str; 3] = [
    "dtype=bf16\nout=f32\ngroups=k\na=col\nb=row\ntile=128x64x32\nstages=3\ncluster=2x1\nctas=4\nepilogue=|a, c; beta| a + beta * c",
    "groups=k\na=col\nb=row\ntile=64x96x64\nstages=2\ncluster=1x2\nctas=2\nepilogue=|a, bias| a + bias, a\naux=f32:(0,1,?)",
    "groups=k\na=col\nb=row\nsm80_tile=64x64x32\nsm80_stages=3\nsm80_ctas=3\nepilogue=|a, c; beta| a + beta * c",
];

/// Teams that take turns, CTAs that share A, or B, and that wait for each other; every kind of operand beside A and B.
const KERNELS: [(Arch, &[&str]); 2] = [
    (
        Arch::Sm90a,
        &[
            "dtype=bf16\nout=bf16\ngroups=rows\nschedule=pingpong\ntile=64x64x32\nstages=3\ncluster=1x2\nctas=4",
            "groups=rows\na=col\nb=row\ntile=128x64x32\nstages=2\ncluster=2x1\nctas=4\nepilogue=|a, c, bias| relu(a + c + bias), a\naux=f16:(0,1,?)",
            "dtype=e4m3\nout=bf16\npromote=32\ngroups=rows\nschedule=pingpong\ntile=64x64x32\nstages=2\ncluster=1x1\nctas=2\nepilogue=|a, scale_a, scale_b| a * scale_a * scale_b\naux=f32:(1,0), f32:(0,1,?)",
            "dtype=bf16\nout=f32\ngroups=masked\nschedule=pingpong\ntile=64x64x32\nstages=3\ncluster=2x1\nctas=4\nepilogue=|a, bias| a + bias\naux=f32:(0,1,?)",
            SCALED[0],
            SCALED[1],
            OF_WARPGROUPS[0],
            OF_WARPGROUPS[1],
            OF_WARPGROUPS[2],
            OF_K[0],
            OF_K[1],
        ],
    ),
    (
        Arch::Sm80,
        &[
            "groups=rows\nsm80_tile=64x64x32\nsm80_stages=3\nsm80_ctas=3\nepilogue=|a, c, bias| relu(a + c + bias), a\naux=f16:(0,1,?)",
            "dtype=bf16\nout=f32\ngroups=masked\na=col\nb=row\nsm80_tile=64x64x32\nsm80_stages=2",
            OF_INTEGERS,
            OF_WARPS[0],
            OF_WARPS[1],
            OF_K[2],
        ],
    ),
];

/// Kernels with a defect. On sm_80 whole tiles of A are read where the group has fewer rows, and rows behind a group are stored. On sm_90a
/// the largest result of a row is looked for among columns past the end of D, too, and rows are read that A does not have. On both a
/// group along K has what the next one begins with.
fn planted(arch: Arch) -> [(Kernel, Vec<SourceFile>); 3] {
    let changes = match arch {
        Arch::Sm80 => [
            (OF_INTEGERS, "whole_tiles = make_coord(anew(rows_of(crd_D)", "whole_tiles = make_coord(anew(params.m"),
            (OF_WARPS[0], "m < count ? index[m]", "true ? index[m]"),
            (OF_K[2], "make_shape(size<0>(tensor), int(k))", "make_shape(size<0>(tensor), params.k - int(begin))"),
        ],
        _ => [
            (SCALED[1], "get<1>(tCcD(at(i))) < params.n ?", "true ?"),
            (OF_WARPGROUPS[0], "of_a >= params.rows_a", "false"),
            (OF_K[0], "inside < size<1>(TileA{})", "inside < 0"),
        ],
    };
    changes.map(|(settings, from, to)| {
        // Of another name than the kernel without the defect.
        let kernel = gemm(&format!("{settings}\nsm80_stream_k=0"), arch);
        let files = kernel.changed(settings, from, to);
        (kernel, files)
    })
}

type Texts = Vec<(Kernel, String)>;

/// The kernels, and those with a defect.
static COMPILED: LazyLock<[Texts; 2]> = LazyLock::new(|| {
    let (mut right, mut wrong) = (Texts::new(), Texts::new());
    for (arch, all) in KERNELS {
        let of = |settings: &&str| {
            let kernel = gemm(settings, arch);
            let files = kernel.unit.files().to_vec();
            (kernel, files)
        };
        let kernels: Vec<_> = all.iter().map(of).chain(planted(arch)).collect();
        let sources: Vec<_> = kernels.iter().map(|(kernel, files)| (&kernel.plan, files.as_slice())).collect();
        let whole = text(&sources).unwrap_or_else(|e| panic!("{e}"));
        let mut texts: Texts = kernels.iter().map(|(kernel, _)| (kernel.clone(), of_entries(&whole, kernel))).collect();
        wrong.extend(texts.split_off(all.len()));
        right.extend(texts);
    }
    [right, wrong]
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

/// Groups around the rows of a block of scales, as ends or counts, with 30 rows of no group.
fn around_blocks(kernel: &Kernel) -> Vec<i64> {
    let counts = [0, 1, 127, 128, 129, 300];
    let ends = counts.iter().scan(0, |end, rows| {
        *end += rows;
        Some(*end)
    });
    if kernel.plan.settings().iter().any(|(_, value)| value == "masked") { counts.to_vec() } else { ends.collect() }
}

fn is_of_k(kernel: &Kernel) -> bool {
    kernel.plan.settings().iter().any(|(key, value)| format!("{key}={value}") == "groups=k")
}

fn problems(kernel: &Kernel) -> Vec<Problem> {
    let is_scaled = kernel.plan.operands().iter().any(|operand| operand.name == "ScaleA");
    // K is more than a block of scales, and no multiple of one.
    let of = |(seed, ends): (u64, Vec<i64>)| {
        let (gap, fill) = if seed % 2 == 0 { (16, Fill::Integers) } else { (1, Fill::Normal) };
        let (n, k) = if is_scaled { (144, 208) } else { (72, 80) };
        let m = ends.iter().max().filter(|_| is_scaled).map_or(202, |end| (end + 31) / 2 * 2);
        let m = m + seed as i64 % 2;
        let extents = if is_of_k(kernel) { [n, k, m] } else { [m, n, k] };
        // What other groups have is nothing to a sum.
        let fill = if is_of_k(kernel) && seed % 3 == 0 { Fill::Specials } else { fill };
        grouped(&kernel.plan, extents, &ends, Some(gap), fill, seed)
    };
    let scaled = if is_scaled { vec![around_blocks(kernel); 2] } else { Vec::new() };
    (1..).zip(ends().into_iter().chain(scaled)).map(of).collect()
}

#[test]
fn groups_of_any_length_are_right_and_silent() {
    for (kernel, ptx) in &COMPILED[0] {
        is_right(kernel, program(kernel, ptx.as_str()), problems(kernel));
    }
}

/// The last group ends with A and has fewer rows than a tile.
#[test]
fn rows_that_are_read_past_the_end_of_a_are_found() {
    let (kernel, ptx) = &COMPILED[1][3];
    let found = |ends: &[i64]| {
        let problem = grouped(&kernel.plan, [202, 72, 80], ends, None, Fill::Integers, 1);
        let report = launch(kernel, &program(kernel, ptx.as_str()).with(BOUNDED), &problem).report;
        report.findings.iter().find(|finding| finding.kind == FindingKind::OutOfBounds).cloned()
    };
    // Rows of another group are read then, which no sum has.
    assert!(found(&[64, 128]).is_none(), "all of its tiles are whole");
    let found = found(&[100, 172, 202]).expect("a row past the last");
    // Whose bytes lie there depends on what else the text declares.
    assert!(found.to_string().contains("cp.async"), "{found}");
}

/// The last 16 columns of D share a scale. Columns behind them would give 448, which is more.
#[test]
fn a_scale_of_columns_that_d_does_not_have_is_found() {
    let (kernel, ptx) = &COMPILED[1][0];
    let wrong = |columns: i64| {
        let problem = grouped(&kernel.plan, [6, columns, 208], &[3, 6], Some(16), Fill::Integers, 2);
        launch(kernel, &program(kernel, ptx.as_str()).with(BOUNDED), &problem).wrong
    };
    assert_eq!(wrong(128), None, "all columns of the tile are there");
    assert!(wrong(144).is_some_and(|found| found.contains("ScaleD")), "{kernel}");
}

/// Indices of A run past its last row.
#[test]
fn a_row_that_a_does_not_have_is_found() {
    let (kernel, ptx) = &COMPILED[1][1];
    let problem = grouped(&kernel.plan, [202, 72, 80], &[100, 202], None, Fill::Integers, 1);
    let report = launch(kernel, &program(kernel, ptx.as_str()).with(BOUNDED), &problem).report;
    assert!(report.findings.iter().any(|finding| finding.kind == FindingKind::OutOfBounds), "{report}");
}

/// The last tile of a group has rows of the next one, whose own tile stores them, too.
#[test]
fn rows_behind_a_group_that_are_stored_are_found() {
    let (kernel, ptx) = &COMPILED[1][4];
    let wrong = |ends: &[i64]| {
        let problem = grouped(&kernel.plan, [192, 72, 80], ends, None, Fill::Integers, 1);
        let ran = launch(kernel, &program(kernel, ptx.as_str()).with(BOUNDED), &problem);
        ran.wrong.is_some() || !ran.report.is_clean()
    };
    assert!(!wrong(&[64, 192]), "all of its tiles are whole");
    assert!(wrong(&[30, 192]), "{kernel}");
}

/// Its last k-tile has the first columns of A, and rows of B, of the next group.
#[test]
fn what_the_next_group_along_k_begins_with_is_found() {
    for (kernel, ptx) in [&COMPILED[1][2], &COMPILED[1][5]] {
        let wrong = |ends: &[i64]| {
            let problem = grouped(&kernel.plan, [72, 80, 202], ends, None, Fill::Integers, 1);
            launch(kernel, &program(kernel, ptx.as_str()).with(BOUNDED), &problem).wrong
        };
        assert_eq!(wrong(&[202]), None, "{kernel}: there is no next group");
        assert!(wrong(&[33, 202]).is_some(), "{kernel}");
    }
}
