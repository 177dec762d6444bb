//===- Interrupt.cpp - Ctrl-C ends a program's work, not the program ------===//
#include "optiml/Support/Interrupt.h"
#include <csignal>

static std::atomic<bool> flag{false};

static void onInterrupt(int signal) {
  flag = true;
  std::signal(signal, SIG_DFL);
}

const std::atomic<bool> &optiml::interrupted() {
  static const bool caught = [] {
    std::signal(SIGINT, onInterrupt);
    std::signal(SIGTERM, onInterrupt);
    return true;
  }();
  return (void)caught, flag;
}
