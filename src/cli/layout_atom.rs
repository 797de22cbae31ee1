//! `cutemplate layout NAME` for the name of an atom: its shape, its threads, and which thread holds which element.

use cutemplate::atom::{CopyAtom, MmaAtom, Operand};
use cutemplate::layout::{Class, Layout, LayoutError};
use serde_json::{Value as Json, json};

/// An atom that was asked for by its name.
pub(crate) enum Atom {
    Mma(MmaAtom),
    /// With layouts in bits, unless the name says which values are copied.
    Copy(CopyAtom),
}

impl Atom {
    /// The atom of this name: an MMA, a copy operation, or `Copy_Atom<OPERATION,TYPE>`. `None` for any other text.
    ///
    /// # Errors
    /// The text reads like the name of an atom, and the tables have no such atom.
    pub(crate) fn of(text: &str) -> Option<Result<Atom, LayoutError>> {
        let name = text.trim().trim_end_matches("{}");
        if name.starts_with("Copy_Atom<") {
            return Some(name.parse().map(Atom::Copy));
        }
        if CopyAtom::names().any(|known| known == name) {
            return Some(CopyAtom::named(name, 1).map(Atom::Copy));
        }
        match MmaAtom::named(name) {
            Ok(atom) => Some(Ok(Atom::Mma(atom))),
            Err(error) if reads_like_one(name) => Some(Err(unknown(name, error))),
            Err(_) => None,
        }
    }

    /// The output for people.
    pub(crate) fn text(&self) -> String {
        let (name, facts, layouts) = match self {
            Atom::Mma(atom) => {
                let ([m, n, k], [a, b, c]) = (atom.shape_mnk(), Operand::ALL.map(|operand| atom.value_type(operand)));
                let facts = vec![
                    ("shape", format!("({m},{n},{k})   (M,N,K)")),
                    ("types", format!("D {}, A {a}, B {b}, C {c}", atom.result_type())),
                    ("threads", format!("{}   (ThrID)", atom.thr_id())),
                ];
                (atom.name().to_owned(), facts, mma_layouts(atom))
            }
            Atom::Copy(atom) => {
                let facts = vec![
                    (
                        "values",
                        format!("of {} bit{}", atom.value_bits(), if atom.value_bits() == 1 { "" } else { "s" }),
                    ),
                    ("threads", format!("{}   (ThrID)", atom.thr_id())),
                ];
                (atom.name().to_owned(), facts, copy_layouts(atom))
            }
        };
        let mut out = format!("{name}\n");
        for (what, fact) in facts {
            out.push_str(&format!("  {what:<10}{fact}\n"));
        }
        for (what, layout, note) in layouts {
            out.push_str(&format!("  {what:<10}{layout}   {note}\n"));
        }
        let (header, section) = self.source();
        let section = if section.is_empty() { String::new() } else { format!("; PTX ISA, {section}") };
        out.push_str(&format!("  {:<10}{header}{section}", "source"));
        out
    }

    /// The output for programs.
    pub(crate) fn json(&self) -> Json {
        let (header, section) = self.source();
        let source = json!({ "header": header, "ptx_isa": section });
        match self {
            Atom::Mma(atom) => {
                let [a, b, c] = Operand::ALL.map(|operand| atom.layout_tv(operand).to_string());
                let [of_a, of_b, of_c] = Operand::ALL.map(|operand| atom.value_type(operand).to_string());
                json!({
                    "ok": atom.name(),
                    "shape_mnk": atom.shape_mnk(),
                    "types": { "D": atom.result_type().to_string(), "A": of_a, "B": of_b, "C": of_c },
                    "thr_id": atom.thr_id().to_string(),
                    "layout_tv": { "A": a, "B": b, "C": c },
                    "source": source,
                })
            }
            Atom::Copy(atom) => json!({
                "ok": atom.name(),
                "value_bits": atom.value_bits(),
                "thr_id": atom.thr_id().to_string(),
                "layout_tv": {
                    "src": atom.src().to_string(),
                    "dst": atom.dst().to_string(),
                    "ref": atom.reference().to_string(),
                },
                "source": source,
            }),
        }
    }

    /// The layouts by name, for tables.
    pub(crate) fn layouts(&self) -> Vec<(&'static str, Layout)> {
        let all = match self {
            Atom::Mma(atom) => mma_layouts(atom),
            Atom::Copy(atom) => copy_layouts(atom),
        };
        all.into_iter().map(|(name, layout, _)| (name, layout)).collect()
    }

    fn source(&self) -> (&'static str, &'static str) {
        match self {
            Atom::Mma(atom) => atom.source(),
            Atom::Copy(atom) => atom.source(),
        }
    }
}

fn mma_layouts(atom: &MmaAtom) -> Vec<(&'static str, Layout, String)> {
    let names = [("A", "m,k"), ("B", "n,k"), ("C", "m,n")];
    Operand::ALL
        .into_iter()
        .zip(names)
        .map(|(operand, (name, modes))| {
            let layout = atom.layout_tv(operand).clone();
            let (rows, columns) = atom.tile(operand);
            let from_memory = layout.size() > rows * columns;
            let memory = if from_memory { ", read from shared memory" } else { "" };
            (name, layout, format!("(thread,value) to ({modes}) of {rows} x {columns}{memory}"))
        })
        .collect()
}

fn copy_layouts(atom: &CopyAtom) -> Vec<(&'static str, Layout, String)> {
    vec![
        ("src", atom.src().clone(), "(thread,value) to the offset that it reads".to_owned()),
        ("dst", atom.dst().clone(), "(thread,value) to the offset that it receives".to_owned()),
        ("ref", atom.reference().clone(), "the one that a tiled copy's layout is meant in".to_owned()),
    ]
}

/// An architecture and something more, as `SM90_64x8x16_F32F16F16_SS`; or a universal operation.
fn reads_like_one(name: &str) -> bool {
    let words = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_<>".contains(&b));
    let of_architecture = name.strip_prefix("SM").is_some_and(|rest| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && rest[digits..].starts_with('_')
    });
    words && (of_architecture || name.starts_with("UniversalFMA<") || name.starts_with("UniversalCopy<"))
}

/// The error names similar atoms, among copies as well if the name resembles one.
fn unknown(name: &str, of_mma: LayoutError) -> LayoutError {
    let is_copy = ["Copy", "LDSM", "STSM", "CP_ASYNC", "TMA"].iter().any(|part| name.contains(part));
    match CopyAtom::named(name, 1) {
        Err(error) if is_copy && error.class() == Class::Argument => error,
        _ => of_mma,
    }
}
