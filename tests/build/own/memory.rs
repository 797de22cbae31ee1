//! Views, kernels and jobs that try to leave their memory: each is refused, or stopped there.

use cutemplate::cuda::Entry;
use cutemplate::dtype::DType;
use cutemplate::exec::ptx::Modes;
use cutemplate::exec::{Buffer, Error, Job, Options};
use cutemplate::plan::{BoundMap, BoundTensor, EntryLaunch, ParamType, Workspace};
use cutemplate::recipe::{Rows, TensorArgs};
use cutemplate::tiling::{MapSwizzle, TensorMapSpec};
use cutemplate::units::{Bytes, Elements};
use cutemplate::verify::SplitMix64;
use cutemplate::view::{Access, AnyView, Args, Arguments, HostMemory, ViewLayout, ViewMut, ViewRef};

use super::Own;
use super::sound::{kernel, plan, running};

/// Layouts and addresses of every kind: what a launch accepts lies in its memory, keeps to the declaration, and has numbers that it may have.
#[test]
fn whatever_views_say_a_launch_keeps_to_memory_and_limits() {
    let entry = Entry::new("k")
        .operand("x", DType::F32, Access::Read, "(?,?)")
        .operand("y", DType::F32, Access::Write, "(rows,?):(?,1)")
        .aligned(16)
        .value("reach", ParamType::I64, "cosize(x) + size(y) * stride(x, 0)")
        .define("area", "stride(x, 0) * stride(x, 1) * stride(y, 0)")
        .grid("ceil_div(size(x), 4)")
        .block_of(["x.0", "max(x.1, area)", "1"], 256)
        .shared_at_most("cosize(y) * 4", 65536)
        .workspace("size(x) * stride(y, 0)");
    let plan = plan(entry);
    let extents = [-1, 0, 1, 1, 2, 3, 5, 300, i64::MAX];
    let strides = [i64::MIN, -1, 0, 1, 1, 2, 4, 300, i64::MAX];
    let (addresses, available) = ([0, 4, 16, 64, 66, 1 << 40, 1 << 63, u64::MAX - 3], [0, 1, 8, 1 << 20, u64::MAX]);
    let mut accepted = 0;
    for draw in 0..200_000 {
        let pick = |at: u64, of: usize| (SplitMix64(7).at(12 * draw + at) % of as u64) as usize;
        let view = |at: u64, access| {
            let [shape, stride] =
                [(extents, at), (strides, at + 2)].map(|(of, at)| [of[pick(at, 9)], of[pick(at + 1, 9)]]);
            let (ptr, available) = (addresses[pick(at + 4, 8)], Elements(available[pick(at + 5, 5)]));
            ViewRef { dtype: DType::F32, ptr, available, layout: ViewLayout::strided(&shape, &stride).unwrap(), access }
        };
        let views = [view(0, Access::Read), view(6, Access::Write)];
        let Ok(binding) = plan.bind(&views) else { continue };
        for tensor in binding.tensors() {
            let (span, end) = (tensor.view.span().unwrap(), tensor.view.end().unwrap());
            assert!(span <= tensor.view.available.0 && end >= tensor.view.ptr, "{views:?}");
        }
        let written = &binding.tensors()[1].view;
        assert!(
            written.ptr.is_multiple_of(16) && (written.span() == Some(0) || written.layout.is_injective()),
            "{views:?}"
        );
        for launch in binding.launches() {
            let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
            assert!(
                (1..=256).contains(&threads) && launch.block[2] <= 64 && launch.grid.iter().all(|n| *n > 0),
                "{views:?}"
            );
            assert!(
                u64::from(launch.dynamic_smem) == 4 * written.span().unwrap() && launch.dynamic_smem <= 65536,
                "{views:?}"
            );
        }
        accepted += u32::from(!binding.launches().is_empty());
    }
    assert!(accepted > 20, "{accepted}");
}

/// A declaration does not know these loads and stores. All checks are on, or only those that cannot be turned off.
#[test]
fn kernels_that_leave_their_memory_are_stopped_there() {
    let secret = [3.0_f32; 4];
    let stolen = format!("mov.u64 %rd1, {};\nst.global.u32 [%rd1], 1;", secret.as_ptr() as u64);
    for instructions in [
        "st.global.u32 [%rd1+-4], 1;",
        "st.global.u32 [%rd1+16], 1;",
        "st.u32 [%rd1+1048576], 1;",
        "st.global.v4.u32 [%rd1+16], {1, 1, 1, 1};",
        "mov.u64 %rd1, 0;\nst.global.u32 [%rd1], 1;",
        "mov.u64 %rd1, 0xfffffffffffffffc;\nst.global.u32 [%rd1], 1;",
        "mul.lo.u64 %rd1, %rd1, 3;\nst.u32 [%rd1], 1;",
        "ld.global.u64 %rd1, [%rd1+16];",
        "ld.global.u64 %rd1, [%rd1];\nst.global.u32 [%rd1], 1;",
        &stolen,
    ] {
        for modes in [Modes::PLAIN, Modes::ALL] {
            let kernel = running(Entry::new("k"), &[], instructions, Options { modes, ..Options::default() });
            let mut memory = [7.0_f32; 12];
            let y = ViewMut::host_strided(&mut memory[4..8], ViewLayout::vector(4));
            let found = kernel.launch(Arguments::<Own, _>::new().write(y));
            assert!(matches!(found, Err(Error::Verdict(_))), "{instructions} {modes:?}: {found:?}");
            assert_eq!((memory, secret), ([7.0; 12], [3.0; 4]), "{instructions} {modes:?}");
        }
    }
}

/// Of arguments that were given together, some, in an order of their own.
struct Picked<'a>(TensorArgs<'a, HostMemory>, &'static [usize]);

impl Args<Own, HostMemory> for Picked<'_> {
    fn views(&mut self) -> Vec<AnyView<'_, HostMemory>> {
        let mut all: Vec<_> = Args::<Rows, _>::views(&mut self.0).into_iter().map(Some).collect();
        self.1.iter().filter_map(|at| all[*at].take()).collect()
    }
}

#[test]
fn views_that_share_a_borrow_are_launched_together() {
    let mut y = [7.0_f32; 4];
    let layout = ViewLayout::vector(2);
    let mut parts = |picked| {
        let output = ViewMut::host_strided(&mut y, ViewLayout::vector(4));
        let args = TensorArgs::new().output_parts(output, &[(0, layout), (2, layout)]);
        kernel(Entry::new("k"), &[]).launch(Picked(args, picked)).map_err(|error| error.to_string())
    };
    let alone = parts(&[1]).unwrap_err();
    assert!(alone.contains("a second view of an output is launched without the first\n  found:    y alone"), "{alone}");
    assert_eq!(parts(&[0]), Ok(()));
    assert_eq!(y, [1.0, 7.0, 7.0, 7.0]);
    // What is read in place is there when it is read, also where the outputs are compared.
    let in_place = Entry::new("k").operand("x", DType::F32, Access::Read, "n:1").in_place();
    let args = TensorArgs::new().input_in_place(0).output(ViewMut::host_strided(&mut y, layout));
    let kernel = kernel(in_place, &["u64"]);
    kernel.check_against(Picked(args, &[0, 1]), |_, at| (if at[0] == 0 { 1.0 } else { 7.0 }, 0.0)).unwrap();
    let args = TensorArgs::new().input_in_place(0).output(ViewMut::host_strided(&mut y, layout));
    assert!(kernel.launch(Picked(args, &[0])).is_err());
}

/// A job is what its fields say. One that is not a launch's own is refused, and is no panic.
#[test]
fn jobs_that_nobody_bound_are_refused() {
    let kernel = kernel(Entry::new("k"), &[]);
    let mut y = [7.0_f32; 4];
    let view = ViewMut::host_strided(&mut y, ViewLayout::vector(4)).raw();
    let binding = kernel.abi().bind(&[view]).unwrap();
    let (launch, tensor) = (binding.launches()[0], binding.tensors()[0].clone());
    let of_launch = |change: &dyn Fn(&mut EntryLaunch)| {
        let mut launch = launch;
        change(&mut launch);
        [launch]
    };
    let of_tensor = |change: &dyn Fn(&mut BoundTensor)| {
        let mut tensor = tensor.clone();
        change(&mut tensor);
        [tensor]
    };
    let map = |rank, param_offset, in_workspace| {
        let spec = TensorMapSpec::matrix(view.ptr, DType::F32, [4, 1], 16, [4, 1], MapSwizzle::None);
        [BoundMap { spec: TensorMapSpec { rank, ..spec }, in_workspace, param_offset }]
    };
    let bound = || Job::from(&binding);
    let launches = [
        of_launch(&|launch| launch.entry = 1),
        of_launch(&|launch| launch.entry = usize::MAX),
        of_launch(&|launch| launch.block = [0, 1, 1]),
        of_launch(&|launch| launch.block = [u32::MAX; 3]),
        of_launch(&|launch| launch.grid = [u32::MAX; 3]),
    ];
    let tensors = [
        of_tensor(&|tensor| tensor.param_offset = 1),
        of_tensor(&|tensor| tensor.param_offset = usize::MAX),
        of_tensor(&|tensor| tensor.view.layout = ViewLayout::vector(5)),
        of_tensor(&|tensor| tensor.view.layout = ViewLayout::strided(&[2], &[-1]).unwrap()),
        of_tensor(&|tensor| tensor.view.layout = ViewLayout::strided(&[2, 2], &[1, 1]).unwrap()),
        of_tensor(&|tensor| tensor.view.available = Elements(5)),
        of_tensor(&|tensor| tensor.view.available = Elements(u64::MAX)),
        of_tensor(&|tensor| tensor.view.ptr -= 4),
        of_tensor(&|tensor| tensor.view.access = Access::Read),
    ];
    let maps =
        [map(6, 0, false), map(u32::MAX, 0, false), map(0, 0, false), map(2, 0, false), map(2, usize::MAX, false)];
    let workspaces = [usize::MAX, 8, 1].map(|param_offset| Workspace { bytes: Bytes(256), param_offset });
    let jobs = (launches.iter().map(|launches| Job { launches, ..bound() }))
        .chain(tensors.iter().map(|tensors| Job { tensors, ..bound() }))
        .chain(maps.iter().map(|tensor_maps| Job { tensor_maps, ..bound() }))
        .chain(workspaces.map(|workspace| Job { workspace: Some(workspace), ..bound() }))
        .chain([&[][..], &[0; 7]].map(|params| Job { params, ..bound() }));
    for (number, job) in jobs.enumerate() {
        let bytes = as_bytes(&mut y);
        let refused = kernel.program().run(&job, &mut [Buffer::Write(bytes)]);
        assert!(refused.is_err(), "job {number}: {refused:?}");
    }
    for buffers in [&mut [Buffer::InPlace(0)][..], &mut [Buffer::InPlace(9)], &mut [Buffer::Read(&[0; 16])], &mut []] {
        assert!(kernel.program().run(&bound(), buffers).is_err(), "{buffers:?}");
    }
    assert_eq!(y, [7.0; 4]);
    kernel.program().run(&bound(), &mut [Buffer::Write(as_bytes(&mut y))]).unwrap();
    assert_eq!(y, [1.0, 7.0, 7.0, 7.0]);
}

fn as_bytes(y: &mut [f32; 4]) -> &mut [u8] {
    // SAFETY: any bytes are values of `f32`.
    unsafe { y.align_to_mut().1 }
}
