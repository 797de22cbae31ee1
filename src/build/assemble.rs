//! From PTX to the fatbin of a kernel, and what is known about it.

use std::fs;
use std::path::PathBuf;

use super::compiled::MANIFEST;
use super::error::Error;
use super::nvcc::{Compiler, fatbin_of};
use super::ptx::{Ptx, warnings};
use super::ptx_text::without_lines;
use super::ptxas;
use crate::arch::Targets;
use crate::bundle::{FileDigest, Manifest};
use crate::emit::{self, Unit};
use crate::fatbin;
use crate::store::Stage;

/// Arguments of nvcc that ask for line tables in machine code.
const LINES: [&str; 4] = ["-lineinfo", "--generate-line-info", "-G", "--device-debug"];

impl Compiler {
    /// The key of a kernel's fatbin: what its PTX is made of, and what is made of that.
    pub(super) fn fatbin_key(&self, unit: &Unit, targets: &Targets) -> String {
        let ptx = self.ptx_key(unit, targets);
        self.key(&self.fatbin_command(unit, targets), &[ptx.as_str()])
    }

    /// The command that makes the fatbin of the PTX.
    fn fatbin_command(&self, unit: &Unit, targets: &Targets) -> Vec<String> {
        let mut argv = self.nvcc();
        argv.extend(fatbin_of(targets));
        argv.extend(self.flags.iter().cloned());
        argv.extend(["-o".to_owned(), format!("{}.fatbin", unit.name()), format!("{}.ptx", unit.name())]);
        argv
    }

    /// Makes the fatbin and the manifest of a kernel in the stage, of its PTX; returns what the PTX was made of.
    pub(super) fn assemble(
        &self,
        unit: &Unit,
        targets: &Targets,
        ptx: &Ptx,
        stage: &Stage,
    ) -> Result<Vec<PathBuf>, Error> {
        let command = self.fatbin_command(unit, targets);
        let [fatbin, read] = ["fatbin", "ptx"].map(|suffix| stage.dir.join(format!("{}.{suffix}", unit.name())));
        let text = if self.wants_lines() { ptx.text().to_owned() } else { without_lines(ptx.text()) };
        fs::write(&read, text).map_err(|e| Error::io("write", &read, e))?;
        let report = self.start(unit, &command, stage)?;
        fs::remove_file(&read).map_err(|e| Error::io("remove", &read, e))?;
        let bytes = fs::read(&fatbin).map_err(|e| self.output(unit, &command, &e.to_string(), "a fatbin"))?;
        if let Err(why) = fatbin::images(&bytes) {
            return Err(self.output(unit, &command, &why.to_string(), "a whole fatbin"));
        }
        let mut manifest = self.manifest(unit, targets, &bytes, ptx, &report);
        for (entry, arch) in unit.entries().iter().flat_map(|e| targets.archs().iter().map(move |arch| (e, arch))) {
            if manifest.entry_on(entry, arch.name()).is_none() {
                let required = format!("`ptxas -v` for {entry} on {arch}");
                return Err(self.output(unit, &command, "no report of ptxas", &required));
            }
        }
        manifest.measure(&bytes);
        let written = serde_json::to_vec_pretty(&manifest).map_err(std::io::Error::from);
        let path = stage.dir.join(MANIFEST);
        written.and_then(|text| fs::write(&path, text)).map_err(|e| Error::io("write", &path, e))?;
        Ok(ptx.inputs().to_vec())
    }

    /// Whether machine code is to have line tables, for profilers and debuggers.
    fn wants_lines(&self) -> bool {
        let variables = ["NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS"].map(|name| self.env.get(name).unwrap_or_default());
        let asked = |flag: &str| LINES.contains(&flag);
        self.flags.iter().any(|flag| asked(flag))
            || variables.iter().any(|flags| flags.to_string_lossy().split_whitespace().any(asked))
    }

    fn manifest(&self, unit: &Unit, targets: &Targets, bytes: &[u8], ptx: &Ptx, report: &str) -> Manifest {
        let [nvcc, cutlass, cxx] = self.versions();
        let warnings = warnings(&[&ptx.warnings().join("\n"), report].join("\n"));
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
