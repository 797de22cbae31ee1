//! Recipes and problems of `w4a16`, drawn at random: legal and illegal recipes, products of ragged extents.

use cutemplate::dtype::DType;
use cutemplate::plan::{Operand, Plan};
use cutemplate::recipe::W4a16;
use cutemplate::recipe::product::Extents;
use cutemplate::units::Elements;
use cutemplate::verify::{Fill, TensorLayout};
use cutemplate::view::{Access, ViewLayout};

use super::problem::SCALARS;
use super::sgemm::{aux, epilogue};
use super::{Problem, Random};

/// The recipe of a number: the same on every machine. One in ten is anything; the others fit on every GPU.
pub(crate) fn drawn(index: u64) -> W4a16 {
    let random = &mut Random::new(104, index);
    let any = random.chance(10);
    let epilogue = if random.chance(60) { epilogue(random) } else { W4a16::default().epilogue };
    let rows: &[u32] = if any { &[0, 8, 16, 80] } else { &[16, 16, 16, 32, 48, 64] };
    let columns: &[u32] = if any { &[32, 64, 96, 512] } else { &[64, 128, 256] };
    let steps: &[u32] = if any { &[16, 48, 256] } else { &[32, 64, 128] };
    let tile = [random.pick(rows), random.pick(columns), random.pick(steps)];
    let (slices, stages) = loop {
        let (slices, stages) = (random.pick(&[1, 2, 4, 8]), random.pick(&[2, 2, 3, 4, 7]));
        let bytes = slices * stages * (2 * tile[0] * tile[2] + tile[1] * tile[2] / 2 + 6 * tile[1]);
        // Threads and shared memory of the smallest GPU.
        if any || (bytes < 90_000 && slices * tile[1] <= 1024) {
            break (slices, stages);
        }
    };
    W4a16 {
        dtype: random.pick(if any { &[DType::F32, DType::F16] } else { &[DType::F16, DType::Bf16] }),
        out: random.pick(if any {
            &[Some(DType::I32), Some(DType::F16), None]
        } else {
            &[None, Some(DType::F16), Some(DType::Bf16), Some(DType::F32)]
        }),
        group: random.pick(if any { &[16, 48, 128, 0] } else { &[32, 64, 128] }),
        zeros: random.chance(50),
        aux: (0..epilogue.inputs().saturating_sub(2)).map(|_| aux(random, false)).collect(),
        epilogue,
        tile: Extents(tile),
        slices: if any && random.chance(20) { random.pick(&[0, 3, 16]) } else { slices },
        stages: if any && random.chance(20) { random.pick(&[0, 1, 99]) } else { stages },
        ctas: random.pick(&[0, 1, 2, 3, 7, 24, 132, 65535]),
    }
}

/// Rows around those of a tile, columns of part tiles, groups of part k-tiles.
pub(super) fn problem(plan: &Plan, random: &mut Random, products: i64) -> Problem {
    let group = plan.settings().get("group").and_then(|group| group.parse().ok()).unwrap_or(32);
    let m = random.pick(&[0, 1, 1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 100]);
    let n = 64 * random.pick(&[0, 1, 1, 2, 3, 4, 5]);
    let mut k = group * random.pick(&[0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 33]);
    while m * n * k > 64 * products && k > group {
        k -= group;
    }
    let shapes = plan.shapes(&[m, n, k]).expect("three extents");
    let operands = plan.operands();
    let mut layouts: Vec<TensorLayout> =
        operands.iter().zip(&shapes).map(|(operand, shape)| layout(random, operand, shape)).collect();
    let inputs = operands.iter().filter(|operand| operand.access == Access::Read).count();
    let mut in_place = vec![None; inputs];
    let d = &operands[inputs];
    let c = operands.iter().position(|operand| operand.name == "C" && operand.dtype == d.dtype);
    if let Some(c) = c.filter(|_| random.chance(40)) {
        in_place[c] = Some(0);
        layouts[c] = layouts[inputs];
    }
    let fill = random.pick(&[Fill::Integers, Fill::Integers, Fill::Normal, Fill::Normal, Fill::Specials]);
    let fills = vec![fill; inputs];
    let scalars = plan.scalars().iter().map(|_| random.pick(SCALARS)).collect();
    Problem { layouts, in_place, scalars, fills, planted: Vec::new(), seed: random.word() >> 32 }
}

/// Rows with gaps that keep vectors aligned, or anywhere where nothing is copied by vectors. Packed weights have no gaps.
fn layout(random: &mut Random, operand: &Operand, shape: &[i64]) -> TensorLayout {
    let any = [1, 2, 3, 5, 8];
    let [vector, gap, offset] = match operand.name {
        "W" => [4, 0, random.pick(&[0, 4, 8])],
        "A" | "Scales" | "Zeros" => [8, random.pick(&[0, 0, 8, 24]), random.pick(&[0, 8, 16, 40])],
        _ => [1, random.pick(&[0, 0, 1, 3, 8]), random.pick(&any)],
    };
    let usual = operand.layout(shape, None).expect("few elements");
    let contiguous =
        usual.stride().iter().zip(shape).find(|(stride, _)| **stride == 1).map_or(1, |(_, extent)| *extent);
    let ld = if operand.name == "W" { contiguous } else { (contiguous + vector - 1) / vector * vector + gap };
    let strides: Vec<i64> = usual
        .stride()
        .iter()
        .map(|stride| if *stride > 1 { ld * (stride / contiguous.max(1)) } else { *stride })
        .collect();
    let padded = ViewLayout::strided(shape, &strides).expect("rank 2");
    TensorLayout::from(padded).at_offset(Elements(offset as u64))
}
