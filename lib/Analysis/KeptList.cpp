//===- KeptList.cpp - the k best values, however they are kept ------------===//
//
// First the statements that have to do with an array are found; then how entries lie in it, and which integer is the
// length; then every case is run (ListCases.h). With n entries there are as many cases as ways to have some of them
// better than the new value, some equal and the others worse, as comparisons between two entries that may be either way
// are not taken for known.
//
//===----------------------------------------------------------------------===//
#include "optiml/Analysis/KeptList.h"
#include "ListCases.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;
using Kind = ListMachine::Value::Kind;

/// Constant lengths up to this one are tried.
constexpr int64_t mostConstant = 32;

namespace {

/// The statements [first, last) of a block of the loop, which alone have to do with a list.
struct Region {
  StmtRef list;
  size_t first = 0, last = 0;
  std::vector<StmtRef> statements() const {
    return {list->body.begin() + long(first), list->body.begin() + long(last)};
  }
};

class Finder {
public:
  Finder(const KernelModel &model, Stmt &loop, int64_t most) : model(model), loop(loop), most(most) {}
  std::vector<KeptList> run();

private:
  bool mentionsAny(const Stmt &s, bool children) const;
  bool headMentions(const Stmt &s) const;
  std::optional<Region> regionOf(const StmtRef &block) const;
  std::vector<KeptList> listsOf(const std::string &array);
  std::optional<KeptList> insertion(const Region &region, KeptList list);
  bool findArrays(const Region &region, KeptList &list, std::set<std::string> *passed = nullptr) const;
  struct Layout {
    Poly scale, base;
  };
  std::vector<Layout> layouts(KeptList::Array &array, const Region &region, const std::set<std::string> &changed) const;
  bool provesAll(const Region &region, KeptList &list, const std::set<std::string> &changed);
  bool provesFor(ListMachine &machine, const Region &region, KeptList &list, int64_t length) const;
  bool isRight(const ListMachine &machine, const KeptList &list, const ListCase &c) const;
  std::vector<int64_t> constantLengths(const Region &region) const;
  std::string counterFromZero() const;

  const KernelModel &model;
  Stmt &loop;
  int64_t most;
  std::set<std::string> names; ///< of the list at hand: arrays and variables from outside the loop
};

} // namespace

//===----------------------------------------------------------------------===//
// Which statements
//===----------------------------------------------------------------------===//

static std::set<const Expr *> nodesOf(Stmt &s, bool children) {
  std::set<const Expr *> nodes;
  auto collect = [&](const ExprRef &e) { nodes.insert(e.get()); };
  if (children)
    walkExprs(s, collect);
  else
    ownExprs(s, [&](ExprRef &e) {
      if (e)
        walk(e, collect);
    });
  return nodes;
}

bool Finder::mentionsAny(const Stmt &s, bool children) const {
  std::set<const Expr *> nodes = nodesOf(const_cast<Stmt &>(s), children);
  for (const Expr *e : nodes)
    if (e->kind == ExprKind::Var && names.count(e->text))
      return true;
  auto declares = [&](const Stmt &t) { return t.kind == StmtKind::Decl && names.count(t.text); };
  if (children ? anyStmt(s, declares) : declares(s))
    return true;
  return llvm::any_of(model.accesses(),
                      [&](const Access &a) { return names.count(a.array) && nodes.count(a.node.get()); });
}

bool Finder::headMentions(const Stmt &s) const {
  return mentionsAny(s, false) || (s.init && mentionsAny(*s.init, true));
}

/// The innermost list of statements that holds all that mention one of the names.
std::optional<Region> Finder::regionOf(const StmtRef &block) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < block->body.size(); ++i)
    if (mentionsAny(*block->body[i], true))
      found.push_back(i);
  if (found.empty())
    return std::nullopt;
  const StmtRef &only = block->body[found[0]];
  bool isOne = found.size() == 1;
  if (isOne && only->kind == StmtKind::Block)
    return regionOf(only);
  if (isOne && (only->kind == StmtKind::If || isLoop(*only)) && !headMentions(*only)) {
    std::vector<StmtRef> parts;
    for (const StmtRef &child : only->body)
      if (mentionsAny(*child, true))
        parts.push_back(child);
    if (parts.size() == 1 && parts[0]->kind == StmtKind::Block)
      return regionOf(parts[0]);
  }
  return Region{block, found.front(), found.back() + 1};
}

/// Names that statements declare or assign, and arrays that they write.
static std::set<std::string> changedIn(const std::vector<StmtRef> &statements, bool declared) {
  std::set<std::string> result;
  for (const StmtRef &s : statements) {
    if (declared)
      result.merge(namesDeclaredIn(*s));
    walkExprs(*s, [&](const ExprRef &e) {
      if (mayChange(e) && e->args[0]->kind == ExprKind::Var)
        result.insert(e->args[0]->text);
    });
  }
  return result;
}

static bool keepsNumbers(const Type &type) {
  return (type.cls == Type::Class::Int || type.isFloat()) && !type.isVolatile && (type.bytes == 4 || type.bytes == 8);
}

/// Takes in the other array and the variables that the statements change. `passed`: such variables of an iteration that
/// are declared before the statements.
bool Finder::findArrays(const Region &region, KeptList &list, std::set<std::string> *passed) const {
  std::set<const Expr *> nodes;
  for (const StmtRef &s : region.statements())
    nodes.merge(nodesOf(*s, true));
  for (const Access &access : model.accesses()) {
    if (!access.write || !nodes.count(access.node.get()))
      continue;
    const ExprRef &node = access.node;
    if (access.atomic || access.space == Space::Shared || access.subscripts.size() != 1 ||
        node->kind != ExprKind::Subscript || !access.members().empty() || !keepsNumbers(node->type))
      return false;
    KeptList::Array made{access.array, access.root, access.space, node->type.unqualified(), {}, {}, node};
    if (access.array == list.values.name)
      list.values = made;
    else if (!list.places || list.places->name == access.array)
      list.places = made;
    else
      return false;
  }
  std::set<std::string> own;
  for (const StmtRef &s : region.statements())
    own.merge(namesDeclaredIn(*s));
  std::set<std::string> outer = namesDeclaredIn(loop);
  for (const std::string &name : changedIn(region.statements(), false)) {
    if (own.count(name))
      continue;
    if (outer.count(name) && passed) {
      passed->insert(name);
      continue;
    }
    const Stmt *d = model.declaration(name);
    if (!d || !d->type.isInt() || d->type.isVolatile || !list.count.empty() || outer.count(name))
      return false;
    list.count = name;
  }
  return !list.values.name.empty() && list.values.element;
}

//===----------------------------------------------------------------------===//
// How entries lie
//===----------------------------------------------------------------------===//

/// Entry i is element scale * i + base, as an access says whose index depends on one changed integer. Where it falls
/// with that integer (a loop that counted down was read as one that counts up), entries may lie the other way round.
std::vector<Finder::Layout> Finder::layouts(KeptList::Array &array, const Region &region,
                                            const std::set<std::string> &changed) const {
  std::set<const Expr *> nodes;
  for (const StmtRef &s : region.statements())
    nodes.merge(nodesOf(*s, true));
  const std::string entry = "@";
  std::function<Poly(const ExprRef &)> symbolic = [&](const ExprRef &e) -> Poly {
    bool touched = anyNode(
        e, [&](const ExprRef &x) { return isChange(x) || (x->kind == ExprKind::Var && changed.count(x->text)); });
    if (!touched)
      return model.poly(e);
    if (e->kind == ExprKind::Cast && e->type.isInt())
      return symbolic(e->args[0]);
    if (isBinary(e, "+"))
      return symbolic(e->args[0]) + symbolic(e->args[1]);
    if (isBinary(e, "-"))
      return symbolic(e->args[0]) - symbolic(e->args[1]);
    if (isBinary(e, "*"))
      return symbolic(e->args[0]) * symbolic(e->args[1]);
    return Poly::atom(entry);
  };
  std::optional<Poly> base, scale;
  for (const Access &access : model.accesses()) {
    if (access.array != array.name || !nodes.count(access.node.get()))
      continue;
    if (access.subscripts.size() != 1 || access.node->kind != ExprKind::Subscript)
      return {};
    Poly index = access.subscripts[0] - model.poly(access.node->args[1]) + symbolic(access.node->args[1]);
    auto factor = index.coefficient(entry);
    if (!factor)
      return {};
    bool depends = !factor->terms.empty();
    Poly by = depends ? *factor : Poly(1), rest = index - by * (depends ? Poly::atom(entry) : Poly(0));
    if (by.terms.size() != 1 || by.mentions(entry) || rest.mentions(entry))
      return {};
    const auto &[monomial, coefficient] = *by.terms.begin();
    auto constant = rest.terms.find(monomial);
    if (constant != rest.terms.end())
      rest = rest - Poly(constant->second / coefficient) * by;
    if (!depends && base)
      continue;
    if (depends) {
      base = rest;
      scale = by;
      array.element = access.node;
      break;
    }
    base = rest;
  }
  if (!base)
    return {};
  Poly by = scale.value_or(Poly(1));
  std::vector<Layout> result = {{by, *base}};
  if (by.terms.begin()->second < 0) {
    result.push_back({Poly(0) - by, *base});
    for (const auto &[monomial, coefficient] : base->terms)
      if (coefficient == 1)
        result.push_back({Poly(0) - by, base->filter([&](const Poly::Monomial &m) { return m != monomial; })});
  }
  bool isFixed =
      model.stable(*base) && model.stable(by) && !model.dependsOn(*base, changed) && !model.dependsOn(by, changed);
  return isFixed ? result : std::vector<Layout>();
}

//===----------------------------------------------------------------------===//
// Every case
//===----------------------------------------------------------------------===//

/// After the statements, the list is that of the case with the new value in it.
bool Finder::isRight(const ListMachine &machine, const KeptList &list, const ListCase &c) const {
  int64_t after = std::min(c.count + 1, c.length);
  if (!list.count.empty()) {
    ListMachine::Value count = machine.of(list.count);
    if (count.kind != Kind::Integer || count.number != after)
      return false;
  }
  if (c.isUnordered)
    return true;
  auto holds = [&](const ListMachine::Value &v, Kind kind, int64_t entry) {
    return v.kind == kind && v.number == entry;
  };
  auto isEqual = [&](int64_t entry) { return entry >= c.better && entry < c.better + c.equal; };
  int64_t behind = c.better + c.equal; // where it comes among equal ones
  for (int64_t i = 0; i < c.length; ++i) {
    int64_t wanted = i < behind ? i : i == behind ? ListMachine::theNewOne : i - 1;
    const ListMachine::Value &value = machine.values[size_t(i)];
    if (i >= after) { // nothing was there
      if (value.kind != Kind::Unknown || machine.places[size_t(i)].kind != Kind::Unknown)
        return false;
      continue;
    }
    bool isOneOfEqual = isEqual(wanted) || wanted == ListMachine::theNewOne;
    bool sameValue = holds(value, Kind::Entry, wanted);
    if (!list.places && isOneOfEqual && value.kind == Kind::Entry)
      sameValue = isEqual(value.number) || value.number == ListMachine::theNewOne;
    if (!sameValue || (list.places && !holds(machine.places[size_t(i)], Kind::Place, wanted)))
      return false;
  }
  return true;
}

bool Finder::provesFor(ListMachine &machine, const Region &region, KeptList &list, int64_t length) const {
  std::vector<StmtRef> statements = region.statements();
  auto runs = [&](const ListCase &c) { return machine.run(statements, c) && isRight(machine, list, c); };
  auto unchanged = [&](const ListCase &c) {
    for (int64_t i = 0; i < c.count; ++i)
      if (machine.values[size_t(i)].kind != Kind::Entry || machine.values[size_t(i)].number != i)
        return false;
    return list.count.empty() || machine.of(list.count).number == c.count;
  };
  for (int64_t count = list.isCounted() ? 0 : length; count <= length; ++count) {
    std::vector<int64_t> iterations = {count};
    if (count == length && list.countsIterations)
      iterations = {length, length + 1, 1000003};
    for (int64_t iteration : iterations) {
      for (int64_t better = 0; better <= count; ++better)
        for (int64_t equal = 0; equal <= count - better; ++equal)
          if (!runs({length, count, better, equal, iteration, false}))
            return false;
      ListCase unordered{length, count, 0, 0, iteration, true};
      if (!runs(unordered))
        return false;
      list.ignoresUnordered &= unchanged(unordered);
    }
  }
  return true;
}

/// Lengths that constants in the statements may mean, the greatest first.
std::vector<int64_t> Finder::constantLengths(const Region &region) const {
  std::set<int64_t> found;
  for (const StmtRef &s : region.statements())
    walkExprs(*s, [&](const ExprRef &e) {
      if (auto value = e->type.isInt() ? constantValue(e) : std::nullopt)
        for (int64_t length : {*value, *value + 1})
          if (length >= 1 && length <= mostConstant)
            found.insert(length);
    });
  return {found.rbegin(), found.rend()};
}

std::string Finder::counterFromZero() const {
  auto counted = asCountedLoop(loop);
  return counted && counted->step == 1 && constantValue(counted->lower) == 0 ? counted->var : "";
}

bool Finder::provesAll(const Region &region, KeptList &list, const std::set<std::string> &changed) {
  ListMachine machine(model, list, changed, counterFromZero());
  // A first run says which integer from outside decides.
  ListCase first{2, list.isCounted() ? 1 : 2, 0, 0, 1, false};
  machine.run(region.statements(), first);
  if (machine.askedForCounter && list.count.empty() && !list.countsIterations) {
    list.countsIterations = true;
    return provesAll(region, list, changed);
  }
  auto finish = [&](const Poly &length) {
    list.length = length;
    list.value = machine.value;
    list.place = machine.place;
    return list.value && bool(list.place) == list.places.has_value();
  };
  int64_t longest = most; // of a local array that is known
  if (const Stmt *d = model.declaration(list.values.name); d && d->dims.size() == 1 && d->dims[0])
    longest = std::min(most, constantValue(d->dims[0]).value_or(most));
  if (machine.deciding) {
    for (int64_t offset : {0, 1, -1}) {
      machine.lengthOffset = offset;
      bool good = true;
      for (int64_t length = 1; good && length <= longest; ++length) {
        list.ignoresUnordered = length == 1 || list.ignoresUnordered;
        good = provesFor(machine, region, list, length);
      }
      if (good)
        return finish(*machine.deciding + Poly(offset));
    }
    return false;
  }
  for (int64_t length : constantLengths(region)) {
    list.ignoresUnordered = true;
    if (provesFor(machine, region, list, length) && !machine.deciding)
      return finish(Poly(length));
    machine.deciding.reset();
  }
  return false;
}

std::optional<KeptList> Finder::insertion(const Region &region, KeptList list) {
  if (!findArrays(region, list))
    return std::nullopt;
  // Where nothing follows in the iteration, "continue" only ends the statements.
  bool isLast = region.list == loop.body[0] && region.last == region.list->body.size();
  for (const StmtRef &s : region.statements())
    if (holdsKind(*s, {StmtKind::Return, StmtKind::Barrier, StmtKind::Opaque}) ||
        leavesIteration(*s, {StmtKind::Break}) || (leavesIteration(*s, {StmtKind::Continue}) && !isLast))
      return std::nullopt;
  std::set<std::string> changed = changedIn(region.statements(), true);
  std::vector<Layout> values = layouts(list.values, region, changed),
                      places = list.places ? layouts(*list.places, region, changed) : values;
  for (size_t i = 0; i < values.size() && i < places.size(); ++i)
    for (bool descending : {true, false}) {
      KeptList tried = list;
      tried.descending = descending;
      tried.values.scale = values[i].scale;
      tried.values.base = values[i].base;
      if (tried.places) {
        tried.places->scale = places[i].scale;
        tried.places->base = places[i].base;
      }
      if (!provesAll(region, tried, changed))
        continue;
      tried.list = region.list;
      tried.first = region.first;
      tried.last = region.last;
      return tried;
    }
  return std::nullopt;
}

std::vector<KeptList> Finder::listsOf(const std::string &array) {
  names = {array};
  KeptList list;
  std::optional<Region> region;
  for (size_t known = 0; known != names.size();) { // what else belongs to it may stand around it
    known = names.size();
    region = regionOf(loop.body[0]);
    list = {};
    list.values.name = array;
    if (!region || !findArrays(*region, list, &names))
      return {};
    if (list.places)
      names.insert(list.places->name);
    if (!list.count.empty())
      names.insert(list.count);
  }
  KeptList empty;
  empty.values.name = array;
  if (auto whole = insertion(*region, empty))
    return {*whole};
  // Several values, one after the other.
  std::vector<KeptList> result;
  for (size_t i = region->first; i < region->last;) {
    if (!mentionsAny(*region->list->body[i], true)) {
      ++i;
      continue;
    }
    std::optional<KeptList> part;
    size_t end = i + 1;
    for (; end <= region->last && !part; ++end)
      if (i != region->first || end != region->last)
        part = insertion({region->list, i, end}, empty);
    if (!part)
      return {};
    i = part->last;
    result.push_back(*part);
  }
  return result;
}

std::vector<KeptList> Finder::run() {
  std::vector<KeptList> result;
  if (loop.body.empty() || loop.body[0]->kind != StmtKind::Block)
    return result;
  std::set<std::string> read, written;
  for (const Access &access : model.accesses())
    if (insideOf(access, &loop) && access.space != Space::Shared && !access.atomic) {
      if (access.read)
        read.insert(access.array);
      if (access.write)
        written.insert(access.array);
    }
  for (const std::string &array : written) {
    if (!read.count(array))
      continue;
    names.clear();
    std::vector<KeptList> lists = listsOf(array);
    result.insert(result.end(), lists.begin(), lists.end());
  }
  return result;
}

std::vector<KeptList> optiml::findKeptLists(const KernelModel &model, Stmt &loop, int64_t most) {
  return Finder(model, loop, most).run();
}
