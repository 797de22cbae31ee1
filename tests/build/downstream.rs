//! Contract: a family is made with the public API alone. The smallest of ours with templates is compiled here from its own files, as
//! another crate would, and so is a name for its settings. They give what the library gives.

use cutemplate::arch::Targets;
use cutemplate::emit::render;
use cutemplate::recipe::{Family, family};
use cutemplate::settings::Settings;

#[path = "../../src/generate/recipe/rows/mod.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "nothing is exported from a test")]
mod rows;
#[path = "../../src/generate/recipe/sum.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "nothing is exported from a test")]
mod sum;

#[test]
fn a_family_of_another_crate_is_planned_and_written_as_ours() {
    let refused = ["threads=33", "in=f32:(1,1)", "theads=64", "expr=|x; inf| x * inf", "expr=max(max(a))"];
    same(&Family::of::<rows::Rows>(), &refused);
}

#[test]
fn so_is_a_name_for_settings_of_another_family() {
    let refused = ["threads=33", "in=f32:(1,1)", "expr=|a, b| (a, b)", "theads=64", "expr=|x; inf| x * inf"];
    same(&Family::of::<sum::Sum>(), &refused);
}

fn same(theirs: &Family, refused: &[&'static str]) {
    let ours = family(theirs.name).expect("it is registered");
    for text in ours.catalogue.iter().chain(refused) {
        let settings = Settings::parse_lines(text);
        let [ours, theirs] = [ours, theirs].map(|of| of.plan(&settings, None, &Targets::default()));
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                assert_eq!(render(&ours), render(&theirs), "{text}");
                assert_eq!(ours.to_string(), theirs.to_string(), "{text}");
                assert_eq!(ours.abi().digest(), theirs.abi().digest(), "{text}");
            }
            (ours, theirs) => {
                let [ours, theirs] = [ours, theirs].map(|plan| plan.expect_err("refused by both").to_string());
                assert_eq!(ours, theirs, "{text}");
            }
        }
    }
}
