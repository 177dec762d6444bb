//===- Finalists.h - which variants race once more --------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_FINALISTS_H
#define OPTIML_LIB_DRIVER_FINALISTS_H

#include "optiml/Search/Search.h"
#include <functional>

namespace optiml {

/// Of all candidates, and the best: the fastest that are verified; where none is, the fastest. At most four.
std::vector<Candidate> finalists(std::vector<Candidate> all, const Candidate &best,
                                 const std::function<bool(const Variant &)> &isVerified);

} // namespace optiml

#endif
