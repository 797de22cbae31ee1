//! Kernels that the build script compiled: a module for each, with typed arguments.

use std::error::Error;

use cutemplate::device::Device;
use cutemplate::view::ViewLayout;

cutemplate::include_kernels!();

/// The sum of each row of a matrix with `columns` columns: on the GPU where there is one, else on the executor.
///
/// # Errors
/// The elements are not whole rows, or the kernel cannot be run.
pub fn sums_of_rows(elements: &[f32], columns: usize) -> Result<Vec<f32>, Box<dyn Error>> {
    if columns == 0 || !elements.len().is_multiple_of(columns) {
        return Err(format!(
            "found {} elements, required whole rows of {columns}",
            elements.len()
        )
        .into());
    }
    let [rows, columns] = [elements.len() / columns, columns].map(|extent| extent as i64);
    let device = Device::auto();
    let kernel = row_sums::load(&device)?;
    let (a, mut sums) = (device.put(elements)?, device.zeros::<f32>(rows as usize)?);
    kernel.launch(row_sums::args(
        a.view(ViewLayout::matrix([rows, columns], columns)),
        sums.vector_mut(),
    ))?;
    Ok(sums.to_vec()?)
}
