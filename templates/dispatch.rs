/// The kernels for matrix products, as measured on [[ device ]].
pub mod [[ name ]] {
    /// The problems that were measured.
    pub static PROBLEMS: &[::cutemplate::recipe::product::Problem] = &[
{% for (problem, _) in rows %}        ::cutemplate::recipe::product::Problem {
            m: [[ problem.m ]],
            n: [[ problem.n ]],
            k: [[ problem.k ]],
            a: ::cutemplate::recipe::product::Major::[[ problem.a.variant() ]],
            b: ::cutemplate::recipe::product::Major::[[ problem.b.variant() ]],
        },
{% endfor %}    ];

    /// The fastest kernel on the most similar measured problem; `None` if no measured problem has these majors.
    pub fn select(
        problem: &::cutemplate::recipe::product::Problem,
    ) -> ::core::option::Option<&'static ::cutemplate::artifact::Artifact<'static>> {
        match problem.nearest(PROBLEMS)? {
{% for (_, kernel) in rows %}            [[ loop.index0 ]] => ::core::option::Option::Some(&super::[[ kernel ]]::ARTIFACT),
{% endfor %}            _ => ::core::option::Option::None,
        }
    }
}
