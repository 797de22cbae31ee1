//! Measurements of products, for people and for machines.

use core::fmt;

use super::L2State;
use super::sustained::Sustained;

/// One kernel's figures.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ProductRow {
    /// The kernel's entry.
    pub(crate) kernel: String,
    /// Its settings, one `key=value` a line.
    pub(crate) settings: String,
    /// Median time of one launch, in seconds.
    pub(crate) seconds: f64,
    /// First and third quartile of it.
    pub(crate) quartiles: [f64; 2],
    /// `2*M*N*K*L / seconds`, in 10^12 a second.
    pub(crate) tflop_per_s: f64,
    /// The baseline's time divided by the kernel's.
    pub(crate) ratio: f64,
    /// Registers of a thread.
    pub(crate) registers: u32,
    /// The measurements over seconds on end, if requested.
    pub(crate) sustained: Option<Sustained>,
}

/// A kernel that was not timed, because its result is wrong.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Rejected {
    /// The kernel's entry.
    pub(crate) kernel: String,
    /// Its settings, one `key=value` a line.
    pub(crate) settings: String,
    /// The reason, with the first wrong elements.
    pub(crate) why: String,
}

/// The baseline of the kernels.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct BaselineRow {
    /// The library and, where it says it, its version.
    pub(crate) library: String,
    /// Its function: the kernels' own epilogue, or A @ B and the reason.
    pub(crate) computes: String,
    /// The fastest of the algorithms that the library's heuristics propose, from 0, in their order; 0 if the library
    /// chooses by itself.
    pub(crate) algorithm: usize,
    /// The number of algorithms that were timed for that.
    pub(crate) tried: usize,
    /// The time of the heuristics' first choice, divided by the fastest.
    pub(crate) first_over_fastest: f64,
    /// Median time of one call, in seconds.
    pub(crate) seconds: f64,
    /// Its rate, in 10^12 operations a second.
    pub(crate) tflop_per_s: f64,
    /// The measurements over seconds on end, if requested.
    pub(crate) sustained: Option<Sustained>,
}

/// What memory allows, in the same run.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Ceilings {
    /// Median time of the driver's memset of all of D, in seconds: D has to be written.
    pub(crate) fill_seconds: f64,
    /// Its rate, in 10^12 bytes written a second.
    pub(crate) fill_tb_per_s: f64,
    /// Median time of a copy that reads half as many bytes as all operands have and writes as many, in seconds.
    pub(crate) copy_seconds: f64,
    /// Its rate, bytes read and written, in 10^12 a second.
    pub(crate) copy_tb_per_s: f64,
}

/// The measurements of one run on one device.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct ProductReport {
    /// The device.
    pub(crate) device: String,
    /// M, N, K, L.
    pub(crate) problem: [i64; 4],
    /// Shape and strides of each operand.
    pub(crate) operands: Vec<String>,
    /// The values of the inputs.
    pub(crate) inputs: String,
    /// The library's product on the same operands, with sums of f32 and without tf32.
    pub(crate) baseline: BaselineRow,
    /// The baseline timed a second time in the same rotation, its median divided by the first: smaller differences from 1 than this
    /// one's say nothing.
    pub(crate) twice_the_same: f64,
    /// The run-time scalars of the kernels: `alpha = 1, beta = 0`.
    pub(crate) scalars: String,
    /// The kernels whose result is right, in the order in which they were given.
    pub(crate) kernels: Vec<ProductRow>,
    /// The others.
    pub(crate) wrong: Vec<Rejected>,
    /// What memory allows, where that was asked for.
    pub(crate) ceilings: Option<Ceilings>,
    /// Why clocks or energy are not known, where they were asked for.
    pub(crate) no_meter: Option<String>,
    /// Timings of each.
    pub(crate) timings: usize,
    /// Whether launches were replayed from a CUDA graph; else the host makes each.
    pub(crate) graph: bool,
    /// Where the operands were.
    pub l2: L2State,
}

fn us(seconds: f64) -> f64 {
    seconds * 1e6
}

impl fmt::Display for BaselineRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { library, computes, algorithm, tried, first_over_fastest, .. } = self;
        write!(f, "  {library}: {computes}")?;
        if *tried > 1 {
            write!(
                f,
                "; algorithm {algorithm} of {tried} tried, the heuristics' first takes {first_over_fastest:.3} of it"
            )?;
        }
        writeln!(f)
    }
}

impl fmt::Display for Ceilings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { fill_seconds, fill_tb_per_s, copy_seconds, copy_tb_per_s } = self;
        writeln!(f, "  memset of D {:10.2} us, {fill_tb_per_s:.3} TB/s written", us(*fill_seconds))?;
        writeln!(
            f,
            "  copy        {:10.2} us for as many bytes as the operands have, {copy_tb_per_s:.3} TB/s",
            us(*copy_seconds)
        )
    }
}

impl fmt::Display for ProductReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [m, n, k, l] = self.problem;
        let batches = if l == 1 { String::new() } else { format!(" x {l}") };
        let scalars = if self.scalars.is_empty() { String::new() } else { format!(", {}", self.scalars) };
        writeln!(f, "{m} x {n} x {k}{batches}, {} inputs{scalars}, on {}", self.inputs, self.device)?;
        let base = &self.baseline;
        write!(f, "{base}")?;
        let (rate, seconds) = (base.tflop_per_s, us(base.seconds));
        writeln!(f, "  baseline     {rate:6.2} TFLOP/s {seconds:10.2} us  twice: {:.4}", self.twice_the_same)?;
        for row in &self.kernels {
            let [q1, q3] = row.quartiles.map(us);
            writeln!(
                f,
                "  ratio {:.4} {:6.2} TFLOP/s {:10.2} us (quartiles {q1:.2}, {q3:.2})  {} registers  {}",
                row.ratio,
                row.tflop_per_s,
                us(row.seconds),
                row.registers,
                row.kernel
            )?;
        }
        self.sustained(f)?;
        if let Some(ceilings) = &self.ceilings {
            write!(f, "{ceilings}")?;
        }
        for Rejected { kernel, why, .. } in &self.wrong {
            writeln!(f, "  WRONG, not timed: {kernel}: {}", why.replace('\n', "\n  "))?;
        }
        let right = self.kernels.len();
        if right > 0 {
            writeln!(f, "  {right} right: every element of D equals cuBLAS's, up to the order of summation")?;
        }
        let by = if self.graph { "replayed from a graph" } else { "launched one by one" };
        let state = match self.l2 {
            L2State::Cold => "not in L2",
            L2State::Warm => "in L2 as far as they fit",
        };
        write!(f, "  {} timings of each in turn, {by}, operands {state}", self.timings)
    }
}

impl ProductReport {
    fn sustained(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(base) = &self.baseline.sustained else { return Ok(()) };
        writeln!(f, "  sustained over {:.1} s: baseline {base}", base.seconds)?;
        for row in &self.kernels {
            let Some(own) = &row.sustained else { continue };
            let ratio = own.tflop_per_s / base.tflop_per_s;
            let energy = own.joules_per_tflop.zip(base.joules_per_tflop);
            let energy = energy.map_or(String::new(), |(own, base)| format!(", energy {:.4} of it", own / base));
            writeln!(f, "    ratio {ratio:.4}{energy}: {own}  {}", row.kernel)?;
        }
        self.no_meter.as_ref().map_or(Ok(()), |why| writeln!(f, "    without clocks or energy: {why}"))
    }
}
