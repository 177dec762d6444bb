//===- Common.cpp - what several transforms need --------------------------===//
#include "Common.h"
#include "Distribute.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

ExprRef optiml::axisBuiltin(const char *base, unsigned axis) { return builtin(std::string(base) + "." + char('x' + axis)); }

ExprRef optiml::globalIndexExpr(unsigned axis, int64_t extent) {
  return add(mul(axisBuiltin("blockIdx", axis), intLit(extent)), axisBuiltin("threadIdx", axis));
}

//===----------------------------------------------------------------------===//
// The global index
//===----------------------------------------------------------------------===//

/// Flattens a sum into its terms.
static void sumTerms(const ExprRef &e, std::vector<ExprRef> &terms) {
  if (e->kind == ExprKind::Binary && e->text == "+" && e->type.isInt()) {
    sumTerms(e->args[0], terms);
    sumTerms(e->args[1], terms);
    return;
  }
  terms.push_back(e);
}

static ExprRef stripCasts(ExprRef e) {
  while (e->kind == ExprKind::Cast && e->type.isInt() && e->type.bytes >= 4)
    e = e->args[0];
  return e;
}

/// `e` as a value of integer type `type`: builtin indices are unsigned, and i - 1 < 0 holds for signed ones only.
static ExprRef asInteger(const Type &type, const ExprRef &e) {
  if (!type.isSigned && type.bytes == 4)
    return e;
  auto cast = std::make_shared<Expr>();
  cast->kind = ExprKind::Cast;
  cast->type = type;
  cast->text = type.text;
  cast->line = e->line;
  cast->args = {e};
  return cast;
}

/// blockIdx.a * blockDim.a (or the pinned extent): the axis, or -1.
static int blockOffsetAxis(const ExprRef &term, const std::array<int64_t, 3> &block) {
  ExprRef e = stripCasts(term);
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string index = std::string("blockIdx.") + char('x' + axis), extent = std::string("blockDim.") + char('x' + axis);
    if (e->kind == ExprKind::Builtin && e->text == index && block[axis] == 1)
      return int(axis);
    if (e->kind != ExprKind::Binary || e->text != "*")
      continue;
    for (unsigned side = 0; side < 2; ++side) {
      ExprRef a = stripCasts(e->args[side]), b = stripCasts(e->args[1 - side]);
      bool isIndex = a->kind == ExprKind::Builtin && a->text == index;
      auto constant = constantValue(b);
      bool isExtent = (b->kind == ExprKind::Builtin && b->text == extent) ||
                      (constant && block[axis] && *constant == block[axis]);
      if (isIndex && isExtent)
        return int(axis);
    }
  }
  return -1;
}

/// Replaces locals that only rename an index (int tx = threadIdx.x;) by the index itself.
static void propagateIndexCopies(Kernel &kernel) {
  KernelModel model(kernel);
  std::map<std::string, ExprRef> copies;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && model.singleAssignment(s.text) && s.type.isInt() && s.type.bytes >= 4 &&
        stripCasts(s.expr)->kind == ExprKind::Builtin)
      copies[s.text] = asInteger(s.type, stripCasts(s.expr));
  });
  std::set<std::string> names;
  for (const auto &[name, e] : copies)
    names.insert(name);
  if (copies.empty() || opaqueMentions(*kernel.body, names))
    return;
  substitute(*kernel.body, copies);
  walk(*kernel.body, [&](Stmt &s) {
    std::erase_if(s.body, [&](const StmtRef &c) { return c->kind == StmtKind::Decl && copies.count(c->text); });
  });
}

void optiml::inlinePointerLocals(Kernel &kernel) {
  KernelModel model(kernel);
  std::map<std::string, ExprRef> pointers;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Decl || !s.type.isPointer() || !s.dims.empty() || model.singleAssignment(s.text) != &s || !s.expr ||
        !model.stable(s.expr))
      return;
    bool plain = true; // neither memory nor effects
    walk(s.expr, [&](const ExprRef &e) {
      bool arithmetic = e->kind == ExprKind::Var || e->kind == ExprKind::Builtin || e->kind == ExprKind::IntLit ||
                        e->kind == ExprKind::Binary || e->kind == ExprKind::Cast;
      plain &= arithmetic && (e->kind != ExprKind::Cast || e->type.isInt());
    });
    if (plain && s.expr->type.isPointer() && s.expr->type.pointee && s.type.pointee &&
        s.expr->type.pointee->text == s.type.pointee->text)
      pointers[s.text] = substitute(s.expr, pointers);
  });
  std::set<std::string> names;
  for (const auto &[name, e] : pointers)
    names.insert(name);
  if (pointers.empty() || opaqueMentions(*kernel.body, names))
    return;
  substitute(*kernel.body, pointers);
  forEachList(*kernel.body, [&](std::vector<StmtRef> &list) {
    std::erase_if(list, [&](const StmtRef &c) { return c->kind == StmtKind::Decl && pointers.count(c->text); });
  });
}

/// The builtins of one axis that the kernel uses; all of them when text that is kept verbatim mentions any.
static std::set<std::string> builtinsOf(const Kernel &kernel, unsigned axis) {
  std::set<std::string> used;
  bool opaque = false;
  static const char *const bases[] = {"threadIdx", "blockIdx", "blockDim", "gridDim"};
  auto inText = [&](const std::string &text) {
    return std::any_of(std::begin(bases), std::end(bases), [&](const char *base) { return text.find(base) != std::string::npos; });
  };
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (e->kind == ExprKind::Builtin && e->text.back() == char('x' + axis))
      used.insert(e->text.substr(0, e->text.find('.')));
    opaque |= e->kind == ExprKind::Opaque && inText(e->text);
  });
  walk(*kernel.body, [&](Stmt &s) { opaque |= s.kind == StmtKind::Opaque && inText(s.text); });
  if (opaque)
    used.insert(std::begin(bases), std::end(bases));
  return used;
}

void optiml::adoptPlainIndices(KernelState &state, Kernel &kernel) {
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string suffix(1, char('x' + axis));
    std::set<std::string> used = builtinsOf(kernel, axis);
    bool blocks = used == std::set<std::string>{"blockIdx"} && (state.hints.block[axis] == 1 || !state.hints.block[0]);
    bool threads = used == std::set<std::string>{"threadIdx"} && state.hints.grid[axis] == 1;
    if (!blocks && !threads)
      continue;
    std::string plain = (blocks ? "blockIdx." : "threadIdx.") + suffix;
    ExprRef first = mul(axisBuiltin("blockIdx", axis), axisBuiltin("blockDim", axis));
    substitute(*kernel.body, {{plain, add(first, axisBuiltin("threadIdx", axis))}});
    state.require((blocks ? "block." : "grid.") + suffix + " == 1", plain + " is taken for the global index");
  }
}

std::array<AxisUse, 3> optiml::normalizeGlobalIndex(Kernel &kernel, const std::array<int64_t, 3> &block) {
  propagateIndexCopies(kernel);
  auto combine = [&](const ExprRef &e) -> ExprRef {
    if (e->kind == ExprKind::Builtin && e->text.rfind("blockIdx.", 0) == 0)
      return nullptr;
    if (e->kind != ExprKind::Binary || e->text != "+")
      return nullptr;
    std::vector<ExprRef> terms;
    sumTerms(e, terms);
    for (size_t i = 0; i < terms.size(); ++i) {
      int axis = blockOffsetAxis(terms[i], block);
      if (axis < 0)
        continue;
      std::string thread = std::string("threadIdx.") + char('x' + axis);
      for (size_t j = 0; j < terms.size(); ++j) {
        ExprRef t = stripCasts(terms[j]);
        if (t->kind != ExprKind::Builtin || t->text != thread)
          continue;
        auto index = std::make_shared<Expr>(*axisBuiltin("globalIdx", unsigned(axis)));
        index->type = e->type.bytes == 8 ? e->type : Type::makeUnsigned();
        index->line = e->line;
        ExprRef sum = e->type.bytes == 4 ? asInteger(e->type, index) : index;
        for (size_t k = 0; k < terms.size(); ++k)
          if (k != i && k != j)
            sum = add(sum, terms[k]);
        return sum;
      }
    }
    return nullptr;
  };
  rewriteExprs(*kernel.body, combine);
  // With one thread along an axis the block index is the global index.
  for (unsigned axis = 0; axis < 3; ++axis)
    if (block[axis] == 1) {
      std::map<std::string, ExprRef> names = {{std::string("threadIdx.") + char('x' + axis), intLit(0)}};
      substitute(*kernel.body, names);
      names = {{std::string("blockIdx.") + char('x' + axis), axisBuiltin("globalIdx", axis)}};
      substitute(*kernel.body, names);
    }

  std::array<AxisUse, 3> uses;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    auto use = [&](const std::string &name, bool opaque) {
      size_t dot = name.find('.');
      std::string base = name.substr(0, dot);
      bool whole = dot == std::string::npos; // "threadIdx" inside opaque text
      for (unsigned axis = 0; axis < 3; ++axis) {
        if (!whole && name[dot + 1] != char('x' + axis))
          continue;
        if (base == "globalIdx")
          uses[axis].global = true;
        else if (base == "threadIdx" || base == "blockIdx" || base == "blockDim" || base == "gridDim") {
          uses[axis].other = true;
          if (!uses[axis].otherLine)
            uses[axis].otherLine = e->line;
        }
      }
    };
    if (e->kind == ExprKind::Builtin)
      use(e->text, false);
    if (e->kind == ExprKind::Opaque)
      for (const char *base : {"threadIdx", "blockIdx", "blockDim", "gridDim"})
        if (e->text.find(base) != std::string::npos || e->names.count(base))
          use(base, true);
  });
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Opaque)
      for (const char *base : {"threadIdx", "blockIdx", "blockDim", "gridDim"})
        if (s.text.find(base) != std::string::npos)
          for (AxisUse &u : uses) {
            u.other = true;
            u.otherLine = s.line;
          }
  });
  return uses;
}

/// block * extent + thread with the first factor cast.
static ExprRef widened(const ExprRef &index, const Type &type) {
  if (index->kind == ExprKind::Binary && index->text == "+")
    return binary("+", widened(index->args[0], type), index->args[1]);
  if (index->kind == ExprKind::Binary && index->text == "*")
    return binary("*", widened(index->args[0], type), index->args[1]);
  return castTo(type, index);
}

void optiml::lowerGlobalIndex(Kernel &kernel, const std::function<ExprRef(unsigned)> &make) {
  // int x = (int)index; says the same as int x = index;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl && s.expr && s.expr->kind == ExprKind::Cast && s.type.isInt() && s.type.bytes == 4 &&
        s.expr->type.isInt() && s.expr->type.bytes == 4 && s.expr->args[0]->type.isInt())
      s.expr = s.expr->args[0];
  });
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    if (e->kind != ExprKind::Builtin || e->text.rfind("globalIdx.", 0) != 0)
      return nullptr;
    ExprRef index = make(unsigned(e->text.back() - 'x'));
    if (e->type.bytes != 8)
      return index;
    return widened(index, e->type); // a 64-bit global index stays one
  });
}

bool optiml::isParameter(const KernelModel &model, const std::string &atom) {
  if (const Param *p = model.param(atom))
    return p->type.isInt() && model.stable(Poly::atom(atom));
  size_t dot = atom.find('.');
  if (dot == std::string::npos)
    return false;
  const Param *p = model.param(atom.substr(0, dot));
  return p && p->type.cls == Type::Class::Record && model.stable(var(p->name, p->type));
}

/// "p.n", an integer that conditions can name.
static bool isIntegerField(const KernelModel &model, llvm::StringRef atom) {
  auto [base, member] = atom.split('.');
  const Param *param = model.param(base.str());
  return param && llvm::any_of(param->fields, [&, name = member](const Param::Field &field) {
    return field.name == name && field.type.cls == Type::Class::Int;
  });
}

std::optional<std::string> optiml::planText(const KernelModel &model, const Poly &p) {
  for (const std::string &atom : p.atoms())
    if (!isParameter(model, atom) || !(model.param(atom) || isIntegerField(model, atom)))
      return std::nullopt;
  return p.str();
}

std::optional<Poly> optiml::globalUpperBound(const KernelModel &model, unsigned axis) {
  std::string index = std::string("globalIdx.") + char('x' + axis);
  if (model.unknownEffectLine())
    return std::nullopt;
  std::optional<std::vector<Poly>> common;
  for (const Access &access : model.accesses()) {
    if (access.space == Space::Local)
      continue;
    std::vector<Poly> bounds; // U with globalIdx < U
    for (const Poly &fact : model.facts(access)) {
      auto c = fact.coefficient(index);
      if (!c || c->constant() != std::optional<int64_t>(-1))
        continue;
      Poly u = fact + Poly::atom(index) + Poly(1);
      std::set<std::string> atoms = u.atoms();
      if (std::all_of(atoms.begin(), atoms.end(), [&](const std::string &a) { return isParameter(model, a); }))
        bounds.push_back(u);
    }
    if (!common) {
      common = bounds;
      continue;
    }
    std::erase_if(*common, [&](const Poly &u) { return std::find(bounds.begin(), bounds.end(), u) == bounds.end(); });
  }
  if (!common || common->empty())
    return std::nullopt;
  return common->front();
}

/// Guards of the form scale * index < end, taken apart at "&&".
static void addScaledBounds(const KernelModel &model, const std::string &index, const ExprRef &condition, std::vector<ScaledBound> &into) {
  if (condition->kind != ExprKind::Binary)
    return;
  if (condition->text == "&&") {
    for (const ExprRef &part : condition->args)
      addScaledBounds(model, index, part, into);
    return;
  }
  if (condition->text != "<" && condition->text != ">")
    return;
  const ExprRef &low = condition->args[condition->text == ">"], &high = condition->args[condition->text == "<"];
  if (!low->type.isInt() || !high->type.isInt() || high->type.bytes < 4)
    return;
  Poly multiple = model.poly(low), end = model.poly(high);
  auto scale = multiple.coefficient(index);
  auto constant = scale ? scale->constant() : std::nullopt;
  if (!constant || *constant < 2 || !(multiple == *scale * Poly::atom(index)) || !planText(model, end))
    return;
  into.push_back({*constant, condition, high});
}

std::optional<ScaledBound> optiml::scaledUpperBound(const KernelModel &model, unsigned axis) {
  std::string index = std::string("globalIdx.") + char('x' + axis);
  if (model.unknownEffectLine())
    return std::nullopt;
  std::optional<std::vector<ScaledBound>> common;
  for (const Access &access : model.accesses()) {
    if (access.space == Space::Local)
      continue;
    std::vector<ScaledBound> bounds;
    for (const auto &[condition, taken] : access.guards)
      if (taken)
        addScaledBounds(model, index, condition, bounds);
    if (!common) {
      common = bounds;
      continue;
    }
    std::erase_if(*common, [&](const ScaledBound &b) {
      return std::none_of(bounds.begin(), bounds.end(), [&](const ScaledBound &other) { return equal(b.guard, other.guard); });
    });
  }
  if (!common || common->empty())
    return std::nullopt;
  return common->front();
}

//===----------------------------------------------------------------------===//
// Early returns
//===----------------------------------------------------------------------===//

static bool returns(Stmt &s) {
  bool found = false;
  walk(s, [&](Stmt &t) { found |= t.kind == StmtKind::Return; });
  return found;
}

static llvm::Error removeReturns(Stmt &block) {
  for (size_t i = 0; i < block.body.size(); ++i) {
    StmtRef s = block.body[i];
    if (s->kind == StmtKind::Return) {
      block.body.resize(i); // nothing after it runs
      return llvm::Error::success();
    }
    if (!returns(*s))
      continue;
    if (s->kind != StmtKind::If)
      return notApplicable("it returns from inside a loop (line {0})", s->line);
    // if (c) A else B; rest   where a branch returns: move `rest` into the branches that go on.
    std::vector<StmtRef> rest(block.body.begin() + long(i) + 1, block.body.end());
    if (s->body.size() == 1)
      s->body.push_back(optiml::block());
    auto ends = [](const Stmt &branch) { return !branch.body.empty() && branch.body.back()->kind == StmtKind::Return; };
    bool thenEnds = ends(*s->body[0]), elseEnds = ends(*s->body[1]);
    if (!thenEnds && !elseEnds)
      return notApplicable("it returns from a nested place that does not end its branch (line {0})", s->line);
    StmtRef onward = s->body[thenEnds ? 1 : 0];
    if (!(thenEnds && elseEnds))
      onward->body.insert(onward->body.end(), rest.begin(), rest.end());
    block.body.resize(i + 1);
    for (StmtRef &branch : s->body)
      if (llvm::Error e = removeReturns(*branch))
        return e;
    if (s->body[1]->body.empty())
      s->body.pop_back();
    else if (s->body[0]->body.empty()) {
      s->expr = logicalNot(s->expr);
      s->body.erase(s->body.begin());
    }
    return llvm::Error::success();
  }
  return llvm::Error::success();
}

llvm::Error optiml::removeEarlyReturns(Kernel &kernel) { return removeReturns(*kernel.body); }

//===----------------------------------------------------------------------===//
// Bounds
//===----------------------------------------------------------------------===//

std::optional<std::vector<Dimension>> optiml::delinearize(const KernelModel &model, const Poly &index) {
  std::map<Poly::Monomial, Poly> parts;
  for (const auto &[monomial, coefficient] : index.terms) {
    Poly::Monomial stride, varying;
    for (const std::string &atom : monomial)
      (isParameter(model, atom) ? stride : varying).push_back(atom);
    if (varying.size() > 1)
      return std::nullopt;
    // A lone parameter is an offset, not a stride, when nothing varies with it.
    Poly value = varying.empty() ? Poly(coefficient) : Poly(coefficient) * Poly::atom(varying[0]);
    parts[stride] = parts[stride] + value;
  }
  // Offsets by parameters that are no stride of anything varying belong to the unit dimension.
  std::vector<Dimension> result;
  Poly unit = parts.count({}) ? parts[{}] : Poly();
  for (auto &[stride, value] : parts) {
    if (stride.empty())
      continue;
    if (value.constant()) {
      Poly offset = value;
      for (const std::string &atom : stride)
        offset = offset * Poly::atom(atom);
      unit = unit + offset;
      continue;
    }
    result.push_back({stride, value});
  }
  if (!unit.terms.empty() || result.empty())
    result.push_back({{}, unit});
  return result;
}

/// The same for a whole launch: parameters, and how many blocks there are.
static bool isLaunchConstant(const KernelModel &model, const std::string &atom) {
  return isParameter(model, atom) || atom.rfind("gridDim.", 0) == 0;
}

static bool onlyLaunchConstants(const KernelModel &model, const Poly &p) {
  std::set<std::string> atoms = p.atoms();
  return std::all_of(atoms.begin(), atoms.end(), [&](const std::string &a) { return isLaunchConstant(model, a); });
}

/// planText for a polynomial over the original kernel, whose gridDim is that of the original launch.
static std::optional<std::string> originalPlanText(const KernelModel &original, Poly p) {
  for (const char *axis : {"x", "y", "z"})
    p = p.substitute(std::string("gridDim.") + axis, Poly::atom(std::string("grid.") + axis));
  for (const std::string &atom : p.atoms())
    if (atom.rfind("grid.", 0) != 0 && !planText(original, Poly::atom(atom)))
      return std::nullopt;
  return p.str();
}

/// Depth-first: eliminate the varying atoms of p one by one with facts that bound them from above.
static std::optional<Poly> eliminate(const KernelModel &model, const Poly &p, const std::vector<Poly> &facts,
                                     unsigned depth) {
  if (onlyLaunchConstants(model, p))
    return p;
  if (depth == 0)
    return std::nullopt;
  std::string target;
  for (const std::string &atom : p.atoms())
    if (!isLaunchConstant(model, atom)) {
      target = atom;
      break;
    }
  auto c = p.coefficient(target);
  auto coefficient = c ? c->constant() : std::nullopt;
  if (!coefficient)
    return std::nullopt;
  size_t size = p.terms.size();
  // Facts that cancel more than they add come first.
  std::vector<std::pair<size_t, Poly>> candidates;
  for (const Poly &fact : facts) {
    auto f = fact.coefficient(target);
    auto fc = f ? f->constant() : std::nullopt;
    if (!fc || *fc == 0 || (*fc > 0) == (*coefficient > 0) || *coefficient % *fc != 0)
      continue;
    Poly next = p + Poly(-*coefficient / *fc) * fact;
    candidates.emplace_back(next.terms.size(), next);
  }
  (void)size;
  std::stable_sort(candidates.begin(), candidates.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
  for (const auto &[n, next] : candidates)
    if (auto result = eliminate(model, next, facts, depth - 1))
      return result;
  return std::nullopt;
}

std::optional<Poly> optiml::upperBound(const KernelModel &model, const Poly &p, const std::vector<Poly> &facts) {
  return eliminate(model, p, facts, 6);
}
std::optional<Poly> optiml::lowerBound(const KernelModel &model, const Poly &p, const std::vector<Poly> &facts) {
  auto bound = eliminate(model, Poly(0) - p, facts, 6);
  if (!bound)
    return std::nullopt;
  return Poly(0) - *bound;
}

/// Adds what is known of quotients and remainders of non-negative values by constants that occur in `p`.
static void addDivisionFacts(const KernelModel &model, const Poly &p, std::vector<Poly> &facts) {
  for (const std::string &atom : p.atoms()) {
    ExprRef e = model.atomExpr(atom);
    if (!e || e->kind != ExprKind::Binary || (e->text != "/" && e->text != "%"))
      continue;
    auto divisor = constantValue(e->args[1]);
    if (!divisor || *divisor <= 0)
      continue;
    Poly value = model.poly(e->args[0]);
    addDivisionFacts(model, value, facts);
    auto low = lowerBound(model, value, facts), high = upperBound(model, value, facts);
    if (!low || !low->constant() || *low->constant() < 0)
      continue;
    Poly self = Poly::atom(atom);
    facts.push_back(self);
    if (e->text == "%")
      facts.push_back(Poly(*divisor - 1) - self);
    else if (high && high->constant())
      facts.push_back(Poly(*high->constant() / *divisor) - self);
  }
}

/// Element indices [low, end) of an array over the whole launch, as text for IntExpr.
struct Range {
  std::vector<std::string> low, end; ///< one an access
  std::set<std::string> nonNegative; ///< strides that must be >= 0: parameters, and sums of them
  unsigned bytes = 0;
};

/// Takes out of `index` what varies with a stride like `width - size + 1`, whose parts bounded one by one would say little:
/// by stride, what it multiplies.
static std::vector<std::pair<Poly, Poly>> takeCompoundStrides(const KernelModel &model, Poly &index) {
  std::vector<std::pair<Poly, Poly>> result;
  for (const std::string &atom : index.atoms()) {
    auto stride = isParameter(model, atom) ? std::nullopt : index.coefficient(atom);
    if (!stride || stride->terms.size() < 2 || !onlyLaunchConstants(model, *stride) ||
        std::all_of(stride->terms.begin(), stride->terms.end(), [](const auto &term) { return term.second > 0; }))
      continue;
    index = index - *stride * Poly::atom(atom);
    auto known = std::find_if(result.begin(), result.end(), [&](const auto &d) { return d.first == *stride; });
    if (known == result.end())
      result.emplace_back(*stride, Poly::atom(atom));
    else
      known->second = known->second + Poly::atom(atom);
  }
  return result;
}

static llvm::Expected<Range> touchedRange(const KernelModel &model, const std::string &array) {
  Range range;
  for (const Access &access : model.accesses()) {
    if (access.array != array)
      continue;
    if (access.subscripts.size() != 1)
      return notApplicable("{0} is accessed in a way whose extent is not understood", array);
    range.bytes = std::max(range.bytes, access.bytes);
    Poly index = access.subscripts[0];
    std::vector<Poly> facts = model.facts(access);
    addDivisionFacts(model, index, facts);
    std::vector<std::pair<Poly, Poly>> parts = takeCompoundStrides(model, index);
    for (const auto &[stride, value] : parts)
      if (auto text = planText(model, stride))
        range.nonNegative.insert(*text);
    auto dims = delinearize(model, index);
    for (const Dimension &d : dims.value_or(std::vector<Dimension>())) {
      Poly stride(1);
      for (const std::string &atom : d.stride) {
        stride = stride * Poly::atom(atom);
        range.nonNegative.insert(atom);
      }
      parts.emplace_back(stride, d.value);
    }
    Poly low, high;
    bool ok = dims.has_value();
    for (size_t i = 0; ok && i < parts.size(); ++i) {
      const auto &[stride, value] = parts[i];
      auto up = upperBound(model, value, facts), down = lowerBound(model, value, facts);
      ok = up && down;
      if (!ok)
        break;
      low = low + stride * *down;
      high = high + stride * *up;
    }
    auto lowText = ok ? originalPlanText(model, low) : std::nullopt;
    auto endText = ok ? originalPlanText(model, high + Poly(1)) : std::nullopt;
    if (!lowText || !endText)
      return notApplicable("the range of {0} that the kernel touches cannot be bounded (line {1})", array,
                           access.stmt->line);
    auto note = [](std::vector<std::string> &list, const std::string &text) {
      if (std::find(list.begin(), list.end(), text) == list.end())
        list.push_back(text);
    };
    note(range.low, *lowText);
    note(range.end, *endText);
  }
  return range;
}

static std::string folded(const char *function, const std::vector<std::string> &texts) {
  std::string result = texts[0];
  for (size_t i = 1; i < texts.size(); ++i)
    result = std::string(function) + "(" + result + ", " + texts[i] + ")";
  return result;
}

std::set<std::string> optiml::changedParameters(const Kernel &kernel) {
  std::set<std::string> result;
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    bool changes = e->kind == ExprKind::Assign || e->kind == ExprKind::IncDec || (e->kind == ExprKind::Unary && e->text == "&");
    if (!changes)
      return;
    const Expr *target = e->args[0].get();
    while ((target->kind == ExprKind::Member || target->kind == ExprKind::Subscript) && !target->args[0]->type.isPointer())
      target = target->args[0].get();
    for (const Param &param : kernel.params)
      if (target->kind == ExprKind::Var && target->text == param.name)
        result.insert(param.name);
  });
  return result;
}

llvm::Error optiml::requireConstantParameters(const Kernel &kernel) {
  std::set<std::string> changed = changedParameters(kernel);
  if (changed.empty())
    return llvm::Error::success();
  return notApplicable("the kernel changes its parameter '{0}'", *changed.begin());
}

llvm::Error optiml::requireDisjoint(KernelState &state, const KernelModel &model, const std::string &a,
                                    const std::string &b) {
  const Param *pa = model.param(a), *pb = model.param(b);
  if (!pa || !pb || !pa->type.isPointer() || !pb->type.isPointer())
    return notApplicable("whether {0} and {1} overlap cannot be tested: they are not both plain pointer parameters", a, b);
  for (const Param *p : {pa, pb})
    if (p->type.pointee && p->type.pointee->isPointer())
      return notApplicable("'{0}' points to pointers, which may lead anywhere", p->name);
  if (pa->type.isRestrict && pb->type.isRestrict)
    return llvm::Error::success();
  std::set<std::string> changed = changedParameters(*state.original);
  if (changed.count(a) || changed.count(b))
    return notApplicable("'{0}' is moved by the kernel itself", changed.count(a) ? a : b);
  // No rewrite touches more than the original does, and there the bounds are still plain.
  KernelModel before(*state.original, {0, 0, 0});
  auto ra = touchedRange(before, a), rb = touchedRange(before, b);
  if (!ra)
    return llvm::joinErrors(ra.takeError(), rb ? llvm::Error::success() : (llvm::consumeError(rb.takeError()), llvm::Error::success()));
  if (!rb)
    return rb.takeError();
  if (ra->low.empty() || rb->low.empty())
    return llvm::Error::success();
  for (const Range *r : {&*ra, &*rb})
    for (const std::string &name : r->nonNegative)
      if (const Param *p = model.param(name); !p || p->type.isSigned)
        state.require(name + " >= 0", "index arithmetic assumes it");
  auto text = [](const std::string &name, const Range &r) {
    std::string low = folded("min", r.low), end = folded("max", r.end), size = std::to_string(r.bytes);
    std::string start = low == "0" ? name : name + " + " + size + " * (" + low + ")";
    std::string bytes = size + " * (" + end + (low == "0" ? "" : " - (" + low + ")") + ")";
    return start + ", " + bytes;
  };
  std::string first = a, second = b;
  bool swap = b < a;
  state.require("disjoint(" + (swap ? text(b, *rb) : text(a, *ra)) + ", " + (swap ? text(a, *ra) : text(b, *rb)) + ")",
                (swap ? b : a) + " and " + (swap ? a : b) + " must not overlap");
  return llvm::Error::success();
}

/// Atoms in reading order: block indices, thread indices, other names, then local coordinates.
static int readingRank(const Poly::Monomial &monomial) {
  int rank = monomial.empty() ? 9 : 0;
  for (const std::string &atom : monomial)
    rank = std::max(rank, atom.rfind("blockIdx", 0) == 0 ? 0 : atom[0] == '@' ? 4 : atom.rfind("threadIdx", 0) == 0 ? 2 : 1);
  return rank;
}

static ExprRef atomTree(const KernelModel &model, const std::string &atom) {
  if (ExprRef e = model.atomExpr(atom))
    return e;
  size_t dot = atom.find('.');
  if (dot != std::string::npos && (atom.substr(dot - 3, 3) == "Idx" || atom.substr(dot - 3, 3) == "Dim"))
    return builtin(atom);
  Type type = Type::makeInt();
  if (const Param *param = model.param(atom))
    type = param->type;
  else if (const Stmt *d = model.declaration(atom))
    type = d->type;
  type.isConst = false;
  return var(atom, type);
}

static ExprRef sumExpr(const KernelModel &model, const Poly &p) {
  std::vector<std::pair<Poly::Monomial, int64_t>> terms(p.terms.begin(), p.terms.end());
  std::stable_sort(terms.begin(), terms.end(), [](const auto &a, const auto &b) {
    return std::pair(a.second < 0, readingRank(a.first)) < std::pair(b.second < 0, readingRank(b.first));
  });
  ExprRef sum;
  int64_t constant = p.constantTerm();
  for (const auto &[monomial, coefficient] : terms) {
    if (monomial.empty())
      continue;
    if (!sum && coefficient < 0 && constant > 0) { // 4 - k
      sum = intLit(constant);
      constant = 0;
    }
    int64_t magnitude = sum && coefficient < 0 ? -coefficient : coefficient;
    ExprRef product;
    for (const std::string &atom : monomial)
      product = product ? mul(product, atomTree(model, atom)) : atomTree(model, atom);
    product = mul(product, intLit(magnitude));
    sum = !sum ? product : coefficient < 0 ? sub(sum, product) : add(sum, product);
  }
  return sum ? add(sum, intLit(constant)) : intLit(constant);
}

ExprRef optiml::wideExpr(const ExprRef &e) {
  if (e->type.bytes == 8)
    return e;
  bool sum = e->kind == ExprKind::Binary && (e->text == "+" || e->text == "-");
  auto isProduct = [](const ExprRef &x) {
    bool found = false;
    walk(x, [&](const ExprRef &part) { found |= part->kind == ExprKind::Binary && part->text == "*"; });
    return found;
  };
  if (sum) // one wide operand makes a sum wide; a product must be wide itself
    return binary(e->text, wideExpr(e->args[0]), isProduct(e->args[1]) ? wideExpr(e->args[1]) : e->args[1]);
  if (e->kind == ExprKind::Binary && e->text == "*")
    return binary("*", wideExpr(e->args[0]), isProduct(e->args[1]) ? wideExpr(e->args[1]) : e->args[1]);
  return castTo(Type::makeLong(), e);
}

ExprRef optiml::polyExpr(const KernelModel &model, const Poly &p) {
  // (row + r) * stride + (column + c), as a person would write it.
  auto dims = delinearize(model, p);
  if (!dims || dims->size() < 2)
    return sumExpr(model, p);
  ExprRef sum;
  for (const Dimension &d : *dims) {
    ExprRef value = sumExpr(model, d.value);
    for (const std::string &atom : d.stride)
      value = mul(value, atomTree(model, atom));
    sum = sum ? add(sum, value) : value;
  }
  return sum;
}

//===----------------------------------------------------------------------===//
// Places and loops
//===----------------------------------------------------------------------===//

int64_t optiml::sharedBytes(const Kernel &kernel) {
  int64_t bytes = 0;
  walk(*kernel.body, [&](Stmt &s) {
    if (!s.isShared)
      return;
    int64_t n = s.type.bytes;
    for (const ExprRef &d : s.dims)
      n *= d ? constantValue(d).value_or(0) : 0;
    bytes += n;
  });
  return bytes;
}

std::vector<ActionTemplate> optiml::kernelSite(const Transform &transform, const KernelState &state,
                                               const std::vector<Params> &offers) {
  ActionTemplate site{transform.name().str(), state.rewrite.original, {}};
  for (const Params &params : offers) {
    auto applied = transform.apply(state, "", params);
    if (applied) {
      site.values.push_back(params);
      continue;
    }
    llvm::consumeError(applied.takeError());
    if (site.values.empty())
      return {};
  }
  return {site};
}

std::optional<StmtPlace> optiml::findPlace(Stmt &root, const Stmt *target) {
  for (size_t i = 0; i < root.body.size(); ++i) {
    if (root.kind == StmtKind::Block && root.body[i].get() == target)
      return StmtPlace{&root, i};
    if (auto place = findPlace(*root.body[i], target))
      return place;
  }
  return std::nullopt;
}

std::string optiml::loopPath(const std::vector<Stmt *> &path, const std::string &var) {
  std::string result;
  for (Stmt *s : path)
    if (s->kind == StmtKind::For && s->init && s->init->kind == StmtKind::Decl)
      result += "/" + s->init->text;
  return result + "/" + var;
}

static void visitLoops(Stmt &s, std::vector<Stmt *> &path,
                       const std::function<void(const std::vector<Stmt *> &, Stmt &)> &f) {
  if (asCountedLoop(s))
    f(path, s);
  path.push_back(&s);
  for (StmtRef &child : s.body)
    visitLoops(*child, path, f);
  path.pop_back();
}

/// Calls f(path, enclosing statements, loop); siblings of equal path are told apart by "#2", "#3", ….
static void namedLoops(const Kernel &kernel,
                       const std::function<void(const std::string &, const std::vector<Stmt *> &, Stmt &)> &f) {
  std::map<std::string, unsigned> seen;
  std::vector<Stmt *> path;
  visitLoops(*kernel.body, path, [&](const std::vector<Stmt *> &enclosing, Stmt &s) {
    std::string name = loopPath(enclosing, s.init->text);
    unsigned n = ++seen[name];
    f(n == 1 ? name : name + "#" + std::to_string(n), enclosing, s);
  });
}

std::vector<std::pair<std::string, Stmt *>> optiml::countedLoops(const Kernel &kernel) {
  std::vector<std::pair<std::string, Stmt *>> result;
  namedLoops(kernel, [&](const std::string &name, const std::vector<Stmt *> &, Stmt &s) { result.emplace_back(name, &s); });
  return result;
}

Stmt *optiml::findLoop(Kernel &kernel, llvm::StringRef wanted, std::vector<Stmt *> *enclosing) {
  Stmt *found = nullptr;
  namedLoops(kernel, [&](const std::string &name, const std::vector<Stmt *> &outer, Stmt &s) {
    if (name != wanted)
      return;
    found = &s;
    if (enclosing)
      *enclosing = outer;
  });
  return found;
}

ExprRef optiml::elementExpr(const KernelModel &model, const Access &access, const Poly &index) {
  ExprRef place = polyExpr(model, index);
  return subscript(access.root, access.wideIndex ? wideExpr(place) : place, access.node->type);
}
