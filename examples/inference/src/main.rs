//! `inference FOLDER HEADS KEY_HEADS` reads ids.npy and the weights of a decoder from a folder, as `decoder.py` makes them, and writes what
//! each step leaves: the forward pass in f16 and 8-bit floats, on the GPU if there is one, else on the PTX executor.

mod decoder;
mod folder;
mod ops;

use std::path::Path;
use std::process::ExitCode;

use cutemplate::device::Device;
use cutemplate::dtype::f16;

use crate::decoder::{Decoder, Scaled, Sizes, Weights, blocks_of};
use crate::folder::{Failed, Folder};
use crate::ops::HEAD;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [folder, heads, key_heads] => run(Path::new(folder), [heads, key_heads]),
        _ => Err("usage: inference FOLDER HEADS KEY_HEADS".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

impl Folder<'_> {
    /// 8-bit floats, and the scales of their blocks.
    fn scaled(&self, name: &str, shape: [i64; 2]) -> Result<Scaled, Failed> {
        let blocks = shape.map(blocks_of);
        let (bits, scales) = (format!("{name}_weights"), format!("{name}_weight_scales"));
        Ok(Scaled { bits: self.tensor(&bits, &shape)?, scales: self.tensor(&scales, &blocks)? })
    }

    fn weights(&self, sizes: Sizes) -> Result<Weights, Failed> {
        let Sizes { vocabulary, features, heads, key_heads, experts, hidden, .. } = sizes;
        Ok(Weights {
            table: self.tensor("table", &[vocabulary, features])?,
            attention_norm: self.tensor("attention_norm", &[features])?,
            qkv: self.scaled("qkv", [(heads + 2 * key_heads) * HEAD, features])?,
            out: self.scaled("out", [features, heads * HEAD])?,
            hidden_norm: self.tensor("hidden_norm", &[features])?,
            router: self.tensor("router_weights", &[features, experts])?,
            gate_up: self.tensor("gate_up_weights", &[experts, features, 2 * hidden])?,
            down: self.tensor("down_weights", &[experts, hidden, features])?,
            final_norm: self.tensor("final_norm", &[features])?,
            unembed: self.scaled("unembed", [vocabulary, features])?,
        })
    }

    /// What the files and the command line say, together.
    fn sizes(&self, ids: &[i64], [heads, key_heads]: [i64; 2]) -> Result<Sizes, Failed> {
        let ((table, _), (down, _)) = (self.read::<f16>("table")?, self.read::<f16>("down_weights")?);
        let (&[tokens], &[vocabulary, features], &[experts, hidden, _]) = (ids, &table[..], &down[..]) else {
            return Err(
                format!("found ids {ids:?}, table {table:?}, down_weights {down:?}, required 1, 2 and 3 axes").into()
            );
        };
        if key_heads < 1 || heads % key_heads != 0 {
            return Err(format!("found {heads} heads and {key_heads} of keys, required a multiple of them").into());
        }
        Ok(Sizes { tokens, vocabulary, features, heads, key_heads, experts, hidden })
    }

    fn forward(&self, heads: [i64; 2]) -> Result<(), Failed> {
        let (shape, ids) = self.read::<i32>("ids")?;
        let sizes = self.sizes(&shape, heads)?;
        let decoder = Decoder::new(&self.device, sizes)?;
        let steps = decoder.forward(&self.device.put(&ids)?, &self.weights(sizes)?)?;
        self.write(&steps)?;
        let all: Vec<f32> = steps.0.last().and_then(|(_, logs)| logs.to_vec()).unwrap_or_default();
        let last = all.chunks(sizes.vocabulary.max(1) as usize).next_back().unwrap_or_default();
        match last.iter().enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b)) {
            Some((token, log)) => println!("next: token {token}, with probability {:.4}", log.exp()),
            None => println!("no token"),
        }
        Ok(())
    }
}

fn run(path: &Path, [heads, key_heads]: [&str; 2]) -> Result<(), Failed> {
    let heads = [heads.parse()?, key_heads.parse()?];
    let device = Device::auto();
    eprintln!("on {device}");
    Folder { path, device }.forward(heads)
}
