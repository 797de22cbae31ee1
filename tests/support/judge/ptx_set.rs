//! Kernels of many tests in few texts of PTX: each start of nvcc takes the time of CuTe's headers, and kernels of one tile or of one set of
//! strides share most of CuTe's functions.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use cutemplate::emit::SourceFile;
use cutemplate::plan::Plan;
use cutemplate::recipe::{Attention, Recipe};

use crate::kernels::{Kernel, Problem};
use crate::ptx_batch::{PtxBatch, apart, by_all_processors, parts};

/// A kernel, and its files as they are or with a defect.
pub(crate) type Source = (Kernel, Vec<SourceFile>);

/// A kernel with its own files.
pub(crate) fn as_it_is(kernel: Kernel) -> Source {
    let files = kernel.unit.files().to_vec();
    (kernel, files)
}

/// What runs a kernel and its number there, or why nvcc makes nothing of it.
type Place = Result<(Arc<PtxBatch>, usize), String>;

/// Kernels that are compiled together, each of a name of its own.
pub(crate) struct PtxSet {
    list: fn() -> Vec<Source>,
    places: OnceLock<BTreeMap<String, Place>>,
}

impl PtxSet {
    pub(crate) const fn new(list: fn() -> Vec<Source>) -> PtxSet {
        PtxSet { list, places: OnceLock::new() }
    }

    /// Whether a kernel is compiled; the first who asks compiles all.
    pub(crate) fn compiled(&self, kernel: &Kernel) -> Result<(), String> {
        self.place(kernel).as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// As [`PtxBatch::run`].
    pub(crate) fn run(&self, kernel: &Kernel, problem: &Problem, plain: bool) -> Option<String> {
        match self.place(kernel) {
            Ok((batch, number)) => batch.run(*number, kernel, problem, plain),
            Err(why) => Some(why.clone()),
        }
    }

    fn place(&self, kernel: &Kernel) -> &Place {
        let places = self.places.get_or_init(|| compile((self.list)()));
        places
            .get(kernel.plan.name())
            .unwrap_or_else(|| panic!("{kernel} is not among those that are compiled together"))
    }
}

/// The settings that decide which of CuTe's functions a kernel is made of.
pub(crate) fn shared(kernel: &Kernel) -> Vec<Option<String>> {
    let settings = kernel.plan.settings();
    ["variant", "tile", "thread", "batched", "in", "out"].map(|key| settings.get(key).map(str::to_owned)).to_vec()
}

/// Those that are compiled together. Products, which nvcc takes longest for, come first and are by themselves: others share little with
/// them. What it takes grows faster than the kernels of a text: 48 took 13 GB and as long as four times 12 on two processors.
fn batches(mut all: Vec<Source>) -> Vec<Vec<Source>> {
    all.sort_by_cached_key(|(kernel, _)| shared(kernel));
    let is_product = |(kernel, _): &Source| kernel.plan.product().is_some();
    let (products, others): (Vec<Source>, Vec<Source>) = all.into_iter().partition(is_product);
    let is_attention = |(kernel, _): &Source| kernel.plan.family() == Attention::FAMILY;
    let (attention, others): (Vec<Source>, Vec<Source>) = others.into_iter().partition(is_attention);
    let mut batches = Vec::new();
    for (kernels, most) in [(attention, 4), (products, 12), (others, 12)] {
        for group in apart(kernels.iter().map(|(_, files)| &files[..])) {
            let of = |numbers: &[usize]| numbers.iter().map(|number| kernels[*number].clone()).collect();
            batches.extend(parts(&group, group.len().div_ceil(most)).map(of));
        }
    }
    batches
}

/// By all processors.
fn compile(all: Vec<Source>) -> BTreeMap<String, Place> {
    let (count, batches) = (all.len(), batches(all));
    let made = by_all_processors(&batches, |batch| batch_of(batch));
    let places: BTreeMap<String, Place> = made.into_iter().flatten().collect();
    assert_eq!(places.len(), count, "two kernels have one name");
    places
}

/// In one text. Where nvcc refuses it each is tried alone, so that it is known which are wrong.
fn batch_of(batch: &[Source]) -> Vec<(String, Place)> {
    let sources: Vec<(&Plan, &[SourceFile])> = batch.iter().map(|(kernel, files)| (&kernel.plan, &files[..])).collect();
    let places: Vec<Place> = match PtxBatch::compile(&sources).map(Arc::new) {
        Ok(together) => (0..batch.len()).map(|number| Ok((Arc::clone(&together), number))).collect(),
        Err(together) => {
            let alone = |source| PtxBatch::compile(&[source]).map(|own| (Arc::new(own), 0));
            let places: Vec<Place> = sources.iter().map(|source| alone(*source)).collect();
            let all_are_right = places.iter().all(Result::is_ok);
            let only = || Err(format!("only together: {together}"));
            if all_are_right { places.iter().map(|_| only()).collect() } else { places }
        }
    };
    batch.iter().map(|(kernel, _)| kernel.plan.name().to_owned()).zip(places).collect()
}
