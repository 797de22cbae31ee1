//! From PTX to the fatbin of a kernel, with its manifest.

use std::fs;
use std::path::PathBuf;

use super::compiled::MANIFEST;
use super::error::{Error, SerializedError};
use super::nvcc::Compiler;
use super::ptx::{Ptx, warnings};
use super::ptx_text::without_lines;
use super::ptxas;
use crate::arch::{Arch, Targets};
use crate::bundle::{FileDigest, Manifest};
use crate::digest::Digest;
use crate::dtype::DType;
use crate::emit::{self, Unit};
use crate::fatbin;
use crate::store::Stage;

/// Arguments of nvcc that ask for line tables in machine code.
const LINES: [&str; 4] = ["-lineinfo", "--generate-line-info", "-G", "--device-debug"];

/// Arguments that ask for a fatbin, and for what ptxas has to say of it.
pub(super) const FATBIN: [&str; 3] = ["--fatbin", "-Xptxas", "-v"];

/// Groups of targets that share PTX, made for their oldest. All targets since 8.0 share it. Before, CUDA's headers
/// convert bf16 and compare halves in other instructions (`cuda_bf16.hpp`). Texts with 8-bit floats split once more at
/// 8.9, whose hardware converts them (CUTLASS, `float8.h`).
pub(super) fn generations(unit: &Unit, targets: &Targets) -> Vec<Targets> {
    let has = |dtype: &DType| unit.header().text.contains(dtype.cxx());
    let narrow = [DType::E4m3, DType::E5m2].iter().any(has);
    let since = |arch: &Arch| [(8, 0), (8, 9)].map(|since| arch.capability() >= since && (narrow || since == (8, 0)));
    // A text of one's own may ask for the architecture, as CuTe's headers do.
    let own = targets.archs().chunk_by(|a, b| unit.own().is_none() && since(a) == since(b));
    own.filter_map(|archs| Targets::new(archs.iter().copied())).collect()
}

/// The options that make nvcc emit machine code for each target of a generation, and PTX if the fatbin holds this
/// generation's.
pub(super) fn codes(targets: &Targets, generation: &Targets) -> Vec<String> {
    let compute = generation.virtual_arch().suffix();
    let sass = generation.archs().iter().map(|arch| format!("sm_{}", arch.suffix()));
    let ptx = (targets.ptx() == Some(generation.virtual_arch())).then(|| format!("compute_{compute}"));
    sass.chain(ptx).map(|code| format!("-gencode=arch=compute_{compute},code={code}")).collect()
}

impl Compiler {
    /// The key of a kernel's fatbin: the inputs of each generation's PTX, and the targets of each.
    pub(super) fn fatbin_key(&self, unit: &Unit, targets: &Targets) -> String {
        let parts = generations(unit, targets).into_iter().flat_map(|generation| {
            let ptx = self.ptx_key(unit, &generation);
            let made = self.key(unit, &self.fatbin_command(unit, targets, &generation), &[ptx.as_str()]);
            [ptx, made]
        });
        let parts: Vec<String> = parts.collect();
        Digest::of_parts(parts.iter().map(String::as_bytes)).to_string()
    }

    /// The command that makes a fatbin of the PTX of a generation.
    fn fatbin_command(&self, unit: &Unit, targets: &Targets, generation: &Targets) -> Vec<String> {
        let mut argv = self.nvcc();
        argv.extend(FATBIN.map(str::to_owned));
        argv.extend(codes(targets, generation));
        argv.extend(self.flags.iter().cloned());
        argv.extend(["-o".to_owned(), format!("{}.fatbin", unit.name()), format!("{}.ptx", unit.name())]);
        argv
    }

    /// Makes the fatbin and the manifest of a kernel from its PTX in the stage. Returns the inputs of the PTX.
    pub(super) fn assemble(
        &self,
        unit: &Unit,
        targets: &Targets,
        ptx: &[Ptx],
        stage: &Stage,
    ) -> Result<Vec<PathBuf>, Error> {
        let path = |suffix: &str| stage.dir.join(format!("{}.{suffix}", unit.name()));
        let (fatbin, read) = (path("fatbin"), path("ptx"));
        let (mut fatbins, mut report, mut command) = (Vec::new(), String::new(), Vec::new());
        for (generation, ptx) in generations(unit, targets).iter().zip(ptx) {
            command = self.fatbin_command(unit, targets, generation);
            let text = if self.wants_lines() { ptx.text().to_owned() } else { without_lines(ptx.text()) };
            fs::write(&read, text).map_err(|e| Error::io("write", &read, e))?;
            report.push_str(&self.start(unit, None, &command, stage)?);
            fatbins.push(fs::read(&fatbin).map_err(|e| self.output(unit, &command, &e.to_string(), "a fatbin"))?);
        }
        fs::remove_file(&read).map_err(|e| Error::io("remove", &read, e))?;
        let told = ptxas::serialized(&report);
        if !told.is_empty() {
            return Err(Box::new(SerializedError { kernel: unit.name().to_owned(), told }).into());
        }
        let whole = fatbin::joined(&fatbins);
        let bytes = whole.map_err(|why| self.output(unit, &command, &why.to_string(), "a whole fatbin"))?;
        let archs: Vec<&str> = targets.archs().iter().map(|arch| arch.name()).collect();
        let ptx_of = targets.ptx().map(|arch| arch.name());
        let complete = fatbin::complete(&bytes, &archs, ptx_of, unit.entries());
        complete
            .map_err(|why| self.output(unit, &command, &why.to_string(), "code of each entry for each architecture"))?;
        fs::write(&fatbin, &bytes).map_err(|e| Error::io("write", &fatbin, e))?;
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
        let [nvcc, cutlass, cxx] = self.versions(unit);
        let mut said: Vec<&str> = ptx.iter().flat_map(|ptx| ptx.warnings()).map(String::as_str).collect();
        said.push(report);
        let warnings = warnings(&said.join("\n"));
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
