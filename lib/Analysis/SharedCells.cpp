//===- SharedCells.cpp - what is in shared memory, and who put it there ---===//
#include "optiml/Analysis/SharedCells.h"
#include "optiml/Analysis/IntegerSet.h"
#include "optiml/Analysis/KnownConditions.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

// Finding the stores

/// The place in `list` of the statement that `access` belongs to.
static std::optional<size_t> positionIn(const Stmt &list, const Access &access) {
  auto at = llvm::find(access.path, &list);
  if (at == access.path.end())
    return std::nullopt;
  const Stmt *child = std::next(at) == access.path.end() ? access.stmt : *std::next(at);
  for (size_t i = 0; i < list.body.size(); ++i)
    if (list.body[i].get() == child || list.body[i]->init.get() == child)
      return i;
  return std::nullopt;
}

llvm::Error SharedCells::collect() {
  std::map<std::string, std::vector<const Access *>> byArray;
  for (const Access &access : model.accesses())
    if (access.space == Space::Shared)
      byArray[access.array].push_back(&access);
  std::map<std::string, unsigned> mentioned = countMentions(*kernel.body);
  llvm::Error error = llvm::Error::success();
  walk(*kernel.body, [&](Stmt &s) {
    if (!s.isShared || error)
      return;
    const auto &accesses = byArray[s.text];
    if (mentioned[s.text] != accesses.size() || opaqueMentions(*kernel.body, {s.text}))
      error = notApplicable("'{0}' is used in a way that hides what is accessed", s.text);
    else if (!accesses.empty())
      error = collectArray(s.text, accesses);
  });
  return error;
}

/// The number of the iteration that a counter is in.
static std::string numberOf(const CountedLoop &loop) { return "@of " + loop.var; }

/// counter == lower + step * number, for the loops around an access whose counters leave values out.
static std::vector<CountedLoop> addStrides(const Access &access, std::vector<Poly> &facts) {
  std::vector<CountedLoop> loops;
  for (Stmt *s : access.path)
    if (auto loop = asCountedLoop(*s); loop && loop->step > 1 && constantValue(loop->lower)) {
      Poly exact =
          Poly::atom(loop->var) - Poly(*constantValue(loop->lower)) - Poly(loop->step) * Poly::atom(numberOf(*loop));
      facts.insert(facts.end(), {exact, Poly() - exact});
      loops.push_back(*loop);
    }
  return loops;
}

/// No row's index reaches into the next row.
bool SharedCells::staysInRows(const Access &access) const {
  const Stmt *d = model.declaration(access.array);
  if (!d || d->dims.size() != access.subscripts.size())
    return false;
  std::vector<Poly> facts = model.facts(access);
  addStrides(access, facts);
  for (size_t i = 1; i < d->dims.size(); ++i) {
    auto extent = d->dims[i] ? constantValue(d->dims[i]) : std::nullopt;
    if (!extent || !follows(access.subscripts[i], facts) || !follows(Poly(*extent - 1) - access.subscripts[i], facts))
      return false;
  }
  return true;
}

llvm::Error SharedCells::collectArray(const std::string &name, std::vector<const Access *> accesses) {
  // The innermost list that holds all reads and, before them, stores.
  auto firstRead = llvm::find_if(accesses, [](const Access *a) { return a->read; });
  if (firstRead == accesses.end())
    return llvm::Error::success(); // nobody looks at it
  std::vector<Stmt *> common = (*firstRead)->path;
  for (const Access *access : accesses)
    if (access->read) {
      size_t n = 0;
      while (n < common.size() && n < access->path.size() && common[n] == access->path[n])
        ++n;
      common.resize(n);
    }
  auto storesIn = [&](const Stmt *list) {
    return llvm::any_of(accesses, [&](const Access *a) {
      return a->write && positionIn(*list, *a) && *positionIn(*list, *a) < *positionIn(*list, **firstRead);
    });
  };
  while (!common.empty() && (common.back()->kind != StmtKind::Block || !storesIn(common.back())))
    common.pop_back();
  if (common.empty())
    return notApplicable("'{0}' is not filled before a barrier and read after it", name);
  // What is stored elsewhere no read finds: every cell must have been stored in the list.
  Array array;
  array.list = common.back();
  size_t lastStore = 0, first = array.list->body.size();
  for (const Access *access : accesses) {
    auto at = positionIn(*array.list, *access);
    if (access->node->type.text != accesses[0]->node->type.text)
      return notApplicable("'{0}' is used in a way that hides what is accessed", name);
    if (!staysInRows(*access))
      return notApplicable("which cells of '{0}' are accessed is not understood (line {1})", name, access->stmt->line);
    if ((!at && access->read) || access->atomic || (access->read && access->write))
      return notApplicable("'{0}' is updated in place (line {1})", name, access->stmt->line);
    if (access->write) {
      written.insert(access->stmt);
      if (!at)
        continue;
      lastStore = std::max(lastStore, *at);
      auto store = understood(*access, *array.list);
      if (!store)
        return store.takeError();
      array.stores.push_back(*store);
    } else {
      first = std::min(first, *at);
    }
  }
  bool waits = false;
  for (size_t i = lastStore + 1; i < first; ++i)
    waits |= array.list->body[i]->kind == StmtKind::Barrier;
  // In a loop with several stores an earlier one may come later.
  for (const Store &a : array.stores)
    for (const Store &b : array.stores)
      if (!a.loops.empty() && !b.loops.empty() && a.loops[0].stmt == b.loops[0].stmt &&
          a.access->subscripts != b.access->subscripts)
        return notApplicable("a loop stores several cells of '{0}' (line {1})", name, b.access->stmt->line);
  if (array.stores.empty() || !waits)
    return notApplicable("'{0}' is not filled before a barrier and read after it", name);
  if (llvm::Error e = sameForAll(*array.list))
    return e;
  arrays[name] = std::move(array);
  return llvm::Error::success();
}

/// All threads of a block come to the statements of the list, together.
llvm::Error SharedCells::sameForAll(const Stmt &list) const {
  std::vector<Stmt *> around;
  std::function<bool(Stmt &)> find = [&](Stmt &s) {
    if (&s == &list)
      return true;
    for (StmtRef &child : s.body)
      if (find(*child)) {
        around.push_back(&s);
        return true;
      }
    return false;
  };
  find(*kernel.body);
  if (holdsKind(*kernel.body, {StmtKind::Return}))
    return notApplicable("threads leave the kernel before the others are done");
  for (Stmt *s : around) {
    bool branch = s->kind == StmtKind::If, loop = isLoop(*s);
    if ((branch || loop) && s->expr && model.varies(s->expr) & (AnyThread | FromMemory))
      return notApplicable("not all threads of a block go the same way (line {0})", s->line);
    if (loop && leavesIteration(*s->body[0]))
      return notApplicable("the loop at line {0} may be left early", s->line);
  }
  return llvm::Error::success();
}

llvm::Expected<SharedCells::Store> SharedCells::understood(const Access &access, const Stmt &list) {
  const Stmt &s = *access.stmt;
  if (!isAssignStmt(s) || s.expr->args[0] != access.node)
    return notApplicable("'{0}' is written in a way that is not understood (line {1})", access.array, s.line);
  Store store{&access, s.expr->args[1], {}, {}};
  const auto &path = access.path;
  for (size_t i = size_t(llvm::find(path, &list) - path.begin()) + 1; i < path.size(); ++i) {
    Stmt &around = *path[i];
    if (around.kind == StmtKind::If) {
      bool taken = i + 1 < path.size() && path[i + 1] == around.body[0].get();
      if (!model.stable(around.expr))
        return notApplicable("whether a cell of '{0}' is stored may change (line {1})", access.array, around.line);
      store.guards.emplace_back(around.expr, taken);
    } else if (around.kind != StmtKind::Block) {
      auto loop = asCountedLoop(around);
      if (!loop || !loop->tripCount() || leavesIteration(*around.body[0]))
        return notApplicable("'{0}' is filled by a loop of unknown length (line {1})", access.array, around.line);
      store.loops.push_back(*loop);
    }
  }
  return store;
}

std::set<const Stmt *> SharedCells::storeStatements() const { return written; }

// Who has stored it

static std::string threadIndex(unsigned axis) { return axisName("threadIdx", axis); }

namespace {
/// One digit of a cell's index.
struct Digit {
  std::string name;
  int64_t weight, count;
};
} // namespace

/// The terms of `p` that are multiples of `weight`, divided by it.
static Poly multiples(const Poly &p, int64_t weight) {
  Poly result;
  for (const auto &[monomial, coefficient] : p.terms)
    result.terms[monomial] = coefficient / weight;
  std::erase_if(result.terms, [](const auto &term) { return term.second == 0; });
  return result;
}

/// The thread and iterations that store the cell that `read` reads: every dimension of the store's index is a number
/// whose digits are thread indices and counters; dividing by the weights, the largest first, tells them.
std::optional<SharedCells::Writer> SharedCells::writerOf(const Store &store, const Access &read) const {
  const std::vector<Poly> &cell = store.access->subscripts, &place = read.subscripts;
  if (cell.size() != place.size())
    return std::nullopt;
  std::map<std::string, int64_t> counts; // of the values of what differs between writers, each from 0 on
  std::map<std::string, Poly> value;     // of a counter, by its number of the iteration
  for (unsigned axis = 0; axis < 3; ++axis)
    if (shape[axis] > 1) {
      counts["@" + threadIndex(axis)] = shape[axis];
      value[threadIndex(axis)] = Poly::atom("@" + threadIndex(axis));
    }
  for (const CountedLoop &loop : store.loops) {
    counts["@" + loop.var] = *loop.tripCount();
    value[loop.var] = Poly(*constantValue(loop.lower)) + Poly(loop.step) * Poly::atom("@" + loop.var);
  }
  Writer writer;
  std::map<std::string, Poly> solved;
  // The reader's counters by their numbers of the iteration too.
  std::vector<CountedLoop> reading = addStrides(read, writer.facts);
  for (size_t d = 0; d < cell.size(); ++d) {
    Poly own = cell[d];
    for (const auto &[name, p] : value)
      own = own.substitute(name, p);
    for (const std::string &atom : own.atoms()) // all else is alike for writer and reader
      if (!counts.count(atom) && (model.variesAtom(atom) & (AnyThread | FromMemory) || !model.stable(Poly::atom(atom))))
        return std::nullopt;
    std::vector<Digit> digits;
    Poly rest = place[d];
    for (const CountedLoop &loop : reading)
      rest = rest.substitute(loop.var, Poly(*constantValue(loop.lower)) + Poly(loop.step) * Poly::atom(numberOf(loop)));
    rest = rest - own;
    for (const auto &[name, count] : counts)
      if (own.mentions(name)) {
        auto weight = own.coefficient(name);
        auto constant = weight ? weight->constant() : std::nullopt;
        if (!constant || *constant <= 0 || solved.count(name))
          return std::nullopt;
        digits.push_back({name, *constant, count});
        rest = rest + Poly(*constant) * Poly::atom(name);
      }
    llvm::sort(digits, [](const Digit &a, const Digit &b) { return a.weight > b.weight; });
    int64_t below = 0; // the greatest number that smaller digits make
    for (const Digit &digit : llvm::reverse(digits)) {
      if (digit.weight <= below)
        return std::nullopt;
      below += digit.weight * (digit.count - 1);
    }
    for (const Digit &digit : digits) {
      solved[digit.name] = multiples(rest, digit.weight);
      rest = rest - Poly(digit.weight) * solved[digit.name];
    }
    if (!(rest == Poly()))
      return std::nullopt;
  }
  for (const auto &[name, p] : value) {
    auto it = solved.find("@" + name);
    if (it == solved.end()) {
      if (!name.starts_with("threadIdx."))
        return std::nullopt; // the last iteration's value stays
      writer.any.insert(name);
      writer.at[name] = Poly(0);
      continue;
    }
    Poly at = p.substitute("@" + name, it->second);
    for (const CountedLoop &loop : reading) {
      std::string number = numberOf(loop);
      auto c = at.coefficient(number);
      auto constant = c ? c->constant() : std::nullopt;
      if (!constant || *constant % loop.step)
        return std::nullopt;
      at = at - Poly(*constant) * Poly::atom(number) +
           Poly(*constant / loop.step) * (Poly::atom(loop.var) - Poly(*constantValue(loop.lower)));
    }
    writer.at[name] = at;
    writer.within.push_back(it->second);
    writer.within.push_back(Poly(counts["@" + name] - 1) - it->second);
  }
  return writer;
}

/// `e` as a value of another type, as few casts as that takes.
static ExprRef converted(const Type &type, const ExprRef &e) {
  bool widens =
      e->kind == ExprKind::Cast && e->type.isInt() && e->args[0]->type.isInt() && type.isInt() && e->type.bytes >= 4;
  if (widens && e->args[0]->type.sameNumber(type))
    return e->args[0];
  if (e->type.sameNumber(type) || (type.cls != Type::Class::Int && !type.isFloat()))
    return e;
  if (e->kind == ExprKind::IntLit && type.isInt())
    return intLit(e->value, type);
  return castTo(type.withConst(false), e);
}

/// `e` of the store as its writer has computed it.
llvm::Expected<ExprRef> SharedCells::atWriter(const ExprRef &e, const Store &store, const Writer &writer,
                                              const Stmt &list) const {
  std::string why;
  auto isOutside = [&](const Stmt *declaration) { // it can be seen from where the array is read
    return llvm::none_of(list.body,
                         [&](const StmtRef &s) { return s.get() != declaration && holdsStmt(*s, declaration); });
  };
  std::function<ExprRef(const ExprRef &)> visit = [&](const ExprRef &n) -> ExprRef {
    if (n->kind == ExprKind::Builtin || n->kind == ExprKind::Var)
      if (auto it = writer.at.find(n->text); it != writer.at.end()) {
        if (writer.any.count(n->text))
          why = "is stored by several threads at once";
        if (it->second == Poly::atom(n->text))
          return n;
        return converted(n->type, polyExpr(model, it->second));
      }
    for (const Access &access : model.accesses())
      if (access.node == n)
        sources.insert(&access);
    if (n->kind == ExprKind::Var && n->type.isPointer() && model.declaration(n->text))
      why = "is read through '" + n->text + "', a pointer of the thread";
    if (n->kind == ExprKind::Unary && (n->text == "*" || n->text == "&"))
      why = "is computed in a way that is not understood";
    if (n->kind == ExprKind::Var && !n->type.isPointer()) {
      const Stmt *d = model.declaration(n->text);
      bool counter = model.loopOf(n->text).has_value();
      if (!d && !model.param(n->text) && !n->type.isConst)
        why = "is computed from '" + n->text + "', which may change";
      if (!d || counter)
        return n;
      if (!model.singleAssignment(n->text)) {
        why = "is computed from '" + n->text + "', which may change";
        return n;
      }
      ExprRef value = converted(n->type, visit(d->expr));
      return equal(value, converted(n->type, d->expr)) && isOutside(d) ? n : value;
    }
    if (!n->pure || isChange(n) || n->kind == ExprKind::Opaque || n->type.isVolatile)
      why = "is computed in a way that is not understood";
    return mapOperands(n, visit);
  };
  ExprRef result = visit(e);
  if (!why.empty())
    return notApplicable("what '{0}' holds {1} (line {2})", store.access->array, why, store.access->stmt->line);
  return result;
}

/// The value that the first `count` stores leave in the cell that `read` reads.
llvm::Expected<ExprRef> SharedCells::stored(const Array &array, size_t count, const Access &read,
                                            std::vector<std::pair<ExprRef, bool>> known,
                                            const std::vector<Poly> &facts) const {
  auto none = [&] {
    return notApplicable("a cell of '{0}' that is read may not have been stored (line {1})", read.array,
                         read.stmt->line);
  };
  while (count-- > 0) {
    const Store &store = array.stores[count];
    auto writer = writerOf(store, read);
    if (!writer)
      return notApplicable("which thread has stored a cell of '{0}' is not understood (line {1})", read.array,
                           read.stmt->line);
    std::vector<Poly> here = facts;
    llvm::append_range(here, writer->facts);
    for (const auto &[condition, taken] : known)
      model.addFacts(condition, taken, here);
    std::vector<Poly> exists = here;
    llvm::append_range(exists, writer->within);
    if (isEmptySet(exists))
      continue; // the store fills other cells
    if (!llvm::all_of(writer->within, [&](const Poly &p) { return follows(p, here); }))
      return none();
    auto value = atWriter(store.value, store, *writer, *array.list);
    if (!value)
      return value;
    std::vector<std::pair<ExprRef, bool>> open; // guards that may or may not hold
    for (const auto &[condition, taken] : store.guards) {
      // Which of several threads stores it a condition may tell.
      Writer one = *writer;
      one.any.clear();
      auto guard = atWriter(condition, store, one, *array.list);
      if (!guard)
        return guard;
      bool holds = truth(model, *guard, here) == taken || llvm::any_of(known, [&, taken = taken](const auto &k) {
                     return k.second == taken && equal(k.first, *guard);
                   });
      if (holds)
        continue;
      if (auto sameForAll = atWriter(condition, store, *writer, *array.list); !sameForAll)
        return sameForAll;
      open.emplace_back(*guard, taken);
    }
    if (open.empty())
      return converted(read.node->type, *value);
    if (open.size() > 1)
      return none();
    known.emplace_back(open[0].first, !open[0].second);
    auto otherwise = stored(array, count, read, known, facts);
    if (!otherwise)
      return otherwise;
    ExprRef stored = converted(read.node->type, *value);
    return open[0].second ? conditional(open[0].first, stored, *otherwise)
                          : conditional(open[0].first, *otherwise, stored);
  }
  return none();
}

llvm::Expected<ExprRef> SharedCells::valueAt(const Access &read) const {
  auto it = arrays.find(read.array);
  if (it == arrays.end())
    return notApplicable("'{0}' is not understood", read.array);
  return stored(it->second, it->second.stores.size(), read, {}, model.facts(read));
}
