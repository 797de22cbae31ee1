//! Contract: the real nvcc makes one fatbin with SASS for sm_80 and sm_90a and PTX for sm_80, without spills, and the
//! same bytes each time; its own words reach the error. What a text computes does not hang on nvcc's flags: the roundings stand in
//! the PTX, and with the flags that no text is immune to there is no kernel.
//! Uses the toolkit that is found, or fetches the pinned one where `CUTEMPLATE_FETCH=1`, as in this workspace.
#![cfg(all(target_os = "linux", feature = "build"))]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::{Compiler, Error, Outcome, Store};
use cutemplate::digest::Digest;
use cutemplate::emit::{Unit, render};
use cutemplate::fatbin::{Kind, images};
use cutemplate::recipe::{ElementwiseAdd, ElementwiseApply, Recipe};
use cutemplate::settings::Settings;
use cutlass_sys::Finder;

use crate::made;

/// A kernel of the catalogue, which other tests have compiled too.
fn add() -> Unit {
    let settings = Settings::parse_lines(ElementwiseAdd::CATALOGUE[0]);
    let recipe = ElementwiseAdd::from_settings(&settings).unwrap();
    render(&recipe.plan(&Targets::default()).unwrap())
}

#[test]
fn nvcc_compiles_a_kernel_for_every_target() {
    let finder = Finder::from_env();
    let compiler = Compiler::new(&finder, &mut ()).unwrap();
    let unit = add();
    let compiled = compiler.compile(&unit, &Targets::default()).unwrap();

    let manifest = compiled.manifest();
    assert_eq!(manifest.warnings, [""; 0]);
    let archs: Vec<&str> = manifest.resources.iter().map(|row| row.arch.as_str()).collect();
    assert_eq!(archs, ["sm_80", "sm_90a"]);
    assert!(!manifest.spills(), "{manifest}");
    for row in &manifest.resources {
        assert!((16..=255).contains(&row.registers), "{manifest}");
        assert_eq!(row.smem, 0, "{manifest}");
        let sass = row.sass.unwrap();
        // An instruction is 16 bytes since Volta.
        assert!(sass > 1024 && sass % 16 == 0, "{manifest}");
    }
    let held: Vec<(Kind, String)> = images(compiled.fatbin()).unwrap().into_iter().map(|i| (i.kind, i.arch)).collect();
    for expected in [(Kind::Ptx, "sm_80"), (Kind::Sass, "sm_80"), (Kind::Sass, "sm_90a")] {
        assert!(held.contains(&(expected.0, expected.1.to_owned())), "{held:?}");
    }
    assert_eq!(held.len(), 3);

    // NVIDIA's own reader sees the same.
    let tools = finder.disassembler(&mut ()).unwrap();
    let output = Command::new(&tools.cuobjdump.path).args(["-lelf", "-lptx"]).arg(compiled.path()).output().unwrap();
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    for name in [".sm_80.ptx", ".sm_80.cubin", ".sm_90a.cubin"] {
        assert!(listed.contains(name), "{listed}");
    }

    let output = Command::new(&tools.cuobjdump.path).arg("-res-usage").arg(compiled.path()).output().unwrap();
    let usage = String::from_utf8_lossy(&output.stdout).into_owned();
    for row in &manifest.resources {
        // The PTX entry has a paragraph of its own for the same architecture, without a function.
        let expected = format!("Function {}:\n  REG:{} STACK:{} ", unit.name(), row.registers, row.stack);
        let mut images = usage.split("arch = ").filter(|text| text.starts_with(&format!("{}\n", row.arch)));
        assert!(images.any(|text| text.contains(&expected)), "{manifest}\n{usage}");
    }

    assert_eq!(compiler.compile(&unit, &Targets::default()).unwrap().outcome(), &Outcome::Cached);

    // The same bytes in every folder: names that nvcc makes of a text's path are made of the text.
    let temp = tempfile::tempdir().unwrap();
    let again = compiler.clone().with_store(Store::at(temp.path())).compile(&unit, &Targets::default()).unwrap();
    assert_eq!(again.outcome(), &Outcome::Built);
    assert_eq!(again.fatbin(), compiled.fatbin());
}

/// The PTX that is kept has line tables, with names as they are included; what a GPU runs is the same with and without them.
#[test]
fn line_tables_change_no_instruction_and_name_no_folder() {
    let compiler = || Compiler::new(&Finder::from_env(), &mut ()).unwrap();
    let unit = add();
    let text = compiler().ptx(&unit, &Targets::default()).unwrap().text().to_owned();
    let files: Vec<&str> = text.lines().filter(|line| line.trim_start().starts_with(".file")).collect();
    assert!(files.iter().any(|line| line.contains(&format!("\"{}.cuh\"", unit.name()))), "{files:?}");
    assert!(files.iter().any(|line| line.contains("\"cute/")), "{files:?}");
    assert!(files.iter().all(|line| !line.contains("\"/")), "{files:?}");
    assert!(text.contains(".loc"), "{text}");

    // nvcc in one step, from the text to the fatbin, where nobody asks for lines.
    let compiler = compiler();
    // For each architecture of the text, not of the PTX for the oldest.
    let argv = compiler.command_line(&unit, &Targets::default());
    let own = |arg: &String| arg.replace("compute_80,code=sm_90a", "compute_90a,code=sm_90a");
    let argv: Vec<String> = argv.iter().map(own).collect();
    assert!(argv.iter().any(|arg| arg == "-gencode=arch=compute_90a,code=sm_90a"), "{argv:?}");
    let arguments: Vec<&str> = argv[1..].iter().map(String::as_str).collect();
    let direct = made::once(&compiler, &arguments, unit.files(), &format!("{}.fatbin", unit.name()));
    let direct = std::fs::read(direct.unwrap_or_else(|e| panic!("{argv:?}\n{e}"))).unwrap();

    // In the order of architectures; nvcc has another.
    let sass = |fatbin: &[u8]| -> Vec<(String, Digest)> {
        let held = images(fatbin).unwrap();
        let sass = held.iter().filter(|image| image.kind == Kind::Sass);
        let mut sass: Vec<_> =
            sass.map(|image| (image.arch.clone(), Digest::of(image.sass(unit.name()).unwrap()))).collect();
        sass.sort();
        sass
    };
    let ours = compiler.compile(&unit, &Targets::default()).unwrap();
    assert_eq!((sass(ours.fatbin()).len(), sass(ours.fatbin())), (2, sass(&direct)));
}

#[test]
fn nvccs_own_words_and_the_line_reach_the_error() {
    let temp = tempfile::tempdir().unwrap();
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).unwrap().with_store(Store::at(temp.path()));
    let targets = Targets::new([Arch::Sm80]).unwrap();
    let unit = render(&ElementwiseAdd::default().plan_as("add", &targets).unwrap());
    // A name of the kernel's text becomes something that cannot be declared.
    let result = compiler.with_flags(["-DtYcY=1"]).compile(&unit, &targets);
    let Err(Error::Compile(error)) = result else { panic!("accepted") };
    let at = error.at.as_ref().unwrap();
    assert_eq!(at.file, "add.cuh");
    assert!(at.text.starts_with("Tensor tYcY = "), "{error}");
    assert!(error.text.contains(&format!("add.cuh({})", at.line)), "{error}");
}

/// A fragment of half the elements that are copied into it: CuTe says nothing of the copy by predicates.
#[test]
fn a_copy_into_half_of_its_elements_is_refused() {
    let targets = Targets::new([Arch::Sm80]).unwrap();
    let settings = Settings::parse_lines("expr=a * 2 - b\nin=f16:(?,1), f16:(?,1)");
    let unit = render(&ElementwiseApply::from_settings(&settings).unwrap().plan_as("half", &targets).unwrap());
    let (from, to) =
        ("make_tensor<ElementA>(size<0>(Fragment{}))", "make_tensor<ElementA>(size<0>(Fragment{}) / _2{})");
    let mut files = unit.files().to_vec();
    let header = files.iter_mut().find(|file| file.name == "half.cuh").unwrap();
    assert_eq!(header.text.matches(from).count(), 1);
    header.text = header.text.replace(from, to);
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).unwrap();
    let tools = compiler.toolchain();
    let cutlass = tools.cutlass.as_ref().expect("a toolchain of CuTe");
    let (include, cxx) = (cutlass.include.to_string_lossy(), tools.cxx.path.to_string_lossy());
    let flags = ["-std=c++17", "-arch=compute_80", "--expt-relaxed-constexpr", "-isystem", &*include, "-ccbin", &*cxx];
    let flags = [&flags[..], &["--ptx", "-o", "half.ptx", "half.cu"]].concat();
    let refused = made::once(&compiler, &flags, &files, "half.ptx").unwrap_err();
    let words = "static assertion failed with \"a copy has as many elements on both sides\"";
    assert!(refused.contains(words) && refused.contains("copy_all_if"), "{refused}");
}

/// Everything that a flag could change: a product beside a sum, a quotient, a root, and a product that ends a library function.
fn rounded() -> Unit {
    let settings = Settings::parse_lines(
        "expr=|a, b, c| a * b + c, a / b - c, sqrt(a) * b, 1 + exp(c)\nin=f32, f32, f32\nvariant=naive",
    );
    let recipe = ElementwiseApply::from_settings(&settings).unwrap();
    render(&recipe.plan_as("rounded", &Targets::new([Arch::Sm80]).unwrap()).unwrap())
}

#[test]
fn every_rounding_of_the_text_is_one_of_the_ptx() {
    let finder = Finder::from_env();
    let compiler = Compiler::new(&finder, &mut ()).unwrap();
    // Contraction is nvcc's default; the others only make it worse.
    let compiler = compiler.with_flags(["-fmad=true", "-prec-sqrt=false"]);
    let compiled = compiler.compile(&rounded(), &Targets::new([Arch::Sm80]).unwrap()).unwrap();
    let tools = finder.disassembler(&mut ()).unwrap();
    let output = Command::new(&tools.cuobjdump.path).arg("-ptx").arg(compiled.path()).output().unwrap();
    let ptx = String::from_utf8_lossy(&output.stdout).into_owned();
    let count = |opcode: &str| ptx.lines().filter(|line| line.trim_start().starts_with(opcode)).count();
    let found = ["mul.rn.f32", "div.rn.f32", "sub.f32", "sqrt.rn.f32", "add.rn.f32"].map(count);
    assert_eq!(found, [2, 1, 1, 1, 1], "{ptx}");
    assert!(count("add.f32") > 0, "{ptx}");
    // expf has multiply-adds of its own, none of which adds the 1.
    assert!(!ptx.lines().any(|line| line.contains("fma.") && line.trim_end().ends_with(", 0f3F800000;")), "{ptx}");
}

#[test]
fn flags_that_change_what_a_text_computes_make_no_kernel() {
    // The PTX is kept, in which a function is called that is nowhere.
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).unwrap();
    let targets = Targets::new([Arch::Sm80]).unwrap();
    for flags in [&["-ftz=true"][..], &["-use_fast_math", "-ftz=false"]] {
        let result = compiler.clone().with_flags(flags.iter().copied()).compile(&rounded(), &targets);
        let Err(Error::Compile(error)) = result else { panic!("{flags:?} are accepted") };
        assert!(error.text.contains("cutemplate_needs_ftz_false_and_no_use_fast_math"), "{error}");
    }
}

/// The demo needs no compiler for its first part: it carries this PTX.
#[test]
fn the_ptx_of_the_demo_is_what_nvcc_makes_of_its_text() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/demo");
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(root.join("reverse.cu"), folder.path().join("reverse.cu")).unwrap();
    let nvcc = Finder::from_env().nvcc(&mut ()).unwrap();
    let mut command = Command::new(&nvcc.path);
    command.args(["-ptx", "-lineinfo", "-arch=sm_80", "reverse.cu", "-o", "reverse.ptx"]).current_dir(folder.path());
    let made = command.args(nvcc.headers.include_dirs.iter().flat_map(|dir| ["-I".as_ref(), dir.as_os_str()])).output();
    let made = made.unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    // The name of the file stands with its folder, and comments name the compiler.
    let code = |path: std::path::PathBuf| -> Vec<String> {
        let text = std::fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default().trim().to_owned());
        lines.filter(|line| !line.is_empty() && !line.starts_with(".file")).collect()
    };
    assert_eq!(code(folder.path().join("reverse.ptx")), code(root.join("reverse.ptx")));
}
