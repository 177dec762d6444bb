//===- VectorizeAccess.cpp - neighbouring elements in one access ----------===//
//
// vectorize-access[kernel]{width=4}: a thread does the work of `width` threads that follow one another along x. What they
// load from and store to neighbouring elements becomes accesses of 4 to 16 bytes (float4, int2, uchar4, …); the rest is
// a loop over the lanes. Elements may be records of numbers of one type: four points of three floats are three float4.
// Where fewer than `width` elements are left, the lanes access them one by one.
//
// Legal: threads of a kernel without barriers run in any order, so that loads of one lane may come before stores of
// another. Within a lane, loads move up and stores move down only past what provably accesses other memory. An array's
// vector is aligned when the array is (a condition) and the rest of its index is a multiple of the width (proved, or a
// condition on parameters). An element is accessed only if the original accesses it in every lane.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "VectorStream.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace optiml;

namespace {

class Vectorizer {
public:
  Vectorizer(KernelState &state, Kernel &kernel, const KernelModel &model, int64_t width)
      : state(state), kernel(kernel), model(model), width(width), taken(allNames(kernel)) {}
  llvm::Error run();

private:
  llvm::Error findBody();
  llvm::Error findIndices();
  llvm::Expected<std::optional<VectorStream>> streamOf(const std::string &array);
  /// Every way through `s` stores into that member of the array's element.
  bool stores(const Stmt &s, const std::string &array, int64_t offset) const;
  llvm::Error requireOrder(const VectorStream &stream);
  bool always(const Access &access) const {
    return access.path.back() == body && access.guards.size() == guardCount && access.stmt->kind != StmtKind::For;
  }
  bool isBound(const ExprRef &part) const;
  std::optional<int64_t> stepAlong(const Poly &p) const;
  bool wholeMultiple(const Poly &rest);
  ExprRef atLane(const ExprRef &e, const ExprRef &lane) const;
  void atLane(Stmt &s, const ExprRef &lane) const;
  ExprRef lastLaneGuard() const;
  StmtRef laneLoop(std::vector<StmtRef> stmts, int unroll) const {
    return countedFor(laneName, Type::makeInt(), intLit(0), intLit(width), 1, block(std::move(stmts)), unroll);
  }
  int64_t vectorsOf(const VectorStream &stream) const { return width * stream.count / stream.together; }
  ExprRef vectorPlace(const VectorStream &stream, int64_t number, bool store) const;
  void load(VectorStream &stream, std::vector<StmtRef> &out);
  void store(const VectorStream &stream, std::vector<StmtRef> &out) const;

  KernelState &state;
  Kernel &kernel;
  const KernelModel &model;
  int64_t width;
  std::set<std::string> taken;
  Stmt *guard = nullptr, *body = nullptr; ///< if (guard) body: all the kernel does
  size_t guardCount = 0;                  ///< conditions around the body
  ExprRef bounds;                         ///< conjunction of these
  std::map<std::string, int64_t> indices; ///< integer locals that grow with the lane, by so much
  std::vector<StmtRef> indexDecls;        ///< those in the body
  std::vector<VectorStream> streams;
  std::vector<std::string> multiples;     ///< values that are multiples of the width
  std::string laneName;
};

/// globalIdx.x < n && …, terms one by one.
void conjuncts(const ExprRef &e, std::vector<ExprRef> &out) {
  if (e->kind == ExprKind::Binary && e->text == "&&") {
    conjuncts(e->args[0], out);
    conjuncts(e->args[1], out);
    return;
  }
  out.push_back(e);
}

/// An order between integers that moves evenly along x.
bool Vectorizer::isBound(const ExprRef &part) const {
  static const std::set<std::string> orders = {"<", "<=", ">", ">="};
  if (part->kind != ExprKind::Binary || !orders.count(part->text) || !part->args[0]->type.isInt() ||
      !part->args[1]->type.isInt() || !model.stable(part))
    return false;
  Poly difference = model.poly(part->args[0]) - model.poly(part->args[1]);
  return stepAlong(difference).has_value();
}

/// How much `p` grows from lane to lane; nothing when that differs.
std::optional<int64_t> Vectorizer::stepAlong(const Poly &p) const {
  auto c = p.coefficient("globalIdx.x");
  auto step = c ? c->constant() : std::nullopt;
  for (const std::string &atom : p.atoms())
    if (atom != "globalIdx.x" && model.variesAtom(atom) & (ThreadX | BlockX))
      return std::nullopt;
  return step;
}

llvm::Error Vectorizer::findBody() {
  Stmt *list = kernel.body.get();
  while (!list->body.empty()) {
    Stmt *last = list->body.back().get();
    bool onlyDecls = std::all_of(list->body.begin(), list->body.end() - 1, [](const StmtRef &s) { return s->kind == StmtKind::Decl; });
    // Declarations between two conditions would have to move.
    if (last->kind != StmtKind::If || last->body.size() != 1 || !onlyDecls || (guard && list->body.size() > 1))
      break;
    std::vector<ExprRef> parts;
    conjuncts(last->expr, parts);
    if (!llvm::all_of(parts, [&](const ExprRef &part) { return isBound(part); }))
      break;
    if (!guard)
      guard = last;
    bounds = logicalAnd(bounds, last->expr);
    ++guardCount;
    list = body = last->body[0].get();
  }
  if (!guard)
    return notApplicable("the kernel's work does not stand under one bound of its index");
  return llvm::Error::success();
}

/// Integer locals that are functions of the indices: they advance by a constant from lane to lane.
llvm::Error Vectorizer::findIndices() {
  auto classify = [&](const StmtRef &s, bool inBody) -> llvm::Error {
    if (s->kind != StmtKind::Decl)
      return llvm::Error::success();
    bool used = false; // in the lanes
    walkExprs(*body, [&](const ExprRef &e) { used |= e->kind == ExprKind::Var && e->text == s->text; });
    if (!s->expr || !model.singleAssignment(s->text)) {
      if (!inBody && used)
        return notApplicable("'{0}' keeps its value from one lane to the next (line {1})", s->text, s->line);
      return llvm::Error::success();
    }
    bool varies = model.varies(s->expr) & (ThreadX | BlockX);
    auto step = stepAlong(model.poly(s->expr));
    bool affine = step && s->type.isInt() && s->type.bytes >= 4 && model.stable(s->expr);
    if (inBody) // it is moved before the lanes: only with what is there already
      for (const std::string &name : namesIn(s->expr)) {
        const Stmt *d = model.declaration(name);
        bool inLane = d && llvm::none_of(kernel.body->body, [&](const StmtRef &outer) { return outer.get() == d; });
        affine &= !inLane || llvm::any_of(indexDecls, [&](const StmtRef &moved) { return moved.get() == d; });
      }
    if (affine && (varies || inBody)) {
      indices[s->text] = *step;
      if (inBody)
        indexDecls.push_back(s);
    } else if (varies && !inBody) {
      return notApplicable("'{0}' is no affine function of the index (line {1})", s->text, s->line);
    }
    return llvm::Error::success();
  };
  for (const StmtRef &s : kernel.body->body)
    if (llvm::Error e = classify(s, false))
      return e;
  for (const StmtRef &s : body->body)
    if (llvm::Error e = classify(s, true))
      return e;
  return llvm::Error::success();
}

/// Every term of `rest` is a multiple of the width, with what that asks of parameters as conditions.
bool Vectorizer::wholeMultiple(const Poly &rest) {
  std::vector<std::string> wanted;
  for (const auto &[monomial, c] : rest.terms) {
    if (c % width == 0)
      continue;
    std::string product = std::to_string(c);
    bool found = false;
    for (const std::string &atom : monomial)
      if (planText(model, Poly::atom(atom))) {
        product = c == 1 && !found ? atom : product + " * " + atom;
        found = true;
      }
    if (!found)
      return false;
    wanted.push_back(product);
  }
  for (const std::string &product : wanted) {
    state.require((product.find(' ') == std::string::npos ? product : "(" + product + ")") + " % " + std::to_string(width) + " == 0",
                  "vectors of " + std::to_string(width) + " elements are aligned in every row");
    multiples.push_back(product);
  }
  return true;
}

bool Vectorizer::stores(const Stmt &s, const std::string &array, int64_t offset) const {
  if (s.kind == StmtKind::Block)
    return llvm::any_of(s.body, [&](const StmtRef &child) { return stores(*child, array, offset); });
  if (s.kind == StmtKind::If)
    return s.body.size() == 2 && stores(*s.body[0], array, offset) && stores(*s.body[1], array, offset);
  return s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign && llvm::any_of(model.accesses(), [&](const Access &access) {
    return access.place == s.expr->args[0] && access.array == array && (storedList(access) || offsetOf(access) == offset);
  });
}

/// Nothing when the array is to be accessed lane by lane.
llvm::Expected<std::optional<VectorStream>> Vectorizer::streamOf(const std::string &array) {
  const Param *param = model.param(array);
  if (!param || !param->type.isPointer() || param->type.pointee->isVolatile || changedParameters(kernel).count(array))
    return std::nullopt;
  VectorStream stream;
  stream.array = array;
  const Access *sure = nullptr, *any = nullptr;
  bool oneElement = true, vectors = true;
  std::optional<Poly> place;
  for (size_t i = 0; i < model.accesses().size(); ++i) {
    const Access &access = model.accesses()[i];
    if (access.array != array)
      continue;
    vectors &= access.subscripts.size() == 1 && access.root->kind == ExprKind::Var && model.stable(access.subscripts[0]) &&
               access.node->kind == ExprKind::Subscript && access.node->args[0]->kind == ExprKind::Var &&
               access.node->args[0]->text == array && stream.describe(access);
    if (!vectors)
      return std::nullopt;
    if (!any)
      any = &access;
    if (always(access) && !sure)
      sure = &access;
    if (!place)
      place = access.subscripts[0];
    oneElement &= *place == access.subscripts[0];
    stream.reads |= access.read;
    stream.writes |= access.write;
    if (access.write)
      stream.lastWrite = i;
  }
  if (!any || !oneElement || stepAlong(*place) != std::optional<int64_t>(1))
    return std::nullopt;
  for (int64_t part = 0; stream.writes && part < stream.count; ++part)
    if (!stores(*body, array, part * stream.number.bytes))
      return std::nullopt;
  if (!sure && !stream.writes)
    return std::nullopt;
  stream.index = (sure ? sure : any)->node->args[1];
  // The index must be known before the lanes begin.
  for (const std::string &name : namesIn(stream.index)) {
    const Stmt *d = model.declaration(name);
    bool inBody = d && llvm::none_of(kernel.body->body, [&](const StmtRef &s) { return s.get() == d; });
    if (inBody && llvm::none_of(indexDecls, [&](const StmtRef &s) { return s.get() == d; }))
      return std::nullopt;
  }
  if (!stream.findVectors(width) || !wholeMultiple(*place - Poly::atom("globalIdx.x")))
    return std::nullopt;
  state.require("aligned(" + array + ", " + std::to_string(stream.number.bytes * stream.together) + ")",
                array + " is accessed " + std::to_string(width) + " elements at a time");
  return stream;
}

/// In a lane, the load moves to the front and the store to the end.
llvm::Error Vectorizer::requireOrder(const VectorStream &stream) {
  const std::vector<Access> &all = model.accesses();
  auto isVector = [&](const std::string &array) {
    return llvm::any_of(streams, [&](const VectorStream &s) { return s.array == array; });
  };
  bool loops = false; // what comes later in the text may come before
  walk(*body, [&](Stmt &s) { loops |= s.kind == StmtKind::For || s.kind == StmtKind::While || s.kind == StmtKind::Do; });
  std::set<std::string> apart, written;
  bool stored = false;
  bool allStoresSure = llvm::all_of(all, [&](const Access &a) { return a.array != stream.array || !a.write || always(a); });
  for (const Access &access : all) {
    if (access.space == Space::Local || isConstantOfFile(model, access))
      continue;
    if (access.array == stream.array) {
      if (access.read)
        apart.insert(written.begin(), written.end());
      stored |= access.write;
      continue;
    }
    if (access.write)
      written.insert(access.array);
    // Stores of vectors keep their order, which is that of their last stores, if these are made in any case.
    bool inOrder = access.write && !access.read && isVector(access.array) && always(access) && allStoresSure;
    if ((stored && !inOrder) || (loops && (stream.writes || access.write)))
      apart.insert(access.array);
  }
  for (const std::string &other : apart)
    if (llvm::Error e = requireDisjoint(state, model, stream.array, other))
      return e;
  return llvm::Error::success();
}

ExprRef Vectorizer::atLane(const ExprRef &e, const ExprRef &lane) const {
  return rewrite(e, [&](const ExprRef &n) -> ExprRef {
    if (n->kind == ExprKind::Builtin && n->text == "globalIdx.x")
      return add(n, lane);
    auto it = n->kind == ExprKind::Var ? indices.find(n->text) : indices.end();
    return it == indices.end() || it->second == 0 ? nullptr : add(n, mul(lane, intLit(it->second)));
  });
}

void Vectorizer::atLane(Stmt &s, const ExprRef &lane) const {
  walk(s, [&](Stmt &t) { ownExprs(t, [&](ExprRef &e) { e = atLane(e, lane); }); });
}

/// The bounds, for all lanes at once: upper ones for the last lane, lower ones for the first.
ExprRef Vectorizer::lastLaneGuard() const {
  std::vector<ExprRef> parts;
  conjuncts(bounds, parts);
  ExprRef result;
  for (const ExprRef &part : parts) {
    std::vector<Poly> facts;
    model.addFacts(part, true, facts);
    bool upper = false;
    for (const Poly &fact : facts)
      if (auto c = fact.coefficient("globalIdx.x"); c && c->constant() && *c->constant() < 0)
        upper = true;
    result = logicalAnd(result, upper ? atLane(part, intLit(width - 1)) : part);
  }
  return result;
}

ExprRef Vectorizer::vectorPlace(const VectorStream &stream, int64_t number, bool store) const {
  Type vector;
  vector.cls = Type::Class::Record;
  vector.text = vectorBase(stream.number) + std::to_string(stream.together);
  vector.bytes = unsigned(stream.number.bytes * stream.together);
  Type pointer;
  pointer.cls = Type::Class::Pointer;
  pointer.text = (store ? "" : "const ") + vector.text + " *";
  pointer.bytes = 8;
  pointer.pointee = std::make_shared<Type>(vector);
  ExprRef first = addressOf(subscript(var(stream.array, model.param(stream.array)->type), stream.index, stream.element));
  return subscript(castTo(pointer, first), intLit(number), vector);
}

void Vectorizer::load(VectorStream &stream, std::vector<StmtRef> &out) {
  static const char *const parts[] = {"x", "y", "z", "w"};
  ExprRef values;
  if (stream.reads) {
    auto list = std::make_shared<Expr>();
    list->kind = ExprKind::InitList;
    for (int64_t number = 0; number < vectorsOf(stream); ++number) {
      ExprRef place = vectorPlace(stream, number, /*store=*/false);
      std::string vector = freshName(taken, stream.array + "_vector");
      Type type = place->type;
      type.isConst = true;
      out.push_back(declStmt(vector, type, place));
      for (int64_t i = 0; i < stream.together; ++i) {
        auto part = std::make_shared<Expr>();
        part->kind = ExprKind::Member;
        part->text = parts[i];
        part->type = stream.number;
        part->args = {var(vector, place->type)};
        list->args.push_back(part);
      }
    }
    values = list;
  }
  Type lane = stream.number;
  lane.isConst = !stream.writes;
  out.push_back(declStmt(stream.lanes, lane, values, {intLit(width * stream.count)}));
}

void Vectorizer::store(const VectorStream &stream, std::vector<StmtRef> &out) const {
  for (int64_t number = 0; number < vectorsOf(stream); ++number) {
    ExprRef place = vectorPlace(stream, number, /*store=*/true);
    std::vector<ExprRef> values;
    for (int64_t i = 0; i < stream.together; ++i)
      values.push_back(subscript(var(stream.lanes, stream.number), intLit(number * stream.together + i), stream.number));
    out.push_back(exprStmt(assign("=", place, callOf("make_" + place->type.text, values, place->type, /*pure=*/true))));
  }
}

llvm::Error Vectorizer::run() {
  if (unsigned line = model.unknownEffectLine())
    return notApplicable("line {0} may access memory in ways that are not understood", line);
  if (llvm::Error e = findBody())
    return e;
  if (llvm::Error e = findIndices())
    return e;
  bool opaque = false;
  walk(*body, [&](Stmt &s) { opaque |= s.kind == StmtKind::Opaque || s.kind == StmtKind::Return; });
  walkExprs(*body, [&](const ExprRef &e) { opaque |= e->kind == ExprKind::Opaque; });
  if (opaque)
    return notApplicable("the kernel contains a construct that is kept verbatim");
  std::vector<std::string> arrays;
  for (const Access &access : model.accesses()) {
    if (access.atomic)
      return notApplicable("the kernel uses atomics (line {0})", access.stmt->line);
    if (access.space == Space::Global && !llvm::is_contained(arrays, access.array))
      arrays.push_back(access.array);
  }
  for (const std::string &array : arrays) {
    auto stream = streamOf(array);
    if (!stream)
      return stream.takeError();
    if (*stream)
      streams.push_back(**stream);
  }
  if (streams.empty())
    return notApplicable("no array is accessed at neighbouring elements by neighbouring threads");
  for (const VectorStream &stream : streams)
    if (llvm::Error e = requireOrder(stream))
      return e;

  auto bound = globalUpperBound(model, 0);
  auto text = bound ? planText(model, *bound) : std::nullopt;
  if (!text)
    return notApplicable("nothing bounds the global index of all that the kernel does");
  std::vector<ExprRef> parts;
  conjuncts(bounds, parts);
  auto alongX = [&](const ExprRef &part) { return model.varies(part) & (ThreadX | BlockX); };
  bool whole = (llvm::is_contained(multiples, *text) || (bound->constant() && *bound->constant() % width == 0)) &&
               llvm::count_if(parts, alongX) == 1;
  state.require(threadsAlong(0) + " <= " + std::to_string(INT32_MAX - 65536), "the index of the last lane does not overflow");

  laneName = freshName(taken, "lane");
  ExprRef lane = var(laneName, Type::makeInt());
  std::vector<StmtRef> rest;
  for (const StmtRef &s : body->body)
    if (!llvm::is_contained(indexDecls, s))
      rest.push_back(s);

  // Lane by lane, where some are beyond the bound.
  StmtRef tail;
  if (!whole) {
    StmtRef copy = clone(block(std::vector<StmtRef>(body->body)));
    if (!renameDeclarations(*copy, taken))
      return notApplicable("a construct that is kept verbatim uses a variable of the kernel");
    // The index locals of the body are computed anew, from indices of the lane.
    auto inBody = indices;
    for (const StmtRef &s : indexDecls)
      indices.erase(s->text);
    atLane(*copy, lane);
    tail = block({laneLoop({ifStmt(atLane(bounds, lane), copy)}, /*unroll=*/1)});
    indices = inBody;
  }
  std::vector<StmtRef> vectors = indexDecls;
  for (VectorStream &stream : streams) {
    stream.lanes = freshName(taken, stream.array + "_lanes");
    load(stream, vectors);
  }
  // While the nodes are those that the model has seen.
  std::map<const Expr *, ExprRef> replacement;
  std::map<const Stmt *, const VectorStream *> lists;
  auto number = [&](const VectorStream &stream, int64_t i) {
    return subscript(var(stream.lanes, stream.number), add(mul(lane, intLit(stream.count)), intLit(i)), stream.number);
  };
  for (const Access &access : model.accesses())
    for (const VectorStream &stream : streams)
      if (access.array == stream.array) {
        if (storedList(access))
          lists[access.stmt] = &stream;
        else
          replacement[access.place.get()] = number(stream, offsetOf(access) / stream.number.bytes);
      }
  StmtRef main = block(rest);
  forEachList(*main, [&](std::vector<StmtRef> &list) {
    for (size_t at = 0; at < list.size(); ++at) {
      auto it = lists.find(list[at].get());
      if (it == lists.end())
        continue;
      std::vector<StmtRef> values, stores; // all numbers before any is stored
      for (const ExprRef &e : list[at]->expr->args[1]->args) {
        Type type = it->second->number;
        ExprRef value = var(freshName(taken, it->second->array + "_value"), type);
        type.isConst = true;
        values.push_back(declStmt(value->text, type, e));
        stores.push_back(exprStmt(assign("=", number(*it->second, int64_t(stores.size())), value)));
      }
      values.insert(values.end(), stores.begin(), stores.end());
      list.erase(list.begin() + long(at));
      list.insert(list.begin() + long(at), values.begin(), values.end());
      at += values.size() - 1;
    }
  });
  replaceNodes(*main, replacement);
  atLane(*main, lane);
  vectors.push_back(laneLoop(main->body, FullUnroll));
  std::vector<VectorStream> stores;
  llvm::copy_if(streams, std::back_inserter(stores), [](const VectorStream &s) { return s.writes; });
  llvm::sort(stores, [](const VectorStream &a, const VectorStream &b) { return a.lastWrite < b.lastWrite; });
  for (const VectorStream &stream : stores)
    store(stream, vectors);
  StmtRef made = ifStmt(whole ? bounds : lastLaneGuard(), block(vectors), tail);
  auto place = findPlace(*kernel.body, guard);
  place->block->body[place->index] = made;
  return llvm::Error::success();
}

class VectorizeAccess : public Transform {
public:
  llvm::StringRef name() const override { return "vectorize-access"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<Params> offers;
    for (const char *width : {"4", "2"})
      if (auto applied = apply(state, "", {{"width", width}}))
        offers.push_back({{"width", width}});
      else
        llvm::consumeError(applied.takeError());
    if (offers.empty())
      return {};
    return {{"vectorize-access", state.rewrite.original, offers}};
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0] || !shape[1] || !shape[2])
      return notApplicable("the block shape is not fixed yet (apply block-shape first)");
    int64_t width = paramInt(params, "width", 4);
    if (width != 2 && width != 4)
      return notApplicable("the width must be 2 or 4");
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    std::array<CopyAxis, 3> copies;
    for (unsigned axis = 0; axis < 3; ++axis)
      copies[axis].axis = axis;
    copies[0].factor = width;
    copies[0].distance = 1;
    KernelState result = state;
    auto merge = [&](KernelState &to, Kernel &tree, const KernelModel &model) {
      return Vectorizer(to, tree, model, width).run();
    };
    if (llvm::Error e = remapThreads(result, *kernel, shape, copies, merge))
      return std::move(e);
    result.tree = kernel;
    return result;
  }
};
} // namespace

const Transform *optiml::makeVectorizeAccess() {
  static const VectorizeAccess transform;
  return &transform;
}
