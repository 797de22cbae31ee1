//! A crate of its own, built by cargo: its build script runs a test of this binary, which knows the whole generator, so that
//! nothing but the few lines of the crate is compiled.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cutemplate::build::Config;
use cutemplate::recipe::ElementwiseAdd;
use cutlass_sys::{Env, Finder, SystemDirs};
use expect_test::expect;

use crate::place::{Place, write};

/// Names the binary of this test to the build script.
const EXE: &str = "CUTEMPLATE_TEST_EXE";
/// Names the place to it.
const ROOT: &str = "CUTEMPLATE_TEST_BUILD_DIR";

const BUILD: &str = r#"
fn main() {
    let test = ["--exact", "cargo::as_the_build_script_of_a_crate", "--ignored", "--nocapture"];
    let exe = std::env::var_os("CUTEMPLATE_TEST_EXE").expect("set by the test");
    let status = std::process::Command::new(exe).args(test).status().expect("it runs");
    std::process::exit(status.code().unwrap_or(1));
}
"#;

const MAIN: &str = r#"
fn main() {
    let module = include_str!(env!("CUTEMPLATE_KERNELS"));
    println!("{}", if module.contains("one.fatbin") { "kernel" } else { "stub" });
}
"#;

/// A crate whose build script looks for tools below the place alone: `path/bin` is on its PATH, `system` is where systems have
/// theirs.
struct Crate {
    place: Place,
    cxx: PathBuf,
}

/// What a build did.
#[derive(Debug)]
struct Ran {
    /// What the crate printed, if it was built.
    printed: Option<String>,
    /// What cargo and the build script said.
    said: String,
    /// Whether the build script ran.
    script: bool,
    /// Whether the crate was compiled.
    compiled: bool,
}

impl Crate {
    fn new(optional: bool) -> Crate {
        let place = Place::new("good");
        let at = |path: &str| place.root.join(path);
        write(&at("crate/Cargo.toml"), "[package]\nname = \"user\"\nedition = \"2024\"\n[workspace]\n");
        write(&at("crate/build.rs"), BUILD);
        write(&at("crate/src/main.rs"), MAIN);
        write(&at("crate/runs"), "");
        if optional {
            write(&at("crate/optional"), "");
        }
        fs::create_dir(at("system")).unwrap();
        fs::rename(at("cutlass/include"), at("system/include")).unwrap();
        let cxx = Finder::from_env().host_compiler().unwrap().path;
        Crate { place, cxx }
    }

    /// The toolkit of the place goes from one folder to another.
    fn moved(&self, from: &str, to: &str) {
        fs::rename(self.place.root.join(from), self.place.root.join(to)).unwrap();
    }

    fn scripts(&self) -> usize {
        fs::read_to_string(self.place.root.join("crate/runs")).unwrap().len()
    }

    fn build(&self, variables: &[(&str, &str)]) -> Ran {
        let before = self.scripts();
        let root = &self.place.root;
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.args(["run", "--offline"]).current_dir(root.join("crate"));
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            let ours = ["CUTEMPLATE_", "NVCC", "CUDA_", "CUTLASS_", "CARGO_PKG_", "CARGO_TARGET_"];
            if ours.iter().any(|prefix| name.starts_with(prefix)) || name == "DOCS_RS" {
                command.env_remove(&*name);
            }
        }
        command.env("CARGO_TARGET_DIR", root.join("target")).env("CXX", &self.cxx);
        command.env("CUTEMPLATE_CACHE_DIR", root.join("cache")).env(ROOT, root);
        command.env(EXE, std::env::current_exe().unwrap()).envs(variables.iter().copied());
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let printed = output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        Ran { printed, script: self.scripts() > before, compiled: said.contains("Compiling user"), said }
    }

    #[track_caller]
    fn makes(&self, variables: &[(&str, &str)], what: &str) -> Ran {
        let ran = self.build(variables);
        assert_eq!(ran.printed.as_deref(), Some(what), "{}", ran.said);
        ran
    }

    #[track_caller]
    fn does_nothing(&self, variables: &[(&str, &str)], what: &str) {
        let ran = self.makes(variables, what);
        assert!(!ran.script && !ran.compiled, "{}", ran.said);
    }
}

#[test]
fn tools_that_appear_or_vanish_are_seen() {
    let user = Crate::new(false);
    let root = user.place.root.clone();
    let refused = user.build(&[]);
    assert_eq!(refused.printed, None, "{}", refused.said);
    for word in ["nvcc not found", "kernel one", "CUTEMPLATE_FETCH=1", "CUTEMPLATE_STUB=1", "Config::optional()"] {
        assert!(refused.said.contains(word), "{word}: {}", refused.said);
    }

    user.moved("cuda", "system/cuda");
    assert!(user.makes(&[], "kernel").script);
    user.does_nothing(&[], "kernel");

    user.moved("system/cuda", "cuda");
    assert_eq!(user.build(&[]).printed, None, "the kernel of a toolkit that is gone");
    user.moved("cuda", "path");
    assert!(user.makes(&[], "kernel").script);
    user.does_nothing(&[], "kernel");

    // A header that nvcc read.
    let header = root.join("path/include/cuda_runtime_api.h");
    write(&header, "#define CUDART_VERSION  13000\n// patched\n");
    assert!(user.makes(&[], "kernel").script);
    user.does_nothing(&[], "kernel");

    // Without kernels only where that is asked for, and then whatever is there.
    let stub = [("CUTEMPLATE_STUB", "1")];
    let runs = user.place.root.join("path/bin/argv");
    let before = fs::read(&runs).unwrap();
    assert!(user.makes(&stub, "stub").said.contains("warning: user"), "it is told");
    user.does_nothing(&stub, "stub");
    user.moved("path", "cuda");
    user.does_nothing(&stub, "stub");
    assert_eq!(user.build(&[]).printed, None, "the stub of an earlier build");
    user.moved("cuda", "path");
    user.makes(&[], "kernel");
    assert_eq!(fs::read(&runs).unwrap(), before, "the store had it");
    assert_eq!(user.makes(&[("DOCS_RS", "1")], "stub").said.matches("CUTEMPLATE_STUB").count(), 0);

    // What PATH names is looked for again where PATH is another.
    let path: OsString = std::env::var_os("PATH").unwrap();
    let longer = format!("{}:/nowhere", path.to_string_lossy());
    user.makes(&[], "kernel");
    assert!(user.makes(&[("PATH", &longer)], "kernel").script);
}

#[test]
fn an_optional_kernel_is_tried_again_at_every_build() {
    let user = Crate::new(true);
    let stub = user.makes(&[], "stub");
    for word in ["kernel one is a stub", "nvcc not found", "C++ compiler", "CUTLASS"] {
        assert!(stub.said.contains(word), "{word}: {}", stub.said);
    }
    assert!(user.makes(&[], "stub").script);
    user.moved("cuda", "path");
    user.makes(&[], "kernel");
    user.does_nothing(&[], "kernel");
    user.moved("path", "cuda");
    user.makes(&[], "stub");
    user.moved("cuda", "system/cuda");
    user.makes(&[], "kernel");
    user.does_nothing(&[], "kernel");
    // A toolkit that is there and wrong is never taken for one that is missing.
    let wrong = user.build(&[("NVCC", "/nowhere/nvcc")]);
    assert_eq!(wrong.printed, None, "{}", wrong.said);
    assert!(wrong.said.contains("NVCC=/nowhere/nvcc is not usable"), "{}", wrong.said);
}

/// The macro that includes kernels says in its own words that there are none.
#[test]
fn a_crate_whose_build_script_leaves_no_kernels_is_told() {
    let user = Crate::new(false);
    let at = |path: &str| user.place.root.join(path);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/build/included.rs");
    let main = format!("#[path = {own:?}]\n#[macro_use]\nmod included;\n\ninclude_kernels!();\n\nfn main() {{}}\n");
    write(&at("crate/src/main.rs"), &main);
    write(&at("crate/build.rs"), "fn main() {}\n");
    let told = |ran: Ran| ran.said[ran.said.find("error").unwrap()..ran.said.find("  --> ").unwrap()].to_owned();
    let with_script = told(user.build(&[]));
    expect![[r#"
        error: this crate has no kernels to include
                 found:    no build.rs, or one that calls neither Config::compile() nor bundle::embed()
                 required: a build.rs beside Cargo.toml that calls one of them: it leaves the file that is included here
                 help:     fn main() {
                               use cutemplate::{build::Config, recipe::ElementwiseAdd};
                               Config::new().recipe("vector_add", &ElementwiseAdd::default()).compile();
                           }
    "#]]
    .assert_eq(&with_script);
    fs::remove_file(at("crate/build.rs")).unwrap();
    assert_eq!(told(user.build(&[])), with_script);
}

#[test]
#[ignore = "run by the build script of another test's crate"]
fn as_the_build_script_of_a_crate() {
    let Some(root) = std::env::var_os(ROOT).map(PathBuf::from) else { return };
    let runs = root.join("crate/runs");
    let before = fs::read_to_string(&runs).unwrap();
    fs::write(&runs, before + ".").unwrap();
    let named = |name: &str| Path::new(name).to_path_buf();
    let system = SystemDirs {
        cuda: vec![root.join("system/cuda")],
        cutlass: vec![root.join("system")],
        llvm: vec![named("/nowhere")],
    };
    let variables = std::env::vars_os().filter(|(name, _)| name != "PATH");
    let env = Env::from_pairs(variables.chain([("PATH".into(), root.join("path/bin").into_os_string())]));
    let config = Config::new().finder(Finder::new(env.with_system(system))).recipe("one", &ElementwiseAdd::default());
    let config = if root.join("crate/optional").exists() { config.optional() } else { config };
    // On a line of its own: the harness has begun one.
    println!();
    config.compile();
}
