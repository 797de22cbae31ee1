// A CTA for each tile of rows, or for each part of one.
struct NoColumns {};

CUTE_DEVICE
void
kernel([[ plan.name() ]]_params const& params)
{
  NoColumns columns;
  int const ctas = [[ row_ctas ]];  // of a row
  traverse<Vectors>(params, int(blockIdx.x) / ctas, int(blockIdx.x) % ctas, columns);
}

CUTE_DEVICE
void
[[ elements ]]([[ plan.name() ]]_params const& params)
{
  NoColumns columns;
  int const ctas = [[ row_ctas ]];  // of a row
  traverse<Elements>(params, int(blockIdx.x) / ctas, int(blockIdx.x) % ctas, columns);
}
