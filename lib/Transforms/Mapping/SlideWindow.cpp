//===- SlideWindow.cpp - sums and extremes over a window that moves -------===//
//
// slide-window[kernel/loop]{axis=y,rows=16}: of a kernel in which every thread sums integers over a window, a thread
// takes `rows` neighbouring outputs, and moves its window from one to the next: what leaves it is subtracted, what
// enters it is added. A box filter of 15 x 15 then adds 30 numbers an output in place of 225.
//
// Floating-point numbers are not subtracted again, and an extreme cannot be taken back. What each of the loop's last
// iterations gives is kept by itself, and put together for each output: 15 numbers and 15 such sums, or extremes.
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
// Legal: as for `coarsen`, under the same conditions. An iteration only adds to variables from outside of the loop, or
// takes extremes that begin with a constant. What it folds in depends on its counter and on other axes, but not on the
// axis along which the outputs are neighbours. A counter that is relative to the output (`in[(y + d) * w + x]`, d from
// -r to r) becomes an absolute one. What the kernel writes does not overlap what the loop reads (a condition). Where
// windows do not move forward, or do not overlap, the sum starts anew. Sums of integers modulo 2^32 or 2^64 do not
// depend on the order; those of floating-point numbers do, which `--optiml-fp=strict` forbids, and of their extremes
// the sign of a zero.
//
// Refuses: loops within loops; a block shape that is not fixed; and what `coarsen` refuses. Windows of floating-point
// numbers and of extremes are also refused where they are longer than 64 iterations, or may be (`specialize-scalar` may
// help), and where no loop stands within, so that nothing would be saved.
//
//===----------------------------------------------------------------------===//
#include "../Cooperative/Reduction.h"
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

// Each iteration of a window of floating-point numbers has a place in an array of a thread.
static constexpr int64_t mostParts = 64;

namespace {

/// The loop as it moves its window through `rows` outputs of a thread.
class Slider {
public:
  Slider(Kernel &kernel, WindowSums &window, std::set<std::string> &taken)
      : kernel(kernel), window(window), taken(taken), ends(window.ends()) {}

  llvm::Error slide(unsigned axis, int64_t rows) {
    const bool keepsParts = llvm::any_of(window.sums, [](const WindowSums::Sum &sum) { return !sum.canShrink(); });
    if (llvm::Error e = keepsParts ? keepParts() : moveSums())
      return e;
    auto place = findPlace(*kernel.body, &window.loop);
    if (!place)
      return notApplicable("the loop is not found");
    std::vector<StmtRef> &list = place->block->body;
    list.erase(list.begin() + long(place->index));
    list.insert(list.begin() + long(place->index), made.begin(), made.end());

    std::string row = freshName(taken, "row");
    ExprRef output = add(axisBuiltin("globalIdx", axis), var(row, Type::makeInt()));
    StmtRef body = kernel.body;
    rewriteExprs(*body, [&](const ExprRef &e) -> ExprRef {
      return isBuiltin(e, axisName("globalIdx", axis)) ? output : nullptr;
    });
    start.push_back(countedFor(row, Type::makeInt(), intLit(0), intLit(rows), 1, body, NoUnroll));
    kernel.body = block(start);
    return llvm::Error::success();
  }

private:
  Kernel &kernel;
  WindowSums &window;
  std::set<std::string> &taken;
  const WindowSums::Ends ends;
  std::vector<StmtRef> start; ///< before the first output
  std::vector<StmtRef> made;  ///< in place of the loop

  /// The new ends, and what to do where the window starts anew.
  void moveEnds(std::vector<StmtRef> anew) {
    const Type type = window.counted.type.withConst(true);
    made.push_back(declStmt(ends.from->text, type, window.counted.lower));
    made.push_back(declStmt(ends.to->text, type, window.counted.upper));
    StmtRef branch = block(ends.setAnew());
    llvm::append_range(branch->body, anew);
    made.push_back(ifStmt(ends.startsAnew(), branch));
  }

  /// What leaves the window is subtracted.
  llvm::Error moveSums() {
    start = ends.declarations();
    std::vector<StmtRef> anew;
    for (const WindowSums::Sum &sum : window.sums) {
      start.push_back(declStmt(sum.slid->text, sum.slid->type, intLit(0)));
      anew.push_back(exprStmt(assign("=", sum.slid, intLit(0))));
    }
    moveEnds(anew);
    made.push_back(window.part(/*enters=*/false, ends.first, ends.from));
    made.push_back(window.part(/*enters=*/true, ends.end, ends.to));
    llvm::append_range(made, ends.moved());
    for (const WindowSums::Sum &sum : window.sums)
      made.push_back(exprStmt(assign("+=", var(sum.name, sum.type), castTo(sum.type, sum.slid))));
    return llvm::Error::success();
  }

  /// What each iteration in the window gives is kept: iteration j has place j modulo the window's width.
  llvm::Error keepParts() {
    const std::optional<int64_t> width = window.width();
    if (!width || *width < 2 || *width > mostParts)
      return notApplicable("the loop is not known to have 2 to {0} iterations (line {1})", mostParts, window.loop.line);
    if (!anyStmt(*window.loop.body[0], [](const Stmt &s) { return isLoop(s); }))
      return notApplicable("an iteration adds a number or two, which need not be kept (line {0})", window.loop.line);
    const ExprRef k = var(freshName(taken, "part"), Type::makeInt());
    std::vector<ExprRef> arrays;
    start = ends.declarations();
    for (const WindowSums::Sum &sum : window.sums) {
      arrays.push_back(var(freshName(taken, sum.name + "_parts"), sum.slid->type));
      start.push_back(declStmt(arrays.back()->text, sum.slid->type, nullptr));
      start.back()->dims = {intLit(*width)};
    }
    auto nothing = [](const WindowSums::Sum &sum) {
      return sum.start ? sum.start : Fold{Fold::Kind::Operator, "+"}.identity(sum.slid->type);
    };
    auto forEachSum = [&](const ExprRef &place, auto &&statement) {
      std::vector<StmtRef> result;
      for (size_t i = 0; i < arrays.size(); ++i)
        result.push_back(statement(window.sums[i], subscript(arrays[i], place, arrays[i]->type)));
      return result;
    };
    auto forEachPart = [&](auto &&statement) {
      return countedFor(k->text, Type::makeInt(), intLit(0), intLit(*width), 1, block(forEachSum(k, statement)),
                        FullUnroll);
    };
    auto clear = [&](const WindowSums::Sum &sum, const ExprRef &part) {
      return exprStmt(assign("=", part, nothing(sum)));
    };
    start.push_back(forEachPart(clear));
    moveEnds({forEachPart(clear)});

    const ExprRef j = var(window.counted.var, window.counted.type.unqualified());
    const ExprRef w = intLit(*width);
    auto place = [&] { return var(freshName(taken, "place"), Type::makeInt()); };
    auto placed = [&](const ExprRef &name, std::vector<StmtRef> statements) {
      const ExprRef value = binary("%", add(binary("%", j, w, j->type), w), w, j->type); // j may be negative
      statements.insert(statements.begin(), declStmt(name->text, name->type.withConst(true), value));
      return statements;
    };
    const ExprRef left = place(), entered = place();
    made.push_back(
        countedFor(j->text, j->type, ends.first, ends.from, 1, block(placed(left, forEachSum(left, clear))), NoUnroll));
    StmtRef enters = window.part(/*enters=*/true, ends.end, ends.to);
    std::vector<StmtRef> &body = enters->body[0]->body;
    for (const WindowSums::Sum &sum : window.sums)
      body.insert(body.begin(), declStmt(sum.slid->text, sum.slid->type, nothing(sum)));
    llvm::append_range(body, placed(entered, forEachSum(entered, [](const WindowSums::Sum &sum, const ExprRef &part) {
                                      return exprStmt(assign("=", part, sum.slid));
                                    })));
    made.push_back(enters);
    llvm::append_range(made, ends.moved());
    made.push_back(forEachPart([](const WindowSums::Sum &sum, const ExprRef &part) {
      return sum.fold.into(var(sum.name, sum.type), sum.canShrink() ? castTo(sum.type, part) : part);
    }));
    return llvm::Error::success();
  }
};

class SlideWindow : public Transform {
public:
  llvm::StringRef name() const override { return "slide-window"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    if (!state.pinnedBlock()[0])
      return result;
    std::vector<Params> values;
    for (const char *axis : {"y", "x", "z"})
      for (const char *rows : {"16", "32", "8", "64"})
        values.push_back({{"axis", axis}, {"rows", rows}});
    for (const auto &[path, stmt] : outermostLoops(*state.tree))
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
    const std::string axisText = which == params.end() ? "y" : which->second;
    const unsigned axis = axisText == "x" ? 0 : axisText == "z" ? 2 : 1;
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
      window.takesFloats = !s.hints.strictFloat;
      window.takesExtremes = true;
      if (llvm::Error e = window.find())
        return e;
      return Slider(k, window, taken).slide(axis, rows);
    };
    if (llvm::Error e = remapThreads(result, *kernel, shape, neighbouringOutputs(axis, rows), merge))
      return std::move(e);
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(SlideWindow)
