//! Safe code that tries to break kernels of one's own: it is refused in words, and memory stays as it was.

use cutemplate::arch::Targets;
use cutemplate::cuda::{Cuda, Entry};
use cutemplate::dtype::DType;
use cutemplate::exec::{Kernel, Options};
use cutemplate::view::{Access, Arguments, View, ViewLayout, ViewMut};

use super::Own;

/// A kernel of hand-written PTX that stores 1.0 at the start of `y`.
fn kernel(entry: Entry, params: usize) -> Kernel<Own> {
    let entry = entry.operand("y", DType::F32, Access::Write, "n:?").block(1);
    let plans = Cuda::text("").entry(entry).plans("k", "", &Targets::default()).unwrap();
    let last = params - 1;
    let params: Vec<String> = (0..params).map(|at| format!(".param .u64 k_param_{at}")).collect();
    let ptx = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k({})\n{{\n.reg .b64 %rd<2>;\nld.param.u64 %rd1, [k_param_{last}];\n\
         st.global.u32 [%rd1], 0x3f800000;\nret;\n}}\n",
        params.join(", ")
    );
    Kernel::from_ptx(plans[0].clone(), ptx, Options::default()).unwrap()
}

fn run(kernel: &Kernel<Own>, y: &mut [f32], layout: ViewLayout, expected: (f64, f64)) -> Result<(), String> {
    let args = Arguments::<Own, _>::new().write(ViewMut::host_strided(y, layout));
    kernel.check_against(args, |_, _| expected).map_err(|error| error.to_string())
}

#[test]
fn a_workspace_beyond_all_memory_is_refused() {
    for bytes in ["n * 4611686018427387904", "n * 70368744177664"] {
        let kernel = kernel(Entry::new("k").workspace(bytes), 2);
        let refused = run(&kernel, &mut [0.0], ViewLayout::vector(1), (1.0, 0.0)).unwrap_err();
        assert!(refused.contains("error[exec-launch]: the workspace does not fit into memory"), "{refused}");
        assert!(refused.contains("bytes for the workspace") && refused.contains("help:"), "{refused}");
    }
}

#[test]
fn outputs_outside_of_their_memory_are_refused_before_anything_is_written() {
    let kernel = kernel(Entry::new("k"), 1);
    let mut y = [7.0_f32; 4];
    let strided = |shape: &[i64], stride: &[i64]| ViewLayout::strided(shape, stride).unwrap();
    for layout in [
        strided(&[4], &[-1]),
        strided(&[4], &[2]),
        strided(&[5], &[1]),
        strided(&[4], &[0]),
        strided(&[-4], &[1]),
        strided(&[i64::MAX], &[1]),
        strided(&[2], &[i64::MAX]),
        strided(&[2], &[i64::MIN]),
        strided(&[2, 2], &[1, 1]),
    ] {
        let refused = run(&kernel, &mut y, layout, (1.0, 0.0)).unwrap_err();
        assert!(refused.starts_with("error[CT1"), "{layout}: {refused}");
    }
    assert_eq!(y, [7.0; 4]);
}

#[test]
fn any_expectation_is_answered() {
    let kernel = kernel(Entry::new("k"), 1);
    let mut y = [0.0_f32];
    let mut of = |expected| run(&kernel, &mut y, ViewLayout::vector(1), expected);
    assert_eq!(of((1.0, 0.0)), Ok(()));
    assert_eq!(of((1.5, 0.5)), Ok(()));
    assert_eq!(of((0.0, f64::INFINITY)), Ok(()));
    // What is no bound accepts nothing else.
    for wrong in
        [(2.0, 0.5), (f64::NAN, 0.0), (f64::NAN, f64::INFINITY), (f64::INFINITY, 0.0), (f64::MAX, 1.0), (2.0, f64::NAN)]
    {
        let told = of(wrong).unwrap_err();
        assert!(told.contains("1 of 1 elements"), "{wrong:?}: {told}");
    }
}

/// A tensor that no view is given for, or one too many, or one of another type.
#[test]
fn arguments_that_are_not_the_kernels_are_refused() {
    let kernel = kernel(Entry::new("k"), 1);
    let (x, layout) = ([0.0_f32], ViewLayout::vector(1));
    let (mut y, mut halves, mut more) = ([0.0_f32], [0_u8; 4], [0.0_f32]);
    let args = Arguments::<Own, _>::new;
    let all = [
        args(),
        args().read(View::host_strided(&x, layout)),
        args().write(ViewMut::host_strided(&mut halves, layout)),
        args().write(ViewMut::host_strided(&mut y, layout)).write(ViewMut::host_strided(&mut more, layout)),
        args().read(View::host_strided(&x, layout)).scalar(1.0),
    ];
    for args in all {
        let refused = kernel.launch(args).unwrap_err().to_string();
        assert!(refused.starts_with("error[CT1"), "{refused}");
    }
    assert_eq!((y, halves, more), ([0.0], [0; 4], [0.0]));
}
