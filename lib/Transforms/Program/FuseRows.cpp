//===- FuseRows.cpp - kernels with a thread an element, a thread a row ----===//
//
// A kernel in which each thread works on a row decides which thread of a fused kernel owns what: element
// (o * rows + r) * inner + i of an array belongs to thread r. A row of a matrix has outer = 1 and inner = cols, a
// column has outer = rows and inner = 1, a channel of NCHW has both. A kernel with a thread an element is brought there
// by loops over o and i: its threads do not wait for each other, so that one thread may do what many did, one after the
// other.
//
// Where each thread has one element, the row is that element: x = row % width and y = row / width in a kernel that has
// an image's elements along two axes.
//
//===----------------------------------------------------------------------===//
#include "FuseKernels.h"
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/PolyTrees.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Canonicalize/GlobalIndex.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace optiml;

namespace {

/// An index that threads have in a per-element kernel.
struct Coordinate {
  ExprRef index;             ///< globalIdx.x, blockIdx.y, …
  std::string threads;       ///< how many there are, over the launch: "grid.x * block.x"; empty: one for each turn
  std::optional<Poly> bound; ///< everything that has effects stands under index < bound
};

/// Digits of an index, the greatest first: each has a variable and an extent.
struct Digit {
  ExprRef value;
  Poly extent;
};
using Digits = std::vector<Digit>;

Poly productOf(Digits::const_iterator begin, Digits::const_iterator end) {
  Poly product(1);
  for (; begin != end; ++begin)
    product = product * begin->extent;
  return product;
}

class RowMaker {
public:
  RowMaker(Kernel &part, const RowSpace &space, std::set<std::string> &taken)
      : part(part), space(space), taken(taken), rows(space.rows) {}

  llvm::Expected<BroughtPart> run() {
    if (llvm::Error e = findCoordinates())
      return std::move(e);
    row = var(space.name, Type::makeInt());
    const std::shared_ptr<Kernel> before = part.clone(); // the model's, while the part changes
    const KernelModel model(*before);
    if (llvm::Error e = space.ofElements ? shareElements(model) : shareDigits(model))
      return std::move(e);
    if (!turns.empty() && loops.size() > 1 && coordinates.size() > 1)
      return notApplicable("in which order its threads take turns is not looked at along several axes");
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
      s.expr = valueOf(model, *list, s.type);
      gone.insert(s.text);
    });
    walk(*part.body, [&](Stmt &s) {
      if (s.kind != StmtKind::Decl || !gone.count(s.text))
        ownExprs(s, [&](ExprRef &e) { e = lower(model, e); });
    });
    walk(*part.body, [&](Stmt &s) {
      if (s.kind != StmtKind::Decl || !gone.count(s.text)) {
        ownExprs(s, [&](ExprRef &top) {
          for (const std::string &name : namesIn(top))
            gone.erase(name);
        });
        for (const std::string &name : s.names)
          gone.erase(name);
      }
    });
    walk(*part.body, [&](Stmt &s) {
      std::erase_if(s.body, [&](const StmtRef &c) { return c->kind == StmtKind::Decl && gone.count(c->text); });
    });
    StmtRef work = part.body;
    for (const auto &[index, extent] : llvm::reverse(loops))
      work = block({countedFor(index->text, Type::makeInt(), intLit(0), polyExpr(model, extent), 1, work, NoUnroll)});
    ExprRef place = add(mul(axisBuiltin("blockIdx", 0), axisBuiltin("blockDim", 0)), axisBuiltin("threadIdx", 0));
    if (!guard)
      guard = lessThan(row, polyExpr(model, rows));
    part.body = block({declStmt(row->text, Type::makeInt(), place), ifStmt(guard, work)});
    BroughtPart brought{std::move(conditions), !turns.empty(), {}, rows};
    for (const auto &[index, extent] : loops)
      brought.loops.push_back(index->text);
    return brought;
  }

private:
  Kernel &part;
  const RowSpace &space;
  std::set<std::string> &taken;
  std::vector<Condition> conditions;
  std::set<std::string> turns; ///< indices from which on threads took turns
  std::vector<Coordinate> coordinates;
  std::map<std::string, Digits> digits;        ///< of coordinates, and of locals made of them
  std::vector<std::pair<ExprRef, Poly>> loops; ///< outermost first
  ExprRef row;
  ExprRef guard;            ///< under which a thread has one; null: their number says it
  Poly rows;                ///< how many there are
  std::optional<Poly> flat; ///< a sum of coordinates that is the row

  /// The indices that the kernel's threads have, and how many threads there are along each.
  llvm::Error findCoordinates() {
    if (hidesPlace(part))
      return notApplicable("text that is kept as it is mentions the thread's place");
    turns = endTurns(part);
    std::array<AxisUse, 3> uses = normalizeGlobalIndex(part, {0, 0, 0});
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
        coordinates.push_back({sample.at(name), threads, upperBoundOf(model, name, /*ofWrites=*/true)});
      };
      auto level = [&](const char *index, const char *turn, const std::string &extent) -> llvm::Error {
        if (count(index) && count(turn))
          return notApplicable("its threads' places matter beside their turns along {0}", suffix.substr(1));
        if (count(turn)) {
          add(turn + suffix, "");
          conditions.push_back({IntExpr::of(extent + " >= 1"), "a launch that the device accepts"});
        } else if (count(index)) {
          add(index + suffix, extent);
        } else {
          conditions.push_back({IntExpr::of(extent + " == 1"), "no thread does what another one does"});
        }
        return llvm::Error::success();
      };
      if (uses[axis].global || count("globalTurn")) {
        if (uses[axis].other)
          return notApplicable("its threads' places matter beside their turns along {0}", suffix.substr(1));
        if (llvm::Error e = level("globalIdx", "globalTurn", grid + " * " + blockSize))
          return e;
        continue;
      }
      if (llvm::Error e = level("blockIdx", "blockTurn", grid))
        return e;
      if (llvm::Error e = level("threadIdx", "threadTurn", blockSize))
        return e;
    }
    if (coordinates.empty())
      return notApplicable("all its threads do the same");
    // A launch that fails is seen by the program.
    const std::string most = std::to_string(part.maxThreads ? part.maxThreads : 1024);
    for (const std::string &limit : {"block.x * block.y * block.z <= " + most, std::string("block.z <= 64"),
                                     std::string("grid.y <= 65535"), std::string("grid.z <= 65535")})
      conditions.push_back({IntExpr::of(limit), "a launch that the device accepts"});
    return llvm::Error::success();
  }

  /// The kernel is launched with just the threads that the loops stand for, as far as they do anything.
  llvm::Error cover(const Coordinate &coordinate, const Poly &extent, const KernelModel &model) {
    auto text = planText(model, extent);
    if (!text)
      return notApplicable("'{0}' cannot be tested before the launch", extent.str());
    if (coordinate.bound && !(*coordinate.bound == extent))
      if (llvm::Error e = require(model, *coordinate.bound - extent, " == 0", "the rows have that many elements"))
        return e;
    if (coordinate.threads.empty())
      return coordinate.bound ? llvm::Error::success() : notApplicable("where its threads end is not seen");
    conditions.push_back({IntExpr::of(*text + (coordinate.bound ? " <= " : " == ") + coordinate.threads),
                          coordinate.bound ? "no element is left out" : "a thread for each element"});
    return llvm::Error::success();
  }

  /// How far apart elements are that differ by one along the coordinate, where the kernel's accesses agree with the
  /// rows.
  std::optional<Poly> strideOf(const Coordinate &coordinate, const KernelModel &model) const {
    for (const Access &access : model.accesses()) {
      if (access.space != Space::Global || access.subscripts.size() != 1)
        continue;
      auto factor = access.subscripts[0].coefficient(coordinate.index->text);
      if (factor && (*factor == space.inner || *factor == space.inner * space.rows))
        return factor;
    }
    return std::nullopt;
  }

  /// Finds the coordinate that the row is part of.
  llvm::Error shareDigits(const KernelModel &model) {
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
    if (!owner && coordinates.size() == 1) { // rows, or elements, are counted in another way
      owner = &coordinates.front();
      bool isRow = !(space.inner == Poly(1)) && strideOf(*owner, model) == space.inner;
      form = {!isRow, !isRow};
    }
    if (!owner) // a block for each row, say
      for (Coordinate &coordinate : coordinates)
        if (!owner && !coordinate.bound && strideOf(coordinate, model) == space.inner)
          owner = &coordinate;
    if (!owner)
      return notApplicable("which of its threads belong to a row is not seen");
    for (Coordinate &coordinate : coordinates)
      if (llvm::Error e =
              &coordinate == owner ? split(coordinate, form.first, form.second, model) : loopOver(coordinate, model))
        return e;
    return llvm::Error::success();
  }

  /// The coordinate is (o * rows + r) * inner + i, or less of that.
  llvm::Error split(Coordinate &coordinate, bool outer, bool inner, const KernelModel &model) {
    Digits &list = digits[coordinate.index->text];
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
    return cover(coordinate, suffix, model);
  }

  /// One of those that tell which element a thread has: how far apart elements are that differ by one.
  struct Stride {
    Coordinate *coordinate;
    Poly elements;
  };

  /// They, from the one whose neighbours lie side by side on, as some access has them. Empty: no access has them so.
  /// What is written says more than what is read.
  std::vector<Stride> stridesOfElement(const KernelModel &model) {
    if (coordinates.size() == 1)
      return {{&coordinates.front(), Poly(1)}};
    std::vector<std::string> indices;
    for (const Coordinate &coordinate : coordinates)
      indices.push_back(coordinate.index->text);
    std::vector<Access> accesses = model.accesses();
    std::stable_partition(accesses.begin(), accesses.end(), [](const Access &access) { return access.write; });
    for (const Access &access : accesses) {
      std::vector<Stride> sorted;
      for (const auto &[index, stride] : elementStrides(model, access, indices, space.rows))
        sorted.push_back(
            {&*llvm::find_if(coordinates, [&](const Coordinate &c) { return c.index->text == index; }), stride});
      if (sorted.empty())
        continue;
      const Stride &last = sorted.back();
      const bool areAll = sorted.size() == coordinates.size();
      if (areAll || (last.coordinate->bound && *last.coordinate->bound * last.elements == space.rows))
        return sorted;
    }
    return {};
  }

  /// Each thread has an element, and the coordinates tell which. What further ones count is done by one thread. Where
  /// the kernel leaves elements out, a border say, its conditions stay.
  llvm::Error shareElements(const KernelModel &model) {
    const std::vector<Stride> sorted = stridesOfElement(model);
    if (sorted.empty())
      return notApplicable("which element a thread has is not seen");
    if (!turns.empty() || llvm::any_of(sorted, [](const Stride &s) { return !s.coordinate->bound; }))
      return notApplicable("where its threads end is not seen");
    flat = Poly();
    bool leavesOut = false;
    ExprRef value;
    for (size_t i = 0; i < sorted.size(); ++i) {
      const auto &[coordinate, stride] = sorted[i];
      const bool isLast = i + 1 == sorted.size();
      const Poly bound = *coordinate->bound, extent = isLast ? bound : *quotientOf(sorted[i + 1].elements, stride);
      value = stride == Poly(1) ? row : binary("/", row, intExpr(model, stride), Type::makeInt());
      if (!isLast)
        value = binary("%", value, intExpr(model, extent), Type::makeInt());
      digits[coordinate->index->text] = {{value, extent}};
      *flat = *flat + stride * Poly::atom(coordinate->index->text);
      rows = stride * extent;
      for (const Poly &p : {extent, rows})
        if (llvm::Error e = requireExtent(model, p))
          return e;
      if (llvm::Error e = cover(*coordinate, bound, model))
        return e;
      leavesOut |= isLast && sorted.size() > 1 && !bound.constant() && bound.constantTerm() != 0;
      if (extent == bound)
        continue;
      leavesOut = true;
      coordinate->bound.reset(); // its condition stays
      const Poly more = extent - bound;
      if (more.constant().value_or(0) < 0)
        return notApplicable("its threads' elements overlap");
      if (!more.constant())
        if (llvm::Error e = require(model, more, " >= 0", "elements do not overlap"))
          return e;
    }
    // Other kernels' conditions on elements are not taken for this one: it has fewer of them.
    if (leavesOut)
      guard = lessThan(value, polyExpr(model, *sorted.back().coordinate->bound));
    for (Coordinate &coordinate : coordinates) {
      if (llvm::any_of(sorted, [&](const Stride &s) { return s.coordinate == &coordinate; }))
        continue;
      if (!coordinate.bound && !space.threads.count(coordinate.threads))
        return notApplicable("where its threads end is not seen");
      if (llvm::Error e = loopOver(coordinate, model))
        return e;
    }
    return llvm::Error::success();
  }

  /// Another coordinate: all of it is done by each owner of a row.
  llvm::Error loopOver(Coordinate &coordinate, const KernelModel &model) {
    const bool isOuter = space.inner == Poly(1) || strideOf(coordinate, model) == space.inner * space.rows;
    const auto named = space.threads.find(coordinate.threads);
    const Poly extent = coordinate.bound               ? *coordinate.bound
                        : named != space.threads.end() ? Poly::atom(named->second)
                        : isOuter                      ? space.outer
                                                       : space.inner;
    if (llvm::Error e = requireExtent(model, extent))
      return e;
    digits[coordinate.index->text] = {newLoop(isOuter ? "part" : "at", extent)};
    return cover(coordinate, extent, model);
  }

  llvm::Error require(const KernelModel &model, const Poly &p, const std::string &comparison, const std::string &why) {
    auto text = planText(model, p);
    if (!text)
      return notApplicable("'{0}' cannot be tested before the launch", p.str());
    conditions.push_back({IntExpr::of(*text + comparison), why});
    return llvm::Error::success();
  }

  /// Products and loop variables are of 32 bits; without elements a launch may be an error, which the program sees.
  llvm::Error requireExtent(const KernelModel &model, const Poly &extent) {
    if (auto constant = extent.constant(); constant && *constant >= 1 && *constant <= INT32_MAX)
      return llvm::Error::success();
    if (llvm::Error e = require(model, extent, " >= 1", "there are elements"))
      return e;
    return require(model, extent, " <= 2147483647", "indices of 32 bits");
  }

  Digit newLoop(const std::string &wish, const Poly &extent) {
    Digit digit{var(freshName(taken, wish), Type::makeInt()), extent};
    loops.emplace_back(digit.value, extent);
    return digit;
  }

  /// What is known of an expression: some neighbouring digits of a coordinate.
  std::optional<Digits> digitsOf(const KernelModel &model, const ExprRef &given) const {
    ExprRef e = withoutWideCasts(given);
    if (!e->type.isInt() || e->type.bytes < 4)
      return std::nullopt;
    if (flat && model.poly(e) == *flat)
      return Digits{{row, rows}};
    if (e->kind == ExprKind::Builtin || e->kind == ExprKind::Var) {
      auto it = digits.find(e->text);
      return it == digits.end() ? std::nullopt : std::optional(it->second);
    }
    if (e->kind != ExprKind::Binary || !llvm::is_contained({"/", "%", "-", ">>", "&"}, e->text))
      return std::nullopt;
    auto list = digitsOf(model, e->args[0]);
    if (!list)
      return std::nullopt;
    if (e->text == "-") { // i - i / cols * cols
      ExprRef other = withoutWideCasts(e->args[1]);
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
    // With powers of two: i >> 6, i & 63.
    Poly divisor = model.poly(e->args[1]);
    if (auto bits = divisor.constant(); e->text == ">>")
      divisor = bits && *bits >= 0 && *bits < 31 ? Poly(int64_t(1) << *bits) : Poly();
    else if (e->text == "&")
      divisor = bits && llvm::isPowerOf2_64(uint64_t(*bits) + 1) ? Poly(*bits + 1) : Poly();
    const bool isQuotient = e->text == "/" || e->text == ">>";
    for (auto at = list->begin() + 1; at < list->end(); ++at)
      if (productOf(at, list->end()) == divisor)
        return isQuotient ? Digits(list->begin(), at) : Digits(at, list->end());
    return std::nullopt;
  }

  ExprRef valueOf(const KernelModel &model, const Digits &list, const Type &type) const {
    ExprRef value;
    for (const Digit &digit : list)
      value = value ? add(mul(value, polyExpr(model, digit.extent)), digit.value) : digit.value;
    Type plain = type.withConst(false);
    return value->type.text == plain.text ? value : castTo(plain, value);
  }

  /// What a sum adds to the element's number, and that number; null: it is no such sum.
  ExprRef besideRow(const KernelModel &model, const ExprRef &e) const {
    if (!flat || !e->type.isInt() || e->type.bytes < 4 || !(isBinary(e, "+") || isBinary(e, "-")))
      return nullptr;
    const Poly rest = model.poly(e) - *flat;
    if (llvm::any_of(flat->atoms(),
                     [&](const std::string &atom) { return !isParameter(model, atom) && rest.mentions(atom); }))
      return nullptr;
    auto lowered = [&](const Poly &p) {
      const ExprRef other = polyExpr(model, p);
      return lower(model, e->type.bytes > 4 ? wideExpr(other) : other);
    };
    if (llvm::all_of(rest.terms, [](const auto &term) { return term.second < 0; }))
      return binary("-", row, lowered(Poly() - rest), e->type);
    return add(row, lowered(rest));
  }

  /// The expression with digits in place of quotients and remainders, and in place of indices: elements of different
  /// kernels are then spelled alike.
  ExprRef lower(const KernelModel &model, const ExprRef &e, bool inSubscript = false) const {
    if (auto list = digitsOf(model, e); list && (e->kind != ExprKind::Var || list->size() == 1 || inSubscript))
      return valueOf(model, *list, e->type);
    if (ExprRef beside = besideRow(model, e))
      return beside;
    if (e->args.empty())
      return e;
    auto copy = std::make_shared<Expr>(*e);
    for (size_t i = 0; i < copy->args.size(); ++i)
      copy->args[i] = lower(model, copy->args[i], copy->kind == ExprKind::Subscript && i == 1);
    return copy;
  }

  /// Takes out what the loops say: index < bound.
  void dropGuards(const KernelModel &model, Stmt &list) {
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
};

} // namespace

llvm::Expected<BroughtPart> optiml::bringToRows(Kernel &part, const RowSpace &space, std::set<std::string> &taken) {
  return RowMaker(part, space, taken).run();
}
