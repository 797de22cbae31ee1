//! The decisions that a plan prints.

use super::decide::{Decision, operands};
use crate::model::Prediction;
#[cfg(feature = "emit")]
use crate::plan::Plan;
use crate::plan::{Fact, KernelPlan, Reference};
use crate::recipe::product::{Launch, Parts};
use crate::view::ViewRef;

impl KernelPlan for Decision {
    #[cfg(feature = "emit")]
    fn header(&self, plan: &Plan) -> String {
        super::emit::header(self, plan)
    }

    fn reference(&self) -> Option<&dyn Reference> {
        Some(&self.product)
    }

    fn predict(&self, views: &[ViewRef]) -> Option<Prediction> {
        let Self { tiling, shared, product, recipe, .. } = self;
        Launch { tiling, shared, product, operands: &operands(self), views, parts: recipe.parts() }.predict()
    }
}

pub(super) fn facts(decision: &Decision) -> Vec<Fact> {
    let recipe = &decision.recipe;
    let spare = |scalar: Option<usize>| match scalar {
        Some(s) => format!("not where {} = 0", recipe.epilogue.scalars()[s]),
        None => "read always".to_owned(),
    };
    let [alpha, beta] = [decision.product.alpha(), decision.product.beta()].map(spare);
    let each = "a accumulator, b C, c.. auxiliary; each operation rounded by itself";
    let mut facts = vec![
        Fact::new("variant", recipe.variant, recipe.variant.what()),
        Fact::new("epilogue", &recipe.epilogue, each),
        Fact::new("A and B", alpha, "whether they are read; elsewhere the sum counts as 0"),
    ];
    if decision.product.has_c() {
        facts.push(Fact::new("C", beta, "whether it is read; elsewhere it counts as 0"));
    }
    facts.extend(Fact::of_tiling(&decision.tiling));
    if decision.registers > 0 {
        let registers = format!("about {}", decision.registers);
        facts.push(Fact::new("registers", registers, "values and addresses; ptxas tells exactly"));
    }
    let [bm, bn, _] = decision.tile();
    let tiles = format!("ceil_div(N,{bn}), ceil_div(M,{bm})");
    facts.push(match recipe.parts() {
        Parts::Each(1) => Fact::new("grid", tiles, "and batches along z"),
        Parts::Each(_) => Fact::new("grid", tiles, "and batches and parts of K along z; a second kernel sums in order"),
        Parts::Wave(_) => {
            Fact::new("tiles", tiles, "and batches, along N first; tiles that do not fill a wave are split along K")
        }
    });
    facts
}
