//===- MatrixFormula.cpp - products of matrices and vectors in words ------===//
//
// "C = A B^T", "y = A^T x", "S = Q @ K.T": capital letters are matrices, small ones vectors. Only a product of two, perhaps
// with a vector added to a matrix; anything else is left as it stands.
//
//===----------------------------------------------------------------------===//
#include "Formula.h"
#include "llvm/Support/Regex.h"

using namespace optiml::gen;
using llvm::StringRef;

namespace {

struct Factor {
  StringRef name;
  bool transposed = false;
  bool isMatrix() const { return name[0] >= 'A' && name[0] <= 'Z'; }
};

/// Nothing where it is no product of two that an operation could mean.
std::string inWords(const Factor &left, const Factor &right) {
  if (left.isMatrix() && right.isMatrix()) {
    if (left.name == right.name)
      return right.transposed && !left.transposed ? "matrix times its own transpose" : "";
    return std::string("matrix multiply") + (left.transposed ? " with a transposed" : "") +
           (right.transposed ? (left.transposed ? " and b transposed" : " with b transposed") : "");
  }
  if (left.isMatrix() && !right.transposed)
    return left.transposed ? "matrix vector multiply with the matrix transposed" : "matrix vector multiply";
  return "";
}

} // namespace

std::string optiml::gen::matrixProductsInWords(StringRef text) {
  static const std::string name = "([A-Za-z])(\\^\\{?T\\}?|\\.T|')?";
  static const llvm::Regex product("(^|[^A-Za-z0-9_*+^/-] *)([A-Za-z]) *= *" + name + "( *[*@] *| +)" + name +
                                   "( *\\+ *[a-z])?($|[^A-Za-z0-9_*@/^([' -]|[- ]+[^- *@/+A-Z0-9]|[- ]+[A-Z][A-Za-z])"),
      elementwise("element-? ?wise|pointwise|hadamard|solve|solution", llvm::Regex::IgnoreCase);
  llvm::SmallVector<StringRef, 10> groups;
  if (elementwise.match(text) || !product.match(text, &groups))
    return text.str();
  Factor left{groups[3], !groups[4].empty()}, right{groups[6], !groups[7].empty()};
  std::string words = inWords(left, right);
  bool isMatrix = groups[2][0] >= 'A' && groups[2][0] <= 'Z', addsBias = !groups[8].empty();
  if (words.empty() || isMatrix != right.isMatrix() || (addsBias && !isMatrix))
    return text.str();
  size_t begin = size_t(groups[2].data() - text.data()), end = size_t(groups[9].data() - text.data());
  return text.take_front(begin).str() + " " + words + (addsBias ? " + bias " : " ") + text.substr(end).str();
}
