//===- TreeQueries.cpp - places and loops of kernel trees -----------------===//
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

bool optiml::threadsWorkTogether(const Kernel &kernel) {
  return hasBarrier(*kernel.body) || anyStmt(*kernel.body, [](const Stmt &s) { return s.isShared; });
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

const Stmt *optiml::onlyStatement(const Stmt &s) {
  const Stmt *inner = &s;
  while (inner->kind == StmtKind::Block && inner->body.size() == 1)
    inner = inner->body[0].get();
  return inner->kind == StmtKind::Block ? nullptr : inner;
}

Type optiml::commonType(const Type &a, const Type &b) {
  if (a.isFloat() || b.isFloat())
    return !b.isFloat() || (a.isFloat() && a.bytes >= b.bytes) ? a : b;
  if (a.isPointer())
    return a;
  if (b.isPointer())
    return b;
  auto promoted = [](const Type &t) { return t.bytes < 4 ? Type::makeInt() : t; };
  Type x = promoted(a), y = promoted(b);
  if (x.bytes != y.bytes)
    return x.bytes > y.bytes ? x : y;
  return x.isSigned ? y : x;
}

ExprRef optiml::asNumber(const Type &type, const ExprRef &value) {
  return value->type.sameNumber(type) ? value : castTo(type, value);
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
  namedLoops(kernel,
             [&](const std::string &name, const std::vector<Stmt *> &, Stmt &s) { result.emplace_back(name, &s); });
  return result;
}

std::vector<std::pair<std::string, Stmt *>> optiml::outermostLoops(const Kernel &kernel) {
  std::vector<std::pair<std::string, Stmt *>> result;
  namedLoops(kernel, [&](const std::string &name, const std::vector<Stmt *> &enclosing, Stmt &s) {
    if (llvm::none_of(enclosing, [](const Stmt *outer) { return isLoop(*outer); }))
      result.emplace_back(name, &s);
  });
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

bool optiml::onlyComputes(const ExprRef &e) {
  return !hasEffects(e) && !anyNode(e, [](const ExprRef &n) { return n->kind == ExprKind::Opaque; });
}

Stmt *optiml::findDeclaration(Stmt &s, const std::string &name) {
  Stmt *found = nullptr;
  walk(s, [&](Stmt &t) {
    if (t.kind == StmtKind::Decl && t.text == name)
      found = &t;
  });
  return found;
}

bool optiml::isCertain(const ExprRef &e, const ExprRef &part) {
  if (e == part)
    return true;
  const bool chooses = e->kind == ExprKind::Cond || isBinary(e, "&&") || isBinary(e, "||");
  const size_t count = chooses ? 1 : e->args.size();
  return std::any_of(e->args.begin(), e->args.begin() + ptrdiff_t(count),
                     [&](const ExprRef &arg) { return isCertain(arg, part); });
}

void optiml::replaceNodes(Stmt &root, const std::map<const Expr *, ExprRef> &with) {
  std::function<ExprRef(const ExprRef &)> visit = [&](const ExprRef &e) -> ExprRef {
    if (auto it = with.find(e.get()); it != with.end())
      return it->second;
    return mapOperands(e, visit);
  };
  walk(root, [&](Stmt &s) { ownExprs(s, [&](ExprRef &e) { e = visit(e); }); });
}

void optiml::forEachList(Stmt &root, const std::function<void(std::vector<StmtRef> &)> &f) {
  if (root.kind == StmtKind::Block)
    f(root.body);
  for (StmtRef &child : root.body)
    forEachList(*child, f);
}

const Expr *optiml::objectOf(const ExprRef &place) {
  auto isWithin = [](const Type &base) { return !base.isPointer() || llvm::StringRef(base.text).ends_with("]"); };
  const Expr *object = place.get();
  while ((object->kind == ExprKind::Member || object->kind == ExprKind::Subscript) && isWithin(object->args[0]->type))
    object = object->args[0].get();
  return object;
}

bool optiml::onlyExchangesRegisters(const Expr &call) {
  const llvm::StringRef name = call.text;
  if (call.kind != ExprKind::Call || !call.isLibrary || !name.starts_with("__"))
    return false;
  return name.starts_with("__syncthreads_") || name.starts_with("__shfl_") || name == "__syncwarp" ||
         name == "__ballot_sync" || name == "__any_sync" || name == "__all_sync";
}

std::set<std::string> optiml::usedByAddress(const Kernel &kernel) {
  std::map<std::string, const Stmt *> declared;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind == StmtKind::Decl)
      declared[s.text] = &s;
  });
  std::set<std::string> found;
  std::map<std::string, int> openly; // arrays, and arrays in records, less those whose elements are meant
  auto isMemberArray = [](const ExprRef &e) { return e->kind == ExprKind::Member && isArray(e->type); };
  auto nameOfObject = [](const ExprRef &place) {
    const Expr *root = objectOf(place);
    return root && root->kind == ExprKind::Var ? root->text : std::string();
  };
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (isUnary(e, "&"))
      found.insert(nameOfObject(e->args[0]));
    if (isMemberArray(e))
      ++openly[nameOfObject(e)];
    if (e->kind == ExprKind::Subscript && isMemberArray(e->args[0]))
      --openly[nameOfObject(e->args[0])];
    const auto array = declared.find(e->kind == ExprKind::Var ? e->text : rootName(e));
    if (array == declared.end() || array->second->dims.empty())
      return;
    if (e->kind == ExprKind::Var)
      ++openly[e->text];
    else if (e->kind == ExprKind::Subscript && indicesOf(e).size() == array->second->dims.size())
      --openly[array->first];
  });
  for (const auto &[name, count] : openly)
    if (count != 0)
      found.insert(name);
  std::erase_if(found, [&](const std::string &name) { return !declared.count(name); });
  return found;
}

bool optiml::usesAddressesOfLocals(const Kernel &kernel) {
  const std::set<std::string> names = usedByAddress(kernel);
  return anyStmt(*kernel.body,
                 [&](const Stmt &s) { return s.kind == StmtKind::Decl && !s.isShared && names.count(s.text); });
}

static ExprRef indexAs(const Type &type, const char *base, unsigned axis) {
  auto made = std::make_shared<Expr>(*builtin(axisName(base, axis)));
  made->type = type;
  return made;
}

ExprRef optiml::withoutWideCasts(ExprRef e) {
  auto isWide = [](const Type &type) { return type.isInt() && type.bytes >= 4; };
  while (e->kind == ExprKind::Cast && isWide(e->type) && isWide(e->args[0]->type))
    e = e->args[0];
  return e;
}

ExprRef optiml::rankInBlock(const Type &type) {
  ExprRef rank = indexAs(type, "threadIdx", 2);
  for (unsigned axis : {1u, 0u})
    rank =
        binary("+", binary("*", rank, indexAs(type, "blockDim", axis), type), indexAs(type, "threadIdx", axis), type);
  return rank;
}

ExprRef optiml::threadsInBlock(const Type &type) {
  ExprRef threads = indexAs(type, "blockDim", 0);
  for (unsigned axis : {1u, 2u})
    threads = binary("*", threads, indexAs(type, "blockDim", axis), type);
  return threads;
}

void optiml::renameIndex(Kernel &kernel, const std::string &from, const std::string &to) {
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    if (!isBuiltin(e, from))
      return nullptr;
    auto made = std::make_shared<Expr>(*e);
    made->text = to;
    return made;
  });
}

const Type *optiml::typeOfArgument(const Kernel &kernel, llvm::StringRef name) {
  auto [base, member] = name.split('.');
  for (const Param &param : kernel.params) {
    if (param.name != base)
      continue;
    if (member.empty())
      return &param.type;
    for (const Param::Field &field : param.fields)
      if (field.name == member)
        return &field.type;
  }
  return nullptr;
}
