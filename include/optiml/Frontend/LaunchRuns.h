//===- LaunchRuns.h - launches that follow one another ----------*- C++ -*-===//
//
// Launches that stand one after the other in one block of the host's code, so that all but the last may be put off until
// the last: between them the host does nothing that could see what they do (the rule of LaunchLoops.h), nor leaves.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_FRONTEND_LAUNCHRUNS_H
#define OPTIML_FRONTEND_LAUNCHRUNS_H

#include "optiml/Frontend/Program.h"

namespace optiml {

/// Two launches or more, each a statement of its own in the same block. Indices into Program::launches().
struct LaunchRun {
  std::vector<unsigned> sites;
};

struct FoundRuns {
  std::vector<LaunchRun> runs;    ///< in the order of the file; no launch is in two of them
  std::vector<std::string> notes; ///< "line 12: …": what stands between two launches and keeps them apart
};

/// `host` is a host view. Launches within templates and macros are left out.
FoundRuns findLaunchRuns(const Program &host);

} // namespace optiml

#endif
