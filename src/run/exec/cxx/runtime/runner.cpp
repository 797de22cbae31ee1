// The process that runs one kernel once: a supervisor that reads the job and tells the verdicts, and workers that run
// the blocks. Whatever a kernel does to its worker, the supervisor lives to tell.
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>

#include "async.h"
#include "hooks.h"
#include "protocol.h"
#include "sync.h"

namespace cutemplate_host {

inline uint64_t pc_of(ucontext_t const *context) {
#if defined(__x86_64__)
  return uint64_t(context->uc_mcontext.gregs[REG_RIP]);
#else
  return uint64_t(context->uc_mcontext.pc);
#endif
}

inline void const *frame_of(ucontext_t const *context) {
#if defined(__x86_64__)
  return reinterpret_cast<void const *>(context->uc_mcontext.gregs[REG_RBP]);
#else
  return reinterpret_cast<void const *>(context->uc_mcontext.regs[29]);
#endif
}

// A fault of the kernel; or its time is up, by its own timer or by the supervisor's word.
void on_signal(int signal, siginfo_t *info, void *context) {
  in_kernel = false;
  bool const late = signal == SIGPROF || signal == SIGTERM;
  if (Finding *finding = new_finding(late ? timeout : crash)) {
    auto const *where = static_cast<ucontext_t const *>(context);
    finding->signal = late ? 0 : uint64_t(signal);
    // As if it were a return address: those are taken to be one past what they mean.
    take_frames(finding, pc_of(where) + 1, frame_of(where));
    // A sanitizer's code, which keeps no chain of frames, may have been interrupted on behalf of the kernel.
    if (last_access != 0 && finding->frames < max_frames) {
      std::copy_backward(finding->pcs + 1, finding->pcs + finding->frames, finding->pcs + finding->frames + 1);
      finding->pcs[1] = last_access;
      ++finding->frames;
    }
    if (signal == SIGSEGV || signal == SIGBUS) {
      auto const address = reinterpret_cast<uint64_t>(info->si_addr);
      locate(finding, address);
      if (address - reinterpret_cast<uint64_t>(running->low) + guard_bytes < guard_bytes) {
        std::snprintf(finding->text, sizeof finding->text, "the stack of the thread overflowed its %zu bytes",
                      stack_bytes);
      }
    }
  }
  stop_worker();
}

void catch_signals() {
  stack_t stack = {};
  stack.ss_size = 256 * 1024;
  stack.ss_sp = map_memory(stack.ss_size, MAP_PRIVATE);
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF, SIGTERM}) {
    sigaction(signal, &action, nullptr);
  }
}

// The limit is one of processor time: a machine that is busy with other things makes no kernel fail.
void start_timer() {
  itimerval timer = {};
  timer.it_value.tv_sec = time_t(job.limit_ms / 1000);
  timer.it_value.tv_usec = suseconds_t(job.limit_ms % 1000 * 1000);
  setitimer(ITIMER_PROF, &timer, nullptr);
}

void run_blocks() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // What a kernel prints is not lost when it crashes.
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  catch_signals();
  start_timer();
  make_threads();
  make_cells();
  uint64_t const blocks = job.launch().blocks();
  uint64_t const chunk = std::max<uint64_t>(1, blocks / (job.workers * 16));
  while (__atomic_load_n(&verdicts->stop, __ATOMIC_RELAXED) == 0) {
    uint64_t const first = __atomic_fetch_add(&verdicts->next_block, chunk, __ATOMIC_RELAXED);
    if (first >= blocks) {
      break;
    }
    uint64_t const last = std::min(first + chunk, blocks);
    for (uint64_t block = first; block < last; ++block) {
      run_block(block);
    }
    __atomic_fetch_add(&verdicts->finished_blocks, last - first, __ATOMIC_RELAXED);
  }
  std::fflush(stdout);
  _Exit(0);
}

uint64_t now_ms() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return uint64_t(time.tv_sec) * 1000 + uint64_t(time.tv_nsec) / 1000000;
}

// A worker was ended by a signal that it did not catch: that is all there is to say.
void note_signal(int status, bool time_is_up) {
  if (WIFSIGNALED(status)) {
    verdicts->stop = 1;
    if (Finding *finding = new_finding(time_is_up ? timeout : crash)) {
      finding->signal = time_is_up ? 0 : uint64_t(WTERMSIG(status));
    }
  }
}

// Blocks are missing, and nobody has said why: the kernel called exit. What comes after would mean nothing.
void note_missing_blocks(uint64_t finished) {
  if (verdicts->count == 0 && finished < job.launch().blocks()) {
    verdicts->stop = 1;
    if (Finding *finding = new_finding(crash)) {
      std::snprintf(finding->text, sizeof finding->text, "the kernel ended its process");
    }
  }
}

void stop_workers(std::vector<pid_t> const &workers, int signal) {
  for (pid_t worker : workers) {
    if (worker != 0) {
      kill(worker, signal);
    }
  }
}

// How long a job may take by the clock: for a kernel that uses no processor time and does not end either.
uint64_t patience_ms() { return 20 * job.limit_ms + 10000; }

// Waits for the workers: to the end, or to the end of patience, after which they get a second to say where they were.
void supervise(std::vector<pid_t> &workers) {
  uint64_t const deadline = now_ms() + patience_ms();
  bool asked = false;
  timespec const pause = {0, 200000};
  for (size_t left = workers.size(); left > 0;) {
    int status;
    pid_t const ended = waitpid(-1, &status, WNOHANG);
    if (ended > 0) {
      for (pid_t &worker : workers) {
        worker = worker == ended ? 0 : worker;
      }
      note_signal(status, asked);
      --left;
      continue;
    }
    uint64_t const now = now_ms();
    if (now >= deadline && !asked) {
      asked = true;
      verdicts->stop = 1;
      stop_workers(workers, SIGTERM);
    } else if (now >= deadline + 1000) {
      stop_workers(workers, SIGKILL);
    }
    nanosleep(&pause, nullptr);
  }
}

void start_workers(std::vector<pid_t> &workers) {
  for (pid_t &worker : workers) {
    worker = fork();
    if (worker < 0) {
      stop_workers(workers, SIGKILL);
      fail("no process could be started for the kernel");
    }
    if (worker == 0) {
      run_blocks();
    }
  }
}

// Runs the grid of one entry to its end, in processes that end with it: what they wrote to the arena stays.
void run_launch() {
  verdicts->next_block = 0;
  uint64_t const before = verdicts->finished_blocks;
  std::vector<pid_t> workers(std::min(job.workers, job.launch().blocks()));
  start_workers(workers);
  supervise(workers);
  note_missing_blocks(verdicts->finished_blocks - before);
#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_PLAIN
  check_canaries();
#endif
}

void check_job() {
  for (Launch const &launch : job.launches) {
    if (job.params_bytes != cutemplate_host_params_sizes[launch.entry]) {
      fail("the parameter struct of the kernel has another size than the job's");
    }
    if (launch.dynamic_bytes > cutemplate_host_dynamic_size) {
      fail("the job asks for more dynamic shared memory than a block can have");
    }
  }
}

}  // namespace cutemplate_host

int main() {
  using namespace cutemplate_host;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  read_job();
  check_job();
  verdicts = static_cast<Verdicts *>(map_memory(sizeof(Verdicts), MAP_SHARED));
  read_arena();
  make_workspace_map();
#if CUTEMPLATE_HOST_MODE == CUTEMPLATE_HOST_PLAIN
  protect_arena();
#endif
  // Standard output belongs to the protocol; what a kernel prints goes to standard error.
  int const out = dup(1);
  dup2(2, 1);
  // Should all else fail: an alarm nobody catches.
  alarm(unsigned(job.launches.size() * (patience_ms() / 1000 + 60)));
  for (job.current = 0; job.current < job.launches.size() && verdicts->stop == 0; ++job.current) {
    run_launch();
  }
  write_result(out);
  return 0;
}
