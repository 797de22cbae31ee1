//! The error for parts that are nowhere, where fetching is not allowed.

use crate::find::{Component, Env, Error, ErrorKind};

/// What is missing: its name, where it was looked for, what is required, and what to do.
struct Row {
    what: &'static str,
    places: &'static str,
    required: String,
    help: &'static str,
}

const TOOLKIT: &str = "install the CUDA toolkit, or set CUDA_HOME to its root";

fn row(component: Component) -> Row {
    match component {
        Component::Cutlass => Row {
            what: "CUTLASS",
            places: "CUTLASS_PATH is not set, and no include/cute/tensor.hpp is in the usual places",
            required: format!("CUTLASS {} or newer", crate::MIN_CUTLASS),
            help: "set CUTLASS_PATH to a checkout",
        },
        Component::CudaHeaders => Row {
            what: "the CUDA headers",
            places: "CUDA_HOME, CUDA_PATH and NVCC are not set, and no new enough CUDA root is in the usual places",
            required: format!("cuda_runtime_api.h, crt and cuda/std of CUDA {} or newer", crate::MIN_CUDA),
            help: TOOLKIT,
        },
        Component::Nvcc => Row {
            what: "nvcc",
            places: "NVCC, CUDA_HOME and CUDA_PATH are not set, and no new enough nvcc is on PATH or in the usual places",
            required: format!("nvcc of CUDA {} or newer", crate::MIN_CUDA),
            help: TOOLKIT,
        },
        Component::Disassembler => Row {
            what: "the CUDA disassembler",
            places: "cuobjdump and nvdisasm are neither in CUDA_HOME nor on PATH nor in the usual places",
            required: "cuobjdump and nvdisasm".to_owned(),
            help: TOOLKIT,
        },
        Component::Libclang => Row {
            what: "libclang",
            places: "LIBCLANG_PATH is not set, and no libclang is in the usual places",
            required: "the libclang shared library".to_owned(),
            help: "install LLVM, or set LIBCLANG_PATH to the directory of its library",
        },
    }
}

/// One error for all components that are nowhere: one download gets them all.
pub(crate) fn not_found(components: &[Component], env: &Env) -> Error {
    let rows: Vec<Row> = components.iter().map(|component| row(*component)).collect();
    let joined = |of: fn(&Row) -> &str, by: &str| rows.iter().map(of).collect::<Vec<_>>().join(by);
    let (what, help) = (joined(|row| row.what, " and "), joined(|row| row.help, "; "));
    if let Some((dir, why)) = components.iter().find_map(|component| component.distrusted(env)) {
        return Error::new(
            ErrorKind::FetchNotAllowed,
            format!("{what} was fetched, and is not used"),
            why,
            "files of this user or of the system, which nobody else can write",
            format!(
                "remove {}, and set CUTEMPLATE_FETCH=1 to download the pinned, verified wheels again; or {help}",
                dir.display()
            ),
        )
        .because("what is in it is run");
    }
    let found = format!("{}; nothing is cached, and CUTEMPLATE_FETCH is not 1", joined(|row| row.places, "\n"));
    let required = joined(|row| row.required.as_str(), "\n");
    let help = format!("{help}; or set CUTEMPLATE_FETCH=1 to download the pinned, verified wheels once");
    let what = format!("{what} not found, and fetching is not allowed");
    Error::new(ErrorKind::FetchNotAllowed, what, found, required, help)
}
