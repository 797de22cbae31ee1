//! Compiles the catalogue of kernels with nvcc where the feature `catalog` is on; does nothing otherwise.
//!
//! A build script cannot use its own package, so the generator's modules are pulled in by path.

macro_rules! generator {
    ($($module:ident = $path:literal;)*) => {
        $(#[cfg(feature = "catalog")] #[path = $path] #[allow(dead_code, unused_imports, unreachable_pub)] mod $module;)*
    };
}

generator! {
    arch = "src/arch.rs";
    artifact = "src/artifact.rs";
    atom = "src/atom/mod.rs";
    build = "src/build/mod.rs";
    bundle = "src/bundle/mod.rs";
    diagnostic = "src/diagnostic.rs";
    digest = "src/digest.rs";
    dtype = "src/dtype.rs";
    emit = "src/emit/mod.rs";
    fatbin = "src/fatbin.rs";
    fence = "src/fence.rs";
    layout = "src/layout/mod.rs";
    model = "src/model/mod.rs";
    near = "src/near.rs";
    plan = "src/plan/mod.rs";
    recipe = "src/recipe/mod.rs";
    reserved = "src/reserved.rs";
    settings = "src/settings.rs";
    store = "src/store/mod.rs";
    tiling = "src/tiling/mod.rs";
    units = "src/units.rs";
    view = "src/view/mod.rs";
    expr = "src/expr/mod.rs";
}

#[cfg(feature = "catalog")]
fn main() {
    let mut config = build::Config::new();
    for family in recipe::FAMILIES {
        for settings in family.catalogue {
            let settings = settings::Settings::parse_lines(settings);
            match family.plan(&settings, None, &arch::Targets::default()) {
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
