//===- RowTurns.cpp - loops in which threads take turns -------------------===//
#include "FuseKernels.h"
#include "ThreadMapping.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// Iterations of the loop share no variables, and none ends it.
static bool connectedByMemoryOnly(const Kernel &kernel, Stmt &loop) {
  std::set<std::string> own, arrays;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && !s.dims.empty())
      arrays.insert(s.text);
  });
  bool good = true;
  std::function<void(Stmt &, bool)> visit = [&](Stmt &s, bool nested) {
    good &= s.kind != StmtKind::Return && s.kind != StmtKind::Opaque &&
            (nested || (s.kind != StmtKind::Break && s.kind != StmtKind::Continue));
    if (s.kind == StmtKind::Decl)
      own.insert(s.text);
    nested |= isLoop(s);
    if (s.init)
      visit(*s.init, nested);
    for (const StmtRef &child : s.body)
      visit(*child, nested);
  };
  visit(*loop.body[0], false);
  walkExprs(*loop.body[0], [&](const ExprRef &e) {
    if (!mayChange(e))
      return;
    ExprRef target = e->args[0];
    bool inMemory = false;
    for (; !target->args.empty(); target = target->args[0])
      inMemory |= target->kind == ExprKind::Subscript;
    good &= target->kind == ExprKind::Var && (own.count(target->text) || (inMemory && !arrays.count(target->text)));
  });
  return good;
}

/// Statements outside of the loop may write memory, or read what the kernel writes.
static bool hasEffectsBeside(const Kernel &kernel, const Stmt &loop) {
  KernelModel model(kernel);
  return llvm::any_of(model.accesses(), [&](const Access &access) {
    return access.space == Space::Global && !insideOf(access, &loop) &&
           (access.write || model.writesArray(access.array));
  });
}

/// What a loop's variable starts with and is advanced by, as one of the ways in which threads take turns: the name of
/// the index that has a thread for each turn.
static std::string turnsOf(const StridedLoop &loop, const KernelModel &model) {
  const Poly first = model.poly(loop.lower), step = model.poly(loop.step);
  for (char axis : {'x', 'y', 'z'}) {
    auto named = [&](const char *base) { return std::string(base) + "." + axis; };
    const Poly blocks = Poly::atom(named("gridDim")), threads = Poly::atom(named("blockDim"));
    if (first == Poly::atom(named("globalIdx")) && step == blocks * threads)
      return named("globalTurn");
    if (first == Poly::atom(named("threadIdx")) && step == threads)
      return named("threadTurn");
    if (first == Poly::atom(named("blockIdx")) && step == blocks)
      return named("blockTurn");
  }
  return "";
}

std::set<std::string> optiml::endTurns(Kernel &part) {
  std::set<std::string> turns;
  const std::shared_ptr<Kernel> before = part.clone();
  const KernelModel model(*before);
  std::function<void(Stmt &)> visit = [&](Stmt &list) {
    for (size_t at = 0; at < list.body.size(); ++at) {
      StmtRef loop = list.body[at];
      auto strided = loop->kind == StmtKind::For ? asStridedLoop(*loop) : std::nullopt;
      const std::string index = strided ? turnsOf(*strided, model) : "";
      if (index.empty() || turns.count(index) || !connectedByMemoryOnly(part, *loop) || hasEffectsBeside(part, *loop)) {
        for (const StmtRef &child : loop->body)
          if (child->kind == StmtKind::Block && loop->kind == StmtKind::If)
            visit(*child);
        continue;
      }
      turns.insert(index);
      auto own = std::make_shared<Expr>(*builtin(index));
      own->type = strided->type;
      ExprRef guard = lessThan(var(strided->var, strided->type), strided->upper);
      list.body[at] = declStmt(strided->var, strided->type, own);
      list.body.insert(list.body.begin() + long(at) + 1, ifStmt(guard, loop->body[0]));
    }
  };
  visit(*part.body);
  if (!turns.empty())
    removeUnused(part); // where a loop began
  return turns;
}
