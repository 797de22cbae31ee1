use std::sync::Arc;

use super::*;
use crate::build::Resources;
use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::digest::Digest;
use crate::plan::KernelPlan;
use crate::recipe::ElementwiseAdd;

/// A kernel that must not spill.
#[derive(Debug)]
struct Strict(Arc<dyn KernelPlan>);

impl KernelPlan for Strict {
    fn header(&self, plan: &Plan) -> String {
        self.0.header(plan)
    }
    fn spills_denied(&self) -> bool {
        true
    }
}

fn plan() -> Plan {
    ElementwiseAdd::default().plan(&Targets::default()).expect("the default is legal")
}

fn spilled() -> Manifest {
    let row = Resources {
        entry: plan().name().to_owned(),
        arch: "sm_80".into(),
        registers: 255,
        spill_stores: 16,
        ..Resources::default()
    };
    Manifest {
        name: "one".into(),
        generator: String::new(),
        nvcc: String::new(),
        cutlass: String::new(),
        cxx: String::new(),
        targets: vec![row.arch.clone()],
        ptx: None,
        sources: Vec::new(),
        fatbin: crate::bundle::FileDigest { name: String::new(), bytes: 0, sha256: Digest::of(b"") },
        resources: vec![row],
        warnings: Vec::new(),
    }
}

#[test]
fn a_recipe_can_deny_spills() {
    let strict = Plan { kernel: Arc::new(Strict(plan().kernel)), ..plan() };
    let check = |plan: Plan| Config::new().check_spills(&[plan], [&spilled()].into_iter());
    assert!(check(plan()).is_ok());
    let error = check(strict).expect_err("denied").to_string();
    assert!(
        error.contains("elementwise_add_f16 on sm_80: 16 bytes stored and 0 loaded by each thread, with 255 registers"),
        "{error}"
    );
}

#[test]
fn warnings_of_plans_are_lines_for_cargo() {
    let warning = Diagnostic {
        severity: Severity::Warning,
        kernel: None,
        code: Code::BankConflict,
        recipe: "Tile".into(),
        found: "two\nlines".into(),
        required: "one".into(),
        because: "cargo reads lines".into(),
        help: "none".into(),
    };
    let plan = Plan { warnings: vec![warning], ..plan() };
    let said = said(&[plan]);
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with("warning=elementwise_add_f16: warning[CT023]: "), "{said:?}");
    assert!(said[0].contains("found two lines; required one, because cargo reads lines; help: none"), "{said:?}");
}
