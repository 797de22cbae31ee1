//! From PTX to the fatbin of a kernel, and what is known about it.

use std::fs;
use std::path::PathBuf;

use super::compiled::MANIFEST;
use super::error::Error;
use super::nvcc::{Compiler, codes};
use super::ptx::{Ptx, warnings};
use super::ptx_text::without_lines;
use super::ptxas;
use crate::arch::Targets;
use crate::bundle::{FileDigest, Manifest};
use crate::digest::Digest;
use crate::emit::{self, Unit};
use crate::fatbin;
use crate::store::Stage;

/// Arguments of nvcc that ask for line tables in machine code.
const LINES: [&str; 4] = ["-lineinfo", "--generate-line-info", "-G", "--device-debug"];

impl Compiler {
    /// The key of a kernel's fatbin: what the PTX of each generation is made of, and what is made of that.
    pub(super) fn fatbin_key(&self, unit: &Unit, targets: &Targets) -> String {
        let generations = targets.generations();
        let parts = generations.flat_map(|generation| {
            let ptx = self.ptx_key(unit, generation.oldest());
            let made = self.key(&self.fatbin_command(unit, targets, &generation), &[ptx.as_str()]);
            [ptx, made]
        });
        let parts: Vec<String> = parts.collect();
        Digest::of_parts(parts.iter().map(String::as_bytes)).to_string()
    }

    /// The command that makes machine code of the PTX of a generation, for each target in it.
    pub(super) fn fatbin_command(&self, unit: &Unit, targets: &Targets, generation: &Targets) -> Vec<String> {
        let compute = generation.oldest().suffix();
        let mut argv = self.nvcc();
        argv.extend(["--fatbin", "-Xptxas", "-v"].map(str::to_owned));
        argv.extend(codes(targets, generation));
        argv.extend(self.flags.iter().cloned());
        let [fatbin, ptx] = ["fatbin", "ptx"].map(|suffix| format!("{}.compute_{compute}.{suffix}", unit.name()));
        argv.extend(["-o".to_owned(), fatbin, ptx]);
        argv
    }

    /// Makes the fatbin and the manifest of a kernel in the stage, of its PTX; returns what the PTX was made of.
    pub(super) fn assemble(
        &self,
        unit: &Unit,
        targets: &Targets,
        ptx: &[Ptx],
        stage: &Stage,
    ) -> Result<Vec<PathBuf>, Error> {
        let (mut fatbins, mut report) = (Vec::new(), String::new());
        let mut command = Vec::new();
        for (generation, ptx) in targets.generations().zip(ptx) {
            command = self.fatbin_command(unit, targets, &generation);
            let [made, read] =
                [&command[command.len() - 2], &command[command.len() - 1]].map(|name| stage.dir.join(name));
            let text = if self.wants_lines() { ptx.text().to_owned() } else { without_lines(ptx.text()) };
            fs::write(&read, text).map_err(|e| Error::io("write", &read, e))?;
            report.push_str(&self.start(unit, &command, stage)?);
            fatbins.push(fs::read(&made).map_err(|e| self.output(unit, &command, &e.to_string(), "a fatbin"))?);
            [made, read].iter().try_for_each(|path| fs::remove_file(path).map_err(|e| Error::io("remove", path, e)))?;
        }
        let bytes =
            fatbin::joined(&fatbins).map_err(|why| self.output(unit, &command, &why.to_string(), "a whole fatbin"))?;
        let mut manifest = self.manifest(unit, targets, &bytes, ptx, &report);
        for (entry, arch) in unit.entries().iter().flat_map(|e| targets.archs().iter().map(move |arch| (e, arch))) {
            if manifest.entry_on(entry, arch.name()).is_none() {
                let required = format!("`ptxas -v` for {entry} on {arch}");
                return Err(self.output(unit, &command, "no report of ptxas", &required));
            }
        }
        manifest.measure(&bytes);
        let written = serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::from);
        let files = [(format!("{}.fatbin", unit.name()), Ok(bytes)), (MANIFEST.to_owned(), written)];
        for (name, bytes) in files {
            let path = stage.dir.join(name);
            bytes.and_then(|bytes| fs::write(&path, bytes)).map_err(|e| Error::io("write", &path, e))?;
        }
        let mut inputs: Vec<PathBuf> = ptx.iter().flat_map(|ptx| ptx.inputs().iter().cloned()).collect();
        inputs.sort();
        inputs.dedup();
        Ok(inputs)
    }

    /// Whether machine code is to have line tables, for profilers and debuggers.
    fn wants_lines(&self) -> bool {
        let variables = ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"].map(|name| self.env.get(name).unwrap_or_default());
        let asked = |flag: &str| LINES.contains(&flag);
        self.flags.iter().any(|flag| asked(flag))
            || variables.iter().any(|flags| flags.to_string_lossy().split_whitespace().any(asked))
    }

    fn manifest(&self, unit: &Unit, targets: &Targets, bytes: &[u8], ptx: &[Ptx], report: &str) -> Manifest {
        let [nvcc, cutlass, cxx] = self.versions();
        // Each architecture repeats them.
        let said: Vec<String> = ptx.iter().flat_map(|ptx| ptx.warnings().iter().cloned()).collect();
        let warnings = warnings(&[said.join("\n").as_str(), report].join("\n"));
        let mut resources: Vec<_> = unit.entries().iter().flat_map(|entry| ptxas::resources(entry, report)).collect();
        let order = |arch: &str| targets.archs().iter().position(|a| a.name() == arch);
        resources.sort_by_key(|row| order(&row.arch));
        Manifest {
            name: unit.name().to_owned(),
            generator: emit::VERSION.to_owned(),
            nvcc,
            cutlass,
            cxx,
            targets: targets.archs().iter().map(|arch| arch.name().to_owned()).collect(),
            ptx: targets.ptx().map(|arch| arch.name().to_owned()),
            sources: unit.files().iter().map(|file| FileDigest::of(&file.name, file.text.as_bytes())).collect(),
            fatbin: FileDigest::of(&format!("{}.fatbin", unit.name()), bytes),
            resources,
            warnings,
        }
    }
}
