//===- TileGuards.h - guards that staged zeros make needless ----*- C++ -*-===//
#ifndef OPTIML_LIB_TRANSFORMS_STAGING_TILEGUARDS_H
#define OPTIML_LIB_TRANSFORMS_STAGING_TILEGUARDS_H

#include "optiml/Analysis/KernelModel.h"
#include <set>

namespace optiml {

/// Statements under `s` do nothing but add to private variables, to the same ones in every iteration of the loop that
/// counts `counter`, and what they add is zero where the elements of the tiles are: products, differences, squares of
/// these, and products with elements of arrays that are `finite`.
bool addsZerosWithTiles(const Kernel &kernel, Stmt &s, const std::set<std::string> &tiles, const std::string &counter,
                        const std::set<std::string> &finite = {});

/// Removes guards under `loop` from loads of a tile's elements into locals that have no other value: where the guard
/// does not hold, nobody looks at them. Whatever the guards say, the reads stay inside of the tiles.
void loadAlways(Kernel &kernel, Stmt &loop, const std::set<std::string> &tiles);

/// Removes guards under `loop` from statements that then only change private values nobody looks at without the same
/// guard. `tiles` are the names of the staged arrays.
void dropGuards(Kernel &kernel, Stmt &loop, const std::set<std::string> &tiles);

/// Where a thread's copies share an element of a tile, but do what they do with it under guards of their own, the
/// compiler would load it for each of them: loads it into a variable before the loops over the copies. The reads stay
/// inside of the tiles whatever the guards say.
void hoistInvariantLoads(Kernel &kernel, Stmt &root, const std::set<std::string> &tiles);

} // namespace optiml

#endif
