//! A CUDA toolkit whose nvcc is `tests/fake/nvcc`, a made-up CUTLASS, and an empty store.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use cutemplate::arch::{Arch, Targets};
use cutemplate::build::{Compiled, Compiler, Error, Store};
use cutemplate::dtype::DType;
use cutemplate::emit::{Unit, render};
use cutemplate::recipe::{ElementwiseAdd, Recipe};
use cutlass_sys::{Env, Finder};

/// The directory of a test, for the child process of that test.
const DIR: &str = "CUTEMPLATE_TEST_BUILD_DIR";

pub(crate) struct Place {
    pub(crate) root: PathBuf,
    _temp: Option<tempfile::TempDir>,
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

impl Place {
    pub(crate) fn new(mode: &str) -> Place {
        let temp = tempfile::tempdir().unwrap();
        // Without links in it, as nvcc would report it; what has no spaces in it needs no care.
        let root = temp.path().canonicalize().unwrap().join("a place");
        fs::create_dir(&root).unwrap();
        let place = Place { root, _temp: Some(temp) };
        let at = |path: &str| place.root.join(path);
        write(&at("cuda/include/cuda_runtime_api.h"), "#define CUDART_VERSION  13000\n");
        write(&at("cuda/include/crt/host_defines.h"), "");
        write(&at("cuda/include/cccl/cuda/std/utility"), "");
        write(&at("cuda/version.json"), r#"{"cuda_nvcc":{"version":"13.0.88"}}"#);
        place.cutlass_version(2);
        write(&at("cutlass/include/cute/tensor.hpp"), "");
        write(&at("cutlass/LICENSE.txt"), "Redistribution is permitted.\n");
        fs::create_dir_all(at("cuda/bin")).unwrap();
        symlink(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fake/nvcc"), at("cuda/bin/nvcc")).unwrap();
        place.mode(mode);
        place
    }

    /// The place of the parent, in a child process.
    pub(crate) fn of_parent() -> Option<Place> {
        Some(Place { root: std::env::var_os(DIR)?.into(), _temp: None })
    }

    /// This test binary, to run one ignored test in a process of its own.
    pub(crate) fn child(&self, test: &str) -> std::process::Command {
        let mut command = std::process::Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--ignored", "--nocapture"]).env(DIR, &self.root);
        command
    }

    pub(crate) fn mode(&self, mode: &str) {
        fs::write(self.root.join("cuda/bin/mode"), mode).unwrap();
    }

    pub(crate) fn cutlass_version(&self, minor: u32) {
        let text = format!("#define CUTLASS_MAJOR 4\n#define CUTLASS_MINOR {minor}\n#define CUTLASS_PATCH 0\n");
        write(&self.root.join("cutlass/include/cutlass/version.h"), &text);
    }

    /// The made-up toolkit, the real C++ compiler, and further variables.
    pub(crate) fn finder(&self, more: &[(&str, &str)]) -> Finder {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut vars = vec![
            ("CUDA_HOME".to_owned(), self.root.join("cuda").into_os_string()),
            ("CUTLASS_PATH".to_owned(), self.root.join("cutlass").into_os_string()),
            ("CUTEMPLATE_CACHE_DIR".to_owned(), self.root.join("cache").into_os_string()),
            ("PATH".to_owned(), path),
        ];
        vars.extend(more.iter().map(|(name, value)| ((*name).to_owned(), value.into())));
        Finder::new(Env::from_pairs(vars))
    }

    pub(crate) fn store(&self) -> Store {
        Store::at(self.root.join("cache/kernels"))
    }

    pub(crate) fn compiler(&self) -> Compiler {
        Compiler::new(&self.finder(&[]), &mut ()).unwrap()
    }

    pub(crate) fn compile(&self) -> Result<Compiled, Error> {
        self.compiler().compile(&unit("add", DType::F16), &Targets::default())
    }

    /// The command lines of all runs of nvcc.
    pub(crate) fn runs(&self) -> Vec<String> {
        let text = fs::read_to_string(self.root.join("cuda/bin/argv")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// What the store holds beside its locks: entries and staging directories.
    pub(crate) fn stored(&self) -> Vec<String> {
        let entries = fs::read_dir(self.store().root()).into_iter().flatten();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != "locks").collect();
        names.sort();
        names
    }
}

/// The text of `elementwise_add` under a name.
pub(crate) fn unit(name: &str, dtype: DType) -> Unit {
    render(&ElementwiseAdd { dtype, ..Default::default() }.plan_as(name, &Targets::default()).unwrap())
}

pub(crate) fn targets(archs: &[Arch]) -> Targets {
    Targets::new(archs.iter().copied()).unwrap()
}
