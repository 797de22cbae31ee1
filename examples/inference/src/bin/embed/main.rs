//! `embed FOLDER HEADS KEY_HEADS CAUSAL LEFT RIGHT` reads sequences and the weights of a transformer from a folder, as `embed.py` makes
//! them, and writes what each step leaves. CAUSAL is 1 where a token sees none behind it, else 0. It sees LEFT tokens ahead of it and RIGHT
//! behind it, or all for -1.

mod block;
#[path = "../../folder.rs"]
mod folder;
#[path = "../../ops.rs"]
mod ops;

use std::path::Path;
use std::process::ExitCode;

use cutemplate::device::{Buffer, Device, Number};
use cutemplate::dtype::f16;

use crate::block::{Blocks, Layer, Model, Sequences, Sight, Sizes};
use crate::folder::{Failed, Folder};
use crate::ops::HEAD;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((folder, numbers)) if numbers.len() == 5 => run(Path::new(folder), numbers),
        _ => Err("usage: embed FOLDER HEADS KEY_HEADS CAUSAL LEFT RIGHT".into()),
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
    /// A tensor for each of the first mode of a file.
    fn each<T: Number>(&self, name: &str, shape: &[i64]) -> Result<Vec<Buffer<T>>, Failed> {
        let (found, elements) = self.read::<T>(name)?;
        if found != shape {
            return Err(format!("{}: found {found:?}, required {shape:?}", self.file(name).display()).into());
        }
        let size = shape[1..].iter().product::<i64>().max(1) as usize;
        elements.chunks(size).map(|elements| Ok(self.device.put(elements)?)).collect()
    }

    fn model(&self, vocabulary: i64, layers: i64, sizes: Sizes) -> Result<Model, Failed> {
        let Sizes { features, heads, key_heads, hidden } = sizes;
        let of = |name, inputs, outputs| self.each::<f16>(name, &[layers, inputs, outputs]);
        let qkv = of("qkv_weights", features, (heads + 2 * key_heads) * HEAD)?;
        let out = of("out_weights", heads * HEAD, features)?;
        let gate_up = of("gate_up_weights", features, 2 * hidden)?;
        let down = of("down_weights", hidden, features)?;
        let mut norms = self.each("norms", &[layers + 1, features])?.into_iter();
        let first_norm = norms.next().ok_or("found no norms")?;
        let norms = self.each("hidden_norms", &[layers, features])?.into_iter().zip(norms);
        let layers = qkv.into_iter().zip(out).zip(gate_up.into_iter().zip(down)).zip(norms);
        let layers = layers.map(|(((qkv, out), (gate_up, down)), (hidden_norm, next_norm))| Layer {
            qkv,
            out,
            hidden_norm,
            gate_up,
            down,
            next_norm,
        });
        let layers = layers.collect();
        Ok(Model { table: self.tensor("table", &[vocabulary, features])?, first_norm, layers })
    }

    /// Sequences of one token and more, which begin at the first and end at the last.
    fn sequences(&self, tokens: i64) -> Result<Sequences, Failed> {
        let (_, starts) = self.read::<i32>("starts")?;
        let follows = starts.windows(2).all(|of| of[0] < of[1]);
        let (first, last) = (starts.first().copied(), starts.last().copied().map(i64::from));
        if first != Some(0) || last != Some(tokens) || !follows {
            return Err(format!("starts.npy: found {starts:?}, required rising numbers from 0 to {tokens}").into());
        }
        let positions = starts.windows(2).flat_map(|of| 0..i64::from(of[1] - of[0])).collect();
        Ok(Sequences { starts: self.device.put(&starts)?, positions, all: self.device.put(&[i32::try_from(tokens)?])? })
    }

    fn embed(&self, [heads, key_heads, causal, left, right]: [i64; 5]) -> Result<(), Failed> {
        if key_heads < 1 || heads % key_heads != 0 {
            return Err(format!("found {heads} heads and {key_heads} of keys, required a multiple of them").into());
        }
        let ((table, _), (down, _), (ids, of)) =
            (self.read::<f16>("table")?, self.read::<f16>("down_weights")?, self.read("ids")?);
        let (&[vocabulary, features], &[layers, hidden, _], &[tokens]) = (&table[..], &down[..], &ids[..]) else {
            let found = format!("found table {table:?}, down_weights {down:?}, ids {ids:?}");
            return Err(format!("{found}, required 2, 3 and 1 axes").into());
        };
        let sizes = Sizes { features, heads, key_heads, hidden };
        let (model, sequences) = (self.model(vocabulary, layers, sizes)?, self.sequences(tokens)?);
        let slopes = self.tensor("slopes", &[heads])?;
        let window = [left, right].map(|tokens| (tokens >= 0).then_some(tokens));
        let sight = Sight { causal: causal != 0, window, slopes: Some(&slopes) };
        let ids = self.device.put::<i32>(&of)?;
        self.write(&Blocks::new(&self.device)?.forward(&ids, &model, sizes, &sequences, &sight)?)
    }
}

fn run(path: &Path, numbers: &[String]) -> Result<(), Failed> {
    let mut all = [0; 5];
    for (to, from) in all.iter_mut().zip(numbers) {
        *to = from.parse()?;
    }
    let device = Device::auto();
    eprintln!("on {device}");
    Folder { path, device }.embed(all)
}
