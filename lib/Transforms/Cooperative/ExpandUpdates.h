//===- ExpandUpdates.h - short loops over what is updated -------*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_COOPERATIVE_EXPANDUPDATES_H
#define OPTIML_LIB_TRANSFORMS_COOPERATIVE_EXPANDUPDATES_H

#include "optiml/Analysis/KernelModel.h"

namespace optiml {

/// The pointer parameter that leads to what an access is of: "eq" of eq->xtx[3]; empty where there is none.
std::string parameterOf(const KernelModel &model, const Access &access);

/// The place is named by constants alone: eq->xtx[3], out[2].
bool isFixedPlace(const ExprRef &place);
/// Which element of what the parameter points to a fixed place is in: 0 of eq->xtx[3], 2 of out[2].
int64_t elementOfPlace(ExprRef place);

/// "for (a = 0; a < 3; ++a) atomicAdd(&sums[a], x[a]);" becomes one update after the other, where the counter tells
/// which element of the array it is and the loops run at most `most` updates in all.
void expandUpdates(Kernel &kernel, const std::string &array, size_t most);

} // namespace optiml

#endif
