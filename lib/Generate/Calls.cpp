//===- Calls.cpp - functions of libraries by their short names ------------===//
//
// "np.linalg.inv(a)", "torch.roll(x, 3)": names that mean something only as a library's function. Those that are words
// of operations anyway ("torch.cumsum") need no mention.
//
//===----------------------------------------------------------------------===//
#include "Asides.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Regex.h"
#include <map>

using namespace optiml::gen;
using llvm::StringRef;

static StringRef meaningOf(StringRef function) {
  static const std::map<StringRef, StringRef> meanings = {
      {"inv", "matrix inverse"},
      {"det", "determinant"},
      {"solve", "solve linear system"},
      {"roll", "rotate array"},
      {"any", "any nonzero"},
      {"all", "all nonzero"},
      {"logit", "logit function"},
      {"diff", "adjacent difference"},
      {"flip", "reverse"},
      {"amax", "max"},
      {"amin", "min"},
      {"prod", "product"},
      {"cumprod", "cumulative product"},
      {"cummax", "running max"},
      {"cummin", "running min"},
      {"take", "gather"},
      {"index_select", "gather"},
      {"index_add", "scatter add"},
      {"bincount", "histogram"},
      {"searchsorted", "binary search"},
      {"bucketize", "binary search"},
      {"count_nonzero", "count nonzero"},
      {"maximum", "elementwise max of two arrays"},
      {"minimum", "elementwise min of two arrays"},
      {"fmax", "elementwise max of two arrays"},
      {"fmin", "elementwise min of two arrays"},
      {"remainder", "modulo"},
      {"mv", "matrix vector product"},
      {"mm", "matrix product"},
      {"bmm", "batched matrix multiply"},
      {"addmm", "scaled gemm"},
      {"cov", "covariance"},
      {"kthvalue", "kth smallest"},
      {"full", "fill"},
      {"kron", "kronecker product"},
      {"vdot", "dot product"},
      {"inner", "dot product"},
      {"cross", "cross product"},
      {"std", "standard deviation"},
      {"average", "mean"},
      {"convolve", "1d convolution"},
      {"absolute", "absolute value"},
      {"negative", "negate"},
      {"square", "square of each"},
      {"matrix_power", "matrix power"},
      {"solve_triangular", "triangular solve"},
      {"cdist", "pairwise distance"},
      {"deg2rad", "degrees to radians"},
  };
  auto it = meanings.find(function);
  return it == meanings.end() ? "" : it->second;
}

std::string optiml::gen::callsInWords(StringRef text) {
  static const llvm::Regex call("(^|[^a-z0-9_.:])(np|numpy|jnp|cp|cupy|torch|scipy|tf|f|nn|jax|mx)\\.(([a-z_]+)\\.)*(["
                                "a-z_0-9]+) ?(\\(|of |for |on |over )");
  std::string result = text.str();
  llvm::SmallVector<StringRef, 8> groups;
  for (unsigned times = 0; times < 8 && call.match(result, &groups); ++times) {
    StringRef meaning = meaningOf(groups[5]);
    std::string words = meaning.empty() ? groups[5].str() : meaning.str();
    result = call.sub("\\1" + words + " \\6", result);
  }
  // "Conv2d(64, 64, 3, groups=64)" keeps channels apart.
  static const llvm::Regex grouped("conv2d ?\\( *([0-9]+), *([0-9]+),([^)]*)groups *= *([0-9]+)");
  if (grouped.match(result, &groups) && groups[1] == groups[2] && groups[1] == groups[4])
    result = grouped.sub("depthwise conv2d ( \\1 channels, \\3", result);
  return result;
}
