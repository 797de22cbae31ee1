//! Contract: every public operation of the layout algebra and of the atoms says its law, has an example that runs, and names
//! what it is in CuTe, with the file or the paper it comes from.

use std::path::{Path, PathBuf};

/// What is no operation: parts, counts and texts of a value, and constructors that only put parts together.
const PLAIN: &[&str] = &[
    // Layouts and tuples.
    "Layout::new",
    "Layout::mode_of",
    "Layout::unit",
    "Layout::shape",
    "Layout::stride",
    "Layout::into_parts",
    "Layout::rank",
    "Layout::depth",
    "Layout::mode",
    "Layout::modes",
    "Layout::crd2idx",
    "IntTuple::int",
    "IntTuple::any",
    "IntTuple::basis",
    "IntTuple::tuple",
    "IntTuple::symbolic",
    "IntTuple::is_leaf",
    "IntTuple::as_int",
    "IntTuple::leaf_count",
    "IntTuple::leaves",
    "IntTuple::ints",
    "IntTuple::rank",
    "IntTuple::depth",
    "IntTuple::modes",
    "IntTuple::mode",
    "IntTuple::at_path",
    "IntTuple::product",
    "IntTuple::congruent",
    "IntTuple::has_underscore",
    "IntTuple::all_underscore",
    "BasisPath::as_slice",
    "Symbol::divisor",
    // Swizzles and composed layouts.
    "Swizzle::new",
    "Swizzle::bits",
    "Swizzle::base",
    "Swizzle::shift",
    "Swizzle::y_mask",
    "Swizzle::z_mask",
    "Swizzle::block",
    "ComposedLayout::new",
    "ComposedLayout::swizzled",
    "ComposedLayout::outer",
    "ComposedLayout::offset",
    "ComposedLayout::inner",
    "ComposedLayout::swizzle",
    "ComposedLayout::domain",
    "ComposedLayout::at",
    "ComposedLayout::crd2idx",
    "AnyLayout::compose",
    "AnyLayout::at",
    "AnyLayout::domain",
    "AnyLayout::plain",
    // Errors.
    "Class::as_str",
    "LayoutError::new",
    "LayoutError::on",
    "LayoutError::found",
    "LayoutError::required",
    "LayoutError::because",
    "LayoutError::help",
    "LayoutError::operation",
    "LayoutError::class",
    "LayoutError::operands",
    "LayoutError::leaf_path",
    "LayoutError::what_was_found",
    "LayoutError::what_is_required",
    "LayoutError::why",
    "LayoutError::advice",
    "LayoutError::what_cute_does",
    // Atoms.
    "ValueType::bits",
    "Operand::modes",
    "MmaAtom::names",
    "MmaAtom::name",
    "MmaAtom::shape_mnk",
    "MmaAtom::thr_id",
    "MmaAtom::layout_tv",
    "MmaAtom::value_type",
    "MmaAtom::result_type",
    "MmaAtom::tile",
    "MmaAtom::source",
    "CopyAtom::names",
    "CopyAtom::name",
    "CopyAtom::value_bits",
    "CopyAtom::thr_id",
    "CopyAtom::src",
    "CopyAtom::dst",
    "CopyAtom::reference",
    "CopyAtom::counts",
    "CopyAtom::source",
    "TiledMma::atom",
    "TiledMma::atom_layout",
    "TiledMma::permutations",
    "TiledMma::thr_layout_vmnk",
    "TiledMma::threads",
    "TiledMma::tile",
    "TiledCopy::atom",
    "TiledCopy::layout_tv",
    "TiledCopy::tiler",
    "TiledCopy::threads",
    "TiledCopy::tile",
];

/// Modules whose functions are no operations of CuTe: the laws themselves, and reading and writing text.
const TOOLS: &[&str] = &["laws.rs", "laws", "text.rs"];

struct Operation {
    name: String,
    file: String,
    docs: String,
}

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
        if TOOLS.contains(&name) {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The public functions of a file with their comments, methods as `Type::name`.
fn operations(file: &Path) -> Vec<Operation> {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let (mut found, mut docs, mut of) = (Vec::new(), String::new(), String::new());
    for line in text.lines().take_while(|line| *line != "#[cfg(test)]") {
        let code = line.trim_start();
        if let Some(comment) = code.strip_prefix("///") {
            docs.push_str(comment);
            docs.push('\n');
            continue;
        }
        if line.starts_with("impl") {
            let name = line.trim_end_matches([' ', '{']).rsplit(' ').next().unwrap_or("");
            of = format!("{}::", name.split('<').next().unwrap_or(name));
        } else if line == "}" {
            of.clear();
        }
        if let Some(rest) = code.strip_prefix("pub fn ").or_else(|| code.strip_prefix("pub const fn ")) {
            let name = &rest[..rest.find(['(', '<']).expect("arguments")];
            let operation = Operation {
                name: format!("{of}{name}"),
                file: file.file_name().and_then(|name| name.to_str()).unwrap_or("").to_owned(),
                docs: docs.clone(),
            };
            found.push(operation);
        }
        if !code.starts_with("#[") {
            docs.clear();
        }
    }
    found
}

fn all() -> Vec<Operation> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    for folder in ["layout", "atom"] {
        sources(&root.join(folder), &mut files);
    }
    files.sort();
    files.iter().flat_map(|file| operations(file)).collect()
}

/// What the comment of an operation lacks.
fn lacks(operation: &Operation) -> Vec<&'static str> {
    let docs = &operation.docs;
    let header = docs.split('`').any(|part| part.ends_with(".hpp"));
    let paper = ["arXiv", "Shah", "CuTe DSL", "PTX ISA"].iter().any(|name| docs.contains(name));
    let example = docs.split("```").nth(1).is_some_and(|code| code.starts_with('\n') && code.contains("assert"));
    [
        (docs.contains("*Law.*"), "a law (*Law.*)"),
        (docs.contains("CuTe"), "its name in CuTe, or that there is none"),
        (header || paper, "its source: a header of CuTe or a paper"),
        (example, "an example that asserts something"),
    ]
    .into_iter()
    .filter_map(|(there, what)| (!there).then_some(what))
    .collect()
}

#[test]
fn every_operation_is_documented() {
    let all = all();
    let operations: Vec<&Operation> = all.iter().filter(|op| !PLAIN.contains(&op.name.as_str())).collect();
    assert!(operations.len() > 100, "only {} operations were found", operations.len());
    let lacking: Vec<String> = operations
        .iter()
        .map(|op| (op, lacks(op)))
        .filter(|(_, lacks)| !lacks.is_empty())
        .map(|(op, lacks)| format!("{} ({}): {}", op.name, op.file, lacks.join("; ")))
        .collect();
    assert!(lacking.is_empty(), "{} of {} operations lack\n{}", lacking.len(), operations.len(), lacking.join("\n"));
}

#[test]
fn what_is_exempt_is_there() {
    let all = all();
    for name in PLAIN {
        assert!(all.iter().any(|op| op.name == *name), "{name} is not a public function");
    }
}
