//! Whether kernels are right, before they are timed: by cuBLAS's product of the same matrices.

use std::sync::Arc;

use cutemplate::dtype::DType;
use cutemplate::launch::cudarc::driver::CudaStream;
use cutemplate::launch::{AnyKernel, DeviceTensor};
use cutemplate::plan::{Abi, Plan, Product, SCALED_K};
use cutemplate::verify::{Baseline, Fill, Tensor, TensorLayout, Verdict, check_against};
use cutemplate::view::Access;

use super::BenchError;
use super::baseline::Library;
use super::buffers::views;

/// The operands of a product, here and on the device, and what cuBLAS makes of them.
pub(super) struct Trial {
    /// A, B, .., D; D is as no right kernel leaves it.
    tensors: Vec<Tensor>,
    on_device: Vec<DeviceTensor>,
    product: Tensor,
    sizes: Tensor,
    /// The verdicts, with the D and E that they belong to: most kernels form sums in the same order.
    judged: Vec<(Vec<Tensor>, Verdict)>,
}

impl Trial {
    /// Operands of a plan in these layouts, from a seed.
    pub(super) fn new(
        stream: &Arc<CudaStream>,
        library: &Library,
        plan: &Plan,
        layouts: &[TensorLayout],
        inputs: (Fill, u64),
    ) -> Result<Self, BenchError> {
        let tensors = operands(plan, layouts, inputs)?;
        let on_device: Vec<DeviceTensor> =
            tensors.iter().map(|t| DeviceTensor::upload(stream, t)).collect::<Result<_, _>>()?;
        let ([a, b, ..], [.., d]) = (&tensors[..], &tensors[..]) else { return Err(BenchError::Nothing) };
        // In f32 whatever D is, so that only the kernel rounds sums to its type.
        let mut product = Tensor::new(DType::F32, d.layout())?;
        product.fill_unwritten();
        let mut sizes = product.clone();
        let unwritten = DeviceTensor::upload(stream, &product)?;
        let multiply = |a: &DeviceTensor, b: &DeviceTensor, product: &mut Tensor| -> Result<(), BenchError> {
            let mut on = unwritten.try_clone()?;
            library.product(&a.any().raw(), &b.any().raw(), &on.any_mut().raw())?;
            Ok(on.download(stream, product)?)
        };
        // The library sums up all 8-bit floats in few bits, and gives sums of integers in i32 alone, but not those of the f16 that all are.
        let is_narrow = |t: &Tensor| matches!(t.dtype(), DType::E4m3 | DType::E5m2 | DType::I8);
        if is_narrow(a) {
            let scaled = plan.product().and_then(Product::block_scales).zip(tensors.split_last());
            let (mut a, mut b) = match scaled {
                Some(([rows, columns], (_, [.., of_a, of_b]))) => {
                    (a.scaled(of_a, &[rows, SCALED_K])?, b.scaled(of_b, &[SCALED_K, columns])?)
                }
                _ => (a.to_f16()?, b.to_f16()?),
            };
            multiply(&DeviceTensor::upload(stream, &a)?, &DeviceTensor::upload(stream, &b)?, &mut product)?;
            for factor in [&mut a, &mut b] {
                factor.make_absolute();
            }
            multiply(&DeviceTensor::upload(stream, &a)?, &DeviceTensor::upload(stream, &b)?, &mut sizes)?;
        } else {
            multiply(&on_device[0], &on_device[1], &mut product)?;
            let size = |t: &Tensor| {
                let mut t = t.clone();
                t.make_absolute();
                DeviceTensor::upload(stream, &t)
            };
            multiply(&size(a)?, &size(b)?, &mut sizes)?;
        }
        Ok(Self { tensors, on_device, product, sizes, judged: Vec::new() })
    }

    /// The operands on the device, for measurements after the verdict.
    pub(super) fn into_operands(self) -> Vec<DeviceTensor> {
        self.on_device
    }

    /// Launches a kernel once and says what is wrong with every element of D.
    pub(super) fn judge(
        &mut self,
        stream: &Arc<CudaStream>,
        kernel: &AnyKernel,
        scalars: &[f64],
    ) -> Result<Verdict, BenchError> {
        // What is read comes first.
        let operands = kernel.plan().operands();
        let (read, unwritten) = self.tensors.split_at(operands.iter().filter(|o| o.access == Access::Read).count());
        let mut written = unwritten.to_vec();
        for (on, unwritten) in self.on_device.iter_mut().skip(read.len()).zip(unwritten) {
            *on = DeviceTensor::upload(stream, unwritten)?;
        }
        kernel.launch_with(stream, &mut views(kernel, &mut self.on_device), scalars)?;
        for (on, written) in self.on_device.iter().skip(read.len()).zip(&mut written) {
            on.download(stream, written)?;
        }
        let alike = |known: &[Tensor]| known.iter().zip(&written).all(|(x, y)| x.storage() == y.storage());
        if let Some((_, verdict)) = self.judged.iter().find(|(known, _)| alike(known)) {
            return Ok(verdict.clone());
        }
        let (inputs, outputs): (Vec<&Tensor>, Vec<&Tensor>) = (read.iter().collect(), written.iter().collect());
        let baseline = Baseline { product: &self.product, sizes: &self.sizes };
        let verdicts = check_against(kernel.plan(), &inputs, scalars, &outputs, baseline)?;
        // The first that is wrong, or that of D.
        let wrong = verdicts.iter().find(|verdict| !verdict.is_right()).or(verdicts.last());
        let verdict = wrong.cloned().ok_or(BenchError::Nothing)?;
        self.judged.push((written, verdict.clone()));
        Ok(verdict)
    }
}

/// The operands: inputs from a seed, and outputs filled with values that no right kernel leaves.
pub(super) fn operands(
    abi: &Abi,
    layouts: &[TensorLayout],
    (fill, seed): (Fill, u64),
) -> Result<Vec<Tensor>, BenchError> {
    let shapes: Vec<&[i64]> = layouts.iter().map(|layout| layout.layout.shape()).collect();
    let problem = abi.problem_shape().and_then(|shape| Some((shape, shape.problem_of(&shapes)?)));
    let numbers = |operand| problem.as_ref().and_then(|(shape, problem)| shape.numbers(operand, problem));
    let make = |(index, (operand, layout)): (u64, (&cutemplate::plan::Operand, &TensorLayout))| {
        let mut tensor = Tensor::new(operand.dtype, *layout)?;
        match operand.access {
            Access::Read | Access::ReadWrite => {
                tensor.fill_of(numbers(index as usize), fill, seed.wrapping_add(index));
            }
            Access::Write => tensor.fill_unwritten(),
        }
        Ok(tensor)
    };
    (0..).zip(abi.operands().iter().zip(layouts)).map(make).collect()
}
