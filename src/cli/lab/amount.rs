//! What a launch of a kernel moves and computes: the numbers of its row.

use core::fmt;

use cutemplate::plan::{Abi, Plan};
use cutemplate::verify::TensorLayout;

/// Bytes and operations of a launch, where its family says them.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub(crate) struct Amount {
    /// Bytes that are read and written, where that is not each element of each operand once.
    pub(crate) bytes: Option<u64>,
    /// Operations, where they are counted.
    pub(crate) flop: Option<f64>,
}

impl Amount {
    /// What the reference of a plan says of a problem, its bytes filled in.
    pub(crate) fn of(plan: &Plan, extents: &[i64], layouts: &[TensorLayout]) -> Self {
        let reference = plan.reference();
        let told = reference.and_then(|reference| reference.bytes(extents));
        let bytes = told.unwrap_or_else(|| each_once(plan, layouts));
        Self { bytes: Some(bytes), flop: reference.and_then(|reference| reference.flop(extents)) }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3} MB read and written", self.bytes.unwrap_or(0) as f64 / 1e6)?;
        self.flop.map_or(Ok(()), |flop| write!(f, ", {:.3} GFLOP", flop / 1e9))
    }
}

/// The bytes of each element of each operand, broadcast ones counted once.
pub(super) fn each_once(abi: &Abi, layouts: &[TensorLayout]) -> u64 {
    let bytes = abi
        .operands()
        .iter()
        .zip(layouts)
        .map(|(operand, of)| of.layout.distinct().size().unwrap_or(0).saturating_mul(operand.dtype.bytes().0));
    bytes.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cutemplate::arch::Targets;
    use cutemplate::recipe::family;
    use cutemplate::settings::Settings;

    #[test]
    fn rows_count_bytes_and_operations() {
        let of = |name, problem: &[i64]| {
            let plan = family(name).expect("a family").plan(&Settings::new(), None, &Targets::default());
            let plan = plan.expect("a right recipe");
            let shapes = plan.problem_shape().and_then(|shape| shape.shapes(problem)).expect("extents of a problem");
            let layouts = plan.operands().iter().zip(&shapes).map(|(operand, shape)| operand.layout(shape, None));
            let layouts: Vec<TensorLayout> = layouts.map(|of| of.expect("small").into()).collect();
            Amount::of(&plan, problem, &layouts)
        };
        assert_eq!(of("elementwise_add", &[3, 5]), Amount { bytes: Some(3 * 15 * 2), flop: None });
        // f32: A, B, C and D; two operations for each product that is added.
        let product = Amount { bytes: Some(4 * (6 + 12 + 8 + 8)), flop: Some(2.0 * 24.0) };
        assert_eq!(of("sgemm", &[2, 4, 3]), product);
        assert_eq!(product.to_string(), "0.000 MB read and written, 0.000 GFLOP");
    }
}
