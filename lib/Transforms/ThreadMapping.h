//===- ThreadMapping.h - which thread does which work -----------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_THREADMAPPING_H
#define OPTIML_LIB_TRANSFORMS_THREADMAPPING_H

#include "Distribute.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"

namespace optiml {

/// Maps the original threads to blocks of `shape` threads, each doing the work of copies[axis].factor original threads
/// along every axis (globalIdx.a = blockIdx.a * shape*factor + base + i*distance, or in pieces). Rewrites `kernel`, and
/// the plan and conditions of `state`. NotApplicable where the kernel depends on its own block shape. `merge`, when
/// given, puts the copies' work together in place of a Distributor; globalIdx.a stands for copy 0.
using MergeCopies = std::function<llvm::Error(KernelState &state, Kernel &kernel, const KernelModel &model)>;
llvm::Error remapThreads(KernelState &state, Kernel &kernel, const std::array<int64_t, 3> &shape,
                         const std::array<CopyAxis, 3> &copies, const MergeCopies &merge = nullptr);

/// NotApplicable, with the place, where threads of the kernel wait for each other or share memory. `kept`: as for
/// threadsMayMeet.
llvm::Error requireApart(const Kernel &kernel, Kept kept = Kept::Nothing);

/// A copy of the kernel for a transform that gives its threads' work to others: NotApplicable unless the kernel uses
/// its first `axes` axes through their global indices (globalIdx.a in the copy) and no others (with `batches`, others
/// so too, if it likes), does not synchronize, changes no parameters, has no block shape yet, and may be launched with
/// blocks of `threads` threads. Early returns are guards. A kernel without any index is taken for the work of one
/// thread, with a condition in `state`.
llvm::Expected<std::shared_ptr<Kernel>> remappable(KernelState &state, unsigned axes, int64_t threads,
                                                   bool batches = false, Kept kept = Kept::Nothing);

/// Where the source writes the block's extents as constants ("blockIdx.x * 128 + threadIdx.x"), puts blockDim there,
/// under the condition that the launch has blocks of the captured shape.
void useBlockExtents(KernelState &state, Kernel &kernel);

/// Records that none of `arrays` overlaps what the kernel writes to global memory (Bounds.h, requireDisjoint).
llvm::Error requireDisjointFromWritten(KernelState &state, const KernelModel &model,
                                       const std::set<std::string> &arrays);

/// What a thread reads, another would read, too: NotApplicable where memory is volatile.
llvm::Error requireSameMemory(const Kernel &kernel);

/// Neighbours along `index` (a loop's variable, globalIdx.a) access neighbouring elements, or records of a few numbers.
bool accessesNeighbours(const Access &access, const std::string &index);

/// Launches so many blocks along the axis, over the original launch, and knows how many that is where the captured
/// launch tells. Requires that a grid may have them.
void setBlocks(KernelState &state, unsigned axis, const IntExpr &blocks);

/// The captured launch has fewer threads than the GPU holds at once.
bool fewThreads(const LaunchHints &hints);

/// The kernel's work differs along `axis`; of a kernel in terms of global indices.
bool usesGlobalIndex(const Kernel &kernel, unsigned axis);

/// Writes quotients and remainders of globalIdx.a by what does not change during a launch with the quotient of the
/// first index that a block covers, which all of the block share, where the divisor is a multiple of `ofBlock`, the
/// number of these; else, in the same way, of the first of the `ofThread` adjacent ones that a thread has (1: they are
/// not adjacent). The conditions go to `state`. The first indices are pseudo indices, until they are lowered.
void takeQuotientsOfFirst(KernelState &state, Kernel &kernel, unsigned axis, int64_t ofBlock, int64_t ofThread);
/// "globalIdx.a < n" becomes a test of the first index, where n is a multiple of a thread's indices, or without any of
/// a block's: by a condition that the captured launches fulfil.
void takeBoundsOfFirst(KernelState &state, Kernel &kernel, unsigned axis, int64_t ofBlock, int64_t ofThread);
/// Replaces these by `make(axis, ofThread)`.
void lowerFirstIndices(Kernel &kernel, const std::function<ExprRef(unsigned axis, bool ofThread)> &make);

/// Removes declarations that nothing uses any more (pure initializers only, and no shared memory of dynamic size).
void removeUnused(Kernel &kernel);

/// Records why threads along `axis` beyond the original ones do no harm when each block covers `tile` of them: all
/// effects stand under a bound, which the launch covers, or the tiles hold exactly the launch's threads.
void requireCover(KernelState &state, const KernelModel &model, unsigned axis, int64_t tile);

/// For a rewrite that makes one thread along `axis`, which the kernel does not look at: records that the launch has one
/// there, or, where the captured one has more, under what conditions they repeat each other's work.
void requireOneCopy(KernelState &state, unsigned axis);

} // namespace optiml

#endif
