//===- FuseDependences.cpp - what parts of a fused kernel share -----------===//
//
// Threads of different parts run in any order, so that an element which one part writes and another accesses has to
// belong to one thread. Two accesses, a in thread t and b in thread u, meet where their indices are equal; that this
// says t = u is asked of isl. Parametric strides are split off first: z * H * W + y * W + x meets another such place
// only where all three are equal, when x and y are proven to stay below W and H. Along an axis that the kernels do not
// look at, the launch must be one thread thick.
//
//===----------------------------------------------------------------------===//
#include "FuseKernels.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/IntegerSet.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

bool isLaunchConstant(const KernelModel &model, const std::string &atom) {
  if (ExprRef e = model.atomExpr(atom))
    return model.stable(e) && !model.varies(e);
  return isParameter(model, atom) || atom.starts_with("gridDim.") || atom.starts_with("blockDim.");
}

/// Two accesses to one array, the second's thread and loops told apart from the first's.
class Meeting {
public:
  /// `conditions`: takes what has to hold for the answers; null: nothing may have to.
  Meeting(const KernelModel &model, const StrideLoops &strides, const Access &a, const Access &b,
          KernelState *conditions, const Planes *planes)
      : model(model), strides(strides), a(a), b(b), conditions(conditions), planes(planes) {}

  /// They meet in one thread only, where the conditions hold.
  bool onlyInOneThread() {
    if (!addMeeting())
      return false;
    for (const char *axis : {"x", "y", "z"}) {
      auto named = [&](const char *base) { return std::string(base) + "Idx." + axis; };
      const Stmt *loopA = *axis == 'x' ? strideLoopOf(a) : nullptr, *loopB = *axis == 'x' ? strideLoopOf(b) : nullptr;
      if (loopA || loopB) {
        // The variable of a grid-stride loop says which thread it is, as the thread's place in the grid does. In one
        // loop the iteration must be the same as well.
        std::string own = named("global");
        if (same(loopA ? loopA->init->text : own, loopB ? loopB->init->text : own))
          continue;
        return false;
      }
      if (same(named("global")))
        continue;
      for (const char *level : {"block", "thread"}) {
        if (same(named(level)))
          continue;
        if (uses(named(level))) // then the launch is hardly one thread thick there
          return false;
        conditions->require((level == std::string("block") ? "grid." : "block.") + std::string(axis) + " == 1",
                            "threads that differ along this axis alone share elements");
      }
    }
    return true;
  }

  /// Where they meet in one thread, the one's variable is the other's.
  bool onlyWhere(const std::string &first, const std::string &second) {
    if (!addMeeting())
      return false;
    for (const char *base : {"globalIdx.", "blockIdx.", "threadIdx."})
      for (char axis : {'x', 'y', 'z'}) {
        const Poly place = Poly::atom(std::string(base) + axis);
        addFact(place - primed(place));
        addFact(primed(place) - place);
      }
    return same(first, second);
  }

private:
  const KernelModel &model;
  const StrideLoops &strides;
  const Access &a, &b;
  KernelState *const conditions;
  const Planes *const planes; ///< which may be asked to hold what lies in them; null: none
  std::vector<Poly> facts;    ///< of both, and that the indices are equal

  static std::string other(const std::string &atom) { return atom + "'"; }
  Poly primed(Poly p) const {
    for (const std::string &atom : p.atoms())
      if (!isLaunchConstant(model, atom))
        p = p.substitute(atom, Poly::atom(other(atom)));
    return p;
  }
  void addFact(const Poly &p) {
    if (!p.isAffine())
      return;
    facts.push_back(p);
  }

  /// Adds what follows from x == y', digit by digit.
  bool addEqual(const Poly &x, const Poly &y) {
    if (auto inPlanes = addEqualInPlanes(x, y))
      return *inPlanes;
    auto dx = delinearize(model, x), dy = delinearize(model, y);
    if (!dx || !dy)
      return false;
    std::map<Poly::Monomial, std::pair<Poly, Poly>> digits;
    for (const Dimension &d : *dx)
      digits[d.stride].first = d.value;
    for (const Dimension &d : *dy)
      digits[d.stride].second = d.value;
    std::vector<Poly::Monomial> strides;
    for (const auto &[stride, values] : digits)
      strides.push_back(stride);
    llvm::sort(strides, [](const auto &p, const auto &q) { return p.size() < q.size(); });
    std::vector<Poly> knownA = model.facts(a), knownB = model.facts(b);
    if (strides.size() > 1 && !strides.front().empty()) // a common factor, which may be 0
      return false;
    for (size_t i = 0; i < strides.size(); ++i) {
      const auto &[va, vb] = digits[strides[i]];
      if (i + 1 < strides.size()) {
        Poly::Monomial extent;
        const Poly::Monomial &next = strides[i + 1], &self = strides[i];
        if (next.size() <= self.size() || !std::includes(next.begin(), next.end(), self.begin(), self.end()))
          return false;
        std::set_difference(next.begin(), next.end(), self.begin(), self.end(), std::back_inserter(extent));
        if (!inRange(va, extent, knownA) || !inRange(vb, extent, knownB))
          return false;
      } else if (i == 0 && !strides[0].empty()) {
        return false; // a multiple of a parameter that may be 0
      }
      addFact(va - primed(vb));
      addFact(primed(vb) - va);
    }
    return true;
  }

  /// Adds what is known where the two meet.
  bool addMeeting() {
    if (a.subscripts.size() != b.subscripts.size() || a.subscripts.empty() || a.bytes != b.bytes)
      return false;
    for (const Poly &fact : model.facts(a))
      addFact(fact);
    for (const Poly &fact : model.facts(b))
      addFact(primed(fact));
    for (unsigned axis = 0; axis < 3; ++axis)
      if (const int64_t threads = model.blockExtent(axis)) {
        const Poly room = Poly(threads - 1) - Poly::atom(axisName("threadIdx", axis));
        addFact(room);
        addFact(primed(room));
      }
    for (size_t i = 0; i < a.subscripts.size(); ++i)
      if (!addEqual(a.subscripts[i], b.subscripts[i]))
        return false;
    return true;
  }

  /// 0 <= value < extent
  bool inRange(const Poly &value, const Poly::Monomial &extent, const std::vector<Poly> &known) const {
    Poly size(1);
    for (const std::string &atom : extent)
      size = size * Poly::atom(atom);
    auto low = lowerBound(model, value, known), room = lowerBound(model, size - Poly(1) - value, known);
    auto notNegative = [](const std::optional<Poly> &p) { return p && p->constant() && *p->constant() >= 0; };
    return notNegative(low) && notNegative(room);
  }

  /// 0 <= value < step, where conditions say so: a plane holds what a launch touches of it.
  bool isInPlane(const Poly &value, const std::string &step, std::vector<Poly> known) {
    const auto digits = delinearize(model, value);
    if (!digits || !conditions)
      return false;
    for (char axis : {'x', 'y', 'z'}) {
      auto of = [&](const char *base) { return Poly::atom(std::string(base) + "." + axis); };
      known.push_back(of("gridDim") - Poly(1) - of("blockIdx"));
      known.push_back(of("blockDim") - Poly(1) - of("threadIdx"));
      known.push_back(of("gridDim") * of("blockDim") - Poly(1) - of("globalIdx"));
    }
    Poly most;
    for (const Dimension &digit : *digits) {
      Poly stride(1);
      for (const std::string &atom : digit.stride)
        stride = stride * Poly::atom(atom);
      const auto low = lowerBound(model, digit.value, known), high = upperBound(model, digit.value, known);
      const auto text = originalPlanText(model, stride);
      if (!low || !low->constant() || *low->constant() < 0 || !high || !text)
        return false;
      if (!digit.stride.empty())
        conditions->require(*text + " >= 0", "index arithmetic assumes it");
      most = most + stride * *high;
    }
    const auto room = originalPlanText(model, Poly::atom(step) - Poly(1) - most);
    if (room)
      conditions->require(*room + " >= 0", "what lies apart does not overlap");
    return room.has_value();
  }

  /// Of indices in planes: which plane, and where in it. Nothing: they are none.
  std::optional<bool> addEqualInPlanes(const Poly &x, const Poly &y) {
    if (!planes)
      return std::nullopt;
    for (const std::string &step : *planes) {
      const auto px = x.coefficient(step), py = y.coefficient(step);
      if (!px || !py || px->terms.empty() || py->terms.empty())
        continue;
      const Poly rx = x - *px * Poly::atom(step), ry = y - *py * Poly::atom(step);
      if (rx.mentions(step) || ry.mentions(step) || !isInPlane(rx, step, model.facts(a)) ||
          !isInPlane(ry, step, model.facts(b)))
        return false;
      addFact(*px - primed(*py));
      addFact(primed(*py) - *px);
      return addEqual(rx, ry);
    }
    return std::nullopt;
  }

  /// What `first` is for the one and `second` for the other is the same where they meet.
  bool same(const std::string &first, const std::string &second) const {
    const Poly difference = Poly::atom(first) - Poly::atom(other(second));
    auto never = [&](const Poly &positive) {
      std::vector<Poly> all = facts;
      all.push_back(positive - Poly(1));
      return isEmptySet(all);
    };
    return never(difference) && never(Poly(0) - difference);
  }

  bool same(const std::string &index) const { return same(index, index); }

  /// The grid-stride loop around an access, or null.
  const Stmt *strideLoopOf(const Access &access) const {
    for (const Stmt *s : access.path)
      if (s->kind == StmtKind::For && s->init && strides.count(s->init->text))
        return s;
    return nullptr;
  }

  /// The kernel looks at this index, "threadIdx.y".
  bool uses(const std::string &index) const {
    return anyExpr(*model.kernel().body, [&](const ExprRef &e) { return isBuiltin(e, index); });
  }
};

} // namespace

bool optiml::meetInOneIteration(const KernelModel &model, const StrideLoops &strides, const Access &a,
                                const std::string &loopA, const Access &b, const std::string &loopB, KernelState *state,
                                const Planes *planes) {
  return Meeting(model, strides, a, b, state, planes).onlyWhere(loopA, loopB);
}

static bool isParameterArray(const KernelModel &model, const Access &access) {
  const Param *param = model.param(access.array);
  return param && param->type.isPointer();
}

llvm::Error optiml::requireNoVariables(const KernelModel &model, const PartOf &partOf,
                                       const std::vector<const Access *> &accesses) {
  std::map<std::string, std::pair<unsigned, unsigned>> readBy; // part and line
  std::map<std::string, bool> several;
  walk(*model.kernel().body, [&](Stmt &s) {
    const unsigned part = s.kind == StmtKind::Block && !partOf.count(&s) ? 0 : partOf.at(&s);
    ownExprs(s, [&](ExprRef &top) {
      walk(top, [&](const ExprRef &e) {
        if (e->kind != ExprKind::Var || e->type.isConst || model.param(e->text) || model.declaration(e->text) ||
            !(e->type.isInt() || e->type.isFloat() || e->type.cls == Type::Class::Record))
          return;
        auto [it, added] = readBy.try_emplace(e->text, part, e->line);
        several[e->text] |= !added && it->second.first != part;
      });
    });
  });
  for (const auto &[name, place] : readBy)
    for (const Access *access : accesses)
      if (access->write && (several[name] || partOf.at(access->stmt) != place.first))
        return notApplicable("'{0}' may be a variable that another kernel writes (line {1})", name, place.second);
  return llvm::Error::success();
}

bool optiml::comeInAnyOrder(const Access &a, const Access &b) {
  return a.atomic && b.atomic && a.op == b.op && isAtomicUpdate(*a.stmt) && isAtomicUpdate(*b.stmt);
}

llvm::Error optiml::requireSameThread(KernelState &state, const KernelModel &model, const PartOf &partOf,
                                      const StrideLoops &strides, const std::vector<BroughtPart> &brought,
                                      ArrayPairs &disjoint, bool &flows, const Planes *planes) {
  const std::vector<Access> ofRecords = model.accessesOfWholeRecords();
  std::vector<const Access *> accesses;
  for (const Access &access : ofRecords)
    if (access.space == Space::Global)
      accesses.push_back(&access);
  if (accesses.size() > 400)
    return notApplicable("they access memory in more than 400 places");
  if (llvm::Error e = requireNoVariables(model, partOf, accesses))
    return e;
  auto wasBrought = [&](const Access &access) {
    return !brought.empty() && !brought[partOf.at(access.stmt)].loops.empty();
  };
  auto forEachPair = [&](auto &&look) -> llvm::Error {
    for (const Access *a : accesses)
      for (const Access *b : accesses)
        if ((a->write || b->write) &&
            (partOf.at(a->stmt) < partOf.at(b->stmt) || (partOf.at(a->stmt) == partOf.at(b->stmt) && wasBrought(*a))))
          if (llvm::Error e = look(*a, *b))
            return e;
    return llvm::Error::success();
  };
  llvm::Error shared = forEachPair([&](const Access &a, const Access &b) -> llvm::Error {
    if (a.array != b.array)
      return llvm::Error::success();
    flows |= a.write && b.read && a.place->type.isFloat() && partOf.at(a.stmt) != partOf.at(b.stmt);
    const unsigned part = partOf.at(a.stmt);
    if (part == partOf.at(b.stmt)) { // threads that became turns of one thread
      if (a.atomic && b.atomic && !brought[part].tookTurns)
        return llvm::Error::success();
      bool apart = llvm::all_of(brought[part].loops, [&](const std::string &loop) {
        return brought[part].tookTurns || meetInOneIteration(model, strides, a, loop, b, loop);
      });
      if (!apart)
        return notApplicable("threads share elements of '{0}' (lines {1} and {2})", a.array, a.stmt->line,
                             b.stmt->line);
    }
    if (comeInAnyOrder(a, b) || Meeting(model, strides, a, b, &state, planes).onlyInOneThread())
      return llvm::Error::success();
    return notApplicable("one thread may need what another did to '{0}' (lines {1} and {2})", a.array, a.stmt->line,
                         b.stmt->line);
  });
  if (shared)
    return shared;
  return forEachPair([&](const Access &a, const Access &b) -> llvm::Error {
    if (partOf.at(a.stmt) == partOf.at(b.stmt) && !brought[partOf.at(a.stmt)].tookTurns)
      return llvm::Error::success(); // threads of one kernel run in any order
    if (a.array == b.array || isConstantOfFile(model, a) || isConstantOfFile(model, b) ||
        !disjoint.insert(std::minmax(a.array, b.array)).second)
      return llvm::Error::success();
    if (!isParameterArray(model, a) || !isParameterArray(model, b))
      return notApplicable("whether '{0}' and '{1}' overlap cannot be tested (lines {2} and {3})", a.array, b.array,
                           a.stmt->line, b.stmt->line);
    return requireDisjoint(state, model, a.array, b.array, /*byType=*/false);
  });
}
