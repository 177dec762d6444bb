//===- PrivateTable.cpp - a block's own copy of an array ------------------===//
#include "PrivateTable.h"
#include "Transforms.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Analysis/ValueBounds.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

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

std::optional<TablePlace> optiml::tablePlace(const ExprRef &place, const std::string &array) {
  TablePlace result;
  result.place = place;
  for (ExprRef e = place; !result.row; e = e->args[0]) {
    if (e->kind != ExprKind::Member && e->kind != ExprKind::Subscript)
      return std::nullopt;
    const ExprRef &base = e->args[0];
    if (e->kind == ExprKind::Member)
      result.path = "_" + e->text + result.path;
    if (isVar(base, array)) {
      result.row = e->kind == ExprKind::Member ? intLit(0) : e->args[1]; // p->x
    } else if (e->kind == ExprKind::Subscript) {
      if (!isArray(base->type) || !e->type.bytes || base->type.bytes <= e->type.bytes) // [1] may stand for any number
        return std::nullopt;
      result.inner.insert(result.inner.begin(), e->args[1]);
      result.extents.insert(result.extents.begin(), base->type.bytes / e->type.bytes);
    } else if (base->type.isPointer()) {
      return std::nullopt;
    }
  }
  return result;
}

/// `e`, which ends in `base`, the array's element, or its first one's member (p->x).
static ExprRef rebuilt(const ExprRef &e, const ExprRef &base, const ExprRef &row, llvm::ArrayRef<ExprRef> inner) {
  if (e->kind == ExprKind::Subscript)
    return e == base ? subscript(e->args[0], row, e->type)
                     : subscript(rebuilt(e->args[0], base, row, inner.drop_back()), inner.back(), e->type);
  auto member = std::make_shared<Expr>(*e);
  member->args[0] =
      e == base ? subscript(e->args[0], row, *e->args[0]->type.pointee) : rebuilt(e->args[0], base, row, inner);
  return member;
}

ExprRef TablePlace::with(const ExprRef &newRow, const std::vector<ExprRef> &newInner) const {
  ExprRef base = place;
  while (base->args[0]->kind != ExprKind::Var)
    base = base->args[0];
  return rebuilt(place, base, newRow, newInner);
}

namespace {

/// All numbers of one path, of which a block has tables.
struct Column {
  std::string table;
  TablePlace of; ///< one of its places
  Type type;
  std::string fold;
  ExprRef update; ///< one of its updates
  int64_t inner;  ///< how many numbers a row has
};

class TableWriter {
public:
  TableWriter(KernelState &state, Kernel &kernel, const KernelModel &model, const std::vector<Update> &updates,
              const std::string &array, const PrivateTable &wanted, const ThreadGroup &group)
      : state(state), kernel(kernel), model(model), updates(updates), array(array), wanted(wanted), group(group),
        taken(allNames(kernel)) {}

  llvm::Error write() {
    findColumns();
    leaveOutLarge();
    if (llvm::Error e = check())
      return e;
    k = var(freshName(taken, "k"), Type::makeInt());
    for (const Update &u : updates)
      move(u);
    if (copies() > 1)
      copy = var(freshName(taken, "copy"), Type::makeInt());
    std::vector<StmtRef> before, clear, add;
    for (const Column &column : columns) {
      before.push_back(sharedArray(column.table, column.type, dims(column)));
      clear.push_back(clearing(column));
      add.push_back(adding(column));
    }
    before.insert(before.end(), clear.begin(), clear.end());
    before.push_back(barrierStmt());
    std::vector<StmtRef> &body = kernel.body->body;
    body.insert(body.begin(), before.begin(), before.end());
    body.push_back(barrierStmt());
    body.insert(body.end(), add.begin(), add.end());
    return llvm::Error::success();
  }

private:
  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  const std::vector<Update> &updates;
  const std::string &array;
  const PrivateTable &wanted;
  const ThreadGroup &group;
  std::set<std::string> taken;
  std::vector<Column> columns;
  ExprRef k, copy; ///< counters of an entry, and of a table; the second is null where there is one table

  int64_t copies() const { return std::max<int64_t>(wanted.copies, 1); }
  int64_t entries(const Column &column) const { return wanted.bins * column.inner; }
  /// Elements of a table, with gaps. An odd number, so that the same element of two tables is in different banks.
  int64_t length(const Column &column) const {
    const int64_t all = entries(column);
    return wanted.copies ? (all + all / gapEvery) | 1 : all;
  }
  std::vector<ExprRef> dims(const Column &column) const {
    return copies() > 1 ? std::vector<ExprRef>{intLit(copies()), intLit(length(column))}
                        : std::vector<ExprRef>{intLit(length(column))};
  }

  void findColumns() {
    for (const Update &u : updates) {
      if (llvm::any_of(columns, [&](const Column &c) { return c.of.path == u.place->path; }))
        continue;
      int64_t inner = 1;
      for (int64_t extent : u.place->extents)
        inner *= extent;
      const std::string name = freshName(taken, array + u.place->path + "_of_block");
      columns.push_back({name, *u.place, u.access->place->type.unqualified(), u.fold, u.stmt->expr, inner});
    }
  }

  int64_t bytes() const {
    int64_t all = sharedBytes(kernel);
    for (const Column &column : columns)
      all += bytesOf(column);
    return all;
  }
  int64_t bytesOf(const Column &column) const { return copies() * length(column) * column.type.bytes; }

  /// Of several, the largest have no table where there is no room for all.
  void leaveOutLarge() {
    while (columns.size() > 1 && bytes() > state.hints.maxSharedBytes)
      columns.erase(std::max_element(columns.begin(), columns.end(),
                                     [&](const Column &a, const Column &b) { return bytesOf(a) < bytesOf(b); }));
  }

  llvm::Error check() const {
    if (wanted.bins < 1 || wanted.copies < 0 || bytes() > state.hints.maxSharedBytes)
      return notApplicable("a table of {0} elements is too large", wanted.bins * copies());
    if (copies() > group.threads)
      return notApplicable("a block has fewer threads than there are tables");
    return llvm::Error::success();
  }

  /// The place of an element in a table.
  ExprRef placeOf(const ExprRef &index) const {
    return wanted.copies ? add(index, binary(">>", index, intLit(gapShift), index->type)) : index;
  }
  ExprRef entryOf(const Column &column, const ExprRef &copy, const ExprRef &index) const {
    ExprRef base = var(column.table, column.type);
    return subscript(copies() > 1 ? subscript(base, copy, column.type) : base, placeOf(index), column.type);
  }
  /// The one of a thread's own table.
  ExprRef ownEntry(const Column &column, const ExprRef &index) const {
    ExprRef copy = copies() > 1 ? binary("%", group.rank(), intLit(copies()), Type::makeInt()) : nullptr;
    return entryOf(column, copy, index);
  }

  StmtRef everyEntry(const Column &column, std::vector<StmtRef> what) const {
    return countedFor(k->text, Type::makeInt(), group.rank(), intLit(entries(column)), group.threads,
                      block(std::move(what)), NoUnroll);
  }
  StmtRef everyCopy(StmtRef what, int64_t first) const {
    return copy ? countedFor(copy->text, Type::makeInt(), intLit(first), intLit(copies()), 1, block({std::move(what)}),
                             FullUnroll)
                : what;
  }

  StmtRef clearing(const Column &column) {
    const ExprRef start = neutral(column.fold, column.type);
    return everyEntry(column, {everyCopy(exprStmt(assign("=", entryOf(column, copy, k), start)), 0)});
  }

  StmtRef adding(const Column &column) {
    std::vector<StmtRef> stmts;
    ExprRef total = entryOf(column, intLit(0), k);
    if (copy) {
      stmts.push_back(declStmt(freshName(taken, "total"), column.type, total));
      total = var(stmts.back()->text, column.type);
      stmts.push_back(everyCopy(fold(column, total, entryOf(column, copy, k)), 1));
    }
    ExprRef rest = k;
    std::vector<ExprRef> inner; // digits of k, the last one first
    for (int64_t extent : llvm::reverse(column.of.extents)) {
      inner.insert(inner.begin(), binary("%", rest, intLit(extent), k->type));
      rest = binary("/", rest, intLit(extent), k->type);
    }
    const ExprRef target = column.of.with(rest, inner), start = neutral(column.fold, column.type);
    const StmtRef update = exprStmt(updateLike(column.update, addressOf(target), total));
    stmts.push_back(ifStmt(binary("!=", total, start), block({update})));
    return everyEntry(column, stmts);
  }

  /// What two tables have, which has its sign already.
  StmtRef fold(const Column &column, const ExprRef &total, const ExprRef &value) {
    return foldInto(column.fold == "-" ? "+" : column.fold, total, value);
  }

  /// An index that is used more than once has a name.
  ExprRef named(const ExprRef &index, const std::string &wish, std::vector<StmtRef> &stmts) {
    if (index->kind == ExprKind::Var || constantValue(index))
      return index;
    const Type own = index->type.unqualified();
    stmts.push_back(declStmt(freshName(taken, wish), own, index));
    return var(stmts.back()->text, own);
  }
  static ExprRef within(const ExprRef &index, int64_t end) {
    ExprRef below = lessThan(index, intLit(end));
    return index->type.isSigned ? logicalAnd(binary(">=", index, intLit(0)), below) : below;
  }

  /// An update becomes one of the table, where there is one and its element has a place there.
  void move(const Update &u) {
    TablePlace place = *u.place;
    auto found = llvm::find_if(columns, [&](const Column &c) { return c.of.path == place.path; });
    if (found == columns.end())
      return;
    const Column &column = *found;
    std::vector<StmtRef> stmts;
    ExprRef inside; // where the element has a place
    if (wanted.isWhole) {
      if (wanted.copies)
        place.row = named(place.row, "bin", stmts);
    } else {
      const bool alwaysInside =
          requireBelow(state, model, *u.access, place.row, wanted.bins, "every element has a place in the table");
      if (wanted.copies || !alwaysInside)
        place.row = named(place.row, "bin", stmts);
      if (!alwaysInside)
        inside = within(place.row, wanted.bins);
    }
    // An index of an array within a record stays in it ([expr.add]/4).
    if (wanted.copies || inside)
      for (ExprRef &index : place.inner)
        index = named(index, "within", stmts);
    ExprRef entry = place.row;
    for (size_t i = 0; i < place.inner.size(); ++i)
      entry = add(mul(entry, intLit(place.extents[i])), place.inner[i]);
    auto update = [&](const ExprRef &element) {
      return exprStmt(callOf(u.stmt->expr->text, {addressOf(element), u.value}, column.type, false));
    };
    std::vector<StmtRef> own; // a place that is outside may be too large for an index
    if (wanted.copies)
      entry = named(entry, "entry", own);
    own.push_back(update(ownEntry(column, entry)));
    if (inside)
      stmts.push_back(ifStmt(inside, block(own), block({update(place.with(place.row, place.inner))})));
    else
      stmts.insert(stmts.end(), own.begin(), own.end());
    replaceUpdate(kernel, u, stmts);
  }
};

} // namespace

llvm::Error optiml::intoTable(KernelState &state, Kernel &kernel, const KernelModel &model,
                              const std::vector<Update> &updates, const std::string &array, const PrivateTable &wanted,
                              const ThreadGroup &group) {
  return TableWriter(state, kernel, model, updates, array, wanted, group).write();
}
