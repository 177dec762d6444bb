//===- QuotientIndex.cpp - indices that are taken apart by / and % --------===//
//
// k = blockIdx.z % K, n = blockIdx.z / K: where K is a multiple of the number of indices that a block (or a thread)
// does the work of, their quotient is that of the first of them, and the remainder grows by one with the index.
//
//===----------------------------------------------------------------------===//
#include "ThreadMapping.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Canonicalize/GlobalIndex.h"

using namespace optiml;

/// The pseudo indices of the first work of a block and of a thread: the same for all copies.
static std::string firstOfBlock(unsigned axis) { return axisName("firstIdx", axis); }
static std::string firstOfThread(unsigned axis) { return axisName("ownFirstIdx", axis); }

/// Whether to make `text` a condition: the captured launches fulfil it, or there are none.
static bool promises(const LaunchHints &hints, const std::string &text) {
  return hints.arguments.empty() || hints.evaluate(IntExpr::of(text)).value_or(0) != 0;
}

/// The divisor is a multiple of `group`, by a condition on the launch if need be.
static bool divides(KernelState &state, const KernelModel &model, int64_t group, const Poly &divisor) {
  if (auto constant = divisor.constant())
    return *constant > 0 && *constant % group == 0;
  auto text = planText(model, divisor);
  if (!text)
    return false;
  std::string condition = "(" + *text + ") % " + std::to_string(group) + " == 0";
  if (!promises(state.hints, condition))
    return false;
  state.require(*text + " >= 1", "an index is divided by it");
  state.require(condition, "what is computed together has one quotient");
  return true;
}

void optiml::takeQuotientsOfFirst(KernelState &state, Kernel &kernel, unsigned axis, int64_t ofBlock,
                                  int64_t ofThread) {
  KernelModel model(kernel);
  const ExprRef global = axisBuiltin("globalIdx", axis);
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    if (!isIntDivision(e) || !(model.poly(e->args[0]) == Poly::atom(global->text)))
      return nullptr;
    const ExprRef &divisor = e->args[1];
    Poly value = model.poly(divisor);
    // Where nothing is known of the launches, the condition that more of them fulfil.
    bool tryBlock = ofThread < 2 || ofThread == ofBlock || value.constant() || !state.hints.arguments.empty();
    bool block = tryBlock && divides(state, model, ofBlock, value);
    if (!block && (ofThread < 2 || !divides(state, model, ofThread, value)))
      return nullptr;
    bool wide = e->type.bytes == 8;
    if (axis == 0 && !wide)
      state.require(threadsAlong(axis) + " <= 2147483647", "its index is an int");
    auto index = [&](const std::string &name, const Type &type) {
      auto result = std::make_shared<Expr>(*builtin(name));
      if (type.bytes == 8)
        result->type = type;
      return type.bytes == 4 && type.isSigned ? castTo(type, result) : ExprRef(result);
    };
    Type type = e->args[0]->type.withConst(false), whole = wide ? Type::makeLong() : Type::makeInt();
    ExprRef quotient = binary("/", index(block ? firstOfBlock(axis) : firstOfThread(axis), type), divisor, e->type);
    if (e->text == "/")
      return quotient;
    auto in = [&](const ExprRef &x) { return x->type.text == whole.text ? x : castTo(whole, x); };
    ExprRef rest = sub(index(global->text, whole), mul(in(quotient), in(divisor)));
    return e->type.text == whole.text ? rest : castTo(e->type, rest);
  });
}

void optiml::lowerFirstIndices(Kernel &kernel, const std::function<ExprRef(unsigned axis, bool ofThread)> &make) {
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    for (unsigned axis = 0; e->kind == ExprKind::Builtin && axis < 3; ++axis)
      for (bool ofThread : {false, true})
        if (e->text == (ofThread ? firstOfThread(axis) : firstOfBlock(axis))) {
          ExprRef index = make(axis, ofThread);
          return e->type.bytes == 8 ? widenedIndex(index, e->type) : index;
        }
    return nullptr;
  });
}
