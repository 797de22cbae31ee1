#include "check.h"
#include "product.cuh"

int main()
{
  int const m = 200, n = 130, k = 3000;
  auto* a = managed<float>(m * k, 1);  // (M,K)
  auto* b = managed<float>(k * n, 2);  // (K,N)
  auto* c = managed<float>(m * n, 3);
  auto* d = managed<float>(m * n, 4);

  cutemplate::product::Arguments args{};
  args.a = a;
  args.b = b;
  args.c = c;
  args.d = d;
  args.lda = k;
  args.ldb = n;
  args.ldc = n;
  args.ldd = n;
  args.m = m;
  args.n = n;
  args.k = k;
  args.alpha = 1;
  args.beta = 2;
  void* workspace = nullptr;  // for the sums of the parts of K
  check(cudaMalloc(&workspace, cutemplate::product::get_workspace_size(args)), "cudaMalloc");
  check(cutemplate::product::launch(args, workspace), "launch");
  compare("product", d, m, n, n, [&](int i, int j) {
    float sum = 0;
    for (int l = 0; l < k; ++l) {
      sum += a[i * k + l] * b[l * n + j];
    }
    return sum + 2 * c[i * n + j];
  });
  return 0;
}
