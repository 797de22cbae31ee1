//! A plan of two entries for tests: what no family of its own has to be planned for.

use std::sync::Arc;

use crate::arch::Targets;
use crate::diagnostic::BindError;
use crate::dtype::DType;
use crate::plan::{Entry, Geometry, KernelPlan, ModeStride, Operand, ParamStruct, ParamType, ParamValue, Plan};
use crate::settings::Settings;
use crate::units::Bytes;
use crate::view::{Access, ViewRef};

/// A kernel of two entries, of which the second adds up what the first left in a workspace, and which may be skipped.
#[derive(Debug)]
struct TwoPasses;

impl KernelPlan for TwoPasses {
    fn header(&self, _: &Plan) -> String {
        String::new()
    }

    fn geometry(&self, _: &Plan, views: &[ViewRef], _: &[f64]) -> Result<Geometry, BindError> {
        let [m, n] = [views[1].layout.shape()[0], views[1].layout.shape()[1]].map(|e| e as u32);
        let blocks = (m > 0 && n > 0).then_some([n, m, 1]);
        let split = views[0].layout.size() > Some(8);
        let values =
            vec![ParamValue::Ptr(views[0].ptr), ParamValue::Ptr(views[1].ptr), ParamValue::I32(1), ParamValue::Ptr(0)];
        let bytes = if split { 24 } else { 0 };
        Ok(Geometry { grids: vec![blocks, blocks.filter(|_| split)], values, workspace: Bytes(bytes) })
    }
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
        may_be_empty: true,
    };
    let first = Entry { dynamic_smem: Bytes(65536), min_blocks: Some(2), ..Entry::new("two_passes", 256, Bytes(128)) };
    Plan {
        family: "two_passes",
        rust_type: "TwoPasses",
        name: "two_passes".into(),
        recipe: "TwoPasses".into(),
        settings: Settings::new(),
        targets: Targets::default(),
        operands: vec![operand("A", "a", Access::Read), operand("C", "c", Access::Write)],
        rule: None,
        params: ParamStruct::new(&[
            ("a", ParamType::ConstPtr, "A"),
            ("c", ParamType::MutPtr, "C"),
            ("k", ParamType::I32, "K"),
            ("workspace", ParamType::MutPtr, "partial sums"),
        ]),
        entries: vec![first, Entry::new("two_passes_reduce", 128, Bytes(0))],
        scalars: Vec::new(),
        shared: Vec::new(),
        warnings: Vec::new(),
        facts: Vec::new(),
        kernel: Arc::new(TwoPasses),
        parts: Vec::new(),
    }
}
