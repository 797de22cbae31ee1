//! Without a GPU: the executor by the same calls, and views of the wrong kind of memory.

use std::path::Path;

use super::{Device, DeviceError};
use crate::bundle::Bundle;
use crate::exec::Options;
use crate::recipe::Sum;
use crate::view::{AnyMemory, Arguments, View, ViewLayout, ViewMut};

fn bundle() -> Bundle<'static> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/row_sums/kernels.bundle");
    // SAFETY: the bundle is this repository's.
    unsafe { Bundle::read_unchecked(&path) }.expect("it is whole")
}

fn args<'a>(a: View<'a, f32, AnyMemory>, y: ViewMut<'a, f32, AnyMemory>) -> Arguments<'a, Sum, AnyMemory> {
    Arguments::new().read(a).write(y).scalar(0.5)
}

#[test]
fn a_kernel_runs_on_the_executor_by_the_calls_of_a_gpu() {
    let device = Device::executor(Options::default());
    assert_eq!((device.to_string().as_str(), device.is_gpu()), ("the PTX executor", false));
    let kernel = device.load::<Sum>(&bundle().kernel("row_sums").expect("it is there")).expect("it loads");
    let a = device.put(&[1.0_f32, 2.0, 3.0, 4.0, 5.0, 6.0]).expect("memory");
    let mut y = device.zeros::<f32>(3).expect("memory");
    kernel.launch(args(a.view(ViewLayout::matrix([3, 2], 2)), y.vector_mut())).expect("it runs");
    assert_eq!(y.to_vec().expect("host"), [1.5, 3.5, 5.5]);
    // One row for all three.
    let row = device.put(&[1.0_f32, 2.0]).expect("memory");
    let refused = kernel.launch(args(row.vector(), y.vector_mut())).expect_err("a vector is no matrix").to_string();
    assert!(refused.contains("`View::row(m)` makes one row for all"), "{refused}");
    // Nothing to do.
    let (none, mut sums) = (device.zeros::<f32>(0).expect("memory"), device.zeros::<f32>(0).expect("memory"));
    assert!(none.is_empty());
    kernel.launch(args(none.view(ViewLayout::matrix([0, 2], 2)), sums.vector_mut())).expect("nothing to do");
}

#[test]
fn memory_of_this_process_is_no_memory_of_a_gpu() {
    let elements = [1.0_f32; 4];
    let views = || {
        let view: View<'_, f32, AnyMemory> = View::host_vector(&elements).anywhere();
        vec![view.erase()]
    };
    assert_eq!(AnyMemory::of_host(views()).map(|views| views.len()).ok(), Some(1));
    let error = DeviceError::elsewhere(AnyMemory::of_device(views()).expect_err("a GPU cannot read it"));
    assert_eq!(
        format!("{error:?}"),
        "argument 0: its memory belongs to another device\n  \
         found:    memory of host\n  \
         required: memory of device, which the kernel was loaded on\n  \
         because:  neither can read the memory of the other\n  \
         help:     `put` or `zeros` of the device that the kernel was loaded on make its buffers"
    );
}
