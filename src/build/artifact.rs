//! A compiled kernel, the output of a build, with all that is needed to check and launch it.

use std::borrow::Cow;

use crate::arch::Targets;
use crate::diagnostic::{PlanError, debug_as_display};
use crate::digest::{Digest, NoDigest};
use crate::plan::{Abi, AbiError, Plan};
use crate::recipe::Recipe;
use crate::settings::Settings;

/// The type of a kernel: which artifacts it stands for. Every [`Recipe`] is one; the module of a kernel of
/// [one's own](crate::cuda) has another.
pub trait Kind: 'static {
    /// The family of its artifacts.
    const FAMILY: &'static str;

    /// The name of its artifact, where it stands for one kernel only.
    const KERNEL: Option<&'static str> = None;
}

impl<R: Recipe> Kind for R {
    const FAMILY: &'static str = R::FAMILY;
}

/// A kernel that is launched by a safe function: it is proved, or somebody vouches for it. A launch compares with the kernel's ABI, so
/// that a type alone vouches for nothing.
///
/// The module of a kernel that nobody vouches for has a type without it. Its launch on a GPU is an `unsafe fn`:
/// ```no_run
/// # #[cfg(feature = "cuda")] mod cuda {
/// use std::sync::Arc;
///
/// use cutemplate::artifact::Kind;
/// use cutemplate::launch::{Kernel, LaunchError, cudarc::driver::CudaStream};
/// use cutemplate::view::{Arguments, DeviceMemory};
///
/// struct Scale;
/// impl Kind for Scale {
///     const FAMILY: &'static str = cutemplate::cuda::FAMILY;
/// }
///
/// type Args<'a> = Arguments<'a, Scale, DeviceMemory>;
/// fn run(kernel: &Kernel<Scale>, stream: &Arc<CudaStream>, args: Args) -> Result<(), LaunchError> {
///     unsafe { kernel.launch_unvouched(stream, args) }
/// }
/// # }
/// ```
/// The same without `unsafe` does not compile, and neither does the safe launch:
/// ```compile_fail,E0133
/// use std::sync::Arc;
///
/// use cutemplate::artifact::Kind;
/// use cutemplate::launch::{Kernel, LaunchError, cudarc::driver::CudaStream};
/// use cutemplate::view::{Arguments, DeviceMemory};
///
/// struct Scale;
/// impl Kind for Scale {
///     const FAMILY: &'static str = cutemplate::cuda::FAMILY;
/// }
///
/// type Args<'a> = Arguments<'a, Scale, DeviceMemory>;
/// fn run(kernel: &Kernel<Scale>, stream: &Arc<CudaStream>, args: Args) -> Result<(), LaunchError> {
///     kernel.launch_unvouched(stream, args)
/// }
/// ```
/// ```compile_fail,E0277
/// use std::sync::Arc;
///
/// use cutemplate::artifact::Kind;
/// use cutemplate::launch::{Kernel, LaunchError, cudarc::driver::CudaStream};
/// use cutemplate::view::{Arguments, DeviceMemory};
///
/// struct Scale;
/// impl Kind for Scale {
///     const FAMILY: &'static str = cutemplate::cuda::FAMILY;
/// }
///
/// type Args<'a> = Arguments<'a, Scale, DeviceMemory>;
/// fn run(kernel: &Kernel<Scale>, stream: &Arc<CudaStream>, args: Args) -> Result<(), LaunchError> {
///     kernel.launch(stream, args)
/// }
/// ```
pub trait Vouched: Kind {}

impl<R: Recipe> Vouched for R {}

/// A kernel that a build script embeds. Only its module makes it, and its contents cannot change. Its code is compared
/// with the sha256 from the build before it is loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact<'a>(Parts<'a>);

/// What kernels are loaded on: a `launch::Gpu`, or a `device::Device`, which may be the executor. The module of a kernel calls
/// it: `vector_add::load(&device)`.
pub trait Loads {
    /// A kernel there.
    type Kernel<R: Kind>;
    /// Why it was not loaded.
    type Error;

    /// Loads a kernel.
    ///
    /// # Errors
    /// It does not fit this version, has no code for the device, or is damaged.
    fn load<R: Kind>(&self, artifact: &Artifact<'_>) -> Result<Self::Kernel<R>, Self::Error>;
}

/// The data of a kernel that a build script writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts<'a> {
    /// The kernel family.
    pub family: &'a str,
    /// The name of the kernel.
    pub name: &'a str,
    /// The compiled texts: one, or one for each of [`Plan::texts`](crate::plan::Plan::texts) if architectures have
    /// their own.
    pub texts: Cow<'a, [Text<'a>]>,
}

/// A compiled text, and how it is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Text<'a> {
    /// Its [`Abi`], in JSON.
    pub abi: &'a str,
    /// The [digest](Abi::digest) of that, in hexadecimal.
    pub digest: &'a str,
    /// The compiled code.
    pub code: Code<'a>,
}

/// What nvcc made of a kernel, if it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code<'a> {
    /// A fatbin.
    Fatbin {
        /// Its bytes.
        bytes: &'a [u8],
        /// Their sha256 when nvcc had written them, in hexadecimal.
        sha256: &'a str,
        /// The PTX of the text, with lines, which the PTX executor runs.
        ptx: Ptx<'a>,
    },
    /// Nothing: there are types and text, and nothing that a GPU or the executor could run.
    Stub {
        /// Why.
        why: &'a str,
    },
}

/// PTX with lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ptx<'a> {
    /// As it is.
    Text(&'a str),
    /// Packed, as a bundle has it.
    Packed {
        /// A zlib stream (RFC 1950).
        bytes: &'a [u8],
        /// Bytes of the text; no more are made.
        len: u64,
    },
}

/// PTX that cannot be unpacked.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("packed PTX of {required} bytes: {found}")]
pub struct PtxError {
    found: String,
    required: u64,
}

debug_as_display!(PtxError);

/// The most bytes of PTX: the size in a bundle alone must not decide an allocation.
const LONGEST: u64 = 1 << 28;

impl<'a> Ptx<'a> {
    /// The text.
    ///
    /// # Errors
    /// It is packed, and the stream is damaged, or of another length.
    pub fn text(self) -> Result<Cow<'a, str>, PtxError> {
        let (bytes, required) = match self {
            Ptx::Text(text) => return Ok(text.into()),
            Ptx::Packed { bytes, len } => (bytes, len),
        };
        let error = |found: String| PtxError { found, required };
        let most = usize::try_from(required.min(LONGEST)).unwrap_or(usize::MAX);
        let unpacked = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(bytes, most);
        let unpacked = unpacked.map_err(|e| error(e.to_string()))?;
        if unpacked.len() as u64 != required {
            return Err(error(format!("the stream has {}", unpacked.len())));
        }
        String::from_utf8(unpacked).map(Cow::from).map_err(|e| error(e.to_string()))
    }
}

/// Makes the artifact of a module that a build script writes. A crate that forbids unsafe code can include such a
/// module. Only a constant is taken, so that no bytes that a program reads become an artifact:
/// ```compile_fail,E0435
/// #![forbid(unsafe_code)]
/// use cutemplate::artifact::{Artifact, Text};
/// fn load(texts: &'static [Text<'static>]) -> Artifact<'static> {
///     cutemplate::__artifact! { family: "sum", name: "any", texts: std::borrow::Cow::Borrowed(texts) }
/// }
/// ```
/// What it is given is not part of its unsafe code:
/// ```compile_fail,E0133
/// const unsafe fn forged() -> &'static str {
///     "sum"
/// }
/// static ANY: cutemplate::artifact::Artifact<'static> =
///     cutemplate::__artifact! { family: forged(), name: "any", texts: std::borrow::Cow::Borrowed(&[]) };
/// ```
/// ```
/// #![forbid(unsafe_code)]
/// static NONE: cutemplate::artifact::Artifact<'static> =
///     cutemplate::__artifact! { family: "sum", name: "any", texts: std::borrow::Cow::Borrowed(&[]) };
/// assert_eq!(NONE.name(), "any");
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! __artifact {
    ($($field:ident: $value:expr),* $(,)?) => {{
        // The values stay outside of `unsafe`.
        const PARTS: $crate::artifact::Parts<'static> = $crate::artifact::Parts { $($field: $value),* };
        // SAFETY: a build script writes this call with the sha256 of what nvcc made of the header.
        unsafe { $crate::artifact::Artifact::new(PARTS) }
    }};
}

/// An artifact that is not one of the type's, or that this version of the crate would launch otherwise.
#[derive(thiserror::Error)]
pub enum ArtifactError {
    /// Another family than the type says.
    #[error("the artifact is a kernel of family `{found}`, the type asks for `{required}`")]
    Family {
        /// The artifact's value.
        found: String,
        /// The type's value.
        required: &'static str,
    },
    /// Another kernel than the type says.
    #[error("the artifact is kernel `{found}`, the type asks for `{required}`")]
    Kernel {
        /// The artifact's value.
        found: String,
        /// The type's value.
        required: &'static str,
    },
    /// Its ABI cannot be read, or means something else here.
    #[error(transparent)]
    Abi(#[from] AbiError),
    /// Its recipe is refused.
    #[error("the artifact's recipe is refused by this version of cutemplate\n{0}")]
    Plan(#[from] PlanError),
    /// The digest of its ABI is none.
    #[error("the digest of its ABI: {0}")]
    Digest(#[from] NoDigest),
}

debug_as_display!(ArtifactError);

impl<'a> Artifact<'a> {
    /// For the module that a build script writes.
    ///
    /// # Safety
    /// Each fatbin with the given sha256 must be what nvcc made of the text of the plan whose ABI has that digest. A
    /// launch checks memory by that ABI, and then the driver runs the fatbin's machine code on it.
    pub const unsafe fn new(parts: Parts<'a>) -> Self {
        Self(parts)
    }

    /// The kernel family.
    pub fn family(&self) -> &str {
        self.0.family
    }

    /// The name of the kernel.
    pub fn name(&self) -> &str {
        self.0.name
    }

    /// Its texts, in the order of [`Plan::texts`](crate::plan::Plan::texts).
    pub fn texts(&self) -> &[Text<'a>] {
        &self.0.texts
    }

    /// The ABI of each of its texts. Nothing is planned: an ABI is used where it has the digest that was written down
    /// when the kernel was compiled, and where this version of the crate launches by it what that one did.
    ///
    /// # Errors
    /// See [`ArtifactError`].
    pub fn open<R: Kind>(&self) -> Result<Vec<Abi>, ArtifactError> {
        if self.0.family != R::FAMILY {
            return Err(ArtifactError::Family { found: self.0.family.to_owned(), required: R::FAMILY });
        }
        if let Some(required) = R::KERNEL.filter(|name| *name != self.0.name) {
            return Err(ArtifactError::Kernel { found: self.0.name.to_owned(), required });
        }
        let open = |text: &Text| {
            let required: Digest = text.digest.parse()?;
            let abi = Abi::open(text.abi, required)?;
            match abi.family() == R::FAMILY {
                true => Ok(abi),
                false => Err(ArtifactError::Family { found: abi.family().to_owned(), required: R::FAMILY }),
            }
        };
        self.0.texts.iter().map(open).collect()
    }

    /// Plans its recipe again, if this version of the crate decides as the version that compiled it did. Use it to look
    /// into the plan, or to compile its text.
    ///
    /// # Errors
    /// See [`ArtifactError`].
    pub fn plan<R: Recipe>(&self) -> Result<Plan, ArtifactError> {
        let abis = self.open::<R>()?;
        let targets = Targets::new(abis.iter().flat_map(|abi| abi.targets().archs()).copied()).unwrap_or_default();
        let settings = abis.first().map_or_else(Settings::new, |abi| abi.settings().clone());
        let plan = R::from_settings(&settings)?.plan_as(self.name(), &targets)?;
        for (part, abi) in plan.texts().iter().zip(&abis) {
            let (found, required) = (part.abi().digest(), abi.digest());
            if found != required {
                return Err(AbiError::Digest { kernel: part.name().to_owned(), found, required }.into());
            }
        }
        Ok(plan)
    }
}
