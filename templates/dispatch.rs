/// The kernels of a matrix product, [[ by ]], and which of them is for which problem.
#[allow(dead_code, unused_imports, unreachable_pub)]
pub mod [[ name ]] {
    /// The problems that have a kernel.
    pub static PROBLEMS: &[::cutemplate::recipe::product::Problem] = &[
{% for (problem, _) in rows %}        ::cutemplate::recipe::product::Problem {
            m: [[ problem.m ]],
            n: [[ problem.n ]],
            k: [[ problem.k ]],
            a: ::cutemplate::recipe::product::Major::[[ problem.a.variant() ]],
            b: ::cutemplate::recipe::product::Major::[[ problem.b.variant() ]],
        },
{% endfor %}    ];

    /// The kernels, in the order of [`index`].
    pub static KERNELS: &[&::cutemplate::artifact::Artifact<'static>] = &[
{% for kernel in kernels %}        &super::[[ kernel ]]::ARTIFACT,
{% endfor %}    ];

    /// The kernel of the most similar problem, as its place in [`KERNELS`]; `None` if A and B of no problem lie so.
    pub fn index(problem: &::cutemplate::recipe::product::Problem) -> ::core::option::Option<usize> {
        match problem.served_by(PROBLEMS)? {
{% for (_, kernel) in rows %}            [[ loop.index0 ]] => ::core::option::Option::Some([[ self.index(kernel) ]]),
{% endfor %}            _ => ::core::option::Option::None,
        }
    }

    /// The kernel of the most similar problem.
    pub fn select(
        problem: &::cutemplate::recipe::product::Problem,
    ) -> ::core::option::Option<&'static ::cutemplate::artifact::Artifact<'static>> {
        KERNELS.get(index(problem)?).copied()
    }
{% if let Some(first) = first %}
    pub use super::[[ first ]]::{Recipe, args};

    /// Loads every kernel on a GPU, or on a `Device`, in the order of [`KERNELS`]. Each takes [`args`].
    ///
    /// # Errors
    /// One has no code for that device, or is damaged.
    pub fn load<D: ::cutemplate::artifact::Loads>(
        device: &D,
    ) -> ::core::result::Result<::std::vec::Vec<D::Kernel<Recipe>>, D::Error> {
        KERNELS.iter().map(|kernel| device.load::<Recipe>(kernel)).collect()
    }
{% endif %}}
