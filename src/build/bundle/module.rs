//! The Rust side of a kernel: the module that a crate includes.

mod own;

use core::fmt::Write as _;

use crate::cuda;
use crate::dtype::DType;
use crate::expr::free_names;
#[cfg(feature = "build")]
use crate::plan::Plan;
use crate::plan::{Draft, Operand};
use crate::reserved;
use crate::view::Access;

/// The machine code that a module embeds for a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Embedded<'a> {
    /// The files `<name>.fatbin` and `<name>.ptx` beside the module.
    Fatbin {
        /// The sha256 of the fatbin, in hexadecimal.
        sha256: &'a str,
    },
    /// None.
    Stub {
        /// Why.
        why: &'a str,
    },
}

/// A text of a kernel, as its module knows it.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    pub(crate) row: &'a Draft,
    /// The digest of its ABI.
    pub(crate) digest: String,
    pub(crate) code: Embedded<'a>,
    /// The stem of the fatbin's and the PTX's file.
    pub(crate) stem: String,
}

/// A text that stays on its line, whatever is in it.
fn line(text: &str) -> String {
    text.replace(|c: char| c.is_control(), " ")
}

/// The name without characters that are not allowed in one.
fn word(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect()
}

/// A word as a name of Rust, raw where it is a keyword.
fn ident(text: &str) -> String {
    let word = word(text);
    if reserved::in_rust(&word) { format!("r#{word}") } else { word }
}

/// The Rust name of a parameter struct: `Params`, and with its suffix where each text has its own, `ParamsSm80`.
fn params_name(kernel: &str, part: &str) -> String {
    let suffix = part.strip_prefix(kernel).and_then(|rest| rest.strip_prefix('_')).unwrap_or_default();
    let mut letters = suffix.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    format!("Params{}{}", first.map_or(String::new(), String::from), letters.as_str())
}

/// The module of a plan's kernel for a crate that calls cutemplate by its own name, as
/// [`Config`](crate::build::Config) writes it; each of [`Plan::texts`] takes one of `codes`.
#[cfg(feature = "build")]
pub fn rust_module<'a>(plan: &Plan, codes: &mut dyn Iterator<Item = Embedded<'a>>) -> String {
    plan_module("::cutemplate", plan, codes)
}

/// The same for a crate that calls cutemplate `root`.
#[cfg(feature = "build")]
pub(crate) fn plan_module<'a>(root: &str, plan: &Plan, codes: &mut dyn Iterator<Item = Embedded<'a>>) -> String {
    let rows: Vec<&Draft> = plan.texts().iter().map(|part| part.abi().draft()).collect();
    let parts = plan.texts().iter().zip(&rows).zip(codes);
    let parts = parts.map(|((part, row), code)| {
        let (digest, stem) = (part.abi().digest().to_string(), part.stem().to_owned());
        Part { row, digest, code, stem }
    });
    module(root, plan.name(), &parts.collect::<Vec<_>>())
}

/// The module of a kernel, for a crate that calls cutemplate `root`. It holds the recipe's type, the data to check and
/// launch it, its arguments and its parameter structs. It includes `<name>.abi.json` from the folder that it is written
/// to, and `<name>.fatbin` and `<name>.ptx` if they exist.
pub(crate) fn module(root: &str, kernel: &str, parts: &[Part<'_>]) -> String {
    let (kernel, mut out) = (word(kernel), String::new());
    let Some(first) = parts.first() else { return out };
    let archs: Vec<&str> = parts.iter().flat_map(|part| part.row.targets.archs()).map(|arch| arch.name()).collect();
    let what = match first.code {
        Embedded::Stub { .. } => "kernel, which was not compiled",
        Embedded::Fatbin { .. } => "compiled kernel",
    };
    let (recipe, family) = (line(&first.row.recipe), first.row.family);
    let ty = match first.row.rust_type {
        path if path.contains("::") => format!("::{path}"),
        name => format!("{root}::recipe::{name}"),
    };
    let is_own = family == cuda::FAMILY;
    let kind = if is_own {
        own::kind(root, &kernel, first.row)
    } else {
        format!("    /// The type of its recipe.\n    pub type Recipe = {ty};\n")
    };
    let doc = first.row.settings.get(cuda::DOC).map_or(String::new(), |doc| format!("/// {}\n///\n", line(doc)));
    let _ = writeln!(
        out,
        "{doc}/// Kernel `{kernel}`, generated from `{recipe}` for {}.\n\
         #[allow(dead_code, unreachable_pub, clippy::too_many_arguments)]\n\
         pub mod {kernel} {{\n\
         {kind}\n    \
             /// The {what}, with what is needed to check and launch it.\n    \
             pub static ARTIFACT: {root}::artifact::Artifact<'static> = {root}::__artifact! {{\n        \
                 family: \"{family}\",\n        \
                 name: \"{kernel}\",\n        \
                 texts: ::std::borrow::Cow::Borrowed(&[",
        archs.join(", "),
    );
    parts.iter().for_each(|part| artifact_text(root, part, &mut out));
    out.push_str("        ]),\n    };\n");
    let of = if is_own { "Entry" } else { "Recipe" };
    let _ = writeln!(
        out,
        "\n    /// Loads it on a GPU, or on a `Device`.\n    ///\n    /// # Errors\n    \
             /// It has no code for that device, or is damaged.\n    \
             pub fn load<D: {root}::artifact::Loads>(device: &D) -> ::core::result::Result<D::Kernel<{of}>, D::Error> {{\n        \
                 device.load::<{of}>(&ARTIFACT)\n    \
             }}"
    );
    if is_own {
        own::arguments(root, first.row, &mut out);
    } else {
        arguments(root, first.row, &mut out);
        parts.iter().for_each(|part| params(root, &kernel, part.row, &mut out));
    }
    out.push_str("}\n");
    out
}

fn artifact_text(root: &str, part: &Part<'_>, out: &mut String) {
    let (name, digest, stem) = (word(&part.row.name), &part.digest, word(&part.stem));
    let _ = writeln!(
        out,
        "            {root}::artifact::Text {{\n                \
             abi: include_str!(\"{name}.abi.json\"),\n                \
             digest: \"{digest}\","
    );
    let _ = match part.code {
        Embedded::Fatbin { sha256 } => writeln!(
            out,
            "                code: {root}::artifact::Code::Fatbin {{\n                    \
                 bytes: include_bytes!(\"{stem}.fatbin\"),\n                    \
                 sha256: \"{}\",\n                    \
                 ptx: {root}::artifact::Ptx::Text(include_str!(\"{stem}.ptx\")),\n                }},",
            line(sha256).replace('"', ""),
        ),
        Embedded::Stub { why } => {
            writeln!(out, "                code: {root}::artifact::Code::Stub {{ why: \"{}\" }},", why.escape_default())
        }
    };
    out.push_str("            },\n");
}

/// The Rust type of an element.
fn element(root: &str, dtype: DType) -> String {
    match dtype {
        DType::F16 | DType::Bf16 => format!("{root}::dtype::{dtype}"),
        DType::E4m3 => format!("{root}::dtype::E4m3"),
        DType::E5m2 => format!("{root}::dtype::E5m2"),
        DType::Bool => format!("{root}::dtype::Bool"),
        primitive => primitive.name().to_owned(),
    }
}

/// The names of the arguments, tensors first, each once: a tensor's without what kept it apart in C++.
fn argument_names(row: &Draft) -> Vec<String> {
    let lower = row.operands.iter().map(|operand| word(&operand.name.to_ascii_lowercase())).collect::<Vec<_>>();
    let short = lower.iter().map(|name| {
        let short = name.trim_end_matches('_').to_owned();
        if lower.contains(&short) || row.scalars.contains(&short) || short.is_empty() { name.clone() } else { short }
    });
    let all: Vec<String> = short.chain(row.scalars.iter().map(|scalar| word(scalar))).collect();
    let names = free_names(all.iter().map(String::as_str), |name| !reserved::never_in_rust(name));
    names.iter().map(|name| ident(name)).collect()
}

/// The function that makes the arguments of a launch.
fn arguments(root: &str, row: &Draft, out: &mut String) {
    let names = argument_names(row);
    let (tensors, scalars) = names.split_at(row.operands.len());
    let ty = |operand: &Operand| element(root, operand.dtype);
    let _ = write!(
        out,
        "\n    /// The arguments of a launch, on a GPU or an executor.\n    ///\n    /// | | type, strides | |\n    /// |---|---|---|\n"
    );
    let written = |operand: &Operand| operand.access == Access::Write;
    for (name, operand) in tensors.iter().zip(&row.operands) {
        let verb = if written(operand) { "written" } else { "read" };
        let _ = writeln!(out, "    /// | `{name}` | {} `{}` | {verb} |", operand.dtype, operand.stride_text());
    }
    for name in scalars {
        let _ = writeln!(out, "    /// | `{name}` | scalar | read |");
    }
    let _ = writeln!(out, "    pub fn args<'a, S: {root}::view::Space>(");
    for (name, operand) in tensors.iter().zip(&row.operands) {
        let view = if written(operand) { "ViewMut" } else { "View" };
        let _ = writeln!(out, "        {name}: {root}::view::{view}<'a, {}, S>,", ty(operand));
    }
    for name in scalars {
        let _ = writeln!(out, "        {name}: f64,");
    }
    let _ = writeln!(out, "    ) -> {root}::view::Arguments<'a, Recipe, S> {{\n        {root}::view::Arguments::new()");
    for (name, operand) in tensors.iter().zip(&row.operands) {
        let _ = writeln!(out, "            .{}({name})", if written(operand) { "write" } else { "read" });
    }
    for name in scalars {
        let _ = writeln!(out, "            .scalar({name})");
    }
    out.push_str("    }\n");
}

/// The parameter struct of a text, with the compiler's checks of it.
fn params(root: &str, kernel: &str, row: &Draft, out: &mut String) {
    let (part, params) = (word(&row.name), &row.params);
    let name = params_name(kernel, &part);
    let _ = writeln!(
        out,
        "\n    /// The parameter struct, as the C header `{part}_params.h` declares it.\n    \
             #[repr(C)]\n    \
             #[derive(Clone, Copy, Debug, PartialEq)]\n    \
             pub struct {name} {{"
    );
    for field in params.fields() {
        let ty = field.ty.rust().replace("::cutemplate", root);
        let _ = writeln!(out, "        /// {}\n        pub {}: {ty},", line(&field.doc), ident(&field.name));
    }
    let _ = writeln!(
        out,
        "    }}\n\n    const _: () = {{\n        \
             assert!(::core::mem::size_of::<{name}>() == {});\n        \
             assert!(::core::mem::align_of::<{name}>() == {});",
        params.size(),
        params.align()
    );
    for field in params.fields() {
        let field_name = ident(&field.name);
        let _ = writeln!(out, "        assert!(::core::mem::offset_of!({name}, {field_name}) == {});", field.offset);
    }
    out.push_str("    };\n");
}

#[cfg(all(test, feature = "build"))]
mod tests {
    use super::*;
    use crate::arch::Targets;
    use crate::recipe::{ElementwiseApply, Recipe};

    #[test]
    fn a_scalar_with_a_keyword_of_rust_is_a_raw_identifier() {
        let function = "|x, y; type, async| x * type + y * async".parse().expect("a function");
        let recipe = ElementwiseApply { function, ..Default::default() };
        let plan = recipe.plan_as("scaled", &Targets::default()).expect("a right recipe");
        let mut codes = [Embedded::Stub { why: "a test" }].into_iter();
        let text = rust_module(&plan, &mut codes);
        for part in ["pub r#type: f32,", "offset_of!(Params, r#async)", "r#type: f64,", ".scalar(r#async)"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
