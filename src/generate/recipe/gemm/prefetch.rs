//! Prefetch: the epilogue inputs of a tile are read during its mainloop.

use super::budget::Needs;
use super::kept;
use super::tilings::parts_of_tile;
use crate::plan::{Groups, ModeStride, Operand};
use crate::tiling::SmemTensor;

/// Bytes of a register.
const WORD: u64 = 4;

/// Registers of a thread that an epilogue computes in, where no tile is kept.
const COMPUTES: u64 = 16;

/// Registers of a thread that knows which k-tiles of a tile are its own, where CTAs share tiles: nvcc 13.0 spilled 24 bytes of 96
/// accumulators and 96 words that wait.
const SHARES: u64 = 16;

/// The same of E, for its addresses: nvcc 13.0 spilled 4 bytes of 88 accumulators and 88 words that wait, where CTAs share tiles.
const OF_E: u64 = 8;

/// The most tensors whose addresses fit into registers during the mainloop.
const TENSORS: usize = 2;

/// Registers per thread that prefetch one slice of each of the epilogue inputs; none disables prefetch.
///
/// If a tile is kept, prefetched inputs reuse the registers of its stored slices; otherwise they lie beside the
/// accumulators. Without registers for all of them nothing is prefetched: the rest would be computed a few elements at
/// a time. Ping-pong does not prefetch: another tile is multiplied while this one's inputs are read.
pub(super) fn registers(needs: &Needs<'_>, given: Option<u32>, keeps: bool) -> Vec<u64> {
    let Some(staged) = needs.tiling.smem("D") else { return Vec::new() };
    let parts = u64::from(parts_of_tile(needs.tiling, staged)).max(1);
    let of_e = OF_E * (needs.recipe.epilogue.outputs() as u64 - 1);
    let besides = kept::BESIDES + COMPUTES + of_e + if needs.tiling.streams_k() { SHARES } else { 0 };
    let beside = kept::most(given).saturating_sub(needs.held() + besides);
    let room = if keeps { kept::registers(needs) } else { beside } / parts;
    let words: Vec<u64> = needs.reads.iter().map(|operand| words(needs, operand, staged)).collect();
    let is_together = needs.tiling.teams() == 1 && needs.tiling.splits() == 1 && needs.recipe.groups == Groups::None;
    // A quantised tile is read as a whole, and pairs two columns at a time.
    let is_together = is_together && needs.recipe.scale_d.is_none() && !needs.recipe.scatter && !needs.recipe.pairs;
    let have_addresses = needs.reads.len() <= TENSORS && !needs.reads.iter().any(is_strided);
    if is_together && have_addresses && words.iter().sum::<u64>() <= room { words } else { Vec::new() }
}

/// Whether each element of a row has an address of its own.
pub(super) fn is_strided(operand: &Operand) -> bool {
    !matches!(operand.strides.get(1), Some(ModeStride::Unit | ModeStride::Broadcast))
}

/// Registers for a thread's elements of a slice. A mode with stride 0 takes one. A warpgroup has 64 rows: a thread has
/// two of them, and a quarter of their columns.
fn words(needs: &Needs<'_>, operand: &Operand, staged: &SmemTensor) -> u64 {
    let [rows, columns, _] = staged.extents().map(i64::unsigned_abs);
    let warpgroups = u64::from(needs.tiling.threads_of_tile() / 128).max(1);
    let of_thread = [2 * rows / (64 * warpgroups), columns / 4];
    let distinct = |(mode, count): (usize, u64)| match operand.strides.get(mode) {
        Some(ModeStride::Broadcast) => 1,
        _ => count,
    };
    let elements: u64 = of_thread.into_iter().enumerate().map(distinct).product();
    (elements * operand.dtype.bytes().0).div_ceil(WORD)
}

#[cfg(test)]
mod tests {
    use crate::arch::{Arch, Targets};
    use crate::recipe::{Gemm, Recipe};
    use crate::settings::Settings;

    /// The words of a slice that a plan says wait, if any do.
    fn words(settings: &str) -> Option<u64> {
        let recipe = Gemm::from_settings(&Settings::parse_lines(settings)).expect("settings");
        let plan = recipe.plan(&Targets::new([Arch::Sm90a]).expect("one")).expect("a recipe");
        let fact = plan
            .text_on((9, 0))
            .expect("a text")
            .facts()
            .iter()
            .find(|fact| fact.name == "registers")
            .expect("a budget");
        fact.value.split_once(" words of prefetched inputs")?.0.rsplit(' ').next()?.parse().ok()
    }

    #[test]
    fn what_there_are_registers_for_is_read_ahead() {
        let (c, bias) = ("epilogue=|a, b| a + b", "epilogue=|a, b, c| gelu(a + c)\naux=f16:(0,1)");
        // 32 elements of a part for each thread, of two rows and 16 columns; where a tile is kept, and where none is.
        assert_eq!([words(c), words(bias)], [Some(16), Some(8)]);
        assert_eq!(words("epilogue=|a, b, c| a + c\naux=f32:(1,0)"), Some(2));
        assert_eq!(
            words("tile=64x128x64\nstages=8\ncluster=1x1\nepilogue=|a, b, c| a + b + c\naux=f16:(0,1)"),
            Some(24)
        );
        assert_eq!(words("epilogue=relu(a)"), None, "nothing goes with D");
        assert_eq!(
            words(&format!("{c} + 0 * c\naux=f16:(0,1)").replace("|a, b|", "|a, b, c|")),
            None,
            "too many registers"
        );
        assert_eq!(words(&format!("{c}\nout=f32")), None, "as many as accumulators");
        let f32 = format!("{c}\nout=f32\ntile=64x192x64\nstages=4\ncluster=1x1");
        assert_eq!(words(&f32), Some(16));
        assert_eq!(words(&format!("{f32}\nstream_k=1")), None, "which k-tiles are its own is known beside");
        // Of tf32, 88 accumulators and as many words.
        let tf32 = "dtype=tf32\nout=f32\ntile=64x176x16\nstages=9\nstream_k=16\nepilogue=|a, b| b + relu(a)";
        assert_eq!(words(tf32), Some(8));
        assert_eq!(words(&format!("{tf32}, relu(b)")), None, "addresses of E");
        assert_eq!(words("epilogue=|a, b, c| a + c\naux=f16:(?,?)"), None, "an address for each element");
        assert_eq!(words(&format!("{c}\nschedule=pingpong\ntile=128x128x64")), None, "another tile is computed on");
        assert_eq!(
            words(&format!("{c}\nsplit_k=2\ncluster=1x1\ntile=128x128x64")),
            None,
            "parts of sums are there last"
        );
    }
}
