//===- ManySums.cpp - many sums of a block at once ------------------------===//
#include "ManySums.h"
#include "PrivateTable.h"

using namespace optiml;

/// for (i = 0; i < half; ++i) { given = upper ? s[i] : s[i + half]; s[i] = (upper ? s[i + half] : s[i]) + shuffled; }
static StmtRef halve(const ExprRef &sums, const Type &type, const ExprRef &lane, int64_t half, int64_t offset,
                     std::set<std::string> &taken) {
  std::string i = freshName(taken, "sum");
  ExprRef index = var(i, Type::makeInt());
  ExprRef low = subscript(sums, index, type), high = subscript(sums, add(index, intLit(half)), type);
  ExprRef upper = binary("!=", binary("&", lane, intLit(offset)), intLit(0), Type::makeBool());
  ExprRef given = var(freshName(taken, "given"), type), got = var(freshName(taken, "got"), type);
  ExprRef mask = intLit(0xffffffff, Type::makeUnsigned());
  StmtRef body =
      block({declStmt(given->text, type, conditional(upper, low, high)),
             declStmt(got->text, type, callOf("__shfl_xor_sync", {mask, given, intLit(offset)}, type, false)),
             exprStmt(assign("=", low, binary("+", conditional(upper, high, low), got, type)))});
  return countedFor(i, Type::makeInt(), intLit(0), intLit(half), 1, body, FullUnroll);
}

std::vector<StmtRef> optiml::combineMany(const ThreadGroup &group, const std::vector<BlockSum> &blockSums,
                                         std::set<std::string> &taken) {
  const Type type = blockSums.front().reduction.type;
  const int64_t wanted = int64_t(blockSums.size()), warps = std::max<int64_t>(group.threads / 32, 1);
  int64_t places = 32; // a power of two, so that each step has two halves
  while (places < wanted)
    places *= 2;
  ExprRef sums = var(freshName(taken, "sums_of_thread"), type), rank = group.rank();
  ExprRef lane = var(freshName(taken, "lane"), Type::makeInt());
  std::vector<StmtRef> made = {declStmt(lane->text, lane->type.withConst(true), binary("%", rank, intLit(32))),
                               declStmt(sums->text, type, nullptr, {intLit(places)})};
  for (int64_t k = 0; k < places; ++k) {
    ExprRef value = k < wanted ? var(blockSums[size_t(k)].reduction.variable, type) : intLit(0);
    made.push_back(exprStmt(assign("=", subscript(sums, intLit(k), type), value)));
  }
  for (int64_t offset = 16, half = places / 2; offset; offset /= 2, half /= 2)
    made.push_back(halve(sums, type, lane, half, offset, taken));

  // A lane has the sums from lane * (places / 32) on.
  ExprRef ofWarps = var(freshName(taken, "sums_of_warps"), type);
  made.insert(made.begin(), sharedArray(ofWarps->text, type, {intLit(warps * places)}));
  ExprRef i = var(freshName(taken, "sum"), Type::makeInt());
  ExprRef own = add(add(mul(binary("/", rank, intLit(32)), intLit(places)), mul(lane, intLit(places / 32))), i);
  StmtRef store = exprStmt(assign("=", subscript(ofWarps, own, type), subscript(sums, i, type)));
  made.push_back(countedFor(i->text, Type::makeInt(), intLit(0), intLit(places / 32), 1, block({store}), FullUnroll));
  made.push_back(barrierStmt());

  ExprRef k = var(freshName(taken, "place"), Type::makeInt()), w = var(freshName(taken, "warp"), Type::makeInt());
  // In a register: a compiler would read a place ahead of the comparison that says whose it is.
  ExprRef total = var(freshName(taken, "total"), type);
  StmtRef adds = block({exprStmt(assign("+=", total, subscript(ofWarps, add(mul(w, intLit(places)), k), type)))});
  StmtRef updates = block({declStmt(total->text, type, subscript(ofWarps, k, type)),
                           countedFor(w->text, Type::makeInt(), intLit(1), intLit(warps), 1, adds, NoUnroll)});
  for (size_t s = 0; s < blockSums.size(); ++s) {
    const BlockSum &sum = blockSums[s];
    ExprRef isThis = logicalAnd(binary("==", k, intLit(int64_t(s)), Type::makeBool()), binary("!=", total, intLit(0)));
    updates->body.push_back(ifStmt(isThis, block({exprStmt(updateLike(sum.update, sum.address, sum.whole(total)))})));
  }
  made.push_back(countedFor(k->text, Type::makeInt(), rank, intLit(wanted), group.threads, updates, NoUnroll));
  return made;
}
