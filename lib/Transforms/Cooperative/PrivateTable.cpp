//===- PrivateTable.cpp - a block's own copy of an array ------------------===//
#include "PrivateTable.h"
#include "Transforms.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Analysis/ValueBounds.h"
#include "optiml/Support/Error.h"

using namespace optiml;

// Elements between two gaps of a table that has any: as many as there are banks.
static constexpr int64_t gapEvery = 32;
static constexpr int64_t gapShift = 5;

ExprRef optiml::neutral(const std::string &fold, const Type &type) {
  if (fold != "min" && fold != "max")
    return Fold{Fold::Kind::Operator, fold == "-" ? "+" : fold}.identity(type);
  if (type.isFloat()) {
    ExprRef infinity = callOf(type.bytes == 4 ? "__builtin_inff" : "__builtin_inf", {}, type, true);
    return fold == "min" ? infinity : unary("-", infinity, type);
  }
  bool eight = type.bytes == 8;
  if (!type.isSigned)
    return intLit(fold == "max" ? 0 : eight ? -1 : int64_t(UINT32_MAX), type);
  ExprRef most = intLit(eight ? INT64_MAX : INT32_MAX, type);
  if (fold == "min")
    return most;
  return binary("-", unary("-", most, type), intLit(1), type); // as C writes it: -most - 1
}

ExprRef optiml::updateLike(const ExprRef &update, const ExprRef &address, const ExprRef &value) {
  if (update->text == "atomicSub") // the sum has the sign already
    return callOf("atomicAdd", {address, value}, value->type, false);
  auto call = std::make_shared<Expr>(*update);
  call->args = {address, value};
  return call;
}

StmtRef optiml::foldInto(const std::string &fold, const ExprRef &total, const ExprRef &value) {
  if (fold != "min" && fold != "max")
    return exprStmt(assign(fold + "=", total, value));
  return Fold{Fold::Kind::Compare, fold == "min" ? "<" : ">"}.into(total, value);
}

void optiml::replaceUpdate(Kernel &kernel, const Update &u, std::vector<StmtRef> with) {
  auto place = findPlace(*kernel.body, u.stmt);
  std::vector<StmtRef> &list = place->block->body;
  list.erase(list.begin() + long(place->index));
  list.insert(list.begin() + long(place->index), with.begin(), with.end());
}

namespace {

class TableWriter {
public:
  TableWriter(KernelState &state, Kernel &kernel, const KernelModel &model, const std::vector<Update> &updates,
              const std::string &array, const PrivateTable &wanted, const ThreadGroup &group)
      : state(state), kernel(kernel), model(model), updates(updates), array(array), wanted(wanted), type(wanted.type),
        group(group), taken(allNames(kernel)), table(freshName(taken, array + "_of_block")) {}

  llvm::Error write() {
    if (llvm::Error e = check())
      return e;
    const std::string k = freshName(taken, "k");
    const ExprRef counter = var(k, Type::makeInt()), start = neutral(updates.front().fold, type);
    const ExprRef target = subscript(updates.front().access->node->args[0], counter, type);
    const ExprRef update = updates.front().stmt->expr; // its statement goes
    for (const Update &u : updates)
      move(u);
    auto everyEntry = [&](std::vector<StmtRef> what) {
      return countedFor(k, Type::makeInt(), group.rank(), intLit(wanted.bins), group.threads, block(std::move(what)),
                        NoUnroll);
    };
    const ExprRef copy = copies() > 1 ? var(freshName(taken, "copy"), Type::makeInt()) : nullptr;
    auto everyCopy = [&](StmtRef what, int64_t first) {
      return copy ? countedFor(copy->text, Type::makeInt(), intLit(first), intLit(copies()), 1,
                               block({std::move(what)}), FullUnroll)
                  : what;
    };
    std::vector<StmtRef> before = {sharedArray(table, type, dims())};
    before.push_back(everyEntry({everyCopy(exprStmt(assign("=", entryOf(copy, counter), start)), 0)}));
    before.push_back(barrierStmt());
    std::vector<StmtRef> &body = kernel.body->body;
    body.insert(body.begin(), before.begin(), before.end());
    body.push_back(barrierStmt());
    std::vector<StmtRef> add;
    ExprRef total = entryOf(intLit(0), counter);
    if (copy) {
      add.push_back(declStmt(freshName(taken, "total"), type, total));
      total = var(add.back()->text, type);
      add.push_back(everyCopy(fold(total, entryOf(copy, counter)), 1));
    }
    add.push_back(ifStmt(binary("!=", total, start), block({exprStmt(updateLike(update, addressOf(target), total))})));
    body.push_back(everyEntry(add));
    return llvm::Error::success();
  }

private:
  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  const std::vector<Update> &updates;
  const std::string &array;
  const PrivateTable &wanted;
  const Type &type;
  const ThreadGroup &group;
  std::set<std::string> taken;
  std::string table;

  int64_t copies() const { return std::max<int64_t>(wanted.copies, 1); }
  /// Elements of a table, with gaps. An odd number, so that the same element of two tables is in different banks.
  int64_t length() const { return wanted.copies ? (wanted.bins + wanted.bins / gapEvery) | 1 : wanted.bins; }
  std::vector<ExprRef> dims() const {
    return copies() > 1 ? std::vector<ExprRef>{intLit(copies()), intLit(length())}
                        : std::vector<ExprRef>{intLit(length())};
  }

  llvm::Error check() const {
    const int64_t bytes = copies() * length() * type.bytes + sharedBytes(kernel);
    if (wanted.bins < 1 || wanted.copies < 0 || bytes > state.hints.maxSharedBytes)
      return notApplicable("a table of {0} elements is too large", wanted.bins * copies());
    if (copies() > group.threads)
      return notApplicable("a block has fewer threads than there are tables");
    for (const Update &u : updates)
      if (u.access->node->kind != ExprKind::Subscript || !isVar(u.access->node->args[0], array))
        return notApplicable("line {0} does not name an element of '{1}'", u.stmt->line, array);
    return llvm::Error::success();
  }

  /// The place of an element in a table.
  ExprRef placeOf(const ExprRef &index) const {
    return wanted.copies ? add(index, binary(">>", index, intLit(gapShift), index->type)) : index;
  }
  ExprRef entryOf(const ExprRef &copy, const ExprRef &index) const {
    ExprRef base = var(table, type);
    return subscript(copies() > 1 ? subscript(base, copy, type) : base, placeOf(index), type);
  }
  /// The one of a thread's own table.
  ExprRef ownEntry(const ExprRef &index) const {
    return entryOf(copies() > 1 ? binary("%", group.rank(), intLit(copies()), Type::makeInt()) : nullptr, index);
  }

  /// What two tables have, which has its sign already.
  StmtRef fold(const ExprRef &total, const ExprRef &value) {
    const std::string &fold = updates.front().fold;
    return foldInto(fold == "-" ? "+" : fold, total, value);
  }

  /// An update becomes one of the table, where its element has a place there.
  void move(const Update &u) {
    ExprRef index = u.access->node->args[1];
    std::vector<StmtRef> stmts;
    const bool alwaysInside =
        requireBelow(state, model, *u.access, index, wanted.bins, "every element has a place in the table");
    if (index->kind != ExprKind::Var && (wanted.copies || !alwaysInside)) { // it is used more than once
      const Type own = index->type.unqualified();
      const std::string bin = freshName(taken, "bin");
      stmts.push_back(declStmt(bin, own, index));
      index = var(bin, own);
    }
    auto update = [&](const ExprRef &element) {
      return exprStmt(callOf(u.stmt->expr->text, {addressOf(element), u.value}, type, false));
    };
    if (alwaysInside) {
      stmts.push_back(update(ownEntry(index)));
    } else {
      ExprRef inside = lessThan(index, intLit(wanted.bins));
      if (index->type.isSigned)
        inside = logicalAnd(binary(">=", index, intLit(0)), inside);
      stmts.push_back(ifStmt(inside, block({update(ownEntry(index))}),
                             block({update(subscript(u.access->node->args[0], index, type))})));
    }
    replaceUpdate(kernel, u, stmts);
  }
};

} // namespace

llvm::Error optiml::intoTable(KernelState &state, Kernel &kernel, const KernelModel &model,
                              const std::vector<Update> &updates, const std::string &array, const PrivateTable &wanted,
                              const ThreadGroup &group) {
  return TableWriter(state, kernel, model, updates, array, wanted, group).write();
}
