//! The forward pass, by 9 kernels.

use std::error::Error;

use cutemplate::device::{Buffer, Device, Kernel};
use cutemplate::dtype::f16;
use cutemplate::view::ViewLayout;

/// What goes wrong, for `main` to say.
pub(crate) type Failed = Box<dyn Error>;

cutemplate::include_kernels!();

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
pub(crate) struct Linear {
    pub(crate) inputs: i64,
    pub(crate) weights: Buffer<f16>,
    pub(crate) bias: Buffer<f16>,
}

/// Scale and shift of each feature.
pub(crate) struct Norm {
    pub(crate) scale: Buffer<f16>,
    pub(crate) shift: Buffer<f16>,
}

/// What a block has learnt.
pub(crate) struct Weights {
    pub(crate) attention_norm: Norm,
    pub(crate) query: Linear,
    pub(crate) key: Linear,
    pub(crate) value: Linear,
    pub(crate) out: Linear,
    pub(crate) hidden_norm: Norm,
    pub(crate) expand: Linear,
    pub(crate) contract: Linear,
}

/// Its kernels on a device.
struct Kernels {
    linear: Kernel<linear::Recipe>,
    expand: Kernel<expand::Recipe>,
    scores: Kernel<scores::Recipe>,
    mean: Kernel<mean::Recipe>,
    deviations: Kernel<deviations::Recipe>,
    normalise: Kernel<normalise::Recipe>,
    greater: Kernel<greater::Recipe>,
    exp_sums: Kernel<exp_sums::Recipe>,
    softmax: Kernel<softmax::Recipe>,
}

/// A block whose kernels are loaded.
pub(crate) struct Block<'d> {
    device: &'d Device,
    kernels: Kernels,
    sizes: Sizes,
    /// For what is added and is not there.
    nothing: Buffer<f16>,
}

/// What a step of the forward pass leaves.
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) shape: Vec<i64>,
    pub(crate) values: Buffer<f16>,
}

type Matrix = Buffer<f16>;

/// A layout of few extents.
fn strided<const N: usize>(shape: [i64; N], stride: [i64; N]) -> Result<ViewLayout, Failed> {
    ViewLayout::strided(&shape, &stride).ok_or_else(|| "found more than 5 modes".into())
}

impl<'d> Block<'d> {
    pub(crate) fn new(device: &'d Device, sizes: Sizes) -> Result<Self, Failed> {
        let kernels = Kernels {
            linear: linear::load(device)?,
            expand: expand::load(device)?,
            scores: scores::load(device)?,
            mean: mean::load(device)?,
            deviations: deviations::load(device)?,
            normalise: normalise::load(device)?,
            greater: greater::load(device)?,
            exp_sums: exp_sums::load(device)?,
            softmax: softmax::load(device)?,
        };
        let nothing = device.zeros((sizes.tokens * sizes.features) as usize)?;
        Ok(Self { device, kernels, sizes, nothing })
    }

    /// `y = x1 + contract(gelu(expand(norm(x1))))` for `x1 = x + out(attention(norm(x)))`: every step, y last.
    pub(crate) fn forward(&self, x: &Matrix, w: &Weights) -> Result<Vec<Step>, Failed> {
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
    fn norm(&self, x: &Matrix, norm: &Norm) -> Result<Matrix, Failed> {
        let Sizes { tokens, features, .. } = self.sizes;
        let (kernels, device) = (&self.kernels, self.device);
        let rows = strided([tokens, features], [features, 1])?;
        // One number for each row, and one for each column.
        let (by_row, by_column) = (strided([tokens, features], [1, 0])?, strided([tokens, features], [0, 1])?);
        let (each, part) = (strided([tokens], [1])?, 1.0 / features as f64);
        let mut mean = device.zeros::<f32>(tokens as usize)?;
        kernels.mean.launch(mean::args(x.view(rows), mean.view_mut(each), part))?;
        let mut variance = device.zeros::<f32>(tokens as usize)?;
        let args = deviations::args(x.view(rows), mean.view(by_row), variance.view_mut(each), part);
        kernels.deviations.launch(args)?;
        let mut y = device.zeros((tokens * features) as usize)?;
        let args = normalise::args(
            x.view(rows),
            mean.view(by_row),
            variance.view(by_row),
            norm.scale.view(by_column),
            norm.shift.view(by_column),
            y.view_mut(rows),
        );
        kernels.normalise.launch(args)?;
        Ok(y)
    }

    /// `x @ weights + bias`, and with a residual that: as many features as x has.
    fn linear(&self, x: &Matrix, linear: &Linear, residual: Option<&Matrix>) -> Result<Matrix, Failed> {
        let (Sizes { tokens, features, .. }, inputs) = (self.sizes, linear.inputs);
        let mut y = self.device.zeros((tokens * features) as usize)?;
        let rows = |rows, cols| strided([rows, cols, 1], [cols, 1, rows * cols]);
        let args = linear::args(
            x.view(rows(tokens, inputs)?),
            linear.weights.view(rows(inputs, features)?),
            residual.unwrap_or(&self.nothing).view(rows(tokens, features)?),
            linear.bias.view(strided([tokens, features, 1], [0, 1, 0])?),
            y.view_mut(rows(tokens, features)?),
            if residual.is_some() { 1.0 } else { 0.0 },
        );
        self.kernels.linear.launch(args)?;
        Ok(y)
    }

    /// `gelu(x @ weights + bias)`.
    fn expand(&self, x: &Matrix, linear: &Linear) -> Result<Matrix, Failed> {
        let Sizes { tokens, features, hidden, .. } = self.sizes;
        let mut y = self.device.zeros((tokens * hidden) as usize)?;
        let args = expand::args(
            x.view(strided([tokens, features], [features, 1])?),
            linear.weights.view(strided([features, hidden], [hidden, 1])?),
            linear.bias.view(strided([tokens, hidden], [0, 1])?),
            y.view_mut(strided([tokens, hidden], [hidden, 1])?),
        );
        self.kernels.expand.launch(args)?;
        Ok(y)
    }

    /// `softmax(query @ key^T / sqrt(width))` for each head, whose features lie side by side.
    fn attention(&self, query: &Matrix, key: &Matrix) -> Result<Matrix, Failed> {
        let Sizes { tokens, features, heads, .. } = self.sizes;
        let (kernels, device, width) = (&self.kernels, self.device, features / heads);
        // Tokens by features of a head, and the transpose of that; tokens by tokens.
        let head = strided([tokens, width, heads], [features, 1, width])?;
        let turned = strided([width, tokens, heads], [1, features, width])?;
        let pairs = strided([tokens, tokens, heads], [tokens, 1, tokens * tokens])?;
        let all = heads * tokens;
        let rows = strided([all, tokens], [tokens, 1])?;
        let mut scores = device.zeros::<f32>((all * tokens) as usize)?;
        let scale = 1.0 / (width as f64).sqrt();
        let args = scores::args(query.view(head), key.view(turned), scores.view_mut(pairs), scale);
        kernels.scores.launch(args)?;
        // Without the maximum, exp of a score above 88 would be infinite, and the quotient NaN.
        let greatest = self.greatest(&scores, [all, tokens])?;
        let mut sums = device.zeros::<f32>(all as usize)?;
        let args = exp_sums::args(scores.view(rows), greatest.vector().column(tokens), sums.vector_mut());
        kernels.exp_sums.launch(args)?;
        let mut parts = device.zeros((all * tokens) as usize)?;
        let (greatest, sums) = (greatest.vector().column(tokens), sums.vector().column(tokens));
        kernels.softmax.launch(softmax::args(scores.view(rows), greatest, sums, parts.view_mut(rows)))?;
        Ok(parts)
    }

    /// The greatest number of each row: both halves of all rows are compared, until one column is left.
    fn greatest(&self, matrix: &Buffer<f32>, [rows, columns]: [i64; 2]) -> Result<Buffer<f32>, Failed> {
        let mut greatest: Option<Buffer<f32>> = None;
        let mut left = columns;
        loop {
            // Of an odd number, the one in the middle belongs to both halves.
            let half = left - left / 2;
            let from = greatest.as_ref().unwrap_or(matrix);
            let layout = ViewLayout::matrix([rows, half], left);
            let mut of_both = self.device.zeros::<f32>((rows * half) as usize)?;
            let second = from.view_at((left - half) as usize, layout);
            let args =
                greater::args(from.view(layout), second, of_both.view_mut(ViewLayout::matrix([rows, half], half)));
            self.kernels.greater.launch(args)?;
            if half <= 1 {
                return Ok(of_both);
            }
            (left, greatest) = (half, Some(of_both));
        }
    }

    /// `parts @ value` for each head.
    fn mix(&self, parts: &Matrix, value: &Matrix) -> Result<Matrix, Failed> {
        let Sizes { tokens, features, heads, .. } = self.sizes;
        let width = features / heads;
        let head = strided([tokens, width, heads], [features, 1, width])?;
        let mut mixed = self.device.zeros((tokens * features) as usize)?;
        let args = linear::args(
            parts.view(strided([tokens, tokens, heads], [tokens, 1, tokens * tokens])?),
            value.view(head),
            self.nothing.view(head),
            self.nothing.view(strided([tokens, width, heads], [0, 1, 0])?),
            mixed.view_mut(head),
            0.0,
        );
        self.kernels.linear.launch(args)?;
        Ok(mixed)
    }
}
