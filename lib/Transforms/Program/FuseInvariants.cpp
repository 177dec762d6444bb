//===- FuseInvariants.cpp - what a row's steps read again and again -------===//
//
// A step loads what is the same for its whole row once more: an option's strike, a system's coefficients. In a kernel
// that does all steps, such a value is loaded once. That is right where nothing writes it while it is held, and where
// somebody loads it in any case: a place in memory that only some branch looks at may not exist.
//
//===----------------------------------------------------------------------===//
#include "FuseInBlocks.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

// Registers of a thread, for values of a row.
static constexpr size_t mostHeld = 16;

namespace {

class Holder {
public:
  explicit Holder(RowKernel &made) : made(made), list(made.list()), model(*made.kernel) {
    for (const Access &access : model.accesses())
      if (access.write)
        written[access.array].push_back(&access);
  }

  void run() {
    std::map<size_t, std::vector<StmtRef>> before; // by place in the list
    std::map<std::string, ExprRef> known;          // by array, element and member
    std::map<size_t, std::map<const Expr *, ExprRef>> replaced;
    for (const Access &access : model.accesses()) {
      const ExprRef value = access.read && !access.write && !access.atomic ? heldValue(access) : nullptr;
      const std::optional<size_t> at = value ? placeFor(access) : std::nullopt;
      if (!at)
        continue;
      auto [it, added] = known.try_emplace(std::to_string(*at) + ":" + str(value));
      if (added) {
        if (known.size() > mostHeld)
          break;
        const std::string member = value->kind == ExprKind::Member ? value->text : "held";
        it->second = var(freshName(made.taken, access.array + "_" + member), value->type.unqualified());
        before[*at].push_back(declStmt(it->second->text, it->second->type, value));
      }
      replaced[*at][access.place.get()] = it->second;
    }
    for (const auto &[at, nodes] : replaced)
      for (size_t i = at; i < list.size(); ++i)
        replaceNodes(*list[i], nodes);
    for (const auto &[at, statements] : llvm::reverse(before))
      list.insert(list.begin() + long(at), statements.begin(), statements.end());
  }

private:
  RowKernel &made;
  std::vector<StmtRef> &list;
  const KernelModel model;
  std::map<std::string, std::vector<const Access *>> written;

  /// What is loaded, in terms of names that are known before all statements; null: it differs within the row.
  ExprRef heldValue(const Access &access) const {
    if (access.subscripts.size() != 1 || !(access.place->type.isInt() || access.place->type.isFloat()) ||
        access.array.find('.') != std::string::npos || access.space == Space::Local)
      return nullptr;
    const ExprRef index = rewrite(polyExpr(model, access.subscripts[0]), [&](const ExprRef &e) -> ExprRef {
      return isBuiltin(e, made.index()) ? var(made.row, Type::makeInt()) : nullptr;
    });
    const bool isFixed = !anyNode(index, [&](const ExprRef &e) {
      const bool isOther = e->kind == ExprKind::Var && e->text != made.row && model.declaration(e->text);
      return isOther || isLoad(e) || !e->pure || e->kind == ExprKind::Opaque || e->kind == ExprKind::Builtin;
    });
    if (!isFixed || !model.stable(access.subscripts[0]))
      return nullptr;
    const ExprRef element = subscript(access.root, index, access.node->type);
    return rewrite(access.place, [&](const ExprRef &e) { return e == access.node ? element : nullptr; });
  }

  /// Before which statement the value may be loaded; nothing: it may not.
  std::optional<size_t> placeFor(const Access &access) const {
    auto writes = written.find(access.array);
    if (access.space == Space::Global)
      return writes == written.end() && isLoadedAlways(access) ? std::optional(firstPlace()) : std::nullopt;
    // Shared memory: behind the last statement that writes it, before the loop that reads it.
    const size_t at = topOf(access);
    if (writes == written.end() || at >= list.size() || !isLoop(*list[at]))
      return std::nullopt;
    for (const Access *write : writes->second)
      if (topOf(*write) >= at)
        return std::nullopt;
    return at;
  }

  /// Behind the declarations that stand first: of the row, and of shared memory.
  size_t firstPlace() const {
    size_t at = 0;
    while (at < list.size() && list[at]->kind == StmtKind::Decl)
      ++at;
    return at;
  }

  size_t topOf(const Access &access) const {
    for (size_t at = 0; at < list.size(); ++at)
      if (list[at].get() == access.stmt || insideOf(access, list[at].get()))
        return at;
    return list.size();
  }

  /// Somebody loads the element whatever the data.
  bool isLoadedAlways(const Access &access) const {
    return llvm::any_of(model.accesses(), [&](const Access &other) {
      return other.array == access.array && other.subscripts == access.subscripts &&
             llvm::all_of(other.guards,
                          [&](const auto &guard) {
                            const bool isFirst = isBinary(guard.first, "==") &&
                                                 isBuiltin(guard.first->args[0], "threadIdx.x") &&
                                                 constantValue(guard.first->args[1]) == 0;
                            return guard.second && (isFirst || guard.first == made.inRows);
                          }) &&
             llvm::all_of(other.path, [&](const Stmt *s) { return !isLoop(*s) || made.loops.count(s) != 0; });
    });
  }
};

} // namespace

void optiml::holdRowValues(RowKernel &made) { Holder(made).run(); }
