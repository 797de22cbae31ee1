//! The forward pass, by 8 kernels in 19 launches.

use cutemplate::dtype::f16;
use cutemplate::view::ViewLayout;

use crate::machine::{Failed, Machine};

include!(concat!(env!("OUT_DIR"), "/cutemplate.rs"));

/// Extents of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) tokens: i64,
    pub(crate) features: i64,
    pub(crate) heads: i64,
    /// Features between the two products behind the attention.
    pub(crate) hidden: i64,
}

/// A matrix `(inputs,outputs)`, contiguous along its outputs, and one bias for each of them.
pub(crate) struct Linear<B> {
    pub(crate) inputs: i64,
    pub(crate) weights: B,
    pub(crate) bias: B,
}

/// Scale and shift of each feature.
pub(crate) struct Norm<B> {
    pub(crate) scale: B,
    pub(crate) shift: B,
}

/// What a block has learnt.
pub(crate) struct Weights<B> {
    pub(crate) attention_norm: Norm<B>,
    pub(crate) query: Linear<B>,
    pub(crate) key: Linear<B>,
    pub(crate) value: Linear<B>,
    pub(crate) out: Linear<B>,
    pub(crate) hidden_norm: Norm<B>,
    pub(crate) expand: Linear<B>,
    pub(crate) contract: Linear<B>,
}

/// Its kernels on a machine.
struct Kernels<M: Machine> {
    linear: M::Kernel<linear::Recipe>,
    expand: M::Kernel<expand::Recipe>,
    scores: M::Kernel<scores::Recipe>,
    mean: M::Kernel<mean::Recipe>,
    deviations: M::Kernel<deviations::Recipe>,
    normalise: M::Kernel<normalise::Recipe>,
    exp_sums: M::Kernel<exp_sums::Recipe>,
    softmax: M::Kernel<softmax::Recipe>,
}

/// A block whose kernels are loaded.
pub(crate) struct Block<'m, M: Machine> {
    machine: &'m M,
    kernels: Kernels<M>,
    sizes: Sizes,
    /// For what is added and is not there.
    nothing: M::Buffer<f16>,
}

/// What a step of the forward pass leaves.
pub(crate) struct Step<M: Machine> {
    pub(crate) name: &'static str,
    pub(crate) shape: Vec<i64>,
    pub(crate) values: M::Buffer<f16>,
}

type Matrix<M> = <M as Machine>::Buffer<f16>;

/// A layout of few extents.
fn strided<const N: usize>(shape: [i64; N], stride: [i64; N]) -> Result<ViewLayout, Failed> {
    ViewLayout::strided(&shape, &stride).ok_or_else(|| "found more than 5 modes".into())
}

impl<'m, M: Machine> Block<'m, M> {
    pub(crate) fn new(machine: &'m M, sizes: Sizes) -> Result<Self, Failed> {
        let kernels = Kernels {
            linear: machine.load(&linear::ARTIFACT)?,
            expand: machine.load(&expand::ARTIFACT)?,
            scores: machine.load(&scores::ARTIFACT)?,
            mean: machine.load(&mean::ARTIFACT)?,
            deviations: machine.load(&deviations::ARTIFACT)?,
            normalise: machine.load(&normalise::ARTIFACT)?,
            exp_sums: machine.load(&exp_sums::ARTIFACT)?,
            softmax: machine.load(&softmax::ARTIFACT)?,
        };
        let nothing = machine.zeros((sizes.tokens * sizes.features) as usize)?;
        Ok(Self { machine, kernels, sizes, nothing })
    }

    /// `y = x1 + contract(gelu(expand(norm(x1))))` for `x1 = x + out(attention(norm(x)))`: every step, y last.
    pub(crate) fn forward(&self, x: &Matrix<M>, w: &Weights<Matrix<M>>) -> Result<Vec<Step<M>>, Failed> {
        let Sizes { tokens, features, heads, hidden } = self.sizes;
        let normal = self.norm(x, &w.attention_norm)?;
        let query = self.linear(&normal, &w.query, None)?;
        let key = self.linear(&normal, &w.key, None)?;
        let value = self.linear(&normal, &w.value, None)?;
        let parts = self.attention(&query, &key)?;
        let mixed = self.mix(&parts, &value)?;
        let x1 = self.linear(&mixed, &w.out, Some(x))?;
        let hidden_normal = self.norm(&x1, &w.hidden_norm)?;
        let wide = self.expand(&hidden_normal, &w.expand)?;
        let y = self.linear(&wide, &w.contract, Some(&x1))?;
        let step = |name, shape: &[i64], values| Step { name, shape: shape.to_vec(), values };
        let row = [tokens, features];
        Ok(vec![
            step("normal", &row, normal),
            step("query", &row, query),
            step("key", &row, key),
            step("value", &row, value),
            step("parts", &[heads, tokens, tokens], parts),
            step("mixed", &row, mixed),
            step("x1", &row, x1),
            step("hidden_normal", &row, hidden_normal),
            step("hidden", &[tokens, hidden], wide),
            step("y", &row, y),
        ])
    }

    /// `(x - mean) / sqrt(variance + 1e-5) * scale + shift`, along rows.
    fn norm(&self, x: &Matrix<M>, norm: &Norm<Matrix<M>>) -> Result<Matrix<M>, Failed> {
        let Sizes { tokens, features, .. } = self.sizes;
        let (kernels, machine) = (&self.kernels, self.machine);
        let rows = strided([tokens, features], [features, 1])?;
        // One number for each row, and one for each column.
        let (by_row, by_column) = (strided([tokens, features], [1, 0])?, strided([tokens, features], [0, 1])?);
        let (each, part) = (strided([tokens], [1])?, 1.0 / features as f64);
        let mut mean = machine.zeros::<f32>(tokens as usize)?;
        machine.launch(&kernels.mean, mean::args(M::view(x, rows), M::view_mut(&mut mean, each), part))?;
        let mut variance = machine.zeros::<f32>(tokens as usize)?;
        let args = deviations::args(M::view(x, rows), M::view(&mean, by_row), M::view_mut(&mut variance, each), part);
        machine.launch(&kernels.deviations, args)?;
        let mut y = machine.zeros((tokens * features) as usize)?;
        let args = normalise::args(
            M::view(x, rows),
            M::view(&mean, by_row),
            M::view(&variance, by_row),
            M::view(&norm.scale, by_column),
            M::view(&norm.shift, by_column),
            M::view_mut(&mut y, rows),
        );
        machine.launch(&kernels.normalise, args)?;
        Ok(y)
    }

    /// `x @ weights + bias`, and with a residual that: as many features as x has.
    fn linear(
        &self,
        x: &Matrix<M>,
        linear: &Linear<Matrix<M>>,
        residual: Option<&Matrix<M>>,
    ) -> Result<Matrix<M>, Failed> {
        let (Sizes { tokens, features, .. }, inputs) = (self.sizes, linear.inputs);
        let mut y = self.machine.zeros((tokens * features) as usize)?;
        let rows = |rows, cols| strided([rows, cols, 1], [cols, 1, rows * cols]);
        let args = linear::args(
            M::view(x, rows(tokens, inputs)?),
            M::view(&linear.weights, rows(inputs, features)?),
            M::view(residual.unwrap_or(&self.nothing), rows(tokens, features)?),
            M::view(&linear.bias, strided([tokens, features, 1], [0, 1, 0])?),
            M::view_mut(&mut y, rows(tokens, features)?),
            if residual.is_some() { 1.0 } else { 0.0 },
        );
        self.machine.launch(&self.kernels.linear, args)?;
        Ok(y)
    }

    /// `gelu(x @ weights + bias)`.
    fn expand(&self, x: &Matrix<M>, linear: &Linear<Matrix<M>>) -> Result<Matrix<M>, Failed> {
        let Sizes { tokens, features, hidden, .. } = self.sizes;
        let mut y = self.machine.zeros((tokens * hidden) as usize)?;
        let args = expand::args(
            M::view(x, strided([tokens, features], [features, 1])?),
            M::view(&linear.weights, strided([features, hidden], [hidden, 1])?),
            M::view(&linear.bias, strided([tokens, hidden], [0, 1])?),
            M::view_mut(&mut y, strided([tokens, hidden], [hidden, 1])?),
        );
        self.machine.launch(&self.kernels.expand, args)?;
        Ok(y)
    }

    /// `softmax(query @ key^T / sqrt(width))` for each head, whose features lie side by side.
    fn attention(&self, query: &Matrix<M>, key: &Matrix<M>) -> Result<Matrix<M>, Failed> {
        let Sizes { tokens, features, heads, .. } = self.sizes;
        let (kernels, machine, width) = (&self.kernels, self.machine, features / heads);
        // Tokens by features of a head, and the transpose of that; tokens by tokens.
        let head = strided([tokens, width, heads], [features, 1, width])?;
        let turned = strided([width, tokens, heads], [1, features, width])?;
        let pairs = strided([tokens, tokens, heads], [tokens, 1, tokens * tokens])?;
        let all = heads * tokens;
        let rows = strided([all, tokens], [tokens, 1])?;
        let mut scores = machine.zeros::<f32>((all * tokens) as usize)?;
        let scale = 1.0 / (width as f64).sqrt();
        let args = scores::args(M::view(query, head), M::view(key, turned), M::view_mut(&mut scores, pairs), scale);
        machine.launch(&kernels.scores, args)?;
        let mut sums = machine.zeros::<f32>(all as usize)?;
        let args = exp_sums::args(M::view(&scores, rows), M::view_mut(&mut sums, strided([all], [1])?));
        machine.launch(&kernels.exp_sums, args)?;
        let mut parts = machine.zeros((all * tokens) as usize)?;
        let by_row = strided([all, tokens], [1, 0])?;
        let args = softmax::args(M::view(&scores, rows), M::view(&sums, by_row), M::view_mut(&mut parts, rows));
        machine.launch(&kernels.softmax, args)?;
        Ok(parts)
    }

    /// `parts @ value` for each head.
    fn mix(&self, parts: &Matrix<M>, value: &Matrix<M>) -> Result<Matrix<M>, Failed> {
        let Sizes { tokens, features, heads, .. } = self.sizes;
        let width = features / heads;
        let head = strided([tokens, width, heads], [features, 1, width])?;
        let mut mixed = self.machine.zeros((tokens * features) as usize)?;
        let args = linear::args(
            M::view(parts, strided([tokens, tokens, heads], [tokens, 1, tokens * tokens])?),
            M::view(value, head),
            M::view(&self.nothing, head),
            M::view(&self.nothing, strided([tokens, width, heads], [0, 1, 0])?),
            M::view_mut(&mut mixed, head),
            0.0,
        );
        self.machine.launch(&self.kernels.linear, args)?;
        Ok(mixed)
    }
}
