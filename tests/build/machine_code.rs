//! Contract: after a change of templates that may change no kernel, every entry of the catalogue has the machine code of before.
//!
//! The first run with a folder writes it, and a run of the changed version with the same folder compares. The folder has a line for
//! each entry and architecture in `digests.txt`, and the PTX of each entry as it is compared. `CUTEMPLATE_MACHINE_CODE_OF=gemm`
//! compares the entries alone whose names begin so.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use cutemplate::arch::Targets;
use cutemplate::build::Compiler;
use cutemplate::digest::Digest;
use cutemplate::emit::Unit;
use cutemplate::fatbin::{Kind, images};
use cutemplate::plan::Plan;
use cutlass_sys::Finder;

use crate::resources::whole_catalogue;

const DIGESTS: &str = "digests.txt";

/// What nvcc made of one kernel.
struct Made {
    /// The architecture and the instructions of each entry, and the same of its PTX.
    digests: BTreeMap<String, Digest>,
    /// The PTX of each entry.
    ptx: BTreeMap<String, String>,
}

/// A line without its comment, and without what names the compiler's input: locals of a translation unit carry its digest.
fn stripped(line: &str) -> String {
    const LOCAL: &str = "_INTERNAL_";
    let line = line.split("//").next().unwrap_or_default().trim();
    let mut parts = line.split(LOCAL);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        // `_ZN48_INTERNAL_84b6d4e4_17_gemm_f16_sm90a_cu_80aa97474cute..`: a length, two digests of eight digits, and the file between.
        let after = part.find("_cu_").and_then(|at| part.get(at + "_cu_".len() + 8..)).unwrap_or(part);
        text.truncate(text.trim_end_matches(|c: char| c.is_ascii_digit()).len());
        text.push_str(LOCAL);
        text.push_str(after);
    }
    text
}

/// The statements of a module: directives, variables and functions, without line tables.
fn statements(module: &str) -> Vec<String> {
    let (mut all, mut current, mut depth) = (Vec::new(), String::new(), 0_i64);
    for line in module.lines().map(stripped) {
        if line.is_empty() || [".loc", ".file"].iter().any(|of| line.starts_with(of)) {
            continue;
        }
        let count = |c: char| line.matches(c).count() as i64;
        depth += count('{') - count('}');
        let is_directive = [".version", ".target", ".address_size"].iter().any(|of| line.starts_with(of));
        current.push_str(&line);
        current.push('\n');
        if depth == 0 && (line.ends_with(';') || line.ends_with('}') || is_directive) {
            all.push(std::mem::take(&mut current));
        }
    }
    all.push(current);
    all.retain(|statement| !statement.is_empty() && !statement.starts_with(".section"));
    all
}

/// The word that a statement declares: the last one before its parameters, extent or value. A function's result stands before its name.
fn declared(statement: &str) -> &str {
    let line = statement.lines().next().unwrap_or_default();
    let head = match line.rsplit_once('(') {
        Some((head, _)) if line.contains(".func") || line.contains(".entry") => head,
        _ => line.split(['=', '[', ';']).next().unwrap_or_default(),
    };
    head.split_whitespace().last().unwrap_or_default()
}

/// The PTX of an entry: its function, and the directives, variables and functions that this one names, directly or not.
fn of_entry(module: &str, entry: &str) -> Option<String> {
    let statements = statements(module);
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    let mut wanted: Vec<bool> = statements
        .iter()
        .map(|s| s.starts_with(".version") || s.starts_with(".target") || s.contains(".entry") && declared(s) == entry)
        .collect();
    statements.iter().any(|s| s.contains(".entry") && declared(s) == entry).then_some(())?;
    loop {
        let named: Vec<&str> = statements
            .iter()
            .zip(&wanted)
            .filter(|(_, wanted)| **wanted)
            .flat_map(|(s, _)| s.split(|c| !is_word(c)))
            .collect();
        let before = wanted.clone();
        for (statement, wanted) in statements.iter().zip(&mut wanted) {
            *wanted |= !statement.contains(".entry") && named.contains(&declared(statement));
        }
        if before == wanted {
            break;
        }
    }
    Some(statements.into_iter().zip(wanted).filter_map(|(statement, wanted)| wanted.then_some(statement)).collect())
}

fn made(compiler: &Compiler, parts: &[(Plan, Unit)]) -> Made {
    let units: Vec<(Unit, Targets)> = parts.iter().map(|(part, unit)| (unit.clone(), part.targets().clone())).collect();
    let (mut digests, mut ptx) = (BTreeMap::new(), BTreeMap::new());
    let texts = compiler.ptx_all(&units);
    for ((compiled, text), (part, _)) in compiler.compile_all(&units).into_iter().zip(texts).zip(parts) {
        let (compiled, text) = (compiled.unwrap_or_else(|e| panic!("{e}")), text.unwrap_or_else(|e| panic!("{e}")));
        let images = images(compiled.fatbin()).expect("a whole fatbin");
        for name in part.entries().iter().map(|entry| &entry.name) {
            let own = of_entry(text.text(), name).unwrap_or_else(|| panic!("{name}: not in its PTX"));
            digests.insert(format!("{name} ptx"), Digest::of(own.as_bytes()));
            ptx.insert(name.clone(), own);
            for image in images.iter().filter(|image| image.kind == Kind::Sass) {
                let code = image.sass(name).unwrap_or_else(|| panic!("{name}: no instructions for {}", image.arch));
                digests.insert(format!("{name} {}", image.arch), Digest::of(code));
            }
        }
    }
    Made { digests, ptx }
}

fn write(folder: &Path, made: &Made) {
    fs::create_dir_all(folder).expect("the folder can be made");
    for (entry, text) in &made.ptx {
        fs::write(folder.join(format!("{entry}.ptx")), text).expect("the folder can be written");
    }
    let lines: String = made.digests.iter().map(|(what, digest)| format!("{what} {digest}\n")).collect();
    // The digests last: where they are, the folder is whole.
    fs::write(folder.join(DIGESTS), lines).expect("the folder can be written");
}

/// What is not as it was, one line each.
fn changed(before: &str, now: &BTreeMap<String, Digest>) -> Vec<String> {
    let before: BTreeMap<&str, &str> = before.lines().filter_map(|line| line.rsplit_once(' ')).collect();
    let gone = before.keys().filter(|what| !now.contains_key(**what)).map(|what| format!("{what}: gone"));
    let differs = now.iter().filter_map(|(what, digest)| match before.get(what.as_str()) {
        Some(old) if **old == digest.to_string() => None,
        Some(_) => Some(format!("{what}: changed")),
        None => Some(format!("{what}: new")),
    });
    gone.chain(differs).collect()
}

#[test]
#[ignore = "needs CUTEMPLATE_MACHINE_CODE, the folder of the version before"]
fn every_entry_of_the_catalogue_has_the_machine_code_of_before() {
    let folder = std::env::var_os("CUTEMPLATE_MACHINE_CODE").map(PathBuf::from);
    let folder = folder.expect("found no CUTEMPLATE_MACHINE_CODE, required a folder");
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc is fetched in this workspace");
    let of = std::env::var("CUTEMPLATE_MACHINE_CODE_OF").unwrap_or_default();
    let mut parts = whole_catalogue();
    parts.retain(|(part, _)| part.entries().iter().all(|entry| entry.name.starts_with(&of)));
    assert!(!parts.is_empty(), "the catalogue has no entry whose name begins with {of:?}");
    let made = made(&compiler, &parts);
    match fs::read_to_string(folder.join(DIGESTS)) {
        Ok(before) => {
            let before: String = before.split_inclusive('\n').filter(|line| line.starts_with(&of)).collect();
            let now = folder.join("now");
            write(&now, &made);
            let changed = changed(&before, &made.digests);
            let (ptx, sass): (Vec<String>, Vec<String>) = changed.into_iter().partition(|line| line.contains(" ptx: "));
            println!(
                "{} digests compared; PTX of {} entries differs\n{}",
                made.digests.len(),
                ptx.len(),
                ptx.join("\n")
            );
            let diff = format!("diff -r {} {} shows the PTX", folder.display(), now.display());
            assert!(sass.is_empty(), "machine code that is not as before; {diff}:\n{}", sass.join("\n"));
        }
        Err(_) => {
            write(&folder, &made);
            println!("{} digests written to {}", made.digests.len(), folder.display());
        }
    }
}

#[test]
fn what_is_compared_is_the_code_of_an_entry_alone() {
    let module = |comment: &str, hash: &str, table: &str, add: &str| {
        format!(
            "// {comment}\n.version 9.0\n.target sm_80\n.global .align 1 .b8 _ZN48_INTERNAL_{hash}_4_f_cu_{hash}4cute1_E[1];\n\
             .const .align 4 .b8 table[8] = {{{table}}};\n.func (.param .b32 r) helper(\n.param .b32 a\n)\n{{\nld.const.b32 %r1, [table];\nret;\n}}\n\
             .visible .entry one(\n\t.param .u32 one_param_0\n)\n.maxntid 32, 1, 1\n{{\n\t.loc 1 2 3\n{{ // callseq\ncall (r), helper, (a);\n}}\n\
             add.s32 %r1, %r1, {add};\nret;\n}}\n.visible .entry two()\n{{\nret;\n}}\n.file 1 \"{comment}\"\n.section .debug_str\n{{\n.b8 {hash}\n}}\n"
        )
    };
    let of = |entry: &str, comment: &str, hash: &str, table: &str, add: &str| {
        of_entry(&module(comment, hash, table, add), entry).expect("it is there")
    };
    let before = of("one", "a", "84b6d4e4", "1, 2", "1");
    assert_eq!(before, of("one", "b", "7fa8696e", "1, 2", "1"));
    assert_ne!(before, of("one", "a", "84b6d4e4", "1, 2", "2"));
    // What a function that is called reads is of the entry.
    assert_ne!(before, of("one", "a", "84b6d4e4", "1, 3", "1"));
    assert_eq!(of("two", "a", "84b6d4e4", "1, 2", "1"), of("two", "a", "84b6d4e4", "1, 3", "2"));
    assert_eq!(of_entry(&module("a", "84b6d4e4", "1", "1"), "three"), None);

    let [a, b] = ["1", "2"].map(|text| Digest::of(text.as_bytes()));
    let now = BTreeMap::from([("one sm_80".to_owned(), a), ("two sm_80".to_owned(), b)]);
    assert_eq!(changed(&format!("one sm_80 {a}\ntwo sm_80 {b}\n"), &now), Vec::<String>::new());
    let found = changed(&format!("gone ptx {a}\none sm_80 {b}\n"), &now);
    assert_eq!(found, ["gone ptx: gone", "one sm_80: changed", "two sm_80: new"]);
}
