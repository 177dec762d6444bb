//===- ReadCachedAccess.cpp - loads and stores with hints for caches ------===//
//
// __ldg(p), __ldcs(p) and their like load *p, __stcs(p, x) and its like store to it. What they say about caches changes
// no value (CUDA C++ Programming Guide, "Read-Only Data Cache Load Function", "Load Functions Using Cache Hints"), so
// that the kernel is read with plain accesses. Not __ldcv, which asks memory itself, as a volatile access does.
//
//===----------------------------------------------------------------------===//
#include "KernelReader.h"
#include "llvm/ADT/StringSet.h"

using namespace optiml;

/// CUDA's own function of one of these names, with so many arguments, of which the first is a pointer.
static bool isOneOf(const cl::CallExpr *x, const cl::SourceManager &sm, const llvm::StringSet<> &names,
                    unsigned arguments) {
  const cl::FunctionDecl *fn = x->getDirectCallee();
  return fn && fn->getIdentifier() && names.contains(fn->getName()) && x->getNumArgs() == arguments &&
         x->getArg(0)->getType()->isPointerType() && sm.isInSystemHeader(sm.getExpansionLoc(fn->getLocation()));
}

ExprRef KernelReader::pointedToBy(const cl::Expr *pointer) {
  ExprRef address = expression(pointer);
  return address->type.pointee && wholeTree(address) ? placeAt(address) : nullptr;
}

ExprRef KernelReader::cachedLoad(const cl::CallExpr *x) {
  static const llvm::StringSet<> loads = {"__ldg", "__ldca", "__ldcg", "__ldcs", "__ldlu"};
  return isOneOf(x, sm, loads, 1) ? pointedToBy(x->getArg(0)) : nullptr;
}

bool KernelReader::cachedStore(const cl::CallExpr *x, std::vector<StmtRef> &out) {
  static const llvm::StringSet<> stores = {"__stcg", "__stcs", "__stwb", "__stwt"};
  ExprRef place = isOneOf(x, sm, stores, 2) ? pointedToBy(x->getArg(0)) : nullptr;
  if (!place)
    return false;
  ExprRef value = hoisted(x->getArg(1), out);
  out.push_back(newStmt(StmtKind::Expr, x));
  out.back()->expr = assign("=", place, value);
  return true;
}
