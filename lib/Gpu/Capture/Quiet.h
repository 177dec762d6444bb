//===- Quiet.h - our own calls to the driver --------------------*- C++ -*-===//
#ifndef OPTIML_CAPTURE_QUIET_H
#define OPTIML_CAPTURE_QUIET_H

namespace optiml::gpu {

/// While one lives, this thread's calls to the driver are ours: callbacks must not look at them.
class Quiet {
public:
  Quiet() { ++depth(); }
  ~Quiet() { --depth(); }
  Quiet(const Quiet &) = delete;
  Quiet &operator=(const Quiet &) = delete;
  static bool here() { return depth() != 0; }

private:
  static int &depth() {
    static thread_local int value = 0;
    return value;
  }
};

} // namespace optiml::gpu

#endif
