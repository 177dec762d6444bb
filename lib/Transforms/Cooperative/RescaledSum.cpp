//===- RescaledSum.cpp - the normalizer of an online softmax --------------===//
//
// An iteration is run for x above m, below it and equal to it (IterationCases.h). It is such an update when it gives
//   x > m:  m' = x,  s' = s * exp(m - x) + w
//   x < m:  m' = m,  s' = s + exp(x - m) * w
//   x = m:  m' = m,  s' = s + w
// whatever the statements are.
//
//===----------------------------------------------------------------------===//
#include "JointUpdates.h"
#include "optiml/Analysis/IterationCases.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

/// Nothing comes in under some outcomes of conditions on values from outside.
static bool changesNothing(const IterationCase &c, std::initializer_list<std::string> variables) {
  return llvm::none_of(variables, [&](const std::string &v) { return c.changes(v); });
}

/// A maximum that is the least number has nothing in its sum yet.
static bool startsEmpty(const IterationCase &c, const std::string &m) {
  auto least = c.isLeast.find(m);
  return least != c.isLeast.end() && least->second;
}

/// The sum is no number any more after an x that is none: then the order does not matter.
static bool losesNumbers(const IterationCases &all, const IterationCase &c, const std::string &m, const std::string &s,
                         const FieldNumber &w) {
  FieldNumber oldM = all.before(m, c), oldS = all.before(s, c), x = all.numberOf(c.compared, c);
  FieldNumber grown = oldS * *(oldM - x).exponential(), added = *(x - oldM).exponential() * w;
  FieldNumber newS = c.values.at(s).number;
  return newS == oldS + added || newS == grown + w || newS == grown + added;
}

/// What the pair becomes in every case, with a weight that depends on neither of them. `unordered`: an x of which that
/// is not so where it is no number.
static bool isRescaling(const IterationCases &all, const std::string &m, const std::string &s, ExprRef &unordered) {
  std::map<std::map<std::string, bool>, std::optional<FieldNumber>> weights; // by outcomes
  for (const IterationCase &c : all.cases)
    if (c.order == Order::Equal && !startsEmpty(c, m) && c.extreme == m && !changesNothing(c, {m, s}))
      weights[c.outside] = c.values.at(s).number - all.before(s, c);
  for (const IterationCase &c : all.cases) {
    if (!c.flags.empty() || !c.places.empty())
      return false;
    bool comesIn = weights.count(c.outside);
    if (!comesIn && changesNothing(c, {m, s}))
      continue;
    if (!comesIn || c.extreme != m || !c.order)
      return false;
    if (*c.order == Order::Unordered) {
      if (!losesNumbers(all, c, m, s, *weights[c.outside]))
        unordered = c.compared;
      continue;
    }
    FieldNumber w = *weights[c.outside], oldM = all.before(m, c), x = all.numberOf(c.compared, c);
    bool isEmpty = startsEmpty(c, m);
    FieldNumber oldS = isEmpty ? FieldNumber::of(0) : all.before(s, c);
    auto grown = (oldM - x).exponential(), added = (x - oldM).exponential();
    const IterationValue &newM = c.values.at(m);
    FieldNumber newS = c.values.at(s).number;
    if (isEmpty) { // what is left of the sum is times nothing, or times what it is scaled by
      bool takesX = *c.order == Order::Equal ? newM.number == oldM : newM.number == x;
      if (*c.order != Order::Below && (!takesX || !(newS == w || newS == all.before(s, c) * *grown + w)))
        return false;
      continue;
    }
    bool isRight = *c.order == Order::Above   ? newM.number == x && newS == oldS * *grown + w
                   : *c.order == Order::Below ? newM.number == oldM && newS == oldS + *added * w
                                              : newM.number == oldM && newS == oldS + w;
    if (!isRight)
      return false;
  }
  return !weights.empty();
}

std::optional<RescaledSum> optiml::findRescaledSum(Stmt &loop, const std::map<std::string, Type> &assigned) {
  for (const auto &[m, mType] : assigned)
    for (const auto &[s, sType] : assigned) {
      if (m == s || !mType.isFloat() || !sType.sameNumber(mType))
        continue;
      std::optional<IterationCases> all[2];
      bool good = true;
      ExprRef unordered;
      for (uint64_t draw : {0, 1}) {
        all[draw] = casesOf(loop, {m, s}, draw + 1);
        good = good && all[draw] && all[draw]->functions.size() == 1 && isRescaling(*all[draw], m, s, unordered);
      }
      if (!good)
        continue;
      // The weight is the same for other pairs.
      for (size_t i = 0; i < all[0]->cases.size(); ++i) {
        const IterationCase &a = all[0]->cases[i], &b = all[1]->cases[i];
        if (a.order == Order::Equal && !startsEmpty(a, m))
          good &= a.values.at(s).number - all[0]->before(s, a) == b.values.at(s).number - all[1]->before(s, b);
      }
      if (good)
        return RescaledSum{m, s, mType, *all[0]->functions.begin(), unordered};
    }
  return std::nullopt;
}

static ExprRef leastNumber(const Type &type) {
  return unary("-", floatLit(type.bytes == 4 ? "3.40282347e+38f" : "1.7976931348623157e+308", type), type);
}

StmtRef optiml::startAtNumber(const RescaledSum &pair) {
  ExprRef m = var(pair.extreme, pair.type), least = leastNumber(pair.type);
  return ifStmt(lessThan(m, least), block({exprStmt(assign("=", m, least))}));
}

StmtRef optiml::restoreStart(const RescaledSum &pair, const ExprRef &start) {
  ExprRef m = var(pair.extreme, pair.type), s = var(pair.sum, pair.type);
  ExprRef nothing = logicalAnd(binary("==", m, leastNumber(pair.type), Type::makeBool()),
                               binary("==", s, intLit(0), Type::makeBool()));
  return ifStmt(nothing, block({exprStmt(assign("=", m, start))}));
}

StmtRef optiml::combineRescaled(const RescaledSum &pair, const ExprRef &otherExtreme, const ExprRef &otherSum) {
  ExprRef m = var(pair.extreme, pair.type), s = var(pair.sum, pair.type);
  auto scaled = [&](const ExprRef &value, const ExprRef &from, const ExprRef &to) {
    ExprRef e = callOf(pair.function, {binary("-", from, to, pair.type)}, pair.type, true);
    return binary("*", value, e, pair.type);
  };
  StmtRef grows = block({exprStmt(assign("=", s, binary("+", scaled(s, m, otherExtreme), otherSum, pair.type))),
                         exprStmt(assign("=", m, otherExtreme))});
  // Equal ones may both be infinite: a thread that has seen nothing.
  ExprRef same = binary("==", otherExtreme, m);
  StmtRef stays = block({exprStmt(assign("+=", s, conditional(same, otherSum, scaled(otherSum, otherExtreme, m))))});
  return ifStmt(binary(">", otherExtreme, m), grows, stays);
}
