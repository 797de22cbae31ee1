//! Contract: device memory that is lent through DLPack is used in the order of its stream, freed behind all that uses
//! it, and refused in words where it lies elsewhere.
#![cfg(all(feature = "cuda", feature = "dlpack", target_os = "linux"))]

use std::sync::Arc;

use crate::driver::{Refusals, artifact, with_driver};
use crate::foreign::{handle, of_raw};
use crate::order::{Order, note};
use cutemplate::interop::dlpack::dlpark::versioned::Dlpack;
use cutemplate::interop::dlpack::{DeviceImport, HostImport, export, export_device};
use cutemplate::launch::cudarc::driver::CudaStream;
use cutemplate::launch::{Gpu, Kernel};
use cutemplate::recipe::ElementwiseAdd;
use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
use cutemplate::view::ViewLayout;
use expect_test::expect;

fn row_major() -> ViewLayout {
    ViewLayout::matrix([2, 3], 3)
}

/// Six elements on a stream of their own, lent for work in another.
fn lent(own: &Arc<CudaStream>, consumer: &Arc<CudaStream>) -> Dlpack {
    let memory = own.clone_htod(&[1.0_f32; 6]).expect("memory");
    export_device(memory, row_major(), consumer).expect("fits")
}

#[test]
fn lent_tensors_are_used_in_the_order_of_their_stream_and_then_freed() {
    let test = "lent::lent_tensors_are_used_in_the_order_of_their_stream_and_then_freed";
    let done = with_driver(test, &[], || {
        let gpu = of_raw(1).expect("the stand-in");
        let kernel = Kernel::<ElementwiseAdd>::load(&gpu, &artifact()).expect("loads");
        // Streams 101 and 102; the consumer's is 900.
        let [own, computing] = [(); 2].map(|()| gpu.context().new_stream().expect("a stream"));
        // SAFETY: the stand-in has no streams.
        let consumer = unsafe { gpu.borrow_stream(handle(900)) };
        // SAFETY: the tensors are ours.
        let import = || unsafe { DeviceImport::new(lent(&own, &consumer), &consumer) }.expect("a tensor");
        let (a, b, mut c) = (import(), import(), import());
        let log = || std::fs::read_to_string(std::env::var_os("STAND_IN_LOG").expect("set")).expect("written");
        let before = log().len();
        let args = ElementwiseAddArgs {
            a: a.view::<f32>().expect("f32"),
            b: b.view().expect("f32"),
            c: c.view_mut().expect("f32"),
        };
        kernel.launch(&computing, args).expect("launches");
        c.give_back().expect("waits");
        drop((a, b));
        log()[before..].to_owned()
    });
    expect![[r#"
        record event 210 stream 900
        wait stream 102 event 210
        record event 211 stream 900
        wait stream 102 event 211
        record event 212 stream 900
        wait stream 102 event 212
        launch
        record event 213 stream 102
        wait stream 900 event 213
        record event 214 stream 102
        wait stream 900 event 214
        record event 215 stream 102
        wait stream 900 event 215
        synchronize 900
        record event 216 stream 900
        wait stream 101 event 216
        wait stream 101 event 207
        wait stream 101 event 208
        free stream 101
        synchronize 900
        record event 217 stream 900
        wait stream 101 event 217
        wait stream 101 event 201
        wait stream 101 event 202
        free stream 101
        synchronize 900
        record event 218 stream 900
        wait stream 101 event 218
        wait stream 101 event 204
        wait stream 101 event 205
        free stream 101
    "#]]
    .assert_eq(&done.told.lines().map(|l| l.split(" grid").next().unwrap_or(l).to_owned() + "\n").collect::<String>());
}

#[test]
fn what_is_lent_is_ready_in_the_consumer_s_stream() {
    let test = "lent::what_is_lent_is_ready_in_the_consumer_s_stream";
    let done = with_driver(test, &[], || {
        let gpu = of_raw(1).expect("the stand-in");
        let own = gpu.stream();
        // SAFETY: the stand-in has no streams.
        let consumer = unsafe { gpu.borrow_stream(handle(900)) };
        let tensor = lent(&own, &consumer);
        let described = tensor.validate_export().expect("right");
        format!("{:?} {:?} {:?}", described.shape(), described.strides(), described.device().device_id)
    });
    assert_eq!(done.told, "[2, 3] Some([3, 1]) 0");
    expect![[r#"
        allocate 24 stream 0
        copy 24 stream 0
        record event 203 stream 0
        wait stream 900 event 203
        record event 204 stream 900
        wait stream 0 event 204
        free stream 0
    "#]]
    .assert_eq(&done.log);
}

#[test]
fn what_is_lent_is_given_back_behind_what_read_it_before() {
    let done = with_driver("lent::what_is_lent_is_given_back_behind_what_read_it_before", &[], || {
        let gpu = of_raw(1).expect("the stand-in");
        let [own, reading, consumer] = [(); 3].map(|()| gpu.context().new_stream().expect("a stream"));
        let memory = own.clone_htod(&[1.0_f32; 6]).expect("memory");
        note(&[0], &[]);
        reading.clone_dtoh(&memory).expect("copied");
        let tensor = export_device(memory, row_major(), &consumer).expect("fits");
        note(&[], &[0]);
        drop(tensor);
        String::new()
    });
    let order = Order::of(&done.log);
    assert_eq!((order.0.len(), order.races()), (2, Vec::new()), "{}", done.log);
}

#[test]
fn tensors_elsewhere_are_refused() {
    let done = with_driver("lent::tensors_elsewhere_are_refused", &[("STAND_IN_DEVICES", "2")], || {
        let [here, there] = [0, 1].map(|ordinal| Gpu::with_ordinal(ordinal).expect("the stand-in").stream());
        let mut told = Refusals::default();
        let on_host = || export(vec![1.0_f32; 6], row_major()).expect("fits");
        // SAFETY: the tensors are ours, and nothing is read.
        unsafe {
            told.add(DeviceImport::new(on_host(), &here));
            told.add(DeviceImport::new(lent(&there, &there), &here));
            told.add(HostImport::new(lent(&here, &here)));
        }
        let memory = here.alloc_zeros::<f32>(6).expect("memory");
        told.add(export_device(memory, ViewLayout::matrix([2, 4], 4), &here));
        told.0
    });
    expect![[r#"
        error[interop]: the tensor lies on another device
          found:    the CPU
          required: memory of a CUDA device or managed memory of CUDA
          because:  whatever runs the kernel reads the elements where they are
          help:     copy the tensor there first
        error[interop]: the tensor lies on another GPU
          found:    CUDA device 1
          required: CUDA device 0, that of the stream
          because:  a kernel is launched in one context
          help:     copy the tensor there first, or pass a stream of its device
        error[interop]: the tensor lies on another device
          found:    CUDA device 0
          required: memory of the CPU or pinned memory of CUDA
          because:  whatever runs the kernel reads the elements where they are
          help:     copy the tensor there first
        error[interop]: the layout reaches past the memory that is lent
          found:    (2,4):(4,1) in 6 elements
          required: 1 + sum((extent-1)*stride) elements, and no extent or stride below 0
          because:  whoever takes the tensor trusts what it says
          help:     lend memory that holds all of it, or a smaller shape
    "#]]
    .assert_eq(&done.told);
}
