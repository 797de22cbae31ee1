//! The parameters of a launch, and how they follow from its views.

use super::Gemm;
use super::decide::Part;
use crate::dtype::DType;
use crate::expr::Compute;
use crate::plan::{
    Field, Given, Groups, Indexed, ModeStride, Operand, ParamStruct, ParamType, Product, SCALE_D, SCALES, WORKSPACE,
};
use crate::recipe::Isa;
use crate::recipe::product::{Epilogue, Fields, number, stride_params};
use crate::view::{Access, ViewLayout, ViewRef};

/// The parameter struct of a text: tensor maps, addresses, strides, extents, scalars.
pub(super) fn params(part: &Part) -> ParamStruct {
    let (operands, recipe) = (part.operands(), &part.recipe);
    let (scalars, alpha) = (part.product.scalar_params(), part.product.alpha());
    let l = operands.iter().position(|operand| operand.strides.len() > 2);
    let compute = part.product.epilogue().compute();
    let of = Fields { operands: &operands, l, scalars, alpha, compute };
    let mut fields: Vec<Field> = Vec::new();
    if part.isa == Isa::Sm90a {
        let stored = if recipe.scatter { &[] } else { recipe.outputs(&operands) };
        let mapped = operands.iter().take(2).chain(stored);
        fields.extend(mapped.map(|Operand { name, param, access, .. }| {
            let doc = match access {
                Access::Write | Access::ReadWrite => {
                    format!("{name}, if written rows begin and end at multiples of 16 bytes")
                }
                Access::Read => format!("{name}, or its packed copy"),
            };
            (format!("map_{param}"), ParamType::TensorMap, doc, Given::Follows)
        }));
    }
    fields.extend(of.addresses());
    let also = if part.tiling.streams_k() { "; behind them the sums of shared tiles" } else { "" };
    let row = (64 * recipe.dtype.dtype().bytes().0).min(128);
    let doc = format!("packed A, then packed B: rows at multiples of {row} bytes{also}");
    fields.push((WORKSPACE.to_owned(), ParamType::MutPtr, doc, Given::Follows));
    if part.isa == Isa::Sm90a && l.is_some() {
        let docs = [("each_a", "A"), ("each_b", "B")];
        fields.extend(docs.map(|(name, of)| number(name, &format!("1 if each batch has its own {of}, else 0"))));
    }
    if part.isa == Isa::Sm90a && !recipe.scatter {
        let doc = "1 if D is larger than L2, so that its stores should not stay there, else 0";
        fields.push(number("passes_l2", doc));
    }
    let [along, next] = part.own.along().modes().map(str::to_uppercase);
    fields.push(number("group", &format!("tiles of a cluster along {along} before the next along {next}")));
    if part.stays() {
        let doc = "1 if the k-tiles of a tile divide the stages, so that an operand stays resident, else 0";
        fields.push(number("stays", doc));
    }
    fields.extend(of.strides());
    fields.extend(operands.iter().take(2).flat_map(places));
    fields.extend(operands.iter().take(2).map(packs));
    fields.extend(operands.iter().take(2).filter(|operand| part.cuts(operand.name)).map(bytes));
    if part.tiling.streams_k() {
        let docs = [
            ("whole", "tiles that one cluster computes; the other tiles are shared"),
            (
                "k_parts",
                "shares of a shared tile with k_share k-tiles each; clusters compute the rests after them tile after tile",
            ),
            ("k_share", "k-tiles of shared tiles that a cluster computes"),
            ("parts", "partial sums of shared tiles in the workspace"),
        ];
        fields.extend(docs.map(|(name, doc)| number(name, doc)));
        let doc = "f32 elements of the workspace before the partial sums".to_owned();
        fields.push(("sums".to_owned(), ParamType::I64, doc, Given::Follows));
    }
    fields.extend(extents(recipe, &operands, of.extents()));
    fields.extend(of.scalars());
    if recipe.is_turned() {
        let pairs = pairs(&operands);
        fields.iter_mut().for_each(|(.., given)| *given = argument(*given, &pairs));
    }
    ParamStruct::new(fields)
}

/// The extents, and the rows of an A and of a D that an index names: M is how many indices there are.
fn extents(recipe: &Gemm, operands: &[Operand], all: impl Iterator<Item = Field>) -> Vec<Field> {
    let find = |name: &str| operands.iter().position(|operand| operand.name == name);
    let rows = |tensor| Given::Extent { tensor, mode: 0 };
    let of_product = recipe.indices().operands().find_map(find);
    let all = all.map(|(name, ty, doc, given)| {
        let given = of_product.filter(|_| name == "m").map_or(given, rows);
        (name, ty, doc, given)
    });
    let named = [(recipe.gather, "rows_a", "A"), (recipe.scatter, "rows_d", "D")].into_iter().filter(|(is, ..)| *is);
    let field = |(_, name, of): (bool, &str, &str)| {
        let (name, doc) = (name.to_owned(), format!("rows of {of}"));
        Some((name, ParamType::I32, doc, rows(find(of)?)))
    };
    all.chain(named.filter_map(field)).collect()
}

/// Where a factor is copied from: as it lies, or packed.
fn places(operand: &Operand) -> impl Iterator<Item = Field> {
    let (name, param) = (operand.name, &operand.param);
    let strides = stride_params(operand).into_iter().enumerate().filter_map(move |(mode, stride)| {
        let which = if mode == 2 { "matrix" } else { "row" };
        let doc = format!("elements from one {which} to the next of {name} as the mainloop reads it");
        Some((format!("from_{}", stride?), doc))
    });
    let begin = (format!("packed_{param}"), format!("elements of the workspace before {name}"));
    strides.chain([begin]).map(|(name, doc)| (name, ParamType::I64, doc, Given::Follows))
}

fn packs(operand: &Operand) -> Field {
    number(&format!("packs_{}", operand.param), &format!("CTAs that pack {}; 0 if it is read in place", operand.name))
}

fn bytes(operand: &Operand) -> Field {
    let Operand { name, param, .. } = operand;
    number(
        &format!("bytes_{param}"),
        &format!("bytes of a k-tile of {name} that are loaded: a box has no more rows than {name}"),
    )
}

/// The argument of a transposed product's launch, where the text has B, A, and all transposed.
fn argument(given: Given, pairs: &[[usize; 2]]) -> Given {
    let pair = |tensor| pairs.iter().find(|pair| pair.contains(&tensor));
    let tensor = |tensor| pair(tensor).map_or(tensor, |[a, b]| a + b - tensor);
    let mode = |mode| if mode < 2 { 1 - mode } else { mode };
    match given {
        Given::Address { tensor: t } => Given::Address { tensor: tensor(t) },
        Given::Stride { tensor: t, mode: m } => Given::Stride { tensor: tensor(t), mode: mode(m) },
        Given::Extent { tensor: t, mode: m } => Given::Extent { tensor: tensor(t), mode: mode(m) },
        Given::ExtentUnless { tensor: t, mode: m, zero } => {
            Given::ExtentUnless { tensor: tensor(t), mode: mode(m), zero }
        }
        Given::Scalar(_) | Given::Follows => given,
    }
}

/// The views as a text has them: of a turned product B, A, and all transposed.
pub(super) fn oriented(part: &Part, views: &[ViewRef]) -> Vec<ViewRef> {
    let mut views = views.to_vec();
    if part.recipe.is_turned() {
        pairs(&part.arguments()).into_iter().for_each(|[a, b]| views.swap(a, b));
        for view in &mut views {
            let (mut shape, mut stride) = (view.layout.shape().to_vec(), view.layout.stride().to_vec());
            shape.swap(0, 1);
            stride.swap(0, 1);
            view.layout = ViewLayout::strided(&shape, &stride).unwrap_or(view.layout);
        }
    }
    views
}

/// A and B, and their scales, where there are any: those that change places in a turned product.
fn pairs(operands: &[Operand]) -> Vec<[usize; 2]> {
    let scales = operands.iter().position(|operand| SCALES.contains(&operand.name));
    core::iter::once(0).chain(scales).map(|first| [first, first + 1]).collect()
}

/// The operands as a text has them: of a turned product B is its A, and all are transposed.
pub(super) fn turned(mut operands: Vec<Operand>) -> Vec<Operand> {
    for [a, b] in pairs(&operands) {
        operands.swap(a, b);
        let name = operands[a].name;
        operands[a].name = core::mem::replace(&mut operands[b].name, name);
    }
    for operand in &mut operands {
        let strides: &mut Vec<ModeStride> = &mut operand.strides;
        strides.swap(0, 1);
    }
    operands
}

impl Part {
    /// The extents of a factor, or of D, as rows along its contiguous mode: rows, and columns.
    pub(super) fn rows(&self, operand: &str) -> [&'static str; 2] {
        let [a, b] = self.recipe.k_major();
        match operand {
            "A" if a => ["m", "k"],
            "A" => ["k", "m"],
            "B" if b => ["n", "k"],
            "B" => ["k", "n"],
            _ => ["m", "n"],
        }
    }

    /// Whether a box of an operand has no more rows than the operand: only K-major ones.
    pub(super) fn cuts(&self, factor: &str) -> bool {
        self.isa == Isa::Sm90a && self.rows(factor)[1] == "k"
    }

    /// The operands as the text has them.
    pub(super) fn operands(&self) -> Vec<Operand> {
        self.recipe.operands(&self.product)
    }

    /// The operands as a launch has them, each with the field of the text that it is.
    pub(super) fn arguments(&self) -> Vec<Operand> {
        self.recipe.arguments(&self.product)
    }
}

impl Gemm {
    pub(super) fn epilogue(&self) -> Epilogue<'_> {
        let Gemm { epilogue: function, aux, groups, .. } = self;
        // An i32 has more bits than the fraction of an f32.
        let compute = if self.out == DType::I32 { Compute::I32 } else { Compute::F32 };
        Epilogue {
            function,
            aux,
            batched: self.have_l("D"),
            groups: *groups,
            outputs: 2,
            sums: self.sums(),
            compute,
            others: &[],
        }
    }

    /// Which rows an index names.
    pub(super) fn indices(&self) -> Indexed {
        Indexed { gather: self.gather, scatter: self.scatter }
    }

    /// Whether a launch knows how many matrices of D there are: batches, or groups along K.
    pub(super) fn has_batches(&self) -> bool {
        self.batched || self.groups == Groups::K
    }

    /// Whether an operand has a last mode L.
    pub(super) fn have_l(&self, operand: &str) -> bool {
        self.groups.have_l(operand, self.batched)
    }

    /// The operands as the text has them.
    pub(super) fn operands(&self, product: &Product) -> Vec<Operand> {
        let operands = self.arguments(product);
        if self.is_turned() { turned(operands) } else { operands }
    }

    /// The matrices: without the ends of groups, and the rows that an index names.
    pub(super) fn tensors(&self, product: &Product) -> Vec<Operand> {
        let mut operands = self.operands(product);
        operands.retain(|operand| !self.says_rows().any(|name| name == operand.name));
        operands
    }

    /// The operands that say which rows there are, ahead of those that are written.
    fn says_rows(&self) -> impl Iterator<Item = &'static str> {
        self.groups.operand().into_iter().chain(self.indices().operands())
    }

    /// The operands as a launch has them, each with the field of the text that it is.
    fn arguments(&self, product: &Product) -> Vec<Operand> {
        let of_b = self.dtype_b.unwrap_or(self.dtype);
        let (dtypes, majors) = ([self.dtype.dtype(), of_b.dtype(), self.out], [self.a, self.b, self.d]);
        let mut operands = self.epilogue().operands(product.has_c(), dtypes, majors);
        let scales = |name, of, dtype, access| {
            let strides = vec![ModeStride::Dynamic; if self.have_l(of) { 3 } else { 2 }];
            Operand::new(name, dtype, access, &strides)
        };
        let outputs = operands.len() - self.epilogue.outputs();
        let index = |name| Operand::new(name, DType::I32, Access::Read, &[ModeStride::Unit]);
        drop(operands.splice(outputs..outputs, self.indices().operands().map(index)));
        // Rows of the product are other rows of D.
        operands.iter_mut().for_each(|operand| operand.in_place &= !self.scatter);
        let outputs = operands.len() - self.epilogue.outputs();
        if self.scale_d.is_some() {
            operands.insert(outputs, scales(SCALE_D, "D", DType::F32, Access::Write));
        }
        if self.block_scales().is_some() {
            // They come ahead of what says which rows there are.
            let at = outputs - self.says_rows().count();
            let ([a, b], dtype) = (SCALES, self.scale_type.dtype());
            drop(operands.splice(at..at, [("A", a), ("B", b)].map(|(of, name)| scales(name, of, dtype, Access::Read))));
        }
        if self.is_turned() {
            for [a, b] in pairs(&operands) {
                let param = core::mem::take(&mut operands[a].param);
                operands[a].param = core::mem::replace(&mut operands[b].param, param);
            }
        }
        operands
    }

    /// The operands that the epilogue reads, of so many.
    pub(super) fn epilogue_inputs(&self, operands: usize) -> core::ops::Range<usize> {
        let scales = if self.block_scales().is_some() { SCALES.len() } else { 0 } + usize::from(self.scale_d.is_some());
        2..operands.saturating_sub(self.epilogue.outputs() + scales).max(2)
    }

    /// D, and E ahead of it.
    pub(super) fn outputs<'a, T>(&self, operands: &'a [T]) -> &'a [T] {
        &operands[operands.len() - self.epilogue.outputs()..]
    }
}
