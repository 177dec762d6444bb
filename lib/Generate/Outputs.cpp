//===- Outputs.cpp - formulas that are half said in words ------------------===//
//
// "element i of the output is input i minus input i-1", "a[i] times b[i]", "x & y of two int arrays": written with the
// signs that formulas are read by (Formula.h).
//
//===----------------------------------------------------------------------===//
#include "Asides.h"
#include "Rewrites.h"

using namespace optiml::gen;
using llvm::StringRef;

namespace {

const Rewrite elements[] = {
    {"add (the )?input i to (the )?output (element )?at (position |index )?([a-z]+)\\[i\\]", "y[\\5[i]] += x[i]"},
    {"(the )?output (element )?at (position |index )?([a-z]+)\\[i\\] (is|becomes|equals|gets)", "y[\\4[i]] ="},
    {"(the )?input (element )?at (position |index )?([a-z]+)\\[i\\]", "x[\\4[i]]"},
    {"(element|entry|item) i of the (output|result) (is|becomes|equals)", "y[i] ="},
    {"(^|[^a-z])(the )?output (element )?i (is|becomes|equals)", "\\1y[i] ="},
    {"(^|[^a-z])(the )?input (element )?i ?- ?1($|[^0-9])", "\\1x[i-1]\\4"},
    {"(^|[^a-z])(the )?input (element )?i($|[^a-z])", "\\1x[i]\\4"},
    {"= the sum of the first i (elements|inputs|values|numbers)( of the input)?(, including i)?", "= prefix sum"},
    {"= the sum of all (the )?(inputs|elements|values) before i", "= exclusive prefix sum"},
    {"= the sum of all (the )?(inputs|elements|values) from i to the end", "= suffix sum"},
    {"= the sum of the i-?th elements of both (inputs|arrays|vectors)", "= a[i] + b[i]"},
    {"sum of [a-z]\\[i\\] ?\\* ?[a-z]\\[i\\] over (all )?i($|[^a-z])", "dot product\\2"},
    {"[a-z]\\[[0-9]+ ?x ?[0-9]+\\] ?= ?[a-z]\\[([0-9]+ ?x ?[0-9]+)\\] ?[*@]? ?[a-z]\\[([0-9]+ ?x ?[0-9]+)\\]",
     "matrix multiply \\1 and \\2"},
    {"\\] times ", "] * "},
    {"\\] minus ", "] - "},
    {"\\] plus ", "] + "},
    {"\\] (gets|becomes|is|equals) ([a-zA-Z]+\\[)", "] = \\2"},
};

const Rewrite bits[] = {
    {"(^|[^a-zA-Z0-9])[a-z](\\[i\\])? & [a-z](\\[i\\])?($|[^a-zA-Z0-9[])", "\\1 bitwise and of two arrays \\4"},
    {"(^|[^a-zA-Z0-9])[a-z](\\[i\\])? \\| [a-z](\\[i\\])?($|[^a-zA-Z0-9[])", "\\1 bitwise or of two arrays \\4"},
};

} // namespace

std::string optiml::gen::outputsInSigns(std::string text) {
  static const Rewrites ofElements(elements, llvm::Regex::IgnoreCase), ofBits(bits, llvm::Regex::IgnoreCase);
  StringRef all = text;
  if (all.contains("] ") || all.contains("put i ") || all.contains("element i ") || all.contains("entry i ") ||
      all.contains("item i "))
    text = ofElements(std::move(text));
  if (StringRef(text).contains(" & ") || StringRef(text).contains(" | "))
    text = ofBits(std::move(text));
  static const llvm::Regex integers("(int|integer|unsigned|bit|bool|word)s?($|[^a-z])", llvm::Regex::IgnoreCase),
      either("(^|[^a-zA-Z0-9])[a-z](\\[i\\])? \\^ [a-z](\\[i\\])?($|[^a-zA-Z0-9[])", llvm::Regex::IgnoreCase);
  if (StringRef(text).contains(" ^ ") && integers.match(text))
    text = either.sub("\\1 bitwise xor of two arrays \\4", text);
  static const llvm::Regex transposed("(^|[^a-zA-Z=*+] ?)A\\^T ?\\*? ?x($|[^a-zA-Z0-9])");
  return transposed.sub("\\1 transposed matrix vector product \\2", text);
}
