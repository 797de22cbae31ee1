//! Many kernels in one translation unit of the executor, since most of the time to compile one goes into CuTe's headers.

use std::fmt::Write as _;

use cutemplate::emit::SourceFile;
use cutemplate::exec::cxx::{Mode, Options, Program, Source};
use cutemplate::exec::{Error, Job, Report};
use cutemplate::plan::{BoundTensor, Plan, Workspace};

use crate::kernels::{Kernel, Problem, Tensors};
use crate::ptx_batch::apart;

/// Bytes ahead of a kernel's own parameters: its number.
const HEAD: usize = 8;

/// The first entry, and what the others' names begin with.
const NAME: &str = "batch";

/// Kernels whose entries are switches over them.
#[derive(Debug)]
pub(crate) struct Batch {
    program: Program,
    params: usize,
}

impl Batch {
    /// Compiles kernels together, their files as they are given.
    pub(crate) fn compile(kernels: &[(&Plan, &[SourceFile])], mode: Mode, options: &Options) -> Result<Batch, Error> {
        assert_eq!(
            apart(kernels.iter().map(|(_, own)| *own)).len(),
            1,
            "kernels that declare dynamic shared memory apart"
        );
        let params = kernels.iter().map(|(plan, _)| plan.params().size()).max().unwrap_or(0).next_multiple_of(8);
        let mut files: Vec<SourceFile> = Vec::new();
        let mut text = String::new();
        for (plan, own) in kernels {
            files.extend(own.iter().filter(|f| !f.name.ends_with(".cu")).cloned());
            let _ = writeln!(text, "#include \"{}.cuh\"", plan.name());
        }
        let _ = writeln!(text, "struct batch_params {{ uint64_t kernel; alignas(8) unsigned char bytes[{params}]; }};");
        let most = kernels.iter().map(|(plan, _)| plan.entries().len()).max().unwrap_or(1);
        let names: Vec<String> = (0..most).map(|i| if i == 0 { NAME.into() } else { format!("{NAME}_{i}") }).collect();
        for (entry, name) in names.iter().enumerate() {
            write_entry(&mut text, name, entry, kernels);
        }
        files.push(SourceFile { name: format!("{NAME}.cu"), text });
        let program = Program::compile(Source { name: NAME, entries: &names, files: &files }, mode, options)?;
        Ok(Batch { program, params })
    }

    /// Runs kernel `number` and says what was wrong, if anything: with the launch, with what the executor saw, with an
    /// output, or with an input.
    pub(crate) fn run(&self, number: usize, kernel: &Kernel, problem: &Problem) -> Option<String> {
        let mut tensors = Tensors::new(&kernel.plan, problem);
        let before = tensors.inputs.clone();
        match self.launch(number, kernel, problem, &mut tensors) {
            Err(error) => return Some(error),
            Ok(report) if !report.is_clean() => return Some(format!("{report}\n{}", report.printed)),
            Ok(_) => {}
        }
        let changed = tensors.inputs.iter().zip(&before).any(|(now, before)| now.storage() != before.storage());
        tensors.wrong(&kernel.plan, problem).or_else(|| changed.then(|| "an input was written".into()))
    }

    fn launch(
        &self,
        number: usize,
        kernel: &Kernel,
        problem: &Problem,
        tensors: &mut Tensors,
    ) -> Result<Report, String> {
        let views = tensors.views(problem);
        let binding = kernel.plan.bind_with(&views, &problem.scalars).map_err(|e| e.to_string())?;
        let mut params = (number as u64).to_ne_bytes().to_vec();
        params.extend_from_slice(binding.params());
        params.resize(HEAD + self.params, 0);
        let shifted = |t: &BoundTensor| BoundTensor { param_offset: HEAD + t.param_offset, ..t.clone() };
        let bound: Vec<BoundTensor> = binding.tensors().iter().map(shifted).collect();
        let job = Job {
            launches: binding.launches(),
            params: &params,
            tensors: &bound,
            workspace: binding.workspace().map(|w| Workspace { param_offset: HEAD + w.param_offset, ..w }),
            tensor_maps: &[],
        };
        tensors.run(&self.program, &job, problem, &views).map_err(|e| e.to_string())
    }
}

/// One switch over the kernels that have an entry of that number.
fn write_entry(text: &mut String, name: &str, entry: usize, kernels: &[(&Plan, &[SourceFile])]) {
    let mut cases = String::new();
    for (number, (plan, _)) in kernels.iter().enumerate() {
        let kernel = plan.name();
        if let Some(function) = plan.entries().get(entry).map(|e| e.function(kernel)) {
            // Kernels are inlined whole; all of them in one function take a compiler long.
            let params = format!("*reinterpret_cast<{kernel}_params const*>(p.bytes)");
            let _ = writeln!(
                text,
                "static __attribute__((noinline)) void {name}_of_{number}(batch_params const& p)\n{{\n  \
                 cutemplate::{kernel}::{function}({params});\n}}"
            );
            let _ = writeln!(cases, "    case {number}: {name}_of_{number}(p); break;");
        }
    }
    let _ = writeln!(
        text,
        "extern \"C\" __global__ void {name}(batch_params const p)\n{{\n  switch (p.kernel) {{\n{cases}  }}\n}}"
    );
}
