//! The program of the README: C = A + B on the GPU if there is one, else on the PTX executor, through the same calls.

use cutemplate::{device::Device, view::ViewLayout};

cutemplate::include_kernels!();

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (m, n) = (1023, 511);
    let a: Vec<f32> = (0..m * n).map(|i| (i % 1000) as f32).collect();
    let b = vec![0.5_f32; a.len()];

    let device = Device::auto();
    let kernel = vector_add::load(&device)?;
    let (on_a, on_b, mut on_c) = (device.put(&a)?, device.put(&b)?, device.zeros::<f32>(a.len())?);
    let rows = ViewLayout::matrix([m, n], n);
    kernel.launch(vector_add::args(on_a.view(rows), on_b.view(rows), on_c.view_mut(rows)))?;
    let c = on_c.to_vec()?;

    let right = a.iter().zip(&b).zip(&c).all(|((a, b), c)| a + b == *c);
    println!("{m} x {n} elements on {device}: {}", if right { "right" } else { "wrong" });
    if right { Ok(()) } else { Err("the result differs from a + b".into()) }
}
