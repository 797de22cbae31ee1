//! Products of warpgroups: every type, both majors, every swizzle, from shared memory and from registers, against plain sums.

use half::{bf16, f16};
use ptx_exec::FindingKind;
use ptx_exec::{Modes, Module, TensorCores};

use crate::hopper::{Case, case};

/// How a matrix lies: chunks of 16 bytes in a swizzle (1, 2, 4, 8), and whether M or N is contiguous.
#[derive(Clone, Copy, Debug)]
struct Lies {
    width: usize,
    mn: bool,
}

impl Lies {
    /// Bytes from one group to the next: leading, stride.
    fn offsets(self) -> [usize; 2] {
        match (self.mn, self.width) {
            (_, 1) => [128, 256],
            (false, w) => [16, 128 * w],
            (true, w) => [256 * w, 128 * w],
        }
    }

    /// The canonical layouts of CUTLASS, element by element.
    fn byte(self, row: usize, k: usize, size: usize) -> usize {
        let (t, w) = (16 / size, self.width);
        let [leading, stride] = self.offsets().map(|bytes| bytes / size);
        let element = match (self.mn, w) {
            (false, 1) => row % 8 * t + row / 8 * stride + k % t + k / t * leading,
            (false, _) => row % 8 * w * t + row / 8 * stride + k % t + k / t * t,
            (true, 1) => row % t + row / t * stride + k % 8 * t + k / 8 * leading,
            (true, _) => row % t + row / t % w * t + row / (t * w) * leading + k % 8 * w * t + k / 8 * stride,
        };
        let byte = element * size;
        byte ^ (byte >> 7 & (w - 1)) << 4
    }

    fn descriptor(self) -> u64 {
        let [leading, stride] = self.offsets().map(|bytes| bytes as u64 >> 4);
        let mode = match self.width {
            1 => 0,
            2 => 3,
            4 => 2,
            _ => 1_u64,
        };
        leading << 16 | stride << 32 | mode << 62
    }
}

#[derive(Clone, Copy, Debug)]
struct Product {
    n: usize,
    d: &'static str,
    a: &'static str,
    b: &'static str,
    lies: [Lies; 2],
    from_registers: bool,
    adds: bool,
    signs: [i32; 2],
    cores: TensorCores,
}

fn size(ty: &str) -> usize {
    match ty {
        "tf32" => 4,
        "f16" | "bf16" => 2,
        _ => 1,
    }
}

/// The bits of a small number.
fn bits(ty: &str, v: i32) -> u32 {
    let sign = u32::from(v < 0);
    match ty {
        "f16" => u32::from(f16::from_f32(v as f32).to_bits()),
        "bf16" => u32::from(bf16::from_f32(v as f32).to_bits()),
        "tf32" => (v as f32).to_bits(),
        "e4m3" => sign << 7 | [0, 0x38, 0x40][v.unsigned_abs() as usize],
        "e5m2" => sign << 7 | [0, 0x3c, 0x40][v.unsigned_abs() as usize],
        _ => u32::from(v as i8 as u8),
    }
}

/// Small numbers, different everywhere.
fn number(ty: &str, seed: usize, row: usize, k: usize) -> i32 {
    let v = ((seed + row * 7 + k * 13 + row * k) % 5) as i32 - 2;
    if ty == "u8" { v.abs() } else { v }
}

const B: usize = 8192;

impl Product {
    fn k(&self) -> usize {
        32 / size(self.a)
    }

    /// The bytes of shared memory, with B after A.
    fn image(&self) -> Vec<u8> {
        let mut image = vec![0; 49152];
        for (ty, rows, lies, start, seed) in [(self.a, 64, self.lies[0], 0, 1), (self.b, self.n, self.lies[1], B, 3)] {
            for row in 0..rows {
                for k in 0..self.k() {
                    let at = start + lies.byte(row, k, size(ty));
                    let value = bits(ty, number(ty, seed, row, k)).to_le_bytes();
                    image[at..at + size(ty)].copy_from_slice(&value[..size(ty)]);
                }
            }
        }
        image
    }

    /// A as registers, behind the image: four words of each thread.
    fn registers(&self) -> Vec<u8> {
        let size = size(self.a);
        let mut words = Vec::new();
        for i in 0..4 {
            for t in 0..128 {
                let row = t / 32 * 16 + t % 32 / 4 + 8 * (i % 2);
                let first = (4 * (t % 4) + 16 * (i / 2)) / size;
                for k in first..first + 4 / size {
                    words.extend(&bits(self.a, number(self.a, 1, row, k)).to_le_bytes()[..size]);
                }
            }
        }
        words
    }

    fn case(&self) -> Case {
        let (n, k) = (self.n, self.k());
        let registers = if self.d == "f16" { n / 4 } else { n / 2 };
        let three = match self.d {
            "s32" => 3,
            "f16" => 0x4200_4200,
            _ => 3.0_f32.to_bits(),
        };
        let mut body = String::new();
        for i in 0..96 {
            body += &format!("ld.global.u32 %r7, [%d5+{}];\nst.shared.u32 [%r5+{}], %r7;\n", i * 512, i * 512);
        }
        for i in 0..4 {
            body += &format!("ld.global.u32 %r{}, [%d5+{}];\n", 10 + i, 49152 + i * 512);
        }
        let of_d: Vec<String> = (0..registers).map(|i| format!("%w{i}")).collect();
        body = format!(".reg .b32 %w<130>;\n{body}");
        for d in &of_d {
            body += &format!("mov.b32 {d}, {three};\n");
        }
        let a = if self.from_registers { "{%r10, %r11, %r12, %r13}" } else { "%d8" };
        let tail = match (size(self.a), self.d) {
            (_, "s32") => String::new(),
            (2, _) => {
                let majors: Vec<String> = self.lies.iter().map(|l| u32::from(l.mn).to_string()).collect();
                let majors = if self.from_registers { &majors[1..] } else { &majors };
                format!(", {}, {}, {}", self.signs[0], self.signs[1], majors.join(", "))
            }
            _ => format!(", {}, {}", self.signs[0], self.signs[1]),
        };
        body += &format!(
            "fence.proxy.async;\nbar.sync 0;\ncvt.u64.u32 %d7, %r4;\nshr.u64 %d7, %d7, 4;\nor.b64 %d8, %d7, {:#x};\n\
             add.u64 %d9, %d7, {};\nor.b64 %d9, %d9, {:#x};\nsetp.ne.u32 %p4, {}, 0;\nwgmma.fence.sync.aligned;\n\
             wgmma.mma_async.sync.aligned.m64n{n}k{k}.{}.{}.{} {{{}}}, {a}, %d9, %p4{tail};\n\
             wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n",
            self.lies[0].descriptor(),
            B / 16,
            self.lies[1].descriptor(),
            u32::from(self.adds),
            self.d,
            self.a,
            self.b,
            of_d.join(", "),
        );
        for (i, d) in of_d.iter().enumerate() {
            body += &format!("st.global.b32 [%d4+{}], {d};\n", i * 512);
        }
        let input = [self.image(), self.registers()].concat();
        Case { threads: 128, out: registers * 512, input, cores: self.cores, profile: true, ..case(&body) }
    }

    fn expected(&self, row: usize, column: usize) -> i32 {
        let sum: i32 = (0..self.k()).map(|k| number(self.a, 1, row, k) * number(self.b, 3, column, k)).sum();
        sum * self.signs[0] * self.signs[1] + if self.adds { 3 } else { 0 }
    }

    fn check(&self, modes: Modes, seed: u64) {
        let (report, out) = self.case().run(modes, seed);
        assert!(report.is_clean(), "{self:?}: {report}");
        let flops = report.profile.expect("a profile").total("wgmma.mma_async").wgmma_flops;
        assert_eq!(flops as usize, 2 * 64 * self.n * self.k());
        for (at, word) in out.iter().enumerate() {
            let (i, t) = (at / 128, at % 128);
            let place = |i: usize| (t / 32 * 16 + t % 32 / 4 + 8 * (i / 2 % 2), i / 4 * 8 + 2 * (t % 4) + i % 2);
            let all: Vec<(f32, (usize, usize))> = match self.d {
                "f16" => (0..2)
                    .map(|e| {
                        let (row, column) = place(i % 2 * 2 + i / 2 * 4 + e);
                        (f16::from_bits((word >> (16 * e)) as u16).to_f32(), (row, column))
                    })
                    .collect(),
                "s32" => vec![(*word as i32 as f32, place(i))],
                _ => vec![(f32::from_bits(*word), place(i))],
            };
            for (value, (row, column)) in all {
                assert_eq!(value, self.expected(row, column) as f32, "{self:?} at ({row},{column})");
            }
        }
    }
}

const PLAIN: Lies = Lies { width: 8, mn: false };

fn product(n: usize, d: &'static str, a: &'static str, b: &'static str) -> Product {
    Product { n, d, a, b, lies: [PLAIN; 2], from_registers: false, adds: true, signs: [1, 1], cores: TensorCores::Fast }
}

const TYPES: [[&str; 3]; 12] = [
    ["f32", "f16", "f16"],
    ["f16", "f16", "f16"],
    ["f32", "bf16", "bf16"],
    ["f32", "tf32", "tf32"],
    ["f32", "e4m3", "e4m3"],
    ["f32", "e4m3", "e5m2"],
    ["f16", "e5m2", "e4m3"],
    ["f32", "e5m2", "e5m2"],
    ["s32", "s8", "s8"],
    ["s32", "u8", "u8"],
    ["s32", "s8", "u8"],
    ["s32", "u8", "s8"],
];

#[test]
fn products_of_all_types_are_right() {
    for (i, [d, a, b]) in TYPES.into_iter().enumerate() {
        for n in [8, 32, 176, 256] {
            for cores in [TensorCores::Fast, TensorCores::Hopper] {
                let of = Product { cores, ..product(n, d, a, b) };
                of.check(Modes::PLAIN, i as u64);
                Product { from_registers: true, adds: false, ..of }.check(Modes::PLAIN, i as u64 + 1);
            }
        }
        product(24, d, a, b).check(Modes::ALL, i as u64);
    }
}

#[test]
fn matrices_lie_as_their_descriptors_say() {
    let mut seed = 0;
    for (d, a) in [("f32", "f16"), ("f32", "bf16"), ("f32", "tf32"), ("s32", "s8")] {
        for width in [1, 2, 4, 8] {
            for majors in 0..4 {
                let lies = [majors & 1, majors >> 1].map(|mn| Lies { width, mn: mn == 1 });
                if majors != 0 && size(a) != 2 {
                    continue;
                }
                seed += 1;
                let of = Product { lies, signs: [-1, 1], ..product(72, d, a, a) };
                let of = if d == "s32" { Product { n: 80, signs: [1, 1], ..of } } else { of };
                of.check(Modes::PLAIN, seed);
                if width == 8 {
                    of.check(Modes::ALL, seed);
                    Product { from_registers: true, lies: [PLAIN, lies[1]], ..of }.check(Modes::PLAIN, seed);
                }
            }
        }
    }
}

/// The warps of one warpgroup fill two matrices, and multiply them.
pub(crate) fn filled(n: u32, fill: &str) -> Case {
    let d: Vec<String> = (0..n / 2).map(|i| format!("%f{i}")).collect();
    let zero: String = (0..n / 2).map(|i| format!("mov.f32 %f{i}, 0f00000000;\n")).collect();
    let out: String = (0..n / 2).map(|i| format!("st.global.f32 [%d4+{}], %f{i};\n", i * 512)).collect();
    let body = format!(
        "{fill}
fence.proxy.async.shared::cta;
bar.sync 0;
{zero}cvt.u64.u32 %d7, %r4;
shr.u64 %d7, %d7, 4;
or.b64 %d7, %d7, 0x0000002000080000;
add.u64 %d8, %d7, 128;
setp.ne.u32 %p4, %r4, 0;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n{n}k16.f32.f16.f16 {{{}}}, %d7, %d8, %p4, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
{out}",
        d.join(", ")
    );
    Case { threads: 128, out: n as usize * 256, ..case(&body) }
}

/// Ones everywhere: 6144 bytes by 128 threads.
pub(crate) fn ones() -> String {
    (0..12).map(|i| format!("st.shared.u32 [%r5+{}], 0x3c003c00;\n", i * 512)).collect()
}

#[test]
fn warpgroups_multiply_and_their_waits_are_needed() {
    use FindingKind::{Asynchrony, Race};
    let case = filled(8, &ones());
    assert!(case.silent().iter().all(|v| f32::from_bits(*v) == 16.0));
    case.with("fence.proxy.async.shared::cta;", "").finds(Race, "fence.proxy.async");
    case.with("bar.sync 0;", "").finds(Race, "");
    case.with("wgmma.fence.sync.aligned;", "").finds(Asynchrony, "wgmma.fence");
    case.with("wgmma.commit_group.sync.aligned;", "").finds(Asynchrony, "wait_group");
    case.with("wgmma.wait_group.sync.aligned 0;", "").finds(Asynchrony, "wait_group");
    case.with("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 1;").finds(Asynchrony, "is touched");
    let early =
        case.with("wgmma.wait_group.sync.aligned 0;", "st.shared.u32 [%r5], 0;\nwgmma.wait_group.sync.aligned 0;");
    early.finds(Race, "");
    // A group belongs to the warpgroup: after one warp's wait, the other warps have read too.
    case.with("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group.sync.aligned 0;\nst.shared.u32 [%r5], 0;").silent();
    let three = case.with("wgmma.fence", "setp.ge.u32 %p5, %r1, 96;\n@%p5 exit;\nwgmma.fence");
    three.finds(FindingKind::Deadlock, "without warp 3, which has committed 0 and exited");
    Case { threads: 160, ..case.clone() }.finds(Asynchrony, "a warpgroup is four whole warps");
    case.with("add.u64 %d8, %d7, 128", "add.u64 %d8, %d7, 3060").finds(FindingKind::OutOfBounds, "matrix descriptor");
    let (report, _) =
        case.with("st.shared.u32 [%r5+0], 0x3c003c00;\n", "").run(Modes { bounds: false, init: true, races: false }, 0);
    assert_eq!(report.findings.first().map(|f| f.kind), Some(FindingKind::Uninitialized));
}

/// `cargo test --release --test exec_ptx -- --ignored --nocapture speed`
#[test]
#[ignore = "measures times, in a release build"]
fn speed_of_warpgroups() {
    for (shape, types, bytes) in [
        ("k16", "f32.f16.f16", ", 1, 1, 0, 0"),
        ("k16", "f32.bf16.bf16", ", 1, 1, 0, 0"),
        ("k8", "f32.tf32.tf32", ", 1, 1"),
        ("k32", "f32.e4m3.e4m3", ", 1, 1"),
    ] {
        let case = filled(128, &ones()).with("0x0000002000080000", "0x0000001000080000");
        let first = case.body.find("wgmma.fence").expect("a fence");
        let last = case.body.find("wgmma.wait_group").expect("a wait");
        let text = &case.body[first..last];
        let text =
            text.replace("k16.f32.f16.f16", &format!("{shape}.{types}")).replace(", 1, 1, 0, 0;", &format!("{bytes};"));
        let text = format!(
            "mov.u32 %r30, 0;\nLOOP:\n{text}wgmma.wait_group.sync.aligned 0;\nadd.u32 %r30, %r30, 1;\nsetp.lt.u32 %p5, %r30, 2000;\n@%p5 bra LOOP;\n"
        );
        let case = Case { body: format!("{}{text}{}", &case.body[..first], &case.body[last..]), ..case };
        let k: f64 = shape[1..].parse().expect("a number");
        for exact in [false, true] {
            let start = crate::bench::seconds();
            let module = Module::parse(case.text()).expect("PTX");
            let mut out = vec![0_u8; case.out];
            let launch =
                module.launch("k").expect("an entry").block(&[128]).output("out", &mut out).input("in", &case.input);
            let cores = if exact { TensorCores::Hopper } else { TensorCores::Fast };
            let launch = launch.arg_tensor_map(1, 0, case.spec).tensor_cores(cores).workers(1);
            assert!(launch.run().expect("it runs").is_clean());
            let seconds = crate::bench::seconds() - start;
            println!("wgmma {types} {cores:?}: {:.1} GFLOP/s", 2.0 * 64.0 * 128.0 * k * 2000.0 / seconds / 1e9);
        }
    }
}
