//===- StageShared.cpp - stage operands of a loop in shared memory --------===//
//
// stage-shared[kernel/loop:A+B]{tile=K,pad=P}: the loop is strip-mined by K; before each strip the block's threads
// together copy the elements of A and B that the strip reads into shared memory, and the strip reads them there.
//
// Legal when
//  - the block shape is fixed, the loop runs the same for all threads of the block (guards around it are pushed inwards),
//    so that its barriers are uniform;
//  - the arrays are only read by the kernel, and do not overlap what it writes (proved, or a recorded condition);
//  - what the block reads of each array in a strip is an affine box: its extents are constants, and the elements really
//    read by the original are one convex set, found by projecting guards and loop bounds (isl). Only those are loaded, so
//    that nothing is read that the original would not read; the rest of the tile is zero.
//
//===----------------------------------------------------------------------===//
#include "Distribute.h"
#include "Transforms.h"
#include "optiml/Analysis/IntegerSet.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

namespace {

/// A value that runs over a constant range within one strip of one block: a thread index or an inner loop.
struct Runner {
  std::string atom;
  int64_t count; ///< 0 .. count-1
};

/// One dimension of a staged tile.
struct TileDim {
  Poly stride;         ///< in elements of the array
  int64_t low = 0, extent = 1;
  bool alongLoop = false; ///< varies with the strip-mined loop
};

struct Tile {
  std::string array, name;
  Type element;
  ExprRef root;
  Poly base;                 ///< linear index of the element with local coordinates 0
  std::vector<TileDim> dims; ///< outermost stride first
  std::vector<unsigned> layout; ///< order in shared memory, outermost first
  std::vector<Poly> guard;   ///< over the local coordinates "@0", "@1", …
  int64_t pad = 0;
  std::vector<const Access *> accesses;
  std::map<const Access *, std::vector<Poly>> coordinates;
  int64_t elements() const {
    int64_t n = 1;
    for (const TileDim &d : dims)
      n *= d.extent;
    return n;
  }
  int64_t bytes() const {
    int64_t inner = dims[layout.back()].extent;
    return elements() / inner * (inner + pad) * element.bytes;
  }
};

std::string coordinate(size_t i) { return "@" + std::to_string(i); }

class StageShared : public Transform {
public:
  llvm::StringRef name() const override { return "stage-shared"; }
  std::vector<ActionTemplate> sites(const KernelState &state) const override;
  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site, const Params &params) const override;
};

bool insideOf(const Access &access, const Stmt *loop) {
  return std::find(access.path.begin(), access.path.end(), loop) != access.path.end();
}

/// Everything `condition` says is among the facts that addFacts gives.
bool fullyUnderstood(const KernelModel &model, const ExprRef &condition, bool taken) {
  if (condition->kind == ExprKind::Unary && condition->text == "!")
    return fullyUnderstood(model, condition->args[0], !taken);
  if (condition->kind == ExprKind::Binary && condition->text == (taken ? "&&" : "||"))
    return fullyUnderstood(model, condition->args[0], taken) && fullyUnderstood(model, condition->args[1], taken);
  std::vector<Poly> facts;
  model.addFacts(condition, taken, facts);
  if (facts.empty())
    return false;
  for (const Poly &fact : facts) {
    if (!fact.isAffine())
      return false;
    for (const std::string &atom : fact.atoms())
      if (atom[0] == '{')
        return false;
  }
  return true;
}

/// The strip's runners: thread indices and the constant loops between the strip-mined loop and the access.
llvm::Expected<std::vector<Runner>> runnersOf(const KernelModel &model, const Access &access, const Stmt *loop,
                                              const std::string &loopVar, int64_t tile) {
  std::vector<Runner> result;
  for (unsigned axis = 0; axis < 3; ++axis)
    if (model.blockExtent(axis) > 1)
      result.push_back({std::string("threadIdx.") + char('x' + axis), model.blockExtent(axis)});
  result.push_back({loopVar, tile});
  bool within = false;
  for (Stmt *s : access.path) {
    if (s == loop) {
      within = true;
      continue;
    }
    if (!within || s->kind != StmtKind::For)
      continue;
    auto inner = asCountedLoop(*s);
    auto trips = inner ? inner->tripCount() : std::nullopt;
    if (!trips || constantValue(inner->lower) != std::optional<int64_t>(0) || inner->step != 1)
      return notApplicable("an inner loop around {0} has no constant trip count from 0 (line {1})", access.array, s->line);
    result.push_back({inner->var, *trips});
  }
  return result;
}

/// Splits a linear index into dimensions: first by parametric strides, then the rest by gaps between constant strides.
/// Gives for each dimension (stride, varying part); the uniform part of the whole index is what remains.
llvm::Expected<std::vector<std::pair<Poly, Poly>>> splitIndex(const KernelModel &model, const Access &access,
                                                              const std::vector<Runner> &runners) {
  auto runs = [&](const std::string &atom) {
    return std::find_if(runners.begin(), runners.end(), [&](const Runner &r) { return r.atom == atom; });
  };
  std::map<Poly::Monomial, std::map<std::string, int64_t>> byStride; // stride monomial -> runner -> coefficient
  for (const auto &[monomial, c] : access.subscripts[0].terms) {
    Poly::Monomial stride;
    std::string runner;
    for (const std::string &atom : monomial) {
      if (runs(atom) != runners.end()) {
        if (!runner.empty())
          return notApplicable("the index of {0} multiplies two varying values (line {1})", access.array, access.stmt->line);
        runner = atom;
      } else if (model.variesAtom(atom) & (AnyThread | FromMemory)) {
        return notApplicable("the index of {0} depends on '{1}', which is no affine index (line {2})", access.array, atom,
                             access.stmt->line);
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
      if (c < 0)
        return notApplicable("the index of {0} runs backwards (line {1})", access.array, access.stmt->line);
      sorted.emplace_back(c, atom);
    }
    std::sort(sorted.begin(), sorted.end());
    int64_t unit = sorted[0].first, span = 0;
    Poly value;
    for (size_t i = 0; i < sorted.size(); ++i) {
      auto [c, atom] = sorted[i];
      int64_t count = runs(atom)->count;
      bool divides = std::all_of(sorted.begin() + long(i), sorted.end(), [&](const auto &s) { return s.first % c == 0; });
      if (c > span + unit && span > 0 && divides) {
        dims.emplace_back(factor * Poly(unit), value);
        value = Poly();
        unit = c;
        span = 0;
      } else if (c % unit != 0) {
        return notApplicable("the index of {0} has strides that do not nest (line {1})", access.array, access.stmt->line);
      }
      value = value + Poly(c / unit) * Poly::atom(atom);
      span += c * (count - 1);
    }
    dims.emplace_back(factor * Poly(unit), value);
  }
  return dims;
}

/// The tile of one array for one strip.
llvm::Expected<Tile> planTile(const KernelModel &model, const std::string &array, const Stmt *loop,
                              const CountedLoop &counted, const std::string &stripVar, int64_t tileSize) {
  Tile tile;
  tile.array = array;
  std::vector<SetPiece> pieces;
  std::set<std::string> hidden;
  struct Shape {
    const Access *access;
    std::vector<std::pair<Poly, Poly>> dims;
    Poly uniform;
    std::vector<Runner> runners;
  };
  std::vector<Shape> shapes;
  for (const Access &access : model.accesses()) {
    if (access.array != array)
      continue;
    if (access.write)
      return notApplicable("{0} is written (line {1})", array, access.stmt->line);
    if (!insideOf(access, loop))
      continue;
    if (access.space != Space::Global || access.subscripts.size() != 1 || access.root->kind != ExprKind::Var)
      return notApplicable("{0} is not a plain global array (line {1})", array, access.stmt->line);
    if (!access.node->type.isFloat() && !access.node->type.isInt())
      return notApplicable("the elements of {0} are not numbers", array);
    if (!model.stable(access.subscripts[0]))
      return notApplicable("the index of {0} uses a variable that changes (line {1})", array, access.stmt->line);
    for (const auto &[condition, taken] : access.guards) {
      bool header = false; // loop headers come as bounds
      for (const Stmt *s : access.path)
        header |= s->kind == StmtKind::For && s->expr == condition;
      if (!header && !fullyUnderstood(model, condition, taken))
        return notApplicable("the condition around {0} is not affine (line {1})", array, access.stmt->line);
    }
    auto runners = runnersOf(model, access, loop, counted.var, tileSize);
    if (!runners)
      return runners.takeError();
    auto dims = splitIndex(model, access, *runners);
    if (!dims)
      return dims.takeError();
    Poly uniform = access.subscripts[0];
    for (const auto &[stride, value] : *dims)
      uniform = uniform - stride * value;
    shapes.push_back({&access, *dims, uniform, *runners});
    tile.element = access.node->type;
    tile.root = access.root;
  }
  if (shapes.empty())
    return notApplicable("{0} is not read in the loop", array);
  tile.element.isConst = tile.element.isVolatile = false;

  // All accesses must have the same strides; their offsets may differ by constants along each.
  const Shape &first = shapes.front();
  std::map<std::string, size_t> dimOf;
  std::vector<Poly> strides;
  for (const Shape &shape : shapes)
    for (const auto &[stride, value] : shape.dims)
      if (dimOf.emplace(stride.str(), strides.size()).second)
        strides.push_back(stride);
  if (strides.empty())
    return notApplicable("{0} is read at one place only", array);
  std::vector<std::vector<Poly>> values(shapes.size(), std::vector<Poly>(strides.size()));
  for (size_t s = 0; s < shapes.size(); ++s) {
    for (const auto &[stride, value] : shapes[s].dims)
      values[s][dimOf[stride.str()]] = value;
    Poly difference = shapes[s].uniform - first.uniform;
    // Take whole multiples of the strides out of the difference, the largest first; nothing may remain.
    for (size_t pass = 0; pass < 2; ++pass)
      for (size_t d = 0; d < strides.size(); ++d) {
        bool parametric = !strides[d].constant();
        if (parametric != (pass == 0))
          continue;
        const auto &[monomial, unit] = *strides[d].terms.begin();
        auto it = difference.terms.find(monomial);
        if (it == difference.terms.end())
          continue;
        int64_t steps = it->second / unit;
        if (!parametric && steps * unit != it->second) // a remainder goes to a smaller constant stride
          steps = it->second / unit;
        values[s][d] = values[s][d] + Poly(steps);
        difference = difference - Poly(steps) * strides[d];
      }
    if (!difference.terms.empty())
      return notApplicable("{0} is read at places whose distance is not constant (line {1})", array,
                           shapes[s].access->stmt->line);
  }
  // Bounding box.
  for (size_t d = 0; d < strides.size(); ++d) {
    TileDim dim;
    dim.stride = strides[d];
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (size_t s = 0; s < shapes.size(); ++s) {
      int64_t lo = values[s][d].constantTerm(), hi = lo;
      for (const auto &[monomial, c] : values[s][d].terms) {
        if (monomial.empty())
          continue;
        for (const Runner &r : shapes[s].runners)
          if (monomial[0] == r.atom)
            hi += c * (r.count - 1);
        dim.alongLoop |= monomial[0] == counted.var;
      }
      low = std::min(low, lo);
      high = std::max(high, hi);
    }
    dim.low = low;
    dim.extent = high - low + 1;
    tile.dims.push_back(dim);
  }
  tile.base = first.uniform.substitute(counted.var, Poly::atom(stripVar));
  for (const TileDim &dim : tile.dims) {
    tile.base = tile.base + dim.stride * Poly(dim.low);
    if (dim.alongLoop)
      tile.base = tile.base + dim.stride * Poly(0);
  }
  // The linear index counts the loop variable from the strip's start.
  Poly alongLoop;
  for (size_t d = 0; d < strides.size(); ++d)
    if (auto c = values[0][d].coefficient(counted.var))
      alongLoop = alongLoop + strides[d] * *c;
  for (size_t s = 1; s < shapes.size(); ++s) {
    Poly other;
    for (size_t d = 0; d < strides.size(); ++d)
      if (auto c = values[s][d].coefficient(counted.var))
        other = other + strides[d] * *c;
    if (!(other == alongLoop))
      return notApplicable("reads of {0} advance differently with '{1}'", array, counted.var);
  }
  tile.base = tile.base + alongLoop * Poly::atom(stripVar);

  // The elements that are really read: project guards and bounds on the local coordinates.
  std::vector<std::string> coordinates;
  std::vector<Poly> context;
  for (size_t d = 0; d < tile.dims.size(); ++d) {
    coordinates.push_back(coordinate(d));
    context.push_back(Poly::atom(coordinate(d)));
    context.push_back(Poly(tile.dims[d].extent - 1) - Poly::atom(coordinate(d)));
  }
  Poly strip = Poly::atom(stripVar), lower = model.poly(counted.lower), upper = model.poly(counted.upper);
  context.push_back(strip - lower);
  context.push_back(upper - strip - Poly(1));
  for (size_t s = 0; s < shapes.size(); ++s) {
    SetPiece piece;
    std::vector<Poly> local;
    for (size_t d = 0; d < tile.dims.size(); ++d)
      local.push_back(values[s][d] - Poly(tile.dims[d].low));
    piece.values = local;
    tile.coordinates[shapes[s].access] = local;
    tile.accesses.push_back(shapes[s].access);
    for (const Poly &fact : model.facts(*shapes[s].access))
      if (fact.isAffine()) // the loop variable is strip start + offset
        piece.facts.push_back(fact.substitute(counted.var, strip + Poly::atom(counted.var)));
    for (const Runner &r : shapes[s].runners) {
      hidden.insert(r.atom);
      piece.facts.push_back(Poly::atom(r.atom));
      piece.facts.push_back(Poly(r.count - 1) - Poly::atom(r.atom));
    }
    pieces.push_back(piece);
  }
  for (unsigned axis = 0; axis < 3; ++axis) {
    std::string suffix(1, char('x' + axis));
    context.push_back(Poly::atom("blockIdx." + suffix));
    context.push_back(Poly::atom("gridDim." + suffix) - Poly::atom("blockIdx." + suffix) - Poly(1));
  }
  auto guard = projectSet(coordinates, {hidden.begin(), hidden.end()}, pieces, context);
  if (!guard)
    return notApplicable("the elements of {0} that a strip reads are not one convex set", array);
  tile.guard = *guard;

  // Largest stride first; parametric strides count as large. In shared memory the strip's own dimension goes outermost, so
  // that what a thread reads for one step lies together.
  std::vector<unsigned> order(tile.dims.size());
  for (unsigned i = 0; i < order.size(); ++i)
    order[i] = i;
  auto size = [&](unsigned d) { return tile.dims[d].stride.constant().value_or(INT64_MAX); };
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return size(a) > size(b); });
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return tile.dims[a].alongLoop > tile.dims[b].alongLoop; });
  tile.layout = order;
  return tile;
}

ExprRef zeroOf(const Type &type) {
  if (!type.isFloat())
    return intLit(0);
  auto zero = std::make_shared<Expr>();
  zero->kind = ExprKind::FloatLit;
  zero->type = type;
  zero->text = type.bytes == 4 ? "0.0f" : "0.0";
  return zero;
}

/// Condition text of c >= 0, with what is negative moved to the other side: "row + r < M".
ExprRef constraintExpr(const KernelModel &model, const Poly &constraint) {
  Poly negative, positive;
  for (const auto &[monomial, c] : constraint.terms) {
    Poly term(c);
    for (const std::string &atom : monomial)
      term = term * Poly::atom(atom);
    if (monomial.empty() ? c < 0 : c < 0)
      negative = negative - term;
    else
      positive = positive + term;
  }
  // negative <= positive  as  negative < positive + 1, preferring to cancel the constant
  Poly left = negative, right = positive + Poly(1);
  int64_t constant = std::min(left.constantTerm(), right.constantTerm());
  left = left - Poly(constant);
  right = right - Poly(constant);
  // The indices are unsigned, a bound may be negative: compare as int.
  auto asInt = [&](const Poly &p) {
    return rewrite(polyExpr(model, p), [](const ExprRef &e) -> ExprRef {
      if (e->kind != ExprKind::Builtin)
        return nullptr;
      auto cast = std::make_shared<Expr>(*e);
      cast->kind = ExprKind::Cast;
      cast->type = Type::makeInt();
      cast->text = "int";
      cast->args = {e};
      return cast;
    });
  };
  if (left.terms.empty() && right.constantTerm() == 1) // 0 < p + 1
    return binary(">=", asInt(right - Poly(1)), intLit(0));
  return lessThan(asInt(left), asInt(right));
}

/// The cooperative copy of one tile.
std::vector<StmtRef> loadLoop(std::set<std::string> &taken, const KernelModel &model, const Tile &tile, const ExprRef &tid, int64_t threads) {
  int64_t total = tile.elements(), trips = (total + threads - 1) / threads;
  Type integer = Type::makeInt();
  Type constInt = integer;
  constInt.isConst = true;
  std::string counter = freshName(taken, "i"), element = trips == 1 ? "" : freshName(taken, "e");
  taken.erase(counter); // sibling loops share it
  ExprRef e = trips == 1 ? tid : var(element, integer);
  // Consecutive threads take consecutive elements of the array: the smallest stride runs fastest.
  std::vector<unsigned> order = tile.layout;
  auto size = [&](unsigned d) { return tile.dims[d].stride.constant().value_or(INT64_MAX); };
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return size(a) > size(b); });
  std::vector<StmtRef> body;
  std::map<std::string, ExprRef> coordinates;
  int64_t inner = 1;
  std::vector<std::string> names;
  std::vector<StmtRef> decls;
  for (size_t i = order.size(); i-- > 0;) {
    unsigned d = order[i];
    std::string name = freshName(taken, order.size() == 1 ? "c" : i == 0 ? "r" : i + 1 == order.size() ? "c" : "q");
    ExprRef value = inner == 1 ? e : binary("/", e, intLit(inner));
    if (i != 0)
      value = binary("%", value, intLit(tile.dims[d].extent));
    decls.insert(decls.begin(), declStmt(name, constInt, value));
    coordinates[coordinate(d)] = var(name, integer);
    inner *= tile.dims[d].extent;
  }
  ExprRef guard;
  for (const Poly &constraint : tile.guard)
    guard = logicalAnd(guard, substitute(constraintExpr(model, constraint), coordinates));
  Poly index = tile.base;
  for (size_t d = 0; d < tile.dims.size(); ++d)
    index = index + tile.dims[d].stride * Poly::atom(coordinate(d));
  ExprRef load = subscript(tile.root, substitute(polyExpr(model, index), coordinates), tile.element);
  if (guard)
    load = conditional(guard, load, zeroOf(tile.element));
  ExprRef target = var(tile.name, tile.element);
  for (unsigned d : tile.layout)
    target = subscript(target, coordinates[coordinate(d)], tile.element);
  decls.push_back(exprStmt(assign("=", target, load)));
  if (trips > 1)
    body.push_back(declStmt(element, constInt, add(tid, mul(var(counter, integer), intLit(threads)))));
  if (total % threads != 0)
    body.push_back(ifStmt(lessThan(e, intLit(total)), block(decls)));
  else
    body.insert(body.end(), decls.begin(), decls.end());
  if (trips == 1)
    return body;
  return {countedFor(counter, integer, intLit(0), intLit(trips), 1, block(body), FullUnroll)};
}

/// Statements under `s` that only add products of staged values to private variables.
bool onlyAddsProducts(Stmt &s, const std::set<std::string> &tiles, const KernelModel &model) {
  switch (s.kind) {
  case StmtKind::Block:
  case StmtKind::For:
    for (StmtRef &child : s.body)
      if (!onlyAddsProducts(*child, tiles, model))
        return false;
    return s.kind == StmtKind::Block || asCountedLoop(s).has_value();
  case StmtKind::Expr:
    break;
  default:
    return false;
  }
  if (s.expr->kind != ExprKind::Assign)
    return false;
  ExprRef value = s.expr->args[1];
  if (s.expr->text == "=") { // acc = acc + product
    if (value->kind != ExprKind::Binary || value->text != "+")
      return false;
    if (equal(value->args[0], s.expr->args[0]))
      value = value->args[1];
    else if (equal(value->args[1], s.expr->args[0]))
      value = value->args[0];
    else
      return false;
  } else if (s.expr->text != "+=") {
    return false;
  }
  bool hasTile = false, plain = true;
  std::function<void(const ExprRef &)> factors = [&](const ExprRef &e) {
    if (e->kind == ExprKind::Binary && e->text == "*") {
      factors(e->args[0]);
      factors(e->args[1]);
      return;
    }
    const Expr *root = e.get();
    while (root->kind == ExprKind::Subscript)
      root = root->args[0].get();
    bool tile = e->kind == ExprKind::Subscript && tiles.count(root->text);
    hasTile |= tile;
    // No other factor: beyond the end a tile's zero times an infinite parameter would be no zero.
    plain &= tile || e->kind == ExprKind::FloatLit || e->kind == ExprKind::IntLit;
  };
  factors(value);
  return hasTile && plain;
}

/// Removes guards from statements that then only change private values nobody looks at without the same guard.
class GuardDropper {
public:
  GuardDropper(Kernel &kernel, const std::set<std::string> &tiles) : kernel(kernel), tiles(tiles) {}

  void run(Stmt &loop) {
    forEachList(loop, [&](std::vector<StmtRef> &list) {
      for (size_t i = 0; i < list.size(); ++i) {
        StmtRef s = list[i];
        if (s->kind != StmtKind::If || s->body.size() != 1 || !removable(*s))
          continue;
        std::vector<StmtRef> inner = s->body[0]->body;
        list.erase(list.begin() + long(i));
        list.insert(list.begin() + long(i), inner.begin(), inner.end());
        i += inner.size() - 1;
      }
    });
  }

private:
  Kernel &kernel;
  const std::set<std::string> &tiles;

  static std::string rootName(const ExprRef &e) {
    const Expr *root = e.get();
    while (root->kind == ExprKind::Subscript)
      root = root->args[0].get();
    return root->kind == ExprKind::Var ? root->text : "";
  }

  bool harmless(const ExprRef &value) {
    bool ok = true;
    std::function<void(const ExprRef &)> visit = [&](const ExprRef &e) {
      if (e->kind == ExprKind::Subscript) {
        const Stmt *d = declarationOf(rootName(e));
        ok &= tiles.count(rootName(e)) || (d && !d->dims.empty() && !d->isShared);
      }
      ok &= e->pure && e->kind != ExprKind::Assign && e->kind != ExprKind::IncDec;
      ok &= !(e->kind == ExprKind::Binary && (e->text == "/" || e->text == "%") && e->type.isInt());
      ok &= !(e->kind == ExprKind::Member && e->args[0]->type.isPointer());
      for (const ExprRef &arg : e->args)
        visit(arg);
    };
    visit(value);
    return ok;
  }
  const Stmt *declarationOf(const std::string &name) {
    const Stmt *found = nullptr;
    walk(*kernel.body, [&](Stmt &s) {
      if (s.kind == StmtKind::Decl && s.text == name)
        found = &s;
    });
    return found;
  }

  bool removable(Stmt &branch) {
    for (StmtRef &s : branch.body[0]->body) {
      if (s->kind != StmtKind::Expr || s->expr->kind != ExprKind::Assign)
        return false;
      std::string target = rootName(s->expr->args[0]);
      const Stmt *d = declarationOf(target);
      if (target.empty() || !d || d->isShared || !harmless(s->expr->args[1]))
        return false;
      if (!onlyUsedUnder(target, branch.expr))
        return false;
    }
    return true;
  }

  /// Outside of statements that only update `name` itself, `name` is used under `guard` alone.
  bool onlyUsedUnder(const std::string &name, const ExprRef &guard) {
    bool ok = true;
    std::function<void(Stmt &, bool)> visit = [&](Stmt &s, bool guarded) {
      auto uses = [&](const ExprRef &e) { return e && mentions(e, name); };
      if (!guarded && s.kind != StmtKind::Decl) {
        bool update = s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && rootName(s.expr->args[0]) == name;
        if (s.kind == StmtKind::Opaque)
          ok &= !s.names.count(name);
        if (!update)
          ok &= !uses(s.expr) && !uses(s.step);
      } else if (!guarded && s.kind == StmtKind::Decl && s.text != name) {
        ok &= !uses(s.expr);
      }
      if (s.init)
        visit(*s.init, guarded);
      for (size_t i = 0; i < s.body.size(); ++i)
        visit(*s.body[i], guarded || (s.kind == StmtKind::If && i == 0 && implies(s.expr, guard)));
    };
    visit(*kernel.body, false);
    return ok;
  }
  static bool implies(const ExprRef &condition, const ExprRef &guard) {
    if (equal(condition, guard))
      return true;
    return condition->kind == ExprKind::Binary && condition->text == "&&" &&
           (implies(condition->args[0], guard) || implies(condition->args[1], guard));
  }
};

llvm::Expected<KernelState> StageShared::apply(const KernelState &state, llvm::StringRef site, const Params &params) const {
  std::array<int64_t, 3> shape = state.pinnedBlock();
  if (!shape[0] || !shape[1] || !shape[2])
    return notApplicable("the block shape is not fixed yet (apply block-shape first)");
  int64_t threads = shape[0] * shape[1] * shape[2];
  long tileSize = paramInt(params, "tile", 8);
  if (tileSize < 1 || tileSize > 256)
    return notApplicable("the tile must be 1 to 256");
  auto [path, arrayList] = site.rsplit(':');
  auto kernel = state.tree->clone();
  if (llvm::Error e = removeEarlyReturns(*kernel))
    return e;
  Stmt *loop = findLoop(*kernel, path);
  if (!loop)
    return notApplicable("there is no counted loop '{0}'", path);
  if (hasBarrier(*loop))
    return notApplicable("the loop already synchronizes");
  {
    KernelModel before(*kernel, shape);
    if (unsigned line = before.unknownEffectLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    auto contains = [&](Stmt &s) {
      bool found = false;
      walk(s, [&](Stmt &t) { found |= &t == loop; });
      return found;
    };
    Distributor distributor(*kernel, before, {}, AnyThread, contains);
    auto body = distributor.run();
    if (!body)
      return body.takeError();
    kernel->body = *body;
  }
  loop = findLoop(*kernel, path);
  if (!loop)
    return notApplicable("the loop cannot be reached by all threads of a block");
  auto counted = asCountedLoop(*loop);
  if (counted->step != 1)
    return notApplicable("the loop's step is not 1");
  KernelModel model(*kernel, shape);
  KernelState result = state;
  unsigned headerVaries = model.varies(counted->lower) | model.varies(counted->upper);
  if (headerVaries & (AnyThread | FromMemory))
    return notApplicable("the loop does not run the same for all threads of a block");

  std::string strip = freshName(*kernel, counted->var + "0");
  std::vector<Tile> tiles;
  llvm::SmallVector<llvm::StringRef, 4> arrays;
  arrayList.split(arrays, '+', -1, /*KeepEmpty=*/false);
  std::set<std::string> tileNames;
  int64_t bytes = 0;
  walk(*kernel->body, [&](Stmt &s) {
    if (!s.isShared)
      return;
    int64_t n = s.type.bytes;
    for (const ExprRef &d : s.dims)
      n *= d ? constantValue(d).value_or(0) : 0;
    bytes += n;
  });
  for (llvm::StringRef array : arrays) {
    auto tile = planTile(model, array.str(), loop, *counted, strip, tileSize);
    if (!tile)
      return tile.takeError();
    tile->name = freshName(*kernel, array.str() + "_tile");
    unsigned innermost = tile->layout.back();
    bool transposed = false; // the array's own fastest dimension is not innermost in shared memory
    for (const TileDim &d : tile->dims)
      transposed |= d.stride.constant() == std::optional<int64_t>(1) && &d != &tile->dims[innermost];
    tile->pad = paramInt(params, "pad", transposed ? 16 / std::max(1u, tile->element.bytes) : 0);
    if (tile->pad < 0 || tile->pad > 64)
      return notApplicable("the padding must be 0 to 64");
    bytes += tile->bytes();
    tileNames.insert(tile->name);
    std::set<std::string> written;
    for (const Access &access : model.accesses())
      if (access.write && access.space == Space::Global)
        written.insert(access.array);
    for (const std::string &other : written)
      if (llvm::Error e = requireDisjoint(result, model, tile->array, other))
        return e;
    tiles.push_back(std::move(*tile));
  }
  if (tiles.empty())
    return notApplicable("no array is named");
  if (bytes > int64_t(state.hints.maxSharedBytes))
    return notApplicable("{0} bytes of shared memory are too many", bytes);

  // The strip: load, barrier, compute, barrier.
  Type integer = counted->type;
  integer.isConst = false;
  ExprRef stripValue = var(strip, integer), offset = var(counted->var, Type::makeInt());
  std::string tidName = freshName(*kernel, "tid");
  ExprRef linear = axisBuiltin("threadIdx", 0);
  if (shape[1] > 1)
    linear = add(linear, mul(axisBuiltin("threadIdx", 1), intLit(shape[0])));
  if (shape[2] > 1)
    linear = add(linear, mul(axisBuiltin("threadIdx", 2), intLit(shape[0] * shape[1])));
  std::vector<StmtRef> outer;
  std::set<std::string> taken = allNames(*kernel);
  for (const Tile &tile : tiles)
    llvm::append_range(outer, loadLoop(taken, model, tile, var(tidName, Type::makeInt()), threads));
  outer.push_back(barrierStmt());

  StmtRef body = clone(loop->body[0]);
  {
    // Replace the staged reads while the nodes are still those the model has seen.
    std::map<const Expr *, ExprRef> replacement;
    for (const Tile &tile : tiles)
      for (const Access *access : tile.accesses) {
        ExprRef element = var(tile.name, tile.element);
        for (unsigned d : tile.layout)
          element = subscript(element, polyExpr(model, tile.coordinates.at(access)[d]), tile.element);
        replacement[access->node.get()] = element;
      }
    std::function<ExprRef(const ExprRef &)> replace = [&](const ExprRef &e) -> ExprRef {
      if (auto it = replacement.find(e.get()); it != replacement.end()) {
        return it->second;
      }
      // Not staged: the loop variable is the strip's start plus the offset.
      if (e->kind == ExprKind::Var && e->text == counted->var)
        return add(stripValue, offset);
      std::vector<ExprRef> args;
      bool changed = false;
      for (const ExprRef &arg : e->args) {
        args.push_back(replace(arg));
        changed |= args.back() != arg;
      }
      if (!changed)
        return e;
      auto copy = std::make_shared<Expr>(*e);
      copy->args = args;
      return copy;
    };
    if (opaqueMentions(*body, {counted->var}))
      return notApplicable("a construct that is kept verbatim uses '{0}'", counted->var);
    walk(*body, [&](Stmt &s) { ownExprs(s, [&](ExprRef &e) { e = replace(e); }); });
  }
  // Private accumulators of guarded sums need no guard any more: the tiles hold zeros where nothing may be read.
  auto place = findPlace(*kernel->body, loop);
  loop->body = {body}; // so that uses are seen in the new form
  GuardDropper(*kernel, tileNames).run(*loop);
  body = loop->body[0];
  bool zeroSafe = !state.hints.strictFloat && onlyAddsProducts(*body, tileNames, model) &&
                  std::any_of(tiles.begin(), tiles.end(), [](const Tile &t) {
                    return std::any_of(t.dims.begin(), t.dims.end(), [](const TileDim &d) { return d.alongLoop; });
                  });
  for (const Tile &tile : tiles) // a tile that does not move with the loop is not zero beyond its end
    zeroSafe &= std::any_of(tile.dims.begin(), tile.dims.end(), [](const TileDim &d) { return d.alongLoop; });
  auto trips = counted->tripCount();
  bool whole = trips && *trips % tileSize == 0;
  if (!whole && !zeroSafe)
    body = block({ifStmt(lessThan(add(stripValue, offset), counted->upper), body)});
  outer.push_back(countedFor(counted->var, Type::makeInt(), intLit(0), intLit(tileSize), 1, body, FullUnroll));
  outer.push_back(barrierStmt());
  place->block->body[place->index] = countedFor(strip, integer, counted->lower, counted->upper, tileSize, block(outer), NoUnroll);

  std::vector<StmtRef> head;
  for (const Tile &tile : tiles) {
    std::vector<ExprRef> dims;
    for (unsigned d : tile.layout)
      dims.push_back(intLit(tile.dims[d].extent + (d == tile.layout.back() ? tile.pad : 0)));
    StmtRef decl = declStmt(tile.name, tile.element, nullptr, dims);
    decl->isShared = true;
    decl->align = 16;
    head.push_back(decl);
  }
  Type constInt = Type::makeInt();
  constInt.isConst = true;
  head.push_back(declStmt(tidName, constInt, linear));
  kernel->body->body.insert(kernel->body->body.begin(), head.begin(), head.end());
  result.tree = kernel;
  return result;
}

std::vector<ActionTemplate> StageShared::sites(const KernelState &state) const {
  std::vector<ActionTemplate> result;
  if (!state.pinnedBlock()[0])
    return result;
  KernelModel model(*state.tree, state.pinnedBlock());
  for (const auto &[path, loop] : countedLoops(*state.tree)) {
    if (loop->unroll != NoUnroll)
      continue;
    std::vector<std::string> arrays;
    for (const Access &access : model.accesses())
      if (insideOf(access, loop) && access.read && !access.write && access.space == Space::Global &&
          !model.writesArray(access.array) && std::find(arrays.begin(), arrays.end(), access.array) == arrays.end())
        arrays.push_back(access.array);
    std::vector<std::string> usable;
    std::string joint;
    auto offer = [&](const std::string &list) {
      ActionTemplate site{"stage-shared", state.rewrite.original + path + ":" + list, {}};
      for (int tile : {8, 16, 32, 4}) {
        Params params = {{"tile", std::to_string(tile)}};
        auto applied = apply(state, path + ":" + list, params);
        if (applied)
          site.values.push_back(params);
        else
          llvm::consumeError(applied.takeError());
      }
      if (!site.values.empty())
        result.push_back(site);
      return !site.values.empty();
    };
    size_t before = result.size();
    for (const std::string &array : arrays)
      if (offer(array))
        joint += (joint.empty() ? "" : "+") + array, usable.push_back(array);
    if (usable.size() > 1) { // all of them together first
      offer(joint);
      std::rotate(result.begin() + long(before), result.end() - 1, result.end());
    }
  }
  return result;
}
} // namespace

const Transform *optiml::makeStageShared() {
  static const StageShared transform;
  return &transform;
}
