//! CUTLASS's tutorials, out of the wheel that its headers come from.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use cutemplate::exec::ptx::{MapSwizzle, Modes, Module, TensorCores, TensorMap, Ty};
use cutemplate::exec::{Finding, FindingKind};
use cutlass_sys::{Component, Finder};
use half::f16;

use super::{Arg, Draws, Program, bytes, compiled, downloaded, values};

const INSIDE: &str = "cutlass_library/source/examples/cute/tutorial/";

/// The folder of the tutorials.
fn tutorials() -> PathBuf {
    let (wheel, file) = Component::Cutlass.files().expect("it is for every platform")[0];
    let requirement = format!("{}=={} --hash=sha256:{}\n", wheel.name, wheel.version, file.sha256);
    let unpack = |folder: &Path| {
        let files = fs::read_dir(folder).expect("readable").flatten().map(|e| e.path());
        let wheel = files.into_iter().find(|f| f.extension().is_some_and(|e| e == "whl")).expect("a wheel");
        let python = Finder::from_env().python().expect("python3").path;
        let status = Command::new(python).args(["-m", "zipfile", "-e"]).arg(&wheel).arg(folder).status();
        assert!(status.expect("python3 runs").success(), "the wheel cannot be unpacked");
    };
    downloaded("tutorials", &requirement, unpack).join(INSIDE)
}

fn text(of: &str) -> String {
    fs::read_to_string(tutorials().join(of)).unwrap_or_else(|e| panic!("{of}: {e}"))
}

/// The PTX of a tutorial whose text is changed at places that it has once.
fn changed(of: &str, arch: &str, changes: &[(&str, &str)]) -> Module {
    let mut text = text(of);
    for (from, to) in changes {
        assert_eq!(text.matches(from).count(), 1, "{of} has another text: {from}");
        text = text.replace(from, to);
    }
    let name = Path::new(of).file_stem().expect("a name").to_string_lossy().into_owned();
    compiled(&name, &text, arch)
}

/// How A (m x k) and B (n x k) lie: m and n contiguous, or k.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Major {
    Mn,
    K,
}

/// The entry for these majors and numbers, by its mangled name. Where k is contiguous, a run-time stride comes before a static one, or,
/// where tensor maps stand for them, the major of `wgmma` is 0.
fn entry(module: &Module, major: Major, number: Number) -> String {
    let names: Vec<String> = module.entries().map(|e| e.expect("it is run here").name).collect();
    let fits = |name: &&String| {
        let is_k = name.contains("IJiNS") || name.contains("MajorE0");
        let is_half = name.contains("half_t");
        name.contains("gemm_device") && is_half == (number == Number::F16) && is_k == (major == Major::K)
    };
    names.iter().find(fits).unwrap_or_else(|| panic!("{major:?}: {names:#?}")).clone()
}

/// D = alpha A B' + beta C of integers so small that every sum is exact.
struct Product {
    extents: [usize; 3],
    a: Vec<i32>,
    b: Vec<i32>,
    c: Vec<i32>,
    d: Vec<i32>,
}

const ALPHA: i32 = 2;
const BETA: i32 = 3;

impl Product {
    fn new(extents: [usize; 3], major: Major) -> Product {
        let [m, n, k] = extents;
        let mut draws = Draws(m as u64 + 7 * k as u64);
        let mut draw = |count: usize| (0..count).map(|_| draws.small().signum()).collect::<Vec<i32>>();
        let (a, b, c) = (draw(m * k), draw(n * k), draw(m * n));
        let at = |row: usize, column: usize, rows: usize| match major {
            Major::Mn => row + column * rows,
            Major::K => row * k + column,
        };
        let sum = |i: usize, j: usize| (0..k).map(|l| a[at(i, l, m)] * b[at(j, l, n)]).sum::<i32>();
        let d = (0..m * n).map(|at| ALPHA * sum(at % m, at / m) + BETA * c[at]).collect();
        Product { extents, a, b, c, d }
    }

    /// Leading dimensions of A, B and C.
    fn leading(&self, major: Major) -> [i32; 3] {
        let [m, n, k] = self.extents.map(|e| e as i32);
        if major == Major::Mn { [m, n, m] } else { [k, k, m] }
    }
}

/// Numbers in memory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    F32,
    F16,
}

impl Number {
    fn of(self, numbers: &[i32]) -> Vec<u8> {
        match self {
            Number::F32 => bytes(numbers, |v| (v as f32).to_le_bytes()),
            Number::F16 => bytes(numbers, |v| f16::from_f32(v as f32).to_le_bytes()),
        }
    }

    fn read(self, from: &[u8]) -> Vec<f32> {
        match self {
            Number::F32 => values(from, f32::from_le_bytes),
            Number::F16 => values(from, |b| f16::from_le_bytes(b).to_f32()),
        }
    }
}

fn compare(found: &[f32], expected: &[i32]) -> Result<(), String> {
    match found.iter().zip(expected).position(|(f, e)| *f != *e as f32) {
        None => Ok(()),
        Some(at) => Err(format!("element {at} is {}, and has to be {}", found[at], expected[at])),
    }
}

/// The launch of `gemm_device`: after each of the pointers follow a stride and so many structs without contents.
fn launch<'a>(
    module: &'a Module,
    entry: &'a str,
    product: &Product,
    (number, major): (Number, Major),
    empty: [usize; 3],
) -> Program<'a> {
    let lead = product.leading(major);
    let mut args = vec![Arg::ints(&product.extents.map(|e| e as i32)), Arg::empty()];
    let memory = [Arg::In(number.of(&product.a)), Arg::In(number.of(&product.b)), Arg::Out(number.of(&product.c))];
    for ((memory, lead), empty) in memory.into_iter().zip(lead).zip(empty) {
        args.extend([memory, Arg::ints(&[lead])]);
        args.extend((0..empty).map(|_| Arg::empty()));
    }
    args.extend([ALPHA, BETA].map(|v| Arg::Bytes(number.of(&[v]))));
    let [m, n, _] = product.extents.map(|e| e.div_ceil(128) as u32);
    Program { grid: [m, n, 1], ..Program::new(module, entry, 1, 256, args) }
}

fn is_right(program: &Program<'_>, number: Number, product: &Product) {
    let d = |outs: &[Vec<u8>]| outs.iter().find(|o| !o.is_empty()).map(|o| number.read(o)).expect("C");
    program.is_right(|outs| compare(&d(outs), &product.d));
}

#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn products_of_sgemm_1_and_2_are_right_and_silent() {
    for name in ["sgemm_1.cu", "sgemm_2.cu"] {
        let module = changed(name, "sm_80", &[]);
        for major in [Major::Mn, Major::K] {
            let entry = entry(&module, major, Number::F32);
            let product = Product::new([256, 128, 40], major);
            is_right(&launch(&module, &entry, &product, (Number::F32, major), [2; 3]), Number::F32, &product);
        }
    }
}

/// `cp.async` in three stages, `ldmatrix` and `mma.sync`. The last groups are never waited for, and nobody reads what they bring.
#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn products_of_sgemm_sm80_are_right_and_silent() {
    // Its `main` has halves; the text is for floats, too.
    let floats = ["A", "B", "C", "I"].map(|t| [format!("using T{t} = cute::half_t;"), format!("using T{t} = float;")]);
    let floats: Vec<(&str, &str)> = floats.iter().map(|[from, to]| (&**from, &**to)).collect();
    for (number, major, block, smem, k) in [
        (Number::F32, Major::Mn, 256, 3 * 8 * 2 * 128 * 4, 56),
        (Number::F32, Major::K, 256, 3 * 8 * 2 * 129 * 4, 56),
        (Number::F16, Major::K, 128, 3 * 64 * 2 * 128 * 2, 320),
    ] {
        let module = changed("sgemm_sm80.cu", "sm_80", if number == Number::F32 { &floats } else { &[] });
        let entry = entry(&module, major, number);
        let product = Product::new([256, 128, k], major);
        let program = launch(&module, &entry, &product, (number, major), [3, 3, 2]);
        is_right(&Program { block, smem, ..program }, number, &product);
    }
}

/// A tiled product of warpgroups holds whether it adds to D.
fn accumulates() -> Arg {
    Arg::ints(&[1, 0])
}

fn sm90<'a>(module: &'a Module, entry: &'a str, product: &Product, major: Major, cores: TensorCores) -> Program<'a> {
    let mut program = launch(module, entry, product, (Number::F16, major), [2, 2, 1]);
    program.args[12] = accumulates();
    Program { block: 128, smem: 3 * 64 * 2 * 128 * 2, cores, ..program }
}

/// The text waits for its own `cp.async` alone and then multiplies what all threads have copied: neither a barrier nor a proxy fence
/// is between the two. With both in it, the same text is silent.
#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn wgmma_sm90_lacks_a_barrier_and_a_proxy_fence() {
    const WAIT: &str = "    cp_async_wait<0>();\n";
    let fenced =
        format!("{WAIT}    asm volatile(\"fence.proxy.async.shared::cta;\" ::: \"memory\");\n    __syncthreads();\n");
    let [found, right] =
        [None, Some((WAIT, &*fenced))].map(|change| changed("hopper/wgmma_sm90.cu", "sm_90a", change.as_slice()));
    for major in [Major::Mn, Major::K] {
        let product = Product::new([256, 128, 320], major);
        let entry = entry(&found, major, Number::F16);
        for seed in 0..4 {
            let modes = Modes { races: true, ..Modes::PLAIN };
            let (report, _) = sm90(&found, &entry, &product, major, TensorCores::Fast).run(modes, seed);
            assert!(!report.is_clean());
            assert!(report.findings.iter().all(|f| f.kind == FindingKind::Race), "{report}");
        }
        for cores in [TensorCores::Fast, TensorCores::Hopper] {
            is_right(&sm90(&right, &entry, &product, major, cores), Number::F16, &product);
        }
    }
}

/// The text issues copies behind the last tile, which nobody waits for before the block exits: NVIDIA/cutlass#2944, where later
/// versions ask whether there is another tile.
#[test]
#[ignore = "fetches and compiles programs of others, for minutes"]
fn wgmma_tma_sm90_exits_with_copies_in_flight() {
    const ISSUE: &str = "    if ((warp_idx == 0) && lane_predicate)\n    {\n      int pipe = write_state.index();\n";
    let guarded = ISSUE.replace("lane_predicate)", "lane_predicate && k_tile_count > 0)");
    let change = Some((ISSUE, &*guarded));
    let [found, right] = [None, change].map(|change| changed("hopper/wgmma_tma_sm90.cu", "sm_90a", change.as_slice()));
    for major in [Major::Mn, Major::K] {
        let product = Product::new([256, 128, 320], major);
        let entry = entry(&found, major, Number::F16);
        let (report, _) = with_maps(&found, &entry, &product, major, TensorCores::Fast).run(Modes::ALL, 0);
        let in_flight = |f: &Finding| f.kind == FindingKind::Asynchrony && f.detail.contains("all exited");
        assert!(report.findings.iter().any(in_flight), "{report}");
        // The barriers of these copies miss their bytes at the end.
        assert!(
            report.findings.iter().all(|f| in_flight(f) || f.detail.contains("missing or surplus bytes")),
            "{report}"
        );
        for cores in [TensorCores::Fast, TensorCores::Hopper] {
            is_right(&with_maps(&right, &entry, &product, major, cores), Number::F16, &product);
        }
    }
}

/// The same with tensor maps in place of strides: tiles of 128 x 64 in rows of 128 bytes, exchanged. Where k is contiguous one copy
/// brings a tile; where m is, one brings as much as is contiguous in shared memory, 64 x 8.
fn with_maps<'a>(
    module: &'a Module,
    entry: &'a str,
    product: &Product,
    major: Major,
    cores: TensorCores,
) -> Program<'a> {
    let [m, n, k] = product.extents.map(|e| e as u64);
    let map = |rows: u64| {
        let (dims, tile) = if major == Major::Mn { ([rows, k], [64, 8]) } else { ([k, rows], [64, 128]) };
        TensorMap::new(Ty::F16, &dims, &[2 * dims[0]], &tile).swizzle(MapSwizzle::B128)
    };
    let size = module.entries().flatten().find(|e| e.name == entry).expect("it is there").params[3].bytes as usize;
    let memory = |numbers: &[i32]| Arg::In(Number::F16.of(numbers));
    let mut args = vec![Arg::ints(&product.extents.map(|e| e as i32)), Arg::empty()];
    args.extend([memory(&product.a), Arg::Map(map(m), 2, size), memory(&product.b), Arg::Map(map(n), 4, size)]);
    args.extend([Arg::Out(Number::F16.of(&product.c)), Arg::ints(&[m as i32]), accumulates()]);
    args.extend([ALPHA, BETA].map(|v| Arg::Bytes(Number::F16.of(&[v]))));
    let grid = [m.div_ceil(128) as u32, n.div_ceil(128) as u32, 1];
    // Three stages, and two barriers for each.
    let smem = 3 * 64 * 2 * 128 * 2 + 6 * 8;
    let program = Program::new(module, entry, 1, 128, args);
    Program { grid, cluster: Some([2, 1, 1]), smem: smem + 80, cores, ..program }
}
