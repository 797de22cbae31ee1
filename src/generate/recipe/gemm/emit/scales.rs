//! The scales of blocks: where they lie, and which one an element of D is multiplied by.

use crate::emit;
use crate::plan::{Operand, SCALED_K, SCALES};
use crate::recipe::gemm::decide::Part;
use crate::recipe::gemm::tilings::Scales;
use crate::recipe::product::stride_params;

/// The scales of a factor.
pub(super) struct ScalesText {
    pub(super) factor: &'static str,
    pub(super) name: &'static str,
    pub(super) param: String,
    /// The mode of D that the factor's rows lie along.
    pub(super) mode: usize,
    pub(super) granule: i64,
    /// Their last mode, where each matrix has its own.
    pub(super) modes_l: &'static str,
    /// Of all of them, in global memory.
    pub(super) shape: String,
    pub(super) strides: String,
    /// The layout of a stage's by element of D, (BM,BN,STAGES).
    pub(super) view: String,
}

/// Those of both factors, if blocks have scales.
pub(super) fn scales(part: &Part, operands: &[Operand]) -> Vec<ScalesText> {
    let [bm, bn, _] = part.tiling.tile;
    let text = |scales: Scales| {
        let (Scales { mode, rows, granule, count }, apart_stages) = (scales, scales.apart());
        let operand = operands.iter().find(|operand| operand.name == SCALES[mode])?;
        let params = stride_params(operand);
        let param = |mode: usize| params.get(mode)?.as_ref().map(|name| format!("params.{name}"));
        // ScaleB is (K/128,N).
        let (row, k) = (param(mode)?, param(1 - mode)?);
        let apart = param(2).map(|apart| format!(", {apart}"));
        let (l, modes_l) = if apart.is_some() { (", params.l", ",l") } else { ("", "") };
        let extent = ["m", "n"][mode];
        let stages = part.own.stages;
        let along = [format!("Shape<Int<{granule}>,Int<{count}>>"), "Stride<_0,_1>".to_owned()];
        let other = [emit::int([bn, bm][mode]), "_0".to_owned()];
        let of = |which: usize| {
            let [first, second] = if mode == 0 { [&along, &other] } else { [&other, &along] };
            format!("{},{}", first[which], second[which])
        };
        Some(ScalesText {
            factor: ["A", "B"][mode],
            name: SCALES[mode],
            param: operand.param.clone(),
            mode,
            granule,
            modes_l,
            shape: format!(
                "make_shape(make_shape(Int<{rows}>{{}}, ceil_div(params.{extent}, {rows})), ceil_div(params.k, {SCALED_K}){l})"
            ),
            strides: format!("make_stride(make_stride(_0{{}}, {row}), {k}{})", apart.unwrap_or_default()),
            view: format!("Layout<Shape<{},Int<{stages}>>, Stride<{},Int<{apart_stages}>>>", of(0), of(1)),
        })
    };
    part.recipe.scales(&part.own).filter_map(text).collect()
}
