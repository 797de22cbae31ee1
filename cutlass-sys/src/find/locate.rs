//! The search for each part: explicit variables, then the system, then the pinned wheels that are already cached.
//!
//! `Ok(None)` means that nothing was found; an explicit variable that names nothing useful is an error, and never
//! falls through to the next place.

use std::path::{Path, PathBuf};

use super::{
    Component, CudaHeaders, Cutlass, Env, Error, ErrorKind, Libclang, MARKER, MIN_CUDA, MIN_CUTLASS, Nvcc, Origin,
    Tool, Version, wrong_variable,
};

impl Cutlass {
    /// Searches `CUTLASS_PATH`, the system, and the cache.
    pub(crate) fn locate(env: &Env) -> Result<Option<Cutlass>, Error> {
        const NAME: &str = "CUTLASS_PATH";
        if let Some(value) = env.get(NAME) {
            let root = Path::new(value);
            let required = "a CUTLASS checkout, with include/cutlass/version.h and include/cute/tensor.hpp";
            let found = Cutlass::at(root, Origin::Variable(NAME))
                .or_else(|| Cutlass::at(root.parent()?, Origin::Variable(NAME)).filter(|c| c.include == root))
                .ok_or_else(|| wrong_variable(NAME, root, describe(root), required))?;
            if found.version < MIN_CUTLASS {
                return Err(too_old("CUTLASS", NAME, root, found.version, MIN_CUTLASS));
            }
            return Ok(Some(found));
        }
        let mut system = env.system().cutlass.iter();
        let system =
            system.find_map(|root| Cutlass::at(root, Origin::System).filter(|found| found.version >= MIN_CUTLASS));
        let cached = || Cutlass::at(&Component::Cutlass.cached(env)?, Origin::Pinned);
        Ok(system.or_else(cached))
    }

    /// Where [`Cutlass::locate`] looks, whatever is there.
    pub(crate) fn places(env: &Env) -> Vec<PathBuf> {
        let header = |root: &Path| root.join("include/cutlass/version.h");
        if let Some(value) = env.get("CUTLASS_PATH") {
            return vec![header(Path::new(value))];
        }
        env.system().cutlass.iter().map(|root| header(root)).chain(marker(Component::Cutlass, env)).collect()
    }

    /// The headers under a root, where both libraries are there.
    pub(crate) fn at(root: &Path, origin: Origin) -> Option<Cutlass> {
        let include = root.join("include");
        if !include.join("cute/tensor.hpp").is_file() {
            return None;
        }
        let version = Version::of_cutlass(&include)?;
        let dir = |path: &str| Some(root.join(path)).filter(|p| p.is_dir());
        // In a checkout pycute lies in `python`, which is also where the wheel's copy is unpacked to.
        let python = dir("python").filter(|p| p.join("pycute").is_dir());
        Some(Cutlass { include, util_include: dir("tools/util/include"), python, version, origin })
    }
}

impl CudaHeaders {
    /// Searches `CUDA_HOME`, `CUDA_PATH`, beside `NVCC`, the system, and the cache.
    pub(crate) fn locate(env: &Env) -> Result<Option<CudaHeaders>, Error> {
        if let Some((name, root)) = cuda_home(env) {
            return CudaHeaders::from_variable(name, &root).map(Some);
        }
        if let Some(value) = env.get("NVCC") {
            let nvcc = explicit_nvcc(env, value)?;
            return CudaHeaders::beside(&nvcc, Origin::Variable("NVCC")).map(Some);
        }
        let on_path = env.program("nvcc").into_iter();
        let mut on_path = on_path.flat_map(|nvcc| roots_of(&nvcc));
        let new_enough = |headers: &CudaHeaders| headers.version >= MIN_CUDA;
        let found = on_path
            .find_map(|root| CudaHeaders::at(&root, Origin::Path).filter(new_enough))
            .or_else(|| {
                let mut roots = env.system().cuda.iter();
                roots.find_map(|root| CudaHeaders::at(root, Origin::System).filter(new_enough))
            })
            .or_else(|| {
                let parts = [Component::Nvcc, Component::CudaHeaders];
                parts.into_iter().find_map(|part| CudaHeaders::at(&part.cached(env)?, Origin::Pinned))
            });
        Ok(found)
    }

    /// The headers under a root, where all that CuTe needs is there.
    pub(crate) fn at(root: &Path, origin: Origin) -> Option<CudaHeaders> {
        let targets =
            format!("targets/{}-linux/include", if cfg!(target_arch = "aarch64") { "sbsa" } else { "x86_64" });
        ["include", &targets].iter().find_map(|below| {
            let include = root.join(below);
            let cccl = include.join("cccl");
            let version = Version::of_cuda(&include)?;
            let mut include_dirs = vec![include];
            if cccl.is_dir() {
                include_dirs.push(cccl);
            }
            let has = |file: &str| include_dirs.iter().any(|dir| dir.join(file).is_file());
            (has("crt/host_defines.h") && has("cuda/std/utility")).then_some(CudaHeaders {
                include_dirs,
                version,
                origin,
            })
        })
    }

    /// The headers of the toolkit that an explicitly named nvcc belongs to.
    fn beside(nvcc: &Path, origin: Origin) -> Result<CudaHeaders, Error> {
        let required = "a CUDA toolkit's bin/nvcc, with include/cuda_runtime_api.h, crt and cuda/std beside it; or CUDA_HOME for the headers";
        let headers = roots_of(nvcc).iter().find_map(|root| CudaHeaders::at(root, origin));
        let headers =
            headers.ok_or_else(|| wrong_variable("NVCC", nvcc, "no CUDA headers beside this nvcc", required))?;
        if headers.version < MIN_CUDA {
            return Err(too_old("CUDA", "NVCC", nvcc, headers.version, MIN_CUDA));
        }
        Ok(headers)
    }

    fn from_variable(name: &'static str, root: &Path) -> Result<CudaHeaders, Error> {
        let required = "a CUDA toolkit's root, with cuda_runtime_api.h, crt and cuda/std in include";
        let headers = CudaHeaders::at(root, Origin::Variable(name))
            .ok_or_else(|| wrong_variable(name, root, describe(root), required))?;
        if headers.version < MIN_CUDA {
            return Err(too_old("CUDA", name, root, headers.version, MIN_CUDA));
        }
        Ok(headers)
    }
}

impl Nvcc {
    /// Searches `NVCC`, `CUDA_HOME`, `CUDA_PATH`, `PATH`, the system, and the cache.
    pub(crate) fn locate(env: &Env) -> Result<Option<Nvcc>, Error> {
        let home = cuda_home(env);
        if let Some(value) = env.get("NVCC") {
            let path = explicit_nvcc(env, value)?;
            let headers = match &home {
                Some((name, root)) => CudaHeaders::from_variable(name, root)?,
                None => CudaHeaders::beside(&path, Origin::Variable("NVCC"))?,
            };
            return Ok(Some(Nvcc::new(path, headers, Origin::Variable("NVCC"))));
        }
        if let Some((name, root)) = home {
            let headers = CudaHeaders::from_variable(name, &root)?;
            let path = program_in(&root, "nvcc").ok_or_else(|| {
                wrong_variable(name, &root, "no bin/nvcc in it", "a CUDA toolkit with nvcc, or NVCC for the compiler")
            })?;
            return Ok(Some(Nvcc::new(path, headers, Origin::Variable(name))));
        }
        let at = |root: &Path, path: PathBuf, origin: Origin| {
            let headers = CudaHeaders::at(root, origin).filter(|headers| headers.version >= MIN_CUDA)?;
            Some(Nvcc::new(path, headers, origin))
        };
        let on_path = env.program("nvcc").and_then(|path| {
            let roots = roots_of(&path);
            roots.iter().find_map(|root| at(root, path.clone(), Origin::Path))
        });
        let system = || {
            let mut roots = env.system().cuda.iter();
            roots.find_map(|root| at(root, program_in(root, "nvcc")?, Origin::System))
        };
        Ok(on_path.or_else(system).or_else(|| Nvcc::cached(env)))
    }

    /// Where [`Nvcc::locate`] looks, whatever is there.
    pub(crate) fn places(env: &Env) -> Vec<PathBuf> {
        let program = |root: &Path| root.join("bin").join(format!("nvcc{}", std::env::consts::EXE_SUFFIX));
        if let Some(value) = env.get("NVCC") {
            let path = Path::new(value);
            let name = value.to_str().filter(|_| path.components().count() == 1);
            return name.map_or_else(|| vec![path.to_path_buf()], |name| env.on_path(name));
        }
        if let Some((_, root)) = cuda_home(env) {
            return vec![program(&root)];
        }
        let system = env.system().cuda.iter().map(|root| program(root));
        env.on_path("nvcc").into_iter().chain(system).chain(marker(Component::Nvcc, env)).collect()
    }

    /// The pinned nvcc, where it is in the cache.
    fn cached(env: &Env) -> Option<Nvcc> {
        let root = Component::Nvcc.cached(env)?;
        let headers = CudaHeaders::at(&root, Origin::Pinned)?;
        let mut nvcc = Nvcc::new(program_in(&root, "nvcc")?, headers, Origin::Pinned);
        nvcc.version = Component::Nvcc.version();
        Some(nvcc)
    }

    fn new(path: PathBuf, headers: CudaHeaders, origin: Origin) -> Nvcc {
        let recorded = roots_of(&path).iter().find_map(|root| recorded_version(root));
        let version = recorded.unwrap_or(headers.version);
        Nvcc { path, headers, version, origin }
    }
}

impl Tool {
    /// Searches for a program of the toolkit (`cuobjdump`, `nvdisasm`): the toolkit's `bin`, `PATH`, the system, and
    /// the cache.
    pub(crate) fn locate_cuda(env: &Env, name: &str) -> Result<Option<Tool>, Error> {
        if let Some((variable, root)) = cuda_home(env) {
            if !root.is_dir() {
                return Err(wrong_variable(variable, &root, describe(&root), "a CUDA toolkit's root"));
            }
            if let Some(path) = program_in(&root, name) {
                return Ok(Some(Tool { path, origin: Origin::Variable(variable) }));
            }
        }
        if let Some(path) = env.program(name) {
            return Ok(Some(Tool { path, origin: Origin::Path }));
        }
        let mut roots = env.system().cuda.iter();
        let system = roots.find_map(|root| program_in(root, name));
        let system = system.map(|path| Tool { path, origin: Origin::System });
        let cached = || {
            let path = program_in(&Component::Disassembler.cached(env)?, name)?;
            Some(Tool { path, origin: Origin::Pinned })
        };
        Ok(system.or_else(cached))
    }
}

impl Libclang {
    /// Searches `LIBCLANG_PATH` (a file or its directory), the system, and the cache.
    pub(crate) fn locate(env: &Env) -> Result<Option<Libclang>, Error> {
        const NAME: &str = "LIBCLANG_PATH";
        if let Some(value) = env.get(NAME) {
            let path = Path::new(value);
            let found = if path.is_file() { Some(path.to_path_buf()) } else { libclang_in(path) };
            let required = "the libclang shared library, or the directory that holds it";
            let path = found.ok_or_else(|| wrong_variable(NAME, path, describe(path), required))?;
            return Ok(Some(Libclang { path, origin: Origin::Variable(NAME) }));
        }
        let mut dirs = env.system().llvm.iter();
        let system = dirs.find_map(|dir| libclang_in(dir));
        let system = system.map(|path| Libclang { path, origin: Origin::System });
        let cached = || {
            let path = libclang_in(&Component::Libclang.cached(env)?.join("lib"))?;
            Some(Libclang { path, origin: Origin::Pinned })
        };
        Ok(system.or_else(cached))
    }
}

/// What makes a component in the cache complete.
fn marker(component: Component, env: &Env) -> Option<PathBuf> {
    component.dir(env).ok().map(|dir| dir.join(MARKER))
}

/// `CUDA_HOME`, else `CUDA_PATH`.
fn cuda_home(env: &Env) -> Option<(&'static str, PathBuf)> {
    ["CUDA_HOME", "CUDA_PATH"].into_iter().find_map(|name| Some((name, PathBuf::from(env.get(name)?))))
}

fn explicit_nvcc(env: &Env, value: &std::ffi::OsStr) -> Result<PathBuf, Error> {
    env.program_named(value).ok_or_else(|| {
        let path = Path::new(value);
        wrong_variable("NVCC", path, describe(path), "the nvcc program: a path, or a name on PATH")
    })
}

/// The roots that a `ROOT/bin/nvcc` may belong to: as the path says, and as its links resolve.
fn roots_of(nvcc: &Path) -> Vec<PathBuf> {
    let resolved = nvcc.canonicalize().ok();
    let paths = [Some(nvcc), resolved.as_deref()];
    let root = |path: &Path| Some(path.parent()?.parent()?.to_path_buf());
    paths.into_iter().flatten().filter_map(root).collect()
}

fn program_in(root: &Path, name: &str) -> Option<PathBuf> {
    let path = root.join("bin").join(format!("{name}{}", std::env::consts::EXE_SUFFIX));
    path.is_file().then_some(path)
}

/// nvcc's full version, from the `version.json` that NVIDIA's installers write.
fn recorded_version(root: &Path) -> Option<Version> {
    let text = std::fs::read_to_string(root.join("version.json")).ok()?;
    let after = text.split_once("\"cuda_nvcc\"")?.1.split_once("\"version\"")?.1;
    after.split('"').nth(1)?.parse().ok()
}

/// The first libclang in a directory, in the order of names.
fn libclang_in(dir: &Path) -> Option<PathBuf> {
    let files = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files.filter(|path| is_libclang(path)).collect();
    files.sort();
    files.into_iter().next()
}

fn is_libclang(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // `libclang-14.so.1` is one, `libclang-cpp.so.14` is another library.
    let versioned = |name: &str| {
        let rest = name.strip_prefix("libclang-");
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) && name.contains(".so")
    };
    let named = name.starts_with("libclang.so") || matches!(&*name, "libclang.dylib" | "libclang.dll");
    (named || versioned(&name)) && path.is_file()
}

fn describe(path: &Path) -> &'static str {
    if path.is_dir() {
        "a directory without it"
    } else if path.exists() {
        "a file that is not it"
    } else {
        "nothing there"
    }
}

fn too_old(what: &str, name: &str, path: &Path, found: Version, least: Version) -> Error {
    Error::new(
        ErrorKind::TooOld,
        format!("{name}={} is too old", path.display()),
        format!("{what} {found}"),
        format!("{what} {least} or newer"),
        format!("let {name} name a newer one, or unset it to look on the system instead"),
    )
}
