//! Compiles the catalogue of kernels with nvcc where the feature `catalog` is on; does nothing otherwise.
//!
//! A build script cannot use its own package, so the generator's wings are pulled in by path.

macro_rules! wings {
    ($($module:ident = $path:literal;)*) => {
        $(#[cfg(feature = "catalog")] #[path = $path] #[allow(dead_code, unused_imports, unreachable_pub)] mod $module;)*
    };
}

wings! {
    ground = "src/ground/mod.rs";
    generate = "src/generate/mod.rs";
    build = "src/build/mod.rs";
}

// As the library names them.
#[cfg(feature = "catalog")]
#[allow(unused_imports)]
use {
    build::{artifact, bundle, fatbin, store},
    cute_layout::{atom, layout},
    generate::{cuda, emit, expr, int, model, plan, recipe, reference, tensor, tiling},
    ground::{arch, diagnostic, digest, dtype, fence, near, reserved, settings, units, view},
};

#[cfg(feature = "catalog")]
fn main() {
    let mut config = build::Config::new();
    for family in recipe::FAMILIES {
        for settings in family.catalogue {
            let settings = settings::Settings::parse_lines(settings);
            match family.usual_plan(&settings) {
                Ok(plan) => config = config.plan(plan),
                Err(refused) => panic!("the catalogue is refused\n{refused}"),
            }
        }
    }
    config.compile();
}

#[cfg(not(feature = "catalog"))]
fn main() {
    println!("cargo:rerun-if-changed=build.rs");
}
