//! `cutemplate layout`.

use std::io;
use std::process::ExitCode;

use cutemplate::algebra_tool::{Value, evaluate, table};
use cutemplate::atom::CopyAtom;
use cutemplate::build::write_if_changed;
use cutemplate::draw;
use cutemplate::layout::AnyLayout;
use cutemplate::model::{SharedOp, ThreadValues};
use cutemplate::units::{Bytes, Elements};
use serde_json::json;

use crate::cli::args::LayoutArgs;
use crate::cli::layout_atom::Atom;
use crate::cli::layout_cmd::{self, Show};
use crate::cli::output::{Failure, Output};
use crate::cli::{jsonl, layout_svg};

pub(crate) fn run(args: &LayoutArgs, out: &Output) -> Result<ExitCode, Failure> {
    let Some(expression) = &args.expression else {
        return match jsonl::serve(io::stdin().lock(), io::stdout().lock()) {
            // Whoever read the answers has had enough of them.
            Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            served => served.map(|_| ExitCode::SUCCESS).map_err(Failure::message),
        };
    };
    if let Some(about) = layout_cmd::help(expression) {
        out.text(about.map_err(Failure::message)?);
        return Ok(ExitCode::SUCCESS);
    }
    let atom = Atom::of(expression).transpose().map_err(Failure::message)?;
    if let Some(atom) = &atom {
        shown(atom, args, out)?;
    } else {
        let show = Show { explain: args.explain, table: args.table };
        let text = layout_cmd::evaluate(expression, show).map_err(Failure::message)?;
        out.text(text.trim_end());
        let value = evaluate(expression).map_err(Failure::message)?;
        out.object(json!({ "ok": value.to_string() }));
        if args.access {
            access(&value, args, out)?;
        }
    }
    if let Some(path) = &args.svg {
        let picture = match atom {
            Some(Atom::Mma(atom)) => draw::mma(&atom, &draw::Options::default()).map_err(Failure::message)?,
            Some(Atom::Copy(atom)) => return Err(no_picture(&atom)),
            None => layout_svg::picture(expression, args.element_bytes)?,
        };
        write_if_changed(path, picture.as_bytes())
            .map_err(|e| Failure::message(format_args!("cannot write {}: {e}", path.display())))?;
        out.text(format_args!("wrote {}", path.display()));
        out.object(json!({ "svg": path }));
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints an atom with the requested details.
fn shown(atom: &Atom, args: &LayoutArgs, out: &Output) -> Result<(), Failure> {
    if args.access || args.explain {
        let asked = if args.access { "--access" } else { "--explain" };
        return Err(Failure::message(format_args!(
            "{asked} with the name of an atom\n  required: a layout, or operations on layouts\n  help:     give one of \
             the atom's layouts, as `cutemplate layout NAME` prints them"
        )));
    }
    out.text(atom.text());
    out.object(atom.json());
    if args.table {
        for (name, layout) in atom.layouts() {
            out.text(format_args!("{name}: {layout}"));
            out.text(table(&AnyLayout::Plain(layout)).map_err(Failure::message)?.trim_end());
        }
    }
    Ok(())
}

fn no_picture(atom: &CopyAtom) -> Failure {
    Failure::message(format_args!(
        "there is no picture of {}\n  required: an MMA atom, or an expression\n  help:     draw one of its layouts: \
         cutemplate layout '{}' --svg FILE",
        atom.name(),
        atom.reference()
    ))
}

/// Prints the cost of a layout as an access of threads.
fn access(value: &Value, args: &LayoutArgs, out: &Output) -> Result<(), Failure> {
    let Value::Layout(layout) = value else {
        return Err(Failure::message(format_args!(
            "{value} is not an access\n  required: a layout, (thread,value) to offset\n  help:     compose the tensor's layout with the \
             thread-value layout: composition(TENSOR, get(make_layout_tv(..), 1))"
        )));
    };
    let element = Bytes(args.element_bytes.unsigned_abs());
    let access = ThreadValues::new(layout, element, args.vector.map(Elements)).map_err(Failure::message)?;
    out.text(&access);
    for op in [SharedOp::Load, SharedOp::Store] {
        let verdict = access.shared(op);
        out.text(&verdict);
        let (wavefronts, least) = (verdict.wavefronts, verdict.least);
        let what = format!("shared {op}");
        out.object(json!({ "access": what, "requests": verdict.requests, "wavefronts": wavefronts, "least": least }));
    }
    let global = access.global();
    out.text(global);
    let (sectors, bytes) = (global.sectors, global.bytes.0);
    out.object(json!({ "access": "global", "requests": global.requests, "sectors": sectors, "bytes": bytes }));
    Ok(())
}
