//===- VectorizeAccess.cpp - neighbouring elements in one access ----------===//
//
// vectorize-access[kernel]{width=4}: each thread does the work of `width` threads that follow one another along x. It
// accesses their neighbouring elements together: `float4`, `int2`, `double2`, `uchar4`; `ushort4` of 16-bit floats. Of
// elements with one or two bytes, 8 or 16 are words of a `uint2` or `uint4`. A thread may have several elements, as in
// `rgb[3 * i + 1]`. What is read beside the lane's own element, as `x[i - 1]`, comes from the vector where another lane
// has it. Of `i / d` and `i % d`, where `d` is a multiple of `width`, all lanes share the quotient: that is known of a
// constant, and of an argument where the launches that were seen say so, which becomes a condition. A bound that is a
// multiple of such a `d`, as of `images * channels * pixels`, leaves no lanes over.
//
// Example:
//   int i = blockIdx.x * 256 + threadIdx.x;     int i = blockIdx.x * 1024 + threadIdx.x * 4;
//   if (i < n) {                                if (i + 3 < n) {
//     y[i] = fmaxf(x[i], 0.0f);                   const float4 x_vector = *(const float4 *)&x[i];
//   }                                             const float x_lanes[4] = {x_vector.x, x_vector.y, …};
//                                                 float y_lanes[4];
//                                                 #pragma unroll
//                                                 for (int lane = 0; lane < 4; ++lane) {
//                                                   y_lanes[lane] = fmaxf(x_lanes[lane], 0.0f);
//                                                 }
//                                                 *(float4 *)&y[i] = make_float4(y_lanes[0], y_lanes[1], …);
//                                               } else {
//                                                 … // one lane after the other, each under i + lane < n
//                                               }
//
// Legal: threads of a kernel without barriers run in any order, so loads of one lane may come before stores of another.
// Within a lane, loads come first and stores last; the arrays they move past must not overlap (proved, or a condition).
// All work stands under bounds of the index: `i < n`, or `row < rows && col < cols`. An element is accessed only if the
// original accesses it in every lane, or two around it. A vector's address is aligned: that is proved, or a condition
// on parameters.
//
// Refuses: barriers, waiting for the value of an atomic, and constructs that are kept verbatim; bounds that do not move
// evenly along x (`i / 2 < n`); an index that runs backwards. It also refuses kernels in which no array qualifies,
// because every index is strided or shifted or every store is conditional.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "Transforms.h"
#include "VectorStream.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

class Vectorizer {
public:
  Vectorizer(KernelState &state, Kernel &kernel, const KernelModel &model, int64_t width)
      : state(state), kernel(kernel), model(model), width(width), taken(allNames(kernel)) {}

  llvm::Error run() {
    if (unsigned line = model.unknownEffectLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    if (llvm::Error e = findBody())
      return e;
    if (llvm::Error e = findIndices())
      return e;
    if (holdsKind(*body, {StmtKind::Opaque, StmtKind::Return}) ||
        anyExpr(*body, [](const ExprRef &e) { return e->kind == ExprKind::Opaque; }))
      return notApplicable("the kernel contains a construct that is kept verbatim");
    if (llvm::Error e = findStreams(state, {kernel, model, *body, guardCount, indexDecls, width}, streams, multiples))
      return e;
    findQuotients();
    auto whole = boundsAreWhole();
    if (!whole)
      return whole.takeError();
    laneName = freshName(taken, "lane");
    StmtRef tail = *whole ? nullptr : laneByLane();
    if (!*whole && !tail)
      return notApplicable("a construct that is kept verbatim uses a variable of the kernel");
    std::vector<StmtRef> vectors = indexDecls;
    for (VectorStream &stream : streams) {
      stream.lanes = freshName(taken, stream.array + "_lanes");
      load(stream, vectors);
    }
    vectors.push_back(allLanes());
    std::vector<VectorStream> stores;
    llvm::copy_if(streams, std::back_inserter(stores), [](const VectorStream &s) { return s.writes; });
    llvm::sort(stores, [](const VectorStream &a, const VectorStream &b) { return a.lastWrite < b.lastWrite; });
    for (const VectorStream &stream : stores)
      store(stream, vectors);
    auto place = findPlace(*kernel.body, guard);
    place->block->body[place->index] = ifStmt(*whole ? bounds : lastLaneGuard(), block(vectors), tail);
    return llvm::Error::success();
  }

private:
  llvm::Error findBody() {
    Stmt *list = kernel.body.get();
    while (!list->body.empty()) {
      Stmt *last = list->body.back().get();
      bool onlyDecls =
          llvm::all_of(llvm::drop_end(list->body), [](const StmtRef &s) { return s->kind == StmtKind::Decl; });
      // Declarations between two conditions would have to move.
      if (last->kind != StmtKind::If || last->body.size() != 1 || !onlyDecls || (guard && list->body.size() > 1))
        break;
      if (!llvm::all_of(operandsOf(last->expr, "&&"), [&](const ExprRef &part) { return isBound(part); }))
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
  llvm::Error findIndices() {
    auto classify = [&](const StmtRef &s, bool inBody) -> llvm::Error {
      if (s->kind != StmtKind::Decl)
        return llvm::Error::success();
      bool used = anyExpr(*body, [&](const ExprRef &e) { return isVar(e, s->text); }); // in the lanes
      if (!s->expr || !model.singleAssignment(s->text)) {
        if (!inBody && used)
          return notApplicable("'{0}' keeps its value from one lane to the next (line {1})", s->text, s->line);
        return llvm::Error::success();
      }
      bool varies = model.varies(s->expr) & (ThreadX | BlockX);
      auto step = stepAlongX(model, model.poly(s->expr));
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
    for (bool inBody : {false, true})
      for (const StmtRef &s : inBody ? body->body : kernel.body->body)
        if (llvm::Error e = classify(s, inBody))
          return e;
    return llvm::Error::success();
  }

  /// An order between integers that moves evenly along x.
  bool isBound(const ExprRef &part) const {
    static const std::set<std::string> orders = {"<", "<=", ">", ">="};
    if (part->kind != ExprKind::Binary || !orders.count(part->text) || !part->args[0]->type.isInt() ||
        !part->args[1]->type.isInt() || !model.stable(part))
      return false;
    Poly difference = model.poly(part->args[0]) - model.poly(part->args[1]);
    return stepAlongX(model, difference).has_value();
  }

  ExprRef atLane(const ExprRef &e, const ExprRef &lane) {
    if (ExprRef first = quotientOfFirst(e))
      return e->text == "/" ? first : add(first, lane);
    if (isBuiltin(e, "globalIdx.x"))
      return add(e, lane);
    auto it = e->kind == ExprKind::Var ? indices.find(e->text) : indices.end();
    if (it != indices.end() && it->second != 0)
      return add(e, mul(lane, intLit(it->second)));
    return mapOperands(e, [&](const ExprRef &operand) { return atLane(operand, lane); });
  }

  /// i / d or i % d in lane 0, where i grows by one from each lane to the next and d is a multiple of the width: the
  /// quotient is that of all lanes, and the remainder grows like i. Null for anything else.
  ExprRef quotientOfFirst(const ExprRef &e) {
    if (e->kind != ExprKind::Binary || (e->text != "/" && e->text != "%") || !e->type.isInt())
      return nullptr;
    ExprRef first = valueInFirst(e->args[0]);
    return first && isMultiple(e->args[1]) ? binary(e->text, first, e->args[1], e->type) : nullptr;
  }

  /// The value in lane 0 of what grows by one from each lane to the next, beginning at a multiple of the width.
  ExprRef valueInFirst(const ExprRef &e) {
    if (e->kind == ExprKind::Cast && e->type.isInt() && e->type.bytes >= 4 && e->args[0]->type.isInt()) {
      ExprRef value = valueInFirst(e->args[0]);
      return value ? castTo(e->type, value) : nullptr;
    }
    if (e->kind == ExprKind::Builtin || e->kind == ExprKind::Var) {
      const std::optional<int64_t> distance = (model.poly(e) - Poly::atom("globalIdx.x")).constant();
      if (distance && *distance % width == 0)
        return e;
      auto known = firsts.find(e->text);
      return known == firsts.end() ? nullptr : known->second;
    }
    return e->text == "%" ? quotientOfFirst(e) : nullptr;
  }

  /// It is, or it is in the launches that are known, which is a condition then.
  bool isMultiple(const ExprRef &divisor) {
    if (model.varies(divisor) || !model.stable(divisor))
      return false;
    const Poly p = model.poly(divisor);
    if (auto constant = p.constant())
      return *constant != 0 && *constant % width == 0;
    auto text = planText(model, p);
    const std::optional<int64_t> value = text ? state.hints.evaluate(IntExpr::of(*text)) : std::nullopt;
    if (!value || *value == 0 || *value % width != 0)
      return false;
    state.require(*text + " % " + std::to_string(width) + " == 0", "all lanes of a thread have the same quotients");
    return true;
  }

  /// Of the lane 0: locals that valueInFirst() knows, and divisors by which all lanes have the same quotients.
  void findQuotients() {
    walk(*body, [&](Stmt &s) {
      ownExprs(s, [&](ExprRef &own) {
        optiml::walk(own, [&](const ExprRef &e) {
          if (quotientOfFirst(e))
            divisors.push_back(model.poly(e->args[1]));
        });
      });
      if (s.kind == StmtKind::Decl && s.expr && s.type.isInt() && s.type.bytes >= s.expr->type.bytes &&
          model.singleAssignment(s.text) == &s)
        if (ExprRef first = valueInFirst(s.expr))
          firsts[s.text] = first;
    });
  }

  void atLane(Stmt &s, const ExprRef &lane) {
    walk(s, [&](Stmt &t) { ownExprs(t, [&](ExprRef &e) { e = atLane(e, lane); }); });
  }

  /// The bounds, for all lanes at once: upper ones for the last lane, lower ones for the first.
  ExprRef lastLaneGuard() {
    ExprRef result;
    for (const ExprRef &part : operandsOf(bounds, "&&")) {
      std::vector<Poly> facts;
      model.addFacts(part, true, facts);
      bool upper = llvm::any_of(facts, [](const Poly &fact) {
        auto c = fact.coefficient("globalIdx.x");
        return c && c->constant() && *c->constant() < 0;
      });
      result = logicalAnd(result, upper ? atLane(part, intLit(width - 1)) : part);
    }
    return result;
  }

  StmtRef laneLoop(std::vector<StmtRef> stmts, int unroll) const {
    return countedFor(laneName, Type::makeInt(), intLit(0), intLit(width), 1, block(std::move(stmts)), unroll);
  }

  /// Whether all lanes of a thread are within the bounds, or none.
  llvm::Expected<bool> boundsAreWhole() {
    auto bound = globalUpperBound(model, 0);
    auto text = bound ? planText(model, *bound) : std::nullopt;
    if (!text)
      return notApplicable("nothing bounds the global index of all that the kernel does");
    auto alongX = [&](const ExprRef &part) { return model.varies(part) & (ThreadX | BlockX); };
    auto isWhole = [&](const auto &term) { // also where the product wraps around: widths are powers of two
      Poly product;
      product.terms.insert(term);
      return term.second % width == 0 ||
             llvm::any_of(divisors, [&](const Poly &divisor) { return quotientOf(product, divisor).has_value(); });
    };
    state.require(threadsAlong(0) + " <= " + std::to_string(INT32_MAX - 65536),
                  "the index of the last lane does not overflow");
    return (llvm::is_contained(multiples, *text) || llvm::all_of(bound->terms, isWhole)) &&
           llvm::count_if(operandsOf(bounds, "&&"), alongX) == 1;
  }

  /// Lane by lane, where some are beyond the bound; null when opaque text is in the way.
  StmtRef laneByLane() {
    StmtRef copy = clone(block(std::vector<StmtRef>(body->body)));
    if (!renameDeclarations(*copy, taken))
      return nullptr;
    // The index locals of the body are computed anew, from indices of the lane.
    auto inBody = indices;
    for (const StmtRef &s : indexDecls)
      indices.erase(s->text);
    atLane(*copy, lane());
    StmtRef tail = block({laneLoop({ifStmt(atLane(bounds, lane()), copy)}, /*unroll=*/1)});
    indices = inBody;
    return tail;
  }

  /// The loop over the lanes, on the vectors' numbers.
  StmtRef allLanes() {
    std::vector<StmtRef> rest;
    llvm::copy_if(body->body, std::back_inserter(rest),
                  [&](const StmtRef &s) { return !llvm::is_contained(indexDecls, s); });
    // While the nodes are those that the model has seen.
    std::map<const Expr *, ExprRef> replacement;
    std::map<const Stmt *, const VectorStream *> lists;
    for (const Access &access : model.accesses())
      for (const VectorStream &stream : streams)
        if (access.array == stream.array) {
          if (storedList(access))
            lists[access.stmt] = &stream;
          else if (stream.own)
            readBeside(stream, access, replacement);
          else
            replacement[access.place.get()] = numberAt(stream, stream.numberOf(access));
        }
    StmtRef main = block(rest);
    splitLists(*main, lists);
    replaceNodes(*main, replacement);
    atLane(*main, lane());
    return laneLoop(main->body, FullUnroll);
  }

  /// The lane's element, or one that lies beside it: another lane has it, unless that would be outside of the vectors.
  void readBeside(const VectorStream &stream, const Access &access,
                  std::map<const Expr *, ExprRef> &replacement) const {
    const std::optional<int64_t> distance = (access.subscripts[0] - *stream.own).constant();
    if (!distance || std::abs(*distance) >= width)
      return;
    ExprRef value = subscript(var(stream.lanes, stream.number), add(lane(), intLit(*distance)), stream.number);
    if (*distance != 0) {
      ExprRef inside = *distance < 0 ? binary(">=", lane(), intLit(-*distance), Type::makeBool())
                                     : lessThan(lane(), intLit(width - *distance));
      value = conditional(inside, value, std::make_shared<Expr>(*access.place));
    }
    replacement[access.place.get()] = value;
  }

  /// Stores of lists, number by number: all are computed before any is stored.
  void splitLists(Stmt &main, const std::map<const Stmt *, const VectorStream *> &lists) {
    forEachList(main, [&](std::vector<StmtRef> &list) {
      for (size_t at = 0; at < list.size(); ++at) {
        auto it = lists.find(list[at].get());
        if (it == lists.end())
          continue;
        std::vector<StmtRef> values, stores;
        for (const ExprRef &e : list[at]->expr->args[1]->args) {
          const Type &type = it->second->number;
          ExprRef value = var(freshName(taken, it->second->array + "_value"), type);
          values.push_back(declStmt(value->text, type.withConst(true), e));
          stores.push_back(exprStmt(assign("=", numberAt(*it->second, int64_t(stores.size())), value)));
        }
        llvm::append_range(values, stores);
        list.erase(list.begin() + long(at));
        list.insert(list.begin() + long(at), values.begin(), values.end());
        at += values.size() - 1;
      }
    });
  }

  /// The element of lane 0.
  ExprRef firstOf(const VectorStream &stream) const {
    return subscript(var(stream.array, model.param(stream.array)->type), stream.index, stream.element);
  }
  ExprRef lane() const { return var(laneName, Type::makeInt()); }
  /// Number `i` of the lane's element.
  ExprRef numberAt(const VectorStream &stream, int64_t i) const {
    return subscript(var(stream.lanes, stream.number), add(mul(lane(), intLit(stream.count)), intLit(i)),
                     stream.number);
  }

  void load(VectorStream &stream, std::vector<StmtRef> &out) {
    ExprRef values = stream.reads ? stream.load(firstOf(stream), width, taken, out) : nullptr;
    out.push_back(
        declStmt(stream.lanes, stream.number.withConst(!stream.writes), values, {intLit(width * stream.count)}));
  }

  void store(const VectorStream &stream, std::vector<StmtRef> &out) const {
    for (int64_t number = 0; number < stream.vectors(width); ++number) {
      ExprRef place = stream.vectorAt(firstOf(stream), number, /*store=*/true);
      std::vector<ExprRef> values;
      for (int64_t i = 0; i < stream.together; ++i)
        values.push_back(
            subscript(var(stream.lanes, stream.number), intLit(number * stream.together + i), stream.number));
      out.push_back(exprStmt(assign("=", place, stream.toVector(values))));
    }
  }

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
  std::map<std::string, ExprRef> firsts;  ///< of other locals of the body: valueInFirst()
  std::vector<Poly> divisors;             ///< multiples of the width by which indices are divided
  std::vector<VectorStream> streams;
  std::vector<std::string> multiples; ///< values that are multiples of the width
  std::string laneName;
};

class VectorizeAccess : public Transform {
public:
  llvm::StringRef name() const override { return "vectorize-access"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    offer(result, state, "", {{{"width", "4"}}, {{"width", "2"}}, {{"width", "8"}}, {{"width", "16"}}});
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &params) const override {
    std::array<int64_t, 3> shape = state.pinnedBlock();
    if (!shape[0] || !shape[1] || !shape[2])
      return notApplicable("{0}", shapeIsOpen);
    int64_t width = paramInt(params, "width", 4);
    if (width != 2 && width != 4 && width != 8 && width != 16)
      return notApplicable("the width must be 2, 4, 8 or 16");
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    std::array<CopyAxis, 3> copies;
    copies[0].factor = width;
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

DEFINE_TRANSFORM(VectorizeAccess)
