//===- LaunchRewrites.h - launches that become others -----------*- C++ -*-===//
//
// What is written in place of several launches: of a loop of launches that is one algorithm, and of launches that
// follow one another. Transforms find it, Emit prints it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_CORE_LAUNCHREWRITES_H
#define OPTIML_CORE_LAUNCHREWRITES_H

#include "optiml/Core/Variant.h"
#include <array>
#include <memory>
#include <optional>

namespace optiml {

/// One step in time of a stencil: which cells are computed, how far away they look, and the text that computes one
/// from a tile.
struct TimeStep {
  /// A quantity of the grid: read from `in`, written to `out`, which change places after a step.
  struct Field {
    std::string in, out; ///< parameters of the kernel
    std::string element; ///< C++ type
    unsigned bytes = 0;  ///< of an element
    std::string now;     ///< the tile that `body` reads
    std::string result;  ///< the variable that `body` gives its value to
    std::string own;     ///< the registers with a thread's own cells, where `body` reads them; else empty
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
  /// In two dimensions: the body may be computed for all cells of a tile, whose rows begin at `low` of the second one
  /// and have as many beyond them. These statements read what it needs first. Nothing: it may not.
  std::optional<std::string> straight;
  std::vector<Held> held;
  std::vector<std::string> constants;       ///< the kernel's parameters that are no fields
  std::vector<Parameter> parameters;        ///< these
  std::map<std::string, std::string> names; ///< what else the new kernel has, by purpose
  std::vector<Condition> conditions;        ///< on each launch
  bool copies = false;                      ///< cells keep their values: new[cell] = old[cell]
};

/// How the steps are grouped.
struct TimeTile {
  unsigned steps = 2;                    ///< at most, of a launch
  std::array<unsigned, 2> threads{1, 1}; ///< of a block, along the first two dimensions
  unsigned cells = 1;  ///< of a thread: one after the other along the second dimension, or apart by a block's threads
                       ///< along the only one
  unsigned planes = 1; ///< of a block, along the third dimension
};

/// A kernel that is one step of a well-known algorithm.
struct LaunchIdiom {
  enum class Kind {
    ScanStep,     ///< out[i] = i >= distance ? in[i - distance] op in[i] : in[i], for 0 <= i < count
    ExchangeStep, ///< data[x], data[x + 1] in order, for x = first, first + 2, … (`count` pairs)
    ClosureStep,  ///< m[i][j] = m[i][j] op (m[i][k] with m[k][j]), for 0 <= i, j < count
    TimeStep,     ///< new[cell] = f(old around cell), for all cells of a grid
  };
  Kind kind = Kind::ScanStep;
  std::string in, out; ///< parameters; the same for ExchangeStep and ClosureStep
  std::string element; ///< C++ type of the elements
  bool isFloat = false;
  std::string op;        ///< ScanStep: + * & | ^ min max; ClosureStep: min max |
  std::string with;      ///< ClosureStep: + * & min max
  bool isSigned = false; ///< the elements
  unsigned bytes = 0;    ///< of an element
  std::string infinite;  ///< ClosureStep: C++ of the number that stands for "no path"; empty: the kernel knows none
  bool infiniteAlone = false; ///< it is added to nothing

  /// All expressions are C++ in long long; the kernel's parameters are members of `launch`.
  struct Form {
    std::vector<std::string> when; ///< conditions under which a launch has this form
    std::string count;
    std::string distance;          ///< ScanStep
    std::string pitch, step;       ///< ClosureStep: from row to row, in elements; and k
    std::string first;             ///< ExchangeStep; must turn out to be 0 or 1
    bool threadPerElement = false; ///< ExchangeStep: thread i looks at x = i, not at x = first + 2 i
  };
  std::vector<Form> forms; ///< no two of them at once

  std::shared_ptr<const TimeStep> step; ///< TimeStep
  TimeTile tile;                        ///< TimeStep: what is chosen
};

/// What an argument is of a launch that may stand in a loop on the host, in terms of two values.
enum class ArgumentKind {
  Same,      ///< the first, in each turn of the loop
  Counts,    ///< an integer, or a pointer: first + turn * second
  Doubles,   ///< an integer: first << turn
  Halves,    ///< an integer: first >> turn
  Listed,    ///< another number or object in each turn: first.at[turn]
  Swapped,   ///< a pointer: the first in even turns, the second in odd ones
  AfterSwaps ///< a pointer, behind a loop: the first after an even number of its turns, else the second
};
/// It has a value of its own in each turn.
inline bool changesInTurns(ArgumentKind kind) {
  return kind == ArgumentKind::Counts || kind == ArgumentKind::Doubles || kind == ArgumentKind::Halves ||
         kind == ArgumentKind::Listed;
}

/// What is launched where a block of a fused kernel has a row, and loops of launches on the host are its own loops.
struct RowBlocks {
  /// What an argument of a launch has to be, in terms of the fused kernel's parameters.
  struct Argument {
    ArgumentKind kind = ArgumentKind::Same;
    std::string value, other; ///< Listed: `other` is the type of the list
    unsigned loop = 0;        ///< AfterSwaps: behind which
  };
  struct Launch {
    std::vector<Argument> arguments;
    std::optional<unsigned> loop; ///< on the host, that it stands in
    /// In a loop: parameters that tell in which turns it takes place (from <= turn < until); empty: in all.
    std::string from, until;
    bool ownThreads = false; ///< of the same threads: its geometry is another one, of which `conditions` tells
    /// Over its own geometry, the fused kernel's parameters, and names that stand for its arguments.
    std::vector<Condition> conditions;
    std::map<std::string, unsigned> own; ///< these names, and which argument each is
  };
  struct Loop {
    std::string turns; ///< the parameter with their number
    bool swaps = false;
  };
  /// Which argument gives a parameter its value: that of the launch in its first turn, or in its second.
  struct Source {
    unsigned launch = 0, argument = 0, turn = 0;
  };
  std::vector<Launch> launches;
  std::vector<Loop> loops;
  std::map<std::string, Source> sources;
  IntExpr rows;             ///< how many there are, over the fused kernel's parameters
  bool rowOfThread = false; ///< a thread has a row, and not a block
  /// A parameter for a number that the conditions confirm: over the geometry of a launch, in a loop that of its first
  /// turn, and the parameters in `sources`.
  struct Extent {
    std::string name;
    IntExpr value;
    unsigned launch = 0;
  };
  std::vector<Extent> extents;
  unsigned threads = 0; ///< of a block, at most; a power of two
  /// The type of a list's values, one for each turn.
  struct List {
    std::string type, element;
    unsigned bytes = 0; ///< of an element
  };
  std::vector<List> lists;
  unsigned mostListed = 0; ///< as many have a place
  /// Each launch has the same threads, and so has the fused kernel: a thread does in each turn what it did in that
  /// launch. Then nothing that is said about rows counts.
  bool sameThreads = false;
  unsigned geometry = 0;    ///< of the same threads: of which launch it is
  bool turnsInGrid = false; ///< of the same threads: the turns of the only loop run side by side, along z
  /// The fused kernel keeps rows on the chip, under these conditions, and where rows fit: it needs so many bytes of
  /// dynamic shared memory, and may have `mostShared`.
  std::vector<Condition> kept;
  IntExpr sharedBytes = IntExpr::literal(0);
  int64_t mostShared = 0;
  /// It stores whole rows, also what the launches leave alone: nothing else may work on them at the same time.
  bool storesRows = false;
  std::string wideName, wideText; ///< the kernel that keeps none; empty: the fused one keeps none
  /// A kernel of one block, with the fused kernel's parameters and `int *outside`, into which it writes 1 where a block
  /// would touch what belongs to another row. Empty: no block does.
  std::string checkName, checkText;
  /// Where all of these hold, no block does. Names in `bounds` stand for the least or greatest value of an argument.
  std::vector<Condition> inside;
  struct Bound {
    std::string name;
    unsigned launch = 0, argument = 0;
    bool isGreatest = false;
  };
  std::vector<Bound> bounds;
};

/// A kernel that does the work of several.
struct FusedKernel {
  std::string name, text;            ///< the kernel, printed
  std::vector<Parameter> parameters; ///< its own
  /// On its own launch, which has the geometry of part `geometry`.
  std::vector<Condition> conditions;
  unsigned geometry = 0;
  bool keepsThreads = false; ///< as many as each of the parts has
  /// Empty: the parts' launches must be alike. Else the conditions on the launch of each, over its own geometry and the
  /// fused kernel's parameters.
  std::vector<std::vector<Condition>> launches;
  /// Of each part: which of the fused kernel's parameters each of its own is. One that stands for several is right only
  /// where their arguments are equal. One more than the part has is the number of its blocks.
  std::vector<std::vector<std::string>> names;
  /// By the fused kernel's parameters: the part and its parameter that gives the value (a pointer that may be written
  /// through where it is).
  std::map<std::string, std::pair<unsigned, unsigned>> sources;
  /// Where a block has a row: how it is launched, in place of what stands above (but for `conditions`).
  std::optional<RowBlocks> blocks;
};

} // namespace optiml

#endif
