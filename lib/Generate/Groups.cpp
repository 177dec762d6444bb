//===- Groups.cpp - "300 students with 40 marks each" is a matrix ---------===//
#include "Asides.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Regex.h"

using namespace optiml::gen;
using llvm::StringRef;

/// "shop" of "shops".
static std::string oneOf(StringRef many) {
  std::string one = many.drop_back().str();
  if (StringRef(one).ends_with("ie"))
    one = one.substr(0, one.size() - 2) + "y";
  return one;
}

/// `text` with "each shop" as "each row"; nothing where it is not said.
static bool replaceEach(std::string &text, const std::string &one, StringRef axis) {
  llvm::Regex each("(each|every|per|for each|for every) (one )?(single )?(of the )?" + one + "s?($|[^a-z])",
                   llvm::Regex::IgnoreCase);
  bool isSaid = each.match(text);
  if (isSaid)
    text = each.sub("each " + axis.str() + "\\5", text);
  return isSaid;
}

/// "a table with one row per pupil", "each row is a sensor": what rows and columns are.
static std::string namedAxes(StringRef request) {
  std::string text = request.str();
  llvm::SmallVector<StringRef, 8> found;
  static const llvm::Regex perRow("((one|a|with|1) (row|column) (per|for each|for every) |(each|every|a) (row|column) "
                                  "(is|stands for|holds|belongs to) (a |an |one )?)([a-z]+)",
                                  llvm::Regex::IgnoreCase);
  if (!perRow.match(request, &found))
    return text;
  std::string axis = (found[3].empty() ? found[6] : found[3]).lower(), one = found[9].str();
  text.erase(size_t(found[0].data() - request.data()), found[0].size());
  return replaceEach(text, one, axis) ? text : request.str();
}

std::string optiml::gen::groupsAsRows(StringRef request) {
  if (std::string named = namedAxes(request); named != request)
    return named;
  // "each of the 5 children …, 20 weeks each"
  static const llvm::Regex eachOf(
      "(each|every one) of (the |my |our |these )?([0-9]+) ([a-z]+)(.*), ?(with )?([0-9]+) ([a-z]+)( each| apiece)?$",
      llvm::Regex::IgnoreCase);
  if (eachOf.match(request))
    return eachOf.sub("each row\\5, \\3x\\7 matrix", request);
  static const llvm::Regex groups(
      "([0-9][0-9.,]*[kKmM]?) ([a-zA-Z]+s),? (each )?(with|of|having|containing|has|have|that "
      "have|over|times|and|by|x|for|contains?|holds?|holding) (each )?"
      "([0-9][0-9.,]*[kKmM]?) ([a-zA-Z]+ )?([a-zA-Z]+)( each| apiece| per [a-z]+)?");
  llvm::SmallVector<StringRef, 8> found;
  if (!groups.match(request, &found) ||
      (found[3].empty() && found[5].empty() && found[9].empty() && !request.contains_insensitive("each") &&
       !request.contains_insensitive("every") && !request.contains_insensitive(" per ")))
    return request.str();
  std::string text = groups.sub(found[1].str() + "x" + found[6].str() + " matrix \\7", request);
  StringRef many = found[8] == "each" || found[8] == "apiece" ? found[7].trim() : found[8]; // "12 months each"
  std::string first = oneOf(found[2]), second = many.ends_with("s") ? oneOf(many) : many.str();
  if (replaceEach(text, first, "row") || replaceEach(text, second, "column"))
    return text;
  return text + ", each row";
}
