//! Kernels in hand-written CUDA C++: rotary embedding with CuTe, and a stencil in plain CUDA. `build.rs` declares and compiles them.

use std::error::Error;

use cutemplate::exec;
use cutemplate::launch::{Gpu, Kernel};
use cutemplate::view::{View, ViewLayout, ViewMut};

mod kernels {
    cutemplate::include_kernels!();
}
pub use kernels::{rope, stencil};

/// `centre * x` plus `side` times the sum of the six neighbours of each point of a grid `[nz, ny, nx]` without gaps: on the GPU if there is
/// one, else on the PTX executor.
///
/// ```
/// let mut y = vec![0.0; 27];
/// own_cuda::seven_points(&[1.0; 27], &mut y, [3, 3, 3], [-6.0, 1.0])?;
/// assert_eq!((y[13], y[0]), (0.0, -3.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// The slices are not of that grid, or the kernel cannot be run.
pub fn seven_points(x: &[f32], y: &mut [f32], shape: [i64; 3], [centre, side]: [f32; 2]) -> Result<(), Box<dyn Error>> {
    let layout = ViewLayout::row_major(&shape).ok_or("a grid beyond all addresses")?;
    match Gpu::find() {
        Ok(gpu) => {
            let (stream, kernel) = (gpu.stream(), Kernel::<stencil::Entry>::load(&gpu, &stencil::ARTIFACT)?);
            let (x, mut out) = (stream.clone_htod(x)?, stream.alloc_zeros::<f32>(y.len())?);
            let to = ViewMut::device_strided(&mut out, layout);
            let args = stencil::args(View::device_strided(&x, layout), to, centre, side);
            // SAFETY: a thread reads points of x inside of the grid and writes one point of y; the tests look for anything else.
            unsafe { kernel.launch_unvouched(&stream, args)? };
            stream.memcpy_dtoh(&out, y)?;
        }
        Err(_) => {
            let kernel = exec::Kernel::<stencil::Entry>::load(&stencil::ARTIFACT)?;
            let (x, y) = (View::host_strided(x, layout), ViewMut::host_strided(y, layout));
            kernel.launch(stencil::args(x, y, centre, side))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
