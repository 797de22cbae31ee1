//! The names of tensors and parameters that come from a function's inputs and scalars.

use std::collections::BTreeSet;

use crate::expr::{Function, free_names};
use crate::plan::interned;
use crate::reserved;

/// What a kernel's text calls the tensors that a function's inputs are read from, and its run-time scalars: as the function
/// does, where that means nothing else in the text, in C++ or in Rust.
///
/// ```
/// use cutemplate::expr::Function;
/// use cutemplate::recipe::Names;
///
/// let function: Function = "|x, bias; n| n * x + bias".parse()?;
/// let names = Names::new(&["Y"], &[], function.input_names(), &function);
/// assert_eq!((names.tensors, names.params), (vec!["X", "Bias"], vec!["x".to_owned(), "bias".to_owned()]));
/// // The extent of a mode is called n.
/// assert_eq!(names.scalars, ["n_"]);
/// # Ok::<(), cutemplate::expr::ExprError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Names {
    /// `Bias` in `mBias`.
    pub tensors: Vec<&'static str>,
    /// `bias` in `params.bias`.
    pub params: Vec<String>,
    /// `alpha` in `params.alpha`.
    pub scalars: Vec<String>,
}

/// Parameters that do not belong to one operand, and words that stand before operands' names in templates: `read_part` is a
/// function, beside `read_bias`. Variables and functions of the host side.
const PARAMS: &[&str] = &[
    "args",
    "begin",
    "box",
    "ceil_div",
    "dim3",
    "dims",
    "error",
    "launch",
    "max",
    "min",
    "strides",
    "ahead",
    "aligned",
    "aligned_in",
    "cut",
    "group",
    "k",
    "k_part",
    "k_parts",
    "k_share",
    "l",
    "m",
    "m0",
    "m1",
    "m2",
    "m3",
    "m4",
    "n",
    "next",
    "of",
    "part",
    "parts",
    "passes_l2",
    "rows",
    "stays",
    "sums",
    "vectors",
    "whole",
    "workspace",
];

/// The parameters of one operand: before its name, and behind.
const OF_OPERAND: &[(&str, &str)] = &[
    ("", ""),
    ("ld", ""),
    ("inc", ""),
    ("inc_", ""),
    ("batch_", ""),
    ("ld", "0"),
    ("ld", "1"),
    ("ld", "2"),
    ("ld", "3"),
    ("ld", "4"),
    ("aligned_", ""),
    ("apart_", ""),
    ("batches_", ""),
    ("bytes_", ""),
    ("", "_batch"),
    ("", "_head"),
    ("", "_row"),
    ("", "_stride0"),
    ("", "_stride1"),
    ("", "_stride2"),
    ("", "_stride3"),
    ("copied_", ""),
    ("each_", ""),
    ("has_map_", ""),
    ("leading_", ""),
    ("lies_", ""),
    ("map_", ""),
    ("packed_", ""),
    ("packs_", ""),
    ("phase_", ""),
    ("whole_", ""),
];

fn of_operand(param: &str) -> Vec<String> {
    OF_OPERAND.iter().map(|(before, behind)| format!("{before}{param}{behind}")).collect()
}

impl Names {
    /// Names for `inputs`, beside the operands `others` and what templates name themselves, and for the scalars of the function.
    pub fn new<'n>(
        others: &[&str],
        of_templates: &[&str],
        inputs: impl Iterator<Item = &'n str>,
        function: &Function,
    ) -> Self {
        let inputs: Vec<&str> = inputs.collect();
        let stems: Vec<String> = inputs.iter().map(|name| capitalized(name)).collect();
        let is_free = |stem: &str| !others.contains(&stem) && !of_templates.contains(&stem);
        let stems = free_names(stems.iter().map(String::as_str), is_free);
        let mut taken: BTreeSet<String> = PARAMS.iter().map(|&name| name.to_owned()).collect();
        taken.extend(others.iter().flat_map(|other| of_operand(&other.to_ascii_lowercase())));
        let params = inputs.iter().map(|name| free_param(name, &mut taken, of_operand));
        let params = params.collect();
        let scalars =
            function.scalars().iter().map(|name| free_param(name, &mut taken, |param| vec![param.to_owned()]));
        Self { scalars: scalars.collect(), params, tensors: stems.into_iter().map(interned).collect() }
    }

    /// The name of the only output, or of the first of several: `Y`, unless an input or a scalar has it.
    pub fn output(function: &Function, usual: &'static str) -> &'static str {
        let is_free = |stem: &&&str| {
            let begins = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()) == stem.to_ascii_lowercase();
            !function.input_names().any(begins) && !function.scalars().iter().any(|scalar| begins(scalar))
        };
        [usual, "Out", "Result"].iter().find(is_free).unwrap_or(&"Written")
    }
}

/// `Bias` of `bias`.
fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}

/// A field of the parameter struct for `name`. It takes what `needs` says.
fn free_param(name: &str, taken: &mut BTreeSet<String>, needs: impl Fn(&str) -> Vec<String>) -> String {
    let mut found = name.to_owned();
    for number in 1.. {
        let word = reserved::in_cxx(&found) || reserved::never_in_rust(&found);
        if !word && !needs(&found).iter().any(|need| taken.contains(need)) {
            break;
        }
        found = if number == 1 { format!("{name}_") } else { format!("{name}_{number}") };
    }
    taken.extend(needs(&found));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arch::Targets;
    use crate::plan::{Given, Plan};
    use crate::recipe::{ElementwiseApply, FAMILIES, Family, Gemm, Recipe, Sum};

    fn plans() -> impl Iterator<Item = Plan> {
        // Users name what a function takes; parameters of other families meet no such name.
        let named =
            |family: &&Family| family.settings.iter().any(|setting| ["expr", "epilogue"].contains(&setting.key));
        let named = FAMILIES.iter().filter(named);
        let settings = named.flat_map(|family| family.catalogue.iter().map(move |text| (family, text)));
        settings.flat_map(|(family, text)| {
            let settings = crate::settings::Settings::parse_lines(text);
            let plan = family.usual_plan(&settings).expect("the catalogue is planned");
            plan.texts().to_vec()
        })
    }

    /// The words that names keep clear of are all that any kernel has: a new parameter belongs in one of the lists.
    #[test]
    fn every_parameter_of_the_catalogue_is_known() {
        let mut unknown = BTreeSet::new();
        for plan in plans() {
            let mut known: BTreeSet<String> = PARAMS.iter().map(|&name| name.to_owned()).collect();
            known.extend(plan.operands().iter().flat_map(|operand| of_operand(&operand.param)));
            known.extend(plan.scalars().iter().cloned());
            let names = plan.params().fields().iter().map(|field| field.name.as_str());
            let names = names.map(|name| name.strip_prefix("from_").unwrap_or(name));
            unknown.extend(names.filter(|name| !known.contains(*name)).map(str::to_owned));
        }
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    /// Whatever a user calls inputs and scalars, fields differ, and a scalar is found in its own.
    #[test]
    fn fields_differ_whatever_their_names_are() {
        let texts = [
            "|n, m; y, int| n * m * y + int",
            "|a, lda, inca; ldy| a + lda * inca + ldy",
            "|i, i_, t; self| i + i_ * t + self",
        ];
        let mut plans = Vec::new();
        for text in texts {
            let function: Function = text.parse().expect("a function");
            let apply = ElementwiseApply::new(function.clone(), crate::dtype::DType::F32);
            plans.push(apply.plan(&Targets::default()).expect("any name"));
            plans.push(
                Sum::new(function.clone(), crate::dtype::DType::F32).plan(&Targets::default()).expect("any name"),
            );
            let aux = vec!["f32:(0,1)".parse().expect("a row"); function.inputs() - 1];
            plans.push(Gemm::default().with_epilogue(function, aux).plan(&Targets::default()).expect("any name"));
        }
        for plan in plans.iter().flat_map(Plan::texts) {
            let fields: Vec<&str> = plan.params().fields().iter().map(|field| field.name.as_str()).collect();
            let once: BTreeSet<&str> = fields.iter().copied().collect();
            assert_eq!(once.len(), fields.len(), "{fields:?}");
            assert!(fields.iter().all(|name| !reserved::in_cxx(name)), "{fields:?}");
            let tensors: BTreeSet<&str> = plan.operands().iter().map(|operand| operand.name).collect();
            assert_eq!(tensors.len(), plan.operands().len(), "{tensors:?}");
            let scalars = plan.params().fields().iter().filter(|field| matches!(field.given, Given::Scalar(_)));
            assert_eq!(scalars.count(), plan.scalars().len());
        }
    }
}
