//! Contract: what nvcc is told and what it made, the stores, and the scripts that come with the tests.

mod bundle;
mod cache;
#[cfg(all(target_os = "linux", feature = "build"))]
mod cargo;
mod catalog;
mod config;
#[cfg(feature = "emit")]
mod downstream;
mod driver;
#[cfg(all(target_os = "linux", feature = "build"))]
mod host_launch;
#[cfg(all(target_os = "linux", feature = "build"))]
mod machine_code;
mod nvcc;
mod own;
mod resources;
mod sanitize_script;
mod sass;
mod stored;
#[cfg(all(target_os = "linux", feature = "build"))]
mod tensor_maps;

#[cfg(all(target_os = "linux", feature = "build"))]
#[path = "../support/made.rs"]
mod made;
#[cfg(all(target_os = "linux", feature = "build"))]
#[path = "../support/whole.rs"]
mod whole;

#[cfg(all(unix, feature = "build"))]
#[allow(clippy::unwrap_used, reason = "tests")]
#[path = "../support/place.rs"]
mod place;
#[path = "../support/variables.rs"]
mod variables;

// What `downstream` takes from the library, under the names that it has there.
#[cfg(feature = "emit")]
use cutemplate::{
    arch, diagnostic, dtype, emit, expr, layout, model, plan, recipe, reference, settings, tiling, units, view,
};
