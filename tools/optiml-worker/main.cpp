//===- optiml-worker - evaluates variants on one GPU ----------------------===//
//
//   optiml-worker [--device=N]        greets with a line about its GPU, then answers requests line by line
//   optiml-worker --replay JOB.json   runs captured launches once each, for compute-sanitizer and Nsight Compute
//   optiml-worker --version | --help
//
// The requests are in docs/formats.md. Whatever a kernel prints is dropped: the output belongs to the protocol.
//
//===----------------------------------------------------------------------===//
#include "optiml/Gpu/WorkerProgram.h"

int main(int argc, char **argv) { return optiml::gpu::workerProgram(argc, argv); }
