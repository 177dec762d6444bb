//===- VectorStreams.cpp - which arrays are accessed by vectors -----------===//
#include "../Transforms.h"
#include "VectorStream.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace optiml;

std::optional<int64_t> optiml::stepAlongX(const KernelModel &model, const Poly &p) {
  auto c = p.coefficient("globalIdx.x");
  auto step = c ? c->constant() : std::nullopt;
  for (const std::string &atom : p.atoms())
    if (atom != "globalIdx.x" && model.variesAtom(atom) & (ThreadX | BlockX))
      return std::nullopt;
  return step;
}

namespace {
class StreamFinder : LaneWork {
public:
  StreamFinder(KernelState &state, const LaneWork &work, std::vector<VectorStream> &streams,
               std::vector<std::string> &multiples)
      : LaneWork(work), state(state), streams(streams), multiples(multiples) {}

  llvm::Error run() {
    std::vector<std::string> arrays;
    for (const Access &access : model.accesses()) {
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
    if (width > 4 && llvm::all_of(streams, [&](const VectorStream &s) { return s.needsHalfOf(width); }))
      return notApplicable("half as many elements are accessed by vectors of the same size");
    for (const VectorStream &stream : streams)
      if (llvm::Error e = requireOrder(stream))
        return e;
    return llvm::Error::success();
  }

private:
  /// Nothing when the array is to be accessed lane by lane.
  llvm::Expected<std::optional<VectorStream>> streamOf(const std::string &array) {
    const Param *param = model.param(array);
    if (!param || !param->type.isPointer() || param->type.pointee->isVolatile || changedParameters(kernel).count(array))
      return std::nullopt;
    VectorStream stream;
    stream.array = array;
    const Access *sure = nullptr, *any = nullptr;
    std::vector<const Access *> accesses;
    bool oneElement = true;
    for (size_t i = 0; i < model.accesses().size(); ++i) {
      const Access &access = model.accesses()[i];
      if (access.array != array)
        continue;
      if (access.atomic || access.subscripts.size() != 1 || access.root->kind != ExprKind::Var ||
          !model.stable(access.subscripts[0]) || access.node->kind != ExprKind::Subscript ||
          !isVar(access.node->args[0], array) || !stream.describe(access))
        return std::nullopt;
      accesses.push_back(&access);
      if (!any)
        any = &access;
      if (always(access) && !sure)
        sure = &access;
      oneElement &= any->subscripts[0] == access.subscripts[0];
      stream.reads |= access.read;
      stream.writes |= access.write;
      if (access.write)
        stream.lastWrite = i;
    }
    if (!any)
      return std::nullopt;
    if (!oneElement && !stream.writes)
      if (const Access *base = readInVectors(stream, accesses))
        return withConditions(stream, *base);
    if (const Access *first = stepAlongX(model, any->subscripts[0]) == 1 ? nullptr : severalElements(stream, accesses))
      sure = any = first;
    else if (!oneElement || stepAlongX(model, any->subscripts[0]) != 1)
      return std::nullopt;
    for (int64_t part = 0; stream.writes && part < stream.count; ++part)
      if (!stores(body, stream, part))
        return std::nullopt;
    if (!sure && !stream.writes)
      return std::nullopt;
    const Access &lanes = sure ? *sure : *any;
    if (!isKnownBefore(lanes.node->args[1]) || !stream.findVectors(width) ||
        !startsAtVectors(stream, any->subscripts[0]))
      return std::nullopt;
    return withConditions(stream, lanes);
  }

  VectorStream withConditions(VectorStream stream, const Access &of) {
    stream.index = of.node->args[1];
    state.require("aligned(" + stream.array + ", " + std::to_string(stream.number.bytes * stream.together) + ")",
                  stream.array + " is accessed " + std::to_string(width) + " elements at a time");
    return stream;
  }

  /// The index has its value before the lanes begin.
  bool isKnownBefore(const ExprRef &index) const {
    return llvm::all_of(namesIn(index), [&](const std::string &name) {
      const Stmt *d = model.declaration(name);
      bool inBody = d && llvm::none_of(kernel.body->body, [&](const StmtRef &s) { return s.get() == d; });
      return !inBody || llvm::any_of(indexDecls, [&](const StmtRef &s) { return s.get() == d; });
    });
  }

  /// Of reads here and there, one that each lane makes of its own element. What lies beside it comes from the vector,
  /// too, where another lane has it.
  const Access *readInVectors(VectorStream &stream, const std::vector<const Access *> &accesses) {
    if (stream.count != 1 || !stream.findVectors(width))
      return nullptr;
    for (const Access *access : accesses)
      if (always(*access) && stepAlongX(model, access->subscripts[0]) == 1 && isKnownBefore(access->node->args[1]) &&
          startsAtVectors(stream, access->subscripts[0])) {
        stream.own = access->subscripts[0];
        return access;
      }
    return nullptr;
  }

  /// Makes it the stream of a lane that has as many elements as the index grows from one lane to the next. Gives the
  /// access to the first of them; null where others are accessed too, or the last one may not be there to be read.
  const Access *severalElements(VectorStream &stream, const std::vector<const Access *> &accesses) const {
    const std::optional<int64_t> step = stepAlongX(model, accesses[0]->subscripts[0]);
    if (stream.count != 1 || !step || *step <= 1)
      return nullptr;
    const Access *first = accesses[0];
    for (const Access *access : accesses) {
      std::optional<int64_t> distance = (access->subscripts[0] - first->subscripts[0]).constant();
      if (!distance)
        return nullptr;
      first = *distance < 0 ? access : first;
    }
    std::set<int64_t> surely;
    for (const Access *access : accesses) {
      const int64_t number = *(access->subscripts[0] - first->subscripts[0]).constant();
      if (number >= *step)
        return nullptr;
      if (always(*access))
        surely.insert(number);
    }
    if (stream.reads && !(surely.count(0) && surely.count(*step - 1)))
      return nullptr; // all between two elements of an array is there
    stream.count = *step;
    stream.firstOf = first->subscripts[0];
    return first;
  }

  /// Every way through `s` stores that number of the stream's.
  bool stores(const Stmt &s, const VectorStream &stream, int64_t number) const {
    if (s.kind == StmtKind::Block)
      return llvm::any_of(s.body, [&](const StmtRef &child) { return stores(*child, stream, number); });
    if (s.kind == StmtKind::If)
      return s.body.size() == 2 && stores(*s.body[0], stream, number) && stores(*s.body[1], stream, number);
    return s.kind == StmtKind::Expr && s.expr->kind == ExprKind::Assign &&
           llvm::any_of(model.accesses(), [&](const Access &access) {
             return access.place == s.expr->args[0] && access.array == stream.array &&
                    (storedList(access) || stream.numberOf(access) == number);
           });
  }

  /// In a lane, the load moves to the front and the store to the end.
  llvm::Error requireOrder(const VectorStream &stream) {
    const std::vector<Access> &all = model.accesses();
    auto isVector = [&](const std::string &array) {
      return llvm::any_of(streams, [&](const VectorStream &s) { return s.array == array; });
    };
    bool loops = anyStmt(body, [&](const Stmt &s) { return isLoop(s); }); // what comes later may come before
    std::set<std::string> apart, written;
    bool stored = false;
    bool allStoresSure =
        llvm::all_of(all, [&](const Access &a) { return a.array != stream.array || !a.write || always(a); });
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

  bool always(const Access &access) const {
    return access.path.back() == &body && access.guards.size() == guardCount && access.stmt->kind != StmtKind::For;
  }

  /// The numbers of a thread's lanes begin where a vector does, at `index` in lane 0.
  bool startsAtVectors(const VectorStream &stream, const Poly &index) {
    const Poly step(stream.firstOf ? stream.count : 1), rest = index - step * Poly::atom("globalIdx.x");
    if (std::optional<Poly> whole = quotientOf(rest, step))
      return wholeMultiple(*whole, width);
    return wholeMultiple(rest, stream.together); // rows that are so many numbers apart
  }

  /// Every term of `rest` is a multiple of that, with what it asks of parameters as conditions.
  bool wholeMultiple(const Poly &rest, int64_t of) {
    std::vector<std::string> wanted;
    for (const auto &[monomial, c] : rest.terms) {
      if (c % of == 0)
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
      state.require((product.find(' ') == std::string::npos ? product : "(" + product + ")") + " % " +
                        std::to_string(of) + " == 0",
                    "vectors of " + std::to_string(of) + " elements are aligned in every row");
      if (of % width == 0)
        multiples.push_back(product);
    }
    return true;
  }

  KernelState &state;
  std::vector<VectorStream> &streams;
  std::vector<std::string> &multiples;
};
} // namespace

llvm::Error optiml::findStreams(KernelState &state, const LaneWork &work, std::vector<VectorStream> &streams,
                                std::vector<std::string> &multiples) {
  return StreamFinder(state, work, streams, multiples).run();
}
