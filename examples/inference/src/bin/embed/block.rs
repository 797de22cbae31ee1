//! A block of a transformer over sequences of any lengths, and the call of attention that it makes.

use cutemplate::device::{Buffer, Device, Kernel};
use cutemplate::view::ViewLayout;

use crate::folder::{Failed, Steps};
use crate::ops::{HEAD, Matrix, Ops, packed, strided};

/// Heads side by side in the rows of a matrix.
pub(crate) struct Heads<'a> {
    pub(crate) matrix: &'a Matrix,
    /// The column of the first one.
    pub(crate) first: i64,
    pub(crate) count: i64,
    /// Columns of the matrix.
    pub(crate) columns: i64,
}

impl Heads<'_> {
    /// `(tokens,heads,HEAD)`.
    fn layout(&self) -> Result<ViewLayout, Failed> {
        strided([self.matrix.len() as i64 / self.columns.max(1), self.count, HEAD], [self.columns, HEAD, 1])
    }
}

/// What the tokens of a sequence see, and what distance costs.
pub(crate) struct Sight<'a> {
    /// Nothing behind a token.
    pub(crate) causal: bool,
    /// Tokens ahead of it and behind it; all where there is no number.
    pub(crate) window: [Option<i64>; 2],
    /// ALiBi: each head loses its slope times the distance.
    pub(crate) slopes: Option<&'a Buffer<f32>>,
}

/// What a transformer has learnt for one block. All matrices are `(inputs,outputs)`.
pub(crate) struct Layer {
    /// Outputs are the heads of queries, then of keys, then of values.
    pub(crate) qkv: Matrix,
    pub(crate) out: Matrix,
    pub(crate) hidden_norm: Matrix,
    /// The gates, and what they gate.
    pub(crate) gate_up: Matrix,
    pub(crate) down: Matrix,
    /// That of the next block, or the last.
    pub(crate) next_norm: Matrix,
}

/// All that a transformer has learnt.
pub(crate) struct Model {
    /// `(vocabulary,features)`.
    pub(crate) table: Matrix,
    pub(crate) first_norm: Matrix,
    pub(crate) layers: Vec<Layer>,
}

/// Extents of a block.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) features: i64,
    pub(crate) heads: i64,
    /// Heads of keys and values, which divide `heads`.
    pub(crate) key_heads: i64,
    pub(crate) hidden: i64,
}

/// Sequences that lie one after the other.
pub(crate) struct Sequences {
    /// Where each begins, and where the last one ends.
    pub(crate) starts: Buffer<i32>,
    /// The place of each token in its sequence.
    pub(crate) positions: Vec<i64>,
    /// One group of all tokens.
    pub(crate) all: Buffer<i32>,
}

/// Kernels of a block.
pub(crate) struct Blocks<'d> {
    pub(crate) ops: Ops<'d>,
    packed: Kernel<packed::Recipe>,
}

impl<'d> Blocks<'d> {
    pub(crate) fn new(device: &'d Device) -> Result<Self, Failed> {
        Ok(Self { ops: Ops::new(device)?, packed: packed::load(device)? })
    }

    /// `softmax(scale * query @ key^T - slope * distance) @ value` for each head and sequence, over the tokens in sight: what servers of
    /// embeddings call `flash_attn_varlen`. Queries and keys have starts of their own. The last query is aligned with the last key.
    pub(crate) fn flash_attn_varlen(
        &self,
        [query, key, value]: [&Heads<'_>; 3],
        [starts_q, starts_k]: [&Buffer<i32>; 2],
        scale: f64,
        sight: &Sight<'_>,
    ) -> Result<Matrix, Failed> {
        let [left, right] = sight.window.map(|tokens| tokens.map_or(-1.0, |tokens| tokens as f64));
        let right = if sight.causal { 0.0 } else { right };
        let none = self.ops.zeros::<f32>(query.count)?;
        let [to, from] = [query, key].map(|of| of.matrix.len() as i64 / of.columns.max(1));
        let (columns, slopes) = (query.count * HEAD, sight.slopes.unwrap_or(&none));
        let mut mixed = self.ops.zeros(to * columns)?;
        let args = packed::args(
            query.matrix.view_at(query.first as usize, query.layout()?),
            key.matrix.view_at(key.first as usize, key.layout()?),
            value.matrix.view_at(value.first as usize, value.layout()?),
            starts_q.vector(),
            starts_k.vector(),
            slopes.view(strided([query.count, to, from], [1, 0, 0])?),
            mixed.view_mut(strided([to, query.count, HEAD], [columns, HEAD, 1])?),
            scale,
            left,
            right,
        );
        self.packed.launch(args)?;
        Ok(mixed)
    }

    /// Attention and a gated layer, each behind a norm and added to what it was given. Takes x and its norm, and returns those of the next
    /// block.
    pub(crate) fn transformer_block(
        &self,
        [x, normal]: [&Matrix; 2],
        layer: &Layer,
        sizes: Sizes,
        sequences: &Sequences,
        sight: &Sight<'_>,
        mut keep: impl FnMut(&str, i64, &Matrix) -> Result<(), Failed>,
    ) -> Result<(Matrix, Matrix), Failed> {
        let Sizes { features, heads, key_heads, hidden } = sizes;
        let tokens = sequences.positions.len() as i64;
        let product = |x: &Matrix, by: &Matrix, inputs, outputs| {
            self.ops.grouped(x, by, &sequences.all, [tokens, inputs, outputs])
        };
        let (columns, of_turned) = ((heads + 2 * key_heads) * HEAD, (heads + key_heads) * HEAD);
        let qkv = product(normal, &layer.qkv, features, columns)?;
        keep("qkv", columns, &qkv)?;
        let turned = self.ops.turned(&qkv, &sequences.positions, [heads, key_heads])?;
        keep("turned", of_turned, &turned)?;
        let query = Heads { matrix: &turned, first: 0, count: heads, columns: of_turned };
        let key = Heads { first: heads * HEAD, count: key_heads, ..query };
        let value = Heads { matrix: &qkv, first: of_turned, count: key_heads, columns };
        let scale = 1.0 / (HEAD as f64).sqrt();
        let mixed = self.flash_attn_varlen([&query, &key, &value], [&sequences.starts; 2], scale, sight)?;
        keep("mixed", heads * HEAD, &mixed)?;
        let attended = product(&mixed, &layer.out, heads * HEAD, features)?;
        keep("attended", features, &attended)?;
        let (x1, hidden_normal) = self.ops.residual_norm(&attended, x, &layer.hidden_norm, [tokens, features])?;
        keep("x1", features, &x1)?;
        keep("hidden_normal", features, &hidden_normal)?;
        let gate_up = product(&hidden_normal, &layer.gate_up, features, 2 * hidden)?;
        keep("gate_up", 2 * hidden, &gate_up)?;
        let gated = self.ops.gated(&gate_up, [tokens, hidden])?;
        keep("hidden", hidden, &gated)?;
        let down = product(&gated, &layer.down, hidden, features)?;
        keep("down", features, &down)?;
        let (y, next) = self.ops.residual_norm(&down, &x1, &layer.next_norm, [tokens, features])?;
        keep("y", features, &y)?;
        keep("next_normal", features, &next)?;
        Ok((y, next))
    }

    /// The last norm of the first token of each sequence, which is the last step. Names of steps have the number of their block.
    pub(crate) fn forward(
        &self,
        ids: &Buffer<i32>,
        model: &Model,
        sizes: Sizes,
        sequences: &Sequences,
        sight: &Sight<'_>,
    ) -> Result<Steps, Failed> {
        let Sizes { features, .. } = sizes;
        let (tokens, mut steps) = (sequences.positions.len() as i64, Steps::default());
        let mut x =
            self.ops.gather(ids, &model.table, [tokens, model.table.len() as i64 / features.max(1), features])?;
        steps.keep("x", features, &x)?;
        let mut normal = self.ops.norm(&x, &model.first_norm, [tokens, features])?;
        steps.keep("normal", features, &normal)?;
        for (number, layer) in model.layers.iter().enumerate() {
            let keep = |name: &str, columns, matrix: &Matrix| steps.keep(&format!("{number}_{name}"), columns, matrix);
            (x, normal) = self.transformer_block([&x, &normal], layer, sizes, sequences, sight, keep)?;
        }
        let count = sequences.starts.len() as i64 - 1;
        let embeddings = self.ops.gather(&sequences.starts, &normal, [count, tokens, features])?;
        steps.keep("embeddings", features, &embeddings)?;
        Ok(steps)
    }
}
