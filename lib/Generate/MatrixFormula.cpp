//===- MatrixFormula.cpp - products of matrices and vectors in words ------===//
//
// "C = A B^T", "y = A^T x", "S = Q @ K.T": capital letters are matrices, small ones vectors. Only a product of two,
// perhaps with a vector added to a matrix; anything else is left as it stands.
//
//===----------------------------------------------------------------------===//
#include "Formula.h"
#include "llvm/ADT/StringExtras.h"
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
  if (left.name == "L" && right.name == "U") // "A = L U" takes A apart
    return "";
  if (left.isMatrix() && right.isMatrix()) {
    if (left.name == right.name)
      return right.transposed && !left.transposed && left.name != "L" ? "matrix times its own transpose" : "";
    return std::string("matmul") + (left.transposed ? " with a transposed" : "") +
           (right.transposed ? (left.transposed ? " and b transposed" : " with b transposed") : "");
  }
  if (left.isMatrix() && !right.transposed)
    return left.transposed ? "matrix vector multiply with the matrix transposed" : "matrix vector multiply";
  return "";
}

} // namespace

/// "tanh(A B + bias)", "A x B", "A x + b": products that are not assigned.
static std::string withoutTarget(StringRef text) {
  static const llvm::Regex inParentheses(
      "\\(([A-Z])(\\^T|\\.T|')? *[*@]? *([A-Z])(\\^T|\\.T|')? *(\\)|\\+ *[a-z] *\\)|\\+)"),
      cross("(^|[^A-Za-z0-9_=] *)([A-Z]) +x +([A-Z])($|[^A-Za-z0-9_*])"),
      leftTransposed("(^|[^A-Za-z0-9_=*+/( ] *|[a-z0-9]+ )([A-Z])(\\^T|\\.T|') *[*@]? *([A-Z])($|[^A-Za-z0-9_*^('])"),
      rightTransposed("(^|[^A-Za-z0-9_=*+/( ] *|[a-z0-9]+ )([A-Z]) *[*@]? *([A-Z])(\\^T|\\.T|')($|[^A-Za-z0-9_*^(])"),
      affine("(^|[^A-Za-z0-9_=*+] *)([A-Z]) *\\*? *([xuvy]) *\\+ *([a-z])($|[^A-Za-z0-9_*])");
  static const llvm::Regex applied("\\(([A-Z])(\\^T|\\.T|')? *[*@]? *([xuv])\\)"); // "relu(A x)"
  llvm::SmallVector<StringRef, 8> groups;
  if (applied.match(text, &groups))
    return applied.sub(groups[2].empty() ? "( matrix vector multiply )"
                                         : "( matrix vector multiply with the matrix transposed )",
                       text);
  Factor left, right;
  std::string after;
  if (inParentheses.match(text, &groups))
    left = {groups[1], !groups[2].empty()}, right = {groups[3], !groups[4].empty()},
    after = groups[5].size() > 2 ? "+ bias )" : groups[5].str();
  else if (cross.match(text, &groups))
    left = {groups[2]}, right = {groups[3]}, after = groups[4].str();
  else if (leftTransposed.match(text, &groups))
    left = {groups[2], true}, right = {groups[4]}, after = groups[5].str();
  else if (rightTransposed.match(text, &groups))
    left = {groups[2]}, right = {groups[3], true}, after = groups[5].str();
  else if (affine.match(text, &groups))
    left = {groups[2]}, right = {groups[3]}, after = " + bias" + groups[5].str();
  std::string words = groups.empty() ? "" : inWords(left, right);
  if (StringRef(after).starts_with(" + bias")) // a "vector + bias" would be read otherwise
    words = "gemv";
  if (words.empty())
    return text.str();
  size_t begin = size_t(left.name.data() - text.data()),
         end = size_t(groups.back().data() + groups.back().size() - text.data());
  return text.take_front(begin).str() + " " + words + " " + after + text.substr(end).str();
}

std::string optiml::gen::matrixProductsInWords(StringRef text) {
  static const llvm::Regex coefficient("((^|[-+=(:]) *[0-9]+(\\.[0-9]+)?) +([A-Za-z])($|[^A-Za-z0-9_ ]| +[^0-9 ])");
  // "compute a - b"
  static const llvm::Regex difference("(^|[^A-Za-z0-9_])(compute|calculate|return|form|get) ([a-z]) *([-+]) *([a-z])($|[ ,;]|[.]$|[.] )");
  llvm::SmallVector<StringRef, 8> sides;
  if (difference.match(text, &sides))
    return matrixProductsInWords(
        difference.sub(sides[4] == "-" ? "\\1\\2 vector subtract\\6" : "\\1\\2 vector add\\6", text));
  if (coefficient.match(text)) // "y - 0.5 x"
    return matrixProductsInWords(coefficient.sub("\\1 * \\4\\5", text));
  static const std::string name = "([A-Za-z])(\\^\\{?T\\}?|\\.T|')?";
  static const llvm::Regex product(
      "(^|[^A-Za-z0-9_*+^/-] *)([A-Za-z]) *= *" + name + "( *[*@] *| +)" + name +
      "( *[+-] *[A-Za-z])?($|[^A-Za-z0-9_*@/^([' -]|[- ]+[^- *@/+A-Z0-9]|[- ]+[A-Z][A-Za-z])"),
      elementwise("element-? ?wise|pointwise|hadamard|solve|solution", llvm::Regex::IgnoreCase);
  static const llvm::Regex joined(
      "(^|[^A-Za-z0-9_])([A-Z] *= *[A-Z](\\^T)?)([A-Z](\\^T)?($|[^A-Za-z0-9_]))");                       // "C = AB"
  static const llvm::Regex applied("(^|[^A-Za-z0-9_])([a-z] *= *[A-Z](\\^T)?)([xuv]($|[^A-Za-z0-9_]))"), // "y = Ax"
      vector("(^|[^A-Za-z0-9_])[A-Z](\\^T|\\.T) *(times|by|\\*|@) *(a |the )?vector($|[^A-Za-z0-9_])");  // "A^T times a
                                                                                                         // vector"
  static const llvm::Regex scaled("(^|[^A-Za-z0-9_])[Cc] *(=|:=|<-) *(alpha|a|α|[0-9.]+) *[*·]? *A *[*@·]? *B *\\+ "
                                  "*(beta|b|β|-?[0-9.]+) *[*·]? *[Cc]($|[^A-Za-z0-9_])"),
      plusTarget("(^|[^A-Za-z0-9_])([Cc] *(=|:=|<-) *(alpha|[0-9.]+) *[*·]? *A *[*@·]? *B *\\+ *|y *(=|:=|<-) "
                 "*(alpha|[0-9.]+) *[*·]? *A *[*@·]? *x *\\+ *)([Cy])($|[^A-Za-z0-9_*])"),
      scaledVector("(^|[^A-Za-z0-9_])y *(=|:=|<-) *(alpha|a|α|[0-9.]+) *[*·]? *A *[*@·]? *x *\\+ *(beta|b|β|-?[0-9.]+) "
                   "*[*·]? *y($|[^A-Za-z0-9_])");
  static const llvm::Regex untargeted("(^|[^A-Za-z0-9_=*] *)((alpha|[0-9.]+) *[*·]? *A *[*@·]? *B *\\+ *(beta|[0-9.]+) *[*·]? *C($|[^A-Za-z0-9_]))");
  if (!scaled.match(text) && untargeted.match(text) && !text.contains('='))
    return matrixProductsInWords(untargeted.sub("\\1C = \\2", text));
  static const llvm::Regex minusTarget(
      "([Cy] *(=|:=|<-) *(alpha|[0-9.]+) *[*·]? *A *[*@·]? *[Bx]) *- *([0-9.]+)? *[*·]? *([Cy])($|[^A-Za-z0-9_*])");
  if (minusTarget.match(text, &sides)) // "y = 2 A x - y"
    return matrixProductsInWords(
        minusTarget.sub("\\1 + -" + (sides[4].empty() ? std::string("1") : sides[4].str()) + " * \\5\\6", text));
  if (plusTarget.match(text)) // "y = 2 A x + y"
    return matrixProductsInWords(plusTarget.sub("\\1\\2 1 * \\7\\8", text));
  // "C = 2 A B + 0.5 C" names the scalars' values.
  for (auto [formula, name] : {std::pair(&scaled, "gemm"), std::pair(&scaledVector, "gemv")}) {
    llvm::SmallVector<StringRef, 8> parts;
    if (!formula->match(text, &parts))
      continue;
    auto valueOf = [&](StringRef scalar) {
      return llvm::isDigit(scalar.back()) ? " = " + scalar.str() : std::string();
    };
    return formula->sub("\\1 " + std::string(name) + " with alpha" + valueOf(parts[3]) + " and beta" + valueOf(parts[4]) +
                            " \\5",
                        text);
  }
  static const llvm::Regex bare(
      "(^|[Cc]ompute |[Cc]alculate |[Tt]hen )A ?[*@·]? ?B( (plus|followed|then|scaled|with|for)|,)"),
      ofArrays("vector|array", llvm::Regex::IgnoreCase);
  if (bare.match(text) && !text.contains('=') && !ofArrays.match(text)) // "A B plus a residual matrix"
    return bare.sub("\\1matrix product of A and B\\2", text);
  static const llvm::Regex multiple("(^|[Cc]ompute |[Cc]alculate )([0-9.]+) *[*·]? *A *[*@·]? *([xB])($|[ ,;.])");
  if (llvm::SmallVector<StringRef, 8> found; !text.contains('=') && multiple.match(text, &found)) // "0.5 * A x"
    return multiple.sub(std::string("\\1") + (found[3] == "x" ? "gemv" : "gemm") + " then scale by \\2\\4", text);
  static const llvm::Regex update("(^|[^A-Za-z0-9_])A *(\\+=|= *A *\\+) *(alpha|a|α|[0-9.]+)? *[*·]? *[xu] *[*·@]? *[yv](\\^T|\\.T|')");
  if (update.match(text))
    return update.sub("\\1 rank one update ", text);
  static const llvm::Regex times("(^|[^A-Za-z0-9_])[Cc] *(=|:=|<-) *([0-9.]+) *[*·]? *A *[*@·]? *B($|[,;]|[.] |[.]$| +(for|with|in|where|of|and)($|[^a-z]))");
  llvm::SmallVector<StringRef, 8> parts;
  if (times.match(text, &parts)) // "C = 0.5 A B"
    return times.sub("\\1 gemm then scale by " + parts[3].str() + "\\4", text);
  for (const llvm::Regex *tight : {&joined, &applied})
    if (tight->match(text))
      return matrixProductsInWords(tight->sub("\\1\\2 \\4", text));
  if (vector.match(text))
    return vector.sub("\\1 matrix vector multiply with the matrix transposed \\5", text);
  llvm::SmallVector<StringRef, 10> groups;
  if (elementwise.match(text))
    return text.str();
  if (!product.match(text, &groups))
    return withoutTarget(text);
  Factor left{groups[3], !groups[4].empty()}, right{groups[6], !groups[7].empty()};
  std::string words = inWords(left, right);
  bool isMatrix = groups[2][0] >= 'A' && groups[2][0] <= 'Z', adds = !groups[8].empty();
  bool subtracts = adds && groups[8].ltrim()[0] == '-';
  std::string added = !adds                              ? " "
                      : !llvm::isUpper(groups[8].back()) ? " + bias "
                      : subtracts                        ? ", then subtract another matrix "
                                                         : ", then add another matrix ";
  if (adds && !isMatrix && left.name != "W") // "y = A x + z"
    added = subtracts ? ", then subtract another vector " : ", then add another vector ";
  else if (subtracts && !llvm::isUpper(groups[8].back()))
    return text.str();
  if (words.empty() || isMatrix != right.isMatrix() || (adds && !isMatrix && left.name == "W"))
    return text.str();
  size_t begin = size_t(groups[2].data() - text.data()), end = size_t(groups[9].data() - text.data());
  return text.take_front(begin).str() + " " + words + added + text.substr(end).str();
}
