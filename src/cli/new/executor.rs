//! Every element is right, on the executor, which runs the PTX that nvcc made: no GPU is needed. It also finds elements outside of
//! tensors, uninitialised reads and races.

use cutemplate::exec::Kernel;
use cutemplate::view::{View, ViewLayout, ViewMut};

use @crate@::{fused, scale, sums_of_rows};

type Done = Result<(), Box<dyn std::error::Error>>;

/// Small integers, so that results are exact.
fn integers(count: usize) -> Vec<f32> {
    (0..count).map(|i| (i * 7 % 13) as f32 - 6.0).collect()
}

#[test]
fn rows_are_summed() -> Done {
    let elements = integers(5 * 300);
    let sums: Vec<f32> = elements.chunks(300).map(|row| row.iter().sum()).collect();
    assert_eq!(sums_of_rows(&elements, 300)?, sums);
    Ok(())
}

#[test]
fn the_function_is_computed_at_every_element() -> Done {
    let (m, n) = (33, 100);
    let x = integers(3300);
    let (gain, bias, mut y) = (
        vec![0.5_f32; 3300],
        vec![1.0_f32; 3300],
        vec![0.0_f32; 3300],
    );
    let kernel = Kernel::<fused::Recipe>::load(&fused::ARTIFACT)?;
    let [of_x, of_gain, of_bias] = [&x, &gain, &bias].map(|of| View::host(of, [m, n], n));
    let args = fused::args(of_x, of_gain, of_bias, ViewMut::host(&mut y, [m, n], n));
    kernel.check_against(args, |_, at| {
        let x = f64::from(x[(at[0] * n + at[1]) as usize]);
        // The value, and the largest error of a right kernel: 0, since every step is exact here.
        ((x * 0.5 + 1.0).max(0.0), 0.0)
    })?;
    Ok(())
}

#[test]
fn every_element_is_scaled() -> Done {
    let x = integers(1000);
    let mut y = vec![0.0_f32; 1000];
    let layout = ViewLayout::row_major(&[1000]).ok_or("a layout")?;
    let args = scale::args(
        View::host_strided(&x, layout),
        ViewMut::host_strided(&mut y, layout),
        2.0,
    );
    let kernel = Kernel::<scale::Entry>::load(&scale::ARTIFACT)?;
    kernel.check_against(args, |_, at| (2.0 * f64::from(x[at[0] as usize]), 0.0))?;
    Ok(())
}
