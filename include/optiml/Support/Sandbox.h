//===- Sandbox.h - for programs that a model wrote --------------*- C++ -*-===//
//
// What a child process may do, for ProcessOptions::sandbox: compute, use threads, read the system's libraries and what
// it is given, write where it is told. No network, no other programs, no other processes, nothing of the user's
// environment.
//
//  - A system-call filter (seccomp): sockets, new processes, execve, tracing, mounting, io_uring and the like kill the
//    process; what is merely not needed fails with EPERM. No new privileges.
//  - Landlock, where the kernel has it (5.13): files. Without it the child can read and write what this user can, as
//  far
//    as its limits on written bytes allow; the network stays out of reach.
//  - An environment of a few harmless variables.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_SUPPORT_SANDBOX_H
#define OPTIML_SUPPORT_SANDBOX_H

#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace optiml {

struct Sandbox {
  std::vector<std::string> readable;    ///< files and folders beside the program and the system's libraries
  std::vector<std::string> writable;    ///< files and folders; also readable
  std::vector<std::string> environment; ///< variables that it inherits beside those of the locale
};

/// Whether files are confined too, on this machine: the kernel has Landlock.
bool sandboxConfinesFiles();

/// A sandbox made ready, so that entering it needs nothing but system calls: for runProcess.
class PreparedSandbox {
public:
  /// `program` may be executed, once. An error: this kernel has no system-call filters.
  static llvm::Expected<PreparedSandbox> prepare(const Sandbox &sandbox, const std::string &program);
  PreparedSandbox(PreparedSandbox &&other) noexcept;
  PreparedSandbox(const PreparedSandbox &) = delete;
  ~PreparedSandbox();

  /// Enters the sandbox and executes the program. Async-signal-safe; returns only on failure, with errno set.
  void execute(const char *path, char **argv, char **envp) const;
  bool keepsVariable(const std::string &name) const;

private:
  PreparedSandbox() = default;
  int ruleset = -1; ///< Landlock's
  std::vector<unsigned char> filter;
  unsigned long secret[3] = {}; ///< what the one execve shows that is allowed
  std::vector<std::string> variables;
};

} // namespace optiml

#endif
