//===- WorkerProgram.h - optiml-worker --------------------------*- C++ -*-===//
#ifndef OPTIML_GPU_WORKERPROGRAM_H
#define OPTIML_GPU_WORKERPROGRAM_H

namespace optiml::gpu {

/// All of optiml-worker; gives its exit status.
int workerProgram(int argc, char **argv);

} // namespace optiml::gpu

#endif
