//! The recipes that most callers begin with: for a type, and with a bias.

use super::{Block, Consumers, Factors, Gemm};
use crate::diagnostic::debug_as_display;
use crate::dtype::DType;
use crate::expr::{Expr, Function};
use crate::plan::{Groups, ModeStride};
use crate::recipe::TensorSpec;
use crate::recipe::product::Extents;

/// No tensor core multiplies this type.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "gemm does not multiply {0}\n  \
     found:    A and B of {0}\n  \
     required: f16, bf16, e4m3, e5m2, i8, or f32, which is multiplied as tf32\n  \
     because:  these are the types that this family has tensor core instructions for\n  \
     help:     sgemm multiplies f32 with all its bits"
)]
pub struct NoFactors(pub DType);

debug_as_display!(NoFactors);

impl TryFrom<DType> for Factors {
    type Error = NoFactors;

    /// f32 is multiplied as tf32.
    fn try_from(dtype: DType) -> Result<Self, NoFactors> {
        Self::ALL.iter().copied().find(|factors| factors.dtype() == dtype).ok_or(NoFactors(dtype))
    }
}

impl Gemm {
    /// The usual recipe for A and B of a type; f32 is multiplied as tf32.
    ///
    /// # Errors
    /// No tensor core multiplies the type.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::Gemm;
    ///
    /// assert_eq!(Gemm::of(DType::Bf16)?.dtype.dtype(), DType::Bf16);
    /// let refused = Gemm::of(DType::U8).unwrap_err().to_string();
    /// assert!(refused.contains("required: f16, bf16, e4m3, e5m2, i8, or f32, which is multiplied as tf32"));
    /// # Ok::<(), cutemplate::recipe::gemm::NoFactors>(())
    /// ```
    pub fn of(dtype: DType) -> Result<Self, NoFactors> {
        Ok(Self::default().with_factors(dtype.try_into()?))
    }

    /// The same of groups of rows, one after the other, each with a matrix of B of its own: A `(M,K)`, B `(K,N,L)`, Offsets `(L)`, the
    /// end of each group in i32, D `(M,N)`. The experts of a layer are such groups. Auxiliary tensors are `(M,N)`, or `(M,N,L)`.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let plan = Gemm::of(DType::Bf16)?.grouped().plan(&Targets::default())?;
    /// let operands: Vec<String> = plan.operands().iter().map(|o| format!("{} {}", o.name, o.stride_text())).collect();
    /// assert_eq!(operands, ["A (?,1)", "B (1,?,?)", "Offsets 1", "D (?,1)"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn grouped(self) -> Self {
        self.in_groups(Groups::Rows)
    }

    /// The same of groups of up to M rows, each in a matrix of its own: A `(M,K,L)`, B `(K,N,L)`, Counts `(L)`, the rows of each group in
    /// i32, D `(M,N,L)`.
    #[must_use]
    pub fn masked(self) -> Self {
        self.in_groups(Groups::Masked)
    }

    /// Ping-pong: groups begin and end anywhere, and one team multiplies while the other finds and stores its tile.
    fn in_groups(self, groups: Groups) -> Self {
        let Extents([_, _, k]) = self.tile;
        let (tile, cluster) = (Extents([128, 128, k]), Extents([1, 2]));
        Self { groups, schedule: Consumers::Pingpong, tile, cluster, stages: 6, ..self }
    }

    /// The same of rows of A that an index names: A `(R,K)`, Gather `(M)` in i32, D `(M,N)`. Row m of the product reads row Gather(m) of A,
    /// or zeros where A has no such row. Everything else lies along the rows of the product. A launch packs these rows first.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// // The experts of a layer: tokens are read in the order of their experts, and each result is stored for its token and choice.
    /// let [up, down] = [Gemm::of(DType::Bf16)?.grouped().gathered(), Gemm::of(DType::Bf16)?.grouped().scattered()];
    /// let shapes = up.plan(&up.usual_targets())?.shapes(&[4096, 1536, 2048, 128, 512]).ok_or("M, N, K, L, R")?;
    /// assert_eq!(shapes, [vec![512, 2048], vec![2048, 1536, 128], vec![128], vec![4096], vec![4096, 1536]]);
    /// let shapes = down.plan(&down.usual_targets())?.shapes(&[4096, 2048, 1536, 128, 4096]).ok_or("M, N, K, L, S")?;
    /// assert_eq!(shapes[3..], [vec![4096], vec![4096, 2048]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn gathered(self) -> Self {
        Self { gather: true, ..self }
    }

    /// The same of rows of D that an index names: D `(S,N)`, Scatter `(M)` in i32. Row m of the product is row Scatter(m) of D, and is not
    /// written where D has no such row. Two rows may not have one index: they would be written at the same time. A weight for each row
    /// is an epilogue input, `f32:(1,0)`.
    #[must_use]
    pub fn scattered(self) -> Self {
        Self { scatter: true, ..self }
    }

    /// SwiGLU of a gate and an up projection whose weights are interleaved: column 2j of B is column j of gate, and column 2j + 1 column j of
    /// up. D is `(M,N/2)`: D(m,j) = silu(gate) * up, of the sums of both columns. Scales come after this; see `pairs` for other functions.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let swiglu = Gemm::of(DType::Bf16)?.gated();
    /// let shapes = swiglu.plan(&swiglu.usual_targets())?.shapes(&[4096, 28672, 4096]).ok_or("M, N, K")?;
    /// assert_eq!(shapes, [[4096, 4096], [4096, 28672], [4096, 14336]]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn gated(self) -> Self {
        Self { pairs: true, ..self }.with_epilogue(traced("|gate, up| silu(gate) * up"), Vec::new())
    }

    /// The same with a scale in f32 for each row of A and for each column of B: D = A @ B * scale_a * scale_b. D is bf16 where it was i32.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let by_row = Gemm::of(DType::E4m3)?.scaled_rows();
    /// let plan = by_row.plan(&by_row.usual_targets())?;
    /// let operands: Vec<String> = plan.operands().iter().map(|o| format!("{} {}", o.dtype, o.stride_text())).collect();
    /// assert_eq!(operands, ["e4m3 (?,1)", "e4m3 (1,?)", "f32 (1,0)", "f32 (0,1)", "bf16 (?,1)"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn scaled_rows(self) -> Self {
        self.scaled_by([1, 0], [0, 1])
    }

    /// The same with one scale in f32 for A, and one for B, which lie on the device: D = A @ B * scale_a * scale_b.
    #[must_use]
    pub fn scaled(self) -> Self {
        self.scaled_by([0, 0], [0, 0])
    }

    /// The same with scales in f32 for blocks of A and of B, over 128 elements of K each. Each sum over 128 of K is multiplied by the
    /// product of its two scales, rounded to f32, and added in f32. Scales lie anywhere: ScaleA is (M,K/128), or (M/128,K/128), and ScaleB
    /// is (K/128,N), or (K/128,N/128), rounded up. They are the last tensors that a launch reads: pass them by
    /// [`aux`](crate::recipe::product::ProductArgs::aux). The tile leaves registers for any epilogue. Where D is the accumulator,
    /// `tile=192x128x128` in clusters of 1x2 is faster.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{Gemm, Recipe};
    /// use cutemplate::recipe::gemm::Block;
    ///
    /// // Activations quantised by 128 channels of a token, weights by blocks of 128 x 128.
    /// let scaled = Gemm::of(DType::E4m3)?.block_scaled(Block::Row, Block::Square);
    /// let plan = scaled.plan(&scaled.usual_targets())?;
    /// let operands: Vec<String> = plan.operands().iter().map(|o| format!("{} {}", o.name, o.stride_text())).collect();
    /// assert_eq!(operands, ["A (?,1)", "B (1,?)", "ScaleA (?,?)", "ScaleB (?,?)", "D (?,1)"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn block_scaled(self, scale_a: Block, scale_b: Block) -> Self {
        let [m, _, k] = self.tile.0;
        let (scale_a, scale_b) = (Some(scale_a), Some(scale_b));
        Self { promote: 128, scale_a, scale_b, tile: Extents([m, 128, k]), ..self }
    }

    /// The same with D in e4m3, quantised: 128 elements of a row share a scale, ScaleD `(M,N/128)` in f32, which a launch binds by
    /// [`scale_d`](crate::recipe::product::ProductArgs::scale_d). It is the largest size of what the epilogue gives for them, divided by
    /// 448, or 1 where all are 0. D is what the epilogue gives, times the scale's reciprocal, rounded.
    ///
    /// ```
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::gemm::Block;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// // What one layer gives is what the next one reads.
    /// let layer = Gemm::of(DType::E4m3)?.block_scaled(Block::Row, Block::Square).quantised();
    /// let plan = layer.plan(&layer.usual_targets())?;
    /// let shapes = plan.shapes(&[300, 200, 160]).ok_or("three extents")?;
    /// let operands: Vec<String> = plan.operands().iter().zip(shapes).map(|(o, shape)| format!("{} {shape:?}", o.name)).collect();
    /// assert_eq!(operands[2..], ["ScaleA [300, 2]", "ScaleB [2, 2]", "ScaleD [300, 2]", "D [300, 200]"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn quantised(self) -> Self {
        let ([m, _, k], n) = (self.tile.0, 128 * self.sums() as u32);
        Self { out: DType::E4m3, scale_d: Some(Block::Row), tile: Extents([m, n, k]), ..self }
    }

    /// With scales of these strides, 0 or 1, along (M,N). Each matrix of A and of B has its own.
    fn scaled_by(self, of_a: [u8; 2], of_b: [u8; 2]) -> Self {
        let text = match (self.pairs, of_b[1]) {
            (false, _) => "|a, scale_a, scale_b| a * scale_a * scale_b",
            (true, 0) => "|gate, up, scale_a, scale_b| silu(gate * scale_a * scale_b) * (up * scale_a * scale_b)",
            (true, _) => {
                "|gate, up, scale_a, scale_b, scale_b_up| silu(gate * scale_a * scale_b) * (up * scale_a * scale_b_up)"
            }
        };
        let stride = |stride| if stride == 0 { ModeStride::Broadcast } else { ModeStride::Unit };
        let scale = |of: &str, strides: [u8; 2]| TensorSpec {
            dtype: DType::F32,
            strides: strides.map(stride).into_iter().chain(self.have_l(of).then_some(ModeStride::Dynamic)).collect(),
        };
        let aux = vec![scale("A", of_a), scale("B", of_b)];
        // What scales multiply is no integer.
        let out = if self.out == DType::I32 { DType::Bf16 } else { self.out };
        Self { out, ..self }.with_epilogue(traced(text), aux)
    }

    /// The same with the epilogue D = activation(A @ B + bias), one bias of D's type for each column of D.
    ///
    /// ```
    /// use cutemplate::arch::Targets;
    /// use cutemplate::dtype::DType;
    /// use cutemplate::recipe::{Gemm, Recipe};
    ///
    /// let plan = Gemm::of(DType::Bf16)?.bias(|x| x.gelu()).plan(&Targets::default())?;
    /// let operands: Vec<String> = plan.operands().iter().map(|o| format!("{} {}", o.name, o.stride_text())).collect();
    /// assert_eq!(operands, ["A (?,1)", "B (1,?)", "Bias (0,1)", "D (?,1)"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn bias<F>(self, activation: F) -> Self
    where
        F: for<'t> FnOnce(Expr<'t>) -> Expr<'t>,
    {
        let function = Function::binary(|a, bias| activation(a + bias)).named(&["a", "bias"]);
        let function = function.unwrap_or_else(|defect| unreachable!("two inputs have two names: {defect}"));
        let mut strides = vec![ModeStride::Broadcast, ModeStride::Unit];
        strides.extend(self.have_l("D").then_some(ModeStride::Broadcast));
        let bias = TensorSpec { dtype: self.out, strides };
        self.with_epilogue(function, vec![bias])
    }
}

/// A function of this file.
fn traced(text: &str) -> Function {
    text.parse().unwrap_or_else(|defect| unreachable!("{text}: {defect}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::recipe::gemm::ScaleType;
    use crate::recipe::rows::Preset;
    use crate::recipe::{Recipe, Rows};

    #[test]
    fn a_quantised_d_is_what_rows_quantise() {
        let preset = Rows::preset(Preset::Quantize, DType::F32).function.to_string();
        let of_d = crate::plan::QUANTISER.replacen("|x, m| { ", "|x| { let m = max_group128(abs(x)); ", 1);
        let of_d: Function = of_d.parse().expect("a row program");
        assert_eq!(preset, of_d.to_string());
    }

    #[test]
    fn scales_go_with_groups_and_with_a_quantised_d() {
        let e4m3 = Gemm::of(DType::E4m3).expect("a type");
        let mut names = BTreeSet::new();
        for grouped in [e4m3.clone(), e4m3.clone().grouped(), e4m3.masked()] {
            let blocks = grouped.clone().block_scaled(Block::Row, Block::Square);
            let powers = Gemm { scale_type: ScaleType::Ue8m0, ..blocks.clone() };
            for scaled in [grouped.clone().scaled(), grouped.scaled_rows(), blocks, powers] {
                for recipe in [scaled.clone(), scaled.quantised()] {
                    let plan = recipe.plan(&recipe.usual_targets()).unwrap_or_else(|error| panic!("{error}"));
                    names.insert(plan.name().to_owned());
                    // Each group has scales of its own matrix of B, and D's lie as its rows do.
                    let rank = |name: &str| plan.operands().iter().find(|o| o.name == name).map(|o| o.strides.len());
                    let of = |ours: &str, matrix: &str| rank(ours).is_none_or(|found| Some(found) == rank(matrix));
                    assert!(of("ScaleA", "A") && of("ScaleB", "B") && of("ScaleD", "D"), "{}", plan.name());
                }
            }
        }
        // `scaled` and `scaled_rows` differ in what their inputs are, which a name does not say.
        assert_eq!(names.len(), 3 * 2 * 3);
    }
}
