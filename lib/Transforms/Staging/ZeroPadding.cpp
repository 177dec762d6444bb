//===- ZeroPadding.cpp - tests that a tile's zeros stand for --------------===//
#include "ZeroPadding.h"
#include "TileGuards.h"
#include "optiml/Analysis/Conjuncts.h"
#include "optiml/Analysis/TreeQueries.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

ZeroPadding ZeroPadding::find(const KernelModel &model, const std::vector<Tile> &tiles, const Stmt *within) {
  ZeroPadding found;
  forEachList(*model.kernel().body, [&](std::vector<StmtRef> &list) { llvm::append_range(found.owners, list); });
  for (const Tile &tile : tiles) {
    // With one conjunction for all reads, an element for which it does not hold is zero.
    if (tile.guards.size() != 1 || tile.parts.size() != 1 || !tile.parts.front().type.isFloat() ||
        !tile.boundaries.empty())
      continue;
    std::map<const Access *, std::vector<Poly>> inside; // what is said of the element, in terms of the read
    for (const Access *access : tile.accesses) {
      const std::vector<Poly> &coordinates = tile.coordinates.at(access);
      for (Poly p : tile.guards.front()) {
        bool ofElement = false;
        for (size_t d = 0; d < coordinates.size(); ++d) {
          ofElement |= p.mentions(coordinate(d));
          p = p.substitute(coordinate(d), coordinates[d]);
        }
        if (ofElement)
          inside[access].push_back(p);
      }
    }
    // The test has to say it of all reads of the tile under it: one element may be outside, and its neighbour inside.
    auto saysOfAll = [&](Stmt *branch, const Poly &fact) {
      return llvm::all_of(tile.accesses, [&](const Access *access) {
        return !llvm::is_contained(access->path, branch) || llvm::is_contained(inside[access], fact);
      });
    };
    std::set<const Stmt *> seen;
    for (const Access *access : tile.accesses) {
      Stmt *outermost = nullptr;
      auto from = within ? llvm::find(access->path, within) : access->path.begin();
      if (within && from != access->path.end())
        ++from;
      for (Stmt *s : llvm::make_range(from, access->path.end())) {
        if (s->kind == StmtKind::For && !outermost)
          outermost = s;
        if (s->kind != StmtKind::If || s->body.size() != 1 || !seen.insert(s).second)
          continue;
        Test test{s, outermost ? outermost : s, tile.parts.front().name, {}};
        std::vector<ExprRef> conjuncts;
        addConjuncts(s->expr, conjuncts);
        for (const ExprRef &conjunct : conjuncts) {
          std::vector<Poly> facts;
          if (conjunct->kind == ExprKind::Binary)
            model.addFacts(conjunct, true, facts);
          if (facts.size() == 1 && saysOfAll(s, facts.front()))
            test.needless.push_back(conjunct);
        }
        if (!test.needless.empty())
          found.tests.push_back(std::move(test));
      }
    }
  }
  return found;
}

/// Of all elements of the tile: whether one is not finite makes `finite` false.
static StmtRef testElements(const Tile &tile, const ExprRef &finite, const ExprRef &tid, int64_t threads,
                            std::set<std::string> &taken) {
  const TilePart &part = tile.parts.front();
  ExprRef e = var(freshName(taken, "e"), Type::makeInt()), element = var(part.name, part.type);
  if (tile.copy)
    element = subscript(element, tile.copy, part.type);
  int64_t inner = tile.elements();
  for (unsigned d : tile.layout) {
    const int64_t extent = tile.dims[d].extent;
    ExprRef index = e;
    inner /= extent;
    if (inner > 1)
      index = binary("/", index, intLit(inner));
    if (d != tile.layout.front())
      index = binary("%", index, intLit(extent));
    element = subscript(element, index, part.type);
  }
  const bool isSingle = part.type.bytes == 4;
  ExprRef most = floatLit(isSingle ? "3.402823466e+38f" : "1.7976931348623157e+308", part.type),
          size = callOf(isSingle ? "fabsf" : "fabs", {element}, part.type, true);
  return countedFor(
      e->text, Type::makeInt(), tid, intLit(tile.elements()), threads,
      block({exprStmt(assign("=", finite, logicalAnd(finite, binary("<=", size, most, Type::makeBool()))))}), NoUnroll);
}

llvm::Expected<std::vector<StmtRef>> ZeroPadding::drop(Kernel &kernel, const std::vector<Tile> &tiles,
                                                       const ExprRef &tid, int64_t threads,
                                                       std::set<std::string> &taken) const {
  // A test of a tile's reads may go where the whole branch adds zeros with that tile's zeros.
  std::vector<std::pair<Stmt *, std::vector<const Test *>>> byLoop; // in their order in the kernel
  std::set<std::string> factors;
  std::set<const Stmt *> present;
  walk(*kernel.body, [&](Stmt &s) { present.insert(&s); });
  for (const Test &test : tests) {
    if (!present.count(test.branch) || !present.count(test.outermost))
      continue;
    std::set<std::string> others;
    for (const Tile &tile : tiles)
      if (tile.parts.size() == 1 && tile.parts.front().name != test.tile &&
          (tile.parts.front().type.bytes == 4 || tile.parts.front().type.bytes == 8))
        others.insert(tile.parts.front().name);
    // The factor may have come to a local before the branch.
    Stmt *seen = test.branch->body[0].get();
    if (!addsZerosWithTiles(kernel, *seen, {test.tile}, "", others)) {
      seen = test.outermost;
      if (!addsZerosWithTiles(kernel, *seen, {test.tile}, "", others))
        continue;
    }
    auto own = llvm::find_if(byLoop, [&](const auto &entry) { return entry.first == test.outermost; });
    if (own == byLoop.end())
      own = byLoop.insert(own, {test.outermost, {}});
    own->second.push_back(&test);
    walkExprs(*seen, [&](const ExprRef &e) {
      if (e->kind == ExprKind::Var && others.count(e->text))
        factors.insert(e->text);
    });
  }
  if (byLoop.empty())
    return notApplicable("no test could go in favour of zeros in a tile");
  std::vector<StmtRef> before;
  ExprRef allFinite;
  if (!factors.empty()) {
    ExprRef finite = var(freshName(taken, "finite"), Type::makeBool());
    allFinite = var(freshName(taken, "all_finite"), Type::makeInt());
    before.push_back(declStmt(finite->text, finite->type, intLit(1, Type::makeBool())));
    for (const Tile &tile : tiles)
      if (factors.count(tile.parts.front().name) && tile.parts.front().type.isFloat())
        before.push_back(testElements(tile, finite, tid, threads, taken));
    before.push_back(declStmt(allFinite->text, Type::makeInt().withConst(true),
                              callOf("__syncthreads_and", {finite}, Type::makeInt(), false)));
  }
  for (auto &[loop, own] : byLoop) {
    auto place = findPlace(*kernel.body, loop);
    if (!place)
      return notApplicable("a loop around the reads stands where it cannot be repeated");
    const StmtRef fast = place->block->body[place->index];
    StmtRef careful = allFinite ? clone(fast) : nullptr;
    if (careful)
      renameDeclarations(*careful, taken);
    StmtRef holder = block({fast});
    for (const Test *test : own) {
      Stmt *branch = test->branch;
      if (ExprRef rest = withoutConjuncts(branch->expr, test->needless)) {
        branch->expr = rest;
        continue;
      }
      auto at = findPlace(*holder, branch);
      if (!at) // it went for the sake of another tile
        continue;
      std::vector<StmtRef> inner = branch->body[0]->body, &list = at->block->body;
      list.erase(list.begin() + long(at->index));
      list.insert(list.begin() + long(at->index), inner.begin(), inner.end());
    }
    if (careful)
      holder = block({ifStmt(allFinite, holder, block({careful}))});
    std::vector<StmtRef> &list = place->block->body;
    list.erase(list.begin() + long(place->index));
    list.insert(list.begin() + long(place->index), holder->body.begin(), holder->body.end());
  }
  return before;
}
