//===- Tabulate.cpp - functions of a byte as tables -----------------------===//
//
// tabulate[kernel]: what a thread computes from one byte of its own, and else from what the whole block shares, has 256
// values at most. The block computes them once, into a table in shared memory, and its threads look them up. It pays
// where a block has many elements: after `grid-stride`.
//
// Example:
//   out[i] = powf(in[i] / 255.0f, gamma);     __shared__ float pow_of_byte[256];
//                                             for (int k = threadIdx.x; k < 256; k += 256)
//                                               pow_of_byte[k] = powf((unsigned char)k / 255.0f, gamma);
//                                             __syncthreads();
//                                             …
//                                             out[i] = pow_of_byte[in[i]];
//
// Legal: the value depends on one integer of a byte, on arguments, constants, the block's place, and on memory that the
// kernel does not write (proved, or a condition). What is read at a place that the byte decides lies in an array of the
// file that is large enough, or in memory that is (the condition `holds(p, bytes)`), as the block reads all 256 places.
// Quotients of integers by the byte are no such values: they may fault. What differs in nothing but the byte's name
// shares a table.
//
// Refuses: values that cost less than to look them up; other values that a thread changes; a block shape that is not
// fixed; tables larger than shared memory.
//
//===----------------------------------------------------------------------===//
#include "SharedTile.h"
#include "ThreadMapping.h"
#include "Transforms.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Disjoint.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

/// Values of a byte.
constexpr int64_t keys = 256;
/// Instructions that a value must take, roughly, for a table to be worth it. A load from shared memory takes two.
constexpr unsigned leastCost = 12;

/// A value that depends on one byte.
struct ByteFunction {
  ExprRef value;      ///< over arguments, block indices, and `key`
  ExprRef key;        ///< where it is used: a local, or a load
  Type keyType;       ///< of a byte
  bool moves = false; ///< the load of the key stood in an earlier statement
};

class Tables {
public:
  Tables(KernelState &state, Kernel &kernel)
      : state(state), kernel(kernel), model(kernel, state.pinnedBlock()), taken(allNames(kernel)) {}
  llvm::Error make();

private:
  struct Table {
    std::string name;
    ExprRef value;
    Type keyType;
  };

  bool isByte(const Type &type) const { return type.cls == Type::Class::Int && type.bytes == 1; }
  std::optional<Type> byteOf(const ExprRef &e) const;
  ExprRef expanded(const ExprRef &e, bool &moves, unsigned depth) const;
  std::optional<ByteFunction> functionAt(const ExprRef &e) const;
  unsigned costOf(const ExprRef &value) const;
  bool mayStandBefore(const ByteFunction &function, KernelState &within) const;
  bool readsInside(const ExprRef &load, KernelState &within) const;
  ExprRef replaced(const ExprRef &e);
  std::vector<StmtRef> filled(const Table &table);

  KernelState &state;
  Kernel &kernel;
  const KernelModel model;
  std::set<std::string> taken;
  std::vector<Table> tables;
  static constexpr const char *keyName = "key of table";
};

class Tabulate : public Transform {
public:
  llvm::StringRef name() const override { return "tabulate"; }

  std::vector<ActionTemplate> sites(const KernelState &state) const override { return kernelSite(*this, state, {{}}); }

  llvm::Expected<KernelState> apply(const KernelState &state, llvm::StringRef, const Params &) const override {
    if (!state.isPinned())
      return notApplicable("the block shape is not fixed yet");
    KernelState result = state;
    auto kernel = state.tree->clone();
    if (llvm::Error e = Tables(result, *kernel).make())
      return std::move(e);
    result.tree = kernel;
    return result;
  }
};

} // namespace

/// The type of the byte that an expression's value is, whatever its own type; nothing: it is another value.
std::optional<Type> Tables::byteOf(const ExprRef &e) const {
  if (isByte(e->type) && (e->kind == ExprKind::Var || e->kind == ExprKind::Subscript))
    return e->type.unqualified();
  if (e->kind != ExprKind::Var || !e->type.isInt() || e->type.bytes < 4)
    return std::nullopt;
  const Stmt *local = model.singleAssignment(e->text);
  ExprRef value = local ? local->expr : nullptr;
  while (value && value->kind == ExprKind::Cast && value->type.isInt() && value->type.bytes >= 4)
    value = value->args[0];
  return value && isByte(value->type) ? std::optional(value->type.unqualified()) : std::nullopt;
}

/// With what locals stand for in their place, but for those that are bytes. `moves`: a load moves with it.
ExprRef Tables::expanded(const ExprRef &e, bool &moves, unsigned depth) const {
  if (byteOf(e))
    return e;
  if (e->kind == ExprKind::Var) {
    const Stmt *local = depth ? model.singleAssignment(e->text) : nullptr;
    if (!local || !local->expr || !local->dims.empty() || hasEffects(local->expr))
      return e;
    moves |= anyNode(local->expr, [](const ExprRef &part) { return isLoad(part); });
    return castTo(local->type.withConst(false), expanded(local->expr, moves, depth - 1));
  }
  auto result = std::make_shared<Expr>(*e);
  for (ExprRef &arg : result->args)
    arg = expanded(arg, moves, depth);
  return result;
}

unsigned Tables::costOf(const ExprRef &value) const {
  unsigned cost = 0;
  walk(value, [&](const ExprRef &n) {
    if (n->kind == ExprKind::Call)
      cost += 16;
    else if (isBinary(n, "/") || isBinary(n, "%"))
      cost += n->type.isInt() && n->type.bytes == 8 ? 40 : 10;
    else if (isLoad(n))
      cost += 4;
    else if (n->kind == ExprKind::Binary || n->kind == ExprKind::Cond || n->kind == ExprKind::Cast)
      cost += 1;
  });
  return cost;
}

std::optional<ByteFunction> Tables::functionAt(const ExprRef &e) const {
  if (!(e->type.isInt() || e->type.isFloat()) || e->type.isHalf || hasEffects(e))
    return std::nullopt;
  constexpr unsigned depth = 8;
  ByteFunction function;
  ExprRef whole = expanded(e, function.moves, depth);
  bool isOne = true;
  const ExprRef placeholder = var(keyName, Type::makeInt());
  function.value = rewrite(whole, [&](const ExprRef &n) -> ExprRef {
    auto type = byteOf(n);
    if (!type || !(model.varies(n) & AnyThread))
      return nullptr;
    isOne &= !function.key || equal(function.key, n);
    function.key = n;
    function.keyType = *type;
    const ExprRef byte = castTo(*type, placeholder);
    return n->type.bytes == 1 ? byte : castTo(n->type.unqualified(), byte);
  });
  if (!isOne || !function.key || anyNode(function.value, [](const ExprRef &n) { return n->kind == ExprKind::Opaque; }))
    return std::nullopt;
  // All else the block has in common. What the kernel writes has no value of its own.
  const bool isCommon =
      !(model.varies(function.value) & (AnyThread | FromMemory)) && !anyNode(function.value, [&](const ExprRef &n) {
        return n->kind == ExprKind::Var && n->text != keyName && !model.param(n->text) &&
               (model.declaration(n->text) || (!n->type.isPointer() && !n->type.isConst));
      });
  return isCommon && costOf(function.value) >= leastCost ? std::optional(std::move(function)) : std::nullopt;
}

/// A load at a place that the key decides reads inside of its array, for all keys.
bool Tables::readsInside(const ExprRef &load, KernelState &within) const {
  if (load->kind != ExprKind::Subscript || !anyNode(load->args[1], [](const ExprRef &n) { return isVar(n, keyName); }))
    return true; // the block's threads read it all the same, or an element near it
  ExprRef index = load->args[1];
  while (index->kind == ExprKind::Cast && index->type.isInt())
    index = index->args[0];
  // (int)(unsigned char)key
  const ExprRef &root = load->args[0];
  const bool isKey = isVar(index, keyName) || (index->kind == ExprKind::Cast && isVar(index->args[0], keyName));
  if (!isKey || root->kind != ExprKind::Var)
    return false;
  if (const Param *param = model.param(root->text)) {
    if (!param->type.pointee || param->type.pointee->bytes == 0)
      return false;
    within.require(IntExpr::of("holds(" + param->name + ", " + std::to_string(keys * param->type.pointee->bytes) + ")"),
                   "the table reads all of " + param->name + "'s first " + std::to_string(keys) + " elements");
    return true;
  }
  return false;
}

/// The block may compute it for all keys, before all else.
bool Tables::mayStandBefore(const ByteFunction &function, KernelState &within) const {
  bool ok = true;
  std::set<std::string> read;
  walk(function.value, [&](const ExprRef &n) {
    if (isIntDivision(n) && anyNode(n->args[1], [](const ExprRef &part) { return isVar(part, keyName); }))
      ok = false;
    if (!isLoad(n))
      return;
    ok &= readsInside(n, within) && !(function.keyType.isSigned && mentions(n, keyName));
    const std::string array = rootName(n->kind == ExprKind::Member ? n->args[0] : n);
    if (model.param(array))
      read.insert(array);
    else
      ok &= !array.empty() && n->type.isConst; // constant memory
  });
  if (function.moves && function.key->kind == ExprKind::Subscript)
    read.insert(rootName(function.key));
  for (const std::string &array : read)
    for (const Access &access : model.accesses())
      if (ok && access.write && access.space == Space::Global) {
        const std::string written = model.ofWholeRecord(access).array;
        llvm::Error overlap =
            written == array ? notApplicable("it is written") : requireDisjoint(within, model, array, written);
        ok &= !overlap;
        llvm::consumeError(std::move(overlap));
      }
  return ok;
}

/// With lookups in the place of all functions of a byte.
ExprRef Tables::replaced(const ExprRef &e) {
  if (auto function = functionAt(e)) {
    KernelState trial = state;
    if (mayStandBefore(*function, trial)) {
      state = std::move(trial);
      auto known = llvm::find_if(tables, [&](const Table &table) {
        return equal(table.value, function->value) && table.keyType.text == function->keyType.text &&
               table.value->type.text == function->value->type.text;
      });
      if (known == tables.end()) {
        tables.push_back({freshName(taken, "of_byte"), function->value, function->keyType});
        known = tables.end() - 1;
      }
      ExprRef place = castTo(Type::makeInt(), function->key);
      if (function->keyType.isSigned)
        place = add(place, intLit(keys / 2));
      return subscript(var(known->name, e->type.unqualified()), place, e->type.unqualified());
    }
  }
  auto result = std::make_shared<Expr>(*e);
  for (size_t i = 0; i < result->args.size(); ++i) {
    const bool isPlace = i == 0 && (isChange(e) || isUnary(e, "&") || e->kind == ExprKind::Member);
    if (!isPlace)
      result->args[i] = replaced(result->args[i]);
    else if (result->args[i]->kind == ExprKind::Subscript) {
      auto target = std::make_shared<Expr>(*result->args[i]);
      target->args[1] = replaced(target->args[1]);
      result->args[i] = target;
    }
  }
  return result;
}

std::vector<StmtRef> Tables::filled(const Table &table) {
  const std::string k = freshName(taken, "k");
  const ExprRef counter = var(k, Type::makeInt());
  const ExprRef key = table.keyType.isSigned ? binary("-", counter, intLit(keys / 2), Type::makeInt()) : counter;
  const Type type = table.value->type.unqualified();
  StmtRef entry =
      exprStmt(assign("=", subscript(var(table.name, type), counter, type), substitute(table.value, {{keyName, key}})));
  return {sharedArray(table.name, type, {intLit(keys)}), sharedLoop(k, keys, state.pinnedBlock(), entry)};
}

llvm::Error Tables::make() {
  if (unsigned line = model.unknownEffectLine())
    return notApplicable("line {0} may access memory in ways that are not understood", line);
  std::vector<Stmt *> stmts;
  walk(*kernel.body, [&](Stmt &s) {
    if (s.kind != StmtKind::Opaque && !(s.kind == StmtKind::Decl && s.isShared))
      stmts.push_back(&s);
  });
  for (Stmt *s : llvm::reverse(stmts)) // what a later statement makes of a local's value is part of the table
    ownExprs(*s, [&](ExprRef &e) { e = replaced(e); });
  removeUnused(kernel); // with the tables that only such a local looked at
  std::erase_if(tables, [&](const Table &table) {
    return !anyExpr(*kernel.body, [&](const ExprRef &e) { return isVar(e, table.name); });
  });
  if (tables.empty())
    return notApplicable("no value that takes long depends on a byte, and else on what the block shares");
  std::vector<StmtRef> before;
  int64_t bytes = sharedBytes(kernel);
  for (const Table &table : tables) {
    bytes += keys * table.value->type.bytes;
    llvm::append_range(before, filled(table));
  }
  if (bytes > int64_t(state.hints.maxSharedBytes))
    return notApplicable("the tables are too large for shared memory");
  before.push_back(barrierStmt());
  kernel.body->body.insert(kernel.body->body.begin(), before.begin(), before.end());
  return llvm::Error::success();
}

DEFINE_TRANSFORM(Tabulate)
