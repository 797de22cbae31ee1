//! `npy_saxpy ALPHA A.npy B.npy Y.npy` writes Y = ALPHA * A + B for matrices of f32: on the GPU if there is one, else
//! on the PTX executor.

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

use cutemplate::device::Device;
use cutemplate::dtype::DType;
use cutemplate::verify::{Tensor, npy};
use cutemplate::view::ViewLayout;

cutemplate::include_kernels!();

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [alpha, a, b, y] => run(alpha, [a, b, y].map(Path::new)),
        _ => Err("usage: npy_saxpy ALPHA A.npy B.npy Y.npy".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// The rows and columns of a file, and its elements by rows.
fn read(path: &Path) -> Result<([i64; 2], Vec<f32>), Box<dyn Error>> {
    let array = npy::open(path, DType::F32)?;
    let &[m, n] = array.shape() else {
        return Err(format!("{}: found {} axes, required 2", path.display(), array.shape().len()).into());
    };
    let layout = ViewLayout::row_major(&[m, n]).ok_or("more elements than an address reaches")?;
    let mut tensor = Tensor::new(DType::F32, layout)?;
    array.read_into(&mut tensor)?;
    Ok(([m, n], tensor.to_vec().unwrap_or_default()))
}

fn run(alpha: &str, [a, b, y]: [&Path; 3]) -> Result<(), Box<dyn Error>> {
    let alpha: f64 = alpha.parse()?;
    let (([m, n], a), (other, b)) = (read(a)?, read(b)?);
    if other != [m, n] {
        return Err(format!("found matrices of {m} x {n} and {} x {}, required one shape", other[0], other[1]).into());
    }
    let device = Device::auto();
    let kernel = saxpy::load(&device)?;
    let (on_a, on_b, mut sums) = (device.put(&a)?, device.put(&b)?, device.zeros::<f32>(a.len())?);
    let rows = ViewLayout::matrix([m, n], n);
    kernel.launch(saxpy::args(on_a.view(rows), on_b.view(rows), sums.view_mut(rows), alpha))?;
    eprintln!("{m} x {n} on {device}");
    let tensor = Tensor::of(&sums.to_vec()?, &[m, n]).ok_or("too little memory")?;
    Ok(npy::write(y, &tensor)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_scaled_and_added_to_another() {
        let folder = std::env::temp_dir().join(format!("npy_saxpy-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let [a, b, y] = ["a", "b", "y"].map(|name| folder.join(format!("{name}.npy")));
        let elements = |scale: f32| (0_u8..35).map(|x| scale * f32::from(x)).collect::<Vec<f32>>();
        for (path, scale) in [(&a, 2.0), (&b, 0.5)] {
            npy::write(path, &Tensor::of(&elements(scale), &[5, 7]).expect("35 elements")).expect("written");
        }
        run("0.25", [&a, &b, &y]).expect("runs");
        assert_eq!(read(&y).expect("written"), ([5, 7], elements(1.0)));
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
