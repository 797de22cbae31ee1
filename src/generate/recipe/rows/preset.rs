//! Row programs that models have between their products, by name.

use super::Rows;
use crate::dtype::DType;
use crate::expr::Function;
use crate::recipe::TensorSpec;
use crate::recipe::field::as_displayed;
use crate::settings::named;

named! {
    /// A row program by name.
    Preset, "preset":
    /// `exp(x - max) / sum`; a row that is -inf throughout gives NaN.
    Softmax = "softmax",
    /// The logarithm of that, without a quotient.
    LogSoftmax = "log_softmax",
    /// `x / sqrt(mean(x^2) + eps) * w`.
    RmsNorm = "rms_norm",
    /// The same times `w + 1`, as Gemma has it.
    RmsNormPlusOne = "rms_norm_plus_one",
    /// `h = x + residual`, and the norm of it: two outputs.
    ResidualRmsNorm = "residual_rms_norm",
    /// `(x - mean) / sqrt(variance + eps) * w + b`.
    LayerNorm = "layer_norm",
    /// The loss of each row, 0 where the target is `ignore_index`.
    CrossEntropy = "cross_entropy",
    /// `silu(gate) * up`: two views of one matrix, or two matrices.
    GatedSilu = "gated_silu",
    /// `gelu(gate) * up`.
    GatedGelu = "gated_gelu",
    /// Rotary embedding: `a` and `b` are views of both halves, or of even and odd columns; cosine and sine for each row.
    Rope = "rope",
    /// The same of a head that is normalised first, with the weights of both halves.
    NormRope = "norm_rope",
    /// e4m3 with a scale for each 128 columns, the largest of them divided by 448, or 1 where that is 0.
    Quantize = "quantize",
    /// The column of the largest element: the first of equal ones.
    ArgMax = "argmax",
    /// The sum of each column: the gradient of a bias.
    ColumnSums = "column_sums",
    /// Of `rms_norm`: gradients of `x`, and of the weights.
    RmsNormBackward = "rms_norm_backward",
    /// Of `layer_norm`: gradients of `x`, of the weights and of the bias.
    LayerNormBackward = "layer_norm_backward",
    /// Of `softmax`, from its result.
    SoftmaxBackward = "softmax_backward",
    /// Of `cross_entropy`, times the gradient of each row's loss.
    CrossEntropyBackward = "cross_entropy_backward",
}

as_displayed!(Preset);

impl Preset {
    /// The program, and types and strides of inputs and outputs: `T` is the type of the elements.
    fn parts(self) -> [&'static str; 3] {
        match self {
            Preset::Softmax => {
                // The power of two takes three instructions less than `exp`.
                ["|x| { let e = exp2((x - max(x)) * 1.4426950408889634); e * (1 / sum(e)) }", "T:(?,1)", "T:(?,1)"]
            }
            Preset::LogSoftmax => {
                ["|x| { let m = max(x); let l = log(sum(exp(x - m))); x - m - l }", "T:(?,1)", "T:(?,1)"]
            }
            Preset::RmsNorm => {
                ["|x, w; eps| { let r = rsqrt(mean(x * x) + eps); x * r * w }", "T:(?,1), T:(0,1)", "T:(?,1)"]
            }
            Preset::RmsNormPlusOne => {
                ["|x, w; eps| { let r = rsqrt(mean(x * x) + eps); x * r * (w + 1) }", "T:(?,1), T:(0,1)", "T:(?,1)"]
            }
            Preset::ResidualRmsNorm => [
                "|x, residual, w; eps| { let h = x + residual; let r = rsqrt(mean(h * h) + eps); (h, h * r * w) }",
                "T:(?,1), T:(?,1), T:(0,1)",
                "T:(?,1), T:(?,1)",
            ],
            Preset::LayerNorm => [
                "|x, w, b; eps| { let d = x - mean(x); let r = rsqrt(mean(d * d) + eps); d * r * w + b }",
                "T:(?,1), T:(0,1), T:(0,1)",
                "T:(?,1)",
            ],
            Preset::CrossEntropy => [
                "|x, target; ignore_index| { let m = max(x); let right = sum(select(col() == target, x, 0)); \
                 select(target == ignore_index, 0, m + log(sum(exp(x - m))) - right) }",
                "T:(?,1), i32:1",
                "f32:1",
            ],
            Preset::GatedSilu => ["|gate, up| silu(gate) * up", "T:(?,1), T:(?,1)", "T:(?,1)"],
            Preset::GatedGelu => ["|gate, up| gelu(gate) * up", "T:(?,1), T:(?,1)", "T:(?,1)"],
            Preset::Rope => [
                "|a, b, c, s| (a * c - b * s, b * c + a * s)",
                "T:(?,?), T:(?,?), f32:(?,1), f32:(?,1)",
                "T:(?,?), T:(?,?)",
            ],
            Preset::NormRope => [
                "|a, b, v, w, c, s; eps| { let r = rsqrt(mean(a * a + b * b) * 0.5 + eps); let x = a * r * v; \
                 let y = b * r * w; (x * c - y * s, y * c + x * s) }",
                "T:(?,?), T:(?,?), T:(0,?), T:(0,?), f32:(?,1), f32:(?,1)",
                "T:(?,?), T:(?,?)",
            ],
            Preset::Quantize => [
                "|x| { let m = max_group128(abs(x)); let s = select(m == 0, 1, m / 448); let r = min(1 / s, 3e38); \
                 (saturate(e4m3, x * r), s) }",
                "T:(?,1)",
                "e4m3:(?,1), f32:(?,1)",
            ],
            Preset::ArgMax => ["|x| argmax(x)", "T:(?,1)", "i32:1"],
            Preset::ColumnSums => ["|dy| sum_column(dy)", "T:(?,1)", "f32:1"],
            Preset::RmsNormBackward => [
                "|x, w, dy; eps| { let n = 1 / width(); let r = rsqrt(fma(sum(x * x), n, eps)); let g = dy * w; \
                 let c = sum(g * x) * n * r * r; (fma(x, -c, g) * r, sum_column(dy * (x * r))) }",
                "T:(?,1), T:(0,1), T:(?,1)",
                "T:(?,1), f32:1",
            ],
            Preset::LayerNormBackward => [
                "|x, w, dy; eps| { let n = 1 / width(); let a = sum(x) * n; let d = x - a; \
                 let r = rsqrt(fma(sum(d * d), n, eps)); let h = fma(x, r, -(a * r)); let g = dy * w; \
                 let c = sum(g * d) * n * r * r; let m = sum(g) * n; \
                 (fma(h, -c, fma(dy, w, -m) * r), sum_column(dy * h), sum_column(dy)) }",
                "T:(?,1), T:(0,1), T:(?,1)",
                "T:(?,1), f32:1, f32:1",
            ],
            Preset::SoftmaxBackward => ["|y, dy| y * (dy - sum(y * dy))", "T:(?,1), T:(?,1)", "T:(?,1)"],
            Preset::CrossEntropyBackward => [
                "|x, target, dloss; ignore_index| { let e = exp(x - max(x)); let p = e * (1 / sum(e)); \
                 let d = p - select(col() == target, 1, 0); select(target == ignore_index, 0, d * dloss) }",
                "T:(?,1), i32:1, f32:1",
                "T:(?,1)",
            ],
        }
    }

    /// The recipe for elements of a type.
    pub(super) fn rows(self, dtype: DType) -> Rows {
        let [program, inputs, outputs] = self.parts();
        let function: Function = program.parse().unwrap_or_else(|error| unreachable!("{program}: {error}"));
        let specs = |text: &str| -> Vec<TensorSpec> {
            let all = text.split(", ").map(|spec| spec.replace('T', dtype.name()).parse());
            all.collect::<Result<_, _>>().unwrap_or_else(|error| unreachable!("{text}: {error}"))
        };
        let (inputs, outputs) = (specs(inputs), specs(outputs));
        Rows { inputs, outputs, ..Rows::new(function, dtype) }
    }
}
