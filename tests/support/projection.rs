//! Large products of integers, verified element by element in time proportional to the matrices (Freivalds, "Probabilistic
//! machines can use less running time", IFIP Congress 1977).

use std::sync::atomic::{AtomicU64, Ordering};

use cutemplate::verify::Tensor;

use crate::kernels::Random;

/// A prime: a row of D that is wrong looks right for one of so many vectors.
const PRIME: i128 = (1 << 61) - 1;

/// Every integer up to here is an f32.
const EXACT: f32 = 16_777_216.0;

/// `D = alpha * A @ B + beta * C` of integers, times a random vector: one number for each row.
#[derive(Debug)]
pub(crate) struct Projection {
    vector: Vec<i64>,
    rows: Vec<i128>,
}

/// `f` of each row, on all processors.
fn of_rows(rows: u64, f: impl Fn(u64) -> i128 + Sync) -> Vec<i128> {
    const CHUNK: usize = 64;
    let mut all = vec![0; rows as usize];
    let next = AtomicU64::new(0);
    let chunks: Vec<std::sync::Mutex<&mut [i128]>> = all.chunks_mut(CHUNK).map(std::sync::Mutex::new).collect();
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let chunk = next.fetch_add(1, Ordering::Relaxed) as usize;
                    let Some(results) = chunks.get(chunk) else { return };
                    let mut results = results.lock().expect("one thread has a chunk");
                    for (row, result) in (chunk * CHUNK..).zip(results.iter_mut()) {
                        *result = f(row as u64);
                    }
                }
            });
        }
    });
    drop(chunks);
    all
}

/// A row of integers times a vector.
fn dot(row: &[f32], vector: &[i64]) -> i128 {
    // Up to 2^20 products below 2^24 * 2^61.
    let sum: i128 = row.iter().zip(vector).map(|(x, v)| i128::from(*x as i64) * i128::from(*v)).sum();
    sum.rem_euclid(PRIME)
}

fn row(tensor: &Tensor, row: u64) -> &[f32] {
    tensor.row(row).expect("rows are contiguous")
}

impl Projection {
    /// Of row-major matrices of integers.
    pub(crate) fn new([a, b, c]: [&Tensor; 3], [alpha, beta]: [i64; 2], seed: u64) -> Projection {
        let random = &mut Random::new(70, seed);
        let vector: Vec<i64> = (0..b.cols()).map(|_| (i128::from(random.word()) % PRIME) as i64).collect();
        let of_b: Vec<i64> = of_rows(b.rows(), |k| dot(row(b, k), &vector)).into_iter().map(|x| x as i64).collect();
        let rows = of_rows(a.rows(), |m| {
            let product = dot(row(a, m), &of_b);
            let added = dot(row(c, m), &vector);
            (i128::from(alpha) * product + i128::from(beta) * added).rem_euclid(PRIME)
        });
        Projection { vector, rows }
    }

    /// The rows of D that are wrong.
    pub(crate) fn wrong_rows(&self, d: &Tensor) -> Vec<u64> {
        let integer = |x: &f32| x.fract() == 0.0 && x.abs() <= EXACT && x.to_bits() != (-0.0_f32).to_bits();
        let found = of_rows(d.rows(), |m| match row(d, m) {
            elements if elements.iter().all(integer) => dot(elements, &self.vector),
            _ => -1,
        });
        (0..).zip(found.iter().zip(&self.rows)).filter(|(_, (f, e))| f != e).map(|(row, _)| row).collect()
    }
}
