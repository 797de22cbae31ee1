//! A layer relu(A @ B + bias) whose kernel is chosen at each launch by the size of the batch.

use std::error::Error;

use cutemplate::device::Device;
use cutemplate::dtype::f16;
use cutemplate::recipe::product::{Major, Problem};
use cutemplate::view::ViewLayout;

cutemplate::include_kernels!();

fn main() -> Result<(), Box<dyn Error>> {
    let device = Device::auto();
    // Each kernel is loaded once. A launch takes one of them.
    let kernels = layer::load(&device)?;
    for [m, n, k] in [[5, 64, 96], [3000, 16, 32]] {
        let problem = Problem { b: Major::Col, ..Problem::rows(m, n, k) };
        let index = layer::index(&problem).ok_or("the layer's problems lie so")?;
        let [m, n, k] = [m, n, k].map(|extent| extent as i64);
        let a: Vec<f16> = (0..m * k).map(|i| f16::from_f32((i % 5 - 2) as f32)).collect();
        let weights: Vec<f16> = (0..n * k).map(|i| f16::from_f32((i % 7 - 3) as f32)).collect();
        let bias: Vec<f16> = (0..n).map(|i| f16::from_f32(i as f32)).collect();

        let (on_a, on_b, on_bias) = (device.put(&a)?, device.put(&weights)?, device.put(&bias)?);
        let mut on_d = device.zeros::<f16>((m * n) as usize)?;
        kernels[index].launch(layer::args(
            on_a.view(ViewLayout::matrix([m, k], k)),
            on_b.view(ViewLayout::strided(&[k, n], &[1, k]).ok_or("few elements")?),
            on_bias.vector().row(m),
            on_d.view_mut(ViewLayout::matrix([m, n], n)),
        ))?;

        let expected = |at: usize| -> f32 {
            let (row, column) = (at / n as usize * k as usize, at % n as usize * k as usize);
            let products = (0..k as usize).map(|i| a[row + i].to_f32() * weights[column + i].to_f32());
            f16::from_f32((products.sum::<f32>() + bias[at % n as usize].to_f32()).max(0.0)).to_f32()
        };
        let d = on_d.to_vec()?;
        let wrong = d.iter().enumerate().filter(|(at, d)| d.to_f32() != expected(*at)).count();
        println!("{m} x {n} x {k} by layer_{index} on {device}: {wrong} wrong");
        if wrong > 0 {
            return Err("the result differs from relu(A @ B + bias)".into());
        }
    }
    Ok(())
}
