//===- Common.cpp - what several transforms need --------------------------===//
#include "Common.h"
#include <algorithm>

using namespace optiml;

//===----------------------------------------------------------------------===//
// Trees of polynomials
//===----------------------------------------------------------------------===//

/// Atoms in reading order: block indices, thread indices, other names, then local coordinates.
static int readingRank(const Poly::Monomial &monomial) {
  int rank = monomial.empty() ? 9 : 0;
  for (const std::string &atom : monomial)
    rank = std::max(rank, atom.rfind("blockIdx", 0) == 0 ? 0 : atom[0] == '@' ? 4 : atom.rfind("threadIdx", 0) == 0 ? 2 : 1);
  return rank;
}

static ExprRef memberOf(const Param &param, const Param::Field &field) {
  auto e = std::make_shared<Expr>();
  e->kind = ExprKind::Member;
  e->text = field.name;
  e->args = {var(param.name, param.type)};
  e->value = int64_t(field.offset);
  e->type = field.type;
  e->type.isConst = false;
  return e;
}

static ExprRef atomTree(const KernelModel &model, const std::string &atom) {
  if (ExprRef e = model.atomExpr(atom))
    return e;
  auto [base, member] = llvm::StringRef(atom).split('.');
  if (base.ends_with("Idx") || base.ends_with("Dim"))
    return builtin(atom);
  if (const Param *param = model.param(base.str()); param && !member.empty())
    for (const Param::Field &field : param->fields)
      if (field.name == member)
        return memberOf(*param, field);
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
    product = mul(product, magnitude < 0 ? unary("-", intLit(-magnitude), Type::makeInt()) : intLit(magnitude));
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

bool optiml::threadsWorkTogether(const Kernel &kernel) {
  bool together = hasBarrier(*kernel.body);
  walk(*kernel.body, [&](Stmt &s) { together |= s.isShared; });
  return together;
}

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

void optiml::replaceNodes(Stmt &root, const std::map<const Expr *, ExprRef> &with) {
  std::function<ExprRef(const ExprRef &)> visit = [&](const ExprRef &e) -> ExprRef {
    if (auto it = with.find(e.get()); it != with.end())
      return it->second;
    std::vector<ExprRef> args;
    bool changed = false;
    for (const ExprRef &arg : e->args) {
      args.push_back(visit(arg));
      changed |= args.back() != arg;
    }
    if (!changed)
      return e;
    auto copy = std::make_shared<Expr>(*e);
    copy->args = args;
    return copy;
  };
  walk(root, [&](Stmt &s) { ownExprs(s, [&](ExprRef &e) { e = visit(e); }); });
}
