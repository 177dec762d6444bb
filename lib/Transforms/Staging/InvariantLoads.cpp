//===- InvariantLoads.cpp - elements of a tile that copies share ----------===//
#include "TileGuards.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// One of the loops over a thread's copies, or a loop that is unrolled like these.
static std::optional<CountedLoop> asCopies(Stmt &s) {
  auto loop = asCountedLoop(s);
  bool unrolled =
      loop && s.unroll == FullUnroll && loop->tripCount() && loop->step == 1 && constantValue(loop->lower) == 0;
  return unrolled ? loop : std::nullopt;
}

namespace {
/// Finds reads in a nest of loops over copies.
class Holder {
public:
  Holder(std::set<std::string> &taken, const std::set<std::string> &tiles) : taken(taken), tiles(tiles) {}

  /// What has to stand before `nest`, in which the reads become variables; nothing when it is something else.
  std::optional<std::vector<StmtRef>> hold(Stmt &nest) {
    visit(nest);
    if (!plain)
      return std::nullopt;
    std::vector<StmtRef> result;
    std::map<const Expr *, ExprRef> with;
    for (Read &read : reads) {
      const Read *same = nullptr;
      for (const Read &before : reads) {
        if (&before == &read)
          break;
        if (!same && equal(before.element, read.element))
          same = &before;
      }
      if (!same) {
        read.held = freshName(taken, rootName(read.element) + "_held");
        llvm::append_range(result, load(read));
      }
      with[read.element.get()] = element(same ? *same : read);
    }
    replaceNodes(nest, with);
    return result;
  }

private:
  struct Read {
    ExprRef element;
    std::vector<CountedLoop> along; ///< loops that its place depends on, outermost first
    std::string held;
  };

  ExprRef element(const Read &read) const {
    ExprRef e = var(read.held, read.element->type);
    for (const CountedLoop &loop : read.along)
      e = subscript(e, var(loop.var, Type::makeInt()), read.element->type);
    return e;
  }

  std::vector<StmtRef> load(const Read &read) const {
    Type type = read.element->type.unqualified();
    if (read.along.empty())
      return {declStmt(read.held, type, read.element)};
    std::vector<ExprRef> dims;
    for (const CountedLoop &loop : read.along)
      dims.push_back(loop.upper);
    StmtRef body = exprStmt(assign("=", element(read), read.element));
    for (const CountedLoop &loop : llvm::reverse(read.along))
      body = countedFor(loop.var, Type::makeInt(), intLit(0), loop.upper, 1, block({body}), FullUnroll);
    return {declStmt(read.held, type, nullptr, dims), body};
  }

  void visit(Stmt &s) {
    if (auto loop = asCopies(s)) {
      around.push_back({*loop, false});
      for (StmtRef &child : s.body[0]->body)
        visit(*child);
      around.pop_back();
    } else if (s.kind == StmtKind::If && s.body.size() == 1) {
      std::vector<Around> before = around;
      for (Around &a : around)
        a.guarded = true;
      for (StmtRef &child : s.body[0]->body)
        visit(*child);
      around = before;
    } else if (s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && isOfCopies(s.expr->args[0])) {
      collect(s.expr->args[1]);
    } else {
      plain = false; // declarations, other loops: something that the place may depend on
    }
  }

  /// An element for each iteration of the loops around.
  bool isOfCopies(const ExprRef &target) const {
    return llvm::all_of(around, [&](const Around &a) {
      return llvm::any_of(indicesOf(target), [&](const ExprRef &index) { return isVar(index, a.loop.var); });
    });
  }

  void collect(const ExprRef &e) {
    if (e->kind != ExprKind::Subscript || !tiles.count(rootName(e))) {
      for (const ExprRef &arg : e->args)
        collect(arg);
      return;
    }
    Read read{e, {}, ""};
    bool shared = false;
    for (const Around &a : around)
      if (mentions(e, a.loop.var))
        read.along.push_back(a.loop);
      else
        shared |= a.guarded;
    if (shared)
      reads.push_back(std::move(read));
  }

  struct Around {
    CountedLoop loop;
    bool guarded; ///< a guard stands between the loop and what is looked at
  };
  std::set<std::string> &taken;
  const std::set<std::string> &tiles;
  std::vector<Around> around;
  std::vector<Read> reads;
  bool plain = true;
};
} // namespace

void optiml::hoistInvariantLoads(Kernel &kernel, Stmt &root, const std::set<std::string> &tiles) {
  std::set<std::string> taken = allNames(kernel);
  std::set<const Stmt *> inner; // of nests that were looked at
  forEachList(root, [&](std::vector<StmtRef> &list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (!asCopies(*list[i]) || inner.count(list[i].get()))
        continue;
      auto before = Holder(taken, tiles).hold(*list[i]);
      if (!before)
        continue;
      walk(*list[i], [&](Stmt &s) { inner.insert(&s); });
      list.insert(list.begin() + long(i), before->begin(), before->end());
      i += before->size();
    }
  });
}
