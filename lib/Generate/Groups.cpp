//===- Groups.cpp - "300 students with 40 marks each" is a matrix ---------===//
#include "Asides.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Regex.h"

using namespace optiml::gen;
using llvm::StringRef;

std::string optiml::gen::groupsAsRows(StringRef request) {
  static const llvm::Regex groups(
      "([0-9][0-9.,]*[kKmM]?) ([a-zA-Z]+s),? (each )?(with|of|having|containing|has|have|that "
      "have|over|times|and|contains?|holds?|holding) "
      "([0-9][0-9.,]*[kKmM]?) ([a-zA-Z]+ )?([a-zA-Z]+)( each| apiece| per [a-z]+)?");
  llvm::SmallVector<StringRef, 8> found;
  if (!groups.match(request, &found) ||
      (found[3].empty() && found[8].empty() && !request.contains_insensitive("each") &&
       !request.contains_insensitive("every") && !request.contains_insensitive(" per ")))
    return request.str();
  std::string one = found[2].drop_back().str();
  if (StringRef(one).ends_with("ie"))
    one = one.substr(0, one.size() - 2) + "y";
  std::string text = groups.sub(found[1].str() + "x" + found[5].str() + " matrix \\6", request);
  llvm::Regex each("(each|every|per|for each|for every) (one )?(of the )?" + one + "s?", llvm::Regex::IgnoreCase);
  return each.match(text) ? each.sub("each row", text) : text + ", each row";
}
