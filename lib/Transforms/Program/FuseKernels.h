//===- FuseKernels.h - the steps of fusing kernels --------------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_PROGRAM_FUSEKERNELS_H
#define OPTIML_LIB_TRANSFORMS_PROGRAM_FUSEKERNELS_H

#include "optiml/Analysis/KernelModel.h"
#include "optiml/Transforms/FuseKernels.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace optiml {

/// Which part of a fused kernel each of its statements comes from.
using PartOf = std::map<const Stmt *, unsigned>;
/// Parameters by which a pointer goes on from turn to turn: how far apart planes lie.
using Planes = std::set<std::string>;
/// Names of two arrays, in alphabetical order.
using ArrayPairs = std::set<std::pair<std::string, std::string>>;

/// A grid-stride loop's own start and step, by its variable.
struct StrideLoop {
  ExprRef first, step;
};
using StrideLoops = std::map<std::string, StrideLoop>;
/// Lets the kernel's grid-stride loops stand as for (i = 0; …; ++i), and adds them to `strides`.
void hideStrides(Kernel &kernel, StrideLoops &strides);
/// Puts them back.
void showStrides(Kernel &kernel, const StrideLoops &strides);

/// What belongs to one thread of a kernel in which each thread works on a row (or a column, or a channel): of an array,
/// element (o * rows + r) * inner + i for all o < outer and i < inner belongs to thread r.
struct RowSpace {
  std::string name; ///< of the thread's row in that kernel
  Poly rows, inner, outer;
  /// Names for how many threads a launch has, by the text for it ("block.x", "grid.y * block.y"), where the kernel's
  /// own bounds do not tell what its threads stand for; without them that is the inner extent.
  std::map<std::string, std::string> threads;
  /// A row is an element, of which a thread of each kernel has one, by one axis or several. Then a kernel may have
  /// another number of them than `rows`, which may be 0: it is not known. Where it is, what axes beyond that count is
  /// done by one thread.
  bool ofElements = false;
};
/// So many elements; 0: it is not known.
RowSpace elementSpace(const Poly &rows);
/// Whether text that is kept as it is asks for a thread's place.
bool hidesPlace(const Kernel &kernel);
/// Whether a thread's place in the grid says what its element is, along x alone.
bool isAlongX(const Kernel &kernel);
/// How many elements such a kernel has, by its bounds.
std::optional<Poly> elementsAlongX(const Kernel &kernel);
/// Whether the kernel, along x, has another number than that, as it seems; nothing: it is not known.
bool hasOtherElements(const Kernel &kernel, const std::optional<Poly> &elements);
/// How far apart elements are that differ by one along an index.
struct IndexStride {
  std::string index;
  Poly elements;
};
/// Those of the indices in an access to global memory, from the one whose neighbours lie side by side on; each stride
/// is a multiple of the one before. Indices along which a whole `plane` lies between elements are left out. Empty: it
/// is not seen.
std::vector<IndexStride> elementStrides(const KernelModel &model, const Access &access,
                                        llvm::ArrayRef<std::string> indices, const Poly &plane);
/// What a launch of such threads must be to have one for each of the rows, as brought from another kernel.
llvm::Expected<std::vector<Condition>> coverRows(const KernelModel &model, const Poly &rows);
/// As the kernel's accesses suggest; empty where its threads have more than one element and more than one axis.
std::vector<RowSpace> rowSpaces(const Kernel &kernel);
struct BroughtPart {
  /// On the kernel's own launch, and on arguments: all is done that its threads did, and once.
  std::vector<Condition> conditions;
  /// One thread did several elements, one after the other, which may belong to several rows now: right only when rows
  /// need nothing of each other.
  bool tookTurns = false;
  std::vector<std::string> loops; ///< variables of the loops that stand for threads
  Poly rows;                      ///< how many there are
};
/// for (T i = threadIdx.x; i < n; i += blockDim.x) { … }  becomes  T i = threadTurn.x; if (i < n) { … }  of as
/// many threads as there are iterations. Only where all that the kernel does to memory is in the loop, nothing but
/// memory connects iterations, and what is read before does not change.
/// Returned are the indices of this kind: "threadTurn.x", "globalTurn.x", "blockTurn.x".
std::set<std::string> endTurns(Kernel &part);
/// Rewrites the kernel for one thread a row along x: `row = …; if (row < rows) { its elements, in loops }`. `taken`:
/// names in use, to which new ones are added.
llvm::Expected<BroughtPart> bringToRows(Kernel &part, const RowSpace &space, std::set<std::string> &taken);

/// Whether what one part writes meets what another one accesses in the same thread only. Records conditions in `state`,
/// whose tree is the fused kernel, and the arrays that these keep apart in `disjoint`. `brought`: by part, how it
/// became one thread a row (empty: none did); such a part's own threads must not have shared elements either. `flows`:
/// a part reads floating-point numbers that an earlier one has written. `planes`: that these hold what lies in them may
/// become a condition.
llvm::Error requireSameThread(KernelState &state, const KernelModel &model, const PartOf &partOf,
                              const StrideLoops &strides, const std::vector<BroughtPart> &brought, ArrayPairs &disjoint,
                              bool &flows, const Planes *planes = nullptr);

/// Refuses where a variable of the file (not an array) that one part reads may be what another writes through a
/// pointer.
llvm::Error requireNoVariables(const KernelModel &model, const PartOf &partOf,
                               const std::vector<const Access *> &accesses);

/// Two atomic updates by the same function, of which nobody uses the old value.
bool comeInAnyOrder(const Access &a, const Access &b);

/// Where two accesses of one thread meet, the loops with these variables are in the same iteration. `state`: takes what
/// has to hold for that; null: nothing may have to.
bool meetInOneIteration(const KernelModel &model, const StrideLoops &strides, const Access &a, const std::string &loopA,
                        const Access &b, const std::string &loopB, KernelState *state = nullptr,
                        const Planes *planes = nullptr);

/// Whether two arrays are known not to overlap.
using AreApart = llvm::function_ref<bool(const std::string &, const std::string &)>;
/// Ordinary loops of the same iterations become one, where none of the second's needs what another of the first's did.
/// How many were merged with another.
unsigned mergeLoops(Kernel &kernel, const StrideLoops &strides, AreApart apart);

/// A value that is stored and then loaded again by the same thread is kept in a local variable; a store that a later
/// one to the same place overwrites is left out.
void forwardStores(Kernel &kernel, const ArrayPairs &disjoint);
/// Leaves out stores to arrays at which nothing looks after the launch, where no thread loads what another statement
/// has stored. The arrays that are not stored to any more, in order.
std::vector<std::string> dropDeadStores(Kernel &kernel, const std::set<std::string> &dead);

} // namespace optiml

#endif
