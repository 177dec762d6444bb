//===- LaunchLoops.h - launches that may be put off -------------*- C++ -*-===//
//
// A host loop whose launches may be put off until its end: between them the host does nothing that could see what they
// do. Its body launches kernels, changes local scalars and pointers (swaps of buffers, the loop's variable), waits for
// the GPU and looks at error codes, and does nothing else.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_FRONTEND_LAUNCHLOOPS_H
#define OPTIML_FRONTEND_LAUNCHLOOPS_H

#include "optiml/Frontend/Program.h"
#include <algorithm>
#include <map>
#include <set>

namespace optiml {

struct LaunchLoop {
  unsigned begin = 0, end = 0; ///< byte range of the whole statement, its semicolon included
  unsigned line = 0;
  std::vector<unsigned> launches;   ///< LaunchSite::begin of the launches in it
  std::vector<std::string> symbols; ///< of the kernels, one for each launch
  /// Only local variables of the function hold the pointers that the loop deals with; of these, `living` are used after
  /// it other than to be freed. What no living one points to is never looked at again.
  bool pointersKnown = false;
  std::vector<std::string> living;
  std::string refused; ///< why the launches cannot be put off ("line 12: …"); empty: they can
};

/// Every loop that has launches in its own body (those of inner loops belong to these), in the order of the file.
/// `host` is a host view; in a device view the same loops stand. Loops within templates and macros are left out.
std::vector<LaunchLoop> findLaunchLoops(const Program &host);

// Launches that stand one after the other in one block of the host's code, so that all but the last may be put off
// until the last: between them the host does nothing that could see what they do (the same rule), nor
// leaves.

/// Two launches or more, each a statement of its own in the same block, or in a loop that is one. Indices into
/// Program::launches().
struct LaunchRun {
  std::vector<unsigned> sites;
  /// A loop on the host in which some of the launches stand, and nothing that could see what they do.
  struct Loop {
    size_t first = 0, count = 0; ///< which of `sites`
    bool holds(size_t site) const { return first <= site && site < first + count; }
    unsigned begin = 0, end = 0; ///< byte range of the statement
    std::vector<bool> always;    ///< of each of its sites: no turn leaves it out
    /// How a variable changes, where it does so once a turn: by a constant amount, or to twice or half its value; or it
    /// is another one in each turn.
    enum class Change { Other, Steps, Doubles, Halves, OfTurn };
    std::map<std::string, Change> changed; ///< the function's own variables
  };
  std::vector<Loop> loops;
  bool inLoop(size_t site) const {
    return std::any_of(loops.begin(), loops.end(), [&](const Loop &loop) { return loop.holds(site); });
  }
  /// The function's own variables that the arguments of each site mention.
  std::vector<std::vector<std::set<std::string>>> mentioned;
  /// Pointers that begin as copies of others: T *next = first;
  std::map<std::string, std::string> copies;
  /// As lastUses: where the file uses them first, other than to allocate them.
  std::map<std::string, unsigned> firstUses;
  /// Of the function's own variables with memory from cudaMalloc, of which nothing keeps a copy: where the file uses
  /// them last, other than to free them (byte offsets). After that nothing looks at the memory. Empty within a loop.
  std::map<std::string, unsigned> lastUses;
};

struct FoundRuns {
  std::vector<LaunchRun> runs;    ///< in the order of the file; no launch is in two of them
  std::vector<std::string> notes; ///< "line 12: …": what stands between two launches and keeps them apart
};

/// `host` is a host view. Launches within templates and macros are left out.
FoundRuns findLaunchRuns(const Program &host);

} // namespace optiml

#endif
