//===- SearchKey.h - what a search depends on -------------------*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_SEARCHKEY_H
#define OPTIML_LIB_DRIVER_SEARCHKEY_H

#include "Backend.h"
#include "optiml/Model/ModelSession.h"

namespace optiml {

/// Hashes for the store: evaluations with one context are alike, and searches with one key have one outcome.
struct SearchKey {
  std::string context, search;
};

/// `device` is a view of `text`. `models` may be null.
SearchKey searchKeyOf(const OwnFlags &flags, const CompileOptions &options, const Program &device, const Backend &backend,
                      const ModelSession *models);

/// Of OptiML: another one may find another recipe.
extern const char *const searchVersion;

} // namespace optiml

#endif
