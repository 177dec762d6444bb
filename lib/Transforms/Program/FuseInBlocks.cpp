//===- FuseInBlocks.cpp - launches in a row, a block for each row ---------===//
//
// A block does, one after the other, what several launches did to one row of the arrays: a frame of a signal, a
// lattice, an image of a batch. Where a loop on the host launches a step for all rows, the block has that loop, with
// barriers between its steps. Where each launch has one thread for a row, so has the new kernel (docs/transforms/
// fuse-launches.md, "Loops of launches, row by row").
//
// Which of a launch's threads belong to a row is guessed from its indices, and bringToRows proves the guess. That
// threads of one launch do not need each other is what CUDA asks of the launch; so it is enough that no launch touches
// rows of another block in an array that one launch writes and another accesses. Each such access must be row * pitch +
// offset; that 0 <= offset < pitch is proven, or a kernel of its own looks at all of them (FuseCheck.cpp).
//
//===----------------------------------------------------------------------===//
#include "FuseInBlocks.h"
#include "LaunchTurns.h"
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace optiml;

namespace {

// Threads of a block: the launch decides, by how many rows there are.
constexpr unsigned leastOfBlock = 32, mostOfBlock = 512;
// Ways to find the rows that are tried; each costs what fusing costs.
constexpr size_t mostGuesses = 4;

class BlockFuser : LaunchTurns {
public:
  BlockFuser(const std::vector<SequenceLaunch> &launches, const std::string &name)
      : LaunchTurns(launches, name, Meetings::None) {}

  /// With the rows counted in the way of that number; `last`: there is no further one.
  llvm::Expected<FusedLaunches> run(size_t number, bool &last, bool strictFloat) {
    last = true;
    if (llvm::Error e = addParts())
      return std::move(e);
    if (llvm::Error e = bringToBlocks(number, last))
      return std::move(e);
    if (llvm::Error e = assemble())
      return std::move(e);
    made.kernel = kernel();
    made.dead = parts.dead;
    made.fresh = parts.fresh;
    return finishRows(std::move(made), strictFloat);
  }

private:
  int64_t mostThreads = 0;

  llvm::Error bringToBlocks(size_t number, bool &last) {
    std::vector<std::vector<RowGuess>> guesses;
    for (unsigned i = 0; i < instances.size(); ++i) {
      guesses.push_back(guessesOf(*parts.parts[i]));
      std::erase_if(guesses.back(), [&](const RowGuess &guess) {
        return dependsOnTurn(i, guess.inner) || (guess.count.rows && dependsOnTurn(i, *guess.count.rows)) ||
               (guess.count.by && dependsOnTurn(i, *guess.count.by));
      });
    }
    // As some part says by its bounds, or as many as there are blocks.
    std::vector<std::pair<RowCount, unsigned>> counts;
    for (bool ofGrid : {false, true})
      for (unsigned i = 0; i < guesses.size(); ++i)
        for (const RowGuess &guess : guesses[i])
          if (guess.count.ofGrid() == ofGrid && llvm::none_of(counts, [&](const auto &known) {
                return known.first == guess.count || (ofGrid && known.first.ofGrid());
              }))
            counts.push_back({guess.count, i});
    last = number + 1 >= std::min(counts.size(), mostGuesses);
    if (counts.empty())
      return notApplicable("none of them has a block, or some threads, for each row");
    return bringTo(counts[number].first, instances[counts[number].second].launch, guesses);
  }

  llvm::Error bringTo(const RowCount &count, unsigned launch, const std::vector<std::vector<RowGuess>> &guesses) {
    RowSpace space;
    space.name = freshName(made.taken, "row");
    space.outer = Poly(1);
    if (count.ofGrid() || count.by) {
      const std::string rows = freshName(made.taken, "rows");
      addExtent(rows, count.text(KernelModel(*kernel())), launch);
      space.rows = Poly::atom(rows);
    } else {
      space.rows = *count.rows;
    }
    for (unsigned i = 0; i < instances.size(); ++i) {
      std::optional<std::string> refused;
      bool done = false;
      for (const RowGuess &guess : guesses[i]) {
        if (done || (!guess.count.ofGrid() && !count.ofGrid() && !(guess.count == count)))
          continue;
        std::shared_ptr<Kernel> part = parts.parts[i]->clone();
        part->params = kernel()->params; // the rows' extents may be those of another part
        space.inner = guess.inner;
        auto brought =
            bring(i, *part, space, {"block.x", "block.y", "block.z", "grid.x * block.x", "grid.y * block.y"});
        if (!brought) {
          refused = refused.value_or(llvm::toString(brought.takeError()));
          continue;
        }
        if (brought->tookTurns) // in an order that counts where they share elements
          made.repeated.insert(instances[i].launch);
        instances[i].brought = part->body->body[1]->body[0];
        instances[i].loops = brought->loops.size();
        made.inRows = part->body->body[1]->expr;
        done = true;
      }
      if (!done)
        return notApplicable("{0}", refused.value_or("its rows are not counted as those of the others"));
    }
    if (llvm::Error e = shareWork())
      return e;
    made.row = space.name;
    const KernelModel model(*kernel());
    auto text = planText(model, space.rows);
    if (!text)
      return notApplicable("how many rows there are cannot be told before the launch");
    made.blocks.rows = IntExpr::of(*text);
    return llvm::Error::success();
  }

  /// A block has a row where some launch of a loop has several threads for it; a thread, where each launch has one.
  llvm::Error shareWork() {
    made.blocks.rowOfThread = llvm::all_of(instances, [](const Instance &instance) { return !instance.loops; });
    bool severalInLoop = false;
    for (Instance &instance : instances) {
      if (made.blocks.rowOfThread) {
        instance.work = instance.brought->body;
        continue;
      }
      severalInLoop |= launches[instance.launch].loop && instance.loops;
      if (!instance.loops && holdsKind(*instance.brought, {StmtKind::For, StmtKind::While, StmtKind::Do}))
        return notApplicable("a single thread of a block would do all of a row");
      instance.work = workOfBlock(instance.brought, instance.loops, mostThreads, made.loops);
    }
    if (!made.blocks.rowOfThread && !severalInLoop)
      return notApplicable("a block would have one thread at work");
    return llvm::Error::success();
  }

  llvm::Error assemble() {
    auto body = inOrder();
    if (!body)
      return body.takeError();
    ExprRef place = axisBuiltin("blockIdx", 0);
    if (made.blocks.rowOfThread) {
      place = globalIndexExpr(0);
      *body = {ifStmt(made.inRows, block(std::move(*body)))};
    }
    body->insert(body->begin(), declStmt(made.row, Type::makeInt(), place));
    kernel()->body = block(std::move(*body));
    tellLaunches();
    made.blocks.threads = mostThreads ? unsigned(llvm::PowerOf2Ceil(uint64_t(mostThreads))) : mostOfBlock;
    made.blocks.threads = std::clamp(made.blocks.threads, leastOfBlock, mostOfBlock);
    kernel()->maxThreads = made.blocks.threads;
    return llvm::Error::success();
  }
};

} // namespace

llvm::Expected<FusedLaunches> optiml::fuseInBlocks(const std::vector<SequenceLaunch> &launches, const std::string &name,
                                                   bool strictFloat) {
  std::optional<std::string> refused;
  for (size_t number = 0;; ++number) {
    bool last = true;
    auto fused = BlockFuser(launches, name).run(number, last, strictFloat);
    if (fused)
      return fused;
    const std::string why = llvm::toString(fused.takeError());
    refused = refused.value_or(why);
    if (last)
      return notApplicable("{0}", *refused);
  }
}
