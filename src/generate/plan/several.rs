//! Plans of several texts: one for each group of architectures.

use std::sync::Arc;

use super::rule::{Reach, Rule};
use crate::arch::Targets;
use crate::diagnostic::{BindError, Code, Defect, Diagnostic};
use crate::plan::{Abi, Draft, KernelPlan, ParamStruct, Plan, Reference};
use crate::view::ViewRef;

/// The meaning of several texts, which is that of each.
#[derive(Debug)]
struct Several(Vec<Plan>);

impl KernelPlan for Several {
    #[cfg(feature = "emit")]
    fn header(&self, _: &Plan) -> String {
        self.0.iter().map(|text| text.kernel.header(text)).collect()
    }

    fn reference(&self) -> Option<&dyn Reference> {
        self.0.iter().find_map(Plan::reference)
    }

    fn spills_denied(&self) -> bool {
        self.0.iter().any(Plan::spills_denied)
    }

    fn max_registers(&self) -> Option<u64> {
        self.0.iter().filter_map(Plan::max_registers).min()
    }
}

impl Plan {
    /// The plan `name` of several texts, each for architectures of its own.
    ///
    /// # Errors
    /// There is no text, two serve one architecture, or they differ in recipe, operands, scalars, problem or arguments: mistakes of
    /// the family.
    pub fn of_texts(name: &str, mut texts: Vec<Plan>) -> Result<Plan, Defect> {
        texts.sort_by(|a, b| a.targets().archs().cmp(b.targets().archs()));
        let archs = || texts.iter().flat_map(|text| text.targets().archs()).copied();
        let Some(targets) = Targets::new(archs()) else { return Err(Defect::new("a plan without a text", name)) };
        if targets.archs().len() != archs().count() {
            return Err(Defect::new("two texts of a plan for one architecture", name));
        }
        if let [text] = &texts[..] {
            let draft = Draft { name: name.to_owned(), ..text.draft().clone() };
            return Ok(Plan { abi: Abi::new(draft), texts: vec![text.clone()], ..text.clone() });
        }
        let none = ParamStruct::new([]);
        let alike = |text: &Plan| Draft {
            name: name.to_owned(),
            targets: targets.clone(),
            entries: Vec::new(),
            rule: Rule::new(&none, Reach::default()),
            params: none.clone(),
            ..text.draft().clone()
        };
        let mut all: Vec<Abi> = texts.iter().map(|text| Abi::new(alike(text))).collect();
        all.dedup_by_key(|abi| abi.to_json());
        let warnings = texts.iter().flat_map(|text| text.warnings.clone()).collect();
        match <[Abi; 1]>::try_from(all) {
            Ok([abi]) => Ok(Plan {
                abi,
                shared: Vec::new(),
                warnings,
                facts: Vec::new(),
                kernel: Arc::new(Several(texts.clone())),
                texts,
            }),
            Err(_) => Err(Defect::new("texts of a plan that differ in what a caller sees", name)),
        }
    }
}

impl Abi {
    /// Refuses a launch of several texts.
    pub(super) fn one_text(&self, views: &[ViewRef]) -> Result<(), BindError> {
        if !self.entries().is_empty() {
            return Ok(());
        }
        let refused: Diagnostic = self.diagnostic(
            Code::SeveralTexts,
            format!("{} views for the texts of {}", views.len(), self.targets()),
            "the plan of one text".to_owned(),
            "entries, parameters and grids belong to a text",
            "Plan::text_on for a device, or each of Plan::texts",
        );
        Err(refused.into())
    }
}

#[cfg(test)]
mod tests {
    use crate::arch::{Arch, Targets};
    use crate::plan::{Abi, Draft, Plan, tests::two_passes};

    /// A text of another name and for one architecture.
    fn text(name: &str, arch: Arch, change: impl FnOnce(&mut Draft)) -> Plan {
        let mut draft = two_passes().draft().clone();
        (draft.name, draft.targets) = (name.to_owned(), Targets::new([arch]).expect("one"));
        change(&mut draft);
        Plan { abi: Abi::new(draft), ..two_passes() }
    }

    #[test]
    fn a_plan_of_several_texts_has_what_they_have_alike() {
        let (old, new) = (text("old", Arch::Sm80, |_| ()), text("new", Arch::Sm90a, |draft| draft.entries.truncate(1)));
        // Oldest first, in whatever order they come.
        let plan = Plan::of_texts("both", vec![new, old]).expect("a plan");
        let names: Vec<&str> = plan.texts().iter().map(|text| text.name()).collect();
        assert_eq!((plan.name(), names), ("both", vec!["old", "new"]));
        assert_eq!((plan.operands().len(), plan.targets().archs().len()), (2, 2));
        // What belongs to a text is asked of it.
        assert!(plan.entries().is_empty() && plan.params().fields().is_empty() && plan.facts().is_empty());
        let entries = |capability| plan.text_on(capability).map(|text| text.entries().len());
        assert_eq!([entries((8, 6)), entries((9, 0)), entries((7, 5))], [Some(2), Some(1), None]);
    }

    #[test]
    fn texts_that_are_no_plan_are_a_defect() {
        let refused = |texts| Plan::of_texts("both", texts).expect_err("refused").what;
        let old = || text("old", Arch::Sm80, |_| ());
        let other = text("new", Arch::Sm90a, |draft| draft.operands.truncate(1));
        assert_eq!(refused(vec![]), "a plan without a text");
        assert_eq!(refused(vec![old(), old()]), "two texts of a plan for one architecture");
        assert_eq!(refused(vec![old(), other]), "texts of a plan that differ in what a caller sees");
    }
}
