// The emitted `block_2d` kernel and the one by hand, in one program on the same data, launch by launch in turns.
// `sgemm_by_hand.sh` builds and runs it.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "sgemm_block_2d.cu"
#include "sgemm_block_2d_tt.cu"

static void must(cudaError_t error, int line)
{
  if (error != cudaSuccess) {
    std::fprintf(stderr, "line %d: %s\n", line, cudaGetErrorString(error));
    std::exit(2);
  }
}
#define MUST(call) must((call), __LINE__)

constexpr int EXTENT = 4096;
constexpr size_t ELEMENTS = size_t(EXTENT) * EXTENT;
constexpr int WARM_UPS = 5, TIMINGS = 50;

struct Problem {
  float *a, *b, *c, *d;
  float alpha, beta;
};

using Launch = void (*)(Problem const&);

static dim3 const grid(EXTENT / BN, EXTENT / BM);

static void by_hand(Problem const& p)
{
  sgemm_block_2d_by_hand<<<grid, THREADS>>>(EXTENT, EXTENT, p.alpha, p.a, p.b, p.beta, p.c, p.d);
}

static void emitted(Problem const& p)
{
  sgemm_block_2d_tt_params const params = {p.a,    p.b,    p.c,    p.d,    EXTENT,  EXTENT, EXTENT,
                                           EXTENT, EXTENT, EXTENT, EXTENT, p.alpha, p.beta};
  sgemm_block_2d_tt<<<grid, THREADS>>>(params);
}

static void upload(float* to, std::vector<float> const& from)
{
  MUST(cudaMemcpy(to, from.data(), ELEMENTS * sizeof(float), cudaMemcpyHostToDevice));
}

// What a kernel makes of it, from memory full of NaN.
static std::vector<float> result(Launch launch, Problem const& p)
{
  MUST(cudaMemset(p.d, 0xff, ELEMENTS * sizeof(float)));
  launch(p);
  MUST(cudaGetLastError());
  std::vector<float> host(ELEMENTS);
  MUST(cudaMemcpy(host.data(), p.d, ELEMENTS * sizeof(float), cudaMemcpyDeviceToHost));
  return host;
}

static float milliseconds(Launch launch, Problem const& p, cudaEvent_t begin, cudaEvent_t end)
{
  float elapsed = 0;
  MUST(cudaEventRecord(begin));
  launch(p);
  MUST(cudaEventRecord(end));
  MUST(cudaEventSynchronize(end));
  MUST(cudaEventElapsedTime(&elapsed, begin, end));
  return elapsed;
}

int main()
{
  Problem p = {};
  for (float** pointer : {&p.a, &p.b, &p.c, &p.d}) {
    MUST(cudaMalloc(pointer, ELEMENTS * sizeof(float)));
  }
  std::mt19937 random(1);
  std::vector<float> host(ELEMENTS);

  // Integers from -2 to 2: every sum is exact in whatever order, so both results are the same bits.
  std::uniform_int_distribution<int> integer(-2, 2);
  for (float* to : {p.a, p.b, p.c}) {
    std::generate(host.begin(), host.end(), [&] { return float(integer(random)); });
    upload(to, host);
  }
  p.alpha = 2, p.beta = 3;
  std::vector<float> const one = result(by_hand, p), other = result(emitted, p);
  bool const same = std::memcmp(one.data(), other.data(), ELEMENTS * sizeof(float)) == 0;
  std::printf("integers: the results are %s\n", same ? "the same, bit by bit" : "DIFFERENT");

  std::normal_distribution<float> normal;
  for (float* to : {p.a, p.b, p.c}) {
    std::generate(host.begin(), host.end(), [&] { return normal(random); });
    upload(to, host);
  }
  p.alpha = 1, p.beta = 0.5f;

  // By hand twice: smaller differences say nothing.
  struct Turn {
    char const* name;
    Launch launch;
    std::vector<float> times;
  } turns[] = {{"by hand", by_hand, {}}, {"emitted", emitted, {}}, {"by hand, again", by_hand, {}}};
  cudaEvent_t begin, end;
  MUST(cudaEventCreate(&begin));
  MUST(cudaEventCreate(&end));
  for (int timing = -WARM_UPS; timing < TIMINGS; ++timing) {
    for (Turn& turn : turns) {
      float const elapsed = milliseconds(turn.launch, p, begin, end);
      if (timing >= 0) {
        turn.times.push_back(elapsed);
      }
    }
  }
  float median[3];
  for (int i = 0; i < 3; ++i) {
    std::vector<float>& times = turns[i].times;
    std::nth_element(times.begin(), times.begin() + TIMINGS / 2, times.end());
    median[i] = times[TIMINGS / 2];
    double const flop = 2.0 * EXTENT * double(ELEMENTS);
    std::printf("%-15s %.4f ms, %.2f TFLOP/s\n", turns[i].name, median[i], flop / median[i] * 1e-9);
  }
  std::printf("emitted to by hand: %.4f of its rate (by hand again: %.4f)\n", median[0] / median[1], median[0] / median[2]);
  return same ? 0 : 1;
}
