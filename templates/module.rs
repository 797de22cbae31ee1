/// Kernel `[[ plan.name() ]]`, generated from `[[ plan.recipe() ]]` for [[ plan.targets() ]].
pub mod [[ plan.name() ]] {
    /// The type of its recipe.
    pub type Recipe = ::cutemplate::recipe::[[ plan.rust_type() ]];

    /// The [[ what ]], with what is needed to check and launch it.
    pub static ARTIFACT: ::cutemplate::artifact::Artifact<'static> = ::cutemplate::__artifact! {
        family: "[[ plan.family() ]]",
        name: "[[ plan.name() ]]",
        texts: ::std::borrow::Cow::Borrowed(&[
{% for (part, code) in texts %}            ::cutemplate::artifact::Text {
                abi: include_str!("[[ part.name() ]].abi.json"),
                digest: "[[ part.abi().digest() ]]",
{% match code %}{% when Embedded::Fatbin with { sha256 } %}                code: ::cutemplate::artifact::Code::Fatbin {
                    bytes: include_bytes!("[[ part.name() ]].fatbin"),
                    sha256: "[[ sha256 ]]",
                    ptx: include_str!("[[ part.name() ]].ptx"),
                },
{% when Embedded::Stub with { why } %}                code: ::cutemplate::artifact::Code::Stub { why: "[[ why.escape_default() ]]" },
{% endmatch %}            },
{% endfor %}        ]),
    };
{% for part in plan.parts() %}
    /// The parameter struct, as the C header `[[ part.name() ]]_params.h` declares it.
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct [[ crate::emit::params_name(plan, part) ]] {
{% for field in part.params().fields() %}        /// [[ field.doc ]]
        pub [[ field.name ]]: [[ field.ty.rust() ]],
{% endfor %}    }

    const _: () = {
        assert!(::core::mem::size_of::<[[ crate::emit::params_name(plan, part) ]]>() == [[ part.params().size() ]]);
        assert!(::core::mem::align_of::<[[ crate::emit::params_name(plan, part) ]]>() == [[ part.params().align() ]]);
{% for field in part.params().fields() %}        assert!(::core::mem::offset_of!([[ crate::emit::params_name(plan, part) ]], [[ field.name ]]) == [[ field.offset ]]);
{% endfor %}    };
{% endfor %}}
