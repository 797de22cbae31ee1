//! Programs that nobody here wrote: CUTLASS's tutorials, CUB's primitives, libdevice's functions, candle's kernels, those of llm.c and of
//! SGEMM_CUDA, and kernels as Triton compiles them. Their results are those of a plain reference, and what is right is silent, in every mode and whenever asynchronous work happens.
//!
//! They are obtained when they run, from pinned packages, or from a folder that a variable names; nvcc takes minutes for them. So they run
//! where they are asked for:
//! `CUTEMPLATE_PROGRAMS=1 cargo test --release --test exec_ptx -- --nocapture programs::`.

mod candle;
mod cub;
mod declared;
mod libdevice;
mod llm_c;
mod sgemm_cuda;
mod triton;
mod tutorials;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cutemplate::build::Compiler;
use cutemplate::emit::SourceFile;
use cutemplate::exec::Report;
use cutemplate::exec::ptx::{Buffer, Data, Modes, Module, TensorCores, TensorMap};
use cutlass_sys::Finder;

use crate::made;

/// What nvcc makes of a text for an architecture, with CUTLASS's headers and its own.
fn compiled(name: &str, text: &str, arch: &str) -> Module {
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc");
    let tools = compiler.toolchain();
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let (cxx, arch) = (path(&tools.cxx.path), format!("-arch={arch}"));
    let (source, makes) = (format!("{name}.cu"), format!("{name}.ptx"));
    let mut flags = vec!["--ptx", "-lineinfo", "-std=c++17", "--expt-relaxed-constexpr", "-ccbin", &cxx, &arch];
    let cutlass = tools.cutlass.as_ref().expect("a toolchain of CuTe");
    let folders = [Some(&cutlass.include), cutlass.util_include.as_ref()];
    let folders: Vec<String> = folders.into_iter().flatten().map(|folder| path(folder)).collect();
    flags.extend(folders.iter().flat_map(|folder| ["-isystem", folder]));
    flags.extend(["-o", &makes, &source]);
    let files = [SourceFile { name: source.clone(), text: text.to_owned() }];
    let made = made::once(&compiler, &flags, &files, &makes).unwrap_or_else(|e| panic!("{name}: {e}"));
    Module::read(&made).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// A folder beside the build's other files, of this name and made of this text, which `make` fills once.
fn kept(name: &str, of: &str, make: impl Fn(&Path)) -> PathBuf {
    let all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mark = of.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3));
    let folder = all.join(format!("{name}-{mark:016x}"));
    if !folder.is_dir() {
        let stage = tempfile::tempdir_in(all).expect("a folder");
        make(stage.path());
        fs::rename(stage.keep(), &folder).expect("beside each other");
    }
    folder
}

/// A folder with what pip downloads for these requirements, each with its sha256, and what `unpack` makes of it.
fn downloaded(name: &str, requirements: &str, unpack: impl Fn(&Path)) -> PathBuf {
    kept(name, requirements, |folder| {
        let list = folder.join("requirements.txt");
        fs::write(&list, requirements).expect("writable");
        let python = Finder::from_env().python().expect("python3").path;
        let mut pip = Command::new(python);
        pip.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir", "--no-deps"]);
        pip.args(["--only-binary=:all:", "--require-hashes", "--requirement"]).arg(&list).arg("--dest").arg(folder);
        assert!(pip.status().expect("pip runs").success(), "{name} cannot be downloaded");
        unpack(folder);
    })
}

/// What an entry is given.
enum Arg {
    /// The bytes of a parameter; an empty struct is one byte.
    Bytes(Vec<u8>),
    /// Memory that is only read.
    In(Vec<u8>),
    /// Memory that is written.
    Out(Vec<u8>),
    /// A tensor map of the memory of an argument, by its number, in a parameter of so many bytes.
    Map(TensorMap, usize, usize),
}

impl Arg {
    fn ints(values: &[i32]) -> Arg {
        Arg::Bytes(bytes(values, |v| v.to_le_bytes()))
    }

    fn empty() -> Arg {
        Arg::Bytes(vec![0])
    }
}

fn bytes<T: Copy, const N: usize>(values: &[T], of: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    values.iter().flat_map(|v| of(*v)).collect()
}

/// The values in bytes.
fn values<T, const N: usize>(bytes: &[u8], of: impl Fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks().0.iter().map(|b| of(*b)).collect()
}

/// A launch that is run again and again.
struct Program<'a> {
    module: &'a Module,
    entry: &'a str,
    grid: [u32; 3],
    block: u32,
    cluster: Option<[u32; 3]>,
    smem: u32,
    cores: TensorCores,
    args: Vec<Arg>,
}

impl<'a> Program<'a> {
    fn new(module: &'a Module, entry: &'a str, grid: u32, block: u32, args: Vec<Arg>) -> Program<'a> {
        let cores = TensorCores::Fast;
        Program { module, entry, grid: [grid, 1, 1], block, cluster: None, smem: 0, cores, args }
    }

    /// What comes of it, and what is in its memory afterwards.
    fn run(&self, modes: Modes, seed: u64) -> (Report, Vec<Vec<u8>>) {
        let Program { module, entry, grid, block, cluster, smem, cores, args } = self;
        let mut launch = module.launch(entry).unwrap_or_else(|e| panic!("{e}"));
        launch = launch.grid(grid).block(&[*block]).dynamic_smem(*smem).modes(modes).seed(seed).tensor_cores(*cores);
        launch = launch.step_budget(2_000_000_000);
        if let Some(cluster) = cluster {
            launch = launch.cluster(cluster);
        }
        let mut outs: Vec<Vec<u8>> =
            args.iter().map(|a| if let Arg::Out(b) = a { b.clone() } else { vec![] }).collect();
        // Memory of arguments is numbered in their order, whether maps or pointers name it.
        let is_memory = |arg: &Arg| matches!(arg, Arg::In(_) | Arg::Out(_));
        let number = |of: usize| args[..of].iter().filter(|a| is_memory(a)).count();
        let module_entry = module.entries().flatten().find(|e| e.name == *entry).expect("it is there");
        for ((i, arg), out) in args.iter().enumerate().zip(&mut outs) {
            launch = match arg {
                Arg::Bytes(bytes) => launch.arg_bytes(bytes),
                Arg::In(bytes) => launch.arg_buffer(Buffer::new(format!("argument {i}"), Data::Read(bytes))),
                Arg::Out(_) => launch.arg_buffer(Buffer::new(format!("argument {i}"), Data::Write(out))),
                Arg::Map(spec, of, size) => {
                    let at = module_entry.params[i].offset as usize;
                    launch.arg_bytes(&vec![0; *size]).tensor_map(at, number(*of), 0, *spec)
                }
            };
        }
        let report = launch.run().unwrap_or_else(|e| panic!("{entry}: {e}"));
        (report, outs)
    }

    /// In every mode, with asynchronous work as late as it may be, at once, and at moments that seeds draw: silent, and its memory as
    /// `is_right` wants it, which says what is wrong.
    fn is_right(&self, is_right: impl Fn(&[Vec<u8>]) -> Result<(), String>) {
        for modes in [Modes::PLAIN, Modes { bounds: true, init: true, races: false }, Modes::ALL] {
            for seed in 0..if modes == Modes::PLAIN { 2 } else { 4 } {
                let (report, outs) = self.run(modes, seed);
                assert!(report.is_clean(), "{}, {modes:?}, seed {seed}\n{report}", self.entry);
                if let Err(wrong) = is_right(&outs) {
                    panic!("{}, {modes:?}, seed {seed}: {wrong}", self.entry);
                }
            }
        }
    }
}

/// Numbers that look random, from a seed.
struct Draws(u64);

impl Draws {
    /// SplitMix64: Steele, Lea, Flood, "Fast Splittable Pseudorandom Number Generators", 2014.
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Small integers, whose sums and products are exact.
    fn small(&mut self) -> i32 {
        (self.next() % 7) as i32 - 3
    }
}
