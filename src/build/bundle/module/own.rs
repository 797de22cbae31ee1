//! The module of a kernel of one's own.

use core::fmt::Write as _;

use super::{element, ident, line, word};
use crate::cuda::{LOW, VOUCHED};
use crate::dtype::DType;
use crate::plan::{Draft, Given, Operand, Param, ParamType, access_verb};

/// The type that stands for the kernel.
pub(super) fn kind(root: &str, kernel: &str, row: &Draft) -> String {
    let vouched = if row.settings.get(VOUCHED) == Some("yes") {
        format!("    impl {root}::artifact::Vouched for Entry {{}}\n")
    } else {
        String::new()
    };
    format!(
        "    /// The type of this kernel, for `launch::Kernel` and `exec::Kernel`.\n    \
             #[derive(Clone, Copy, Debug)]\n    \
             pub struct Entry;\n\n    \
             impl {root}::artifact::Kind for Entry {{\n        \
                 const FAMILY: &'static str = \"{}\";\n        \
                 const KERNEL: ::core::option::Option<&'static str> = ::core::option::Option::Some(\"{kernel}\");\n    \
             }}\n{vouched}",
        row.family
    )
}

/// An argument of the function that makes the arguments of a launch.
enum Argument<'a> {
    Operand(&'a Operand),
    Scalar(&'a Param),
    /// An integer of 64 bits, by its name.
    Wide(&'a str),
}

/// The Rust type of a scalar.
fn scalar(root: &str, ty: ParamType) -> String {
    match ty {
        ParamType::F16 => element(root, DType::F16),
        ParamType::Bf16 => element(root, DType::Bf16),
        ty => ty.rust().to_owned(),
    }
}

/// In the order of the parameters of the function.
fn all(row: &Draft) -> Vec<Argument<'_>> {
    let fields = row.params.fields();
    let argument = |(at, field): (usize, &'_ Param)| match field.given {
        Given::Address { tensor } => row.operands.get(tensor).map(Argument::Operand),
        Given::Scalar(_) if field.doc == LOW => fields[at].name.strip_suffix("_low").map(Argument::Wide),
        Given::Scalar(_) if at > 0 && fields[at - 1].doc == LOW => None,
        Given::Scalar(_) => Some(Argument::Scalar(&fields[at])),
        _ => None,
    };
    fields.iter().enumerate().filter_map(argument).collect()
}

/// The function that makes the arguments of a launch.
pub(super) fn arguments(root: &str, row: &Draft, out: &mut String) {
    let arguments = all(row);
    let _ = write!(
        out,
        "\n    /// The arguments of a launch, on a GPU or an executor.\n    ///\n    /// | | type, strides | |\n    /// |---|---|---|\n"
    );
    for argument in &arguments {
        let _ = match argument {
            Argument::Operand(operand) => {
                let (strides, verb) = (operand.stride_text(), access_verb(operand.access));
                writeln!(out, "    /// | `{}` | {} `{strides}` | {verb} |", word(operand.name), operand.dtype)
            }
            Argument::Scalar(field) => {
                writeln!(out, "    /// | `{}` | {} | scalar |", word(&field.name), field.ty.rust())
            }
            Argument::Wide(name) => writeln!(out, "    /// | `{}` | i64 | scalar |", word(name)),
        };
    }
    let _ = writeln!(out, "    ///\n    /// `{}`", line(&row.recipe));
    let _ = writeln!(out, "    pub fn args<'a, S: {root}::view::Space>(");
    for argument in &arguments {
        let _ = match argument {
            Argument::Operand(operand) => {
                let view = if operand.access.writes() { "ViewMut" } else { "View" };
                let ty = element(root, operand.dtype);
                writeln!(out, "        {}: {root}::view::{view}<'a, {ty}, S>,", ident(operand.name))
            }
            Argument::Scalar(field) => writeln!(out, "        {}: {},", ident(&field.name), scalar(root, field.ty)),
            Argument::Wide(name) => writeln!(out, "        {}: i64,", ident(name)),
        };
    }
    let _ = writeln!(out, "    ) -> {root}::view::Arguments<'a, Entry, S> {{\n        {root}::view::Arguments::new()");
    for argument in &arguments {
        let _ = match argument {
            Argument::Operand(operand) => {
                let call = if operand.access.writes() { "write" } else { "read" };
                writeln!(out, "            .{call}({})", ident(operand.name))
            }
            Argument::Scalar(field) if field.ty == ParamType::F64 => {
                writeln!(out, "            .scalar({})", ident(&field.name))
            }
            Argument::Scalar(field) => writeln!(out, "            .scalar(f64::from({}))", ident(&field.name)),
            // Each half as an integer of 32 bits, whose bits the kernel reads.
            Argument::Wide(name) => {
                let name = ident(name);
                writeln!(
                    out,
                    "            .scalar(f64::from({name} as i32))\n            .scalar(f64::from(({name} >> 32) as i32))"
                )
            }
        };
    }
    out.push_str("    }\n");
}
