//! Compiles the C++ oracle and binds it. This needs the headers, a C++ compiler and libclang: what is missing is fetched
//! where that is allowed, and an error otherwise, since who asks for the feature needs the oracle.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::finder::Finder;
use crate::toolchain::HostToolchain;

const SOURCES: [&str; 2] = ["oracle/oracle.cpp", "oracle/repeat.cpp"];

/// Builds `liboracle.a` and `oracle.rs`, or says what is missing.
pub(crate) fn build() -> Result<(), String> {
    println!("cargo::rerun-if-changed=build/oracle.rs");
    println!("cargo::rerun-if-changed=oracle");
    for name in ["CUTEMPLATE_FETCH", "CXXFLAGS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let finder = Finder::from_env();
    let toolchain = finder.host_toolchain(&mut ()).map_err(|e| e.to_string())?;
    let libclang = finder.libclang(&mut ()).map_err(|e| e.to_string())?;
    compile(&toolchain)?;
    bind(&toolchain.cxx.path, &libclang.path)
}

/// Optimised in every profile: the oracle answers a million cases in a test, and is what a benchmark compares with.
fn compile(toolchain: &HostToolchain) -> Result<(), String> {
    let mut build = cc::Build::new();
    build.cpp(true).std("c++17").compiler(&toolchain.cxx.path).opt_level(2).debug(false).files(SOURCES);
    // As system headers: their warnings are not ours.
    for dir in [&toolchain.cutlass.include].into_iter().chain(&toolchain.cuda.include_dirs) {
        build.flag("-isystem").flag(dir);
    }
    build.try_compile("oracle").map_err(|e| e.to_string())
}

fn bind(cxx: &Path, libclang: &Path) -> Result<(), String> {
    let dir = libclang.parent().ok_or("libclang is a file in a directory")?;
    // SAFETY: a build script has one thread, and nothing else reads its environment at this time.
    unsafe { std::env::set_var("LIBCLANG_PATH", dir) };
    // The wheel of libclang has no builtin headers; those of the compiler do.
    let builtin = Command::new(cxx).arg("-print-file-name=include").output().map_err(|e| e.to_string())?;
    let builtin = String::from_utf8(builtin.stdout).map_err(|e| e.to_string())?;
    let out = std::env::var_os("OUT_DIR").map(PathBuf::from).ok_or("cargo sets OUT_DIR")?;
    bindgen::Builder::default()
        .header("oracle/oracle.h")
        .clang_args(["-isystem", builtin.trim()])
        .allowlist_function("oracle_.*")
        .allowlist_var("ORACLE_.*")
        .allowlist_type("oracle_.*")
        .prepend_enum_name(false)
        .generate()
        .map_err(|e| e.to_string())?
        .write_to_file(out.join("oracle.rs"))
        .map_err(|e| e.to_string())
}
