//! Contract: a factor that TMA or `cp.async` cannot copy, and no other, is packed ahead of the product; what is packed lies in the
//! workspace, apart from what else is, and tensor maps, strides and grids are those of that place.

use cutemplate::arch::Arch;
use cutemplate::dtype::DType;
use cutemplate::emit::render;
use cutemplate::plan::{Binding, ModeStride, Operand, Plan};
use cutemplate::recipe::{Gemm, Recipe, family};
use cutemplate::settings::Settings;
use cutemplate::units::Elements;
use cutemplate::verify::TensorLayout;
use cutemplate::view::{ViewLayout, ViewRef};

use crate::kernels::{Kernel, Problem};
use crate::rejects::gemm::{planned, views};

const ARCHS: [Arch; 2] = [Arch::Sm80, Arch::Sm90a];

/// The value of a parameter of a launch; `None` where the kernel has none of that name.
fn param(plan: &Plan, binding: &Binding, name: &str) -> Option<i64> {
    let field = plan.params().field(name)?;
    let bytes = &binding.params()[field.offset..field.offset + field.ty.bytes()];
    Some(match *bytes {
        [a, b, c, d] => i32::from_ne_bytes([a, b, c, d]).into(),
        _ => i64::from_ne_bytes(bytes.try_into().expect("8 bytes")),
    })
}

/// What each part packs, and the entry that multiplies, for these views of 128 x 128 x k.
fn launched(k: i64, change: impl FnOnce(&mut Vec<ViewRef>)) -> [String; 2] {
    let plan = planned("out=f16", &ARCHS).expect("a right recipe");
    let mut views = views(&plan, [128, 128, k]);
    change(&mut views);
    let bound = |part: &Plan| {
        let binding = part.bind(&views).expect("any alignment");
        let packs = [("packs_a", "A "), ("packs_b", "B ")];
        let packed = packs.into_iter().filter(|(name, _)| param(part, &binding, name) > Some(0));
        let packed: String = packed.map(|(_, factor)| factor).collect();
        let launches = binding.launches().iter();
        let entries: Vec<&str> = launches.map(|l| part.entries()[l.entry].function(part.name())).collect();
        assert_eq!((entries[0] == "pack", binding.workspace().is_some()), (!packed.is_empty(), !packed.is_empty()));
        packed + entries.last().expect("an entry that multiplies")
    };
    let parts: Vec<String> = plan.texts().iter().map(bound).collect();
    parts.try_into().expect("two parts")
}

#[test]
fn what_tma_and_cp_async_cannot_copy_is_packed() {
    let strided = |shape: [i64; 2], stride: [i64; 2]| ViewLayout::strided(&shape, &stride).expect("few elements");
    assert_eq!(launched(64, |_| {}), ["kernel", "kernel"]);
    assert_eq!(launched(60, |_| {}), ["A B kernel", "A B kernel"], "rows of 120 bytes");
    let gaps = |v: &mut Vec<ViewRef>| {
        v[0].layout = strided([128, 60], [64, 1]);
        v[1].layout = strided([60, 128], [1, 72]);
    };
    assert_eq!(launched(60, gaps), ["A B kernel", "kernel"], "rows that begin at 16 bytes, and do not end there");
    assert_eq!(launched(64, |v| v[0].ptr += 2), ["A kernel", "A kernel"], "A begins at 2 bytes");
    let odd = |v: &mut Vec<ViewRef>| v[0].layout = strided([128, 64], [68, 1]);
    assert_eq!(launched(64, odd), ["A kernel", "A kernel"], "rows of A of 136 bytes");
    let one = |v: &mut Vec<ViewRef>| v[1].layout = strided([64, 128], [1, 0]);
    assert_eq!(launched(64, one), ["kernel", "B kernel"], "one column of B for all");
    assert_eq!(launched(64, |v| v[2].ptr += 2), ["kernel", "direct"], "D begins at 2 bytes");
    let all = |v: &mut Vec<ViewRef>| v.iter_mut().for_each(|view| view.ptr += 2);
    assert_eq!(launched(64, all), ["A B kernel", "A B direct"], "all begin at 2 bytes");
    assert_eq!(launched(0, |_| {}), ["kernel", "direct"], "nothing to add up");
    assert_eq!(launched(0, all), ["kernel", "direct"], "nothing to pack");
}

/// An offset of 32 bits would end within the second row, or block.
#[test]
fn rows_and_scales_beyond_32_bits_are_reached() {
    let far = 1_i64 << 33;
    let strided = |shape: [i64; 2], stride: [i64; 2]| ViewLayout::strided(&shape, &stride).expect("few elements");
    let settings = "dtype=e4m3\npromote=128\nscale_a=1x128\nscale_b=128x128\ntile=64x64x128\nstages=2";
    let plan = planned(settings, &[Arch::Sm90a]).expect("a right recipe");
    let mut views = views(&plan, [64, 64, 256]);
    let layouts = [
        strided([64, 256], [far, 1]),
        strided([256, 64], [1, far]),
        strided([64, 2], [far + 1, far]),
        strided([2, 1], [far + 3, 1]),
        strided([64, 64], [far, 1]),
    ];
    for (view, layout) in views.iter_mut().zip(layouts) {
        view.layout = layout;
    }
    let text = plan.text_on((9, 0)).expect("a text");
    let binding = text.bind(&views).expect("offsets are 64-bit");
    let found =
        ["from_lda", "from_ldb", "ldscalea", "inc_scalea", "ldscaleb", "ldd"].map(|name| param(text, &binding, name));
    assert_eq!(found, [far, far, far + 1, far, far + 3, far].map(Some));
    for (map, row) in binding.tensor_maps().iter().zip([far, far, 2 * far]) {
        assert_eq!(map.spec.strides.first().copied(), Some(row.unsigned_abs()), "bytes from one row to the next");
    }
}

/// Where the operands of a problem lie: nowhere, with its offsets.
fn addresses(plan: &Plan, problem: &Problem) -> Vec<ViewRef> {
    let view = |((operand, at), place): ((&Operand, &TensorLayout), u64)| {
        let available = Elements(at.layout.span().expect("few elements"));
        let ptr = (place << 45) + at.offset.0 * operand.dtype.bytes().0;
        ViewRef { dtype: operand.dtype, ptr, available, layout: at.layout, access: operand.access }
    };
    let mut all: Vec<ViewRef> = plan.operands().iter().zip(&problem.layouts).zip(1..).map(view).collect();
    for (input, output) in problem.in_place.iter().enumerate() {
        if let Some(output) = output {
            all[input].ptr = all[problem.in_place.len() + output].ptr;
        }
    }
    all
}

/// A factor as rows along its contiguous mode, or, of tf32, along K.
struct Rows {
    view: ViewRef,
    /// Whether it does not lie so.
    turned: bool,
    rows: i64,
    columns: i64,
    ld: i64,
    /// Those that it has of its own, and elements from one to the next.
    matrices: i64,
    apart: i64,
}

/// The factor that a text has as `param`.
fn rows(plan: &Plan, binding: &Binding, param: &str) -> Rows {
    let offset = plan.params().field(param).expect("an address").offset;
    let at = binding.tensors().iter().position(|tensor| tensor.param_offset == offset).expect("its tensor");
    let (view, strides) = (binding.tensors()[at].view, &plan.operands()[at].strides);
    let unit = usize::from(strides[0] != ModeStride::Unit);
    let [shape, stride] = [view.layout.shape(), view.layout.stride()];
    let (batches, apart) = (shape.get(2).copied().unwrap_or(1), stride.get(2).copied().unwrap_or(0));
    let matrices = if apart > 0 { batches } else { 1 };
    // A is (M,K), B is (K,N).
    let along_k = 1 - at;
    let turned = matches!(view.dtype, DType::F32 | DType::E4m3 | DType::E5m2 | DType::I8) && unit != along_k;
    let along = if turned { along_k } else { unit };
    Rows { view, turned, rows: shape[1 - along], columns: shape[along], ld: stride[1 - unit], matrices, apart }
}

/// What is wrong with how a text copies its factors; how many it packs, A as 1 and B as 2.
fn copied(plan: &Plan, binding: &Binding) -> Result<usize, String> {
    let number = |name: &str| param(plan, binding, name).expect("a parameter");
    let (mut end, mut ctas, mut packed) = (0, 0, 0);
    for (bit, name) in [(1, "a"), (2, "b")] {
        let of = rows(plan, binding, name);
        let size = of.view.dtype.bytes().0;
        let (from, packs) = (number(&format!("from_ld{name}")), number(&format!("packs_{name}")));
        let map = plan.params().field(&format!("map_{name}")).map(|field| {
            let map = binding.tensor_maps().iter().find(|map| map.param_offset == field.offset);
            map.ok_or_else(|| format!("no map of {name}"))
        });
        let map = map.transpose()?;
        let (place, leading) = match packs {
            0 => {
                let whole = |step: i64| (step.unsigned_abs() * size).is_multiple_of(16);
                let lies = !of.turned
                    && of.view.ptr.is_multiple_of(16)
                    && (of.rows == 1 || whole(of.ld) && of.ld >= of.columns || of.ld == 0 && map.is_none())
                    && (of.matrices == 1 || whole(of.apart))
                    && (map.is_some() || whole(of.columns));
                lies.then_some(()).ok_or_else(|| format!("{name} cannot be copied from where it lies"))?;
                ((false, of.view.ptr), of.ld)
            }
            _ => {
                let begin = number(&format!("packed_{name}"));
                if begin != end || begin % 64 != 0 || from % 64 != 0 || from < of.columns {
                    return Err(format!("{name} is packed behind {begin}, not {end}, in rows of {from}"));
                }
                end = begin + from * of.rows * of.matrices;
                ctas += (of.rows + 63) / 64 * (from / 64) * of.matrices;
                packed |= bit;
                ((true, begin.unsigned_abs() * size), from)
            }
        };
        if let Some(map) = map {
            let spec = map.spec;
            let found = ((map.in_workspace, spec.address), spec.dims[..2].to_vec());
            if found != (place, vec![of.columns.unsigned_abs(), of.rows.unsigned_abs()]) || !spec.is_encodable() {
                return Err(format!("the map of {name} is {spec} at {found:?}"));
            }
            if of.rows > 1 && spec.strides[0] != leading.unsigned_abs() * size {
                return Err(format!("the map of {name} is {spec}, in rows of {leading}"));
            }
        } else if from != leading {
            return Err(format!("{name} is read in rows of {from}, which are of {leading}"));
        }
    }
    let first = &binding.launches()[0];
    let grid = if plan.entries()[first.entry].function(plan.name()) == "pack" { i64::from(first.grid[0]) } else { 0 };
    let room = binding.workspace().map_or(0, |workspace| workspace.bytes.0);
    let packs = end.unsigned_abs() * plan.operands()[0].dtype.bytes().0;
    let required = packs + sums(plan, binding, packs)?;
    match (grid, room) == (ctas, required) {
        true => Ok(packed),
        false => Err(format!("{grid} CTAs and {room} bytes, required {ctas} and {required}")),
    }
}

/// Bytes of the sums of tiles that are shared along K, which lie behind what is packed.
fn sums(plan: &Plan, binding: &Binding, packs: u64) -> Result<u64, String> {
    let (Some(parts), Some(begin)) = (param(plan, binding, "parts"), param(plan, binding, "sums")) else {
        return Ok(0);
    };
    let extents = |key: &str| {
        let of = plan.settings().get(key).unwrap_or_default().split('x');
        of.take(2).map(|extent| extent.parse::<u64>().expect("an extent")).product::<u64>()
    };
    let of_cluster = if plan.targets().archs().contains(&Arch::Sm90a) {
        extents("tile") * extents("cluster")
    } else {
        extents("sm80_tile")
    };
    let bytes = parts.unsigned_abs() * of_cluster * 4;
    match 4 * begin.unsigned_abs() == packs {
        true => Ok(bytes),
        false => Err(format!("sums begin behind {begin} elements, and {packs} bytes are packed")),
    }
}

/// Problems with gaps, beside multiples of a vector, with one matrix for all batches, of every major.
#[test]
fn what_is_packed_fits_in_the_workspace() {
    let (gemm, mut packed) = (family("gemm").expect("registered"), [0_usize; 4]);
    let others = ["batched=true\na=col\nd=col", "batched=true\nb=row\ndtype=bf16\nout=f32"];
    for (index, settings) in (0..).zip(Gemm::CATALOGUE.iter().copied().chain(others)) {
        let plan = gemm.usual_plan(&Settings::parse_lines(settings)).expect("a right recipe");
        for part in plan.texts() {
            let kernel = Kernel { index, unit: render(part), plan: part.clone() };
            for problem in kernel.problems(60, 100_000_000) {
                let scalars = vec![1.0; part.scalars().len()];
                let binding = part.bind_with(&addresses(part, &problem), &scalars).expect("a launch");
                let number = |name: &str| param(part, &binding, name);
                let nothing = ["m", "n", "k", "l"].into_iter().any(|extent| number(extent) == Some(0));
                if !nothing {
                    packed[copied(part, &binding).unwrap_or_else(|wrong| panic!("{kernel}\n{problem}\n{wrong}"))] += 1;
                }
            }
        }
    }
    assert!(packed.iter().all(|count| *count > 20), "none, A, B, both: {packed:?}");
}
