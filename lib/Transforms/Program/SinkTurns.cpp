//===- SinkTurns.cpp - a loop of turns, further inside --------------------===//
//
// What a thread does to a cell in all turns is best done at once: the cell then stays in a register. So the loop of
// turns changes places with the loops over a thread's cells.
//
//===----------------------------------------------------------------------===//
#include "SinkTurns.h"
#include "FuseKernels.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

class Sinker {
public:
  Sinker(Kernel &kernel, StmtRef turns, const std::set<const Stmt *> &values)
      : turns(std::move(turns)), values(values), model(kernel), accesses(model.accessesOfWholeRecords()) {
    llvm::erase_if(accesses, [&](const Access &access) {
      return access.space == Space::Local || !insideOf(access, this->turns.get());
    });
  }

  /// The loop stands in `list`.
  void run(std::vector<StmtRef> &list) {
    liftDeclarations(list);
    std::vector<StmtRef> &body = turns->body[0]->body;
    if (size_t(llvm::count_if(body, [&](const StmtRef &s) { return isValue(*s) || staysInTurn(*s); })) + 1 !=
        body.size())
      return;
    const StmtRef inner = body.back();
    const bool isGuard = inner->kind == StmtKind::If && inner->body.size() == 1 && isFixed(inner->expr);
    if (!isGuard && !changesPlaces(*inner))
      return;
    body.pop_back();
    std::vector<StmtRef> within = std::move(inner->body[0]->body);
    llvm::append_range(body, within);
    inner->body[0]->body = {turns};
    *llvm::find(list, turns) = inner;
    run(inner->body[0]->body);
  }

private:
  const StmtRef turns;
  const std::set<const Stmt *> &values;
  const KernelModel model;
  std::vector<Access> accesses;

  bool isValue(const Stmt &s) const { return values.count(&s) != 0; }

  /// The same whenever it is worked out, whatever memory holds.
  bool isOfNamesAlone(const ExprRef &e) const {
    return model.stable(e) && !anyNode(e, [](const ExprRef &part) { return isLoad(part) || !part->pure; });
  }

  /// The same in each turn. `but`: a name that has its value from elsewhere.
  bool isFixed(const ExprRef &e, const std::string &but = "") const {
    std::set<std::string> own = namesDeclaredIn(*turns);
    own.erase(but);
    return isOfNamesAlone(e) &&
           llvm::none_of(namesIn(e), [&](const std::string &name) { return own.count(name) != 0; });
  }

  /// Declares what may as well be found out further inside.
  bool staysInTurn(const Stmt &s) const {
    return s.kind == StmtKind::Decl && s.expr && s.dims.empty() && !s.isShared &&
           model.singleAssignment(s.text) == &s && isOfNamesAlone(s.expr);
  }

  /// Declarations of what is the same in each turn stand before the loop.
  void liftDeclarations(std::vector<StmtRef> &list) {
    std::vector<StmtRef> &body = turns->body[0]->body;
    for (size_t i = 0; i < body.size();) {
      const StmtRef s = body[i];
      if (s->kind != StmtKind::Decl)
        return;
      if (isValue(*s) || !staysInTurn(*s) || !isFixed(s->expr)) {
        ++i;
        continue;
      }
      body.erase(body.begin() + long(i));
      list.insert(llvm::find(list, turns), s);
    }
  }

  /// A loop whose iterations concern other elements each, and are the same in each turn.
  bool changesPlaces(const Stmt &loop) const {
    const std::string index = loop.kind == StmtKind::For && loop.init ? loop.init->text : "";
    if (index.empty() || !model.loopOf(index) || leavesIteration(*loop.body[0], {StmtKind::Break}) ||
        !isFixed(loop.init->expr) || !isFixed(loop.expr, index))
      return false;
    return llvm::all_of(accesses, [&](const Access &a) {
      return llvm::all_of(accesses, [&](const Access &b) {
        return a.array != b.array || !(a.write || b.write) || comeInAnyOrder(a, b) ||
               meetInOneIteration(model, {}, a, index, b, index);
      });
    });
  }
};

} // namespace

void optiml::sinkTurns(Kernel &kernel, const std::string &turn, const std::set<const Stmt *> &values) {
  auto at = llvm::find_if(kernel.body->body, [&](const StmtRef &s) {
    return s->kind == StmtKind::For && s->init && s->init->text == turn;
  });
  if (at != kernel.body->body.end())
    Sinker(kernel, *at, values).run(kernel.body->body);
}
