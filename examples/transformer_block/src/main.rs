//! `transformer_block FOLDER HEADS` reads x.npy and the weights of a block from a folder, as `block.py` makes them, and writes y.npy and
//! what the steps before left: the forward pass in f16 with sums of f32, on the GPU if there is one, else on the PTX executor.

mod block;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use cutemplate::device::{Buffer, Device};
use cutemplate::dtype::{DType, f16};
use cutemplate::verify::{Tensor, npy};
use cutemplate::view::ViewLayout;

use crate::block::{Block, Failed, Linear, Norm, Sizes, Weights};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [folder, heads] => run(Path::new(folder), heads),
        _ => Err("usage: transformer_block FOLDER HEADS".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// A folder with a file for each tensor.
struct Folder<'a> {
    path: &'a Path,
    device: Device,
}

/// The shape of a file, and its elements by rows.
fn read(path: &Path) -> Result<(Vec<i64>, Vec<f16>), Failed> {
    let array = npy::open(path, DType::F16)?;
    let layout = ViewLayout::row_major(array.shape()).ok_or("more elements than an address reaches")?;
    let shape = array.shape().to_vec();
    let mut tensor = Tensor::new(DType::F16, layout)?;
    array.read_into(&mut tensor)?;
    Ok((shape, tensor.to_vec().unwrap_or_default()))
}

impl Folder<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.npy"))
    }

    /// A tensor of the machine, where the file has this shape.
    fn tensor(&self, name: &str, shape: &[i64]) -> Result<Buffer<f16>, Failed> {
        let (found, elements) = read(&self.file(name))?;
        if found != shape {
            return Err(format!("{}: found {found:?}, required {shape:?}", self.file(name).display()).into());
        }
        Ok(self.device.put(&elements)?)
    }

    fn linear(&self, name: &str, [inputs, outputs]: [i64; 2]) -> Result<Linear, Failed> {
        let weights = self.tensor(&format!("{name}_weights"), &[inputs, outputs])?;
        Ok(Linear { inputs, weights, bias: self.tensor(&format!("{name}_bias"), &[outputs])? })
    }

    fn norm(&self, name: &str, features: i64) -> Result<Norm, Failed> {
        let scale = self.tensor(&format!("{name}_scale"), &[features])?;
        Ok(Norm { scale, shift: self.tensor(&format!("{name}_shift"), &[features])? })
    }

    fn weights(&self, sizes: Sizes) -> Result<Weights, Failed> {
        let Sizes { features, hidden, .. } = sizes;
        let square = [features, features];
        Ok(Weights {
            attention_norm: self.norm("attention_norm", features)?,
            query: self.linear("query", square)?,
            key: self.linear("key", square)?,
            value: self.linear("value", square)?,
            out: self.linear("out", square)?,
            hidden_norm: self.norm("hidden_norm", features)?,
            expand: self.linear("expand", [features, hidden])?,
            contract: self.linear("contract", [hidden, features])?,
        })
    }

    fn forward(&self, heads: i64) -> Result<(), Failed> {
        let (shape, x) = read(&self.file("x"))?;
        let (expand, _) = read(&self.file("expand_bias"))?;
        let (&[tokens, features], &[hidden]) = (&shape[..], &expand[..]) else {
            return Err(format!("x.npy: found {shape:?}, required tokens and features").into());
        };
        if heads < 1 || features % heads != 0 {
            return Err(format!("found {features} features and {heads} heads, required as many for each head").into());
        }
        let sizes = Sizes { tokens, features, heads, hidden };
        let block = Block::new(&self.device, sizes)?;
        for step in block.forward(&self.device.put(&x)?, &self.weights(sizes)?)? {
            let values = Tensor::of(&step.values.to_vec()?, &step.shape).ok_or("too little memory")?;
            npy::write(&self.file(step.name), &values)?;
        }
        Ok(())
    }
}

fn run(path: &Path, heads: &str) -> Result<(), Failed> {
    let heads = heads.parse()?;
    let device = Device::auto();
    eprintln!("on {device}");
    Folder { path, device }.forward(heads)
}
