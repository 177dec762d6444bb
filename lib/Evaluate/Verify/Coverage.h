//===- Coverage.h - which code of a program text ran ------------*- C++ -*-===//
//
// "The same" says nothing about code that no comparison ran. This gathers, over several runs of one program text in the
// emulator, what did not run.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EVALUATE_VERIFY_COVERAGE_H
#define OPTIML_LIB_EVALUATE_VERIFY_COVERAGE_H

#include "optiml/Workload/Replay.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/Error.h"
#include <map>
#include <set>
#include <string>
#include <vector>

namespace optiml {

/// How near a condition came to an outcome (ConditionRecord).
struct ConditionSide {
  uint32_t least = 0;    ///< the distance of integers at the edge to the other outcome
  bool leads = false;    ///< to work with the GPU
  uint64_t nearness = 0; ///< 0: it never had this outcome
  int64_t left = 0, right = 0;
  bool seen() const { return nearness != 0; }
  bool atEdge() const { return seen() && ~nearness <= least; }
};

struct ConditionState {
  bool isHost = false, isFloat = false;
  unsigned limitedAxis = 0; ///< 1, 2: whether a launch has more blocks on y or z than it may; 0: it is another one
  std::string function, file;
  uint32_t line = 0;
  uint64_t functionHash = 0, place = 0;
  ConditionSide sides[2]; ///< false, true
};

/// Code of the host that works with the GPU.
struct HostSite {
  std::string function, file;
  uint32_t line = 0;
  uint64_t functionHash = 0;
  bool ran = false;
  std::set<std::string> work; ///< kernels that it may launch; "*": copies and the like. Empty: it can never run
};

/// What one run of a program tells (envCoverage).
struct ProgramCoverage {
  std::map<std::string, uint64_t> kernels; ///< by symbol, with a hash of their code
  std::set<std::string> ran;               ///< of these
  bool testsNaN = false;                   ///< one that ran asks whether a number is NaN
  bool dataDecides = false;                ///< what one that ran touches may depend on the content of memory
  std::set<std::string> pointees;          ///< what the kernels' pointers point to (PointerDesc)
  uint64_t launches = 0;                   ///< hash of all launches: kernels, geometry, arguments
  std::set<uint64_t> functions;            ///< hashes of the code of functions, the host's too
  std::map<uint32_t, uint64_t> covered;    ///< code that ran, with its place
  std::vector<emu::MissedCode> missed;
  std::map<uint32_t, ConditionState> conditions;
  std::map<uint64_t, HostSite> sites; ///< by place
  std::vector<int64_t> constants;     ///< integers that main() is written with
};
/// Empty where there is no such file: the program launched nothing, or was stopped.
llvm::Expected<ProgramCoverage> readCoverage(const std::string &path);

class Coverage {
public:
  /// Takes in a program's run. True where code ran that had not run before.
  bool add(const ProgramCoverage &run);
  /// ... and a replay, of these kernels.
  bool addRun(const std::set<std::string> &kernels, const std::vector<emu::MissedCode> &missedNow);

  /// ... and all that another has taken in.
  void add(const Coverage &other);

  /// Code of kernels that ran, which itself never did, nor did another instance of it; in the order of the source.
  std::vector<emu::MissedCode> missed() const;
  /// Kernels of the program that never ran, by symbol.
  std::vector<std::string> idleKernels() const;
  /// Kernels, by symbol, with a hash of their code.
  const std::map<std::string, uint64_t> &kernels() const { return hashes; }
  /// What their pointers point to (PointerDesc).
  const std::set<std::string> &pointees() const { return pointeesOfKernels; }
  /// Hashes of the code of all its functions.
  const std::set<uint64_t> &functions() const { return functionHashes; }
  /// Sites that never ran.
  std::vector<HostSite> missedSites() const;
  /// Leaves out what is said of a kernel, and sites that launch no other one.
  void ignore(const std::string &symbol);
  /// Leaves out sites in functions of other names than these (without template arguments).
  void ignoreSitesOutside(const std::set<std::string> &functions);
  /// Leaves out code in these functions.
  void ignoreFunctions(const std::set<uint64_t> &hashes);
  /// Leaves out lines of `text` that the original has too, behind conditions with the same constants, and where they
  /// did not run either.
  void ignoreCopies(llvm::StringRef text, const Coverage &original, llvm::StringRef originalText);

private:
  std::map<std::string, uint64_t> hashes;
  std::set<uint64_t> functionHashes;
  std::set<std::string> pointeesOfKernels;
  std::set<std::string> ran;
  std::map<uint32_t, emu::MissedCode> never; ///< of kernels that ran, by number
  std::set<uint64_t> places;                 ///< where code ran
  std::map<uint64_t, HostSite> sites;        ///< that never ran, by place
};

/// "line 12 of kernel ('x[i] = 0;'), …": at most a few places. `text` is that of the file at `path`.
std::string placesOf(const std::vector<HostSite> &sites, llvm::StringRef path, llvm::StringRef text);
std::string placesOf(const std::vector<emu::MissedCode> &missed, llvm::StringRef path, llvm::StringRef text);

} // namespace optiml

#endif
