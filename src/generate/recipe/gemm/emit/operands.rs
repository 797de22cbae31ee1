//! What the templates ask of operands: how they lie, how they are packed, and what the epilogue makes of them.

use super::{Common, Shared};
use crate::expr::Helpers;
use crate::plan::SCALE_D;
use crate::recipe::Isa;
use crate::recipe::gemm::Factors;
use crate::recipe::product::{Tensor, stride_params};

/// How a factor gets into the workspace.
pub(super) enum Way {
    /// It is copied as it lies.
    AsItLies,
    /// Rows that an index names are copied.
    Gathered,
    /// It is turned.
    Turned,
}

impl Common<'_> {
    /// The last mode in the shape of a tensor of all tiles.
    pub(super) fn modes_l(&self) -> &'static str {
        if self.part.recipe.have_l("B") || self.groups_k() { ",l" } else { "" }
    }

    /// Whether a box of some factor may have fewer rows than its part of a tile.
    pub(super) fn cuts(&self) -> bool {
        ["A", "B"].iter().any(|factor| self.part.cuts(factor))
    }

    /// Bytes of a k-tile of a factor that are loaded: a parameter, or all of them.
    pub(super) fn bytes(&self, factor: &str) -> String {
        let all =
            self.part.tiling.operands().find(|tensor| tensor.name == factor).map_or(0, |tensor| tensor.stage_bytes().0);
        if self.part.cuts(factor) { format!("params.bytes_{}", factor.to_lowercase()) } else { all.to_string() }
    }

    /// The number of the matrix of a factor that a tile multiplies.
    pub(super) fn matrix_of(&self, factor: &Tensor) -> String {
        if factor.has_l() { format!("get<2>(crd) * params.each_{}", factor.is.param) } else { "0".to_owned() }
    }

    /// The box of a factor that is loaded for a k-tile.
    pub(super) fn box_of(&self, factor: &str) -> String {
        let of_tile = format!("t{factor}g{factor}_k");
        if self.groups_k() { format!("later({of_tile}, group.begin * stride<1>(m{factor}))") } else { of_tile }
    }

    /// Matrices of each operand.
    pub(super) fn batches(&self) -> &'static str {
        if self.batched() { "params.l" } else { "1" }
    }

    /// Arrays in shared memory of the mainloop.
    pub(super) fn staged(&self) -> impl Iterator<Item = &Shared> {
        self.tensors.iter().filter(|tensor| !tensor.lent)
    }

    /// Arrays that lie where those did.
    pub(super) fn lent(&self) -> impl Iterator<Item = &Shared> {
        self.tensors.iter().filter(|tensor| tensor.lent)
    }

    pub(super) fn factors(&self) -> &[Tensor] {
        &self.operands[..2]
    }

    /// The epilogue inputs, and D.
    pub(super) fn epilogue(&self) -> impl Iterator<Item = &Tensor> {
        self.reads().iter().chain(self.written())
    }

    pub(super) fn reads(&self) -> &[Tensor] {
        &self.operands[self.part.recipe.epilogue_inputs(self.operands.len())]
    }

    /// D, and E ahead of it.
    pub(super) fn written(&self) -> &[Tensor] {
        self.part.recipe.outputs(&self.operands)
    }

    /// The scales of a quantised D.
    pub(super) fn scale_d(&self) -> Option<&Tensor> {
        self.operands.iter().find(|operand| operand.is.name == SCALE_D)
    }

    /// The type of the epilogue's results.
    pub(super) fn result(&self, tensor: &Tensor) -> String {
        if self.scale_d().is_some() { self.compute().to_owned() } else { format!("Element{}", tensor.is.name) }
    }

    /// A result of the epilogue: it is an element of D already, unless D is quantised.
    pub(super) fn given(&self, value: &str) -> String {
        if self.scale_d().is_some() { value.to_owned() } else { self.rounded(value) }
    }

    /// D, and E behind it.
    pub(super) fn outputs(&self) -> impl Iterator<Item = &Tensor> {
        self.written().iter().rev()
    }

    /// Its number among them.
    pub(super) fn output_of(&self, tensor: &Tensor) -> usize {
        self.outputs().position(|output| output.is.name == tensor.is.name).unwrap_or_default()
    }

    pub(super) fn d(&self) -> &Tensor {
        &self.operands[self.operands.len() - 1]
    }

    /// The parameters that hold its strides.
    pub(super) fn strides(&self, tensor: &Tensor) -> Vec<String> {
        stride_params(&tensor.is).into_iter().flatten().collect()
    }

    /// Shape and strides of a factor as rows along its contiguous mode: `(ROWS,COLUMNS,L)`.
    pub(super) fn rows(&self, tensor: &Tensor) -> String {
        let [rows, columns] = self.part.rows(tensor.is.name);
        let strides = self.strides(tensor);
        let (l, apart) = match strides.get(1) {
            // One for all is packed once.
            Some(batch) => (format!("params.{batch} == 0 ? 1 : params.l"), format!("params.{batch}")),
            None => ("_1{}".to_owned(), "_0{}".to_owned()),
        };
        let shape = format!("make_shape(params.{rows}, params.{columns}, {l})");
        let (ld, next) = (format!("params.{}", strides[0]), "_1{}".to_owned());
        let [row, column] = if self.turns(tensor) { [next, ld] } else { [ld, next] };
        format!("{shape}, make_stride({row}, {column}, {apart})")
    }

    /// Whether a factor is turned while it is packed.
    pub(super) fn turns(&self, tensor: &Tensor) -> bool {
        self.part.recipe.turns()[usize::from(tensor.is.name == "B")]
    }

    /// The function that packs it.
    pub(super) fn packing(&self, tensor: &Tensor) -> &'static str {
        if self.turns(tensor) { "turn_tile" } else { "pack_tile" }
    }

    /// Whether an index names the rows of A.
    pub(super) fn gathers(&self) -> bool {
        self.part.recipe.gather
    }

    /// Whether an index names the rows of D.
    pub(super) fn scatters(&self) -> bool {
        self.part.recipe.scatter
    }

    /// The ways in which factors of this text are packed.
    pub(super) fn ways_to_pack(&self) -> impl Iterator<Item = Way> {
        let [a, b] = self.part.recipe.turns();
        let as_it_lies = !b || !(a || self.gathers());
        let all = [(as_it_lies, Way::AsItLies), (self.gathers(), Way::Gathered), (a || b, Way::Turned)];
        all.into_iter().filter_map(|(is_used, way)| is_used.then_some(way))
    }

    /// Whether a kernel begins before the one ahead of it has ended.
    pub(super) fn overlaps(&self) -> bool {
        self.plan.entries().iter().any(|entry| entry.overlaps)
    }

    /// Whether fragments are rounded to tf32.
    pub(super) fn rounds(&self) -> bool {
        self.part.recipe.dtype == Factors::Tf32 && self.part.isa == Isa::Sm80
    }

    pub(super) fn epilogue_text(&self) -> String {
        self.part.recipe.epilogue.to_string()
    }

    /// How the matrices lie.
    pub(super) fn majors(&self) -> String {
        let [a, b] = self.part.recipe.k_major();
        let [l_a, l_b, l_d] = ["A", "B", "D"].map(|name| if self.part.recipe.have_l(name) { ",L" } else { "" });
        let major = |k_major: bool, other| if k_major { "K" } else { other };
        let (a, b) = (major(a, "M"), major(b, "N"));
        let text = format!("A is (M,K{l_a}), {a}-major, B is (N,K{l_b}), {b}-major, D is (M,N{l_d}), N-major");
        let [turns_a, turns_b] = self.part.recipe.turns();
        let turned = [(turns_a, ", A turned from M-major"), (turns_b, ", B turned from N-major")];
        let text = turned.into_iter().filter(|(turns, _)| *turns).fold(text, |text, (_, also)| text + also);
        match self.part.recipe.is_turned() {
            true => text + ", where A and B are the launch's B and A, and D is its transposed D",
            false => text,
        }
    }

    /// The arguments of the epilogue after the first accumulator: the other one of a pair, and inputs in registers, at the indices of both
    /// columns.
    pub(super) fn inputs(&self, other: &str, prefix: &str, indices: &[&str; 2]) -> String {
        let other = if self.part.recipe.pairs { format!(", {other}") } else { String::new() };
        other + &self.op.converted(&self.operands, prefix, indices)
    }

    /// The text where each accumulator makes an element of D, or where each pair of them does.
    pub(super) fn each<'t>(&self, one: &'t str, pair: &'t str) -> &'t str {
        if self.part.recipe.pairs { pair } else { one }
    }

    /// The tile of D, (BM,BN) or (BM,BN/2).
    pub(super) fn tile_of_d(&self) -> &'static str {
        self.each("TileD", "TilePairs")
    }

    /// A thread's accumulators, or what lies as they do, in the order of its copies of D.
    pub(super) fn in_copies(&self, thread: &str, tensor: &str) -> String {
        match self.part.recipe.pairs {
            true => format!("logical_divide({tensor}, make_tile(_2{{}}))"),
            false => format!("StageD{{}}.get_slice({thread}).retile_S({tensor})"),
        }
    }

    /// An element of D, or of E with two outputs, from that result.
    pub(super) fn rounded(&self, value: &str) -> String {
        Helpers::new(self.part.product.epilogue().compute()).store(self.part.recipe.out, value)
    }

    /// The type that the epilogue computes in.
    pub(super) fn compute(&self) -> &'static str {
        self.part.product.epilogue().compute().cxx()
    }

    /// The type of an accumulator.
    pub(super) fn sum(&self) -> &'static str {
        self.part.recipe.dtype.sums().cxx()
    }

    /// Four accumulators.
    pub(super) fn sum4(&self) -> &'static str {
        if self.part.recipe.dtype == Factors::I8 { "int4" } else { "float4" }
    }
}
