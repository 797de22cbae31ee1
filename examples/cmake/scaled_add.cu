#include "check.h"
#include "scaled_add.cuh"

int main()
{
  int const m = 1000, n = 777;
  int64_t const lda = 780, ldy = 784;
  auto* a = managed<float>(m * lda, 1);
  auto* b = managed<float>(n, 2);  // a row for all rows
  auto* y = managed<float>(m * ldy, 3);

  cutemplate::scaled_add::Arguments args{};
  args.a = a;
  args.b = b;
  args.y = y;
  args.lda = lda;
  args.ldy = ldy;
  args.m = m;
  args.n = n;
  check(cutemplate::scaled_add::launch(args), "launch");
  compare("scaled_add", y, m, n, ldy, [&](int i, int j) { return 3 * a[i * lda + j] + b[j]; });
  return 0;
}
