//! Contract: a family is made with the public API alone. The simplest of ours is compiled here from its own file, as another crate
//! would, and gives what the library gives.

use cutemplate::arch::Targets;
use cutemplate::emit::render;
use cutemplate::recipe::{Family, family};
use cutemplate::settings::Settings;

#[path = "../../src/generate/recipe/sum.rs"]
#[allow(unreachable_pub, unused_imports, reason = "nothing is exported from a test")]
mod sum;

#[test]
fn a_family_of_another_crate_is_planned_and_written_as_ours() {
    let ours = family("sum").expect("it is registered");
    let theirs = Family::of::<sum::Sum>();
    let refused = ["threads=33", "in=f32:(1,1)", "expr=|a, b| (a, b)", "theads=64", "expr=|x; inf| x * inf"];
    for text in ours.catalogue.iter().chain(&refused) {
        let settings = Settings::parse_lines(text);
        let [ours, theirs] = [ours, &theirs].map(|of| of.plan(&settings, None, &Targets::default()));
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
