//! The forward pass, by 12 kernels.

use cutemplate::device::{Buffer, Device, Kernel};
use cutemplate::dtype::E4m3;
use cutemplate::recipe::gemm::GemmArgs;
use cutemplate::view::ViewLayout;

use crate::folder::{Failed, Steps};
use crate::ops::{HEAD, Matrix, Ops, attention, log_softmax, moe_combine, moe_route, quantize, scaled, strided};

/// Extents of a decoder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) tokens: i64,
    pub(crate) vocabulary: i64,
    pub(crate) features: i64,
    pub(crate) heads: i64,
    /// Heads of keys and values, which divide `heads`.
    pub(crate) key_heads: i64,
    /// Experts of the layer behind the attention.
    pub(crate) experts: i64,
    /// Features between the two products of an expert.
    pub(crate) hidden: i64,
}

/// Elements of K, and of outputs, that share a scale.
const BLOCK: i64 = 128;
/// Experts of a token.
const CHOSEN: i64 = 2;

/// The scales of so many elements.
pub(crate) fn blocks_of(elements: i64) -> i64 {
    (elements + BLOCK - 1) / BLOCK
}

/// A matrix `(outputs,inputs)` of 8-bit floats, and a scale for each 128 x 128 of them.
pub(crate) struct Scaled {
    pub(crate) bits: Buffer<E4m3>,
    pub(crate) scales: Buffer<f32>,
}

/// What a decoder has learnt. Norms have a scale for each feature.
pub(crate) struct Weights {
    /// `(vocabulary,features)`.
    pub(crate) table: Matrix,
    pub(crate) attention_norm: Matrix,
    /// Outputs are the heads of queries, then of keys, then of values.
    pub(crate) qkv: Scaled,
    pub(crate) out: Scaled,
    pub(crate) hidden_norm: Matrix,
    /// `(features,experts)`.
    pub(crate) router: Matrix,
    /// `(experts,features,2*hidden)`: the gates, and what they gate.
    pub(crate) gate_up: Matrix,
    /// `(experts,hidden,features)`.
    pub(crate) down: Matrix,
    pub(crate) final_norm: Matrix,
    /// From features to the vocabulary.
    pub(crate) unembed: Scaled,
}

/// A decoder whose kernels are loaded.
pub(crate) struct Decoder<'d> {
    ops: Ops<'d>,
    sizes: Sizes,
    route: Kernel<moe_route::Entry>,
    combine: Kernel<moe_combine::Entry>,
    quantize: Kernel<quantize::Recipe>,
    scaled: Kernel<scaled::Recipe>,
    attention: Kernel<attention::Recipe>,
    log_softmax: Kernel<log_softmax::Recipe>,
}

impl<'d> Decoder<'d> {
    pub(crate) fn new(device: &'d Device, sizes: Sizes) -> Result<Self, Failed> {
        Ok(Self {
            ops: Ops::new(device)?,
            sizes,
            route: moe_route::load(device)?,
            combine: moe_combine::load(device)?,
            quantize: quantize::load(device)?,
            scaled: scaled::load(device)?,
            attention: attention::load(device)?,
            log_softmax: log_softmax::load(device)?,
        })
    }

    /// From token numbers to the logarithms of the next token's probabilities, which are the last step.
    pub(crate) fn forward(&self, ids: &Buffer<i32>, w: &Weights) -> Result<Steps, Failed> {
        let Sizes { tokens, vocabulary, features, heads, key_heads, .. } = self.sizes;
        let mut steps = Steps::default();
        let rows = |columns| ViewLayout::matrix([tokens, columns], columns);

        let x = self.ops.gather(ids, &w.table, [tokens, vocabulary, features])?;
        steps.keep("x", features, &x)?;
        let normal = self.ops.norm(&x, &w.attention_norm, [tokens, features])?;
        steps.keep("normal", features, &normal)?;
        let qkv_columns = (heads + 2 * key_heads) * HEAD;
        let qkv = self.scaled(&mut steps, ["normal", "qkv"], &normal, [features, qkv_columns], &w.qkv)?;
        let positions = (0..tokens).collect::<Vec<_>>();
        let turned = self.ops.turned(&qkv, &positions, [heads, key_heads])?;
        steps.keep("turned", (heads + key_heads) * HEAD, &turned)?;
        let mixed = self.attention(&turned, &qkv)?;
        steps.keep("mixed", heads * HEAD, &mixed)?;
        let attended = self.scaled(&mut steps, ["mixed", "attended"], &mixed, [heads * HEAD, features], &w.out)?;
        let (x1, hidden_normal) = self.ops.residual_norm(&attended, &x, &w.hidden_norm, [tokens, features])?;
        steps.keep("x1", features, &x1)?;
        steps.keep("hidden_normal", features, &hidden_normal)?;
        let combined = self.of_experts(&mut steps, &hidden_normal, w)?;
        let (y, final_normal) = self.ops.residual_norm(&combined, &x1, &w.final_norm, [tokens, features])?;
        steps.keep("y", features, &y)?;
        steps.keep("final_normal", features, &final_normal)?;
        let logits =
            self.scaled(&mut steps, ["final_normal", "logits"], &final_normal, [features, vocabulary], &w.unembed)?;
        let mut log_probabilities = self.ops.zeros::<f32>(tokens * vocabulary)?;
        let args = log_softmax::args(logits.view(rows(vocabulary)), log_probabilities.view_mut(rows(vocabulary)));
        self.log_softmax.launch(args)?;
        steps.keep("log_probabilities", vocabulary, &log_probabilities)?;
        Ok(steps)
    }

    /// Two experts of each token, and the sum of what they make of it by their weights. Each token takes two slots, sorted by expert: the
    /// slots of an expert are a group of rows, which ends where the device says.
    fn of_experts(&self, steps: &mut Steps, x: &Matrix, w: &Weights) -> Result<Matrix, Failed> {
        let Sizes { tokens, features, experts, hidden, .. } = self.sizes;
        let (slots, rows) = (CHOSEN * tokens, |rows, columns| ViewLayout::matrix([rows, columns], columns));
        // All tokens are one group.
        let all = self.ops.device.put(&[i32::try_from(tokens)?])?;
        let router = self.ops.grouped(x, &w.router, &all, [tokens, features, experts])?;
        steps.keep("router", experts, &router)?;
        let (mut expert, mut weight) = (self.ops.zeros::<i32>(slots)?, self.ops.zeros::<f32>(slots)?);
        let (mut slot, mut token, mut ends) =
            (self.ops.zeros::<i32>(slots)?, self.ops.zeros::<i32>(slots)?, self.ops.zeros::<i32>(experts)?);
        let pairs = rows(tokens, CHOSEN);
        self.route.launch(moe_route::args(
            router.view(rows(tokens, experts)),
            expert.view_mut(pairs),
            weight.view_mut(pairs),
            slot.view_mut(pairs),
            token.vector_mut(),
            ends.vector_mut(),
        ))?;
        steps.keep("expert", CHOSEN, &expert)?;
        steps.keep("weight", CHOSEN, &weight)?;
        steps.keep("slot", CHOSEN, &slot)?;
        steps.keep("token", 1, &token)?;
        steps.keep("ends", 1, &ends)?;
        let given = self.ops.gather(&token, x, [slots, tokens, features])?;
        let gate_up = self.ops.grouped(&given, &w.gate_up, &ends, [slots, features, 2 * hidden])?;
        steps.keep("gate_up", 2 * hidden, &gate_up)?;
        let wide = self.ops.gated(&gate_up, [slots, hidden])?;
        steps.keep("hidden", hidden, &wide)?;
        let down = self.ops.grouped(&wide, &w.down, &ends, [slots, hidden, features])?;
        steps.keep("down", features, &down)?;
        let mut combined = self.ops.zeros(tokens * features)?;
        let args = moe_combine::args(
            down.view(rows(slots, features)),
            slot.view(pairs),
            weight.view(pairs),
            combined.view_mut(rows(tokens, features)),
        );
        self.combine.launch(args)?;
        steps.keep("combined", features, &combined)?;
        Ok(combined)
    }

    /// `x @ weights^T`: x is quantised by 128 features of a token, and both have scales of blocks.
    fn scaled(
        &self,
        steps: &mut Steps,
        [of, name]: [&str; 2],
        x: &Matrix,
        [inputs, outputs]: [i64; 2],
        weights: &Scaled,
    ) -> Result<Matrix, Failed> {
        let (tokens, blocks) = (self.sizes.tokens, blocks_of(inputs));
        let rows = |columns| ViewLayout::matrix([tokens, columns], columns);
        let (mut bits, mut scales) =
            (self.ops.zeros::<E4m3>(tokens * inputs)?, self.ops.zeros::<f32>(tokens * blocks)?);
        let quantized = (bits.view_mut(rows(inputs)), scales.view_mut(rows(blocks)));
        self.quantize.launch(quantize::args(x.view(rows(inputs)), quantized.0, quantized.1))?;
        steps.keep(&format!("{of}_8"), inputs, &bits)?;
        steps.keep(&format!("{of}_scales"), blocks, &scales)?;
        let mut y = self.ops.zeros(tokens * outputs)?;
        let of_weights = strided([inputs, outputs], [1, inputs])?;
        let args = GemmArgs::new(bits.view(rows(inputs)), weights.bits.view(of_weights), y.view_mut(rows(outputs)))
            .aux(scales.view(rows(blocks)))
            .aux(weights.scales.view(strided([blocks, blocks_of(outputs)], [1, blocks])?));
        self.scaled.launch(args)?;
        steps.keep(name, outputs, &y)?;
        Ok(y)
    }

    /// `softmax(query @ key^T / sqrt(HEAD)) @ value` for each head, over the tokens up to its own.
    fn attention(&self, turned: &Matrix, qkv: &Matrix) -> Result<Matrix, Failed> {
        let Sizes { tokens, heads, key_heads, .. } = self.sizes;
        let columns = heads * HEAD;
        let mut mixed = self.ops.zeros(tokens * columns)?;
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
