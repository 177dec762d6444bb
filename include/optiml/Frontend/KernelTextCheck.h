//===- KernelTextCheck.h - what new kernel text may hold --------*- C++ -*-===//
//
// New text for a kernel is untrusted. It may hold the body of that kernel and __device__ helpers, and nothing else:
// before Clang sees it its tokens are checked (no preprocessor lines but "#pragma unroll", no literals, brackets closed
// where they were opened), and after Clang has parsed it in its place, every declaration, call, cast and attribute in
// it.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_FRONTEND_KERNELTEXTCHECK_H
#define OPTIML_FRONTEND_KERNELTEXTCHECK_H

#include "optiml/Frontend/Program.h"
#include "llvm/Support/Error.h"

namespace optiml {

/// Longer text is refused.
inline constexpr size_t maxKernelTextBytes = 32 << 10;

/// Checks the tokens of a body or of helpers; `what` names it in errors.
llvm::Error checkKernelTokens(llvm::StringRef text, llvm::StringRef what, bool allowAssembly);

/// Where new text stands in a program.
struct KernelTextPlace {
  unsigned begin = 0;       ///< offset of the helpers
  unsigned kernelBegin = 0; ///< ... of the kernel
  unsigned end = 0;         ///< ... just after the kernel's closing brace
  std::string twin;         ///< the kernel's name
  std::string symbol;       ///< mangled name of the original
  bool allowAssembly = false;
};

/// Checks what Clang made of it. Returns the new kernel.
llvm::Expected<const KernelDecl *> checkKernelDeclarations(const Program &program, const KernelTextPlace &place);

} // namespace optiml

#endif
