//! Which recipe `cutemplate bench` measures on a problem: the chosen one, unless the settings say how the kernel computes.

use cutemplate::model::Machine;
use cutemplate::plan::Plan;
use cutemplate::recipe::{Family, product};
use cutemplate::settings::Settings;

use crate::cli::args::Problem;
use crate::cli::output::{Failure, Output};
use crate::cli::product::extents;

/// The settings of the recipe that is chosen for a problem. `None` if the family chooses none, or if a given setting is
/// one in which its candidates differ (a tile, for example): then the recipe is taken as given.
pub(crate) fn settings(
    family: &Family,
    usual: &Plan,
    problem: &Problem,
    machine: &Machine,
    given: &Settings,
) -> Result<Option<Settings>, Failure> {
    let Some(of) = product::Problem::of(usual, extents(problem)?) else { return Ok(None) };
    let candidates = family.candidates(&of, machine, &Settings::new())?;
    let differs = |key: &str| candidates.iter().any(|other| other.get(key) != candidates[0].get(key));
    if given.iter().any(|(key, _)| differs(key)) {
        return Ok(None);
    }
    family.chosen(&of, machine, given).transpose().map_err(Failure::from)
}

/// Says which recipe that is: the settings in which it is not the family's usual one.
pub(crate) fn tell(family: &Family, problem: &Problem, chosen: &Settings, out: &Output) -> Result<(), Failure> {
    let usual = family.complete(&Settings::new())?;
    let own = chosen.iter().filter(|(key, value)| usual.get(key) != Some(*value));
    let own: Vec<String> = own.map(|(key, value)| format!("--set '{key}={value}'")).collect();
    let own = if own.is_empty() { "the usual recipe".to_owned() } else { own.join(" ") };
    out.text(format_args!("{} for {problem}: chosen {own}", family.name));
    Ok(())
}

#[cfg(test)]
mod tests {
    use cutemplate::arch::Targets;
    use cutemplate::model::H200;
    use cutemplate::recipe::family;

    use super::*;

    #[test]
    fn a_problem_has_the_chosen_recipe_unless_the_settings_name_another() {
        let problem = Problem(vec![1024; 3]);
        for name in ["sgemm", "gemm"] {
            let family = family(name).expect("a family");
            let of = |given: &str| {
                let given = Settings::parse_lines(given);
                let usual = family.plan(&given, None, &Targets::default()).expect("a right recipe");
                settings(family, &usual, &problem, &H200, &given).expect("a choice")
            };
            let usual = family.plan(&Settings::new(), None, &Targets::default()).expect("a right recipe");
            let best = product::Problem::of(&usual, [1024; 3]).expect("a product");
            let best = family.chosen(&best, &H200, &Settings::new()).expect("a choice").expect("a recipe");
            assert_eq!(of(""), Some(best.clone()), "{name}");
            // The epilogue does not change the tile.
            let gelu = of("epilogue=gelu(a)").expect("a choice");
            assert_eq!(gelu.get("tile"), best.get("tile"), "{name}");
            let usual = family.complete(&Settings::new()).expect("complete");
            let tile = format!("tile={}", usual.get("tile").expect("it has one"));
            assert_eq!(of(&tile), None, "{name}: {tile}");
        }
    }

    #[test]
    fn a_family_without_a_choice_keeps_its_recipe() {
        let family = family("sum").expect("a family");
        let usual = family.plan(&Settings::new(), None, &Targets::default()).expect("a right recipe");
        let problem = Problem(vec![64, 64, 64]);
        assert_eq!(settings(family, &usual, &problem, &H200, &Settings::new()).expect("no choice"), None);
    }
}
