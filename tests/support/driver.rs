//! Runs a test again in a process of its own, with a stand-in for the CUDA driver.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use cutemplate::arch::{Arch, Targets};
use cutemplate::artifact::{Artifact, Code, Parts, Ptx, Text};
use cutemplate::digest::Digest;
use cutemplate::dtype::DType;
use cutemplate::plan::Plan;
use cutemplate::recipe::{ElementwiseAdd, Raster, Recipe};

/// Says in the child which test it is.
const CHILD: &str = "STAND_IN_TEST";

/// Says in the child where to write what its body returns.
const TOLD: &str = "STAND_IN_TOLD";

/// Stand-ins, by source and name.
const LIBRARIES: [(&str, &str); 4] = [
    ("driver.c", "libcuda.so"),
    ("cublas.c", "libcublas.so"),
    ("cublaslt.c", "libcublasLt.so"),
    ("nvml.c", "libnvidia-ml.so.1"),
];

/// A folder with the stand-ins for the driver, for NVML and for cuBLAS, which are compiled once for each run of the tests.
pub(crate) fn library() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let this = std::env::current_exe().expect("this binary");
        let beside = tempfile::tempdir_in(this.parent().expect("its folder")).expect("a folder in target");
        let compiler = std::env::var_os("CC").unwrap_or_else(|| "cc".into());
        for (source, library) in LIBRARIES {
            let status = Command::new(&compiler)
                .args(["-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o"])
                .arg(beside.path().join(library))
                .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support").join(source))
                .status();
            assert!(status.expect("a C compiler runs").success(), "{source} does not compile");
        }
        beside.keep()
    })
}

/// What a child did.
pub(crate) struct Done {
    /// What its body returned.
    pub(crate) told: String,
    /// The calls that the stand-in logged.
    pub(crate) log: String,
}

/// Runs `body` in a child process whose CUDA driver is the stand-in with these settings, and ends there. `test` is the
/// full name of the test that calls this, which the child runs again to get here.
pub(crate) fn with_driver(test: &str, settings: &[(&str, &str)], body: impl FnOnce() -> String) -> Done {
    if std::env::var_os(CHILD).is_some_and(|name| name == test) {
        std::fs::write(std::env::var_os(TOLD).expect("set by the parent"), body()).expect("writable");
        std::process::exit(0);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (log, told) = (folder.path().join("log"), folder.path().join("told"));
    let mut command = Command::new(std::env::current_exe().expect("this binary"));
    command.args([test, "--exact", "--nocapture", "--test-threads=1"]);
    command.env(CHILD, test).env(TOLD, &told).env("LD_LIBRARY_PATH", library()).env("STAND_IN_LOG", &log);
    command.envs(settings.iter().copied());
    let output = command.output().expect("this binary runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
    let told = std::fs::read_to_string(&told).unwrap_or_else(|_| panic!("no test is called {test}"));
    Done { told, log: std::fs::read_to_string(&log).unwrap_or_default() }
}

/// The plan that the stand-in's kernel has.
pub(crate) fn plan(targets: &[Arch]) -> Plan {
    let targets = Targets::new(targets.iter().copied()).expect("not empty");
    // Tiles of (64,256).
    let val_layout_bytes = "(16,16):(16,1)".parse().ok();
    let recipe =
        ElementwiseAdd { dtype: DType::F32, val_layout_bytes, raster: Some(Raster::AlongN), ..Default::default() };
    recipe.plan_as("add", &targets).expect("a right recipe")
}

/// A fatbin as far as headers go: its own, and that of an entry that is empty.
pub(crate) fn fatbin() -> Vec<u8> {
    let mut bytes = 0xba55_ed50_u32.to_le_bytes().to_vec();
    bytes.extend([1, 0, 16, 0]);
    bytes.extend(64_u64.to_le_bytes());
    bytes.resize(80, 0);
    bytes[20] = 64;
    bytes
}

/// It, as a build script embeds it.
pub(crate) fn artifact() -> Artifact<'static> {
    // SAFETY: the stand-in runs nothing.
    unsafe { Artifact::new(parts()) }
}

/// What a build script writes down of it.
pub(crate) fn parts() -> Parts<'static> {
    parts_with(text())
}

/// The same with another text.
pub(crate) fn parts_with(text: Text<'static>) -> Parts<'static> {
    Parts { family: "elementwise_add", name: "add", texts: vec![text].into() }
}

/// Its text, compiled.
pub(crate) fn text() -> Text<'static> {
    let plan = plan(&[Arch::Sm80, Arch::Sm90a]);
    let (abi, digest) = (leak(plan.abi().to_json()), leak(plan.abi().digest().to_string()));
    Text { abi, digest, code: Code::Fatbin { bytes: fatbin().leak(), sha256: sha256(), ptx: Ptx::Text("") } }
}

/// That of its fatbin.
pub(crate) fn sha256() -> &'static str {
    leak(Digest::of(&fatbin()).to_string())
}

fn leak(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Everything that a test sees refused, one after the other.
#[derive(Default)]
pub(crate) struct Refusals(pub(crate) String);

impl Refusals {
    /// Adds one.
    pub(crate) fn add<T>(&mut self, result: Result<T, impl std::fmt::Display>) {
        let Err(error) = result else { panic!("not refused, after:\n{}", self.0) };
        self.0 += &format!("{error}\n");
    }
}
