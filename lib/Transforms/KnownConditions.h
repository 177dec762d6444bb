//===- KnownConditions.h - conditions that are known where they stand -----===//
#ifndef OPTIML_LIB_TRANSFORMS_KNOWNCONDITIONS_H
#define OPTIML_LIB_TRANSFORMS_KNOWNCONDITIONS_H

#include "Common.h"

namespace optiml {

/// Whether `p` >= 0 follows from facts >= 0.
bool follows(const Poly &p, std::vector<Poly> facts);

/// What `condition` is where the facts hold, if that can be told.
std::optional<bool> truth(const KernelModel &model, const ExprRef &condition, const std::vector<Poly> &facts);

/// `e` where the facts hold: without conditions that are known, and without what they leave out.
ExprRef simplified(const KernelModel &model, const ExprRef &e, const std::vector<Poly> &facts);
/// The same for all that is computed under `s`, guards and loops around it being known.
void simplifyConditions(const KernelModel &model, Stmt &s, std::vector<Poly> facts = {});

/// Where the kernel ends with `if (c) { … }`, what stands before it and has no effect but on this goes into it.
void sinkUnderLastGuard(Kernel &kernel);

} // namespace optiml

#endif
