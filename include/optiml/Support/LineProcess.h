//===- LineProcess.h - a program that answers line by line ------*- C++ -*-===//
//
// A child process with pipes to its input and output that stays and is talked to in lines. Like every child it is
// untrusted: it runs in its own process group, answers are limited in time and length, and it is killed with this
// object.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_SUPPORT_LINEPROCESS_H
#define OPTIML_SUPPORT_LINEPROCESS_H

#include "llvm/Support/Error.h"
#include <atomic>
#include <memory>
#include <string>
#include <vector>

namespace optiml {

class LineProcess {
public:
  /// Starts argv[0] (searched on PATH). An error means it could not be started.
  static llvm::Expected<std::unique_ptr<LineProcess>> start(const std::vector<std::string> &argv);
  ~LineProcess();
  LineProcess(const LineProcess &) = delete;
  LineProcess &operator=(const LineProcess &) = delete;

  enum class Answer {
    Line,
    Ended,    ///< the process ended, or closed its output
    TimedOut, ///< the process is still there
    Cancelled
  };
  /// Writes `text` and an end of line. False when the process reads no more.
  bool send(const std::string &text);
  /// Waits for a line, without its end, up to `seconds`.
  Answer receive(std::string &line, double seconds, const std::atomic<bool> *cancel = nullptr);
  /// Kills it and its children, and waits.
  void kill();
  /// How it ended, with the last of what it wrote to stderr: "exit code 1: no such GPU". Call after kill() or Ended.
  std::string describe();
  int pid() const { return process; }

private:
  LineProcess() = default;
  void readErrors();
  int process = -1, in = -1, out = -1, err = -1, status = 0;
  std::string buffered, errors;
};

} // namespace optiml

#endif
