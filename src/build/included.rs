//! What a crate says to have its kernels.

/// Includes the kernels that `build.rs` left: a module for each, with its artefact and its typed arguments.
///
/// Where `build.rs` calls neither `build::Config::compile` nor [`bundle::embed`](crate::bundle::embed), the compiler says so.
///
/// # Examples
/// ```ignore
/// // src/main.rs, where build.rs has the recipe "vector_add"
/// cutemplate::include_kernels!();
///
/// let kernel = vector_add::load(&device)?;
/// ```
#[macro_export]
macro_rules! include_kernels {
    () => {
        include!(env!(
            "CUTEMPLATE_KERNELS",
            "this crate has no kernels to include\n  \
             found:    no build.rs, or one that calls neither Config::compile() nor bundle::embed()\n  \
             required: a build.rs beside Cargo.toml that calls one of them: it leaves the file that is included here\n  \
             help:     fn main() {\n                \
                           use cutemplate::{build::Config, recipe::ElementwiseAdd};\n                \
                           Config::new().recipe(\"vector_add\", &ElementwiseAdd::default()).compile();\n            }"
        ));
    };
}
