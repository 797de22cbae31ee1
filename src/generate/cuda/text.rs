//! The files that nvcc gets for a text of one's own: the text, its constants, and a translation unit in which the compiler tells what
//! the declared entries are.

use std::path::Path;
use std::sync::Arc;

use super::params::Flat;
use super::{Cuda, Source, declare};
#[cfg(feature = "emit")]
use crate::digest::Digest;
#[cfg(feature = "emit")]
use crate::emit::{self, SourceFile, Unit};
use crate::plan::KernelPlan;
#[cfg(feature = "emit")]
use crate::plan::Plan;
#[cfg(feature = "emit")]
use crate::plan::own::Known;
use crate::plan::own::{Own, OwnEntry};

impl Own {
    pub(super) fn new(cuda: &Cuda, name: &str, names: &[String], text: Arc<str>) -> Self {
        let entry = |(entry, name): (&super::Entry, &String)| OwnEntry {
            name: name.clone(),
            function: entry.function.clone(),
            params: Flat::of(&entry.params).known,
            threads: entry.block,
            varies: entry.threads.is_some(),
            cluster: entry.cluster,
            shared: entry.shared.is_some(),
            line: declare::one_line(entry),
        };
        let origin = match &cuda.source {
            Source::File(path) => Some(path.clone()),
            Source::Text(_) => None,
        };
        let constants: Vec<&str> = cuda.constants.iter().filter_map(|(_, value)| value.as_deref().ok()).collect();
        let beside = origin.as_deref().and_then(Path::parent).map(Path::to_path_buf);
        let file = origin.as_deref().and_then(Path::file_name).map(|file| file.to_string_lossy().into_owned());
        Self {
            name: name.to_owned(),
            file: file.unwrap_or_else(|| format!("{name}.cu")),
            origin,
            text,
            constants: constants.join("\n"),
            entries: cuda.entries.iter().zip(names).map(entry).collect(),
            cutlass: cuda.cutlass,
            include_dirs: beside.into_iter().chain(cuda.include_dirs.iter().cloned()).collect(),
        }
    }

    /// A file without declared entries.
    #[cfg(feature = "build")]
    pub(crate) fn of_file(path: &Path, text: Arc<str>, cutlass: bool) -> Self {
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let word = stem.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' });
        let name: String =
            core::iter::once('k').filter(|_| stem.starts_with(|c: char| c.is_ascii_digit())).chain(word).collect();
        Self { cutlass, ..Self::new(&Cuda::file(path), &name, &[], text) }
    }

    /// The stem of the compiled files.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The declared entries.
    pub(crate) fn entries(&self) -> &[OwnEntry] {
        &self.entries
    }

    /// How a person finds the text: its path, or the name of its file.
    pub(crate) fn place(&self) -> String {
        self.origin.as_ref().map_or_else(|| self.file.clone(), |path| path.display().to_string())
    }

    /// What to do where nvcc refuses the text, or what it was declared to have.
    pub(crate) fn mend(&self, declaration: bool) -> String {
        if !declaration {
            return format!("mend {}; a header of CUTLASS is found where Cuda::cutlass asks for it", self.place());
        }
        let functions = self.functions();
        let functions = if functions.is_empty() { "none".to_owned() } else { functions.join(", ") };
        format!("declare a function, or a field, as it stands in {}; its functions: {functions}", self.place())
    }

    /// The names behind `__global__` in the text, for messages.
    fn functions(&self) -> Vec<String> {
        let mut all = Vec::new();
        for after in self.text.split("__global__").skip(1) {
            let head = after.split_once('{').map_or(after, |(head, _)| head);
            // The last word ahead of a parenthesis that is no attribute.
            let calls = head.match_indices('(').map(|(at, _)| head[..at].trim_end());
            let names = calls.filter_map(|before| {
                let start = before.rfind(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(0, |at| at + 1);
                Some(&before[start..]).filter(|name| !name.is_empty() && !name.starts_with("__"))
            });
            all.extend(names.take(1).map(str::to_owned));
        }
        all.dedup();
        all
    }

    /// The name of the header with the constants.
    #[cfg(feature = "emit")]
    fn header(&self) -> String {
        format!("{}_constants.cuh", self.name)
    }

    #[cfg(feature = "emit")]
    pub(crate) fn unit(self: &Own, abi: Digest) -> Unit {
        let file = |name: String, text: String| SourceFile { name, text };
        Unit::of_own(
            abi,
            self,
            [
                file(self.header(), self.constants_text()),
                file(format!("{}_entries.cu", self.name), self.entries_text()),
                file(self.file.clone(), self.text.to_string()),
            ],
        )
    }

    #[cfg(feature = "emit")]
    fn constants_text(&self) -> String {
        let mut head = String::new();
        for (word, header) in [("__half", "cuda_fp16.h"), ("__nv_bfloat16", "cuda_bf16.h"), ("__nv_fp8", "cuda_fp8.h")]
        {
            if self.constants.contains(word) {
                head += &format!("#include <{header}>\n");
            }
        }
        if self.cutlass {
            head += "#include <cute/tensor.hpp>\n\nusing namespace cute;\n";
        }
        let (name, version, constants) = (&self.name, emit::VERSION, &self.constants);
        format!("// @generated by cutemplate {version}: constants of {name}\n#pragma once\n{head}\n{constants}\n")
    }

    /// The translation unit. Its variables tell the symbols and the types of the entries, and are gone when the PTX is kept.
    #[cfg(feature = "emit")]
    fn entries_text(&self) -> String {
        use std::fmt::Write as _;
        let mut text = format!(
            "// @generated by cutemplate {}\n// The entries of {}, as they are declared:\n",
            emit::VERSION,
            self.file
        );
        for entry in &self.entries {
            let _ = writeln!(text, "//   {} is {}", entry.name, entry.line);
        }
        let _ = writeln!(text, "#include \"{}\"\n\n{}", self.file, include_str!("entries.cuh"));
        for (number, entry) in self.entries.iter().enumerate() {
            let function = &entry.function;
            let _ = writeln!(
                text,
                "#line {} \"{DECLARED}\"\n__device__ void const* cutemplate_entry_{number} = (void const*)&{function};",
                number + 1
            );
            let of = format!("cutemplate_entries::Of<decltype(&{function})>");
            let _ = writeln!(text, "#line {}\n__device__ auto cutemplate_facts_{number} = {of}::facts();", number + 1);
            let _ = writeln!(text, "#line {}\n__device__ auto cutemplate_types_{number} = {of}::types();", number + 1);
            for (at, fields) in entry.params.iter().enumerate().filter_map(|(at, param)| Some((at, param.fields()?))) {
                let ty = format!("{of}::Param<{at}>");
                for (of, Known { name, .. }) in fields.iter().enumerate() {
                    let field = format!("field<{ty}, decltype({ty}::{name})>(__builtin_offsetof({ty}, {name}))");
                    let variable = format!("cutemplate_field_{number}_{at}_{of}");
                    let line = number + 1;
                    let _ = writeln!(text, "#line {line}\n__device__ auto {variable} = cutemplate_entries::{field};");
                }
            }
        }
        text
    }
}

/// The name by which nvcc calls the lines of declarations.
pub(crate) const DECLARED: &str = "declaration";

/// The kernel of an entry.
#[derive(Debug)]
pub(super) struct OwnKernel {
    pub(super) own: Arc<Own>,
    pub(super) spills_denied: bool,
    pub(super) max_registers: Option<u64>,
}

impl KernelPlan for OwnKernel {
    #[cfg(feature = "emit")]
    fn header(&self, _: &Plan) -> String {
        self.own.constants_text()
    }

    fn spills_denied(&self) -> bool {
        self.spills_denied
    }

    fn max_registers(&self) -> Option<u64> {
        self.max_registers
    }

    fn own(&self) -> Option<&Own> {
        Some(&self.own)
    }
}
