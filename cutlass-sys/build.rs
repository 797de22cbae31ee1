//! Publishes what is found as `DEP_CUTLASS_*`. Fetches nothing, and fails for nothing that is missing.
//!
//! With the feature `oracle` it compiles and binds the C++ oracle too. That needs the headers: for it they are fetched
//! where fetching is allowed, and it fails where they are missing.

#[path = "src/find/mod.rs"]
#[allow(dead_code, unreachable_pub, unused_imports, reason = "the library uses the rest of this module")]
mod find;

macro_rules! library {
    ($($module:ident = $path:literal;)*) => {
        $(#[cfg(feature = "oracle")] #[path = $path] #[allow(dead_code, unreachable_pub, unused_imports)] mod $module;)*
    };
}

library! {
    doctor = "src/doctor.rs";
    fetch = "src/fetch/mod.rs";
    finder = "src/finder.rs";
    missing = "src/missing.rs";
    programs = "src/programs.rs";
    progress = "src/progress.rs";
    toolchain = "src/toolchain.rs";
}

#[cfg(feature = "oracle")]
#[path = "build/oracle.rs"]
mod oracle;

use std::path::Path;

use find::{CudaHeaders, Cutlass, Env, Error, MARKER, Nvcc, Origin};
#[cfg(feature = "oracle")]
use find::{ErrorKind, MIN_CUDA, MIN_CUTLASS};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/find");
    for name in Env::VARIABLES {
        println!("cargo::rerun-if-env-changed={name}");
    }
    let env = Env::current();
    if let Some(cutlass) = found(Cutlass::locate(&env)) {
        watch(&cutlass.include.join("cutlass/version.h"));
        publish("include", cutlass.include.display());
        publish("version", cutlass.version);
    }
    if let Some(headers) = found(CudaHeaders::locate(&env)) {
        let dirs = std::env::join_paths(&headers.include_dirs).unwrap_or_default();
        publish("cuda_include", Path::new(&dirs).display());
        publish("cuda_version", headers.version);
    }
    let nvcc = found(Nvcc::locate(&env));
    if nvcc.as_ref().is_none_or(|nvcc| nvcc.origin == Origin::Path) {
        // Where PATH had no say, another one is no reason to compile this crate and those above it again.
        println!("cargo::rerun-if-env-changed=PATH");
    }
    if let Some(nvcc) = nvcc {
        watch(&nvcc.path);
        publish("nvcc", nvcc.path.display());
        publish("nvcc_version", nvcc.version);
    }
    #[cfg(feature = "oracle")]
    if let Err(missing) = oracle::build() {
        println!("cargo::error=the feature `oracle`: {}", missing.replace('\n', " "));
    }
}

/// A wrong variable is a warning here: who needs the part asks the library, and gets the error.
fn found<T>(located: Result<Option<T>, Error>) -> Option<T> {
    located.unwrap_or_else(|error| {
        println!("cargo::warning={}: {}", error.what(), error.found());
        None
    })
}

fn publish(key: &str, value: impl std::fmt::Display) {
    println!("cargo::metadata={key}={value}");
}

/// Runs this script again when a part that was found changes or goes. One that appears later is not watched for:
/// cargo would take a path that is not there for one that has changed, at every build. Who needs a part asks the library, which looks
/// again.
fn watch(file: &Path) {
    println!("cargo::rerun-if-changed={}", file.display());
    let marker = file.ancestors().map(|dir| dir.join(MARKER)).find(|marker| marker.is_file());
    if let Some(marker) = marker {
        println!("cargo::rerun-if-changed={}", marker.display());
    }
}
