//===- TileReads.cpp - reads that a tile in shared memory serves ----------===//
#include "TileReads.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

bool optiml::saysJust(const KernelModel &model, const ExprRef &condition, bool taken, std::vector<Poly> &facts) {
  size_t before = facts.size();
  model.addFacts(condition, taken, facts);
  if (facts.size() == before)
    return false;
  for (const Poly &fact : llvm::ArrayRef(facts).drop_front(before)) {
    if (!fact.isAffine())
      return false;
    for (const std::string &atom : fact.atoms()) { // what a whole block has alike all the time is a constant here
      if (atom[0] != '{')
        continue;
      const bool counts =
          llvm::any_of(model.atomNames(atom), [&](const std::string &name) { return model.loopOf(name).has_value(); });
      if (counts || model.variesAtom(atom) & (AnyThread | FromMemory) || !model.stable(fact))
        return false;
    }
  }
  return true;
}

/// The runners of an access: thread indices, and the loops of constant trip count between it and the strip-mined loop,
/// or all of them.
static llvm::Expected<std::vector<Runner>> runnersOf(const KernelModel &model, const Access &access, const Poly &index,
                                                     const Strip *strip) {
  std::vector<Runner> result;
  for (unsigned axis = 0; axis < 3; ++axis)
    if (model.blockExtent(axis) > 1)
      result.push_back({axisName("threadIdx", axis), model.blockExtent(axis)});
  if (strip)
    result.push_back({strip->counted.var, strip->size});
  bool within = !strip;
  for (Stmt *s : access.path) {
    if (strip && s == strip->loop) {
      within = true;
      continue;
    }
    if (!within || s->kind == StmtKind::Block || s->kind == StmtKind::If)
      continue;
    auto inner = asCountedLoop(*s);
    if (!inner)
      return notApplicable("the loop around {0} is not counted (line {1})", access.array, s->line);
    auto trips = inner->tripCount(), lower = constantValue(inner->lower);
    if (trips && lower && (!strip || (*lower == 0 && inner->step == 1)))
      result.push_back({inner->var, *trips, *lower, inner->step});
    else if (strip || model.dependsOn(index, {inner->var}))
      return notApplicable("an inner loop around {0} has no constant trip count{1} (line {2})", access.array,
                           strip ? " from 0" : "", s->line);
  }
  return result;
}

/// Nothing but the conditions and the loops around the access decides whether it is made; their bounds are affine.
static llvm::Error requireKnownControl(const KernelModel &model, const Access &access) {
  for (Stmt *s : access.path) {
    if (s->kind == StmtKind::Block || s->kind == StmtKind::If)
      continue;
    auto loop = asCountedLoop(*s); // any other kind was refused
    for (const ExprRef &bound : {loop->lower, loop->upper})
      if (!model.stable(bound) || !model.poly(bound).isAffine())
        return notApplicable("the bounds of the loop around {0} are not affine (line {1})", access.array, s->line);
    if (holdsKind(*s, {StmtKind::Break, StmtKind::Continue, StmtKind::Return}))
      return notApplicable("the loop around {0} may be left early (line {1})", access.array, s->line);
  }
  return llvm::Error::success();
}

/// Splits a linear index into dimensions: first by parametric strides, then the rest by gaps between constant strides,
/// or
/// (`apart`) also where one just continues the other, as rows without padding do.
/// Gives for each dimension (stride, varying part); the uniform part of the whole index is what remains.
static llvm::Expected<std::vector<std::pair<Poly, Poly>>> splitIndex(const KernelModel &model, const Access &access,
                                                                     const Poly &index,
                                                                     const std::vector<Runner> &runners, bool backwards,
                                                                     bool apart) {
  auto runs = [&](const std::string &atom) {
    return std::find_if(runners.begin(), runners.end(), [&](const Runner &r) { return r.atom == atom; });
  };
  std::map<Poly::Monomial, std::map<std::string, int64_t>> byStride; // stride monomial -> runner -> coefficient
  for (const auto &[monomial, c] : index.terms) {
    Poly::Monomial stride;
    std::string runner;
    for (const std::string &atom : monomial) {
      if (runs(atom) != runners.end()) {
        if (!runner.empty())
          return notApplicable("the index of {0} multiplies two varying values (line {1})", access.array,
                               access.stmt->line);
        runner = atom;
      } else if (model.variesAtom(atom) & (AnyThread | FromMemory) ||
                 llvm::any_of(model.atomNames(atom), [&](const auto &name) { return runs(name) != runners.end(); })) {
        return notApplicable("the index of {0} depends on '{1}', which is no affine index (line {2})", access.array,
                             atom, access.stmt->line);
      } else {
        stride.push_back(atom);
      }
    }
    if (!runner.empty())
      byStride[stride][runner] += c;
  }
  std::vector<std::pair<Poly, Poly>> dims;
  for (auto &[monomial, coefficients] : byStride) {
    Poly factor(1);
    for (const std::string &atom : monomial)
      factor = factor * Poly::atom(atom);
    // Ascending coefficients; a gap larger than what is spanned so far starts a new dimension.
    std::vector<std::pair<int64_t, std::string>> sorted;
    for (const auto &[atom, c] : coefficients) {
      if (c < 0 && !backwards)
        return notApplicable("the index of {0} runs backwards (line {1})", access.array, access.stmt->line);
      sorted.emplace_back(std::abs(c), atom);
    }
    std::sort(sorted.begin(), sorted.end());
    int64_t unit = sorted[0].first, span = 0;
    Poly value;
    for (size_t i = 0; i < sorted.size(); ++i) {
      auto [c, atom] = sorted[i];
      auto runner = runs(atom);
      bool divides =
          std::all_of(sorted.begin() + long(i), sorted.end(), [&](const auto &s) { return s.first % c == 0; });
      if (c + apart > span + unit && span > 0 && divides) {
        dims.emplace_back(factor * Poly(unit), value);
        value = Poly();
        unit = c;
        span = 0;
      } else if (c % unit != 0) {
        return notApplicable("the index of {0} has strides that do not nest (line {1})", access.array,
                             access.stmt->line);
      }
      value = value + Poly(coefficients[atom] / unit) * Poly::atom(atom);
      span += c * runner->step * (runner->count - 1);
    }
    dims.emplace_back(factor * Poly(unit), value);
  }
  return dims;
}

bool optiml::isLoopHeader(const Access &access, const ExprRef &condition) {
  return llvm::any_of(access.path, [&](const Stmt *s) { return s->kind == StmtKind::For && s->expr == condition; });
}

std::vector<Guard> optiml::conjunctsOf(const std::vector<Guard> &guards) {
  std::vector<Guard> result;
  for (const auto &[condition, taken] : guards) {
    std::vector<Guard> inner;
    if (condition->kind == ExprKind::Binary && condition->text == (taken ? "&&" : "||"))
      inner = conjunctsOf({{condition->args[0], taken}, {condition->args[1], taken}});
    else if (isUnary(condition, "!"))
      inner = conjunctsOf({{condition->args[0], !taken}});
    else
      inner = {{condition, taken}};
    result.insert(result.end(), inner.begin(), inner.end());
  }
  return result;
}

/// "j != i" around a read of p[j] whose thread reads p[i] anyway, or a member of it: no element is left out.
static bool readsWhatIsLeftOut(const KernelModel &model, const Access &access, const Guard &guard) {
  const auto &[condition, taken] = guard;
  if (condition->kind != ExprKind::Binary || condition->text != (taken ? "!=" : "==") ||
      !condition->args[0]->type.isInt() || !condition->args[1]->type.isInt())
    return false;
  Poly between = model.poly(condition->args[0]) - model.poly(condition->args[1]);
  if (!model.stable(between) || between.terms.empty())
    return false;
  std::vector<Guard> around = conjunctsOf(access.guards);
  auto alsoAround = [&](const Guard &other) {
    return llvm::any_of(around, [&](const Guard &own) {
      return own != guard && own.second == other.second && equal(own.first, other.first);
    });
  };
  return llvm::any_of(model.accesses(), [&](const Access &other) {
    if (other.array != access.array || !other.read || other.bytes != access.bytes || other.subscripts.size() != 1 ||
        !model.stable(other.subscripts[0]) || !llvm::all_of(conjunctsOf(other.guards), alsoAround))
      return false;
    Poly distance = access.subscripts[0] - other.subscripts[0];
    int64_t times = distance.terms.empty() ? 0 : distance.terms.begin()->second / between.terms.begin()->second;
    return times != 0 && distance == Poly(times) * between;
  });
}

/// The shapes of all reads of the array (in the strip's loop); they can be told one by one what they read.
llvm::Expected<std::vector<StagedRead>> optiml::readsOf(const KernelModel &model, const std::string &array,
                                                        const Strip *strip, bool apart) {
  std::vector<StagedRead> shapes;
  auto staged = [&](const Access &access) {
    return access.read && !access.write && (!strip || insideOf(access, strip->loop));
  };
  for (const Access &access : model.accesses()) {
    if (access.array != array)
      continue;
    if (access.write && llvm::any_of(model.accesses(), [&](const Access &other) {
          return other.array == array && staged(other) && sameMember(access, other);
        }))
      return notApplicable("{0} is written (line {1})", array, access.stmt->line);
    if (!staged(access))
      continue;
    if (access.space != Space::Global || access.subscripts.size() != 1 || access.root->kind != ExprKind::Var)
      return notApplicable("{0} is not a plain global array (line {1})", array, access.stmt->line);
    const Type &type = access.place->type;
    if (!type.isFloat() && !type.isInt() && !type.isHalf)
      return notApplicable("the elements of {0} are not numbers", array);
    if (!model.stable(access.root))
      return notApplicable("'{0}' is moved by the kernel (line {1})", array, access.stmt->line);
    if (!model.stable(access.subscripts[0]))
      return notApplicable("the index of {0} uses a variable that changes (line {1})", array, access.stmt->line);
    std::vector<Poly> facts;
    for (const auto &[condition, taken] : conjunctsOf(access.guards)) {
      if (!isLoopHeader(access, condition) && !readsWhatIsLeftOut(model, access, {condition, taken}) &&
          !saysJust(model, condition, taken, facts))
        return notApplicable("the condition around {0} is not affine (line {1})", array, access.stmt->line);
    }
    Poly index = access.subscripts[0];
    std::vector<BoundaryCondition> rules;
    if (!strip)
      rules = takeBoundaryConditions(model, index);
    auto runners = runnersOf(model, access, index, strip);
    if (!runners)
      return runners.takeError();
    if (!strip)
      if (llvm::Error e = requireKnownControl(model, access))
        return e;
    // Differences of unsigned indices come out right only where all of them have the same width.
    bool backwards = !strip && llvm::none_of(*runners, [&](const Runner &r) {
      auto around = model.loopOf(r.atom);
      return around && around->type.bytes > 4;
    });
    auto dims = splitIndex(model, access, index, *runners, backwards, apart);
    if (!dims)
      return dims.takeError();
    Poly uniform = index;
    for (const auto &[stride, value] : *dims)
      uniform = uniform - stride * value;
    shapes.push_back({&access, *dims, uniform, *runners, std::move(rules)});
  }
  if (shapes.empty())
    return strip ? notApplicable("{0} is not read in the loop", array) : notApplicable("{0} is not read", array);
  return shapes;
}

std::vector<Poly> optiml::stridesOf(const std::vector<StagedRead> &shapes) {
  std::vector<Poly> strides;
  std::set<std::string> seen;
  for (const StagedRead &shape : shapes)
    for (const auto &[stride, value] : shape.dims)
      if (seen.insert(stride.str()).second)
        strides.push_back(stride);
  return strides;
}

/// `distance` in whole multiples of the strides, the largest first; nothing when something remains.
static std::optional<std::vector<int64_t>> stepsAlong(const std::vector<Poly> &strides, Poly distance) {
  std::vector<int64_t> result(strides.size());
  for (unsigned d : bySize(strides)) {
    const auto &[monomial, unit] = *strides[d].terms.begin();
    auto it = distance.terms.find(monomial);
    if (it == distance.terms.end())
      continue;
    // A remainder goes to a smaller stride: one row up and one column right is -n + 1.
    int64_t half = it->second < 0 ? -(unit / 2) : unit / 2;
    result[d] = (it->second + half) / unit;
    distance = distance - Poly(result[d]) * strides[d];
  }
  if (!distance.terms.empty())
    return std::nullopt;
  return result;
}

static bool sameRules(const StagedRead &a, const StagedRead &b) {
  auto same = [](const BoundaryCondition &x, const BoundaryCondition &y) { return x.signature() == y.signature(); };
  return std::equal(a.rules.begin(), a.rules.end(), b.rules.begin(), b.rules.end(), same);
}

std::vector<ReadFamily> optiml::familiesOf(std::vector<StagedRead> shapes, const std::vector<Poly> &strides) {
  std::vector<ReadFamily> result;
  for (StagedRead &shape : shapes) {
    bool joined = false;
    for (ReadFamily &family : result) {
      const StagedRead &first = family.reads.front();
      if (auto steps = sameRules(shape, first) ? stepsAlong(strides, shape.uniform - first.uniform) : std::nullopt) {
        family.steps.push_back(*steps);
        family.reads.push_back(std::move(shape));
        joined = true;
        break;
      }
    }
    if (!joined) {
      result.emplace_back();
      result.back().steps.push_back(std::vector<int64_t>(strides.size()));
      result.back().reads.push_back(std::move(shape));
    }
  }
  return result;
}

bool optiml::isOnePlace(const ReadFamily &family) {
  return llvm::all_of(family.reads, [](const StagedRead &s) { return s.dims.empty(); }) &&
         llvm::all_of(family.steps, [&](const std::vector<int64_t> &s) { return s == family.steps.front(); });
}

std::vector<std::vector<Poly>> optiml::coordinatesOf(const ReadFamily &family, std::vector<Poly> &strides) {
  std::vector<std::vector<Poly>> values(family.reads.size());
  std::vector<Poly> own;
  for (size_t d = 0; d < strides.size(); ++d) {
    std::vector<Poly> along;
    bool has = false;
    for (size_t s = 0; s < family.reads.size(); ++s) {
      along.push_back(Poly(family.steps[s][d]));
      has |= family.steps[s][d] != 0;
      for (const auto &[stride, value] : family.reads[s].dims)
        if (stride == strides[d]) {
          along.back() = value + along.back();
          has = true;
        }
    }
    if (!has)
      continue;
    own.push_back(strides[d]);
    for (size_t s = 0; s < values.size(); ++s)
      values[s].push_back(along[s]);
  }
  strides = std::move(own);
  return values;
}
