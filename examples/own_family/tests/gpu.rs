//! Contract: on a GPU the kernel is right as well, with guards around and between its elements.

use std::error::Error;

use cutemplate::arch::Targets;
use cutemplate::dtype::{DType, E4m3};
use cutemplate::launch::{DeviceTensor, Gpu, Kernel};
use cutemplate::recipe::{Recipe, TensorArgs};
use cutemplate::verify::{self, Fill, Tensor, TensorLayout};
use gated_family::Gated;
use half::bf16;
use own_family::gated;

#[test]
#[ignore = "needs a GPU"]
fn every_element_is_right() -> Result<(), Box<dyn Error>> {
    let plan = Gated { dtype: DType::Bf16, ..Gated::default() }.plan_as("gated", &Targets::default())?;
    let gpu = Gpu::find()?;
    let stream = gpu.context().default_stream();
    let kernel = Kernel::<gated::Recipe>::load(&gpu, &gated::ARTIFACT)?;
    for (m, n, fill) in [(67, 384, Fill::Normal), (1, 128, Fill::Specials), (300, 1024, Fill::Specials)] {
        let padded = |dtype| Tensor::new(dtype, TensorLayout::padded(m, n, n + 4));
        let (mut gate, mut up) = (padded(DType::Bf16)?, padded(DType::Bf16)?);
        gate.fill(fill, 1);
        up.fill(fill, 2);
        let mut outputs = [padded(DType::E4m3)?, Tensor::new(DType::F32, TensorLayout::contiguous(m, n / 128))?];
        verify::fill_unwritten(&plan, &[&gate, &up], &[], &mut outputs)?;
        let [gate_dev, up_dev, mut q_dev, mut s_dev] = [
            DeviceTensor::upload(&stream, &gate)?,
            DeviceTensor::upload(&stream, &up)?,
            DeviceTensor::upload(&stream, &outputs[0])?,
            DeviceTensor::upload(&stream, &outputs[1])?,
        ];
        let missing = "another type";
        kernel.launch(
            &stream,
            TensorArgs::new()
                .input(gate_dev.view::<bf16>().ok_or(missing)?)
                .input(up_dev.view::<bf16>().ok_or(missing)?)
                .output(q_dev.view_mut::<E4m3>().ok_or(missing)?)
                .output(s_dev.view_mut::<f32>().ok_or(missing)?),
        )?;
        for (device, output) in [&q_dev, &s_dev].into_iter().zip(&mut outputs) {
            device.download(&stream, output)?;
        }
        for verdict in verify::check(&plan, &[&gate, &up], &[], &[&outputs[0], &outputs[1]])? {
            assert!(verdict.is_right(), "{m}x{n} {fill}: {verdict}");
        }
    }
    Ok(())
}
