//! The PTX executor: runs PTX on any processor, and finds races and other faults that tools on a GPU miss.
//!
//! nvcc, LLVM and Triton emit PTX, and the driver compiles it to machine code. The executor lowers it once to a compact form and runs
//! warps of 32 lanes as vectors. It needs neither CUDA nor a compiler. It checks every access, and its [`Modes`] add checks for
//! uninitialised reads and data races.
//!
//! ```
//! use ptx_exec::{Modes, Module};
//!
//! let text = "
//! .version 8.0
//! .target sm_80
//! .address_size 64
//! .visible .entry twice(.param .u64 out, .param .u32 n)
//! {
//!     .reg .pred %p<2>; .reg .b32 %r<5>; .reg .b64 %rd<4>;
//!     ld.param.u64 %rd1, [out];
//!     ld.param.u32 %r1, [n];
//!     mov.u32 %r2, %tid.x;
//!     setp.ge.u32 %p1, %r2, %r1;
//!     @%p1 ret;
//!     shl.b32 %r3, %r2, 1;
//!     mul.wide.u32 %rd2, %r2, 4;
//!     add.s64 %rd3, %rd1, %rd2;
//!     st.global.u32 [%rd3], %r3;
//!     ret;
//! }";
//! let module = Module::parse(text)?;
//! let mut out = [0_u8; 40];
//! let launch = module.launch("twice")?.block(&[32]).output("out", &mut out).arg_bytes(&10_u32.to_le_bytes());
//! let report = launch.modes(Modes::ALL).run()?;
//! assert!(report.is_clean());
//! assert_eq!(out[36], 18);
//! # Ok::<(), ptx_exec::Error>(())
//! ```
//!
//! Exact: integers, and floating-point arithmetic in every rounding mode, as IEEE 754 and the PTX manual define it. Bounded:
//! approximate functions, and sums of tensor cores without [`TensorCores::Hopper`]. Not modelled: caches, time, and weak-memory
//! reorderings that no interleaving shows; the race check reports the accesses that may be reordered.

mod allow;
mod ast;
#[cfg(feature = "cli")]
pub mod cli;
mod code;
mod code_async;
mod code_info;
mod declare;
mod device_memory;
mod entry_profile;
mod error;
mod file;
mod finding;
mod launch;
mod launch_run;
mod lex;
mod lower;
mod machine;
mod map_element;
mod map_image;
mod maps;
mod memory;
mod near;
pub mod npy;
mod num;
mod parse;
mod parse_body;
mod parse_expr;
mod place;
mod profile;
mod proof;
mod report;
mod target;
mod tensor;
mod tensor_map;
mod text;
mod types;
mod vector_loop;

pub use allow::Allow;
pub use device_memory::DeviceMemory;
pub use error::{Error, ErrorKind, Position};
pub use file::{
    AllowedBy, Difference, FileReport, LaunchFile, LaunchKey, Launches, RunOptions, Seeds, launch_keys, run_file,
};
pub use finding::{Finding, FindingKind, Origin, Other, Path, Rule, Site, SourceLine, Who};
pub use launch::{Buffer, Data, Launch, Modes, Placement, STEP_BUDGET, TensorCores};
pub use profile::{Counts, Profile, Profiled, Stages};
pub use report::Report;
pub use target::Target;
pub use tensor::Tensor;
pub use tensor_map::{MOST_MODES, MapSwizzle, TensorMap};
pub use types::{Space, Ty};

use code::Code;

/// A parameter of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// The type of its elements.
    pub ty: Ty,
    /// Its size in bytes.
    pub bytes: u64,
    /// Offset of its first byte.
    pub offset: u64,
    /// Whether it is an array of bytes, as structs are.
    pub is_array: bool,
    /// The declared state space and alignment in bytes of a pointer's target.
    pub pointee: Option<(Space, u64)>,
}

/// An entry of a module.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<Param>,
    /// The required block size.
    pub reqntid: Option<[u32; 3]>,
    /// The largest block.
    pub maxntid: Option<[u32; 3]>,
    /// The required cluster size.
    pub cluster: Option<[u32; 3]>,
    /// Static shared memory, in bytes.
    pub shared: u64,
    /// Local memory of a thread, in bytes.
    pub local: u64,
    /// Number of instructions, including called functions.
    pub instructions: usize,
    /// Whether it has dynamic shared memory.
    pub has_dynamic_smem: bool,
}

/// An entry as it stands in the text.
#[derive(Debug)]
struct Listed {
    name: String,
    params: Vec<code::ParamInfo>,
    code: Result<Code, Error>,
}

/// A PTX text, read and checked.
#[derive(Debug)]
pub struct Module {
    version: (u32, u32),
    target: String,
    entries: Vec<Listed>,
}

impl Module {
    /// Reads a text. An unsupported entry is refused at its launch, and listed in [`Module::entries`] with the reason.
    ///
    /// # Errors
    /// The text is not PTX; the error has line and column.
    pub fn parse(text: impl Into<String>) -> Result<Module, Error> {
        let text = text.into();
        let module = parse::parse(&text)?;
        let entries = module.functions.iter().filter(|f| f.is_entry && f.body.is_some());
        let listed = |f: &ast::Function<'_>| Listed {
            name: f.name.to_owned(),
            params: lower::variables::layout(f).map(|(params, _)| params).unwrap_or_default(),
            code: lower::lower(&module, f).map_err(|e| e.of_entry(f.name)),
        };
        let entries = entries.map(listed).collect();
        let (version, target) = (module.version, module.target.to_owned());
        Ok(Module { version, target, entries })
    }

    /// The version of PTX that it was written for: major, minor.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// The architecture that it was written for, as `sm_90a`.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Its entries, or the reasons why they are unsupported.
    pub fn entries(&self) -> impl Iterator<Item = Result<Entry, (&str, &Error)>> {
        self.entries.iter().map(|entry| match &entry.code {
            Ok(code) => Ok(describe(code)),
            Err(e) => Err((entry.name.as_str(), e)),
        })
    }

    /// The parameters of the entry with this name, even if it is unsupported; `None` if the text has no such entry.
    pub fn params(&self, entry: &str) -> Option<Vec<Param>> {
        let listed = self.entries.iter().find(|listed| listed.name == entry)?;
        Some(listed.params.iter().map(parameter).collect())
    }

    /// The full name of an entry: the entry with this name, or the only one whose name contains it, as `gemm` for `_Z4gemmPfi`.
    ///
    /// # Errors
    /// No entry matches, or several match.
    pub fn entry_of(&self, part: &str) -> Result<&str, Error> {
        let names = || self.entries.iter().map(|entry| entry.name.as_str());
        if let Some(name) = names().find(|name| *name == part) {
            return Ok(name);
        }
        let mut found = names().filter(|name| !part.is_empty() && name.contains(part));
        let listed =
            |names: &mut dyn Iterator<Item = &str>| names.take(20).map(parse::clip).collect::<Vec<_>>().join(", ");
        match (found.next(), found.next()) {
            (Some(name), None) => Ok(name),
            (Some(first), Some(second)) => Err(Error::launch("several entries have this part in their names")
                .found(parse::clip(part))
                .required(format!("a part of one of {}", listed(&mut [first, second].into_iter().chain(found))))),
            (None, _) => {
                let error = Error::launch("the text has no such entry").found(parse::clip(part));
                let error = error.required(format!("one of {}", listed(&mut names())));
                Err(match crate::near::nearest(part, names()) {
                    Some(name) => error.help(format!("the nearest name is {}", parse::clip(name))),
                    None => error,
                })
            }
        }
    }

    /// A launch of an entry, named as for [`Module::entry_of`]. The default is one block of one thread.
    ///
    /// # Errors
    /// The entry does not exist, or is unsupported.
    pub fn launch<'a>(&'a self, entry: &str) -> Result<Launch<'a>, Error> {
        let entry = self.entry_of(entry)?;
        let code = self.code(entry)?;
        Ok(Launch {
            module: self,
            entry: entry.to_owned(),
            grid: [1; 3],
            block: [1; 3],
            cluster: None,
            maps: Vec::new(),
            dynamic_smem: 0,
            buffers: Vec::new(),
            params: vec![0; code.param_bytes as usize],
            pointers: Vec::new(),
            next: 0,
            modes: Modes::PLAIN,
            placement: Placement::Driver,
            tensor_cores: TensorCores::Fast,
            seed: 0,
            budget: STEP_BUDGET,
            workers: None,
            paths: false,
            profile: false,
            programmatic: false,
            variables: Vec::new(),
            allow: Vec::new(),
            cooperative: false,
            failed: None,
        })
    }

    fn code(&self, entry: &str) -> Result<&Code, Error> {
        let name = self.entry_of(entry)?;
        let listed = self.entries.iter().find(|listed| listed.name == entry);
        let Some(listed) = listed else {
            return Err(Error::launch("the text has no such entry")
                .found(parse::clip(entry))
                .help(format!("the nearest name is {}", parse::clip(name))));
        };
        listed.code.as_ref().map_err(Clone::clone)
    }
}

fn parameter(p: &code::ParamInfo) -> Param {
    Param { name: p.name.clone(), ty: p.ty, bytes: p.bytes, offset: p.offset, is_array: p.is_array, pointee: p.pointee }
}

fn describe(code: &Code) -> Entry {
    Entry {
        name: code.name.clone(),
        params: code.params.iter().map(parameter).collect(),
        reqntid: code.reqntid,
        maxntid: code.maxntid,
        cluster: code.cluster,
        shared: code.shared.iter().filter_map(|v| v.bytes).sum(),
        local: code.declared_local_bytes,
        instructions: code.insts.len(),
        has_dynamic_smem: code.shared.iter().any(|v| v.bytes.is_none()),
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(doctest)]
#[doc = include_str!("../docs/guide.md")]
mod guide {}
