//===- Coverage.h - which code of a program text ran ------------*- C++ -*-===//
//
// "The same" says nothing about code that no comparison ran. This gathers, over several runs of one program text in the
// emulator, what did not run.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_COVERAGE_H
#define OPTIML_LIB_EVALUATE_VERIFY_COVERAGE_H

#include "optiml/Workload/Replay.h"
#include "llvm/Support/Error.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace optiml {

class Coverage {
public:
  /// Takes the file of a program's run in (envCoverage). True where code ran that had not run before.
  llvm::Expected<bool> addFile(const std::string &path);
  /// ... and a replay, of these kernels.
  bool addRun(const std::set<std::string> &kernels, const std::vector<emu::MissedCode> &missedNow);

  /// Code of kernels that ran, which itself never did, in the order of the source.
  std::vector<emu::MissedCode> missed() const;
  /// Kernels of the program that never ran, by symbol.
  std::vector<std::string> idleKernels() const;
  /// Kernels, by symbol, with a hash of their code.
  const std::map<std::string, uint64_t> &kernels() const { return hashes; }
  /// Hashes of the code of all its device functions.
  const std::set<uint64_t> &functions() const { return functionHashes; }
  /// Leaves out what is said of a kernel.
  void ignore(const std::string &symbol);
  /// Leaves out code in these functions.
  void ignoreFunctions(const std::set<uint64_t> &hashes);
  /// Leaves out lines of `text` that the original has too, behind conditions with the same constants, and where they
  /// did not run either.
  void ignoreCopies(llvm::StringRef text, const Coverage &original, llvm::StringRef originalText);

private:
  std::map<std::string, uint64_t> hashes;
  std::set<uint64_t> functionHashes;
  std::set<std::string> ran;
  std::map<uint32_t, emu::MissedCode> never; ///< of kernels that ran, by number
};

/// "line 12 of kernel ('x[i] = 0;'), …": at most a few places. `text` is that of the file at `path`.
std::string placesOf(const std::vector<emu::MissedCode> &missed, llvm::StringRef path, llvm::StringRef text);

} // namespace optiml

#endif
