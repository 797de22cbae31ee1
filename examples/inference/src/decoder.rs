//! The forward pass, by 12 kernels.

use std::error::Error;

use cutemplate::device::{Buffer, Device, Kernel, Number};
use cutemplate::dtype::{E4m3, f16};
use cutemplate::recipe::gemm::GemmArgs;
use cutemplate::recipe::rows::RowsArgs;
use cutemplate::verify::Tensor;
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
    device: &'d Device,
    sizes: Sizes,
    gather: Kernel<moe_gather::Entry>,
    route: Kernel<moe_route::Entry>,
    combine: Kernel<moe_combine::Entry>,
    rms_norm: Kernel<rms_norm::Recipe>,
    residual_norm: Kernel<residual_norm::Recipe>,
    quantize: Kernel<quantize::Recipe>,
    scaled: Kernel<scaled::Recipe>,
    experts: Kernel<experts::Recipe>,
    rope: Kernel<rope::Recipe>,
    attention: Kernel<attention::Recipe>,
    gated: Kernel<gated::Recipe>,
    log_softmax: Kernel<log_softmax::Recipe>,
}

/// What the steps of the forward pass leave: a matrix for each, with its name.
#[derive(Default)]
pub(crate) struct Steps(pub(crate) Vec<(String, Tensor)>);

impl Steps {
    fn keep<T: Number>(&mut self, name: &str, columns: i64, values: &Buffer<T>) -> Result<(), Failed> {
        let all = values.to_vec()?;
        let rows = all.len() as i64 / columns.max(1);
        self.0.push((name.to_owned(), Tensor::of(&all, &[rows, columns]).ok_or("too little memory")?));
        Ok(())
    }
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
            gather: moe_gather::load(device)?,
            route: moe_route::load(device)?,
            combine: moe_combine::load(device)?,
            rms_norm: rms_norm::load(device)?,
            residual_norm: residual_norm::load(device)?,
            quantize: quantize::load(device)?,
            scaled: scaled::load(device)?,
            experts: experts::load(device)?,
            rope: rope::load(device)?,
            attention: attention::load(device)?,
            gated: gated::load(device)?,
            log_softmax: log_softmax::load(device)?,
        })
    }

    /// From token numbers to the logarithms of the next token's probabilities, which are the last step.
    pub(crate) fn forward(&self, ids: &Buffer<i32>, w: &Weights) -> Result<Steps, Failed> {
        let Sizes { tokens, vocabulary, features, heads, key_heads, .. } = self.sizes;
        let mut steps = Steps::default();
        let rows = |columns| ViewLayout::matrix([tokens, columns], columns);

        let x = self.gather(ids, &w.table, [tokens, vocabulary])?;
        steps.keep("x", features, &x)?;
        let mut normal = self.zeros(tokens * features)?;
        let scale = w.attention_norm.vector().row(tokens);
        let normal_rows = normal.view_mut(rows(features));
        self.rms_norm.launch(rms_norm::args(x.view(rows(features)), scale, normal_rows, EPSILON))?;
        steps.keep("normal", features, &normal)?;
        let qkv_columns = (heads + 2 * key_heads) * HEAD;
        let qkv = self.scaled(&mut steps, ["normal", "qkv"], &normal, [features, qkv_columns], &w.qkv)?;
        let turned = self.turned(&qkv)?;
        steps.keep("turned", (heads + key_heads) * HEAD, &turned)?;
        let mixed = self.attention(&turned, &qkv)?;
        steps.keep("mixed", heads * HEAD, &mixed)?;
        let attended = self.scaled(&mut steps, ["mixed", "attended"], &mixed, [heads * HEAD, features], &w.out)?;
        let (x1, hidden_normal) = self.residual_norm(&attended, &x, &w.hidden_norm)?;
        steps.keep("x1", features, &x1)?;
        steps.keep("hidden_normal", features, &hidden_normal)?;
        let combined = self.of_experts(&mut steps, &hidden_normal, w)?;
        let (y, final_normal) = self.residual_norm(&combined, &x1, &w.final_norm)?;
        steps.keep("y", features, &y)?;
        steps.keep("final_normal", features, &final_normal)?;
        let logits =
            self.scaled(&mut steps, ["final_normal", "logits"], &final_normal, [features, vocabulary], &w.unembed)?;
        let mut log_probabilities = self.zeros::<f32>(tokens * vocabulary)?;
        let args = log_softmax::args(logits.view(rows(vocabulary)), log_probabilities.view_mut(rows(vocabulary)));
        self.log_softmax.launch(args)?;
        steps.keep("log_probabilities", vocabulary, &log_probabilities)?;
        Ok(steps)
    }

    /// The rows of a table that `ids` names.
    fn gather(&self, ids: &Buffer<i32>, table: &Matrix, [count, numbered]: [i64; 2]) -> Result<Matrix, Failed> {
        let features = self.sizes.features;
        let mut x = self.zeros(count * features)?;
        let rows = |rows| ViewLayout::matrix([rows, features], features);
        self.gather.launch(moe_gather::args(ids.vector(), table.view(rows(numbered)), x.view_mut(rows(count))))?;
        Ok(x)
    }

    /// Two experts of each token, and the sum of what they make of it by their weights. Each token takes two slots, sorted by expert: the
    /// slots of an expert are a group of rows, which ends where the device says.
    fn of_experts(&self, steps: &mut Steps, x: &Matrix, w: &Weights) -> Result<Matrix, Failed> {
        let Sizes { tokens, features, experts, hidden, .. } = self.sizes;
        let (slots, rows) = (CHOSEN * tokens, |rows, columns| ViewLayout::matrix([rows, columns], columns));
        // All tokens are one group.
        let all = self.device.put(&[i32::try_from(tokens)?])?;
        let router = self.grouped(x, &w.router, &all, [tokens, features, experts])?;
        steps.keep("router", experts, &router)?;
        let (mut expert, mut weight) = (self.zeros::<i32>(slots)?, self.zeros::<f32>(slots)?);
        let (mut slot, mut token, mut ends) =
            (self.zeros::<i32>(slots)?, self.zeros::<i32>(slots)?, self.zeros::<i32>(experts)?);
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
        let given = self.gather(&token, x, [slots, tokens])?;
        let gate_up = self.grouped(&given, &w.gate_up, &ends, [slots, features, 2 * hidden])?;
        steps.keep("gate_up", 2 * hidden, &gate_up)?;
        let mut wide = self.zeros(slots * hidden)?;
        let half = ViewLayout::matrix([slots, hidden], 2 * hidden);
        let up = gate_up.view_at(hidden as usize, half);
        self.gated.launch(gated::args(gate_up.view(half), up, wide.view_mut(rows(slots, hidden))))?;
        steps.keep("hidden", hidden, &wide)?;
        let down = self.grouped(&wide, &w.down, &ends, [slots, hidden, features])?;
        steps.keep("down", features, &down)?;
        let mut combined = self.zeros(tokens * features)?;
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

    /// Memory for as many elements.
    fn zeros<T: Number>(&self, elements: i64) -> Result<Buffer<T>, Failed> {
        Ok(self.device.zeros(elements as usize)?)
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
        let (mut bits, mut scales) = (self.zeros::<E4m3>(tokens * inputs)?, self.zeros::<f32>(tokens * blocks)?);
        let quantized = (bits.view_mut(rows(inputs)), scales.view_mut(rows(blocks)));
        self.quantize.launch(quantize::args(x.view(rows(inputs)), quantized.0, quantized.1))?;
        steps.keep(&format!("{of}_8"), inputs, &bits)?;
        steps.keep(&format!("{of}_scales"), blocks, &scales)?;
        let mut y = self.zeros(tokens * outputs)?;
        let of_weights = strided([inputs, outputs], [1, inputs])?;
        let args = GemmArgs::new(bits.view(rows(inputs)), weights.bits.view(of_weights), y.view_mut(rows(outputs)))
            .aux(scales.view(rows(blocks)))
            .aux(weights.scales.view(strided([blocks, blocks_of(outputs)], [1, blocks])?));
        self.scaled.launch(args)?;
        steps.keep(name, outputs, &y)?;
        Ok(y)
    }

    /// The rows of each group by a matrix of its own, contiguous along its outputs.
    fn grouped(
        &self,
        x: &Matrix,
        weights: &Matrix,
        ends: &Buffer<i32>,
        [rows, inputs, outputs]: [i64; 3],
    ) -> Result<Matrix, Failed> {
        let mut y = self.zeros(rows * outputs)?;
        let of_weights = strided([inputs, outputs, ends.len() as i64], [outputs, 1, inputs * outputs])?;
        let to = y.view_mut(ViewLayout::matrix([rows, outputs], outputs));
        let from = x.view(ViewLayout::matrix([rows, inputs], inputs));
        self.experts.launch(GemmArgs::new(from, weights.view(of_weights), to).groups(ends.vector()))?;
        Ok(y)
    }

    /// `x + residual`, and that normalised.
    fn residual_norm(&self, x: &Matrix, residual: &Matrix, scale: &Matrix) -> Result<(Matrix, Matrix), Failed> {
        let Sizes { tokens, features, .. } = self.sizes;
        let rows = ViewLayout::matrix([tokens, features], features);
        let (mut sum, mut normal) = (self.zeros(tokens * features)?, self.zeros(tokens * features)?);
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
        let mut turned = self.zeros(tokens * columns)?;
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
        let mut mixed = self.zeros(tokens * columns)?;
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
