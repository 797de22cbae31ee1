//! What was measured of the rungs of `sgemm`: `benches/data/sgemm_h200.json`, from which the chart and the table are made.

/// One run on one device.
#[derive(serde::Deserialize)]
pub(crate) struct Ladder {
    pub(crate) device: String,
    /// `MxNxK`.
    pub(crate) problem: String,
    /// TFLOP/s of cuBLAS, in turns with the rungs.
    pub(crate) cublas: f64,
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
    /// To cuBLAS in the same run.
    #[allow(dead_code, reason = "the chart does not need it")]
    pub(crate) ratio: f64,
    /// TFLOP/s that the model allows at most, to three digits.
    pub(crate) predicted: f64,
}

pub(crate) fn data() -> Ladder {
    serde_json::from_str(include_str!("../../benches/data/sgemm_h200.json")).expect("the file is in order")
}
