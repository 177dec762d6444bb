//===- Flags.h - OptiML's own command-line flags ----------------*- C++ -*-===//
//
// The table of the flags that optiml-clang adds to nvcc's, and their parser. The launcher and the search program share
// it, so it includes no LLVM header. Every flag is also an environment variable; the command line wins.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_DRIVER_FLAGS_H
#define OPTIML_DRIVER_FLAGS_H

#include "optiml/LanguageModels/ModelFlags.h"
#include "optiml/Support/FloatRule.h"
#include "optiml/Support/ThreadRange.h"
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace optiml {

enum class BackendChoice { Auto, Gpu, Cpu };

/// What to do with what earlier searches learnt. The last three are done in place of a compilation.
enum class MemoryUse { On, Off, Import, Export, Stats };

/// When a search ends: whichever limit is reached first. 0: no such limit.
struct SearchBudget {
  unsigned evaluations = 200;
  double seconds = 120;
};

/// What a search leaves for people and tools; empty: not written.
struct ReportFlags {
  std::string page, diff, fixIts, sarif; ///< files; a diff of "-" goes to standard output
  std::string record, recordFile;        ///< "yaml" or "bitstream", and where it goes; empty: SOURCE.opt.yaml
  std::string passed, missed, analysis;  ///< regular expressions for the pass "optiml", as clang's -Rpass
  bool any() const {
    for (const std::string *one : {&page, &diff, &fixIts, &sarif, &record, &passed, &missed, &analysis})
      if (!one->empty())
        return true;
    return false;
  }
};

/// What the own flags ask for.
struct OwnFlags {
  bool search = false; ///< -O-search was given
  SearchBudget budget;
  BackendChoice backend = BackendChoice::Auto;
  std::string args;                     ///< of the program's run, as one shell-like text
  std::vector<std::string> programArgs; ///< `args`, split
  std::vector<std::string> workloads;   ///< folders of recorded launches; empty: the program is run
  ThreadRange threads;                  ///< of the recorded launches that are searched on
  std::string emit;                     ///< write the rewritten source here; empty: do not
  ReportFlags report;
  std::string recipe;          ///< evaluate nothing but this; empty: search
  std::string recipes;         ///< apply these; empty: none
  std::string saveRecipes;     ///< write what was found here; empty: do not
  double growth = 0;           ///< percent that recipes may add to an output; 0: no limit
  bool nearestRecipes = false; ///< those of lower compute capabilities, where there are no others
  bool strictRecipes = false;  ///< a recipe that does not apply is an error
  unsigned long long seed = 1;
  std::string store;   ///< folder of the store; empty: the default one
  bool strict = false; ///< a search that cannot run is an error
  unsigned jobs = 0;   ///< parallel evaluations; 0: as many as there are cores
  FloatRule fp;
  double time = 300; ///< seconds that one run of the program may take
  MemoryUse memory = MemoryUse::On;
  std::string memoryFile; ///< of Import and Export
  bool verbose = false;
  bool dryRun = false; ///< tell what would be searched, and stop
  bool help = false;
  std::string command;            ///< all of it, as it would be typed
  std::string kernel;             ///< regular expression; only kernels whose name contains a match; empty: all
  std::string strategy = "mcts";  ///< mcts, random, greedy, beam
  double margin = 1.3;            ///< how much better a prediction must be to replace the original
  bool coldCache = false;         ///< time on a GPU with an empty L2 cache
  std::string profiler = "cupti"; ///< reads the GPU's counters: cupti, ncu, none
  std::string proposer = "both";  ///< who proposes where a language model is given: expert, model, both
  bool llmMixture = true;         ///< several strategists with a gate
  bool llmJudge = true;           ///< a model diagnoses the bottleneck too
  bool llmKernels = true;         ///< models write whole kernels
  bool llmAssembly = false;       ///< ... with inline assembly
  double llmTime = 300;           ///< seconds that a search waits for answers when all else is done
  ModelFlags llm;                 ///< language models
  /// Nothing is compiled: the memory is imported, exported or described.
  bool isMemoryCommand() const { return memory != MemoryUse::On && memory != MemoryUse::Off; }
};

struct FlagInfo {
  const char *name;     ///< as on the command line, without "=VALUE"
  const char *env;      ///< the environment variable
  const char *value;    ///< how the value is written in the help; empty: takes none
  const char *fallback; ///< the default, in words
  const char *meaning;
};

/// Every own flag, sorted by name.
std::span<const FlagInfo> ownFlagTable();

/// The value of an environment variable, or nothing.
using EnvLookup = std::function<std::optional<std::string>(const std::string &name)>;
EnvLookup processEnvironment();

/// Splits `argv` (without the program's name) into own flags and `rest`, everything else in its order. Values of nvcc's
/// options (`-Xcompiler --optiml-x`, `-o FILE`) are no flags. The environment counts only where a search or the help is
/// asked for, so that a stale variable cannot break an ordinary compilation. On a mistake returns false and says in
/// `error` what is wrong and what would be right.
bool parseOwnFlags(const std::vector<std::string> &argv, const EnvLookup &env, OwnFlags &flags,
                   std::vector<std::string> &rest, std::string &error);

/// `200`, `90s` (also m, h) or both, separated by a comma; a limit that is not given is none.
bool parseBudget(std::string_view text, SearchBudget &budget, std::string &error);

/// Splits as a shell would: blanks separate, '…' and "…" keep them, \ escapes. Nothing is expanded.
bool splitCommandLine(std::string_view text, std::vector<std::string> &words, std::string &error);

/// The table for people.
std::string ownFlagsHelp();

} // namespace optiml

#endif
