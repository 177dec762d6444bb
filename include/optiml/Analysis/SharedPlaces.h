//===- SharedPlaces.h - elements of shared arrays, by thread ----*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_SHAREDPLACES_H
#define OPTIML_ANALYSIS_SHAREDPLACES_H

#include "ThreadValues.h"

namespace optiml {

/// Statements [first, end) of a block.
struct StatementRange {
  Stmt *list = nullptr;
  size_t first = 0, end = 0;
};

/// One element of an array in shared memory, counted over all its rows.
struct SharedPlace {
  const Stmt *declaration = nullptr;
  int64_t element = 0;
};

/// The element that `e`, a subscript of every dimension of an array in shared memory, is in a thread. Nothing where
/// that is not known, or lies outside of a row.
std::optional<SharedPlace> sharedPlace(const KernelModel &model, const ThreadValues &value, const ExprRef &e,
                                       int64_t thread);

/// The root of a subscript (of a subscript …), or null.
const Expr *subscriptedArray(const ExprRef &e);

/// Before statement `first` of `list`, and with nothing but barriers and reads of other things in between, every thread
/// t of the block stores a value into element c + t of `array`: c. `stores` gets the statements that do so.
std::optional<int64_t> findOwnStores(const KernelModel &model, const ThreadValues &value, int64_t threads,
                                     const Stmt &list, size_t first, const std::string &array,
                                     std::set<const Stmt *> &stores);

/// Every mention of a shared array is a subscript that the model lists.
bool isOpenlyUsed(Kernel &kernel, const KernelModel &model, const std::string &array);

/// `name` occurs in an expression or in opaque text under `s`.
bool mentionsName(Stmt &s, const std::string &name);

/// Line of a statement by which some threads of a block pass one of the ranges by, or 0.
unsigned partingLine(Kernel &kernel, const KernelModel &model, const std::vector<StatementRange> &ranges);

} // namespace optiml

#endif
