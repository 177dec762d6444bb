//===- VectorizeLoop.cpp - several iterations read together ---------------===//
//
// vectorize-loop[kernel/loop]{width=4}: a loop that goes from element to element takes `width` iterations at a time, in
// their order. It reads their elements together: a `float4`, or a `uint4` of eight 16-bit floats. `distribute-loop`
// then gives neighbouring threads neighbouring vectors.
//
// Example:
//   for (int k = 0; k < m; ++k)             for (int piece = 0; piece < m / 4; ++piece) {
//     s += a[r * m + k];                      const int first = piece * 4;
//                                             const float4 a_vector = *(const float4 *)&a[r * m + first];
//                                             const float a_lanes[4] = {a_vector.x, a_vector.y, …};
//                                             #pragma unroll
//                                             for (int lane = 0; lane < 4; ++lane) {
//                                               s += a_lanes[lane];
//                                             }
//                                           }
//                                           // when aligned(a, 16), m % 4 == 0
//
// Legal: iterations keep their order. The loop runs a multiple of `width` times, and vectors begin at multiples of
// their size: that is proved, or a condition on parameters and on the address of A. Every iteration reads the element,
// so all of a vector would be read. What the loop writes does not overlap A (proved, or a condition).
//
// Refuses: loops that may be left early, that synchronize, or that hold text kept verbatim; a step other than 1;
// counters that do not begin at 0; trip counts that are no parameters. It also refuses loops in which no array is read
// at neighbouring elements, once in every iteration.
//
//===----------------------------------------------------------------------===//
#include "Transforms.h"
#include "VectorPieces.h"
#include "VectorStream.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/Jumps.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

class LoopVectorizer {
public:
  LoopVectorizer(KernelState &state, Kernel &kernel, Stmt &loop, const CountedLoop &counted, int64_t width)
      : state(state), kernel(kernel), loop(loop), counted(counted), model(kernel, state.pinnedBlock()), width(width),
        declared(namesDeclaredIn(*loop.body[0])), changed(countChanges(*loop.body[0])), taken(allNames(kernel)) {}

  llvm::Error run() {
    if (unsigned line = model.unknownOutsideLine())
      return notApplicable("line {0} may access memory in ways that are not understood", line);
    if (hasBarrier(loop) ||
        holdsKind(loop, {StmtKind::Break, StmtKind::Continue, StmtKind::Return, StmtKind::Opaque}) ||
        anyExpr(loop, [](const ExprRef &e) { return e->kind == ExprKind::Opaque; }))
      return notApplicable("the loop may be left early, threads meet in it, or text in it is kept verbatim");
    if (llvm::Error e = requireWholeVectors())
      return e;
    std::string reason;
    for (const Access &access : model.accesses())
      if (llvm::Error e = addStream(access))
        reason = llvm::toString(std::move(e));
    if (streams.empty())
      return notApplicable("no array is read at neighbouring elements by iterations that follow one another{0}",
                           reason.empty() ? "" : ": " + reason);
    if (width > 4 && llvm::all_of(streams, [&](const Stream &s) { return s.vectors.needsHalfOf(width); }))
      return notApplicable("half as many elements are read by vectors of the same size");
    rewrite();
    return llvm::Error::success();
  }

private:
  struct Stream {
    VectorStream vectors;
    const Access *access; ///< the first that reads it
  };

  /// The loop runs a multiple of the width times.
  llvm::Error requireWholeVectors() {
    const std::map<std::string, int64_t> none;
    Multiples multiples(model, none, width);
    if (!model.stable(counted.upper) || !multiples.require(model.poly(counted.upper)))
      return notApplicable("it is not known before the launch whether the loop runs a multiple of {0} times", width);
    for (const std::string &parameter : multiples.parameters)
      state.require(parameter + " % " + std::to_string(width) + " == 0", "the loop takes whole vectors");
    return llvm::Error::success();
  }

  /// Takes a read that each iteration makes at an element of its own, which follows the one before.
  llvm::Error addStream(const Access &access) {
    if (!access.read || access.write || access.atomic || access.space != Space::Global || !insideOf(access, &loop) ||
        access.subscripts.size() != 1 || access.node->kind != ExprKind::Subscript || !model.param(access.array) ||
        access.place != access.node || access.node->type.isVolatile)
      return llvm::Error::success();
    const Poly step = access.subscripts[0] - Poly::atom(counted.var);
    if (model.dependsOn(step, {counted.var}))
      return llvm::Error::success();
    if (!isMadeByEveryIteration(access))
      return notApplicable("not every iteration reads {0}", access.array);
    for (const Stream &known : streams)
      if (equal(known.access->node, access.node))
        return llvm::Error::success(); // it finds the same lanes
    Stream stream;
    stream.access = &access;
    stream.vectors.array = access.array;
    if (!stream.vectors.describe(access) || stream.vectors.count != 1 || !stream.vectors.findVectors(width))
      return notApplicable("{0} elements of {1} are no vectors", width, access.array);
    const std::map<std::string, int64_t> none;
    Multiples multiples(model, none, stream.vectors.together);
    if (!multiples.require(step))
      return notApplicable("vectors of {0} do not begin at multiples of their size", access.array);
    for (const std::string &name : namesIn(access.node))
      if (declared.count(name) || changed.count(name))
        return notApplicable("'{0}', which says where {1} is read, changes in the loop", name, access.array);
    for (const Access &write : model.accesses()) {
      if (!write.write || write.space != Space::Global || !insideOf(write, &loop))
        continue;
      if (write.array == access.array)
        return notApplicable("the loop writes {0} as well", access.array);
      if (llvm::Error e = requireDisjoint(state, model, write.array, access.array))
        return e;
    }
    const std::string size = std::to_string(stream.vectors.together);
    state.require("aligned(" + access.array + ", " +
                      std::to_string(stream.vectors.number.bytes * stream.vectors.together) + ")",
                  access.array + " is read " + size + " elements at a time");
    for (const std::string &parameter : multiples.parameters)
      state.require(parameter + " % " + size + " == 0", "vectors begin at multiples of their size");
    streams.push_back(std::move(stream));
    return llvm::Error::success();
  }

  bool isMadeByEveryIteration(const Access &access) const {
    const bool isStatement = access.stmt->kind == StmtKind::Expr || access.stmt->kind == StmtKind::Decl;
    return isStatement && access.stmt->expr && access.path.back() == loop.body[0].get() &&
           isCertain(access.stmt->expr, access.node) && onlyComputes(access.node->args[1]) &&
           !anyNode(access.node->args[1], isLoad);
  }

  void rewrite() {
    const Type type = counted.type.withConst(false);
    const std::string piece = freshName(taken, "piece"), first = freshName(taken, "first"),
                      lane = freshName(taken, "lane");
    const ExprRef from = var(first, type), at = var(lane, Type::makeInt());
    std::vector<StmtRef> body = {declStmt(first, type.withConst(true), mul(var(piece, type), intLit(width)))};
    std::map<const Expr *, ExprRef> replacement;
    for (Stream &stream : streams) {
      const VectorStream &vectors = stream.vectors;
      const std::string lanes = freshName(taken, vectors.array + "_lanes");
      const ExprRef begin = substitute(stream.access->node, {{counted.var, from}});
      const ExprRef numbers = vectors.load(begin, width, taken, body);
      body.push_back(declStmt(lanes, vectors.number.withConst(true), numbers, {intLit(width)}));
      for (const Access &access : model.accesses())
        if (insideOf(access, &loop) && equal(access.node, stream.access->node))
          replacement[access.node.get()] = subscript(var(lanes, vectors.number), at, vectors.number);
    }
    replaceNodes(*loop.body[0], replacement);
    if (anyExpr(*loop.body[0], [&](const ExprRef &e) { return isVar(e, counted.var); })) {
      // Loops may share a counter's name; a declaration may not.
      const bool isShared = anyStmt(*kernel.body, [&](const Stmt &s) {
        return s.kind == StmtKind::Decl && s.text == counted.var && &s != loop.init.get();
      });
      const std::string counter = isShared ? freshName(taken, counted.var) : counted.var;
      substitute(*loop.body[0], {{counted.var, var(counter, type)}});
      loop.body[0]->body.insert(loop.body[0]->body.begin(), declStmt(counter, type.withConst(true), add(from, at)));
    }
    std::vector<StmtRef> iteration = loop.body[0]->body;
    body.push_back(
        countedFor(lane, Type::makeInt(), intLit(0), intLit(width), 1, block(std::move(iteration)), FullUnroll));
    const auto constant = constantValue(counted.upper);
    auto place = findPlace(*kernel.body, &loop);
    StmtRef &pieces = place->block->body[place->index];
    const unsigned line = loop.line;
    pieces = countedFor(piece, type, intLit(0),
                        constant ? intLit(*constant / width) : binary("/", counted.upper, intLit(width)), 1,
                        block(std::move(body)), NoUnroll);
    pieces->line = line;
  }

  KernelState &state;
  Kernel &kernel;
  Stmt &loop;
  const CountedLoop counted;
  const KernelModel model;
  const int64_t width;
  const std::set<std::string> declared; ///< in the loop
  const std::map<std::string, unsigned> changed;
  std::set<std::string> taken;
  std::vector<Stream> streams;
};

class VectorizeLoop : public Transform {
public:
  llvm::StringRef name() const override { return "vectorize-loop"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override {
    std::vector<ActionTemplate> result;
    for (const auto &[path, loop] : countedLoops(*state.tree))
      if (loop->unroll == NoUnroll)
        offer(result, state, path, {{{"width", "4"}}, {{"width", "8"}}, {{"width", "2"}}, {{"width", "16"}}});
    return result;
  }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef site,
                                    const Params &params) const override {
    const int64_t width = paramInt(params, "width", 4);
    if (width != 2 && width != 4 && width != 8 && width != 16)
      return notApplicable("the width must be 2, 4, 8 or 16");
    auto kernel = state.tree->clone();
    if (llvm::Error e = requireConstantParameters(*kernel))
      return std::move(e);
    Stmt *loop = findLoop(*kernel, site);
    if (!loop)
      return notApplicable("there is no counted loop '{0}'", site);
    auto counted = asCountedLoop(*loop);
    if (!counted || counted->step != 1)
      return notApplicable("the loop's step is not 1");
    if (constantValue(counted->lower) != 0) // the difference of unsigned bounds may wrap around
      return notApplicable("the loop does not begin at 0");
    if (counted->type.bytes < 4)
      return notApplicable("the loop's counter is too narrow");
    KernelState result = state.withTree(kernel);
    if (llvm::Error e = LoopVectorizer(result, *kernel, *loop, *counted, width).run())
      return std::move(e);
    return result;
  }
};
} // namespace

DEFINE_TRANSFORM(VectorizeLoop)
