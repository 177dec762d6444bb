//===- SelectElements.cpp - private arrays in registers -------------------===//
//
// select-elements[kernel:M]: a thread's own array moves to registers. Registers have no addresses: an element whose
// place is only known at run time makes the compiler put the whole array into local memory, which is off the chip. Here
// such an element is chosen among all that it may be. Loops over the array's places are unrolled.
//
// Example:
//   float M[4][4];                            float M[4][4];
//   …                                         …
//   for (int j = 0; j < 4; ++j) {             #pragma unroll
//     float t = M[pivot][j];                  for (int j = 0; j < 4; ++j) {
//     M[pivot][j] = M[0][j];                    float chosen = M[0][j];
//     M[0][j] = t;                              #pragma unroll
//   }                                           for (int at = 0; at < 4; ++at)
//                                                 if (pivot == at)
//                                                   chosen = M[at][j];
//                                               float t = chosen;
//                                               #pragma unroll
//                                               for (int at1 = 0; at1 < 4; ++at1)
//                                                 if (pivot == at1)
//                                                   M[at1][j] = M[0][j];
//                                               M[0][j] = t;
//                                             }
//
// An index such as `kind * 8 + q`, of which only `kind` is unknown, is two of an array with two dimensions.
//
// A loop whose bounds differ between the iterations of a loop around it gets constant bounds, and a test. So does one
// that goes from place to place until something stops it, as that of an insertion: `while (k > 0 && M[k - 1] > v) {
// M[k] = M[k - 1]; --k; }`.
//
// Legal: always. An index that is no place of the array has no meaning in the source.
//
// Refuses: arrays of more than 256 numbers, or of more than 32 places along an index that is only known at run time. It
// also refuses arrays whose address is taken, or that are passed on or mentioned by text that is kept verbatim; and
// elements that are changed within larger expressions. No more than 16,384 statements are unrolled.
//
//===----------------------------------------------------------------------===//
#include "PlaceDigits.h"
#include "SteppedPlaces.h"
#include "Transforms.h"
#include "optiml/Analysis/KernelState.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "optiml/Transforms/Transform.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {
constexpr int64_t mostSelected = 256, mostChoices = 32;
constexpr unsigned mostStatements = 16384;

using Values = std::map<std::string, int64_t>; ///< of loops' variables

/// The loops over an array's places, and which indices are constants once these are unrolled.
class Places {
public:
  Places(const Kernel &kernel, const std::string &array)
      : model(kernel, {0, 0, 0}), array(array), loops(countedLoops(kernel)) {
    walkExprs(*kernel.body, [&](const ExprRef &e) {
      if (isElement(e))
        for (const ExprRef &index : indicesOf(e))
          if (isOfCounters(index))
            need(index);
    });
  }

  bool isElement(const ExprRef &e) const { return e->kind == ExprKind::Subscript && rootName(e) == array; }
  /// The values of a loop's variable over all iterations of the loops around it.
  struct Range {
    int64_t lower = INT64_MAX, upper = INT64_MIN;
    bool varies = false; ///< with the loops around
  };
  std::map<const Stmt *, Range> unrolled; ///< what is not in it stays a loop

  /// Goes through all iterations. False: there are too many.
  bool count(Stmt &s) {
    Values values;
    if (!visit(s, values))
      return false;
    // A loop stays one where an iteration of those around it says nothing of its bounds.
    for (const auto &[loop, variable] : unclear) {
      unrolled.erase(loop);
      known.erase(variable);
    }
    return true;
  }
  bool isKnown(const ExprRef &index) const {
    Values some;
    for (const std::string &name : known)
      some[name] = 1;
    return valueOf(index, some).has_value();
  }
  void addKnown(const std::string &name) { known.insert(name); }

private:
  /// Arithmetic on the variables of counted loops.
  bool isOfCounters(const ExprRef &e) const {
    if (e->kind == ExprKind::Var) {
      if (model.loopOf(e->text))
        return true;
      const Stmt *declaration = model.singleAssignment(e->text);
      return declaration && isOfCounters(declaration->expr);
    }
    bool isArithmetic = e->kind == ExprKind::IntLit || e->kind == ExprKind::Binary || e->kind == ExprKind::Cast;
    return isArithmetic && llvm::all_of(e->args, [&](const ExprRef &arg) { return isOfCounters(arg); });
  }

  /// The variables that decide about `e`, and about the bounds of their loops.
  void need(const ExprRef &e) {
    for (const std::string &name : namesIn(e)) {
      if (!needed.insert(name).second)
        continue;
      const Stmt *declaration = model.loopOf(name) ? nullptr : model.singleAssignment(name);
      if (declaration)
        need(declaration->expr);
      for (const auto &[path, loop] : loops)
        if (auto counted = asCountedLoop(*loop); counted->var == name) {
          need(counted->lower);
          need(counted->upper);
        }
    }
  }

  std::optional<int64_t> valueOf(const ExprRef &e, const Values &values) const {
    auto value = exactValueOf(e, values);
    const unsigned bits = 8 * e->type.bytes - (e->type.isSigned ? 1 : 0);
    const bool fits = value && (e->type.isSigned || *value >= 0) &&
                      (bits >= 63 || (*value < int64_t(1) << bits && *value >= -(int64_t(1) << bits)));
    return fits ? value : std::nullopt;
  }

  /// By the rules of integers, whatever the type.
  std::optional<int64_t> exactValueOf(const ExprRef &e, const Values &values) const {
    if (auto constant = constantValue(e))
      return constant;
    if (!e->type.isInt())
      return std::nullopt;
    if (e->kind == ExprKind::Var) {
      if (auto at = values.find(e->text); at != values.end())
        return at->second;
      const Stmt *declaration = model.loopOf(e->text) ? nullptr : model.singleAssignment(e->text);
      return declaration ? valueOf(declaration->expr, values) : std::nullopt;
    }
    if (e->kind == ExprKind::Cast)
      return valueOf(e->args[0], values);
    if (e->kind != ExprKind::Binary)
      return std::nullopt;
    auto a = valueOf(e->args[0], values), b = valueOf(e->args[1], values);
    if (!a || !b)
      return std::nullopt;
    return constantValue(binary(e->text, intLit(*a), intLit(*b)));
  }

  bool visit(Stmt &s, Values &values) {
    if (++statements > mostStatements)
      return false;
    auto loop = asCountedLoop(s);
    auto lower = loop && needed.count(loop->var) ? valueOf(loop->lower, values) : std::nullopt;
    auto upper = lower ? valueOf(loop->upper, values) : std::nullopt;
    const bool isConstant = upper && constantValue(loop->lower) && constantValue(loop->upper);
    if (loop && !upper)
      unclear.emplace(&s, loop->var);
    if (!upper || (!isConstant && loop->step != 1))
      return llvm::all_of(s.body, [&](const StmtRef &child) { return visit(*child, values); });
    Range &range = unrolled[&s];
    range = {std::min(range.lower, *lower), std::max(range.upper, *upper), !isConstant};
    known.insert(loop->var);
    for (int64_t i = *lower; i < *upper; i += loop->step) {
      values[loop->var] = i;
      if (!visit(*s.body[0], values))
        return false;
    }
    values.erase(loop->var);
    return true;
  }

  KernelModel model;
  std::string array;
  std::vector<std::pair<std::string, Stmt *>> loops;
  std::set<std::string> needed, known;
  std::map<const Stmt *, std::string> unclear;
  unsigned statements = 0;
};

/// Rewrites the accesses of one array.
class Selection {
public:
  Selection(Kernel &kernel, const Stmt &declaration, Places &places)
      : kernel(kernel), array(declaration.text), places(places), taken(allNames(kernel)) {
    for (const ExprRef &extent : declaration.dims)
      extents.push_back(*constantValue(extent));
  }

  /// An access has a place that is only known at run time.
  bool hasOpenAccess() const {
    return anyExpr(*kernel.body, [&](const ExprRef &e) { return isOpen(e); });
  }

  llvm::Error check() const {
    unsigned line = 0, wide = 0, within = 0;
    walk(*kernel.body, [&](Stmt &s) {
      ownExprs(s, [&](ExprRef &own) {
        walk(own, [&](const ExprRef &e) {
          if (!isOpen(e))
            return;
          std::vector<ExprRef> indices = indicesOf(e);
          for (size_t i = 0; i < indices.size(); ++i) {
            if (!places.isKnown(indices[i]) && extents[i] > mostChoices)
              wide = std::max(1u, e->line);
            if (!onlyComputes(indices[i]))
              line = std::max(1u, e->line);
          }
        });
        walk(own, [&](const ExprRef &e) {
          const bool isWhole = e == own && s.kind == StmtKind::Expr && (e->args.size() < 2 || !hasEffects(e->args[1]));
          if (isChange(e) && isOpen(e->args[0]) && !isWhole)
            within = std::max(1u, e->line);
        });
      });
    });
    if (wide)
      return notApplicable("line {0}: there are more than {1} elements to choose from", wide, mostChoices);
    if (line || within)
      return notApplicable("line {0} changes something within a larger expression", std::max(line, within));
    return llvm::Error::success();
  }

  void run() {
    unroll(*kernel.body);
    forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
      std::vector<StmtRef> result;
      for (const StmtRef &s : list) {
        loadChosen(*s, result);
        if (s->kind == StmtKind::Expr && isChange(s->expr) && isOpen(s->expr->args[0]))
          storeChosen(*s, result);
        else
          result.push_back(s);
      }
      list = std::move(result);
    });
    rewriteExprs(*kernel.body, [&](const ExprRef &e) { return isOpen(e) ? chosen(e) : nullptr; });
  }

private:
  bool isOpen(const ExprRef &e) const {
    if (!places.isElement(e))
      return false;
    std::vector<ExprRef> indices = indicesOf(e);
    return indices.size() == extents.size() &&
           !llvm::all_of(indices, [&](const ExprRef &index) { return places.isKnown(index); });
  }

  ExprRef element(const std::vector<ExprRef> &indices, const ExprRef &like) const {
    ExprRef e = subscriptRoot(like);
    for (const ExprRef &index : indices)
      e = subscript(e, index, like->type);
    return e;
  }

  /// The element at the first open index, among those with constants in its place.
  ExprRef chosen(const ExprRef &e) const {
    std::vector<ExprRef> indices = indicesOf(e);
    size_t open = 0;
    while (open < indices.size() && places.isKnown(indices[open]))
      ++open;
    if (open == indices.size())
      return e;
    const ExprRef index = indices[open];
    auto at = [&](int64_t place) {
      indices[open] = intLit(place);
      return chosen(element(indices, e));
    };
    ExprRef result = at(extents[open] - 1);
    for (int64_t place = extents[open] - 1; place-- > 0;)
      result = conditional(binary("==", index, intLit(place), Type::makeBool()), at(place), result);
    return result;
  }

  /// The places that the open indices of an element may be: loops over them, which run what stands under `test`.
  struct Candidates {
    ExprRef element, test;
    std::vector<std::pair<std::string, int64_t>> loops;
    StmtRef around(StmtRef s) const {
      s = ifStmt(test, block({s}));
      for (const auto &[name, extent] : llvm::reverse(loops))
        s = countedFor(name, Type::makeInt(), intLit(0), intLit(extent), 1, block({s}), FullUnroll);
      return s;
    }
  };
  Candidates candidates(const ExprRef &e, unsigned line, std::vector<StmtRef> &into) {
    Candidates result;
    std::vector<ExprRef> indices = indicesOf(e);
    for (size_t i = 0; i < indices.size(); ++i) {
      if (places.isKnown(indices[i]))
        continue;
      const ExprRef index = once("place", indices[i], indices[i]->type, line, into);
      indices[i] = var(freshName(taken, "at"), Type::makeInt());
      places.addKnown(indices[i]->text);
      result.loops.push_back({indices[i]->text, extents[i]});
      result.test = logicalAnd(result.test, binary("==", index, indices[i], Type::makeBool()));
    }
    result.element = element(indices, e);
    return result;
  }

  /// A variable with the value of `e`, which may be `e`.
  ExprRef once(const char *wish, const ExprRef &e, const Type &type, unsigned line, std::vector<StmtRef> &into) {
    if (e->kind == ExprKind::Var || e->kind == ExprKind::IntLit || e->kind == ExprKind::FloatLit)
      return e;
    ExprRef held = var(freshName(taken, wish), type.unqualified());
    into.push_back(atLine(line, declStmt(held->text, held->type, e)));
    return held;
  }

  /// Asking for the element's place may fail where the source does not ask.
  static bool mayFault(const ExprRef &element) {
    return llvm::any_of(indicesOf(element), [](const ExprRef &index) {
      return anyNode(index, [](const ExprRef &e) { return isLoad(e) || isIntDivision(e); });
    });
  }

  /// What a statement reads of open elements is chosen before it. Not in a loop's head, which runs again, and not where
  /// the statement changes something on its way.
  void loadChosen(Stmt &s, std::vector<StmtRef> &into) {
    if ((s.kind != StmtKind::Expr && s.kind != StmtKind::Decl && s.kind != StmtKind::If) || !s.expr)
      return;
    const ExprRef own = s.kind == StmtKind::Expr && isChange(s.expr) ? s.expr : nullptr;
    if (anyNode(s.expr, [&](const ExprRef &e) {
          return !e->pure || (mayChange(e) && e != own) || (isOpen(e) && mayFault(e) && !isCertain(s.expr, e));
        }))
      return;
    const ExprRef target = own && isOpen(own->args[0]) ? own->args[0] : nullptr;
    std::vector<std::pair<ExprRef, ExprRef>> found; // what is read, and the variable for it
    auto held = [&](const ExprRef &e) -> ExprRef {
      if (!isOpen(e))
        return nullptr;
      for (const auto &[read, variable] : found)
        if (equal(read, e))
          return variable;
      ExprRef variable = var(freshName(taken, "chosen"), e->type.unqualified());
      found.push_back({e, variable});
      std::vector<StmtRef> made;
      Candidates all = candidates(e, s.line, made);
      std::map<std::string, ExprRef> first;
      for (const auto &[name, extent] : all.loops)
        first[name] = intLit(0);
      made.push_back(atLine(s.line, declStmt(variable->text, variable->type, substitute(all.element, first))));
      made.push_back(all.around(atLine(s.line, exprStmt(assign("=", variable, all.element)))));
      into.insert(into.end(), made.begin(), made.end());
      return variable;
    };
    if (!target) {
      s.expr = rewrite(s.expr, held);
      return;
    }
    auto changed = std::make_shared<Expr>(*s.expr);
    if (changed->args.size() > 1)
      changed->args[1] = rewrite(changed->args[1], held);
    s.expr = changed;
  }

  /// M[p][j] = x becomes a loop over the places that p may be.
  void storeChosen(Stmt &s, std::vector<StmtRef> &into) {
    auto changed = std::make_shared<Expr>(*s.expr);
    const ExprRef target = changed->args[0];
    Candidates all = candidates(target, s.line, into);
    changed->args[0] = all.element;
    if (changed->args.size() > 1) {
      const Type &type = changed->text == "=" ? target->type : changed->args[1]->type;
      changed->args[1] = once("value", changed->args[1], type, s.line, into);
    }
    into.push_back(all.around(atLine(s.line, exprStmt(changed))));
  }

  void unroll(Stmt &s) {
    for (const StmtRef &child : s.body)
      unroll(*child);
    auto found = places.unrolled.find(&s);
    if (found == places.unrolled.end())
      return;
    const Places::Range &range = found->second;
    s.unroll = FullUnroll;
    if (!range.varies)
      return;
    auto loop = asCountedLoop(s);
    const ExprRef counter = var(loop->var, loop->type);
    ExprRef test;
    if (!constantValue(loop->lower))
      test = binary(">=", counter, loop->lower, Type::makeBool());
    if (!constantValue(loop->upper))
      test = logicalAnd(test, lessThan(counter, loop->upper));
    StmtRef whole = countedFor(loop->var, loop->type, intLit(range.lower), intLit(std::max(range.lower, range.upper)),
                               1, block({ifStmt(test, s.body[0])}), FullUnroll);
    whole->line = s.line;
    s = *whole;
  }

  Kernel &kernel;
  std::string array;
  Places &places;
  std::vector<int64_t> extents;
  std::set<std::string> taken;
};

class SelectElements : public Transform {
public:
  llvm::StringRef name() const override { return "select-elements"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    walk(*state.tree->body, [&](Stmt &s) {
      if (s.kind == StmtKind::Decl && !s.dims.empty() && !s.isShared)
        offer(result, state, ":" + s.text, {{}});
    });
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &) const override {
    llvm::StringRef array = site;
    if (!array.consume_front(":"))
      return notApplicable("no array is named");
    auto kernel = state.tree->clone();
    Stmt *declaration = findDeclaration(*kernel->body, array.str());
    if (!declaration || declaration->isShared || declaration->dims.empty())
      return notApplicable("the kernel has no private array '{0}'", array);
    if (llvm::Error e = checkArray(*kernel, *declaration))
      return std::move(e);
    splitPlaces(*kernel, *declaration);
    visitEveryPlace(*kernel, *declaration);
    Places places(*kernel, array.str());
    if (!places.count(*kernel->body))
      return notApplicable("more than {0} statements would be unrolled", mostStatements);
    Selection selection(*kernel, *declaration, places);
    if (!selection.hasOpenAccess() &&
        llvm::all_of(places.unrolled, [](const auto &loop) { return loop.first->unroll == FullUnroll; }))
      return notApplicable("the places of '{0}' are constants already", array);
    if (llvm::Error e = selection.check())
      return std::move(e);
    selection.run();
    return state.withTree(kernel);
  }

private:
  /// Numbers, not too many, and used as an array alone.
  static llvm::Error checkArray(const Kernel &kernel, const Stmt &declaration) {
    const std::string &array = declaration.text;
    int64_t elements = 1;
    for (const ExprRef &extent : declaration.dims) {
      auto constant = extent ? constantValue(extent) : std::nullopt;
      if (!constant || *constant < 1 || *constant > mostSelected)
        return notApplicable("'{0}' is too large for registers", array);
      elements *= *constant;
      if (elements > mostSelected)
        return notApplicable("'{0}' is too large for registers", array);
    }
    if (!(declaration.type.isInt() || declaration.type.isFloat()) || declaration.type.isVolatile)
      return notApplicable("'{0}' does not hold numbers", array);
    unsigned uses = 0, elementsUsed = 0, addresses = 0;
    walkExprs(*kernel.body, [&](const ExprRef &e) {
      uses += isVar(e, array) || e->names.count(array);
      if (e->kind == ExprKind::Subscript && rootName(e) == array)
        elementsUsed += indicesOf(e).size() == declaration.dims.size();
      addresses += isUnary(e, "&") && rootName(e->args[0]) == array;
    });
    bool isText = anyStmt(*kernel.body, [&](const Stmt &s) { return s.names.count(array) != 0; });
    if (uses != elementsUsed || addresses || isText)
      return notApplicable("'{0}' is used as a pointer", array);
    return llvm::Error::success();
  }
};
} // namespace

DEFINE_TRANSFORM(SelectElements)
