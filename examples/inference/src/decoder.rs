//! The forward pass, by 8 kernels.

use std::error::Error;

use cutemplate::device::{Buffer, Device, Kernel};
use cutemplate::dtype::{Element, f16};
use cutemplate::recipe::rows::RowsArgs;
use cutemplate::view::ViewLayout;

/// What goes wrong, for `main` to say.
pub(crate) type Failed = Box<dyn Error>;

cutemplate::include_kernels!();

/// Elements of a head, which the kernel of attention is compiled for.
pub(crate) const HEAD: i64 = 32;

/// Extents of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) tokens: i64,
    pub(crate) vocabulary: i64,
    pub(crate) features: i64,
    pub(crate) heads: i64,
    /// Heads of keys and values, which divide `heads`.
    pub(crate) key_heads: i64,
    /// Features between the two products behind the attention.
    pub(crate) hidden: i64,
}

/// What a decoder has learnt. Matrices are `(inputs,outputs)`, contiguous along their outputs; norms have a scale for each feature.
pub(crate) struct Weights {
    /// `(vocabulary,features)`.
    pub(crate) table: Matrix,
    pub(crate) attention_norm: Matrix,
    /// Outputs are all heads of queries, those of keys, and those of values.
    pub(crate) qkv: Matrix,
    pub(crate) out: Matrix,
    pub(crate) hidden_norm: Matrix,
    /// Outputs are the gates, and what they gate.
    pub(crate) gate_up: Matrix,
    pub(crate) down: Matrix,
    pub(crate) final_norm: Matrix,
    /// From features to the vocabulary.
    pub(crate) unembed: Matrix,
}

/// A decoder whose kernels are loaded.
pub(crate) struct Decoder<'d> {
    device: &'d Device,
    sizes: Sizes,
    embed: Kernel<embed::Entry>,
    rms_norm: Kernel<rms_norm::Recipe>,
    residual_norm: Kernel<residual_norm::Recipe>,
    linear: Kernel<linear::Recipe>,
    rope: Kernel<rope::Recipe>,
    attention: Kernel<attention::Recipe>,
    gated: Kernel<gated::Recipe>,
    log_softmax: Kernel<log_softmax::Recipe>,
}

/// What the steps of the forward pass leave: a matrix for each, with its name and columns.
pub(crate) struct Steps {
    pub(crate) halves: Vec<(&'static str, i64, Matrix)>,
    /// `(tokens,vocabulary)`.
    pub(crate) log_probabilities: Buffer<f32>,
}

type Matrix = Buffer<f16>;

const EPSILON: f64 = 1e-5;

/// A layout of few extents.
fn strided<const N: usize>(shape: [i64; N], stride: [i64; N]) -> Result<ViewLayout, Failed> {
    ViewLayout::strided(&shape, &stride).ok_or_else(|| "found more than 5 modes".into())
}

impl<'d> Decoder<'d> {
    pub(crate) fn new(device: &'d Device, sizes: Sizes) -> Result<Self, Failed> {
        Ok(Self {
            device,
            sizes,
            embed: embed::load(device)?,
            rms_norm: rms_norm::load(device)?,
            residual_norm: residual_norm::load(device)?,
            linear: linear::load(device)?,
            rope: rope::load(device)?,
            attention: attention::load(device)?,
            gated: gated::load(device)?,
            log_softmax: log_softmax::load(device)?,
        })
    }

    /// From token numbers to the logarithms of the next token's probabilities.
    pub(crate) fn forward(&self, ids: &Buffer<i32>, w: &Weights) -> Result<Steps, Failed> {
        let Sizes { tokens, vocabulary, features, heads, key_heads, hidden } = self.sizes;
        let (turned_columns, qkv_columns) = ((heads + key_heads) * HEAD, (heads + 2 * key_heads) * HEAD);
        let rows = |columns| ViewLayout::matrix([tokens, columns], columns);

        let mut x = self.matrix(features)?;
        let table = ViewLayout::matrix([vocabulary, features], features);
        self.embed.launch(embed::args(ids.vector(), w.table.view(table), x.view_mut(rows(features))))?;
        let mut normal = self.matrix(features)?;
        let scale = w.attention_norm.vector().row(tokens);
        self.rms_norm.launch(rms_norm::args(
            x.view(rows(features)),
            scale,
            normal.view_mut(rows(features)),
            EPSILON,
        ))?;
        let qkv = self.linear(&normal, features, &w.qkv, qkv_columns)?;
        let turned = self.turned(&qkv)?;
        let mixed = self.attention(&turned, &qkv)?;
        let attended = self.linear(&mixed, heads * HEAD, &w.out, features)?;
        let (x1, hidden_normal) = self.residual_norm(&attended, &x, &w.hidden_norm)?;
        let gate_up = self.linear(&hidden_normal, features, &w.gate_up, 2 * hidden)?;
        let mut wide = self.matrix(hidden)?;
        let half = ViewLayout::matrix([tokens, hidden], 2 * hidden);
        let up = gate_up.view_at(hidden as usize, half);
        self.gated.launch(gated::args(gate_up.view(half), up, wide.view_mut(rows(hidden))))?;
        let down = self.linear(&wide, hidden, &w.down, features)?;
        let (y, final_normal) = self.residual_norm(&down, &x1, &w.final_norm)?;
        let logits = self.linear(&final_normal, features, &w.unembed, vocabulary)?;
        let mut log_probabilities = self.device.zeros::<f32>((tokens * vocabulary) as usize)?;
        let args = log_softmax::args(logits.view(rows(vocabulary)), log_probabilities.view_mut(rows(vocabulary)));
        self.log_softmax.launch(args)?;
        let halves = vec![
            ("x", features, x),
            ("normal", features, normal),
            ("qkv", qkv_columns, qkv),
            ("turned", turned_columns, turned),
            ("mixed", heads * HEAD, mixed),
            ("attended", features, attended),
            ("x1", features, x1),
            ("hidden_normal", features, hidden_normal),
            ("gate_up", 2 * hidden, gate_up),
            ("hidden", hidden, wide),
            ("down", features, down),
            ("y", features, y),
            ("final_normal", features, final_normal),
            ("logits", vocabulary, logits),
        ];
        Ok(Steps { halves, log_probabilities })
    }

    /// Memory for as many columns, a row for each token.
    fn matrix<T: Element + cutemplate::device::Number>(&self, columns: i64) -> Result<Buffer<T>, Failed> {
        Ok(self.device.zeros((self.sizes.tokens * columns) as usize)?)
    }

    /// `x @ weights`.
    fn linear(&self, x: &Matrix, inputs: i64, weights: &Matrix, outputs: i64) -> Result<Matrix, Failed> {
        let mut y = self.matrix(outputs)?;
        let rows = |rows, columns| ViewLayout::matrix([rows, columns], columns);
        let (a, b) = (x.view(rows(self.sizes.tokens, inputs)), weights.view(rows(inputs, outputs)));
        self.linear.launch(linear::args(a, b, y.view_mut(rows(self.sizes.tokens, outputs))))?;
        Ok(y)
    }

    /// `x + residual`, and that normalised.
    fn residual_norm(&self, x: &Matrix, residual: &Matrix, scale: &Matrix) -> Result<(Matrix, Matrix), Failed> {
        let Sizes { tokens, features, .. } = self.sizes;
        let rows = ViewLayout::matrix([tokens, features], features);
        let (mut sum, mut normal) = (self.matrix(features)?, self.matrix(features)?);
        let scale = scale.vector().row(tokens);
        let outputs = (sum.view_mut(rows), normal.view_mut(rows));
        let args = residual_norm::args(x.view(rows), residual.view(rows), scale, outputs.0, outputs.1, EPSILON);
        self.residual_norm.launch(args)?;
        Ok((sum, normal))
    }

    /// Queries and keys, each pair of columns turned by the angle of its token and its place in the head.
    fn turned(&self, qkv: &Matrix) -> Result<Matrix, Failed> {
        let Sizes { tokens, heads, key_heads, .. } = self.sizes;
        let (pairs, columns) = ((heads + key_heads) * HEAD / 2, (heads + key_heads) * HEAD);
        let angle = |at: i64| {
            let (token, pair) = (at / pairs, at % pairs % (HEAD / 2));
            token as f64 * 10000.0_f64.powf(-2.0 * pair as f64 / HEAD as f64)
        };
        let of_all = |of: fn(f64) -> f64| (0..tokens * pairs).map(|at| of(angle(at)) as f32).collect::<Vec<_>>();
        let (cosines, sines) = (self.device.put(&of_all(f64::cos))?, self.device.put(&of_all(f64::sin))?);
        let (angles, from) = (ViewLayout::matrix([tokens, pairs], pairs), (heads + 2 * key_heads) * HEAD);
        // Even columns, and, from the next element on, odd ones.
        let (of_qkv, of_turned) = (strided([tokens, pairs], [from, 2])?, strided([tokens, pairs], [columns, 2])?);
        let mut turned = self.matrix(columns)?;
        let args = RowsArgs::new()
            .input(qkv.view(of_qkv))
            .input(qkv.view_at(1, of_qkv))
            .input(cosines.view(angles))
            .input(sines.view(angles))
            .output_parts(turned.vector_mut(), &[(0, of_turned), (1, of_turned)]);
        self.rope.launch(args)?;
        Ok(turned)
    }

    /// `softmax(query @ key^T / sqrt(HEAD)) @ value` for each head, over the tokens up to its own.
    fn attention(&self, turned: &Matrix, qkv: &Matrix) -> Result<Matrix, Failed> {
        let Sizes { tokens, heads, key_heads, .. } = self.sizes;
        let columns = heads * HEAD;
        let mut mixed = self.matrix(columns)?;
        // One sequence; tokens, heads, elements of a head.
        let of = |heads, row: i64| strided([1, tokens, heads, HEAD], [tokens * row, row, HEAD, 1]);
        let (of_turned, of_qkv) = ((heads + key_heads) * HEAD, (heads + 2 * key_heads) * HEAD);
        let args = attention::args(
            turned.view(of(heads, of_turned)?),
            turned.view_at(columns as usize, of(key_heads, of_turned)?),
            qkv.view_at(of_turned as usize, of(key_heads, of_qkv)?),
            mixed.view_mut(of(heads, columns)?),
            1.0 / (HEAD as f64).sqrt(),
        );
        self.attention.launch(args)?;
        Ok(mixed)
    }
}
