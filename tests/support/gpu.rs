//! A GPU for tests, and kernels for it.
//!
//! The tests that need one are ignored by default: `cargo test --test gpu -- --include-ignored` runs them.
//!
//! `CUTEMPLATE_TEST_DATA` names a folder of fatbins. Without a GPU but with nvcc, every test puts the kernels that it would
//! load there; with a GPU, they are taken from there. So a test binary can be carried, with that folder, to a machine that
//! has neither cargo nor a CUDA toolkit. Without the variable, kernels come from the user's store.
//!
//! With `CUTEMPLATE_TEST_EMIT=1` besides, nothing is compiled: the folder gets the texts, and `compile.sh`, which makes the
//! fatbins on a machine that has nvcc and CUTLASS: `CUTLASS=cutlass/include sh folder/compile.sh`.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cutemplate::build::{Compiler, write_if_changed};
use cutemplate::digest::Digest;
use cutemplate::emit::{SourceFile, Unit, render};
use cutemplate::launch::{AnyKernel, Gpu};
use cutemplate::plan::Plan;
use cutlass_sys::Finder;

/// The GPU. `None` where kernels are only put into a folder: there is no GPU, or texts are wanted.
pub(crate) fn find() -> Option<Gpu> {
    if emits() {
        return None;
    }
    match Gpu::find() {
        Ok(gpu) => Some(gpu),
        Err(_) if has_folder() => None,
        Err(none) => panic!("found {none}, required a GPU, or a folder for its kernels in CUTEMPLATE_TEST_DATA"),
    }
}

/// Whether there is a folder to put kernels in.
pub(crate) fn has_folder() -> bool {
    std::env::var_os("CUTEMPLATE_TEST_DATA").is_some()
}

/// The fatbin of a plan; `None` where there is neither a GPU to load it on nor a folder to put it in.
pub(crate) fn fatbin(gpu: Option<&Gpu>, plan: &Plan) -> Option<Vec<u8>> {
    let unit = render(plan);
    let folder = std::env::var_os("CUTEMPLATE_TEST_DATA").map(PathBuf::from);
    if gpu.is_none() && folder.is_none() {
        return None;
    }
    let file = |suffix: &str| folder.as_ref().map(|f| f.join(format!("{}.{suffix}", plan.name())));
    let carried = file("cuh").zip(file("fatbin"));
    if let Some((text, fatbin)) = &carried
        && fs::read_to_string(text).is_ok_and(|text| text == unit.header().text)
    {
        // A text that is to be compiled elsewhere has none yet.
        return fs::read(fatbin).inspect_err(|e| assert!(emits(), "{}: {e}", fatbin.display())).ok();
    }
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc, or CUTEMPLATE_TEST_DATA with the kernels");
    if let (Some(folder), Some((text, _)), true) = (&folder, &carried, emits()) {
        emit(folder, plan.name(), (&unit, plan), unit.files(), &compiler);
        write_if_changed(text, unit.header().text.as_bytes()).expect("writable");
        return None;
    }
    let compiled = compiler.compile(&unit, plan.targets()).expect("a right kernel");
    if let Some((text, fatbin)) = &carried {
        fs::create_dir_all(text.parent().expect("a folder")).expect("writable");
        // The text last: where it is, the fatbin is whole.
        write_if_changed(fatbin, compiled.fatbin()).expect("writable");
        write_if_changed(text, unit.header().text.as_bytes()).expect("writable");
    }
    Some(compiled.fatbin().to_vec())
}

/// Whether texts are wanted, to be compiled elsewhere.
pub(crate) fn emits() -> bool {
    std::env::var_os("CUTEMPLATE_TEST_EMIT").is_some_and(|v| v == "1")
}

/// What compiles every folder of texts beside it.
pub(crate) const COMPILE: &str = r#"#!/bin/sh
# Makes NAME.fatbin of every NAME.src: CUTLASS=cutlass/include [NVCC=nvcc] [JOBS=16] sh compile.sh
# A kernel of which ptxas tells what is denied fails too; the others are made all the same.
cd "$(dirname "$0")" || exit 1
: "${CUTLASS:?the include folder of CUTLASS}"
export CUTLASS="$(cd "$OLDPWD" && realpath "$CUTLASS")" NVCC="${NVCC:-nvcc}"
ls -d *.src | sed 's/\.src$//' | xargs -P "${JOBS:-$(nproc)}" -I{} sh -c \
  'test -e {}.fatbin || { cd {}.src && "$NVCC" $(cat flags) -isystem "$CUTLASS" -o {}.part "$(cat unit)" > log 2>&1 && test -s denied && ! grep -f denied log && mv {}.part ../{}.fatbin || { echo "{} failed"; exit 1; }; }'
"#;

/// What ptxas may not tell of a kernel: that products wait for each other, messages C75xx; where spills are denied, of local memory.
/// `sin` and `cos` reduce a large argument in an array there.
pub(crate) fn denied(files: &[SourceFile], spills_denied: bool) -> &'static [&'static str] {
    let reduces = |file: &SourceFile| ["sinf(", "cosf("].iter().any(|call| file.text.contains(call));
    match spills_denied {
        false => &[SERIALIZED],
        true if files.iter().any(reduces) => &[SERIALIZED, "bytes spill"],
        true => &[SERIALIZED, "bytes spill", "bytes stack"],
    }
}

const SERIALIZED: &str = "(C75";

/// The lines in which ptxas tells of it.
pub(crate) fn told<'a>(report: &'a str, denied: &[&str]) -> Vec<&'a str> {
    let is_denied = |piece: &str| {
        let (count, what) = piece.trim_start().split_once(' ').unwrap_or_default();
        count != "0" && denied.iter().any(|denied| what.starts_with(denied))
    };
    let is_told =
        |line: &&str| denied.contains(&SERIALIZED) && line.contains(SERIALIZED) || line.split(',').any(is_denied);
    report.lines().filter(is_told).collect()
}

/// What `grep` finds such lines by, a pattern a line.
pub(crate) fn patterns(denied: &[&str]) -> String {
    let pattern = |&what: &&str| match what {
        SERIALIZED => format!("{SERIALIZED}\n"),
        bytes => format!("[1-9][0-9]* {bytes}\n"),
    };
    denied.iter().map(pattern).collect()
}

/// The names that this run has given to texts: a second text of the same name would replace the first.
static EMITTED: Mutex<BTreeMap<PathBuf, Digest>> = Mutex::new(BTreeMap::new());

/// Writes the files that the unit's fatbin is made of, and the flags for it, to a folder of their own.
pub(crate) fn emit(folder: &Path, stem: &str, (unit, plan): (&Unit, &Plan), files: &[SourceFile], compiler: &Compiler) {
    let text: String = files.iter().map(|file| file.text.as_str()).collect();
    let digest = Digest::of(text.as_bytes());
    let mut emitted = EMITTED.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(*emitted.entry(folder.join(stem)).or_insert(digest), digest, "two texts have the name {stem}");
    let own = folder.join(format!("{stem}.src"));
    fs::create_dir_all(&own).expect("writable");
    for file in files {
        write_if_changed(&own.join(&file.name), file.text.as_bytes()).expect("writable");
    }
    let argv = compiler.command_line(unit, plan.targets());
    let mut flags = String::new();
    // Without what names files, and folders of this machine.
    let mut rest = argv[1..argv.len() - 1].iter();
    while let Some(flag) = rest.next() {
        match flag.as_str() {
            "-ccbin" | "-isystem" | "-MF" | "-o" => {
                rest.next();
            }
            "-MD" => {}
            flag => {
                let _ = writeln!(flags, "{flag}");
            }
        }
    }
    write_if_changed(&own.join("flags"), flags.as_bytes()).expect("writable");
    // The one file to compile: others may be included by it.
    write_if_changed(&own.join("unit"), unit.entry().name.as_bytes()).expect("writable");
    let patterns = patterns(denied(files, plan.spills_denied()));
    write_if_changed(&own.join("denied"), patterns.as_bytes()).expect("writable");
    write_if_changed(&folder.join("compile.sh"), COMPILE.as_bytes()).expect("writable");
}

/// A kernel on the GPU; `None` where there is none, once its fatbin is where [`fatbin`] puts it.
pub(crate) fn load(gpu: Option<&Gpu>, plan: Plan) -> Option<AnyKernel> {
    let fatbin = fatbin(gpu, &plan)?;
    // SAFETY: nvcc made the fatbin of this plan's text, here or where the folder comes from.
    gpu.map(|gpu| unsafe { AnyKernel::load_unchecked(gpu, plan, &fatbin) }.expect("loads"))
}
