//! The ladder of SGEMM_CUDA (github.com/siboehm/SGEMM_CUDA), from a folder with its files: C = alpha * A @ B + beta * C in f32.

use cutemplate::cuda::{Cuda, Entry};
use cutemplate::dtype::DType;
use cutemplate::plan::ParamType;
use cutemplate::view::{Access, Arguments, HostMemory};

use super::declared::{self, Own, args, kernel_of, kernels, read, run, write};
use super::kept;

/// A rung: its file with the sha256, the kernel, and how it is launched.
struct Rung {
    file: &'static str,
    sha256: &'static str,
    kernel: &'static str,
    block: [u32; 3],
    /// Rows and columns of C that a block computes.
    tile: [u32; 2],
    /// Blocks along x are those of rows; of columns otherwise.
    rows_along_x: bool,
    /// Whether it computes parts of tiles.
    guards: bool,
}

macro_rules! rungs {
    ($($file:literal $sha256:literal $kernel:literal [$($block:literal),*] [$($tile:literal),*] $rows:literal $guards:literal;)*) => {
        &[$(Rung {
            file: $file, sha256: $sha256, kernel: $kernel, block: [$($block),*], tile: [$($tile),*], rows_along_x: $rows, guards: $guards,
        }),*]
    };
}

#[rustfmt::skip]
const RUNGS: &[Rung] = rungs! {
    "1_naive" "19dea69f082f74f0de397093da92e1b8ac18a1c41e02dd5a32ab5b29f7623a59"
        "sgemm_naive" [32, 32, 1] [32, 32] true true;
    "2_kernel_global_mem_coalesce" "c7e9e16fbebd30c7334870edf4c1e8a335dbf179ba6adb3dd147c35ce398a776"
        "sgemm_global_mem_coalesce<32>" [1024, 1, 1] [32, 32] true true;
    "3_kernel_shared_mem_blocking" "1695807135988cda58a431ddf2379b5a6eda6b33d4fbc719a95780e9c43eb50d"
        "sgemm_shared_mem_block<32>" [1024, 1, 1] [32, 32] true false;
    "4_kernel_1D_blocktiling" "43780ac4a0527cdbc31e8e4da79761f1f549bf3fae6e9ea3777a7e45310f04db"
        "sgemm1DBlocktiling<64, 64, 8, 8>" [512, 1, 1] [64, 64] false false;
    "5_kernel_2D_blocktiling" "cefa41dd81d83f0b07756ac8bc213aab220d0aceed161f23842fee70dbb9d7b2"
        "sgemm2DBlocktiling<128, 128, 8, 8, 8>" [256, 1, 1] [128, 128] false false;
    "6_kernel_vectorize" "c845a5e90ffc3695c13155d1c2f701e461d4173d1b4e9f9615043cbabbfdb8c8"
        "sgemmVectorize<128, 128, 8, 8, 8>" [256, 1, 1] [128, 128] false false;
    "7_kernel_resolve_bank_conflicts" "92a0712fd144c6ed4b096a1069716e00d9fa266cdca3375c99b14352609f542f"
        "sgemmResolveBankConflicts<128, 128, 8, 8, 8>" [256, 1, 1] [128, 128] false false;
    "8_kernel_bank_extra_col" "f4dfaa3516cb8fc969c526dcfeaf65e4053ead9b671f3c84f85bf39f54d8169a"
        "sgemmResolveBankExtraCol<128, 128, 8, 8, 8>" [256, 1, 1] [128, 128] false false;
    "9_kernel_autotuned" "695edc190d9c226b82ce4fcdd7ac6875bac699faccd815643e030646fa8ef398"
        "sgemmAutotuned<128, 128, 16, 8, 8>" [256, 1, 1] [128, 128] false false;
    "10_kernel_warptiling" "6fa8ee47cd61200de30745485b2727f526a64baf10b9f2066e8e37857c016cdb"
        "sgemmWarptiling<128, 128, 16, 64, 64, 4, 8, 4, 128>" [128, 1, 1] [128, 128] false false;
    "11_kernel_double_buffering" "7e065826c49fc85c0e0d6bfedbd28619b2a1b0125a061dcb4fc2d62d2212cb07"
        "sgemmDoubleBuffering<128, 256, 16, 128, 32, 1, 8, 8, 256>" [256, 1, 1] [128, 256] false false;
    "12_kernel_double_buffering" "e57060e743816fe1487ed2e4d519e31db06ec7b4fa652ab2a57863594ae32695"
        "runSgemmDoubleBuffering2<128, 128, 16, 64, 64, 4, 8, 4, 128>" [128, 1, 1] [128, 128] false false;
};

/// The first rung that moves vectors to shared memory.
const VECTORS: &str = "6_kernel_vectorize";

impl Rung {
    fn entry(&self) -> Entry {
        let [rows, columns] = self.tile;
        let of_rows = format!("ceil_div(M, {rows})");
        let of_columns = format!("ceil_div(N, {columns})");
        let grid = if self.rows_along_x { [&*of_rows, &*of_columns, "1"] } else { [&*of_columns, &*of_rows, "1"] };
        Entry::new(self.kernel)
            .extent("M", "C.0")
            .extent("N", "C.1")
            .extent("K", "A.1")
            .scalar("alpha", ParamType::F32)
            .operand("A", DType::F32, Access::Read, "(M,K):(K,1)")
            .aligned(16)
            .operand("B", DType::F32, Access::Read, "(K,N):(N,1)")
            .aligned(16)
            .scalar("beta", ParamType::F32)
            .operand("C", DType::F32, Access::ReadWrite, "(M,N):(N,1)")
            .aligned(16)
            .grid3(grid)
            .block3(self.block)
            .named("rung")
    }
}

/// `size` numbers from -3 to 3, exact sums of whose products a float holds.
fn integers(size: [usize; 2], step: usize) -> Vec<f32> {
    (0..size[0] * size[1]).map(|i| (i * step % 7) as f32 - 3.0).collect()
}

fn given<'a>(a: &'a [f32], b: &'a [f32], c: &'a mut [f32], [m, n, k]: [usize; 3]) -> Arguments<'a, Own, HostMemory> {
    let shape = |rows: usize, columns: usize| [rows as i64, columns as i64];
    let of = args().scalar(2.0).read(read(a, &shape(m, k))).read(read(b, &shape(k, n)));
    of.scalar(-1.0).write(write(c, &shape(m, n)))
}

#[test]
#[ignore = "CUTEMPLATE_SGEMM_CUDA names a folder with SGEMM_CUDA's files; compiles them, for minutes"]
fn the_ladder_is_right() {
    // Their headers ask for cuBLAS's, which these kernels do not use.
    let headers = kept("no-cublas", "", |folder| std::fs::write(folder.join("cublas_v2.h"), "").expect("writable"));
    for rung in RUNGS {
        let file = format!("src/kernels/{}.cuh", rung.file);
        let text = declared::given("CUTEMPLATE_SGEMM_CUDA", &[(&file, rung.sha256)]).remove(0);
        let stem = format!("sgemm_{}", rung.file.to_lowercase());
        // Theirs includes `WARPSIZE` from the rung before.
        let text = if rung.file.starts_with("11") || rung.file.starts_with("12") {
            format!("const int WARPSIZE = 32;\n{text}")
        } else {
            text
        };
        let built = |text: String| kernels(&stem, Cuda::text(text).include_dir(&headers), [rung.entry()]);
        let [m, n, k] = if rung.guards { [70, 100, 33] } else { [128, 256, 32] };
        let (a, b) = (integers([m, k], 5), integers([k, n], 3));
        let before = integers([m, n], 4);
        let mut c = before.clone();
        // Arrays of floats need not begin where vectors of four may lie.
        if rung.file == VECTORS {
            let told = kernel_of(&built(text.clone()), "rung")
                .launch(given(&a, &b, &mut c, [m, n, k]))
                .expect_err(VECTORS)
                .to_string();
            assert!(told.contains("exec-misaligned") && told.contains("kernel_vectorize.cu:55"), "{told}");
        }
        let all = built(text.replace("__shared__ float", "__shared__ alignas(16) float"));
        c.clone_from(&before);
        run(&all, "rung", given(&a, &b, &mut c, [m, n, k]), |at| {
            let products = (0..k).map(|i| f64::from(a[at[0] * k + i]) * f64::from(b[i * n + at[1]]));
            (2.0 * products.sum::<f64>() - f64::from(before[at[0] * n + at[1]]), 0.0)
        });
    }
}
