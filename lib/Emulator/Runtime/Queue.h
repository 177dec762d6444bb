//===- Queue.h - work on streams --------------------------------*- C++ -*-===//
//
// A program may only rely on the order that streams, events and synchronization give it. Usually the emulator does all
// work at once. With OPTIML_EMU_LATE it does it as late as it may: at a call that waits for it, and there only what
// that waits for. A kernel that should have waited for another stream's, and a host that reads too early, then see what
// was there before.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_EMULATOR_RUNTIME_QUEUE_H
#define OPTIML_LIB_EMULATOR_RUNTIME_QUEUE_H

#include <cstdint>
#include <cuda_runtime_api.h>
#include <functional>
#include <memory>

namespace optiml::emu {

struct Work;
using WorkHandle = std::shared_ptr<Work>;

/// Puts work into a stream. Its error, where it is done at once.
cudaError_t enqueue(cudaStream_t stream, std::function<cudaError_t()> work);
/// The same, and waits for it: a call that returns with its work done.
cudaError_t enqueueAndFinish(cudaStream_t stream, std::function<cudaError_t()> work);
/// All that the stream holds by now: what an event stands for. Null: it is done.
WorkHandle markOf(cudaStream_t stream);
/// What comes into the stream from now on waits for `work`.
void waitFor(cudaStream_t stream, const WorkHandle &work);
void finish(const WorkHandle &work);
void finishStream(cudaStream_t stream);
void finishAll();
/// The stream's address may come again.
void forgetStream(cudaStream_t stream);
/// Counts the program's calls that put work into streams; inside of work, which one that was.
uint64_t workNumber();
/// Whether the program has done anything that late work could show.
bool mayBeLate();
void noteMayBeLate();

} // namespace optiml::emu

#endif
