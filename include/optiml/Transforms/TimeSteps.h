//===- TimeSteps.h - steps in time of a stencil -----------------*- C++ -*-===//
//
// A kernel that computes each cell of a grid anew from its neighbours, out of place, and that a loop on the host
// launches again and again with its buffers exchanged. A block can do several of these steps at once: it loads a tile
// with what the steps need around it, and keeps what lies between two steps in shared memory.
//
// What is here is the step itself: which cells are computed, how far away they look, and the text that computes one
// from a tile. What launches it, and in which order, is asked at run time (LaunchIdioms.h).
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_TRANSFORMS_TIMESTEPS_H
#define OPTIML_TRANSFORMS_TIMESTEPS_H

#include "optiml/Transforms/Transform.h"

namespace optiml {

struct TimeStep {
  /// A quantity of the grid: read from `in`, written to `out`, which change places after a step.
  struct Field {
    std::string in, out; ///< parameters of the kernel
    std::string element; ///< C++ type
    unsigned bytes = 0;  ///< of an element
    std::string now;     ///< the tile that `body` reads
    std::string result;  ///< the variable that `body` gives its value to
  };
  /// A direction of the grid.
  struct Dimension {
    unsigned axis = 0;         ///< of the launch's indices
    int64_t low = 0, high = 0; ///< a step looks at cells from -low to +high
    std::string threads;       ///< how many cells have a thread, over the launch (IntExpr.h)
    std::string cell;          ///< name of a cell's index
    std::string local;         ///< name of its index in the tile
    std::string extent;        ///< name of the number of cells that have a thread
    std::string ring;          ///< C++: where the ends meet, how many cells there are; empty elsewhere
    std::string placed;        ///< name of a cell's index before it is taken around the ring; elsewhere that of `cell`
  };
  /// A value of a cell that is the same in every step.
  struct Held {
    std::string type, name, value;
  };
  std::vector<Field> fields;
  std::vector<Dimension> dims; ///< the fastest first
  // C++, over the names above and the kernel's parameters:
  std::string inside;     ///< a cell (of those that have a thread) is computed
  std::string insideLast; ///< of it, in three dimensions, what the last index decides
  std::string needed;     ///< another cell is read
  std::string index;      ///< of a cell in the fields' memory
  std::string body;       ///< statements that compute a cell
  std::vector<Held> held;
  std::vector<std::string> constants;       ///< the kernel's parameters that are no fields
  std::string parameters;                   ///< these, as C++ text, each after a comma
  std::map<std::string, std::string> names; ///< what else the new kernel has, by purpose
  std::vector<Condition> conditions;        ///< on each launch
  bool copies = false;                      ///< cells keep their values: new[cell] = old[cell]
};

/// The step that the kernel is. NotApplicable tells why it is none.
llvm::Expected<TimeStep> recognizeTimeStep(const KernelState &state);

/// How the steps are grouped.
struct TimeTile {
  unsigned steps = 2;                    ///< at most, of a launch
  std::array<unsigned, 2> threads{1, 1}; ///< of a block, along the first two dimensions
  unsigned cells = 1;  ///< of a thread: one after the other along the second dimension, or apart by a block's threads
                       ///< along the only one
  unsigned planes = 1; ///< of a block, along the third dimension
};

/// The tiles worth trying, the best guess first; none where no tile is large enough for two steps.
std::vector<TimeTile> timeTiles(const TimeStep &step);

} // namespace optiml

#endif
