//! The calls to the driver for kernels of several entries. The driver is a stand-in in a child process, as in
//! `tests/gpu/launch.rs`.

use super::*;
use crate::dtype::f16;
use crate::launch::loaded::aligned;
use crate::plan::tests::two_passes;
use crate::plan::{Abi, Draft};
use crate::units::Elements;
use crate::view::{View, ViewLayout, ViewMut};

#[path = "../../../../tests/support/driver.rs"]
#[allow(dead_code, reason = "the integration tests use all of it")]
mod driver;

use driver::{fatbin, with_driver};

/// The size of the parameter struct.
const SIZE: (&str, &str) = ("STAND_IN_PARAM_SIZE", "40");

#[test]
fn the_aligned_copy_has_the_same_bytes() {
    for len in [0, 1, 8, 21] {
        let bytes: Vec<u8> = (1..=len).collect();
        let copied: Vec<u8> = aligned(&bytes).iter().flat_map(|word| word.to_ne_bytes()).collect();
        assert_eq!((&copied[..bytes.len()], copied.len()), (&bytes[..], bytes.len().next_multiple_of(8)));
    }
}

fn load(gpu: &Gpu) -> Result<AnyKernel, LoadError> {
    // SAFETY: the stand-in runs nothing.
    unsafe { AnyKernel::load_unchecked(gpu, two_passes(), &fatbin()) }
}

fn loaded() -> (Gpu, AnyKernel) {
    let gpu = Gpu::find().expect("the stand-in");
    let kernel = load(&gpu).expect("loads");
    (gpu, kernel)
}

/// Launches it on A `(m,k)` and C `(m,n)`: two entries where A has more than 8 elements.
fn launch(kernel: &AnyKernel, stream: &Arc<CudaStream>, [m, n, k]: [i64; 3]) -> Result<(), LaunchError> {
    let on = |ptr, cols| {
        let layout = ViewLayout::matrix([m, cols], cols);
        (ptr, Elements(layout.span().unwrap_or(0)), layout)
    };
    let ((a, in_a, of_a), (c, in_c, of_c)) = (on(0x1000, k), on(0x2000, n));
    // SAFETY: the stand-in touches no memory.
    let (a, mut c) = unsafe {
        (View::<f16, DeviceMemory>::from_raw_parts(a, in_a, of_a), ViewMut::<f16, _>::from_raw_parts(c, in_c, of_c))
    };
    let mut views = [a.erase(), c.erase()];
    kernel.launch(stream, &mut views)
}

/// The log from a line on.
fn from<'a>(log: &'a str, first: &str) -> Vec<&'a str> {
    log.lines().skip_while(|line| !line.starts_with(first)).collect()
}

#[test]
fn entries_are_launched_in_order_around_a_workspace_of_the_stream() {
    let name = "run::launch::kernel::tests::entries_are_launched_in_order_around_a_workspace_of_the_stream";
    let done = with_driver(name, &[SIZE], || {
        let (gpu, kernel) = loaded();
        let stream = gpu.context().new_stream().expect("a stream");
        launch(&kernel, &stream, [3, 2, 8]).expect("launches");
        launch(&kernel, &gpu.stream(), [3, 2, 8]).expect("launches");
        String::new()
    });
    // More than 48 KiB of shared memory has to be allowed, once.
    assert_eq!(done.log.matches("set attribute 8 to 65536").count(), 1, "{}", done.log);
    assert_eq!(from(&done.log, "create pool")[1], "set attribute 4 of the pool to ffffffffffffffff");
    let log = from(&done.log, "from the pool");
    let [allocated, first, second, freed, other, _, _, _, end @ ..] = &log[..] else { panic!("{}", done.log) };
    assert_eq!((*allocated, *freed), ("from the pool: allocate 24 stream 101", "free stream 101"));
    assert_eq!(*other, "from the pool: allocate 24 stream 0");
    let params = |line: &str, expected: &str| {
        let (launch, params) = line.split_once(" params ").expect("a launch");
        assert_eq!(launch, expected);
        params.to_owned()
    };
    let bytes = params(first, "launch grid 2,3,1 block 256,1,1 smem 65536 stream 101");
    assert_eq!(
        params(second, "entry 1: launch grid 2,3,1 block 128,1,1 smem 0 stream 101"),
        bytes,
        "one struct for both"
    );
    assert!(bytes.starts_with("00100000000000000020000000000000") && bytes.len() == 80, "{bytes}");
    assert_ne!(&bytes[64..], "0000000000000000", "the address of the workspace");
    // The pool is destroyed with the kernel.
    assert!(end.contains(&"destroy pool") && end.contains(&"unload"), "{end:?}");
}

#[test]
fn a_launch_takes_no_more_than_it_needs() {
    let done = with_driver("run::launch::kernel::tests::a_launch_takes_no_more_than_it_needs", &[SIZE], || {
        let (gpu, kernel) = loaded();
        launch(&kernel, &gpu.stream(), [0, 5, 3]).expect("nothing to launch");
        launch(&kernel, &gpu.stream(), [2, 2, 2]).expect("launches");
        String::new()
    });
    assert_eq!(done.log.matches("launch grid").count(), 1, "{}", done.log);
    assert!(done.log.contains("\nlaunch grid 2,2,1 ") && !done.log.contains("allocate"), "{}", done.log);
}

#[test]
fn what_was_allocated_is_freed_where_an_entry_fails() {
    let settings = [SIZE, ("STAND_IN_LAUNCH", "1")];
    let done =
        with_driver("run::launch::kernel::tests::what_was_allocated_is_freed_where_an_entry_fails", &settings, || {
            let (gpu, kernel) = loaded();
            launch(&kernel, &gpu.stream(), [3, 2, 8]).expect_err("refused").to_string()
        });
    assert_eq!(done.told, "cuLaunchKernel: STAND_IN_ERROR_1 (as it was told to)");
    assert_eq!(done.log.matches("launch grid").count(), 1, "the second entry is not launched: {}", done.log);
    assert_eq!(done.log.matches("allocate 24").count(), done.log.matches("free stream ").count());
}

#[test]
fn each_entry_is_compared_with_the_plan() {
    let refused = |name: &str, settings: &[(&str, &str)]| {
        let name = format!("run::launch::kernel::tests::{name}");
        with_driver(&name, settings, || {
            let gpu = Gpu::find().expect("the stand-in");
            load(&gpu).expect_err("refused").to_string()
        })
        .told
    };
    let this = "each_entry_is_compared_with_the_plan";
    // Only the first entry is there.
    let told = refused(this, &[SIZE, ("STAND_IN_ENTRY", "two_passes")]);
    assert_eq!(told, "kernel `two_passes_reduce`: cuModuleGetFunction: STAND_IN_ERROR_500 (as it was told to)");
    let told = refused(this, &[SIZE, ("STAND_IN_MAX_THREADS", "128")]);
    assert!(told.starts_with("kernel `two_passes`: found room for 128 threads"), "{told}");
    let told = refused(this, &[SIZE, ("STAND_IN_POOL", "801")]);
    assert_eq!(told, "kernel `two_passes`: cuMemPoolCreate: STAND_IN_ERROR_801 (as it was told to)");
}

#[test]
fn a_fatbin_of_another_text_does_not_reach_the_driver() {
    let name = "run::launch::kernel::tests::a_fatbin_of_another_text_does_not_reach_the_driver";
    let done = with_driver(name, &[SIZE], || {
        let gpu = Gpu::find().expect("the stand-in");
        let bytes = fatbin();
        let vouched = |plan: &Plan| crate::fatbin::Vouched::new(&bytes, plan.abi().digest());
        let mut other = two_passes();
        other.abi = Abi::new(Draft { name: "another".into(), ..other.abi().draft().clone() });
        let refused = AnyKernel::load(&gpu, two_passes(), vouched(&other)).expect_err("refused").to_string();
        AnyKernel::load(&gpu, two_passes(), vouched(&two_passes())).expect("its own");
        refused
    });
    assert!(
        done.told.starts_with("kernel `two_passes`: its fatbin was not made of this plan's text\n"),
        "{}",
        done.told
    );
    assert_eq!(done.log.matches("fatbin of 80 bytes").count(), 1, "{}", done.log);
}
