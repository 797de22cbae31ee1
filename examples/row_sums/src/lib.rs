//! Sums along rows: a library that ships its kernel compiled. Who uses it needs no nvcc, and nothing of cutemplate.

use std::error::Error;

use cutemplate::device::Device;
use cutemplate::view::ViewLayout;

mod kernels {
    cutemplate::include_kernels!();
}
use kernels::row_sums;

/// `alpha` times the sum of each row of a matrix with `columns` columns: on the GPU if there is one, else on the PTX
/// executor.
///
/// ```
/// assert_eq!(row_sums::scaled(&[1.0, 2.0, 3.0, 4.0], 2, 0.5)?, [1.5, 3.5]);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
///
/// # Errors
/// The elements are not whole rows, or the kernel cannot be run.
pub fn scaled(elements: &[f32], columns: usize, alpha: f64) -> Result<Vec<f32>, Box<dyn Error + Send + Sync>> {
    if columns == 0 || !elements.len().is_multiple_of(columns) {
        return Err(format!("found {} elements, required whole rows of {columns}", elements.len()).into());
    }
    let rows = elements.len() / columns;
    let device = Device::auto();
    let kernel = row_sums::load(&device)?;
    let (a, mut sums) = (device.put(elements)?, device.zeros::<f32>(rows)?);
    let (m, n) = (i64::try_from(rows)?, i64::try_from(columns)?);
    kernel.launch(row_sums::args(a.view(ViewLayout::matrix([m, n], n)), sums.vector_mut(), alpha))?;
    Ok(sums.to_vec()?)
}

#[cfg(test)]
mod tests {
    #[test]
    fn rows_are_summed_and_halves_are_refused() {
        let elements: Vec<f32> = (0_u8..12).map(f32::from).collect();
        assert_eq!(super::scaled(&elements, 4, 1.0).expect("runs"), [6.0, 22.0, 38.0]);
        let refused = super::scaled(&elements, 5, 1.0).expect_err("refused").to_string();
        assert_eq!(refused, "found 12 elements, required whole rows of 5");
    }
}
