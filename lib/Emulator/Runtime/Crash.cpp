//===- Crash.cpp - signals in device code ---------------------------------===//
#include "Fault.h"
#include "Scheduler.h"
#include <csignal>
#include <cstring>
#include <sys/mman.h>

using namespace optiml::emu;

static constexpr int crashSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};

void optiml::emu::useSignalStack() {
  static thread_local bool done = false;
  if (done)
    return;
  done = true;
  stack_t existing{};
  if (sigaltstack(nullptr, &existing) == 0 && !(existing.ss_flags & SS_DISABLE))
    return;
  constexpr size_t bytes = 256 << 10; // reporting formats text and writes files
  void *p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED)
    return;
  stack_t s{};
  s.ss_sp = p;
  s.ss_size = bytes;
  sigaltstack(&s, nullptr);
}

static void onCrash(int signal, siginfo_t *info, void *) {
  Fiber *fiber = currentFiber();
  struct sigaction action{};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  if (!fiber)
    return; // the instruction runs again and the default takes its course
  // Device code holds no locks of the C library, except inside printf: reporting is as safe as it needs to be for a
  // process that ends here.
  Fault f = faultAt(*fiber, "crash", ~0u);
  uint64_t address = reinterpret_cast<uint64_t>(info->si_addr);
  f.headline = std::string("the kernel crashed: ") + strsignal(signal);
  if (signal == SIGFPE)
    f.detail = "an integer was divided by zero";
  else if (fiber->block->stacks.isGuard(address))
    f.detail = "the thread's local memory exceeds the " + std::to_string(StackPool::stackBytes >> 10) +
               " KiB that the emulator gives it";
  else if (signal == SIGSEGV || signal == SIGBUS) {
    char text[64];
    snprintf(text, sizeof text, "it touched address 0x%llx", static_cast<unsigned long long>(address));
    f.detail = text;
  }
  if (faultCollector && replayCrashed)
    replayCrashed(f);
  stopProgram(f);
}

void optiml::emu::installCrashHandler() {
  useSignalStack();
  static bool once = [] {
    for (int signal : crashSignals) {
      struct sigaction existing{};
      sigaction(signal, nullptr, &existing);
      if (existing.sa_handler != SIG_DFL)
        continue;
      struct sigaction action{};
      action.sa_sigaction = onCrash;
      action.sa_flags = SA_SIGINFO | SA_ONSTACK;
      sigaction(signal, &action, nullptr);
    }
    return true;
  }();
  (void)once;
}
