#include "check.h"
#include "row_sum.cuh"

int main()
{
  int const m = 333, n = 2000;
  auto* a = managed<float>(m * n, 1);
  auto* b = managed<float>(n, 2);
  auto* y = managed<float>(m, 3);

  cutemplate::row_sum::Arguments args{};
  args.a = a;
  args.b = b;
  args.y = y;
  args.lda = n;
  args.incy = 1;
  args.m = m;
  args.n = n;
  check(cutemplate::row_sum::launch(args), "launch");
  compare("row_sum", y, m, 1, 1, [&](int i, int) {
    float sum = 0;
    for (int j = 0; j < n; ++j) {
      sum += a[i * n + j] * b[j];
    }
    return sum;
  });
  return 0;
}
