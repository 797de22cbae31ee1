// A CTA for each tile of rows.
struct NoColumns {};

CUTE_DEVICE
void
kernel([[ plan.name() ]]_params const& params)
{
  NoColumns columns;
  traverse<Vectors>(params, int(blockIdx.x), columns);
}

CUTE_DEVICE
void
[[ elements ]]([[ plan.name() ]]_params const& params)
{
  NoColumns columns;
  traverse<Elements>(params, int(blockIdx.x), columns);
}
