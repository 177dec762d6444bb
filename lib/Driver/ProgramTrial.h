//===- ProgramTrial.h - a whole program against the original ----*- C++ -*-===//
//
// What changes the host's launches is no kernel, so that the search over kernels cannot weigh it: the whole program is
// compared (on the emulator, with odd sizes) and timed with it and without it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_DRIVER_PROGRAMTRIAL_H
#define OPTIML_LIB_DRIVER_PROGRAMTRIAL_H

#include "Backend.h"
#include "optiml/ActionSpace/ProgramRewrites.h"
#include <future>
#include <optional>
#include <set>

namespace optiml {

/// Compares the program with the original, on the emulator. What was compared, or an error; `cannotTell` then gets
/// whether that says nothing against the program, because it takes too long there, for example.
llvm::Expected<std::string> compareWholeProgram(const SearchTask &task, const Backend &backend, const std::string &text,
                                                bool *cannotTell = nullptr);

/// How many times as fast the program must become for new code to be worth it.
double leastProgramGain(const SearchTask &task, const Backend &backend);

/// A program beside the original.
struct TimedProgram {
  ProgramTimes times;   ///< of the program without and with what changed
  std::string verified; ///< what was compared, for people
};
/// Times the program and compares it, on a GPU by what both programs copy to the host, and on the emulator where that
/// does not show that they are the same. An error where the program is not `leastGain` times as fast as the original.
/// `executable`: of the text, where it is built. `floatBytes`: of numbers that may differ by rounding, where
/// their types are not known; none: they may have several sizes.
llvm::Expected<TimedProgram> timeAndCompare(const SearchTask &task, Backend &backend, const std::string &text,
                                            const std::string &executable, std::optional<unsigned> floatBytes,
                                            double leastGain);

/// The loops of the kernels that are searched.
FoundLoops findLoops(const SearchTask &task, const Program &device, const Program &host);

// Before the search: a program in which launches are fused takes the place of the original when it is the same and
// faster. The search then rewrites the fused kernels as it would any other.

struct FuseTrial {
  std::string text;                 ///< the program with fused launches; empty: all stay as they are
  std::string executable;           ///< of it, where programs are run
  std::unique_ptr<Program> device;  ///< ... in the device view
  std::vector<std::string> kernels; ///< "addBias+relu"
  std::vector<std::string> names;   ///< of the new kernels
  std::set<unsigned> launches;      ///< of the fused ones, LaunchSite::begin
  ProgramTimes times;               ///< of the program without and with them
  std::string verified;             ///< what was compared, for people
  std::vector<std::string> notes;   ///< why launches stay apart
  double gain() const { return text.empty() || times.after <= 0 ? 1 : times.before / times.after; }
};

struct FuseTrials {
  /// Without a loss of threads, and no slower.
  FuseTrial plain;
  /// The same, and kernels of a thread an element fused into those of a thread a row (fuseOverRows). What comes out has
  /// fewer threads; how fast it can be made is for a search to say, so that its time is no reason against it here.
  FuseTrial overRows;
};

/// The program with all launches fused that can be, and with those over rows too, written and built while the original
/// is observed. The destructor stops nvcc.
class FusionsAhead {
public:
  /// Of `device`, a view of the task's text. All of these outlive this, and nobody else looks at the view's AST until
  /// get() has returned.
  FusionsAhead(const SearchTask &task, Backend &backend, const Program &device);
  ~FusionsAhead();

  struct Made {
    /// The task's text in the host view; null: `why` it cannot be parsed, or, with no reason, there is nothing to fuse.
    std::unique_ptr<Program> host;
    std::string why;
    std::optional<FoundFusions> found;    ///< without a loss of threads; none: they were not looked for
    std::optional<FoundFusions> overRows; ///< and with one
    /// A program with launches fused.
    struct Built {
      std::string text;
      std::shared_future<std::string> executable;   ///< empty where it could not be built
      std::future<std::unique_ptr<Program>> device; ///< the device view; null where it could not be parsed
    };
    std::vector<Built> built;
  };
  /// Waits for the texts.
  Made &get();

private:
  Deadline stop;
  std::future<Made> making;
  std::optional<Made> made;
};

/// After Backend::observe() of the original, of which `device` is a view. Takes at most a share of `budget`, the
/// search's time.
FuseTrials tryFusions(const SearchTask &task, Backend &backend, const Program &device, bool overRows,
                      FusionsAhead &ahead, const Deadline &budget);

} // namespace optiml

#endif
