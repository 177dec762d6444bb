//===- AsyncCopy.cpp - copies into shared memory in the background --------===//
#include "AsyncCopy.h"
#include "optiml/Support/Error.h"

using namespace optiml;

llvm::Error AsyncCopy::requireSupport(const KernelState &state) {
  if (state.hints.arch < 80)
    return notApplicable("asynchronous copies need -arch=sm_80 or later{0}",
                         state.hints.arch ? ", and the program is compiled for sm_" + std::to_string(state.hints.arch)
                                          : "");
  return llvm::Error::success();
}

StmtRef AsyncCopy::call(const std::string &suffix, const std::string &parameters, const std::string &assembly,
                        std::vector<ExprRef> args) {
  std::string name = state.rewrite.twin + "_" + suffix;
  std::string function = "static __device__ __forceinline__ void " + name + "(" + parameters + ") {\n  asm volatile(" +
                         assembly + " : \"memory\");\n}\n";
  if (state.helpers.find(function) == std::string::npos)
    state.helpers += function;
  return exprStmt(callOf(name, std::move(args), Type(), /*pure=*/false));
}

StmtRef AsyncCopy::copy(const ExprRef &to, const ExprRef &from, unsigned bytes, const ExprRef &inside) {
  // Whole pieces of 16 bytes go past L1, where nobody would ask for them again.
  std::string size = std::to_string(bytes), cache = bytes == 16 ? "cg" : "ca";
  std::string parameters = "void *to, const void *from";
  std::string instruction = "\"cp.async." + cache + ".shared.global [%0], [%1], " + size;
  std::string operands = "\"r\"((unsigned)__cvta_generic_to_shared(to)), \"l\"(from)";
  if (!inside)
    return call("copy" + size, parameters, instruction + ";\" : : " + operands, {addressOf(to), addressOf(from)});
  return call("copy" + size + "_if", "bool inside, " + parameters,
              instruction + ", %2;\" : : " + operands + ", \"r\"(inside ? " + size + " : 0)",
              {inside, addressOf(to), addressOf(from)});
}

StmtRef AsyncCopy::commit() { return call("commit", "", "\"cp.async.commit_group;\" : :", {}); }

StmtRef AsyncCopy::wait(unsigned pending) {
  std::string n = std::to_string(pending);
  return call("wait" + n, "", "\"cp.async.wait_group " + n + ";\" : :", {});
}
