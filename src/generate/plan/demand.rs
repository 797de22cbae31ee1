//! What a launch of a kernel has to meet besides what holds for every kernel: extents that agree, strides that are constants,
//! addresses that are aligned.

use serde::{Deserialize, Serialize};

use super::given::Tensors;
use crate::diagnostic::{Code, Diagnostic};
use crate::int::{Int, IntOp};
use crate::plan::{Abi, Operand, Rule};
use crate::view::ViewRef;

/// The kind of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DemandKind {
    /// An extent is a constant, or that of another tensor.
    Extent,
    /// A stride is a constant, or follows from extents.
    Stride,
    /// An address or a stride is a multiple.
    Alignment,
    /// Anything else.
    Launch,
}

/// A condition on the values of a launch, with what is told where it does not hold.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demand {
    /// What it is about.
    pub kind: DemandKind,
    /// What has to be true, which is not 0: on the parameters and the further inputs of the rule.
    pub condition: Int,
    /// The condition, as a person wrote it.
    pub required: String,
    /// Why.
    pub because: String,
    /// Values that tell what was found, by name.
    pub found: Vec<(String, Int)>,
}

impl DemandKind {
    fn code(self) -> Code {
        match self {
            DemandKind::Extent => Code::ViewShape,
            DemandKind::Stride => Code::ViewStride,
            DemandKind::Alignment => Code::ViewAlignment,
            DemandKind::Launch => Code::Demand,
        }
    }

    fn help(self) -> &'static str {
        match self {
            DemandKind::Extent => "pass views of these extents, or change the layout in the declaration",
            DemandKind::Stride => "pass a view with these strides, or change the layout in the declaration",
            DemandKind::Alignment => "slice the allocation at a multiple, or pad the rows",
            DemandKind::Launch => "launch it on other views, or change the declaration",
        }
    }
}

impl Rule {
    /// Asks of a launch that this holds. The value tells what was found.
    pub fn demand(&mut self, kind: DemandKind, condition: Int, [required, because]: [&str; 2], found: &[(&str, &Int)]) {
        let found = found.iter().map(|(name, value)| ((*name).to_owned(), (*value).clone())).collect();
        let (required, because) = (required.to_owned(), because.to_owned());
        self.demands.push(Demand { kind, condition, required, because, found });
    }

    /// Demands that rows of an operand begin at multiples of so many bytes: its address and its strides. Each of `modes` is the parameter of
    /// a stride, what messages call it, and the extent. The stride of a single coordinate is never used.
    pub fn aligned<'a>(
        &mut self,
        operand: &Operand,
        bytes: i64,
        modes: impl IntoIterator<Item = (String, String, &'a Int)>,
    ) {
        let (name, vector) = (operand.name, bytes / operand.dtype.bytes().0 as i64);
        let because = format!("rows are copied in vectors of {bytes} bytes");
        let (address, kind) = (self.param(&operand.param), DemandKind::Alignment);
        let required = format!("{name} at a multiple of {bytes} bytes");
        self.demand(kind, address.clone().divides_by(bytes), [&required, &because], &[("address", &address)]);
        for (param, mode, extent) in modes {
            let stride = self.param(&param);
            let whole = extent.clone().at_most(1).op(IntOp::Or, stride.clone().divides_by(vector));
            let required = format!("strides of {name} that are multiples of {vector}");
            self.demand(kind, whole, [&required, &because], &[(&format!("stride of {mode}"), &stride)]);
        }
    }
}

/// Tells each demand of the kernel that these views do not meet.
pub(super) fn check(abi: &Abi, views: &[ViewRef], scalars: &[f64], found: &mut Vec<Diagnostic>) {
    if abi.draft().rule.demands.is_empty() {
        return;
    }
    let Some(tensors) = Tensors::new(None, views) else { return };
    let given = abi.params().fields().iter().map(|field| &field.given).chain(&abi.draft().rule.inputs);
    let Some(values) = given.map(|given| given.integer(&tensors, scalars)).collect::<Option<Vec<i64>>>() else {
        return;
    };
    for demand in &abi.draft().rule.demands {
        if demand.condition.eval(&values).is_some_and(|holds| holds != 0) {
            continue;
        }
        let told = demand.found.iter().map(|(name, value)| match value.eval(&values) {
            Some(value) => format!("{name} = {value}"),
            None => format!("{name} is no 64-bit integer"),
        });
        let told: Vec<String> = told.collect();
        let (code, required) = (demand.kind.code(), demand.required.clone());
        found.push(abi.diagnostic(code, told.join(", "), required, &demand.because, demand.kind.help()));
    }
}
