//! Sums along rows of tensors that somebody lends through DLPack: PyTorch's and CuPy's on the GPU where they are, in
//! the stream that they work in; NumPy's on the PTX executor. `sums.py` calls it from Python, with nothing but ctypes.

use std::error::Error;
use std::ffi::{CString, c_char, c_void};
use std::ptr;

use cutemplate::exec;
use cutemplate::interop::dlpack::dlpark::ffi::{DLDeviceType, DLManagedTensor};
use cutemplate::interop::dlpack::dlpark::legacy::Dlpack;
use cutemplate::interop::dlpack::{DeviceImport, HostImport};
use cutemplate::launch::{Gpu, Kernel};

mod kernels {
    cutemplate::include_kernels!();
}
use kernels::row_sums;

/// Writes `alpha` times the sum of each row of `a` into `y`, both of f32; `a` has contiguous rows. Both are given back,
/// whatever happens. On a GPU the work is in `stream`, and was waited for.
///
/// # Safety
/// Both are DLPack tensors that nobody has taken yet, and what they say of their memory is so. `stream` is a `CUstream`
/// of the primary context of their GPU, or null, and both are ready for work in it.
///
/// # Errors
/// The tensors do not fit the kernel, or it cannot be run.
pub unsafe fn row_sums(
    a: *mut DLManagedTensor,
    y: *mut DLManagedTensor,
    alpha: f64,
    stream: *mut c_void,
) -> Result<(), Box<dyn Error>> {
    // SAFETY: as for this function; both are owned before anything is refused.
    let (a, y) = unsafe { (Dlpack::from_raw(a), Dlpack::from_raw(y)) };
    let (a, y) = (a?, y?);
    let device = a.validate()?.device();
    if device.device_type == DLDeviceType::CPU {
        // SAFETY: as for this function.
        let (a, mut y) = unsafe { (HostImport::new(a)?, HostImport::new(y)?) };
        let kernel = exec::Kernel::load(&row_sums::ARTIFACT)?;
        return Ok(kernel.launch(row_sums::args(a.view()?, y.view_mut()?, alpha))?);
    }
    let gpu = Gpu::with_ordinal(usize::try_from(device.device_id)?)?;
    // SAFETY: as for this function.
    let stream = unsafe { gpu.borrow_stream(stream) };
    // SAFETY: as for this function.
    let (a, mut y) = unsafe { (DeviceImport::new(a, &stream)?, DeviceImport::new(y, &stream)?) };
    let kernel = Kernel::load(&gpu, &row_sums::ARTIFACT)?;
    kernel.launch(&stream, row_sums::args(a.view()?, y.view_mut()?, alpha))?;
    Ok(y.give_back()?)
}

/// [`row_sums`] for C: null, or a message that [`dlpack_sums_free`] frees.
///
/// # Safety
/// As [`row_sums`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlpack_row_sums(
    a: *mut DLManagedTensor,
    y: *mut DLManagedTensor,
    alpha: f64,
    stream: *mut c_void,
) -> *mut c_char {
    // SAFETY: as for this function.
    match unsafe { row_sums(a, y, alpha, stream) } {
        Ok(()) => ptr::null_mut(),
        Err(error) => CString::new(error.to_string()).unwrap_or_default().into_raw(),
    }
}

/// Frees a message.
///
/// # Safety
/// It is one of [`dlpack_row_sums`], not freed yet, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn dlpack_sums_free(message: *mut c_char) {
    if !message.is_null() {
        // SAFETY: as for this function.
        drop(unsafe { CString::from_raw(message) });
    }
}
