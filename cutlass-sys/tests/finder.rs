//! Contract: explicit variables, then the system, then the cache; a variable that names nothing useful is an error and
//! is never passed over. Trees are made up here, so that nothing depends on what this machine has.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use cutlass_sys::{Component, Env, ErrorKind, Finder, MARKER, Origin, State, SystemDirs, Version};

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn program(path: &Path) -> PathBuf {
    write(path, "");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_path_buf()
}

/// A CUTLASS root.
fn cutlass(root: &Path, version: [u32; 3]) -> PathBuf {
    let [major, minor, patch] = version;
    let text = format!(
        "#define CUTLASS_MAJOR {major}\n#define CUTLASS_MINOR {minor}\n#define CUTLASS_PATCH {patch} \n\
         #define CUTLASS_VERSION ((CUTLASS_MAJOR)*100)\n"
    );
    write(&root.join("include/cutlass/version.h"), &text);
    write(&root.join("include/cute/tensor.hpp"), "");
    root.to_path_buf()
}

/// A CUDA root of the release `major.minor`, with `cuda/std` where that release has it, and nvcc.
fn cuda(root: &Path, major: u32, minor: u32) -> PathBuf {
    let text = format!("/* api */\n#define CUDART_VERSION  {}\n", major * 1000 + minor * 10);
    write(&root.join("include/cuda_runtime_api.h"), &text);
    write(&root.join("include/crt/host_defines.h"), "");
    let cccl = if major >= 13 { "include/cccl" } else { "include" };
    write(&root.join(cccl).join("cuda/std/utility"), "");
    program(&root.join("bin/nvcc"));
    root.to_path_buf()
}

/// A component's complete directory in a cache, to be filled.
fn cached(cache: &Path, component: Component) -> PathBuf {
    let env = Env::from_pairs([("CUTEMPLATE_CACHE_DIR", cache)]);
    let dir = component.dir(&env).unwrap();
    write(&dir.join(MARKER), &component.marker().unwrap());
    dir
}

fn finder<V: AsRef<Path>>(vars: &[(&str, V)]) -> Finder {
    Finder::new(Env::from_pairs(vars.iter().map(|(k, v)| (*k, v.as_ref()))))
}

#[test]
fn cutlass_path_may_name_the_checkout_or_its_include_directory() {
    let temp = tempfile::tempdir().unwrap();
    let root = cutlass(&temp.path().join("cutlass"), [4, 7, 1]);
    for path in [root.clone(), root.join("include")] {
        let found = finder(&[("CUTLASS_PATH", &path)]).locate_cutlass().unwrap().unwrap();
        assert_eq!(found.include, root.join("include"));
        assert_eq!(found.version, Version::new(4, 7, 1));
        assert_eq!(found.origin, Origin::Variable("CUTLASS_PATH"));
    }
    write(&root.join("python/pycute/__init__.py"), "");
    let found = finder(&[("CUTLASS_PATH", &root)]).locate_cutlass().unwrap().unwrap();
    assert_eq!(found.python, Some(root.join("python")));
}

#[test]
fn a_variable_that_names_nothing_is_an_error_and_not_passed_over() {
    let temp = tempfile::tempdir().unwrap();
    let root = temp.path();
    let system = SystemDirs {
        cuda: vec![cuda(&root.join("cuda"), 13, 0)],
        cutlass: vec![cutlass(&root.join("cutlass"), [4, 2, 0])],
        llvm: vec![],
    };
    let wrong = root.join("nowhere");
    let with = |name: &str| Finder::new(Env::from_pairs([(name, &wrong)]).with_system(system.clone()));

    let error = with("CUTLASS_PATH").locate_cutlass().unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "error[variable]: CUTLASS_PATH={} is not usable\n  found:    nothing there\n  required: a CUTLASS checkout, \
             with include/cutlass/version.h and include/cute/tensor.hpp\n  help:     correct CUTLASS_PATH, or unset it \
             to look on the system instead",
            wrong.display()
        )
    );
    for name in ["CUDA_HOME", "CUDA_PATH", "NVCC"] {
        let finder = with(name);
        let errors = [finder.locate_nvcc().unwrap_err(), finder.locate_cuda_headers().unwrap_err()];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Variable, "{error}");
            assert!(error.what().starts_with(name), "{error}");
        }
    }
    assert_eq!(with("CUDA_HOME").locate_disassembler().unwrap_err().kind(), ErrorKind::Variable);
    assert_eq!(with("LIBCLANG_PATH").locate_libclang().unwrap_err().kind(), ErrorKind::Variable);
    assert_eq!(with("CXX").host_compiler().unwrap_err().kind(), ErrorKind::Variable);
    // The same trees are found as soon as the variables are gone.
    let finder = with("UNRELATED");
    assert_eq!(finder.locate_cutlass().unwrap().unwrap().origin, Origin::System);
    assert_eq!(finder.locate_nvcc().unwrap().unwrap().origin, Origin::System);
}

#[test]
fn what_is_too_old_is_refused_where_named_and_skipped_where_found() {
    let temp = tempfile::tempdir().unwrap();
    let old_cuda = cuda(&temp.path().join("cuda"), 11, 8);
    let old_cutlass = cutlass(&temp.path().join("cutlass"), [3, 5, 1]);
    let vars = [("CUDA_HOME", &old_cuda), ("CUTLASS_PATH", &old_cutlass)];
    let named = finder(&vars);
    let error = named.locate_nvcc().unwrap_err();
    assert_eq!((error.kind(), error.found()), (ErrorKind::TooOld, "CUDA 11.8.0"));
    assert_eq!(error.required(), "CUDA 12.0.0 or newer");
    let error = named.locate_cutlass().unwrap_err();
    assert_eq!((error.kind(), error.found()), (ErrorKind::TooOld, "CUTLASS 3.5.1"));

    let system = SystemDirs { cuda: vec![old_cuda.clone()], cutlass: vec![old_cutlass], llvm: vec![] };
    let found = Finder::new(Env::from_pairs([("PATH", old_cuda.join("bin"))]).with_system(system));
    assert_eq!(found.locate_nvcc().unwrap(), None);
    assert_eq!(found.locate_cuda_headers().unwrap(), None);
    assert_eq!(found.locate_cutlass().unwrap(), None);
}

#[test]
fn the_order_is_variable_then_path_then_system_then_cache() {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    let cache = cached(&at("cache"), Component::Nvcc);
    let roots = ["home", "path-home", "on-path", "system"].map(|name| cuda(&at(name), 12, 8));
    let [home, cuda_path, on_path, system] = &roots;
    cuda(&cache, 13, 0);
    let mut vars = vec![
        ("NVCC", program(&home.join("bin/other-nvcc"))),
        ("CUDA_HOME", home.clone()),
        ("CUDA_PATH", cuda_path.clone()),
        ("PATH", on_path.join("bin")),
        ("CUTEMPLATE_CACHE_DIR", at("cache")),
    ];
    let locate = |vars: &[(&str, PathBuf)], system: &Path| {
        let env = Env::from_pairs(vars.iter().cloned());
        let dirs = SystemDirs { cuda: vec![system.to_path_buf()], ..SystemDirs::default() };
        let nvcc = Finder::new(env.with_system(dirs)).locate_nvcc().unwrap().unwrap();
        (nvcc.path, nvcc.origin)
    };
    let steps = [
        (home.join("bin/other-nvcc"), Origin::Variable("NVCC")),
        (home.join("bin/nvcc"), Origin::Variable("CUDA_HOME")),
        (cuda_path.join("bin/nvcc"), Origin::Variable("CUDA_PATH")),
        (on_path.join("bin/nvcc"), Origin::Path),
        (system.join("bin/nvcc"), Origin::System),
    ];
    for expected in steps {
        assert_eq!(locate(&vars, system), expected);
        vars.remove(0);
        if vars.is_empty() {
            vars.push(("CUTEMPLATE_CACHE_DIR", at("cache")));
        }
    }
    let vars = [("CUTEMPLATE_CACHE_DIR", at("cache"))];
    assert_eq!(locate(&vars, &at("nowhere")), (cache.join("bin/nvcc"), Origin::Pinned));
    let nvcc = finder(&vars).locate_nvcc().unwrap().unwrap();
    assert_eq!(nvcc.version, Version::new(13, 0, 88));
    assert_eq!(nvcc.headers.include_dirs, [cache.join("include"), cache.join("include/cccl")]);
}

#[test]
fn nvcc_brings_its_own_headers_and_version_unless_cuda_home_does() {
    let temp = tempfile::tempdir().unwrap();
    let root = cuda(&temp.path().join("cuda-12.8"), 12, 8);
    write(&root.join("version.json"), r#"{ "cuda_nvcc" : { "name" : "CUDA NVCC", "version" : "12.8.93" } }"#);
    // As on PATH: a link to the real program.
    let link = temp.path().join("links/nvcc");
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(root.join("bin/nvcc"), &link).unwrap();
    let nvcc = finder(&[("NVCC", &link)]).locate_nvcc().unwrap().unwrap();
    assert_eq!(nvcc.version, Version::new(12, 8, 93));
    assert_eq!(nvcc.headers.version, Version::new(12, 8, 0));
    assert!(nvcc.headers.include_dirs[0].ends_with("cuda-12.8/include"));

    let alone = program(&temp.path().join("alone/nvcc"));
    let error = finder(&[("NVCC", &alone)]).locate_nvcc().unwrap_err();
    assert_eq!(error.found(), "no CUDA headers beside this nvcc");
    let nvcc = finder(&[("NVCC", &alone), ("CUDA_HOME", &root)]).locate_nvcc().unwrap().unwrap();
    assert_eq!((nvcc.path, nvcc.origin), (alone, Origin::Variable("NVCC")));
}

#[test]
fn headers_without_cuda_std_are_not_found() {
    let temp = tempfile::tempdir().unwrap();
    let root = cuda(&temp.path().join("cuda"), 13, 0);
    let vars = [("CUDA_HOME", &root)];
    assert!(finder(&vars).locate_cuda_headers().unwrap().is_some());
    fs::remove_dir_all(root.join("include/cccl")).unwrap();
    assert_eq!(finder(&vars).locate_cuda_headers().unwrap_err().kind(), ErrorKind::Variable);
}

#[test]
fn libclang_is_not_libclang_cpp() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    write(&dir.join("libclang-cpp.so.14"), "");
    assert!(finder(&[("LIBCLANG_PATH", dir)]).locate_libclang().is_err());
    write(&dir.join("libclang-14.so.1"), "");
    let found = finder(&[("LIBCLANG_PATH", dir)]).locate_libclang().unwrap().unwrap();
    assert_eq!(found.path, dir.join("libclang-14.so.1"));
}

#[test]
fn an_incomplete_cache_entry_is_not_found() {
    let temp = tempfile::tempdir().unwrap();
    let dir = cached(temp.path(), Component::Cutlass);
    cutlass(&dir, [4, 2, 0]);
    let finder = finder(&[("CUTEMPLATE_CACHE_DIR", temp.path())]);
    assert_eq!(finder.locate_cutlass().unwrap().unwrap().origin, Origin::Pinned);
    write(&dir.join(MARKER), "nvidia-cutlass 4.2.0.0 another\n");
    assert_eq!(finder.locate_cutlass().unwrap(), None);
}

#[test]
fn nothing_is_fetched_unasked() {
    let temp = tempfile::tempdir().unwrap();
    let finder = finder(&[("CUTEMPLATE_CACHE_DIR", temp.path())]);
    let mut quiet = |step: cutlass_sys::Step<'_>| panic!("{step:?}");
    let errors = [
        finder.cutlass(&mut quiet).unwrap_err(),
        finder.cuda_headers(&mut quiet).unwrap_err(),
        finder.nvcc(&mut quiet).unwrap_err(),
        finder.disassembler(&mut quiet).unwrap_err(),
        finder.libclang(&mut quiet).unwrap_err(),
    ];
    for error in errors {
        assert_eq!(error.kind(), ErrorKind::FetchNotAllowed);
        assert!(error.help().ends_with("or set CUTEMPLATE_FETCH=1 to download the pinned, verified wheels once"));
    }
    assert_eq!(fs::read_dir(temp.path()).unwrap().count(), 0, "nothing was written");
}

#[test]
fn the_cache_directory_is_absolute_or_refused() {
    let dir = |vars: &[(&str, &str)]| Env::from_pairs(vars.iter().copied()).cache_dir();
    assert_eq!(dir(&[("CUTEMPLATE_CACHE_DIR", "/c"), ("XDG_CACHE_HOME", "/x")]).unwrap(), Path::new("/c"));
    assert_eq!(dir(&[("XDG_CACHE_HOME", "/x"), ("HOME", "/h")]).unwrap(), Path::new("/x/cutemplate"));
    assert!(dir(&[("HOME", "/h")]).unwrap().starts_with("/h"));
    for vars in [&[("CUTEMPLATE_CACHE_DIR", "relative")][..], &[("HOME", "relative")], &[]] {
        assert_eq!(dir(vars).unwrap_err().kind(), ErrorKind::Cache);
    }
}

#[test]
fn the_table_of_wheels_is_whole() {
    let mut keys = std::collections::BTreeSet::new();
    for component in Component::ALL {
        assert!(keys.insert(component.key().unwrap()));
        for wheel in component.wheels() {
            assert!(!wheel.keep.is_empty());
            for file in wheel.files {
                assert_eq!(file.sha256.len(), 64);
                assert!(file.sha256.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)));
                assert!(file.bytes > 0);
            }
            assert!(wheel.file(None).is_some() || wheel.files.len() == 2, "{}: both platforms", wheel.name);
        }
    }
}

#[test]
fn doctor_lists_every_part_and_what_to_do() {
    let temp = tempfile::tempdir().unwrap();
    let root = cuda(&temp.path().join("cuda"), 13, 0);
    let cache = temp.path().join("cache");
    let vars =
        [("CUDA_HOME", root.as_path()), ("CUTLASS_PATH", Path::new("/nowhere")), ("CUTEMPLATE_CACHE_DIR", &cache)];
    let report = finder(&vars).doctor();
    let part = |name: &str| report.parts.iter().find(|part| part.name == name).unwrap();
    assert_eq!(part("nvcc").state, State::Found);
    assert_eq!(part("nvcc").path, Some(root.join("bin/nvcc")));
    assert_eq!(part("nvcc").origin.as_deref(), Some("variable CUDA_HOME"));
    assert_eq!(part("nvcc").version.as_deref(), Some("13.0.0"));
    assert_eq!(part("CUTLASS").state, State::Wrong);
    assert_eq!(part("libclang").state, State::Missing);
    assert_eq!(part("python3").state, State::Missing);
    assert!(!report.is_healthy());
    for part in &report.parts {
        assert_eq!(part.help.is_none(), part.state == State::Found, "{}", part.name);
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["parts"][0]["name"], "CUTLASS");
    assert_eq!(json["parts"][0]["state"], "wrong");
    assert_eq!(json["fetch_allowed"], false);
    let text = report.to_string();
    assert!(text.contains("nvcc                 found   13.0.0"), "{text}");

    let fetching = finder(&[("CUTEMPLATE_FETCH", Path::new("1")), ("CUTEMPLATE_CACHE_DIR", &cache)]).doctor();
    assert!(fetching.parts[..5].iter().all(|part| part.state == State::Fetchable));
    assert!(!fetching.is_healthy(), "what is to be fetched needs python3");

    // Nothing is to be fetched, and only tests miss something.
    let mut whole = report.clone();
    for part in &mut whole.parts {
        let found = !part.tests_only && part.needed_for != "fetching";
        part.state = if found { State::Found } else { State::Missing };
    }
    assert!(whole.is_healthy());
    for at in 0..whole.parts.len() {
        let mut broken = whole.clone();
        broken.parts[at].state = State::Missing;
        let part = &broken.parts[at];
        assert_eq!(broken.is_healthy(), whole.parts[at].state == State::Missing, "{}", part.name);
    }
    let tests_only: Vec<&str> = report.parts.iter().filter(|part| part.tests_only).map(|part| part.name).collect();
    assert_eq!(tests_only, ["cuobjdump, nvdisasm", "libclang"]);
}

/// As the store of kernels does.
#[test]
fn a_fetched_tool_that_others_can_write_is_not_used() {
    let temp = tempfile::tempdir().unwrap();
    let cache = temp.path().join("cache");
    let dir = cutlass(&cached(&cache, Component::Cutlass), [4, 2, 0]);
    let finder = finder(&[("CUTEMPLATE_CACHE_DIR", &cache)]);
    let mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let header = dir.join("include/cute/tensor.hpp");
    for (path, loose, strict) in [(&header, 0o664, 0o644), (&header, 0o646, 0o644), (&dir, 0o777, 0o755)] {
        mode(path, loose);
        assert_eq!(finder.locate_cutlass().unwrap(), None);
        let error = finder.cutlass(&mut ()).unwrap_err();
        assert_eq!(error.what(), "CUTLASS was fetched, and is not used");
        let found = format!("{}: others than its owner can write it (mode {loose:o})", path.display());
        assert_eq!(error.found(), found);
        assert!(error.help().starts_with(&format!("remove {}", dir.display())), "{error}");
        let report = finder.doctor().to_string();
        assert!(report.contains(&found), "{report}");
        mode(path, strict);
        assert!(finder.locate_cutlass().unwrap().is_some());
    }
}

/// Whoever has to install two things hears of both, and of the variable that is wrong beside them.
#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let temp = tempfile::tempdir().unwrap();
    let cache = temp.path().to_str().unwrap();
    let told = |vars: &[(&str, &str)]| {
        let vars = vars.iter().copied().chain([("CUTEMPLATE_CACHE_DIR", cache), ("CXX", "/bin/true-not-there")]);
        let error = Finder::new(Env::from_pairs(vars)).toolchain(&mut ()).unwrap_err();
        error.to_string()
    };
    assert_eq!(
        told(&[]),
        "error[fetch-not-allowed]: CUTLASS and nvcc not found, and fetching is not allowed\n  \
         found:    CUTLASS_PATH is not set, and no include/cute/tensor.hpp is in the usual places\n            \
         NVCC, CUDA_HOME and CUDA_PATH are not set, and no new enough nvcc is on PATH or in the usual places; nothing is cached, and \
         CUTEMPLATE_FETCH is not 1\n  \
         required: CUTLASS 4.2.0 or newer\n            nvcc of CUDA 12.0.0 or newer\n  \
         help:     set CUTLASS_PATH to a checkout; install the CUDA toolkit, or set CUDA_HOME to its root; or set CUTEMPLATE_FETCH=1 to \
         download the pinned, verified wheels once\n\
         error[variable]: CXX=/bin/true-not-there is not usable\n  \
         found:    no such program\n  \
         required: one C++17 compiler, GCC or Clang: a path or a name on PATH, without options\n  \
         help:     correct CXX, or unset it to look on the system instead"
    );
    let wrong = told(&[("CUDA_HOME", "/nowhere/cuda")]);
    for line in ["CUTLASS not found", "CUDA_HOME=/nowhere/cuda is not usable", "CXX=/bin/true-not-there is not usable"]
    {
        assert!(wrong.contains(line), "{line}: {wrong}");
    }
    // Nothing is downloaded for a build that cannot succeed.
    let wrong = told(&[("CUDA_HOME", "/nowhere/cuda"), ("CUTEMPLATE_FETCH", "1")]);
    assert!(wrong.starts_with("error[variable]: CUDA_HOME") && wrong.contains("CXX="), "{wrong}");
}
