//! The pinned wheels: which, where they differ by platform, and what is taken out of them.
//!
//! Versions and sha256 are those of the files on PyPI. A component is one directory in the user's cache, named by the
//! hashes of its wheels, and complete exactly where it holds [`MARKER`].

use std::path::{Path, PathBuf};

use super::wheels::{CCCL, CRT, CUOBJDUMP, CUTLASS, LIBCLANG, NVCC, NVDISASM, NVVM, RUNTIME};
use super::{Env, Error, ErrorKind, Version, trusted_below};

/// The file that makes a component's directory complete: one line `name version sha256` for each wheel.
pub const MARKER: &str = ".complete";

/// Raised when what is taken out of the wheels changes, so that older directories are not taken for newer ones.
const LAYOUT: u32 = 1;

/// An operating system and processor for which wheels are pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Platform {
    /// Linux with glibc on x86-64.
    LinuxX86_64,
    /// Linux with glibc on 64-bit Arm (sbsa).
    LinuxAarch64,
}

impl Platform {
    /// The platform that this code runs on, where wheels are pinned for it.
    #[must_use]
    pub fn here() -> Option<Platform> {
        if !cfg!(target_os = "linux") {
            None
        } else if cfg!(target_arch = "x86_64") {
            Some(Platform::LinuxX86_64)
        } else if cfg!(target_arch = "aarch64") {
            Some(Platform::LinuxAarch64)
        } else {
            None
        }
    }
}

/// One file of a wheel's release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct File {
    /// Where it runs; `None` for a wheel that is the same everywhere.
    pub platform: Option<Platform>,
    /// The sha256 of the file, 64 hexadecimal digits.
    pub sha256: &'static str,
    /// The size of the file in bytes.
    pub bytes: u64,
}

/// A pinned wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wheel {
    /// The project's name on PyPI.
    pub name: &'static str,
    /// The release.
    pub version: &'static str,
    /// One file for each platform.
    pub files: &'static [File],
    /// What is unpacked: entries under the first prefix go under the second, and the rest stays in the wheel.
    pub keep: &'static [(&'static str, &'static str)],
}

impl Wheel {
    /// The file for a platform.
    #[must_use]
    pub fn file(&self, platform: Option<Platform>) -> Option<&'static File> {
        self.files.iter().find(|f| f.platform.is_none() || f.platform == platform)
    }
}

/// What is fetched as a whole, on demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// CUTLASS: `include`, `tools/util/include`, `python/pycute`.
    Cutlass,
    /// The CUDA headers that `cute/tensor.hpp` includes under a plain C++ compiler.
    CudaHeaders,
    /// nvcc with everything it starts and includes: a CUDA root.
    Nvcc,
    /// `bin/cuobjdump` and `bin/nvdisasm`.
    Disassembler,
    /// `lib/libclang.so`, for bindgen.
    Libclang,
}

impl Component {
    /// All components.
    pub const ALL: [Component; 5] =
        [Component::Cutlass, Component::CudaHeaders, Component::Nvcc, Component::Disassembler, Component::Libclang];

    /// The name, as in a directory name or a progress line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Component::Cutlass => "cutlass",
            Component::CudaHeaders => "cuda-headers",
            Component::Nvcc => "cuda-nvcc",
            Component::Disassembler => "cuda-disassembler",
            Component::Libclang => "libclang",
        }
    }

    /// The version: that of the wheel which gives the component its name.
    #[must_use]
    pub fn version(self) -> Version {
        match self {
            Component::Cutlass => Version::new(4, 2, 0),
            Component::CudaHeaders => Version::new(13, 0, 96),
            Component::Nvcc => Version::new(13, 0, 88),
            Component::Disassembler => Version::new(13, 2, 51),
            Component::Libclang => Version::new(18, 1, 1),
        }
    }

    /// The wheels that are unpacked into one directory.
    ///
    /// `cute/tensor.hpp` needs `cuda_runtime_api.h` (cuda-runtime), which includes `crt/host_defines.h` (cuda-crt), and
    /// `cuda/std` (cuda-cccl): seen with g++ 12, which fails without any one of the three.
    #[must_use]
    pub fn wheels(self) -> &'static [Wheel] {
        match self {
            Component::Cutlass => &[CUTLASS],
            Component::CudaHeaders => &[RUNTIME, CRT, CCCL],
            Component::Nvcc => &[NVCC, CRT, NVVM, RUNTIME, CCCL],
            Component::Disassembler => &[CUOBJDUMP, NVDISASM],
            Component::Libclang => &[LIBCLANG],
        }
    }

    /// Each wheel with its file for this platform.
    ///
    /// # Errors
    /// [`ErrorKind::NoWheel`] where no file is pinned for this platform.
    pub fn files(self) -> Result<Vec<(&'static Wheel, &'static File)>, Error> {
        let here = Platform::here();
        let file = |wheel: &'static Wheel| {
            let file = wheel.file(here).ok_or_else(|| self.no_wheel(wheel))?;
            Ok((wheel, file))
        };
        self.wheels().iter().map(file).collect()
    }

    fn no_wheel(self, wheel: &Wheel) -> Error {
        let help = match self {
            Component::Cutlass => "unpack CUTLASS and set CUTLASS_PATH",
            Component::Libclang => "install LLVM and set LIBCLANG_PATH",
            _ => "install the CUDA toolkit and set CUDA_HOME",
        };
        Error::new(
            ErrorKind::NoWheel,
            format!("{} cannot be fetched on this platform", self.name()),
            format!(
                "{} on {}, for which no {} wheel is pinned",
                std::env::consts::OS,
                std::env::consts::ARCH,
                wheel.name
            ),
            "Linux with glibc on x86-64 or 64-bit Arm",
            help,
        )
    }

    /// What the marker of a complete directory says.
    ///
    /// # Errors
    /// [`ErrorKind::NoWheel`] where no file is pinned for this platform.
    pub fn marker(self) -> Result<String, Error> {
        let line = |(w, f): (&Wheel, &File)| format!("{} {} {}\n", w.name, w.version, f.sha256);
        Ok(self.files()?.into_iter().map(line).collect())
    }

    /// The directory's name: component, version, and the first digits of each wheel's sha256.
    ///
    /// # Errors
    /// [`ErrorKind::NoWheel`] where no file is pinned for this platform.
    pub fn key(self) -> Result<String, Error> {
        let mut key = format!("{}-{}-r{LAYOUT}", self.name(), self.version());
        for (_, file) in self.files()? {
            key.push('-');
            key.push_str(&file.sha256[..8]);
        }
        Ok(key)
    }

    /// Where the component lies, or would lie, in the cache.
    ///
    /// # Errors
    /// [`ErrorKind::NoWheel`] and [`ErrorKind::Cache`], where there is no such place.
    pub fn dir(self, env: &Env) -> Result<PathBuf, Error> {
        Ok(env.cache_dir()?.join("toolchain").join(self.key()?))
    }

    /// The component's directory, where it is complete and nobody else can have written any of it.
    #[must_use]
    pub fn cached(self, env: &Env) -> Option<PathBuf> {
        let dir = self.dir(env).ok()?;
        self.is_complete(&dir).then_some(dir)
    }

    /// Whether a directory holds this component whole, and as it was unpacked.
    pub(crate) fn is_complete(self, dir: &Path) -> bool {
        self.is_whole(dir) && trusted_below(dir).is_ok()
    }

    fn is_whole(self, dir: &Path) -> bool {
        match (std::fs::read_to_string(dir.join(MARKER)), self.marker()) {
            (Ok(found), Ok(required)) => found == required,
            _ => false,
        }
    }

    /// The directory of a component that is whole, and not used all the same: why.
    #[allow(dead_code, reason = "build.rs explains nothing")]
    pub(crate) fn distrusted(self, env: &Env) -> Option<(PathBuf, String)> {
        let dir = self.dir(env).ok().filter(|dir| self.is_whole(dir))?;
        trusted_below(&dir).err().map(|why| (dir, why))
    }
}
