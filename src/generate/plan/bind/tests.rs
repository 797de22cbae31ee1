use super::*;
use crate::dtype::DType;
use crate::plan::tests::two_passes;
use crate::plan::{Abi, Draft, Field, ParamStruct, ParamValue};
use crate::tiling::MapSwizzle;
use crate::units::Elements;
use crate::view::Access;

fn view(ptr: u64, rows: i64, cols: i64, ld: i64) -> ViewRef {
    ViewRef {
        dtype: DType::F16,
        ptr,
        available: Elements(1 << 20),
        layout: ViewLayout::matrix([rows, cols], ld),
        access: Access::Read,
    }
}

/// The definition: some element of one shares a byte with some element of the other.
fn overlap_by_elements(a: &ViewRef, b: &ViewRef) -> bool {
    let bytes = |v: &ViewRef| -> std::collections::BTreeSet<u64> {
        let ([rows, cols], [ld, along]) = (v.layout.shape(), v.layout.stride()) else { unreachable!("a matrix") };
        let at = |i: i64, j: i64| v.ptr + 2 * (i * ld + j * along) as u64;
        (0..*rows).flat_map(|i| (0..*cols).flat_map(move |j| [at(i, j), at(i, j) + 1])).collect()
    };
    !bytes(a).is_disjoint(&bytes(b))
}

#[test]
fn overlap_is_exact_on_a_common_pitch_and_safe_elsewhere() {
    let a = view(1000, 3, 4, 8);
    for delta in -70_i64..70 {
        for (rows, cols, ld) in [(1, 1, 8), (2, 4, 8), (3, 8, 8), (2, 3, 5)] {
            let b = view((1000 + 2 * delta) as u64, rows, cols, ld);
            let truth = overlap_by_elements(&a, &b);
            assert!(overlap(&a, &b) || !truth, "{a} and {b} share memory");
            // A single row has no pitch of its own: the answer there may be cautious.
            if ld == 8 && rows > 1 {
                let common_rows = truth || !overlap(&a, &b) || a.end() > Some(b.ptr);
                assert!(common_rows, "{a} and {b} do not share memory");
            }
        }
    }
    assert!(!overlap(&a, &view(1000 + 2 * 4, 3, 4, 8)), "left and right half of one buffer");
}

#[test]
fn columns_that_strides_leave_apart_share_nothing() {
    let every = |ptr, ld, along| {
        let layout = ViewLayout::strided(&[3, 4], &[ld, along]).expect("a layout");
        ViewRef { layout, ..view(ptr, 3, 4, ld) }
    };
    let (mut apart, mut shared) = (0, 0);
    for (ld, along) in [(8, 2), (9, 3), (12, 3), (7, 2)] {
        for bytes in 0..40 {
            let (a, b) = (every(1000, ld, along), every(1000 + bytes, ld, along));
            let truth = overlap_by_elements(&a, &b);
            assert!(overlap(&a, &b) || !truth, "{a} and {b} share memory");
            // Where the strides have a common divisor, and the views meet in the middle, the answer is exact.
            if ld % along == 0 && bytes < 2 * 2 * along as u64 {
                assert_eq!(overlap(&a, &b), truth, "{a} and {b}");
            }
            apart += usize::from(!truth);
            shared += usize::from(truth);
        }
    }
    assert!(apart > 20 && shared > 20, "{apart} apart, {shared} shared");
}

/// A launch of it: A is `(m,k)`, C is `(m,n)`.
fn launched(m: i64, n: i64, k: i64) -> Binding {
    let c = ViewRef { access: Access::Write, ..view(0x2_0000_0000, m, n, n) };
    two_passes().bind(&[view(0x1_0000_0000, m, k, k), c]).expect("fits")
}

#[test]
fn entries_are_launched_in_order_with_what_each_asks_for() {
    let binding = launched(3, 2, 8);
    let grid = [2, 3, 1];
    let first = EntryLaunch { entry: 0, grid, block: [256, 1, 1], dynamic_smem: 65536, overlaps: false };
    let second = EntryLaunch { entry: 1, grid, block: [128, 1, 1], dynamic_smem: 0, overlaps: false };
    assert_eq!(binding.launches(), [first, second]);
    assert_eq!(binding.workspace(), Some(Workspace { bytes: Bytes(24), param_offset: 32 }));
    // No more entries and no more memory than the problem needs.
    let small = launched(2, 2, 2);
    assert_eq!(
        (small.launches(), small.workspace()),
        (&[first].map(|l| EntryLaunch { grid: [2, 2, 1], ..l })[..], None)
    );
}

#[test]
fn nothing_to_compute_is_nothing_to_launch() {
    let binding = launched(0, 5, 3);
    assert_eq!((binding.launches(), binding.workspace()), (&[][..], None));
}

#[test]
fn an_empty_tensor_needs_no_memory_and_no_strides_but_an_aligned_address() {
    let plan = two_passes();
    let c = ViewRef { access: Access::Write, ..view(0x2_0000_0000, 3, 2, 2) };
    let nothing = |ptr| ViewRef { ptr, available: Elements(0), ..view(ptr, 3, 0, 0) };
    for a in [nothing(0), nothing(2), nothing(c.ptr + 4)] {
        assert_eq!(plan.bind(&[a, c]).map(|b| b.launches().len()), Ok(1), "{a}");
    }
    let codes =
        |a: ViewRef| plan.bind(&[a, c]).expect_err("refused").diagnostics().iter().map(|d| d.code).collect::<Vec<_>>();
    assert_eq!(codes(nothing(3)), [Code::ViewAlignment]);
    assert_eq!(codes(view(0x1000, 3, -1, 0)), [Code::ViewExtent]);
}

#[test]
fn the_plan_and_its_text_name_every_entry() {
    let plan = two_passes();
    let text = plan.to_string();
    let lines: Vec<&str> = text.lines().filter(|l| l.contains("a block")).map(str::trim_start).collect();
    expect_test::expect![[r#"
          threads         256 a block, 65664 B of shared memory, 65536 B of it dynamic, room for 2 blocks on a multiprocessor
          reduce          128 a block, 0 B of shared memory"#]]
    .assert_eq(&lines.join("\n"));
    let unit = crate::emit::render(&plan);
    assert_eq!(unit.entries(), ["two_passes", "two_passes_reduce"]);
    let (_, entries) = unit.entry().text.split_once("\n\n").expect("the entries follow");
    expect_test::expect![[r#"
        extern "C" __global__ void __launch_bounds__(256, 2)
        two_passes(__grid_constant__ two_passes_params const params)
        {
          cutemplate::two_passes::kernel(params);
        }

        extern "C" __global__ void __launch_bounds__(128)
        two_passes_reduce(__grid_constant__ two_passes_params const params)
        {
          cutemplate::two_passes::reduce(params);
        }
    "#]]
    .assert_eq(entries);
}

#[test]
fn extents_beyond_all_memory_are_compared_without_overflow() {
    let huge = |ptr, ld| ViewRef { available: Elements(u64::MAX), ..view(ptr, 1, 1, ld) };
    // One row: its pitch is never used, and no number of bytes.
    for ld in [i64::MAX, i64::MAX / 2 + 1] {
        assert!(overlap(&huge(1000, ld), &huge(1000, ld)));
        assert!(!overlap(&huge(1000, ld), &huge(2000, ld)));
    }
    let wide = view(0x1000, 2, 1 << 61, 1 << 61);
    assert!(overlap(&wide, &view(0x2000, 2, 4, 4)), "as far as can be told");
}

#[test]
fn a_workspace_without_a_pointer_to_it_is_a_defect() {
    let mut plan = two_passes();
    let fields = |params: &ParamStruct| -> Vec<Field> { params.clone().into() };
    let with = |params| Abi::new(Draft { params, ..two_passes().abi().draft().clone() });
    let mut renamed = fields(plan.params());
    renamed.last_mut().expect("the workspace").0 = "other".into();
    plan.abi = with(ParamStruct::new(renamed));
    let c = ViewRef { access: Access::Write, ..view(0x2_0000_0000, 3, 2, 2) };
    let error = plan.bind(&[view(0x1_0000_0000, 3, 8, 8), c]).expect_err("a defect");
    assert!(matches!(&error, crate::diagnostic::BindError::Defect(_)), "{error:?}");
    assert!(error.to_string().starts_with("error[defect]: a launch asks for a workspace"), "{error}");
    plan.abi = with(ParamStruct::new(fields(two_passes().params()).into_iter().skip(1)));
    let error = plan.bind(&[view(0x1_0000_0000, 3, 8, 8), c]).expect_err("a defect").to_string();
    assert!(
        error.starts_with("error[defect]: the parameters of two_passes cannot be read off its own views"),
        "{error}"
    );
}

#[test]
fn a_tensor_map_of_a_workspace_that_is_not_there_is_a_defect() {
    let spec = TensorMapSpec::matrix(0, DType::F16, [8, 8], 16, [8, 8], MapSwizzle::None);
    let bound = |bytes| {
        let (ptr, number) = (ParamValue::Ptr(0), ParamValue::I32(0));
        let grids = vec![Some(Grid { blocks: [1, 1, 1], overlaps: true, shared: None, threads: None }), None];
        let values = vec![ptr, ptr, number, number, number, ptr];
        let maps = vec![BoundMap { spec, in_workspace: true, param_offset: 0 }];
        Binding::new(two_passes().abi(), &[], Geometry { grids, values, maps, workspace: Bytes(bytes) })
    };
    assert_eq!(bound(64).map(|binding| binding.tensor_maps().len()), Ok(1));
    let error = bound(0).expect_err("a defect").to_string();
    assert!(error.contains("a tensor map of a workspace, and no workspace"), "{error}");
}
