//! What is in a file of CUDA C++, without a declaration of it.

use std::fs;
use std::path::Path;

use super::compiled::Compiled;
use super::error::Error;
use super::nvcc::Compiler;
use super::signature;
use crate::arch::Targets;
use crate::digest::Digest;
use crate::plan::Own;

/// A file of CUDA C++ as nvcc made it.
#[derive(Clone, Debug)]
pub struct Listing {
    /// Its entries, in the order of the PTX.
    pub entries: Vec<ListedEntry>,
    /// The fatbin, and the resources of each entry on each architecture.
    pub compiled: Compiled,
}

/// A `__global__` function of a file.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ListedEntry {
    /// Its symbol, which is mangled unless it is `extern "C"`.
    pub symbol: String,
    /// Its parameters in order.
    pub params: Vec<ListedParam>,
    /// The threads of its block, where only one block is allowed.
    pub required_block: Option<[u32; 3]>,
    /// The most threads of a block, along x, y and z.
    pub most_threads: Option<[u32; 3]>,
    /// Blocks of its cluster.
    pub cluster: Option<[u32; 3]>,
    /// Whether it has dynamic shared memory.
    pub dynamic_shared: bool,
}

/// A parameter, as PTX has it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ListedParam {
    /// Bytes.
    pub size: usize,
    /// Bytes that its offset is a multiple of.
    pub align: usize,
    /// The type in PTX: `.u64` for a pointer, `.b8` for a struct.
    pub ty: String,
}

impl Compiler {
    /// Compiles a file of CUDA C++ for these architectures, and lists its entries. It finds CUTLASS's headers, unless the compiler is one
    /// [of plain CUDA](Compiler::of_cuda).
    ///
    /// # Errors
    /// The file cannot be read; nvcc refuses it; an architecture has other entries than the oldest.
    ///
    /// # Examples
    /// ```no_run
    /// use cutemplate::{arch::Targets, build::Compiler};
    /// let compiler = Compiler::new(&cutlass_sys::Finder::from_env(), &mut ())?;
    /// let listing = compiler.list("kernels/rope.cu".as_ref(), &Targets::default())?;
    /// println!("{}", listing.compiled.manifest());
    /// # Ok::<(), cutemplate::build::Error>(())
    /// ```
    pub fn list(&self, path: &Path, targets: &Targets) -> Result<Listing, Error> {
        let text = fs::read_to_string(path).map_err(|source| {
            let help = "name a file of CUDA C++: kernels/rope.cu";
            Error::Io { verb: "read", path: path.to_path_buf(), source, help }
        })?;
        let cutlass = self.toolchain.cutlass.is_some();
        let unit = Own::of_file(path, text.into(), cutlass).unit(Digest::of(b""));
        let ptx = self.ptx(&unit, targets)?;
        let entries = signature::listed(ptx.text());
        let unit = unit.with_entries(entries.iter().map(|entry| entry.symbol.clone()).collect());
        let compiled = self.compile(&unit, targets)?;
        Ok(Listing { entries, compiled })
    }
}
