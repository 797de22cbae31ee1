/// Kernel `[[ plan.name() ]]`, generated from `[[ plan.recipe() ]]` for [[ plan.targets() ]].
pub mod [[ plan.name() ]] {
    /// The type of its recipe.
    pub type Recipe = ::cutemplate::recipe::[[ plan.rust_type() ]];

    /// The compiled kernel, with what is needed to check and launch it.
    pub static ARTIFACT: ::cutemplate::artifact::Artifact = ::cutemplate::artifact::Artifact {
        family: "[[ plan.family() ]]",
        name: "[[ plan.name() ]]",
        settings: "[[ settings ]]",
        targets: "[[ targets ]]",
        generator: "[[ version ]]",
        header: include_str!("[[ plan.name() ]].cuh"),
        fatbin: ::std::borrow::Cow::Borrowed(include_bytes!("[[ plan.name() ]].fatbin")),
    };

    /// The parameter struct, as the C header `[[ plan.name() ]]_params.h` declares it.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct Params {
{% for field in plan.params().fields() %}        /// [[ field.doc ]]
        pub [[ field.name ]]: [[ field.ty.rust() ]],
{% endfor %}    }

    const _: () = {
        assert!(::core::mem::size_of::<Params>() == [[ plan.params().size() ]]);
        assert!(::core::mem::align_of::<Params>() == [[ plan.params().align() ]]);
{% for field in plan.params().fields() %}        assert!(::core::mem::offset_of!(Params, [[ field.name ]]) == [[ field.offset ]]);
{% endfor %}    };
}
