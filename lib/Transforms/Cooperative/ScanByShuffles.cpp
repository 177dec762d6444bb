//===- ScanByShuffles.cpp - what a block's scan becomes -------------------===//
#include "SharedScan.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {
/// Makes the statements of one scan.
class ScanWriter {
public:
  ScanWriter(const SharedScan &scan, const KernelModel &model, int64_t threads, std::set<std::string> &taken)
      : scan(scan), model(model), warps(threads / 32), threads(threads), taken(taken),
        offset(freshName(taken, "offset")) {}

  std::vector<StmtRef> write() {
    bool inPlace = scan.source.first < 0 && llvm::any_of(
                                                scan.results,
                                                [&](const SharedScan::Place &place) {
                                                  return place.first < 0 && place.name == scan.source.name;
                                                });
    std::vector<StmtRef> out;
    ExprRef v = var(inPlace ? scan.source.name : freshName(taken, scan.source.name + "_scanned"), scan.type);
    if (!inPlace)
      out.push_back(declStmt(v->text, scan.type,
                             scan.source.first < 0 ? var(scan.source.name, scan.type) : at(scan.source, thread)));
    out.push_back(withinWarp(v));
    if (warps > 1)
      amongWarps(v, out);
    for (const SharedScan::Place &place : scan.results)
      store(place, v, out);
    for (const std::string &name : scan.changed)
      out.push_back(
          exprStmt(optiml::assign("=", var(name, model.declaration(name)->type), intLit(scan.integers.at(name)))));
    return out;
  }

private:
  StmtRef withinWarp(const ExprRef &v) {
    ExprRef distance = var(offset, Type::makeInt()), other = var(freshName(taken, "other"), scan.type);
    StmtRef received =
        declStmt(other->text, scan.type, callOf("__shfl_up_sync", {mask, v, distance}, scan.type, false));
    StmtRef take = ifStmt(binary(">=", lane, distance), block({scan.fold.into(v, other)}));
    StmtRef s = countedFor(offset, Type::makeInt(), intLit(1), intLit(32), 1, block({received, take}), NoUnroll);
    s->step = optiml::assign("*=", distance, intLit(2));
    return s;
  }

  /// What all earlier warps have, folded in.
  void amongWarps(const ExprRef &v, std::vector<StmtRef> &out) {
    ExprRef ofWarps = var(freshName(taken, scan.source.name + "_of_warps"), scan.type);
    out.insert(out.begin(), sharedArray(ofWarps->text, scan.type, {intLit(warps)}));
    out.push_back(ifStmt(binary("==", lane, intLit(31)),
                         block({exprStmt(optiml::assign("=", subscript(ofWarps, warp, scan.type), v))})));
    out.push_back(barrierStmt());
    constexpr int64_t fewWarps = 8;
    if (warps <= fewWarps) {
      ExprRef earlier = var(freshName(taken, "earlier"), Type::makeInt());
      out.push_back(countedFor(earlier->text, Type::makeInt(), intLit(0), warp, 1,
                               block({scan.fold.into(v, subscript(ofWarps, earlier, scan.type))}), NoUnroll));
      return;
    }
    // Every warp scans the warps' values by itself: that takes no barrier.
    ExprRef total = var(freshName(taken, scan.source.name + "_of_earlier_warps"), scan.type);
    ExprRef slot =
        warps == 32 ? lane : callOf("min", {castTo(Type::makeInt(), lane), intLit(warps - 1)}, Type::makeInt(), true);
    out.push_back(declStmt(total->text, scan.type, subscript(ofWarps, slot, scan.type)));
    out.push_back(withinWarp(total));
    ExprRef before = binary("%", add(warp, intLit(31)), intLit(32));
    out.push_back(exprStmt(optiml::assign("=", total, callOf("__shfl_sync", {mask, total, before}, scan.type, false))));
    out.push_back(ifStmt(binary(">=", thread, intLit(32)), block({scan.fold.into(v, total)})));
  }

  void store(const SharedScan::Place &place, const ExprRef &v, std::vector<StmtRef> &out) const {
    if (place.first < 0) {
      if (place.name != v->text)
        out.push_back(exprStmt(optiml::assign("=", var(place.name, scan.type), v)));
      return;
    }
    if (!place.isExclusive) {
      out.push_back(exprStmt(optiml::assign("=", at(place, thread), v)));
      return;
    }
    out.push_back(ifStmt(lessThan(thread, intLit(threads - 1)),
                         block({exprStmt(optiml::assign("=", at(place, add(thread, intLit(1))), v))})));
    out.push_back(ifStmt(binary("==", thread, intLit(0)),
                         block({exprStmt(optiml::assign("=", at(place, intLit(0)), scan.fold.identity(scan.type)))})));
  }

  ExprRef at(const SharedScan::Place &place, ExprRef element) const {
    const Stmt *declaration = model.declaration(place.name);
    ExprRef e = var(place.name, scan.type);
    int64_t column = place.first;
    if (declaration->dims.size() == 2) {
      int64_t width = *constantValue(declaration->dims[1]);
      e = subscript(e, intLit(place.first / width), scan.type);
      column %= width;
    }
    return subscript(e, add(std::move(element), intLit(column)), scan.type);
  }

  const SharedScan &scan;
  const KernelModel &model;
  int64_t warps, threads;
  std::set<std::string> &taken;
  std::string offset;
  const ExprRef thread = builtin("threadIdx.x"), lane = binary("%", thread, intLit(32)),
                warp = binary("/", thread, intLit(32)), mask = intLit(0xffffffff, Type::makeUnsigned());
};
} // namespace

std::vector<StmtRef> optiml::scanByShuffles(const SharedScan &scan, const KernelModel &model, int64_t threads,
                                            std::set<std::string> &taken) {
  return ScanWriter(scan, model, threads, taken).write();
}
