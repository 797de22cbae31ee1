//! Contract: nvcc is told exactly what the design says, once for each content; what it made is checked before it is used;
//! a failure carries the command, the compiler's words and the source line, and leaves nothing behind.
//! The compiler is the script `tests/fake/nvcc`.
#![cfg(all(unix, feature = "build"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::place::{Place, targets, unit, write};
use cutemplate::arch::{Arch, Targets};
use cutemplate::build::{Compiled, Compiler, Error, Outcome, Store};
use cutemplate::dtype::DType;

/// Does something to a file of an entry.
type Harm<'a> = &'a dyn Fn(&Path);

/// The entry of the store that holds the fatbin; another holds PTX.
fn entry(place: &Place) -> std::path::PathBuf {
    let stored = place.stored();
    assert_eq!(stored.len(), 2, "{stored:?}");
    let mut entries = stored.iter().map(|name| place.store().root().join(name));
    entries.find(|dir| dir.join("add.fatbin").exists() || dir.join("manifest.json").exists()).unwrap()
}

#[test]
fn nvcc_is_told_what_the_design_says() {
    let place = Place::new("good");
    place.compile().unwrap();
    let cxx = place.finder(&[]).host_compiler().unwrap().path;
    let (cxx, include) = (cxx.display(), place.root.join("cutlass/include"));
    let ptx = format!(
        "-ccbin {cxx} -std=c++17 -O3 -DNDEBUG --expt-relaxed-constexpr --diag-error=177,550,3357 --ptx -lineinfo \
         -gencode=arch=compute_80,code=compute_80 -isystem {} -MD -MF add.d -o add.ptx add.cu",
        include.display()
    );
    let codes = "-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_80,code=sm_90a -gencode=arch=compute_80,code=compute_80";
    let fatbin = format!("-ccbin {cxx} --fatbin -Xptxas -v {codes} -o add.fatbin add.ptx");
    assert_eq!(place.runs(), [ptx.clone(), fatbin]);
    // The same in one step, for who compiles elsewhere.
    let argv = place.compiler().command_line(&unit("add", DType::F16), &Targets::default());
    let lines = "--ptx -lineinfo -gencode=arch=compute_80,code=compute_80";
    let direct = ptx.replace(lines, &format!("--fatbin -Xptxas -v {codes}")).replace("add.ptx", "add.fatbin");
    assert_eq!(argv[1..].join(" "), direct);
}

#[test]
fn what_is_compiled_is_told_with_its_time() {
    let place = Place::new("good");
    let told = || {
        let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let said = std::sync::Arc::clone(&lines);
        let compiler = place.compiler().telling(move |done| said.lock().unwrap().push(done.to_string()));
        compiler.compile(&unit("add", DType::F16), &Targets::default()).unwrap();
        let mut lines = std::mem::take(&mut *lines.lock().unwrap());
        lines.sort();
        lines
    };
    let lines = told();
    let expected = ["add: PTX for sm_80, sm_90a in ", "add: machine code for sm_80, sm_90a in "];
    assert!(
        lines.iter().zip(expected).all(|(line, start)| line.starts_with(start) && line.ends_with(" s")),
        "{lines:?}"
    );
    assert_eq!((lines.len(), told()), (2, vec![]), "what is in the store is not made");
}

/// nvcc reads the text, and with it CuTe's headers, once for all architectures: what it makes for them differs in nothing else.
#[test]
fn all_targets_share_the_ptx_of_the_oldest() {
    let place = Place::new("good");
    let archs = [Arch::Sm86, Arch::Sm89, Arch::Sm90, Arch::Sm90a];
    let compiled = place.compiler().compile(&unit("add", DType::F16), &targets(&archs)).unwrap();
    assert_eq!(compiled.manifest().targets, archs.map(|arch| arch.name()));
    let [ptx, fatbin] = &place.runs()[..] else { panic!("two runs: {:?}", place.runs()) };
    assert_eq!(gencode(ptx), "-gencode=arch=compute_86,code=compute_86");
    let codes = ["sm_86", "sm_89", "sm_90", "sm_90a", "compute_86"];
    assert_eq!(gencode(fatbin), codes.map(|code| format!("-gencode=arch=compute_86,code={code}")).join(" "));
    // Other targets with the same oldest need no PTX of their own.
    place.compiler().compile(&unit("add", DType::F16), &targets(&archs[..2])).unwrap();
    assert_eq!(place.runs().len(), 3);
}

/// Instructions of 8.0 convert bf16; what is there for older GPUs too is made of other PTX.
#[test]
fn what_is_older_than_sm_80_has_ptx_of_its_own() {
    let place = Place::new("good");
    place.compiler().compile(&unit("add", DType::F16), &targets(&[Arch::Sm75, Arch::Sm80, Arch::Sm90a])).unwrap();
    let mut told: Vec<String> = place.runs().iter().map(|run| gencode(run)).collect();
    told[..2].sort();
    let expected = [
        "-gencode=arch=compute_75,code=compute_75",
        "-gencode=arch=compute_80,code=compute_80",
        "-gencode=arch=compute_75,code=sm_75 -gencode=arch=compute_75,code=compute_75",
        "-gencode=arch=compute_80,code=sm_80 -gencode=arch=compute_80,code=sm_90a",
    ];
    assert_eq!(told, expected);
}

/// 8-bit floats are converted by instructions since 8.9, and by many before.
#[test]
fn a_text_with_8_bit_floats_has_ptx_for_what_converts_them() {
    let place = Place::new("good");
    let all = [Arch::Sm80, Arch::Sm86, Arch::Sm89, Arch::Sm90a];
    let compiled = place.compiler().compile(&unit("add", DType::E4m3), &targets(&all)).unwrap();
    let told: Vec<String> = place.runs().iter().map(|run| gencode(run)).collect();
    let code = |compute: &str, codes: &[&str]| {
        codes.iter().map(|code| format!("-gencode=arch=compute_{compute},code={code}")).collect::<Vec<_>>().join(" ")
    };
    let mut ptx = told[..2].to_vec();
    ptx.sort();
    assert_eq!(ptx, [code("80", &["compute_80"]), code("89", &["compute_89"])]);
    assert_eq!(told[2..], [code("80", &["sm_80", "sm_86", "compute_80"]), code("89", &["sm_89", "sm_90a"])]);
    assert_eq!(compiled.manifest().targets, all.map(|arch| arch.name()));
    // The fatbin holds what was made of both: an image for each architecture, and PTX of the oldest.
    assert_eq!(String::from_utf8_lossy(compiled.fatbin()).matches(".address_size 64").count(), 5);
}

/// What a run is told to make, of which architecture.
fn gencode(run: &str) -> String {
    run.split(' ').filter(|arg| arg.starts_with("-gencode")).collect::<Vec<_>>().join(" ")
}

/// The machine code has lines where the user asks for them, in either way.
#[test]
fn lines_are_kept_where_they_are_asked_for() {
    let held = |place: &Place, compiler: Compiler| {
        let compiled = compiler.compile(&unit("add", DType::F16), &Targets::default()).unwrap();
        assert!(!place.runs().is_empty());
        String::from_utf8_lossy(compiled.fatbin()).contains(".loc")
    };
    let place = Place::new("good");
    assert!(!held(&place, place.compiler()));
    assert!(held(&place, place.compiler().with_flags(["-lineinfo"])));
    let finder = place.finder(&[("NVCC_APPEND_FLAGS", "-O2 -G")]);
    assert!(held(&place, Compiler::new(&finder, &mut ()).unwrap()));
}

/// PTX is asked for once, with lines; it and its key name no folder of this machine.
#[test]
fn ptx_has_lines_and_no_paths() {
    let place = Place::new("good");
    let ptx = || place.compiler().ptx(&unit("add", DType::F16), &Targets::default()).unwrap();
    let text = ptx().text().to_owned();
    assert!(text.ends_with(".file 1 \"add.cu\"\n.file 2 \"cute/layout.hpp\"\n"), "{text}");
    // In another folder it is the same.
    assert_eq!(Place::new("good").compiler().ptx(&unit("add", DType::F16), &Targets::default()).unwrap().text(), text);
    assert!(!text.contains(&*place.root.to_string_lossy()), "{text}");
    let [run] = &place.runs()[..] else { panic!("one run: {:?}", place.runs()) };
    assert!(run.contains(" --ptx -lineinfo -gencode=arch=compute_80,code=compute_80 -isystem "), "{run}");
    assert!(run.ends_with(" -MD -MF add.d -o add.ptx add.cu"), "{run}");
    // What somebody changed is made again.
    fs::write(ptx().path(), "changed").unwrap();
    assert_eq!(ptx().text(), text);
    assert_eq!(place.runs().len(), 2);
}

#[test]
fn other_architectures_flags_and_variables_reach_nvcc() {
    let place = Place::new("good");
    let compiler = Compiler::new(&place.finder(&[("NVCC_CCBIN", "/bin/sh")]), &mut ()).unwrap();
    let compiler = compiler.with_flags(["-lineinfo"]);
    // Architecture-specific PTX would run on no other device, so there is none.
    compiler.compile(&unit("add", DType::F32), &targets(&[Arch::Sm90a])).unwrap();
    let [ptx, fatbin] = &place.runs()[..] else { panic!("two runs: {:?}", place.runs()) };
    assert!(!ptx.contains("-ccbin") && !fatbin.contains("-ccbin"), "nvcc reads NVCC_CCBIN itself: {ptx}\n{fatbin}");
    assert!(ptx.contains(" -gencode=arch=compute_90a,code=compute_90a -isystem "), "{ptx}");
    assert_eq!(gencode(fatbin), "-gencode=arch=compute_90a,code=sm_90a");
    assert!(ptx.contains(" -lineinfo -MD ") && fatbin.contains(" -lineinfo -o "), "{ptx}\n{fatbin}");
}

#[test]
fn headers_from_elsewhere_are_added() {
    let place = Place::new("good");
    let alone = place.root.join("alone/nvcc");
    fs::create_dir(place.root.join("alone")).unwrap();
    fs::rename(place.root.join("cuda/bin/nvcc"), &alone).unwrap();
    fs::write(place.root.join("alone/mode"), "refuse").unwrap();
    fs::write(place.root.join("alone/says"), "no").unwrap();
    let finder = place.finder(&[("NVCC", alone.to_str().unwrap())]);
    let argv = Compiler::new(&finder, &mut ()).unwrap().command_line(&unit("add", DType::F16), &Targets::default());
    let include = place.root.join("cuda/include");
    for dir in [include.clone(), include.join("cccl")] {
        let at = argv.iter().position(|arg| Path::new(arg) == dir).unwrap();
        assert_eq!(argv[at - 1], "-isystem");
    }
    assert_eq!(Path::new(&argv[0]), alone);
}

#[test]
fn the_manifest_says_what_came_of_what() {
    let place = Place::new("good");
    let compiled = place.compile().unwrap();
    let manifest = compiled.manifest();
    assert_eq!(
        (manifest.name.as_str(), manifest.nvcc.as_str(), manifest.cutlass.as_str()),
        ("add", "13.0.88", "4.2.0")
    );
    assert_eq!(manifest.targets, ["sm_80", "sm_90a"]);
    assert_eq!(manifest.ptx.as_deref(), Some("sm_80"));
    let sources: Vec<&str> = manifest.sources.iter().map(|file| file.name.as_str()).collect();
    assert_eq!(sources, ["add.cuh", "add.cu", "add_params.h"]);
    let row = manifest.on("sm_90a").unwrap();
    assert_eq!((row.registers, row.barriers, row.smem, row.cmem, row.sass), (24, 1, 512, 376, None));
    assert!(!manifest.spills() && manifest.warnings.is_empty());
    assert_eq!(manifest.fatbin.bytes, compiled.fatbin().len() as u64);
    assert_eq!(fs::read(compiled.path()).unwrap(), compiled.fatbin());

    // No path, no host, no time: another store, another place, the same row.
    let other = Place::new("good").compile().unwrap();
    assert_eq!(other.manifest(), manifest);
    let json = serde_json::to_string(manifest).unwrap();
    assert!(!json.contains(place.root.to_str().unwrap()), "{json}");
    assert_eq!(&serde_json::from_str::<cutemplate::build::Manifest>(&json).unwrap(), manifest);
}

#[test]
fn warnings_and_spills_are_kept_once() {
    let compiled = Place::new("warn").compile().unwrap();
    let warning = "add.cuh(3): warning #177-D: variable \"x\" was declared but never referenced";
    assert_eq!(compiled.manifest().warnings, [warning]);
    assert!(compiled.manifest().spills());
}

#[test]
fn the_same_is_compiled_once() {
    let place = Place::new("good");
    let first = place.compile().unwrap();
    assert_eq!(first.outcome(), &Outcome::Built);
    // Another process would make its own compiler, too.
    let second = place.compile().unwrap();
    assert_eq!(second.outcome(), &Outcome::Cached);
    let parts = |c: &Compiled| (c.manifest().clone(), c.fatbin().to_vec(), c.path().to_owned(), c.inputs().to_vec());
    assert_eq!(parts(&second), parts(&first));
    assert_eq!(second.vouched().abi(), first.vouched().abi());
    assert_eq!(place.runs().len(), 2);
}

#[test]
fn whatever_changes_the_outcome_changes_the_key() {
    let place = Place::new("good");
    let default = Targets::default();
    let add = unit("add", DType::F16);
    let with = |vars: &[(&str, &str)]| Compiler::new(&place.finder(vars), &mut ()).unwrap();
    with(&[]).compile(&add, &default).unwrap();
    with(&[]).compile(&unit("add", DType::F32), &default).unwrap();
    with(&[]).compile(&unit("sum", DType::F16), &default).unwrap();
    with(&[]).compile(&add, &targets(&[Arch::Sm80])).unwrap();
    with(&[]).with_flags(["-lineinfo"]).compile(&add, &default).unwrap();
    with(&[("NVCC_APPEND_FLAGS", "-G")]).compile(&add, &default).unwrap();
    with(&[("CPATH", "/somewhere")]).compile(&add, &default).unwrap();
    place.cutlass_version(3);
    with(&[]).compile(&add, &default).unwrap();
    write(&place.root.join("cuda/version.json"), r#"{"cuda_nvcc":{"version":"13.0.99"}}"#);
    with(&[]).compile(&add, &default).unwrap();
    // PTX and machine code each; for sm_80 alone there is PTX already.
    assert_eq!(place.runs().len(), 8 * 2 + 1);
    assert_eq!(place.stored().len(), 8 * 2 + 1);
}

#[test]
fn a_changed_header_makes_the_entry_stale() {
    let place = Place::new("good");
    place.compile().unwrap();
    let header = place.root.join("cuda/include/cuda_runtime_api.h");
    write(&header, "#define CUDART_VERSION  13000\n// patched\n");
    let again = place.compile().unwrap();
    // The path is as nvcc named it, relative to its own folder.
    let Outcome::Rebuilt(why) = again.outcome() else { panic!("{:?}", again.outcome()) };
    assert!(why.ends_with("cuda_runtime_api.h was changed since"), "{why}");
    fs::remove_file(&header).unwrap();
    let loaded = Compiler::new(&place.finder(&[]), &mut ());
    assert!(loaded.is_err(), "a toolkit without its headers is refused before that");
}

#[test]
fn a_damaged_entry_is_seen_and_made_again() {
    let place = Place::new("good");
    let good = place.compile().unwrap();
    let writable: Harm<'_> = &|path| fs::set_permissions(path, PermissionsExt::from_mode(0o666)).unwrap();
    let damage: [(&str, Harm<'_>, &str); 8] = [
        ("add.fatbin", writable, "others than its owner can write it"),
        ("entry.json", writable, "others than its owner can write it"),
        ("add.fatbin", &|path| fs::write(path, &good.fatbin()[..good.fatbin().len() / 2]).unwrap(), "and should have"),
        ("add.fatbin", &|path| fs::write(path, good.fatbin().to_ascii_uppercase()).unwrap(), "its sha256 differs"),
        ("add.fatbin", &|path| fs::remove_file(path).unwrap(), "add.fatbin cannot be read"),
        ("manifest.json", &|path| fs::write(path, "{").unwrap(), "manifest.json has 1 bytes, and should have"),
        ("manifest.json", &|path| fs::remove_file(path).unwrap(), "manifest.json cannot be read"),
        ("entry.json", &|path| fs::write(path, "").unwrap(), "entry.json is damaged"),
    ];
    for (file, harm, reason) in damage {
        harm(&entry(&place).join(file));
        let again = place.compile().unwrap();
        assert!(
            matches!(again.outcome(), Outcome::Rebuilt(why) if why.contains(reason)),
            "{file}: {:?}",
            again.outcome()
        );
        assert_eq!(again.fatbin(), good.fatbin());
        assert_eq!(place.compile().unwrap().outcome(), &Outcome::Cached);
    }
}

#[test]
fn a_refused_text_carries_command_words_and_line() {
    let unit = unit("add", DType::F16);
    let number = unit.header().text.lines().position(|line| line.contains("tYcY")).unwrap() + 1;
    let line = unit.header().text.lines().nth(number - 1).unwrap().trim();
    let direct = format!("add.cuh({number}): error: identifier \"x\" is undefined\n\n1 error detected.\n");
    let nested = format!(
        "/c/include/cute/layout.hpp(9): error: static assertion failed with \"Mismatched Ranks\"\n          detected \
         during:\n            instantiation of \"f\" at line 77 of /c/include/cute/tensor.hpp\n            instantiation \
         of \"g\" at line {number} of add.cuh\n"
    );
    let gnu = format!("/c/notes.h:3:1: note: see here\nadd.cuh:{number}:10: fatal error: missing.h: No such file\n");
    for text in [direct, nested, gnu] {
        let place = Place::new("refuse");
        write(&place.root.join("cuda/bin/says"), &text);
        let Err(Error::Compile(error)) = place.compile() else { panic!("{text}") };
        let at = error.at.as_ref().unwrap();
        assert_eq!((at.file.as_str(), at.line, at.text.as_str()), ("add.cuh", number, line));
        assert_eq!(error.text, text);
        assert_eq!(error.status.unwrap().code(), Some(2));
        assert_eq!(error.argv.last().map(String::as_str), Some("add.cu"));
        let shown = Error::Compile(error).to_string();
        assert!(shown.starts_with("error[nvcc]: nvcc refused add (exit status: 2)\n  at:       add.cuh:"), "{shown}");
        assert!(shown.contains("\n  command:  '/") && shown.contains("\n  help:     "), "{shown}");

        assert_eq!(place.stored(), [""; 0], "nothing is left");
        place.mode("good");
        assert_eq!(place.compile().unwrap().outcome(), &Outcome::Built);
    }
}

#[test]
fn a_message_without_a_line_of_the_unit_has_none() {
    let place = Place::new("refuse");
    write(&place.root.join("cuda/bin/says"), "nvcc fatal   : Unsupported gpu architecture 'compute_80'\n");
    let Err(Error::Compile(error)) = place.compile() else { panic!("refused") };
    assert_eq!(error.at, None);
}

/// nvcc would tell of the kernel's text.
#[test]
fn a_compiler_that_nvcc_ccbin_names_and_that_is_not_there_is_the_users_error() {
    let place = Place::new("good");
    let file = place.root.join("file").display().to_string();
    write(Path::new(&file), "");
    let wrong = [
        ("/nowhere/g++", "nothing there"),
        ("no-such-compiler", "no such program on PATH"),
        ("bin/g++", "a relative path, and nvcc runs in a folder of its own"),
        (&file, "a file that cannot be run"),
    ];
    for (value, found) in wrong {
        let error = Compiler::new(&place.finder(&[("NVCC_CCBIN", value)]), &mut ()).unwrap_err();
        let Error::Toolchain(told) = &error else { panic!("{error}") };
        let [told] = told.errors() else { panic!("{error}") };
        assert_eq!((told.what(), told.found()), (&*format!("NVCC_CCBIN={value} is not usable"), found));
        assert!(!error.to_string().contains("report"), "{error}");
        assert!(place.finder(&[("NVCC_CCBIN", value)]).doctor().to_string().contains("NVCC_CCBIN"), "{value}");
    }
    for right in ["/bin/sh", "/bin", "sh"] {
        Compiler::new(&place.finder(&[("NVCC_CCBIN", right)]), &mut ()).unwrap();
    }
    // One that is there, and that nvcc does not like.
    place.mode("refuse");
    write(&place.root.join("cuda/bin/says"), "nvcc fatal   : Failed to preprocess host compiler properties.\n");
    let compiler = Compiler::new(&place.finder(&[("NVCC_CCBIN", "/bin/sh")]), &mut ()).unwrap();
    let error = compiler.compile(&unit("add", DType::F16), &Targets::default()).unwrap_err().to_string();
    assert!(error.contains("nvcc reads NVCC_CCBIN, which is set: try without"), "{error}");
}

#[test]
fn a_compiler_that_cannot_run_says_so() {
    let place = Place::new("good");
    let compiler = place.compiler();
    fs::remove_file(place.root.join("cuda/bin/nvcc")).unwrap();
    let error = compiler.compile(&unit("add", DType::F16), &Targets::default()).unwrap_err();
    let shown = error.to_string();
    assert!(shown.starts_with("error[nvcc]: nvcc could not be run for add\n  found:    No such file"), "{shown}");
    assert_eq!(format!("{error:?}"), shown, "`fn main() -> Result<(), Error>` prints a message");
}

#[test]
fn success_without_a_usable_fatbin_is_an_error() {
    let cases = [
        ("empty-ptx", "the text is empty", "PTX with the body of each entry"),
        ("cut-ptx", "line ", "PTX with the body of each entry"),
        ("no-ptx-entries", "there is no body of entry add", "PTX with the body of each entry"),
        ("no-sass", "its fatbin has no SASS of sm_80", "code of each entry for each architecture"),
        ("no-ptx", "its fatbin has no PTX of sm_80", "code of each entry for each architecture"),
        ("no-fatbin", "No such file or directory", "a fatbin"),
        ("cut", "its fatbin has 16 bytes, and 271 by its header: it is truncated", "a whole fatbin"),
        ("mute", "no report of ptxas", "`ptxas -v` for add on sm_80"),
        ("no-deps", "No such file or directory", "a dependency file"),
    ];
    for (mode, expected, needed) in cases {
        let place = Place::new(mode);
        let error = place.compile().unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(&place.store().root().display().to_string()), "the store is named: {shown}");
        let Error::Output { found, required, .. } = error else { panic!("{mode}: {shown}") };
        assert!(found.starts_with(expected), "{mode}: {found}");
        assert_eq!(required, needed);
        // PTX that is whole is kept, and nothing else.
        for key in place.stored() {
            let dir = place.store().root().join(key);
            assert!(dir.join("add.ptx").exists() && !dir.join("add.fatbin").exists(), "{mode}");
        }
        // The next build begins from nothing.
        place.mode("good");
        assert_eq!(place.compile().unwrap().outcome(), &Outcome::Built, "{mode}");
    }
}

/// What an older version kept, or who knows who wrote: with its list, so that each file has the sha256 that is listed.
#[test]
fn a_poisoned_entry_is_seen_and_made_again() {
    let rewrite = |dir: &Path, name: &str, bytes: &[u8]| {
        fs::write(dir.join(name), bytes).unwrap();
        let list = fs::read(dir.join("entry.json")).unwrap();
        let mut list: serde_json::Value = serde_json::from_slice(&list).unwrap();
        let file = list["files"].as_array_mut().unwrap().iter_mut().find(|file| file["name"] == name).unwrap();
        file["bytes"] = bytes.len().into();
        file["sha256"] = cutemplate::digest::Digest::of(bytes).to_string().into();
        fs::write(dir.join("entry.json"), list.to_string()).unwrap();
    };
    for (name, why) in
        [("add.ptx", "add.ptx is not complete PTX: the text is empty"), ("add.fatbin", "its fatbin is empty")]
    {
        let place = Place::new("good");
        let good = place.compile().unwrap();
        let stored = place.stored().into_iter().map(|key| place.store().root().join(key));
        let dir = stored.into_iter().find(|dir| dir.join(name).exists()).unwrap();
        rewrite(&dir, name, b"");
        let ptx = place.compiler().ptx(&unit("add", DType::F16), &Targets::default()).unwrap();
        let again = place.compile().unwrap();
        let told = if name == "add.ptx" { ptx.outcome() } else { again.outcome() };
        assert!(matches!(told, Outcome::Rebuilt(found) if found.contains(why)), "{told:?}");
        assert_eq!(again.fatbin(), good.fatbin());
    }
}

#[test]
fn of_two_at_once_one_compiles() {
    let place = Place::new("good");
    let both = std::thread::scope(|scope| {
        let threads = [(); 2].map(|()| scope.spawn(|| place.compile().unwrap()));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(place.runs().len(), 2);
    let mut outcomes = both.map(|compiled| compiled.outcome() == &Outcome::Built);
    outcomes.sort_unstable();
    assert_eq!(outcomes, [false, true]);
}

/// The staging directories in the store.
fn staging(place: &Place) -> Vec<String> {
    place.stored().into_iter().filter(|name| name.starts_with(".staging-")).collect()
}

#[test]
fn a_build_that_is_killed_half_way_leaves_a_clean_start() {
    let place = Place::new("wait");
    let mut victim = place.child("driver::compile_and_print").spawn().unwrap();
    let start = Instant::now();
    while !place.root.join("cuda/bin/started").exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "nvcc was not started");
        std::thread::sleep(Duration::from_millis(10));
    }
    victim.kill().unwrap();
    victim.wait().unwrap();
    // The entry to be, and nvcc's temporary files.
    assert_eq!(staging(&place).len(), 2);

    // The compiler that lost its parent still runs, and ends while or after the next one does.
    place.mode("good");
    let good = place.compile().unwrap();
    assert_eq!(good.outcome(), &Outcome::Built);
    write(&place.root.join("cuda/bin/release"), "");
    let again = place.compile().unwrap();
    assert_eq!((again.outcome(), again.fatbin()), (&Outcome::Cached, good.fatbin()));
}

#[test]
#[ignore = "run by another test, in a process of its own"]
fn compile_and_print() {
    let Some(place) = Place::of_parent() else { return };
    println!("{}", place.compile().unwrap().manifest());
}

#[test]
fn what_killed_builds_of_other_keys_left_is_removed() {
    let place = Place::new("good");
    let fatbin = place.compile().unwrap();
    let key = fatbin.path().parent().and_then(Path::file_name).unwrap().to_string_lossy().into_owned();
    // Two that are not of this key's lock: one abandoned, one being made.
    let digits: Vec<String> = (0..256).map(|n| format!("{n:02x}")).filter(|d| *d != key[..2]).collect();
    let staging = |digits: &str| place.store().root().join(format!(".staging-{digits}{}", &key[2..]));
    let (abandoned, busy) = (staging(&digits[0]), staging(&digits[1]));
    for dir in [&abandoned, &busy] {
        write(&dir.join("tmp/left"), "");
    }
    let locks = place.store().root().join("locks");
    fs::write(locks.join(&digits[0]), "").unwrap();
    let held = fs::File::create(locks.join(&digits[1])).unwrap();
    held.lock().unwrap();
    fs::remove_dir_all(place.store().root().join(&key)).unwrap();
    place.compile().unwrap();
    assert!(!abandoned.exists());
    assert!(busy.exists());
}

#[test]
fn a_store_that_cannot_be_written_says_so() {
    let place = Place::new("good");
    let file = place.root.join("file");
    write(&file, "");
    let compiler = place.compiler().with_store(Store::at(file.join("kernels")));
    let error = compiler.compile(&unit("add", DType::F16), &Targets::default()).unwrap_err();
    assert!(matches!(error, Error::Io { verb: "make", .. }), "{error}");
    assert!(error.to_string().contains("CUTEMPLATE_CACHE_DIR"), "{error}");
    assert_eq!(place.runs(), [""; 0], "nvcc is not started where its result cannot be kept");
}

/// As on a full disk: no file takes more than 512 bytes. The shell ignores the signal, so that the write fails.
#[test]
fn what_is_cut_off_is_told_and_not_kept() {
    let place = Place::new("good");
    let child = place.child("driver::compile_and_print");
    let mut limited = std::process::Command::new("/bin/sh");
    limited
        .args(["-c", "trap '' XFSZ; ulimit -f 1; exec \"$@\"", "sh"])
        .arg(child.get_program())
        .args(child.get_args());
    limited.envs(child.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = limited.output().unwrap();
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("File too large"), "{told}");
    assert_eq!((place.stored(), staging(&place)), (vec![], vec![]), "nothing that is no whole entry");
    assert_eq!(place.compile().unwrap().outcome(), &Outcome::Built);
}

#[test]
fn several_are_compiled_and_answered_in_order() {
    let place = Place::new("good");
    let units = ["a", "b", "c"].map(|name| (unit(name, DType::F16), Targets::default()));
    let results = place.compiler().compile_all(&units);
    let names: Vec<String> = results.into_iter().map(|result| result.unwrap().manifest().name.clone()).collect();
    assert_eq!(names, ["a", "b", "c"]);
}

/// What starts nvcc in its place gets nvcc's command, and changes nothing that is kept.
#[test]
fn a_launcher_starts_nvcc_and_is_part_of_no_key() {
    let place = Place::new("good");
    let launcher = place.root.join("a launcher");
    write(&launcher, "#!/bin/sh\nprintf '%s\\n' \"$1\" >>\"$0.log\"\nexec \"$@\"\n");
    fs::set_permissions(&launcher, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let with = |launcher: &str| {
        Compiler::new(&place.finder(&[("CUTEMPLATE_NVCC_LAUNCHER", launcher)]), &mut ())
            .unwrap()
            .compile(&unit("add", DType::F16), &Targets::default())
    };
    let compiled = with(&launcher.to_string_lossy()).unwrap();
    assert_eq!(compiled.outcome(), &Outcome::Built);
    let nvcc = place.root.join("cuda/bin/nvcc").display().to_string();
    assert_eq!(
        fs::read_to_string(place.root.join("a launcher.log")).unwrap(),
        format!("{nvcc}\n"),
        "machine code is made of PTX without it"
    );
    assert_eq!(place.runs().len(), 2);
    for other in ["", "/nowhere/launcher"] {
        let again = with(other).unwrap();
        assert_eq!((again.outcome(), again.fatbin()), (&Outcome::Cached, compiled.fatbin()));
    }
    // Without it, the manifest is the same too.
    fs::remove_dir_all(place.store().root()).unwrap();
    assert_eq!(with("").unwrap().manifest().to_string(), compiled.manifest().to_string());
    fs::remove_dir_all(place.store().root()).unwrap();
    let error = with("/nowhere/launcher").unwrap_err().to_string();
    assert!(error.contains("/nowhere/launcher") && error.contains(&nvcc), "{error}");
}
