//! Contract: a context and a stream that something else made are as good as our own, stay theirs, and order launches.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use core::ffi::c_void;
use core::ptr;

use crate::driver::{Refusals, artifact, with_driver};
use cutemplate::launch::{Gpu, Kernel};
use cutemplate::recipe::ElementwiseAdd;
use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
use cutemplate::units::Elements;
use cutemplate::view::{View, ViewLayout, ViewMut};
use expect_test::expect;

/// Handles as the stand-in makes them: the primary context of device 1, and one of its own.
const PRIMARY: usize = 2;
const OWN: usize = 42;

pub(crate) fn handle(number: usize) -> *mut c_void {
    ptr::without_provenance_mut(number)
}

pub(crate) fn of_raw(context: usize) -> Result<Gpu, cutemplate::launch::NoGpu> {
    // SAFETY: the stand-in touches no context.
    unsafe { Gpu::from_raw_context(handle(context)) }
}

#[test]
fn a_primary_context_is_shared_and_another_is_never_destroyed() {
    let test = "foreign::a_primary_context_is_shared_and_another_is_never_destroyed";
    let done = with_driver(test, &[("STAND_IN_DEVICES", "2")], || {
        let told = [PRIMARY, OWN].map(|number| {
            let gpu = of_raw(number).expect("the stand-in");
            let context = gpu.context();
            assert_eq!(context.cu_ctx().cast::<c_void>(), handle(number));
            let kernel = Kernel::<ElementwiseAdd>::load(&gpu, &artifact()).expect("loads");
            drop((kernel, gpu.clone()));
            format!("device {}, primary {}\n", context.ordinal(), context.is_primary())
        });
        told.concat()
    });
    assert_eq!(done.told, "device 1, primary true\ndevice 1, primary false\n");
    assert_eq!(done.log.matches("unload\n").count(), 2, "{}", done.log);
    assert!(!done.log.contains("destroy context"), "{}", done.log);
}

#[test]
fn a_primary_context_that_is_not_there_is_not_made() {
    let test = "foreign::a_primary_context_that_is_not_there_is_not_made";
    // Retaining it would fail.
    let settings = [("STAND_IN_DEVICES", "2"), ("STAND_IN_ACTIVE", "0"), ("STAND_IN_CONTEXT", "2")];
    let done = with_driver(test, &settings, || of_raw(OWN).expect("the stand-in").context().is_primary().to_string());
    assert_eq!(done.told, "false");
}

#[test]
fn handles_that_are_no_contexts_are_refused() {
    let done = with_driver("foreign::handles_that_are_no_contexts_are_refused", &[], || {
        let mut told = Refusals::default();
        told.add(of_raw(0));
        told.add(of_raw(10));
        // SAFETY: the child runs this test only, and no other thread of it reads the environment.
        unsafe {
            std::env::set_var("STAND_IN_ACTIVE", "0");
            std::env::set_var("STAND_IN_CURRENT", "3");
        }
        told.add(of_raw(OWN - 1));
        told.0
    });
    assert!(!done.log.contains("destroy context"), "{}", done.log);
    expect![[r#"
        no GPU: found no context: the handle is null
          help: make a context current first, as cudaFree(nullptr) does, and pass what cuCtxGetCurrent gives
        no GPU: cuCtxGetDevice: STAND_IN_ERROR_201 (as it was told to)
          help: pass a CUcontext of this process, as cuCtxGetCurrent gives it
        no GPU: cuCtxSetCurrent: STAND_IN_ERROR_3 (as it was told to)
          help: nvidia-smi shows whether the driver works
    "#]]
    .assert_eq(&done.told);
}

/// What was launched, recorded and waited for.
fn order(log: &str) -> String {
    let lines = log.lines().filter(|l| ["wait", "record", "launch", "copy"].iter().any(|word| l.starts_with(word)));
    lines.map(|l| l.split(" grid").next().unwrap_or(l).to_owned() + "\n").collect()
}

#[test]
fn a_launch_in_a_borrowed_stream_is_ordered_against_the_memory_s_own() {
    let test = "foreign::a_launch_in_a_borrowed_stream_is_ordered_against_the_memory_s_own";
    let done = with_driver(test, &[], || {
        let gpu = of_raw(1).expect("the stand-in");
        let kernel = Kernel::load(&gpu, &artifact()).expect("loads");
        // SAFETY: the stand-in has no streams.
        let stream = unsafe { gpu.borrow_stream(handle(900)) };
        let own = gpu.stream();
        let a = own.clone_htod(&[1.0_f32; 6]).expect("memory");
        let mut c = own.alloc_zeros::<f32>(6).expect("memory");
        let layout = ViewLayout::matrix([2, 3], 3);
        let args = ElementwiseAddArgs {
            a: View::device(&a, [2, 3], 3),
            // SAFETY: the stand-in touches no memory.
            b: unsafe { View::from_raw_parts(1 << 40, Elements(6), layout) },
            c: ViewMut::device(&mut c, [2, 3], 3),
        };
        kernel.launch(&stream, args).expect("launches");
        own.clone_dtoh(&c).expect("copied");
        String::new()
    });
    expect![[r#"
        copy 24 stream 0
        record event 205 stream 0
        wait stream 900 event 205
        record event 206 stream 0
        wait stream 900 event 206
        launch
        wait stream 900 event 201
        record event 201 stream 900
        wait stream 0 event 201
        record event 204 stream 900
        wait stream 0 event 204
        copy 24 stream 0
    "#]]
    .assert_eq(&order(&done.log));
}

#[test]
fn a_launch_that_cannot_be_ordered_is_none() {
    let done = with_driver("foreign::a_launch_that_cannot_be_ordered_is_none", &[], || {
        let kernel = Kernel::<ElementwiseAdd>::load(&of_raw(1).expect("the stand-in"), &artifact()).expect("loads");
        // Memory and stream are of another object for the same context.
        let gpu = of_raw(1).expect("the stand-in");
        // SAFETY: the stand-in has no streams.
        let (own, stream) = (gpu.stream(), unsafe { gpu.borrow_stream(handle(900)) });
        let [a, b] = [(); 2].map(|()| own.alloc_zeros::<f32>(6).expect("memory"));
        let mut c = own.alloc_zeros::<f32>(6).expect("memory");
        let args = ElementwiseAddArgs {
            a: View::device(&a, [2, 3], 3),
            b: View::device(&b, [2, 3], 3),
            c: ViewMut::device(&mut c, [2, 3], 3),
        };
        // SAFETY: the child runs this test only, and no other thread of it reads the environment.
        unsafe { std::env::set_var("STAND_IN_RECORD", "400") };
        kernel.launch(&stream, args).expect_err("refused").to_string()
    });
    expect!["cuStreamWaitEvent: STAND_IN_ERROR_400 (as it was told to)"].assert_eq(&done.told);
    assert!(!done.log.contains("launch grid"), "{}", done.log);
}

#[test]
fn a_context_of_this_cudarc_is_taken_as_it_is() {
    let done = with_driver("foreign::a_context_of_this_cudarc_is_taken_as_it_is", &[], || {
        let theirs = cutemplate::launch::cudarc::driver::CudaContext::new(0).expect("the stand-in");
        let gpu = Gpu::with_context(theirs.clone()).expect("the stand-in");
        assert!(std::sync::Arc::ptr_eq(gpu.context(), &theirs));
        gpu.to_string()
    });
    assert_eq!(done.told, "Stand-in, compute capability 9.0, 132 SMs, driver for CUDA 13.0");
}
