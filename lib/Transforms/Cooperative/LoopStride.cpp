//===- LoopStride.cpp - iterations taken in turns -------------------------===//
#include "LoopStride.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/TreeQueries.h"

using namespace optiml;

void LoopStride::stride(const CountedLoop &counted, const ExprRef &thread, int64_t threads) {
  Stmt &s = *counted.stmt;
  int64_t step = counted.step * threads;
  ExprRef lower;
  auto first = mul(thread, intLit(counted.step));
  auto start = constantValue(counted.lower);
  if (start && *start == 0)
    lower = first;
  else if (start && *start > 0)
    lower = add(counted.lower, first);
  else
    lower = add(counted.lower, mul(castTo(Type::makeInt(), thread), intLit(counted.step))); // it may be negative
  // A lower bound that is not constant may be near the end of its type too: then a wider counter counts.
  int64_t most = counted.type.isSigned ? INT32_MAX : UINT32_MAX;
  std::optional<std::string> bound;
  bool safe = counted.type.bytes == 8;
  if (counted.type.bytes == 4 && start) {
    if (auto end = constantValue(counted.upper)) {
      safe = *end <= most - step && *start <= most - step;
    } else if (*start >= 0 && *start <= 1 << 30) {
      bound = planText(model, model.poly(counted.upper));
      safe = bound.has_value();
    }
  }
  if (bound)
    state.require(*bound + " <= " + std::to_string(most - step),
                  "the loop's counter does not overflow in larger steps");
  if (safe) {
    s.init = declStmt(counted.var, counted.type, lower);
    s.expr = lessThan(var(counted.var, counted.type), counted.upper); // "!=" would step over it
    s.step = assign("+=", var(counted.var, counted.type), intLit(step));
    return;
  }
  // Nothing bounds it: a wider counter cannot overflow.
  std::string wide = freshName(taken, counted.var + "_of_group");
  if (start)
    s.init = declStmt(wide, Type::makeLong(), lower);
  else
    s.init = declStmt(wide, Type::makeLong(), add(castTo(Type::makeLong(), counted.lower), first));
  s.expr = lessThan(var(wide, Type::makeLong()), counted.upper);
  s.step = assign("+=", var(wide, Type::makeLong()), intLit(step));
  std::string own = counted.var;
  // Loops one after the other may have one name, declarations may not, nor a loop and a declaration.
  bool isShared = !narrowed.insert(own).second;
  walk(*kernel.body, [&](Stmt &t) { isShared |= t.kind == StmtKind::For && t.init && t.init->text == own; });
  if (isShared) {
    own = freshName(taken, own);
    substitute(*s.body[0], {{counted.var, var(own, counted.type)}});
  }
  s.body[0]->body.insert(s.body[0]->body.begin(), declStmt(own, counted.type, var(wide, Type::makeLong())));
}
