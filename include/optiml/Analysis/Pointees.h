//===- Pointees.h - pointers that only name a place -------------*- C++ -*-===//
#ifndef OPTIML_ANALYSIS_POINTEES_H
#define OPTIML_ANALYSIS_POINTEES_H

#include "optiml/Analysis/Tree.h"
#include <functional>
#include <set>
#include <string>

namespace optiml {

/// "S *p = &s; p->n += 1;", as a helper that is read in place leaves it, becomes "s.n += 1;": local pointers that
/// always point to one local variable, and are only followed, go.
void namePointees(Kernel &kernel);

/// "float *row = a + ids[i] * n; row[j] += 1;" becomes "long long row_first = ids[i] * n; a[row_first + j] += 1;", so
/// that the array is named where it is accessed: for pointers that always stand for one place of an array that is not
/// moved either, where `isWanted` says so of the array and the index. `taken`: names that no variable may get.
void nameRows(Kernel &kernel, std::set<std::string> &taken,
              const std::function<bool(const std::string &array, const ExprRef &index)> &isWanted);

} // namespace optiml

#endif
