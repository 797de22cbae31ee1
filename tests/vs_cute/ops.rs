//! Cases of the line protocol, answered by the library.

use cutemplate::layout::*;

use crate::cpp::Case;

/// An answer: its text, and the layout where it is one.
pub(crate) struct Ours {
    pub text: String,
    pub layout: Option<Layout>,
}

impl From<Layout> for Ours {
    fn from(layout: Layout) -> Ours {
        Ours { text: layout.to_string(), layout: Some(layout) }
    }
}

fn text(value: impl std::fmt::Display) -> Ours {
    Ours { text: value.to_string(), layout: None }
}

fn truth(value: bool) -> Ours {
    text(i32::from(value))
}

/// The library's answer. Operands are valid text: the generator wrote them.
pub(crate) fn ours(case: &Case) -> Result<Ours, LayoutError> {
    let layout = |i: usize| -> Result<Layout, LayoutError> { case.input(i).parse() };
    let tuple = |i: usize| -> Result<IntTuple, LayoutError> { case.input(i).parse() };
    let tiler = |i: usize| -> Result<Tiler, LayoutError> { case.input(i).parse() };
    let number = |i: usize| case.input(i).parse::<i64>().expect("a number");
    let index = |i: usize| case.input(i).parse::<usize>().expect("an index");
    let two = case.inputs.len() > 1;
    let three = case.inputs.len() > 2;
    let answer: Ours = match case.op.as_str() {
        "coalesce" if two => coalesce_by(&layout(0)?, &tuple(1)?)?.into(),
        "coalesce" => coalesce(&layout(0)?)?.into(),
        "filter" if two => filter_by(&layout(0)?, &tuple(1)?)?.into(),
        "filter" => filter(&layout(0)?)?.into(),
        "filter_zeros" if two => filter_zeros_by(&layout(0)?, &tuple(1)?)?.into(),
        "filter_zeros" => filter_zeros(&layout(0)?).into(),
        "flatten" => flatten(&layout(0)?).into(),
        "unflatten" => unflatten(&layout(0)?, &tuple(1)?)?.into(),
        "nullspace" => nullspace(&layout(0)?)?.into(),
        "right_inverse" => right_inverse(&layout(0)?)?.into(),
        "left_inverse" => left_inverse(&layout(0)?)?.into(),
        "cosize" => text(layout(0)?.cosize()?),
        "coshape" => text(layout(0)?.coshape()?),
        "size" => text(layout(0)?.size()),
        "rank" => text(layout(0)?.rank()),
        "depth" => text(layout(0)?.depth()),
        "max_alignment" => text(max_alignment(&layout(0)?)?),
        "make_layout" => make_layout(&tuple(0)?)?.into(),
        "make_layout_right" => make_layout_right(&tuple(0)?)?.into(),
        "make_layout_like" => make_layout_like(&layout(0)?)?.into(),
        "make_fragment_like" => make_fragment_like(&layout(0)?)?.into(),
        "make_identity_layout" => make_identity_layout(&tuple(0)?)?.into(),
        "make_ordered_layout" => make_ordered_layout(&tuple(0)?, &tuple(1)?)?.into(),
        "make_layout_tv" => {
            let (tiler, tv) = make_layout_tv(&layout(0)?, &layout(1)?)?;
            text(format!("{tiler};{tv}"))
        }
        "zip" => zip(&layout(0)?)?.into(),
        "complement" if two => complement(&layout(0)?, &tuple(1)?)?.into(),
        "complement" => complement_in_cosize(&layout(0)?)?.into(),
        "composition" => composition_by(&layout(0)?, &tiler(1)?)?.into(),
        "logical_divide" => logical_divide(&layout(0)?, &tiler(1)?)?.into(),
        "zipped_divide" => zipped_divide(&layout(0)?, &tiler(1)?)?.into(),
        "tiled_divide" => tiled_divide(&layout(0)?, &tiler(1)?)?.into(),
        "flat_divide" => flat_divide(&layout(0)?, &tiler(1)?)?.into(),
        "logical_product" => logical_product(&layout(0)?, &tiler(1)?)?.into(),
        "zipped_product" => zipped_product(&layout(0)?, &tiler(1)?)?.into(),
        "tiled_product" => tiled_product(&layout(0)?, &tiler(1)?)?.into(),
        "flat_product" => flat_product(&layout(0)?, &tiler(1)?)?.into(),
        "blocked_product" => blocked_product(&layout(0)?, &layout(1)?)?.into(),
        "raked_product" => raked_product(&layout(0)?, &layout(1)?)?.into(),
        "tile_to_shape" => {
            tile_to_shape(&layout(0)?, &tuple(1)?, if three { Some(tuple(2)?) } else { None }.as_ref())?.into()
        }
        "upcast" => upcast(&layout(0)?, number(1))?.into(),
        "downcast" => downcast(&layout(0)?, number(1))?.into(),
        "recast_layout" => recast_layout(&layout(0)?, number(1), number(2))?.into(),
        "max_common_vector" => text(max_common_vector(&layout(0)?, &layout(1)?)?),
        "max_common_layout" => max_common_layout(&layout(0)?, &layout(1)?)?.into(),
        "domain_distribute" => domain_distribute(&tuple(0)?, number(1))?.into(),
        "crd2idx" => text(crd2idx(&tuple(0)?, &layout(1)?)?),
        "eval" => text(crd2idx(&tuple(1)?, &layout(0)?)?),
        "idx2crd" => text(idx2crd(&tuple(0)?, &tuple(1)?)?),
        "crd2crd" => text(crd2crd(&tuple(0)?, &tuple(1)?, &tuple(2)?)?),
        "compatible" => truth(compatible(&tuple(0)?, &tuple(1)?)),
        "congruent" => truth(congruent(&tuple(0)?, &tuple(1)?)),
        "weakly_congruent" => truth(weakly_congruent(&tuple(0)?, &tuple(1)?)),
        "evenly_divides" => truth(evenly_divides(&tuple(0)?, &tiler(1)?)?),
        "ceil_div" => text(ceil_div(&tuple(0)?, &tuple(1)?)?),
        "shape_div" => text(shape_div(&tuple(0)?, &tuple(1)?)?),
        "append" => append(&layout(0)?, index(1), &if three { layout(2)? } else { Layout::unit() })?.into(),
        "prepend" => prepend(&layout(0)?, index(1), &if three { layout(2)? } else { Layout::unit() })?.into(),
        "replace" => replace(&layout(0)?, index(1), &layout(2)?)?.into(),
        "group" => group(&layout(0)?, index(1), index(2))?.into(),
        "take" => take(&layout(0)?, index(1), index(2))?.into(),
        "select" => select(&layout(0)?, &(1..case.inputs.len()).map(index).collect::<Vec<_>>())?.into(),
        "slice" => slice(&tuple(1)?, &layout(0)?)?.into(),
        "dice" => dice(&tuple(1)?, &layout(0)?)?.into(),
        "slice_and_offset" => {
            let (layout, offset) = slice_and_offset(&tuple(1)?, &layout(0)?)?;
            text(format!("{layout};{offset}"))
        }
        "vals" => {
            let layout = layout(0)?;
            let values: Result<Vec<String>, _> =
                (0..layout.size()).map(|i| Ok(crd2idx(&i.into(), &layout)?.to_string())).collect();
            text(values?.join(","))
        }
        op => panic!("{op} is not in the table of operations"),
    };
    Ok(answer)
}
