//! C = A + B on the GPU if there is one, else on the PTX executor, through the same typed arguments.

use std::error::Error;
use std::process::ExitCode;

use cutemplate::exec;
use cutemplate::launch::{Gpu, Kernel};
use cutemplate::recipe::elementwise_add::ElementwiseAddArgs;
use cutemplate::view::{View, ViewMut};

include!(concat!(env!("OUT_DIR"), "/cutemplate.rs"));

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let [m, n] = [1023_i64, 511];
    let len = usize::try_from(m * n)?;
    let a: Vec<f32> = (0_u16..1000).cycle().take(len).map(f32::from).collect();
    let b: Vec<f32> = (0_u16..77).cycle().take(len).map(|x| 0.5 * f32::from(x)).collect();
    let mut c = vec![f32::NAN; len];

    let device = match Gpu::find() {
        Ok(gpu) => {
            on_gpu(&gpu, &a, &b, &mut c, [m, n])?;
            gpu.name().to_owned()
        }
        Err(reason) => {
            eprintln!("{reason}");
            let kernel = exec::Kernel::<vector_add::Recipe>::load(&vector_add::ARTIFACT)?;
            kernel.launch(ElementwiseAddArgs {
                a: View::host(&a, [m, n], n),
                b: View::host(&b, [m, n], n),
                c: ViewMut::host(&mut c, [m, n], n),
            })?;
            "the PTX executor".to_owned()
        }
    };

    let wrong = a.iter().zip(&b).zip(&c).filter(|((a, b), c)| (*a + *b).to_bits() != c.to_bits()).count();
    println!("vector_add: {m} x {n} elements on {device}, {wrong} wrong");
    if wrong == 0 { Ok(()) } else { Err("the result differs from a + b".into()) }
}

fn on_gpu(gpu: &Gpu, a: &[f32], b: &[f32], c: &mut [f32], [m, n]: [i64; 2]) -> Result<(), Box<dyn Error>> {
    let stream = gpu.context().default_stream();
    let kernel = Kernel::<vector_add::Recipe>::load(gpu, &vector_add::ARTIFACT)?;
    let (a_dev, b_dev) = (stream.clone_htod(a)?, stream.clone_htod(b)?);
    let mut c_dev = stream.alloc_zeros::<f32>(c.len())?;
    kernel.launch(
        &stream,
        ElementwiseAddArgs {
            a: View::device(&a_dev, [m, n], n),
            b: View::device(&b_dev, [m, n], n),
            c: ViewMut::device(&mut c_dev, [m, n], n),
        },
    )?;
    stream.memcpy_dtoh(&c_dev, c)?;
    Ok(())
}
