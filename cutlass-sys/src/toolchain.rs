//! All that a compilation needs, found at once, or everything that is wrong with it.

use std::fmt;

use crate::fetch;
use crate::find::{Component, CudaHeaders, Cutlass, Env, Error, Nvcc};
use crate::finder::Finder;
use crate::missing::not_found;
use crate::programs::{self, HostCompiler};
use crate::progress::Progress;

/// All that compiles CuTe C++, or plain CUDA C++, for a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Toolchain {
    /// The CUTLASS headers; `None` where plain CUDA C++ is all that is compiled.
    pub cutlass: Option<Cutlass>,
    /// nvcc and the CUDA headers.
    pub nvcc: Nvcc,
    /// The C++ compiler that nvcc preprocesses with.
    pub cxx: HostCompiler,
}

/// All that compiles CuTe C++ for the CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostToolchain {
    /// The CUTLASS headers.
    pub cutlass: Cutlass,
    /// The CUDA headers.
    pub cuda: CudaHeaders,
    /// The C++ compiler.
    pub cxx: HostCompiler,
}

/// Every part that a toolchain lacks, and every variable that names a wrong one.
///
/// `Debug` prints what `Display` prints.
///
/// # Examples
/// ```
/// use cutlass_sys::{Env, Finder};
/// let nothing = Env::from_pairs([("PATH", "/nowhere"), ("CUDA_HOME", "/nowhere"), ("CUTLASS_PATH", "/nowhere")]);
/// let error = Finder::new(nothing).toolchain(&mut ()).unwrap_err();
/// assert_eq!(error.errors().len(), 3); // both variables, and no C++ compiler
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct ToolchainError(Vec<Error>);

impl ToolchainError {
    /// What is wrong: one error at least. Parts that are nowhere share one.
    #[must_use]
    pub fn errors(&self) -> &[Error] {
        &self.0
    }

    /// Whether parts are not here, and are not to be fetched: nothing else is wrong.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        self.0.iter().all(Error::is_missing)
    }

    /// What is wrong, in one line.
    #[must_use]
    pub fn what(&self) -> String {
        self.0.iter().map(Error::what).collect::<Vec<_>>().join("; ")
    }
}

impl From<Error> for ToolchainError {
    fn from(error: Error) -> ToolchainError {
        ToolchainError(vec![error])
    }
}

impl fmt::Display for ToolchainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.0.iter().map(Error::to_string).collect();
        f.write_str(&texts.join("\n"))
    }
}

impl fmt::Debug for ToolchainError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for ToolchainError {}

impl Finder {
    /// All that compiles for a GPU. Nothing is downloaded where anything is wrong that a download does not mend.
    ///
    /// # Errors
    /// Every part that is missing or wrong, all at once; or the download that failed.
    pub fn toolchain(&self, progress: &mut dyn Progress) -> Result<Toolchain, ToolchainError> {
        let cutlass = (Component::Cutlass, self.locate_cutlass().map(|cutlass| cutlass.is_some()));
        let cxx = self.checked(self.nvcc_compiler(), &[cutlass, self.has_nvcc()])?;
        Ok(Toolchain { cutlass: Some(self.cutlass(progress)?), nvcc: self.nvcc(progress)?, cxx })
    }

    /// All that compiles plain CUDA C++ for a GPU: CUTLASS is neither looked for nor fetched.
    ///
    /// # Errors
    /// As [`Finder::toolchain`].
    pub fn cuda_toolchain(&self, progress: &mut dyn Progress) -> Result<Toolchain, ToolchainError> {
        let cxx = self.checked(self.nvcc_compiler(), &[self.has_nvcc()])?;
        Ok(Toolchain { cutlass: None, nvcc: self.nvcc(progress)?, cxx })
    }

    /// The compiler that nvcc preprocesses with.
    fn nvcc_compiler(&self) -> Result<HostCompiler, Error> {
        self.host_compiler().and_then(|cxx| programs::nvcc_ccbin(self.env()).map(|()| cxx))
    }

    fn has_nvcc(&self) -> (Component, Result<bool, Error>) {
        (Component::Nvcc, self.locate_nvcc().map(|nvcc| nvcc.is_some()))
    }

    /// All that compiles for the CPU. Nothing is downloaded where anything is wrong that a download does not mend.
    ///
    /// # Errors
    /// As [`Finder::toolchain`].
    pub fn host_toolchain(&self, progress: &mut dyn Progress) -> Result<HostToolchain, ToolchainError> {
        let cuda = self.locate_cuda_headers().map(|headers| headers.is_some());
        let cutlass = self.locate_cutlass().map(|cutlass| cutlass.is_some());
        let parts = [(Component::Cutlass, cutlass), (Component::CudaHeaders, cuda)];
        let cxx = self.checked(self.host_compiler(), &parts)?;
        Ok(HostToolchain { cutlass: self.cutlass(progress)?, cuda: self.cuda_headers(progress)?, cxx })
    }

    /// The compiler, where that and each part is found or can be fetched.
    fn checked(
        &self,
        cxx: Result<HostCompiler, Error>,
        parts: &[(Component, Result<bool, Error>)],
    ) -> Result<HostCompiler, ToolchainError> {
        let env: &Env = self.env();
        let (mut errors, mut missing) = (Vec::new(), Vec::new());
        for (component, found) in parts {
            match found {
                Ok(true) => {}
                Ok(false) if env.fetch_allowed() => errors.extend(fetch::Job::new(*component, env).err()),
                Ok(false) if component.distrusted(env).is_some() => errors.push(not_found(&[*component], env)),
                Ok(false) => missing.push(*component),
                Err(error) => errors.push(error.clone()),
            }
        }
        if !missing.is_empty() {
            errors.insert(0, not_found(&missing, env));
        }
        match cxx {
            Ok(cxx) if errors.is_empty() => Ok(cxx),
            Ok(_) => Err(ToolchainError(errors)),
            Err(error) => {
                errors.push(error);
                Err(ToolchainError(errors))
            }
        }
    }
}
