//===- SlideWindow.cpp - sums over a window that moves --------------------===//
//
// slide-window[kernel/loop]{rows=16}: of a kernel in which every thread sums integers over a window, a thread takes
// `rows` neighbouring outputs, and moves its window from one to the next: what leaves it is subtracted, what enters it
// is added. A box filter of 15 x 15 then adds 30 numbers an output in place of 225.
//
// Example:
//   int s = 0;                                  int s_of_window = 0, first = 0, end = 0;
//   for (int j = max(0, y - r);                 for (int row = 0; row < 16; ++row) {
//        j < min(h, y + r + 1); ++j)              … y stands for y + row …
//     s += in[j * w + x];                         const int from = max(0, y - r), to = min(h, y + r + 1);
//   out[y * w + x] = s;                           if (from < first || to < end || from > end) {
//                                                   s_of_window = 0; first = from; end = from;
//                                                 }
//                                                 for (int j = first; j < from; ++j) s_of_window -= in[j * w + x];
//                                                 for (int j = end; j < to; ++j) s_of_window += in[j * w + x];
//                                                 first = from; end = to;
//                                                 int s = 0;
//                                                 s += s_of_window;
//                                                 out[y * w + x] = s;
//                                               }
//
// Legal: as for `coarsen`, under the same conditions, and only for integers, whose sums modulo 2^32 or 2^64 do not
// depend on the order. An iteration only adds to variables from outside of the loop, and what it adds depends on its
// counter and on other axes, but not on the axis along which the outputs are neighbours. A counter that is relative to
// the output (`in[(y + d) * w + x]`, d from -r to r) becomes an absolute one. What the kernel writes does not overlap
// what the loop reads (a condition). Where windows do not move forward, or do not overlap, the sum starts anew.
//
// Refuses: floating-point sums, whose rounding errors would add up; loops within loops; a block shape that is not
// fixed; and what `coarsen` refuses.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "WindowSums.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"

using namespace optiml;

/// The loop as it moves its window through `rows` outputs of a thread.
static llvm::Error slide(Kernel &kernel, WindowSums &window, unsigned axis, int64_t rows,
                         std::set<std::string> &taken) {
  const CountedLoop &counted = window.counted;
  const Type type = counted.type.withConst(true);
  const WindowSums::Ends ends = window.ends();
  std::vector<StmtRef> start = ends.declarations();
  StmtRef anew = block(ends.setAnew());
  for (const WindowSums::Sum &sum : window.sums) {
    start.push_back(declStmt(sum.slid->text, sum.slid->type, intLit(0)));
    anew->body.push_back(exprStmt(assign("=", sum.slid, intLit(0))));
  }
  std::vector<StmtRef> made = {declStmt(ends.from->text, type, counted.lower),
                               declStmt(ends.to->text, type, counted.upper), ifStmt(ends.startsAnew(), anew),
                               window.part(/*enters=*/false, ends.first, ends.from),
                               window.part(/*enters=*/true, ends.end, ends.to)};
  llvm::append_range(made, ends.moved());
  for (const WindowSums::Sum &sum : window.sums)
    made.push_back(exprStmt(assign("+=", var(sum.name, sum.type), castTo(sum.type, sum.slid))));
  auto place = findPlace(*kernel.body, &window.loop);
  if (!place)
    return notApplicable("the loop is not found");
  std::vector<StmtRef> &list = place->block->body;
  list.erase(list.begin() + long(place->index));
  list.insert(list.begin() + long(place->index), made.begin(), made.end());

  std::string row = freshName(taken, "row");
  ExprRef output = add(axisBuiltin("globalIdx", axis), var(row, Type::makeInt()));
  StmtRef body = kernel.body;
  rewriteExprs(
      *body, [&](const ExprRef &e) -> ExprRef { return isBuiltin(e, axisName("globalIdx", axis)) ? output : nullptr; });
  start.push_back(countedFor(row, Type::makeInt(), intLit(0), intLit(rows), 1, body, NoUnroll));
  kernel.body = block(start);
  return llvm::Error::success();
}

namespace {

class SlideWindow : public Transform {
public:
  llvm::StringRef name() const override { return "slide-window"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    if (!state.pinnedBlock()[0])
      return result;
    std::vector<Params> values;
    for (const char *axis : {"y", "x"})
      for (const char *rows : {"16", "32", "8", "64"})
        values.push_back({{"axis", axis}, {"rows", rows}});
    for (const auto &[path, stmt] : countedLoops(*state.tree))
      offer(result, state, path, values);
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0])
      return notApplicable("{0}", shapeIsOpen);
    int64_t rows = paramInt(params, "rows", 16);
    auto which = params.find("axis");
    unsigned axis = which != params.end() && which->second == "x" ? 0 : 1;
    if (rows < 2 || rows > 1024)
      return notApplicable("a thread takes 2 to 1024 outputs");
    auto kernel = state.tree->clone();
    Stmt *loop = findLoop(*kernel, site);
    if (!loop)
      return notApplicable("there is no counted loop '{0}'", site);
    KernelState result = state.withTree(kernel);
    auto merge = [&](KernelState &s, Kernel &k, const KernelModel &model) {
      std::set<std::string> taken = allNames(k);
      WindowSums window(s, k, model, *loop, axis, taken);
      if (llvm::Error e = window.find())
        return e;
      return slide(k, window, axis, rows, taken);
    };
    if (llvm::Error e = remapThreads(result, *kernel, shape, neighbouringOutputs(axis, rows), merge))
      return std::move(e);
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(SlideWindow)
