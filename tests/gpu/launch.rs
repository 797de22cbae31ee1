//! Contract: what the driver is told is exactly what the plan says; a launch is ordered after earlier work on its memory and
//! later work after it; what is refused is refused in words, before the driver is asked where that is possible.
//!
//! The driver is a stand-in (`support/driver.c`) in a child process, so all of this runs without a GPU.
#![cfg(all(feature = "cuda", target_os = "linux"))]

use crate::driver::{Refusals, artifact, fatbin, with_driver};
use cutemplate::arch::{Arch, Targets};
use cutemplate::dtype::DType;
use cutemplate::launch::{AnyKernel, DeviceTensor, Gpu, Kernel, LaunchError, Protocol};
use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
use cutemplate::recipe::{ElementwiseAdd, Gemm, Recipe};
use cutemplate::units::Elements;
use cutemplate::verify::{Fill, Tensor, TensorLayout};
use cutemplate::view::{Access, View, ViewLayout, ViewMut, ViewRef};
use expect_test::expect;

/// A kernel on the stand-in, with its GPU.
fn loaded() -> (Gpu, Kernel<ElementwiseAdd>) {
    let gpu = Gpu::find().expect("the stand-in");
    let kernel = Kernel::load(&gpu, &artifact()).expect("loads");
    (gpu, kernel)
}

#[test]
fn the_driver_is_told_what_the_plan_says() {
    let done = with_driver("launch::the_driver_is_told_what_the_plan_says", &[], || {
        let (gpu, kernel) = loaded();
        let stream = gpu.stream();
        let a = stream.alloc_zeros::<f32>(1000 * 260).expect("memory");
        let b = stream.alloc_zeros::<f32>(1000 * 257).expect("memory");
        let mut c = stream.alloc_zeros::<f32>(1000 * 300).expect("memory");
        let args = ElementwiseAddArgs {
            a: View::device(&a, [1000, 257], 260),
            b: View::device(&b, [1000, 257], 257),
            c: ViewMut::device(&mut c, [1000, 257], 300),
        };
        let binding = kernel.any().abi().bind(&[args.a.raw(), args.b.raw(), args.c.raw()]).expect("fits");
        kernel.launch(&stream, args).expect("launches");
        let hex: String = binding.params().iter().map(|b| format!("{b:02x}")).collect();
        let [x, y, z] = binding.launches()[0].grid;
        format!("launch grid {x},{y},{z} block 256,1,1 smem 0 stream 0 params {hex}\n")
    });
    assert!(done.log.contains(&done.told), "told {}log {}", done.told, done.log);
    // 1000 x 257 in tiles of (64,256).
    assert!(done.told.starts_with("launch grid 32,1,1 "), "{}", done.told);
    assert!(done.log.contains("load aligned fatbin of 80 bytes\n"), "{}", done.log);
    assert_eq!(done.log.matches("unload\n").count(), 1);
}

/// A load reads what was written down, and plans nothing: the quickest of many takes less than a millisecond, which the
/// stand-in's part is in.
#[test]
fn a_load_takes_less_than_a_millisecond() {
    let done = with_driver("launch::a_load_takes_less_than_a_millisecond", &[], || {
        let gpu = Gpu::find().expect("the stand-in");
        let artifact = artifact();
        let load = |_| {
            let start = std::time::Instant::now();
            let kernel = Kernel::<ElementwiseAdd>::load(&gpu, &artifact).expect("loads");
            let took = start.elapsed();
            drop(kernel);
            took
        };
        let quickest = (0..50).map(load).min().expect("some");
        format!("{} us\n", quickest.as_micros())
    });
    let quickest: u64 = done.told.trim().trim_end_matches(" us").parse().expect("a number");
    assert!(quickest < 1000, "{quickest} us");
}

/// Where its text waits for the kernel before it by itself.
#[test]
fn a_grid_may_begin_while_the_kernel_before_it_ends() {
    let targets = Targets::new([Arch::Sm90a]).expect("not empty");
    let plan = Gemm::default().plan_as("early", &targets).expect("a right recipe").texts()[0].clone();
    let size = plan.params().size().to_string();
    let name = "launch::a_grid_may_begin_while_the_kernel_before_it_ends";
    let done = with_driver(name, &[("STAND_IN_PARAM_SIZE", &size)], || {
        let gpu = Gpu::find().expect("the stand-in");
        // SAFETY: the stand-in runs nothing.
        let kernel = unsafe { AnyKernel::load_unchecked(&gpu, plan.clone(), &fatbin()) }.expect("loads");
        let view = |ptr: u64, shape: [i64; 2], ld: [i64; 2], access| {
            let layout = ViewLayout::strided(&shape, &ld).expect("few elements");
            ViewRef { dtype: DType::F16, ptr: ptr << 32, available: Elements(1 << 28), layout, access }
        };
        // A short one, and one for which it is better not to.
        for extent in [136, 8192] {
            let views = [
                view(1, [extent; 2], [extent, 1], Access::Read),
                view(2, [extent; 2], [1, extent], Access::Read),
                view(3, [extent; 2], [extent, 1], Access::Write),
            ];
            // SAFETY: the stand-in touches no memory.
            unsafe { kernel.launch_raw(gpu.stream().cu_stream().cast(), &views, &[]) }.expect("launches");
        }
        String::new()
    });
    let launches: Vec<&str> = done.log.lines().filter(|line| line.contains("launch grid")).collect();
    assert_eq!(launches.len(), 2, "{}", done.log);
    assert!(launches[0].starts_with("programmatic entry 1: launch grid 2,1,1 block 384,1,1 "), "{}", done.log);
    assert!(launches[1].starts_with("entry 1: launch grid 128,1,1 block 384,1,1 "), "{}", done.log);
    // Of A, B and D, whose boxes have rows of 128 bytes: L2 is to fetch 256, which cuda.h has as 3, where these are whole lines, else 128.
    let maps = ["map promotion 2", "map promotion 3"].map(|map| done.log.matches(map).count());
    assert_eq!(maps, [3, 3], "{}", done.log);
}

#[test]
fn a_stream_and_addresses_of_somebody_else_are_enough() {
    let done = with_driver("launch::a_stream_and_addresses_of_somebody_else_are_enough", &[], || {
        let (gpu, kernel) = loaded();
        let stream = gpu.context().new_stream().expect("a stream");
        let view = |ptr, access| {
            let (layout, available) = (ViewLayout::matrix([1000, 257], 260), Elements(1000 * 260));
            ViewRef { dtype: DType::F32, ptr, available, layout, access }
        };
        let views = [view(1 << 32, Access::Read), view(2 << 32, Access::Read), view(3 << 32, Access::Write)];
        let launch = |views: &[ViewRef]| {
            // SAFETY: the stand-in touches no memory.
            unsafe { kernel.any().launch_raw(stream.cu_stream().cast(), views, &[]) }
        };
        launch(&views).expect("launches");
        let mut told = Refusals::default();
        told.add(launch(&[views[0], views[1], ViewRef { ptr: views[0].ptr + 4, ..views[2] }]));
        told.add(launch(&views[..2]));
        told.0
    });
    assert_eq!(done.log.matches("launch grid 32,1,1 block 256,1,1 smem 0 stream 101 ").count(), 1, "{}", done.log);
    assert_eq!(done.log.matches("launch grid").count(), 1, "{}", done.log);
    assert!(done.told.starts_with("error[CT108]") && done.told.contains("error[CT101]"), "{}", done.told);
}

#[test]
fn a_launch_waits_for_earlier_work_and_later_work_for_the_launch() {
    let done = with_driver("launch::a_launch_waits_for_earlier_work_and_later_work_for_the_launch", &[], || {
        let (gpu, kernel) = loaded();
        // Streams 101 and 102. Two events for each allocation, last read and last write: a 201, 202, b 203, 204,
        // c 205, 206.
        let stream = || gpu.context().new_stream().expect("a stream");
        let (copying, computing) = (stream(), stream());
        let a = copying.clone_htod(&[1.0_f32; 6]).expect("memory");
        let b = copying.clone_htod(&[2.0_f32; 6]).expect("memory");
        let mut c = computing.alloc_zeros::<f32>(6).expect("memory");
        let args = ElementwiseAddArgs {
            a: View::device(&a, [2, 3], 3),
            b: View::device(&b, [2, 3], 3),
            c: ViewMut::device(&mut c, [2, 3], 3),
        };
        kernel.launch(&computing, args).expect("launches");
        drop(a);
        copying.clone_dtoh(&c).expect("copied");
        std::fs::read_to_string(std::env::var_os("STAND_IN_LOG").expect("set")).expect("written")
    });
    let relevant = done.told.lines().map(|l| l.split(" params").next().unwrap_or(l)).filter(|l| !l.starts_with("load"));
    expect![[r#"
        synchronize all
        allocate 24 stream 101
        wait stream 101 event 201
        wait stream 101 event 202
        copy 24 stream 101
        record event 202 stream 101
        allocate 24 stream 101
        wait stream 101 event 203
        wait stream 101 event 204
        copy 24 stream 101
        record event 204 stream 101
        allocate 24 stream 102
        wait stream 102 event 205
        wait stream 102 event 206
        set 24 stream 102
        record event 206 stream 102
        wait stream 101 event 202
        wait stream 101 event 204
        wait stream 102 event 206
        wait stream 102 event 202
        wait stream 102 event 204
        wait stream 102 event 205
        wait stream 102 event 206
        launch grid 1,1,1 block 256,1,1 smem 0 stream 102
        wait stream 102 event 201
        record event 201 stream 102
        wait stream 101 event 201
        wait stream 102 event 203
        record event 203 stream 102
        wait stream 101 event 203
        record event 206 stream 102
        wait stream 101 event 201
        wait stream 101 event 202
        free stream 101
        wait stream 101 event 206
        copy 24 stream 101
        record event 205 stream 101"#]]
    .assert_eq(&relevant.collect::<Vec<_>>().join("\n"));
}

#[test]
fn streams_and_views_of_another_context_are_refused() {
    let done =
        with_driver("launch::streams_and_views_of_another_context_are_refused", &[("STAND_IN_DEVICES", "2")], || {
            let ((gpu, kernel), second) = (loaded(), Gpu::with_ordinal(1).expect("the stand-in"));
            let stream = gpu.stream();
            let far = second.context().default_stream();
            let near_a = stream.alloc_zeros::<f32>(6).expect("memory");
            let far_a = far.alloc_zeros::<f32>(6).expect("memory");
            let b = stream.alloc_zeros::<f32>(6).expect("memory");
            let mut c = stream.alloc_zeros::<f32>(6).expect("memory");
            let mut refused = Refusals::default();
            for (a, on) in [(&far_a, &stream), (&near_a, &far)] {
                let args = ElementwiseAddArgs {
                    a: View::device(a, [2, 3], 3),
                    b: View::device(&b, [2, 3], 3),
                    c: ViewMut::device(&mut c, [2, 3], 3),
                };
                refused.add(kernel.launch(on, args));
            }
            refused.0
        });
    assert!(!done.log.contains("launch"), "nothing was launched");
    expect![[r#"
        A lies in memory of another context than the launch
          because: its events can only be recorded on streams of its own context
          help: copy it to device 0 first
        found a stream of device 1, required one of device 0
          because: a kernel is loaded into one context
          help: load the kernel once for each device
    "#]]
    .assert_eq(&done.told);
}

#[test]
fn views_that_do_not_fit_are_refused_before_the_driver_is_asked() {
    let done = with_driver("launch::views_that_do_not_fit_are_refused_before_the_driver_is_asked", &[], || {
        let (gpu, kernel) = loaded();
        let stream = gpu.stream();
        let a = stream.alloc_zeros::<f32>(12).expect("memory");
        let mut c = stream.alloc_zeros::<f32>(12).expect("memory");
        let (half, mut told) = (a.slice(6..), String::new());
        let huge = i64::MAX;
        for (rows, cols, ld) in [(0, 3, 3), (2, -3, 3), (2, 3, 2), (4, 3, 4), (3, 3, 3), (huge, huge, huge)] {
            let args = ElementwiseAddArgs {
                a: View::device(&half, [2, 3], 3),
                b: View::device(&a, [2, 3], 3),
                c: ViewMut::device(&mut c, [rows, cols], ld),
            };
            let Err(LaunchError::Bind(error)) = kernel.launch(&stream, args) else {
                panic!("({rows},{cols}):({ld},1)")
            };
            let codes: Vec<&str> = error.diagnostics().iter().map(|d| d.code.code()).collect();
            told += &format!("({rows},{cols}):({ld},1) {}\n", codes.join(" "));
        }
        let empty = ElementwiseAddArgs {
            a: View::device(&half, [0, 3], 3),
            b: View::device(&a, [0, 3], 3),
            c: ViewMut::device(&mut c, [0, 3], 3),
        };
        kernel.launch(&stream, empty).expect("there is nothing to launch");
        told
    });
    assert!(!done.log.contains("launch"), "nothing was launched");
    expect![[r#"
        (0,3):(3,1) CT109
        (2,-3):(3,1) CT104
        (2,3):(2,1) CT105
        (4,3):(4,1) CT107
        (3,3):(3,1) CT109
        (9223372036854775807,9223372036854775807):(9223372036854775807,1) CT107
    "#]]
    .assert_eq(&done.told);
}

/// Launches once, with the answers of the driver changed just before.
fn launch_with(setting: &str, value: &str) -> String {
    let (gpu, kernel) = loaded();
    let stream = gpu.context().new_stream().expect("a stream");
    let (a, b) = (stream.alloc_zeros::<f32>(6).expect("memory"), stream.alloc_zeros::<f32>(6).expect("memory"));
    let mut c = stream.alloc_zeros::<f32>(6).expect("memory");
    let args = ElementwiseAddArgs {
        a: View::device(&a, [2, 3], 3),
        b: View::device(&b, [2, 3], 3),
        c: ViewMut::device(&mut c, [2, 3], 3),
    };
    // SAFETY: the child runs this test only, and no other thread of it reads the environment.
    unsafe { std::env::set_var(setting, value) };
    kernel.launch(&stream, args).expect_err("refused").to_string()
}

#[test]
fn a_launch_that_the_driver_refuses() {
    let done = with_driver("launch::a_launch_that_the_driver_refuses", &[], || launch_with("STAND_IN_LAUNCH", "701"));
    expect!["cuLaunchKernel: STAND_IN_ERROR_701 (as it was told to)"].assert_eq(&done.told);
}

#[test]
fn a_launch_whose_events_cannot_be_recorded_is_waited_for() {
    let test = "launch::a_launch_whose_events_cannot_be_recorded_is_waited_for";
    let done = with_driver(test, &[], || launch_with("STAND_IN_RECORD", "400"));
    expect!["cuEventRecord: STAND_IN_ERROR_400 (as it was told to)"].assert_eq(&done.told);
    let (_, after) = done.log.split_once("launch ").expect("a launch");
    assert!(after.contains("synchronize 101\n"), "{after}");
}

#[test]
fn matrices_come_back_from_the_device_byte_for_byte() {
    let done = with_driver("launch::matrices_come_back_from_the_device_byte_for_byte", &[], || {
        let (gpu, kernel) = loaded();
        let stream = gpu.stream();
        let mut m = Tensor::new(DType::F32, TensorLayout::padded(3, 5, 8).at_offset(Elements(1))).expect("small");
        m.fill(Fill::Specials, 4);
        let (device, before) = (DeviceTensor::upload(&stream, &m).expect("memory"), m.clone());
        let mut second = device.try_clone().expect("memory");
        m.storage_mut().fill(0);
        device.download(&stream, &mut m).expect("copied");
        assert!(m.storage() == before.storage());
        assert!(device.view::<half::f16>().is_none() && second.view_mut::<half::f16>().is_none());
        let mut views = [device.any(), device.any(), second.any_mut()];
        let offsets = views.each_ref().map(|v| (v.raw().ptr % 256, v.raw().available.0));
        kernel.any().launch(&stream, &mut views).expect("launches");
        format!("{offsets:?}")
    });
    // Redzones of 4096 bytes and an offset of one element; 2 * 8 + 5 elements from first to last.
    assert_eq!(done.told, "[(4, 21), (4, 21), (4, 21)]");
}

#[cfg(feature = "cli")]
#[test]
fn a_bench_interleaves_kernel_and_copy_and_reports_rates() {
    use crate::lab::{How, against_copy};
    let done = with_driver(
        "launch::a_bench_interleaves_kernel_and_copy_and_reports_rates",
        &[("STAND_IN_L2", "6291456")],
        || {
            let (gpu, kernel) = loaded();
            let protocol =
                Protocol { warmup: 1, timings: 2, batch_seconds: 100e-6, max_batch: 256, rest_seconds: 1e-3 };
            let layout = TensorLayout::contiguous(1024, 1024);
            let report =
                against_copy(&gpu, kernel.any(), &[layout; 3], &[], (Fill::Integers, 1), How::default(), &protocol)
                    .expect("numbers");
            let too_large = against_copy(
                &gpu,
                kernel.any(),
                &[TensorLayout::contiguous(4096, 4096); 3],
                &[],
                (Fill::Integers, 1),
                How::default(),
                &protocol,
            );
            format!("{report}\n{}", too_large.expect_err("256 MiB on the stand-in"))
        },
    );
    // Every event of the stand-in is 50 us after the last, so a batch is two launches.
    expect![[r#"
        add (1024,1024):(1024,1) (1024,1024):(1024,1) (1024,1024):(1024,1), integers inputs, on Stand-in
          kernel  0.503 TB/s, 25.00 us (quartiles 25.00, 25.00)
          copy    0.503 TB/s, 25.00 us for as many bytes
          ratio   1.0000 of the copy; the same kernel twice: 1.0000
          empty   25.00 us for a kernel that does nothing, launched one by one
          2 timings of 2 launches, 2 sets of buffers, not in L2
        found 268435456 B free on the device, required 402653184 B for the operands and as much again for the copy"#]]
    .assert_eq(&done.told);
    let order: String = done
        .log
        .lines()
        .filter_map(|l| match l {
            l if l.starts_with("launch") => Some('k'),
            l if l.starts_with("empty launch") => Some('e'),
            l if l.starts_with("copy 6291456 ") => Some('c'),
            l if l.starts_with("record") => Some('|'),
            _ => None,
        })
        .collect();
    expect!["k|k|c|c|k|k|e|e||kk||cc||kk||ee||kk||cc||kk||ee|"].assert_eq(&order);
}
