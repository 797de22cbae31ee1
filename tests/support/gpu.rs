//! A GPU for tests, and kernels for it.
//!
//! `CUTEMPLATE_TEST_DATA` names a folder of fatbins. Without a GPU but with nvcc, every test puts the kernels that it would
//! load there; with a GPU, they are taken from there. So a test binary can be carried, with that folder, to a machine that
//! has neither cargo nor a CUDA toolkit. Without the variable, kernels come from the user's store.

use std::fs;
use std::path::PathBuf;

use cutemplate::build::{Compiler, write_if_changed};
use cutemplate::emit::render;
use cutemplate::launch::{AnyKernel, Gpu};
use cutemplate::plan::Plan;
use cutlass_sys::Finder;

/// The GPU, or `None` with a word on standard error.
pub(crate) fn find() -> Option<Gpu> {
    Gpu::find().inspect_err(|none| eprintln!("{none}\nnot run")).ok()
}

/// The fatbin of a plan; `None` where there is neither a GPU to load it on nor a folder to put it in.
pub(crate) fn fatbin(gpu: Option<&Gpu>, plan: &Plan) -> Option<Vec<u8>> {
    let unit = render(plan);
    let folder = std::env::var_os("CUTEMPLATE_TEST_DATA").map(PathBuf::from);
    if gpu.is_none() && folder.is_none() {
        return None;
    }
    let file = |suffix: &str| folder.as_ref().map(|f| f.join(format!("{}.{suffix}", plan.name())));
    let carried = file("cuh").zip(file("fatbin"));
    if let Some((text, fatbin)) = &carried
        && fs::read_to_string(text).is_ok_and(|text| text == unit.header().text)
    {
        return Some(fs::read(fatbin).expect("a fatbin beside its text"));
    }
    let compiler = Compiler::new(&Finder::from_env(), &mut ()).expect("nvcc, or CUTEMPLATE_TEST_DATA with the kernels");
    let compiled = compiler.compile(&unit, plan.targets()).expect("a right kernel");
    if let Some((text, fatbin)) = &carried {
        fs::create_dir_all(text.parent().expect("a folder")).expect("writable");
        // The text last: where it is, the fatbin is whole.
        write_if_changed(fatbin, &compiled.fatbin).expect("writable");
        write_if_changed(text, unit.header().text.as_bytes()).expect("writable");
    }
    Some(compiled.fatbin)
}

/// A kernel on the GPU; `None` where there is none, once its fatbin is where [`fatbin`] puts it.
pub(crate) fn load(gpu: Option<&Gpu>, plan: Plan) -> Option<AnyKernel> {
    let fatbin = fatbin(gpu, &plan)?;
    gpu.map(|gpu| AnyKernel::load(gpu, plan, &fatbin).expect("loads"))
}
