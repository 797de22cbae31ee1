//! What was measured of the rungs of `sgemm`: `benches/data/sgemm_h200.json`, from which the chart and the table are made.

/// One run on one device.
#[derive(serde::Deserialize)]
pub(crate) struct Ladder {
    pub(crate) device: String,
    /// `MxNxK`.
    pub(crate) problem: String,
    /// Measured in other runs.
    pub(crate) others: Vec<Other>,
    /// From the lowest to the highest.
    pub(crate) rungs: Vec<Rung>,
}

/// Somebody else's kernel.
#[derive(serde::Deserialize)]
pub(crate) struct Other {
    pub(crate) name: String,
    pub(crate) tflops: f64,
}

/// One recipe.
#[derive(serde::Deserialize)]
pub(crate) struct Rung {
    pub(crate) rung: String,
    /// With `;` between them.
    #[allow(dead_code, reason = "the chart does not need it")]
    pub(crate) settings: String,
    pub(crate) tflops: f64,
    /// TFLOP/s of cuBLAS, in turns with it.
    pub(crate) cublas: f64,
    /// TFLOP/s that the model allows at most, to three digits.
    pub(crate) predicted: f64,
}

impl Ladder {
    /// TFLOP/s of cuBLAS in the run of the first rungs.
    pub(crate) fn cublas(&self) -> f64 {
        self.rungs.first().expect("a rung").cublas
    }
}

pub(crate) fn data() -> Ladder {
    serde_json::from_str(include_str!("../../benches/data/sgemm_h200.json")).expect("the file is in order")
}

/// To three digits.
#[allow(dead_code, reason = "the chart does not need it")]
pub(crate) fn rounded(x: f64) -> String {
    match x {
        10.0.. => format!("{x:.1}"),
        _ => format!("{x:.2}"),
    }
}
