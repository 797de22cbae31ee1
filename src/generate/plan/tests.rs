//! A plan of two entries for tests, which no family has.

use crate::arch::Targets;
use crate::dtype::DType;
use crate::plan::{
    Call, Draft, Entry, Given, Int, KernelPlan, ModeStride, Operand, ParamStruct, ParamType, Plan, Reach, Rule,
};
use crate::settings::Settings;
use crate::units::Bytes;
use crate::view::Access;

/// A kernel of two entries. The second adds up partial sums that the first left in a workspace, and may be skipped.
#[derive(Debug)]
struct TwoPasses;

impl KernelPlan for TwoPasses {
    #[cfg(feature = "emit")]
    fn header(&self, _: &Plan) -> String {
        String::new()
    }
}

/// A block for each element of C, and a second entry where A has more than 8 elements.
fn rule(params: &ParamStruct) -> Rule {
    let mut rule = Rule::new(params, Reach::default());
    let [m, n, k] = ["m", "n", "k"].map(|name| rule.param(name));
    let something = Int::from(0).less(m.clone()).and(Int::from(0).less(n.clone()));
    let split = Int::from(8).less(m.clone() * k);
    let blocks = [n, m, 1.into()];
    rule.grid(something.clone(), blocks.clone());
    rule.grid(something.and(split.clone()), blocks);
    rule.workspace = split.select(24, 0);
    rule
}

/// Its plan.
pub(crate) fn two_passes() -> Plan {
    let operand = |name, param: &str, access| Operand {
        name,
        param: param.to_owned(),
        dtype: DType::F16,
        access,
        strides: vec![ModeStride::Dynamic, ModeStride::Unit],
        in_place: false,
    };
    let first = Entry { dynamic_smem: Bytes(65536), min_blocks: Some(2), ..Entry::new("two_passes", 256, Bytes(128)) };
    let field = |name: &str, ty, doc: &str, given| (name.to_owned(), ty, doc.to_owned(), given);
    let params = ParamStruct::new([
        field("a", ParamType::ConstPtr, "A", Given::Address { tensor: 0 }),
        field("c", ParamType::MutPtr, "C", Given::Address { tensor: 1 }),
        field("m", ParamType::I32, "M", Given::Extent { tensor: 1, mode: 0 }),
        field("n", ParamType::I32, "N", Given::Extent { tensor: 1, mode: 1 }),
        field("k", ParamType::I32, "K", Given::Extent { tensor: 0, mode: 1 }),
        field("workspace", ParamType::MutPtr, "partial sums", Given::Follows),
    ]);
    let draft = Draft {
        family: "two_passes",
        rust_type: "TwoPasses",
        name: "two_passes".into(),
        recipe: "TwoPasses".into(),
        settings: Settings::new(),
        targets: Targets::default(),
        operands: vec![operand("A", "a", Access::Read), operand("C", "c", Access::Write)],
        rule: rule(&params),
        params,
        entries: vec![first, Entry::new("two_passes_reduce", 128, Bytes(0))],
        scalars: Vec::new(),
        problem: None,
        call: Call::default(),
    };
    // SAFETY: it is bound and never launched.
    unsafe { draft.plan(TwoPasses) }
}
