//! Finds each part of the toolchain, or fetches it where that is allowed.

use crate::doctor::Report;
use crate::fetch;
use crate::find::{Component, CudaHeaders, Cutlass, Env, Error, ErrorKind, Libclang, Nvcc, Tool};
use crate::missing::not_found;
use crate::programs::{self, HostCompiler};
use crate::progress::Progress;

/// Finds the parts of the toolchain in one environment.
///
/// `locate_*` looks only: explicit variables, the system, what is cached. The other methods fetch the pinned wheels
/// where nothing is found and `CUTEMPLATE_FETCH=1`.
///
/// # Examples
/// ```no_run
/// let finder = cutlass_sys::Finder::from_env();
/// let cutlass = finder.cutlass(&mut ())?;
/// println!("CUTLASS {} in {}", cutlass.version, cutlass.include.display());
/// # Ok::<(), cutlass_sys::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Finder {
    env: Env,
}

/// The programs that read what nvcc made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disassembler {
    /// `cuobjdump`: fatbins and their resource usage.
    pub cuobjdump: Tool,
    /// `nvdisasm`: SASS.
    pub nvdisasm: Tool,
}

impl Finder {
    /// A finder in a given environment.
    #[must_use]
    pub fn new(env: Env) -> Finder {
        Finder { env }
    }

    /// A finder in this process's environment.
    #[must_use]
    pub fn from_env() -> Finder {
        Finder::new(Env::current())
    }

    /// The environment that is searched.
    #[must_use]
    pub fn env(&self) -> &Env {
        &self.env
    }

    /// CUTLASS, without fetching.
    ///
    /// # Errors
    /// `CUTLASS_PATH` names something else, or something too old.
    pub fn locate_cutlass(&self) -> Result<Option<Cutlass>, Error> {
        Cutlass::locate(&self.env)
    }

    /// CUTLASS.
    ///
    /// # Errors
    /// As [`Finder::locate_cutlass`]; and it is nowhere, and cannot be fetched.
    pub fn cutlass(&self, progress: &mut dyn Progress) -> Result<Cutlass, Error> {
        self.provide(Component::Cutlass, Cutlass::locate, progress)
    }

    /// The CUDA headers, without fetching.
    ///
    /// # Errors
    /// `CUDA_HOME`, `CUDA_PATH` or `NVCC` names something else, or something too old.
    pub fn locate_cuda_headers(&self) -> Result<Option<CudaHeaders>, Error> {
        CudaHeaders::locate(&self.env)
    }

    /// The CUDA headers: those of the toolkit, or the few wheels that hold just headers.
    ///
    /// # Errors
    /// As [`Finder::locate_cuda_headers`]; and they are nowhere, and cannot be fetched.
    pub fn cuda_headers(&self, progress: &mut dyn Progress) -> Result<CudaHeaders, Error> {
        self.provide(Component::CudaHeaders, CudaHeaders::locate, progress)
    }

    /// nvcc with its headers, without fetching.
    ///
    /// # Errors
    /// `NVCC`, `CUDA_HOME` or `CUDA_PATH` names something else, or something too old.
    pub fn locate_nvcc(&self) -> Result<Option<Nvcc>, Error> {
        Nvcc::locate(&self.env)
    }

    /// nvcc with its headers.
    ///
    /// # Errors
    /// As [`Finder::locate_nvcc`]; and it is nowhere, and cannot be fetched.
    pub fn nvcc(&self, progress: &mut dyn Progress) -> Result<Nvcc, Error> {
        self.provide(Component::Nvcc, Nvcc::locate, progress)
    }

    /// cuobjdump and nvdisasm, without fetching.
    ///
    /// # Errors
    /// `CUDA_HOME` or `CUDA_PATH` names no directory.
    pub fn locate_disassembler(&self) -> Result<Option<Disassembler>, Error> {
        locate_disassembler(&self.env)
    }

    /// cuobjdump and nvdisasm.
    ///
    /// # Errors
    /// As [`Finder::locate_disassembler`]; and they are nowhere, and cannot be fetched.
    pub fn disassembler(&self, progress: &mut dyn Progress) -> Result<Disassembler, Error> {
        self.provide(Component::Disassembler, locate_disassembler, progress)
    }

    /// libclang, without fetching.
    ///
    /// # Errors
    /// `LIBCLANG_PATH` names something else.
    pub fn locate_libclang(&self) -> Result<Option<Libclang>, Error> {
        Libclang::locate(&self.env)
    }

    /// libclang.
    ///
    /// # Errors
    /// As [`Finder::locate_libclang`]; and it is nowhere, and cannot be fetched.
    pub fn libclang(&self, progress: &mut dyn Progress) -> Result<Libclang, Error> {
        self.provide(Component::Libclang, Libclang::locate, progress)
    }

    /// The host's C++ compiler: `CXX`, else `c++`, `g++` or `clang++` on `PATH`. It is never fetched.
    ///
    /// # Errors
    /// `CXX` names no C++17 compiler, or there is none.
    pub fn host_compiler(&self) -> Result<HostCompiler, Error> {
        HostCompiler::find(&self.env)
    }

    /// `python3`, which runs pip.
    ///
    /// # Errors
    /// It is not on `PATH`.
    pub fn python(&self) -> Result<Tool, Error> {
        programs::python(&self.env)
    }

    /// The files of which one more would complete [`Finder::toolchain`], or change what it finds, in the order of the search: those
    /// that the variables name, on `PATH`, in the system's directories, in the cache. A build that misses a part waits for them.
    ///
    /// # Examples
    /// ```
    /// use cutlass_sys::{Env, Finder};
    /// let finder = Finder::new(Env::from_pairs([("PATH", "/a/bin:/b/bin"), ("CUTEMPLATE_CACHE_DIR", "/c")]));
    /// # #[cfg(unix)]
    /// assert!(finder.searched().contains(&"/b/bin/nvcc".into()));
    /// ```
    #[must_use]
    pub fn searched(&self) -> Vec<std::path::PathBuf> {
        let compilers = ["c++", "g++", "clang++"].into_iter().flat_map(|name| self.env.on_path(name));
        let compilers = compilers.take(if self.host_compiler().is_ok() { 0 } else { usize::MAX });
        Cutlass::places(&self.env).into_iter().chain(Nvcc::places(&self.env)).chain(compilers).collect()
    }

    /// What is found and what is missing, part by part. Fetches nothing.
    #[must_use]
    pub fn doctor(&self) -> Report {
        Report::of(self)
    }

    fn provide<T>(
        &self,
        component: Component,
        locate: fn(&Env) -> Result<Option<T>, Error>,
        progress: &mut dyn Progress,
    ) -> Result<T, Error> {
        if let Some(found) = locate(&self.env)? {
            return Ok(found);
        }
        if !self.env.fetch_allowed() {
            return Err(not_found(&[component], &self.env));
        }
        let job = fetch::Job::new(component, &self.env)?;
        let dir = fetch::provide(&job, &self.env, progress)?;
        locate(&self.env)?.ok_or_else(|| {
            Error::new(
                ErrorKind::BadArchive,
                format!("{} was fetched, but is not whole", component.name()),
                format!("{} lacks a file that it should hold", dir.display()),
                "an unpacked component that nobody changed",
                format!("remove {} and try again", dir.display()),
            )
        })
    }
}

fn locate_disassembler(env: &Env) -> Result<Option<Disassembler>, Error> {
    let cuobjdump = Tool::locate_cuda(env, "cuobjdump")?;
    let nvdisasm = Tool::locate_cuda(env, "nvdisasm")?;
    let both = cuobjdump.zip(nvdisasm);
    Ok(both.map(|(cuobjdump, nvdisasm)| Disassembler { cuobjdump, nvdisasm }))
}
