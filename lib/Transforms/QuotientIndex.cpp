//===- QuotientIndex.cpp - what copies of a thread have of the first one --===//
//
// i < n: where n is a multiple of the number of indices that a thread (or a block) does the work of, the first of them
// decides for all.
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

/// The first index of a block or of a thread, as an integer of this type.
static ExprRef firstIndexAs(const std::string &name, const Type &type) {
  auto result = std::make_shared<Expr>(*builtin(name));
  if (type.bytes == 8)
    result->type = type;
  return type.bytes == 4 && type.isSigned ? castTo(type, result) : ExprRef(result);
}

void optiml::takeBoundsOfFirst(KernelState &state, Kernel &kernel, unsigned axis, int64_t ofBlock, int64_t ofThread) {
  KernelModel model(kernel);
  const Poly global = Poly::atom(axisBuiltin("globalIdx", axis)->text);
  // What is not known of any launch is no reason to leave launches to the original.
  auto isMultiple = [&](const Poly &bound, int64_t group) {
    if (auto constant = bound.constant())
      return *constant % group == 0;
    auto text = planText(model, bound);
    const std::string condition = "(" + text.value_or("0") + ") % " + std::to_string(group) + " == 0";
    if (group < 2 || !text || state.hints.arguments.empty() ||
        state.hints.evaluate(IntExpr::of(condition)).value_or(0) == 0)
      return false;
    state.require(condition, "what a thread computes is inside together");
    return true;
  };
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    if (e->kind != ExprKind::Binary || (e->text != "<" && e->text != ">=" && e->text != ">" && e->text != "<="))
      return nullptr;
    const unsigned side = e->text == "<" || e->text == ">=" ? 0 : 1;
    const ExprRef &index = e->args[side];
    if (!(model.poly(index) == global))
      return nullptr;
    const Poly bound = model.poly(e->args[1 - side]);
    std::string first;
    if (ofThread > 1 && isMultiple(bound, ofThread))
      first = firstOfThread(axis);
    else if (ofThread < 2 && isMultiple(bound, ofBlock))
      first = firstOfBlock(axis);
    if (first.empty())
      return nullptr;
    auto copy = std::make_shared<Expr>(*e);
    copy->args[side] = firstIndexAs(first, index->type.withConst(false));
    return copy;
  });
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
    Type type = e->args[0]->type.withConst(false), whole = wide ? Type::makeLong() : Type::makeInt();
    ExprRef quotient =
        binary("/", firstIndexAs(block ? firstOfBlock(axis) : firstOfThread(axis), type), divisor, e->type);
    if (e->text == "/")
      return quotient;
    auto in = [&](const ExprRef &x) { return x->type.text == whole.text ? x : castTo(whole, x); };
    ExprRef rest = sub(firstIndexAs(global->text, whole), mul(in(quotient), in(divisor)));
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
