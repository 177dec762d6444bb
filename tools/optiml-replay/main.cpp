//===- optiml-replay - runs one captured launch on a device module --------===//
//
// Usage: optiml-replay JOB.json RESULT.json (see include/optiml/Workload/Replay.h and docs/formats.md). Exit code 0
// when the result was written, whatever it says; 2 otherwise.
//
//===----------------------------------------------------------------------===//
#include "../../lib/Emulator/Runtime/ReplayRun.h"
#include <cstdio>
#include <unistd.h>

using namespace optiml::emu;

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: optiml-replay JOB.json RESULT.json\n");
    return 2;
  }
  ReplayJob job;
  std::string error;
  if (!readJob(argv[1], job, error)) {
    fprintf(stderr, "optiml-replay: error: %s\n", error.c_str());
    return 2;
  }
  ReplayResult result = runReplay(job, argv[2]);
  fflush(stdout);
  if (!writeResult(result, argv[2], error)) {
    fprintf(stderr, "optiml-replay: error: %s\n", error.c_str());
    _exit(2);
  }
  _exit(0); // the pool's threads and an abandoned kernel's state need no tidying
}
