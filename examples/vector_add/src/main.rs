//! C = A + B on the GPU if there is one, else on the PTX executor, through the same calls.

use std::error::Error;

use cutemplate::device::Device;
use cutemplate::view::ViewLayout;

cutemplate::include_kernels!();

fn main() -> Result<(), Box<dyn Error>> {
    let [m, n] = [1023_i64, 511];
    let len = usize::try_from(m * n)?;
    let a: Vec<f32> = (0_u16..1000).cycle().take(len).map(f32::from).collect();
    let b: Vec<f32> = (0_u16..77).cycle().take(len).map(|x| 0.5 * f32::from(x)).collect();

    let device = Device::auto();
    let kernel = vector_add::load(&device)?;
    let (on_a, on_b, mut on_c) = (device.put(&a)?, device.put(&b)?, device.zeros::<f32>(len)?);
    let rows = ViewLayout::matrix([m, n], n);
    kernel.launch(vector_add::args(on_a.view(rows), on_b.view(rows), on_c.view_mut(rows)))?;
    let c = on_c.to_vec()?;

    let wrong = a.iter().zip(&b).zip(&c).filter(|((a, b), c)| (*a + *b).to_bits() != c.to_bits()).count();
    println!("vector_add: {m} x {n} elements on {device}, {wrong} wrong");
    if wrong == 0 { Ok(()) } else { Err("the result differs from a + b".into()) }
}
