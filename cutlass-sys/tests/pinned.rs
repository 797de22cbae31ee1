//! Contract: with the pinned wheels and nothing else, a plain C++ compiler reads CuTe and nvcc runs.
//! Uses this user's cache, and fetches where `CUTEMPLATE_FETCH=1`, as in this workspace.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use cutlass_sys::{Component, Env, Finder, Origin};

/// Only the cache: no variable names a part, and no directory of the system is searched.
fn pinned() -> Finder {
    let current = Env::current();
    let cache = current.cache_dir().unwrap();
    let vars = ["PATH", "CUTEMPLATE_FETCH"].map(|name| (name, current.get(name).unwrap_or_default().to_owned()));
    let vars = vars.into_iter().chain([("CUTEMPLATE_CACHE_DIR", cache.into_os_string())]);
    Finder::new(Env::from_pairs(vars))
}

#[test]
fn a_plain_cxx_compiler_reads_cute_with_the_headers_alone() {
    let toolchain = pinned().host_toolchain(&mut ()).unwrap();
    assert_eq!(toolchain.cutlass.origin, Origin::Pinned);
    assert_eq!(toolchain.cutlass.version, Component::Cutlass.version());
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("a.cpp");
    let text = "#include <cute/tensor.hpp>\nstatic_assert(cute::size(cute::Shape<cute::_2, cute::_3>{}) == 6, \"\");\n";
    std::fs::write(&source, text).unwrap();
    let mut command = Command::new(&toolchain.cxx.path);
    command.args(["-std=c++17", "-fsyntax-only"]);
    for include in std::iter::once(&toolchain.cutlass.include).chain(&toolchain.cuda.include_dirs) {
        command.arg("-isystem").arg(include);
    }
    let output = command.arg(&source).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_programs_run_and_are_the_pinned_versions() {
    let finder = pinned();
    let nvcc = finder.nvcc(&mut ()).unwrap();
    let tools = finder.disassembler(&mut ()).unwrap();
    let expected = [
        (&nvcc.path, Component::Nvcc),
        (&tools.cuobjdump.path, Component::Disassembler),
        (&tools.nvdisasm.path, Component::Disassembler),
    ];
    for (path, component) in expected {
        let output = Command::new(path).arg("--version").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(text.contains(&format!("V{}", component.version())), "{text}");
    }
    let libclang = finder.libclang(&mut ()).unwrap();
    assert!(libclang.path.is_file());
}
