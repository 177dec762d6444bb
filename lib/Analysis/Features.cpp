//===- Features.cpp - what a kernel is like, without its names ------------===//
//
// Numbers are scaled to about 0..1, so that a distance between kernels makes sense. What stands in a loop counts more
// than what stands outside: four times a level.
//
//===----------------------------------------------------------------------===//
#include "optiml/Analysis/Features.h"
#include <algorithm>
#include <cmath>

using namespace optiml;

namespace {

/// How an address moves along one axis or loop.
enum class Stride { None, Unit, Wide, Irregular };
const char *strideName(Stride stride) {
  static const char *const names[] = {"same", "next", "far", "gather"};
  return names[unsigned(stride)];
}

bool isIndirect(const ExprRef &e) {
  return anyNode(e, [](const ExprRef &n) { return n->kind == ExprKind::Subscript; });
}

class FeatureReader {
public:
  FeatureReader(const Kernel &kernel, const LaunchFacts &launch) : model(kernel), kernel(kernel), launch(launch) {}

  KernelFeatures read() {
    Stmt &body = *kernel.body;
    walkExprs(body, [&](const ExprRef &e) {
      if (e->kind == ExprKind::Builtin && e->text.starts_with("threadIdx."))
        sums[e->text] = 1;
    });
    unsigned dimensions = unsigned(sums.size());
    visit(body, 0, 1);
    for (const Access &access : model.accesses())
      addAccess(access);
    std::map<std::string, double> &n = features.numbers;
    for (auto &[name, value] : n)
      value /= std::max(1.0, accesses);
    n["dimensions"] = dimensions / 3.0;
    n["depth"] = deepest / 4.0;
    n["loops"] = std::log2(1.0 + loops) / 4;
    n["folds"] = std::min(folds, 4u) / 4.0;
    n["atomics"] = std::min(atomics, 2u) / 2.0;
    n["barriers"] = sums.count("barriers");
    n["shared"] = sums.count("shared");
    n["intensity"] = std::log2(1 + operations / std::max(1.0, bytes)) / 4;
    n["functions"] = functions / std::max(1.0, operations);
    n["element"] = elementBytes / std::max(1.0, accesses) / 8;
    double threads = 1;
    for (unsigned i = 0; i < 3; ++i)
      threads *= double(std::max<int64_t>(1, launch.grid[i])) * double(std::max<int64_t>(1, launch.block[i]));
    n["parallelism"] = std::log2(threads) / 24;
    n["iterations"] = std::min(1.0, std::log2(longest) / 24);
    std::erase_if(n, [](const auto &entry) { return entry.second == 0; });
    token("axes " + std::to_string(dimensions));
    std::sort(features.tokens.begin(), features.tokens.end());
    features.tokens.resize(std::min<size_t>(features.tokens.size(), 1000));
    return std::move(features);
  }

private:
  static double weightAt(unsigned depth) { return std::pow(4.0, std::min(depth, 6u)); }

  void visit(Stmt &s, unsigned depth, double trips) {
    bool loop = isLoop(s);
    if (loop)
      visitLoop(s, depth, trips);
    longest = std::max(longest, trips);
    if (s.kind == StmtKind::Barrier) {
      token("barrier d" + std::to_string(depth));
      sums["barriers"] = 1;
    }
    if (s.kind == StmtKind::Decl && !declaredIn.empty())
      declaredIn.back().insert(s.text);
    if (s.kind == StmtKind::Decl && s.isShared)
      sums["shared"] = 1;
    if (s.kind == StmtKind::If && (model.varies(s.expr) & FromMemory))
      token("branch d" + std::to_string(depth) + " on memory");
    ownExprs(s, [&](ExprRef &e) {
      if (e)
        visitExpr(e, depth + loop);
    });
    if (loop) {
      declaredIn.emplace_back();
      if (s.init)
        visit(*s.init, depth, trips);
    }
    for (StmtRef &child : s.body)
      visit(*child, depth + loop, trips);
    if (loop)
      declaredIn.pop_back();
  }

  void visitLoop(Stmt &loop, unsigned depth, double &trips) {
    ++loops;
    deepest = std::max(deepest, depth + 1);
    auto counted = asCountedLoop(loop);
    if (!counted) {
      token("loop d" + std::to_string(depth) + " uncounted");
      trips *= 8;
      return;
    }
    token("loop d" + std::to_string(depth) + " from " + kindOfBound(counted->lower) + " to " +
          kindOfBound(counted->upper));
    auto lower = valueOf(counted->lower), upper = valueOf(counted->upper);
    double count = lower && upper ? double(*upper - *lower) / double(std::max<int64_t>(1, counted->step)) : 8;
    trips *= std::clamp(count, 1.0, 1e9);
  }

  void visitExpr(const ExprRef &e, unsigned depth) {
    double weight = weightAt(depth);
    walk(e, [&](const ExprRef &n) {
      if (n->kind == ExprKind::Binary && n->type.isFloat())
        operations += weight;
      if (n->kind == ExprKind::Call && n->isAtomic) {
        ++atomics;
        token("atomic d" + std::to_string(depth) + (n->type.isFloat() ? " float" : " integer"));
      } else if (n->kind == ExprKind::Call) {
        functions += weight;
        operations += weight;
        token("call d" + std::to_string(depth) + (n->type.isFloat() ? " float" : " integer"));
      }
      // "s += x" on a scalar from outside of the innermost loop.
      bool fold = n->kind == ExprKind::Assign && n->text != "=" && n->args[0]->kind == ExprKind::Var &&
                  !declaredIn.empty() && !declaredIn.back().count(n->args[0]->text);
      if (fold) {
        ++folds;
        operations += weight * n->type.isFloat();
        token("fold d" + std::to_string(depth) + " " + n->text + (n->args[0]->type.isFloat() ? " float" : " integer"));
      }
    });
  }

  void addAccess(const Access &access) {
    if (access.space == Space::Local)
      return;
    unsigned depth = 0;
    std::string innermost;
    bool reused = false;
    for (Stmt *s : access.path)
      if (isLoop(*s)) {
        ++depth;
        if (auto counted = asCountedLoop(*s)) {
          innermost = counted->var;
          reused |= strideAlong(access, counted->var) == Stride::None;
        }
      }
    double weight = weightAt(depth);
    Stride threads = strideOfThreads(access);
    for (const char *axis : {"threadIdx.x", "threadIdx.y", "threadIdx.z"})
      reused |= sums.count(axis) && strideAlong(access, axis) == Stride::None;
    const char *space = access.space == Space::Shared ? "shared" : "global";
    std::string loop = innermost.empty() ? "-" : strideName(strideAlong(access, innermost));
    token(std::string(space) +
          (access.atomic  ? " atomic"
           : access.write ? " write"
                          : " read") +
          " d" + std::to_string(depth) + " threads " + strideName(threads) + " loop " + loop + " " +
          std::to_string(access.bytes) + " bytes");
    if (access.space == Space::Shared)
      return;
    accesses += weight;
    bytes += weight * access.bytes;
    elementBytes += weight * access.bytes;
    features.numbers[std::string("threads.") + strideName(threads)] += weight;
    features.numbers["reuse"] += weight * (reused && access.read);
    features.numbers["divergence"] += weight * diverges(access);
    features.numbers["writes"] += weight * access.write;
  }

  Stride strideAlong(const Poly &subscript, const std::string &atom) const {
    std::optional<Poly> coefficient = subscript.coefficient(atom);
    if (!coefficient)
      return Stride::Irregular;
    std::optional<int64_t> value = coefficient->constant();
    return !value ? Stride::Wide : *value == 0 ? Stride::None : std::abs(*value) == 1 ? Stride::Unit : Stride::Wide;
  }

  Stride strideAlong(const Access &access, const std::string &atom) const {
    Stride worst = Stride::None;
    if (atom.starts_with("threadIdx."))
      worst = strideAlong(access, "globalIdx." + atom.substr(10));
    for (size_t d = 0; d < access.subscripts.size(); ++d) {
      Stride stride = strideAlong(access.subscripts[d], atom);
      if (stride == Stride::Unit && d + 1 < access.subscripts.size())
        stride = Stride::Wide; // along an outer dimension
      worst = std::max(worst, stride);
    }
    return worst;
  }

  /// What neighbouring threads of a warp access.
  Stride strideOfThreads(const Access &access) const {
    Stride worst = strideAlong(access, "threadIdx.x");
    for (size_t d = 0; d < access.subscripts.size(); ++d) {
      const Poly &subscript = access.subscripts[d];
      if (isGather(subscript))
        return Stride::Irregular;
      for (const std::string &atom : subscript.atoms()) {
        if (atom == "threadIdx.x" || atom == "globalIdx.x" || !(model.variesAtom(atom) & ThreadX))
          continue;
        // A loop that starts at the thread's index moves with it; of "(size_t)row" nothing is known but that it moves.
        auto loop = model.loopOf(atom);
        if (!loop)
          worst = std::max(worst, Stride::Wide);
        else if (model.varies(loop->lower) & ThreadX)
          worst = std::max(worst, strideAlong(access, atom));
      }
    }
    return worst;
  }

  bool isGather(const Poly &subscript) const {
    for (const std::string &atom : subscript.atoms()) {
      const Stmt *loaded = model.declaration(atom);
      if (ExprRef e = loaded ? loaded->expr : model.atomExpr(atom); e && isIndirect(e))
        return true;
    }
    return false;
  }

  bool diverges(const Access &access) const {
    for (const Stmt *s : access.path)
      if (s->kind == StmtKind::While || s->kind == StmtKind::Do)
        return true;
    for (const auto &[condition, taken] : access.guards)
      if (model.varies(condition) & FromMemory)
        return true;
    return false;
  }

  /// The value under the captured launch's arguments.
  std::optional<int64_t> valueOf(const ExprRef &e) const {
    Poly p = model.poly(e);
    for (const auto &[name, value] : launch.scalars)
      if (p.mentions(name))
        p = p.substitute(name, Poly(value));
    return p.constant();
  }

  std::string kindOfBound(const ExprRef &e) const {
    if (model.poly(e).constant())
      return "constant";
    unsigned varies = model.varies(e);
    if (isIndirect(e) || (varies & FromMemory))
      return "memory";
    return varies & AnyThread ? "thread" : varies & AnyBlock ? "block" : "argument";
  }

  void token(std::string text) { features.tokens.push_back(std::move(text)); }

  KernelModel model;
  const Kernel &kernel;
  const LaunchFacts &launch;
  KernelFeatures features;
  std::map<std::string, double> sums;
  unsigned deepest = 0, loops = 0, folds = 0, atomics = 0;
  double operations = 0, functions = 0, bytes = 0, accesses = 0, elementBytes = 0, longest = 1;
  std::vector<std::set<std::string>> declaredIn; ///< of every enclosing loop
};

} // namespace

KernelFeatures optiml::kernelFeatures(const Kernel &kernel, const LaunchFacts &launch) {
  return FeatureReader(kernel, launch).read();
}
