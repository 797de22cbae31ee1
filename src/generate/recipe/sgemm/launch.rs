//! From the views of a launch to its grid and parameters.

use super::Variant;
use super::decide::{Decision, operands};
use crate::arch::Arch;
use crate::plan::{Field, Given, Int, ModeStride, Operand, ParamStruct, ParamType, Reach, Rule, WORKSPACE};
use crate::recipe::product::{self, Fields, Parts, number};

/// The parameter struct: addresses, workspace, strides, extents, split-K, alignment, scalars.
pub(super) fn params(decision: &Decision) -> ParamStruct {
    let (recipe, operands) = (&decision.recipe, operands(decision));
    let (scalars, alpha) = (decision.product.scalar_params(), decision.product.alpha());
    let (l, compute) = (recipe.batched.then_some(0), decision.product.epilogue().compute());
    let of = Fields { operands: &operands, l, scalars, alpha, compute };
    let mut fields: Vec<Field> = of.addresses().collect();
    let doc = match recipe.parts() {
        Parts::Each(1) => None,
        Parts::Each(parts) => {
            let l = if recipe.batched { ",L" } else { "" };
            Some(format!("partial sums of the {parts} splits of K, (M,N,SPLIT{l})"))
        }
        Parts::Wave(_) => Some("partial sums of each tile that is split along K, (BM,BN,(CUT,PARTS))".to_owned()),
    };
    fields.extend(doc.map(|doc| (WORKSPACE.to_owned(), ParamType::MutPtr, doc, Given::Follows)));
    fields.extend(of.strides());
    fields.extend(of.extents());
    if recipe.wave > 0 {
        let docs = [
            ("whole", "tiles of D that one block computes alone"),
            ("cut", "the following tiles of D, which are split along K"),
            ("parts", "blocks of each split tile"),
            ("k_part", "k-tiles of one such block; the last block has the rest"),
        ];
        fields.extend(docs.map(|(name, doc)| number(name, doc)));
    }
    for (factor, (name, what)) in VECTORS.into_iter().enumerate() {
        if decision.has_vectors(factor) {
            fields.push(number(name, &format!("1 if all {what} are aligned, else 0")));
        }
    }
    fields.extend(of.scalars());
    ParamStruct::new(fields)
}

/// The parameters that say whether vectors of A, of B, and of D with the epilogue inputs are aligned.
const VECTORS: [(&str, &str); 3] = [
    ("aligned_a", "loads of A"),
    ("aligned_b", "loads of B"),
    ("aligned_d", "vectors of D and of the epilogue inputs"),
];

/// Grids, alignment and split-K, from addresses, strides and extents.
pub(super) fn rule(decision: &Decision) -> Rule {
    let mut rule = Rule::new(&params(decision), reach(decision));
    let extents = ["m", "n", "k", "l"].map(|name| rule.param_or_one(name));
    let [bm, bn, bk] = decision.tile();
    let margin = bk * (decision.stages() * i64::from(decision.recipe.split_k) + 1);
    for (extent, tile) in extents.iter().zip([bm, bn, margin, 1]) {
        let most = i64::from(i32::MAX) - 2 * tile;
        rule.steps.require(extent.clone().at_most(most), "coordinates are 32-bit integers");
    }
    decision.recipe.parts().grids(&mut rule, decision.tile(), &decision.tiling.order);
    for (factor, (name, _)) in VECTORS.into_iter().enumerate() {
        if decision.has_vectors(factor) {
            let aligned = aligned(decision, &rule, factor);
            rule.derive_if_any(name, aligned);
        }
    }
    rule
}

/// Whether all loads of A (0), or of B (1), or all vectors of D and of the epilogue inputs are aligned.
fn aligned(decision: &Decision, rule: &Rule, factor: usize) -> Int {
    let vec = decision.vector(factor);
    let one = |operand: &Operand| product::aligned(rule, operand, vec, |_| true);
    let all = operands(decision);
    if factor < 2 {
        return all.get(factor).map_or(Int::Const(0), one);
    }
    // The sums of the parts of K lie in rows without gaps.
    let sums = if decision.recipe.split_k == 1 { Int::Const(1) } else { rule.param("n").divides_by(vec) };
    let along_n = |operand: &&Operand| operand.strides.get(1) == Some(&ModeStride::Unit);
    sums.and(Int::all(all.iter().skip(2).filter(along_n).map(one)))
}

/// The error for extents that are too large.
fn reach(decision: &Decision) -> Reach {
    let [bm, bn, _] = decision.tile();
    let grid = Arch::MAX_GRID_YZ as i64;
    let blocks = match decision.recipe.parts() {
        Parts::Wave(_) => "tiles of D below 2^31".to_owned(),
        Parts::Each(1) => format!("M <= {}, L <= {grid}", grid * bm),
        Parts::Each(split) => {
            format!("M <= {}, L * split_k <= {grid}, that is L <= {}, M * N < 2^31", grid * bm, grid / split)
        }
    };
    let help = match decision.recipe.variant {
        Variant::Pipelined if decision.recipe.wave == 0 => "wave=264, whose blocks lie along x, or launches on parts",
        Variant::Pipelined => "launch on parts of the matrices",
        _ => "a larger tile",
    };
    Reach {
        required: format!("extents below 2^31 less some tiles of {bm} x {bn}, {blocks}"),
        because:
            "coordinates are 32-bit integers, and a grid has at most 65535 blocks along y and z (CUDA C++ Programming \
                  Guide, \"Compute Capabilities\"); offsets are 64-bit"
                .into(),
        help: help.into(),
    }
}
