//===- FuseRows.cpp - kernels with a thread an element, a thread a row ----===//
//
// A kernel in which each thread works on a row decides which thread of a fused kernel owns what: element
// (o * rows + r) * inner + i of an array belongs to thread r. A row of a matrix has outer = 1 and inner = cols, a column
// has outer = rows and inner = 1, a channel of NCHW has both. A kernel with a thread an element is brought there by loops
// over o and i: its threads do not wait for each other, so that one thread may do what many did, one after the other.
//
//===----------------------------------------------------------------------===//
#include "FuseKernels.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// An index that threads have in a per-element kernel.
struct Coordinate {
  ExprRef index;             ///< globalIdx.x, blockIdx.y, …
  std::string threads;       ///< how many there are, over the launch: "grid.x * block.x"
  std::optional<Poly> bound; ///< everything that has effects stands under index < bound
  bool owned = false;        ///< holds the digit that is the row
};

/// Digits of an index, the greatest first: each has a variable and an extent.
struct Digit {
  ExprRef value;
  Poly extent;
};
using Digits = std::vector<Digit>;

class RowMaker {
public:
  RowMaker(Kernel &part, const RowSpace &space, std::set<std::string> &taken) : part(part), space(space), taken(taken) {}
  llvm::Expected<std::vector<Condition>> run();

private:
  Kernel &part;
  const RowSpace &space;
  std::set<std::string> &taken;
  std::vector<Condition> conditions;
  std::vector<Coordinate> coordinates;
  std::map<std::string, Digits> digits; ///< of coordinates, and of locals made of them
  std::vector<std::pair<ExprRef, Poly>> loops; ///< outermost first
  ExprRef row;

  llvm::Error findCoordinates();
  llvm::Error shareDigits(const KernelModel &model);
  llvm::Error split(Coordinate &coordinate, bool outer, bool inner, const KernelModel &model);
  llvm::Error loopOver(Coordinate &coordinate, const KernelModel &model);
  llvm::Error require(const KernelModel &model, const Poly &difference, const std::string &comparison, const std::string &why);
  llvm::Error requireExtent(const KernelModel &model, const Poly &extent);
  Digit newLoop(const std::string &wish, const Poly &extent);
  std::optional<Digits> digitsOf(const KernelModel &model, const ExprRef &e) const;
  ExprRef valueOf(const KernelModel &model, const Digits &list, const Type &type) const;
  ExprRef lower(const KernelModel &model, const ExprRef &e) const;
  void dropGuards(const KernelModel &model, Stmt &block);
};

ExprRef stripIntCasts(ExprRef e) {
  while (e->kind == ExprKind::Cast && e->type.isInt() && e->type.bytes >= 4 && e->args[0]->type.isInt() && e->args[0]->type.bytes >= 4)
    e = e->args[0];
  return e;
}

Poly productOf(Digits::const_iterator begin, Digits::const_iterator end) {
  Poly product(1);
  for (; begin != end; ++begin)
    product = product * begin->extent;
  return product;
}

/// Text that is kept as it is may ask for the thread's place.
bool asksForPlace(const std::string &text) {
  return llvm::any_of(std::initializer_list<const char *>{"Idx", "Dim"}, [&](const char *word) { return text.find(word) != std::string::npos; });
}

bool hidesPlace(const Kernel &kernel) {
  bool hides = false;
  walkExprs(*kernel.body, [&](const ExprRef &e) { hides |= e->kind == ExprKind::Opaque && asksForPlace(e->text); });
  walk(*kernel.body, [&](Stmt &s) { hides |= s.kind == StmtKind::Opaque && asksForPlace(s.text); });
  return hides;
}

} // namespace

/// The indices that the kernel's threads have, and how many threads there are along each.
llvm::Error RowMaker::findCoordinates() {
  std::array<AxisUse, 3> uses = normalizeGlobalIndex(part, {0, 0, 0});
  if (hidesPlace(part))
    return notApplicable("text that is kept as it is mentions the thread's place");
  std::set<std::string> used;
  std::map<std::string, ExprRef> sample;
  walkExprs(*part.body, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Builtin && used.insert(e->text).second)
      sample[e->text] = e;
  });
  KernelModel model(part);
  for (unsigned axis : {2u, 1u, 0u}) { // rows are along y where x has columns
    const std::string suffix = std::string(".") + char('x' + axis);
    auto count = [&](const char *base) { return used.count(base + suffix) != 0; };
    const std::string grid = "grid" + suffix, blockSize = "block" + suffix;
    if (count("blockDim") || count("gridDim") || (uses[axis].global && uses[axis].other))
      return notApplicable("its threads have other places than a global index along {0}", suffix.substr(1));
    auto add = [&](const std::string &name, const std::string &threads) {
      coordinates.push_back({sample.at(name), threads, upperBoundOf(model, name)});
    };
    auto lone = [&](const std::string &extent) {
      conditions.push_back({IntExpr::of(extent + " == 1"), "no thread does what another one does"});
    };
    if (uses[axis].global) {
      add("globalIdx" + suffix, grid + " * " + blockSize);
      continue;
    }
    if (count("blockIdx"))
      add("blockIdx" + suffix, grid);
    else
      lone(grid);
    if (count("threadIdx"))
      add("threadIdx" + suffix, blockSize);
    else
      lone(blockSize);
  }
  if (coordinates.empty())
    return notApplicable("all its threads do the same");
  return llvm::Error::success();
}

llvm::Error RowMaker::require(const KernelModel &model, const Poly &p, const std::string &comparison, const std::string &why) {
  auto text = planText(model, p);
  if (!text)
    return notApplicable("'{0}' cannot be tested before the launch", p.str());
  conditions.push_back({IntExpr::of(*text + comparison), why});
  return llvm::Error::success();
}

/// Products and loop variables are of 32 bits.
llvm::Error RowMaker::requireExtent(const KernelModel &model, const Poly &extent) {
  if (auto constant = extent.constant(); constant && *constant >= 0 && *constant <= INT32_MAX)
    return llvm::Error::success();
  if (llvm::Error e = require(model, extent, " >= 0", "a number of elements"))
    return e;
  return require(model, extent, " <= 2147483647", "indices of 32 bits");
}

Digit RowMaker::newLoop(const std::string &wish, const Poly &extent) {
  Digit digit{var(freshName(taken, wish), Type::makeInt()), extent};
  loops.emplace_back(digit.value, extent);
  return digit;
}

/// The coordinate is (o * rows + r) * inner + i, or less of that.
llvm::Error RowMaker::split(Coordinate &coordinate, bool outer, bool inner, const KernelModel &model) {
  coordinate.owned = true;
  Digits &list = digits[coordinate.index->text];
  Poly total(1);
  if (outer && !(space.outer == Poly(1)))
    list.push_back(newLoop("part", space.outer));
  list.push_back({row, space.rows});
  if (inner && !(space.inner == Poly(1)))
    list.push_back(newLoop("at", space.inner));
  Poly suffix(1);
  for (const Digit &digit : llvm::reverse(list)) { // each product before it is a factor of the next
    suffix = suffix * digit.extent;
    if (llvm::Error e = requireExtent(model, digit.extent))
      return e;
    if (llvm::Error e = requireExtent(model, suffix))
      return e;
  }
  auto text = planText(model, suffix);
  if (!text)
    return notApplicable("'{0}' cannot be tested before the launch", suffix.str());
  if (!coordinate.bound) {
    conditions.push_back({IntExpr::of(coordinate.threads + " == " + *text), "a thread for each element"});
    return llvm::Error::success();
  }
  if (!(*coordinate.bound == suffix))
    if (llvm::Error e = require(model, *coordinate.bound - suffix, " == 0", "the rows have that many elements"))
      return e;
  conditions.push_back({IntExpr::of(*text + " <= " + coordinate.threads), "no element is left out"});
  return llvm::Error::success();
}

/// Another coordinate: all of it is done by each owner of a row.
llvm::Error RowMaker::loopOver(Coordinate &coordinate, const KernelModel &model) {
  Poly extent = coordinate.bound ? *coordinate.bound : space.inner == Poly(1) ? space.outer : space.inner;
  if (llvm::Error e = requireExtent(model, extent))
    return e;
  auto text = planText(model, extent);
  if (!text)
    return notApplicable("'{0}' cannot be tested before the launch", extent.str());
  conditions.push_back({IntExpr::of(*text + (coordinate.bound ? " <= " : " == ") + coordinate.threads),
                        coordinate.bound ? "no element is left out" : "a thread for each element"});
  digits[coordinate.index->text] = {newLoop("at", extent)};
  return llvm::Error::success();
}

/// Finds the coordinate that the row is part of.
llvm::Error RowMaker::shareDigits(const KernelModel &model) {
  const std::pair<bool, bool> parts[] = {{false, false}, {false, true}, {true, false}, {true, true}};
  auto product = [&](std::pair<bool, bool> with) {
    return (with.first ? space.outer : Poly(1)) * space.rows * (with.second ? space.inner : Poly(1));
  };
  Coordinate *owner = nullptr;
  std::pair<bool, bool> form{false, false};
  for (const auto &with : parts)
    for (Coordinate &coordinate : coordinates)
      if (!owner && coordinate.bound && *coordinate.bound == product(with)) {
        owner = &coordinate;
        form = with;
      }
  if (!owner && coordinates.size() == 1) { // its elements are counted in another way
    owner = &coordinates.front();
    form = {true, true};
  }
  if (!owner) // a block for each row, say
    for (Coordinate &coordinate : coordinates)
      if (!owner && !coordinate.bound)
        owner = &coordinate;
  if (!owner)
    return notApplicable("which of its threads belong to a row is not seen");
  for (Coordinate &coordinate : coordinates)
    if (llvm::Error e = &coordinate == owner ? split(coordinate, form.first, form.second, model) : loopOver(coordinate, model))
      return e;
  return llvm::Error::success();
}

/// What is known of an expression: some neighbouring digits of a coordinate.
std::optional<Digits> RowMaker::digitsOf(const KernelModel &model, const ExprRef &given) const {
  ExprRef e = stripIntCasts(given);
  if (!e->type.isInt() || e->type.bytes < 4)
    return std::nullopt;
  if (e->kind == ExprKind::Builtin || e->kind == ExprKind::Var) {
    auto it = digits.find(e->text);
    return it == digits.end() ? std::nullopt : std::optional(it->second);
  }
  if (e->kind != ExprKind::Binary || (e->text != "/" && e->text != "%" && e->text != "-"))
    return std::nullopt;
  auto list = digitsOf(model, e->args[0]);
  if (!list)
    return std::nullopt;
  if (e->text == "-") { // i - i / cols * cols
    ExprRef other = stripIntCasts(e->args[1]);
    if (other->kind != ExprKind::Binary || other->text != "*")
      return std::nullopt;
    for (unsigned side = 0; side < 2; ++side)
      if (auto high = digitsOf(model, other->args[side]); high && high->size() < list->size() && !high->empty()) {
        bool prefix = true;
        for (size_t i = 0; i < high->size(); ++i)
          prefix &= (*high)[i].value == (*list)[i].value;
        auto rest = list->begin() + long(high->size());
        if (prefix && model.poly(other->args[1 - side]) == productOf(rest, list->end()))
          return Digits(rest, list->end());
      }
    return std::nullopt;
  }
  const Poly divisor = model.poly(e->args[1]);
  for (auto at = list->begin() + 1; at < list->end(); ++at)
    if (productOf(at, list->end()) == divisor)
      return e->text == "/" ? Digits(list->begin(), at) : Digits(at, list->end());
  return std::nullopt;
}

ExprRef RowMaker::valueOf(const KernelModel &model, const Digits &list, const Type &type) const {
  ExprRef value;
  for (const Digit &digit : list)
    value = value ? add(mul(value, polyExpr(model, digit.extent)), digit.value) : digit.value;
  Type plain = type;
  plain.isConst = false;
  return value->type.text == plain.text ? value : castTo(plain, value);
}

/// The expression with digits in place of quotients and remainders.
ExprRef RowMaker::lower(const KernelModel &model, const ExprRef &e) const {
  if (auto list = digitsOf(model, e); list && (e->kind != ExprKind::Var || list->size() == 1))
    return valueOf(model, *list, e->type);
  if (e->args.empty())
    return e;
  auto copy = std::make_shared<Expr>(*e);
  for (ExprRef &operand : copy->args)
    operand = lower(model, operand);
  return copy;
}

/// Takes out what the loops say: index < bound.
void RowMaker::dropGuards(const KernelModel &model, Stmt &list) {
  std::function<ExprRef(const ExprRef &)> left = [&](const ExprRef &e) -> ExprRef {
    if (e->kind == ExprKind::Binary && e->text == "&&")
      return logicalAnd(left(e->args[0]), left(e->args[1]));
    std::vector<Poly> facts;
    model.addFacts(e, true, facts);
    for (const Coordinate &c : coordinates)
      if (c.bound && facts.size() == 1 && facts[0] == *c.bound - Poly(1) - Poly::atom(c.index->text))
        return nullptr;
    return e;
  };
  for (size_t i = 0; i < list.body.size(); ++i) {
    StmtRef s = list.body[i];
    for (const StmtRef &child : s->body)
      if (child->kind == StmtKind::Block)
        dropGuards(model, *child);
    if (s->kind != StmtKind::If || s->body.size() != 1)
      continue;
    ExprRef rest = left(s->expr);
    if (rest) {
      s->expr = rest;
      continue;
    }
    std::vector<StmtRef> inner = s->body[0]->body;
    list.body.erase(list.body.begin() + long(i));
    list.body.insert(list.body.begin() + long(i), inner.begin(), inner.end());
    i += inner.size() - 1;
  }
}

llvm::Expected<std::vector<Condition>> RowMaker::run() {
  if (llvm::Error e = findCoordinates())
    return std::move(e);
  row = var(freshName(taken, space.name), Type::makeInt());
  const std::shared_ptr<Kernel> before = part.clone(); // the model's, while the part changes
  const KernelModel model(*before);
  if (llvm::Error e = shareDigits(model))
    return std::move(e);
  dropGuards(model, *part.body);
  // Locals that are digits, in the order of their declarations.
  std::set<std::string> gone;
  walk(*part.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Decl || !s.expr || !s.dims.empty() || !s.type.isInt() || !model.singleAssignment(s.text))
      return;
    auto list = digitsOf(model, s.expr);
    if (!list || s.type.bytes < 4)
      return;
    digits[s.text] = *list;
    if (list->size() == 1 && !opaqueMentions(*part.body, {s.text}))
      gone.insert(s.text);
  });
  walk(*part.body, [&](Stmt &s) {
    std::erase_if(s.body, [&](const StmtRef &c) { return c->kind == StmtKind::Decl && gone.count(c->text); });
  });
  walk(*part.body, [&](Stmt &s) { ownExprs(s, [&](ExprRef &e) { e = lower(model, e); }); });
  StmtRef work = part.body;
  for (const auto &[index, extent] : llvm::reverse(loops))
    work = block({countedFor(index->text, Type::makeInt(), intLit(0), polyExpr(model, extent), 1, work, NoUnroll)});
  ExprRef place = add(mul(axisBuiltin("blockIdx", 0), axisBuiltin("blockDim", 0)), axisBuiltin("threadIdx", 0));
  part.body = block({declStmt(row->text, Type::makeInt(), place), ifStmt(lessThan(row, polyExpr(model, space.rows)), work)});
  return std::move(conditions);
}

std::vector<RowSpace> optiml::rowSpaces(const Kernel &kernel) {
  std::shared_ptr<Kernel> part = kernel.clone();
  std::array<AxisUse, 3> uses = normalizeGlobalIndex(*part, {0, 0, 0});
  if (!uses[0].global || llvm::any_of(uses, [](const AxisUse &use) { return use.other; }) || uses[1].global || uses[2].global)
    return {};
  KernelModel model(*part);
  const Poly thread = Poly::atom("globalIdx.x");
  auto rows = upperBoundOf(model, "globalIdx.x");
  if (!rows || rows->terms.size() != 1)
    return {};
  std::string name = "row";
  walk(*part->body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && model.singleAssignment(s.text) == &s && s.type.isInt() && model.poly(s.expr) == thread)
      name = s.text;
  });
  std::vector<RowSpace> found;
  for (const Access &access : model.accesses()) {
    auto dims = access.space == Space::Global && access.subscripts.size() == 1 ? delinearize(model, access.subscripts[0]) : std::nullopt;
    if (!dims)
      continue;
    auto asPoly = [](const Poly::Monomial &monomial) {
      Poly product(1);
      for (const std::string &atom : monomial)
        product = product * Poly::atom(atom);
      return product;
    };
    for (const Dimension &own : *dims) {
      if (!(own.value == thread))
        continue;
      RowSpace space{name, *rows, asPoly(own.stride), Poly(1)};
      for (const Dimension &above : *dims)
        if (asPoly(above.stride) == space.inner * space.rows)
          for (const std::string &atom : above.value.atoms())
            if (auto loop = model.loopOf(atom); loop && above.value == Poly::atom(atom))
              space.outer = model.poly(loop->upper);
      bool known = llvm::any_of(found, [&](const RowSpace &s) { return s.inner == space.inner && s.outer == space.outer; });
      if (!known && !(space.inner * space.outer == Poly(1)))
        found.push_back(space);
    }
  }
  return found;
}

llvm::Expected<std::vector<Condition>> optiml::bringToRows(Kernel &part, const RowSpace &space, std::set<std::string> &taken) {
  return RowMaker(part, space, taken).run();
}
