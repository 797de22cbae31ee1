//! Contract: nvcc is told exactly what the design says, once for each content; what it made is checked before it is used;
//! a failure carries the command, the compiler's words and the source line, and leaves nothing behind.
//! The compiler is the script `tests/fake/nvcc`.
#![cfg(all(unix, feature = "build"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;

use crate::place::{Place, targets, unit, write};
use cutemplate::arch::{Arch, Targets};
use cutemplate::build::{Compiler, Error, Outcome};
use cutemplate::dtype::DType;

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
