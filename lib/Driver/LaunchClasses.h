//===- LaunchClasses.h - a kernel's small and large launches ----*- C++ -*-===//
#ifndef OPTIML_LIB_DRIVER_LAUNCHCLASSES_H
#define OPTIML_LIB_DRIVER_LAUNCHCLASSES_H

#include "optiml/Support/ThreadRange.h"
#include <map>
#include <vector>

namespace optiml {

/// What launches with so many threads cost, relative to others of the kernel: those that do not fill a GPU cost what
/// one that fills half of it does.
double launchCost(double launches, uint64_t threads);

/// Classes that deserve a search each, from small to large; together they are all launches. `costs`: by threads.
/// Launches are of one class where none lies eight times above the next smaller one, or where one of two classes would
/// cost less than a twentieth.
std::vector<ThreadRange> launchClasses(const std::map<uint64_t, double> &costs);

} // namespace optiml

#endif
