//===- Parts.cpp - what is made of two whole arrays, row by row ------------===//
//
// "mean squared error of each column of two matrices": an operation on whole arrays that is asked for by an axis is
// said by its parts (a stage over the elements of both, what makes one number of them, a function of that), which
// have one.
//
//===----------------------------------------------------------------------===//
#include "Reader.h"

using namespace optiml;
using namespace optiml::gen;

static ExprPtr make(Expr::Kind kind, std::string name, std::vector<ExprPtr> args) {
  return std::make_shared<Expr>(Expr{kind, std::move(name), 0, std::move(args)});
}

std::optional<std::string> Reader::byParts() const {
  if (!byAxis || !lackingOne)
    return std::nullopt;
  for (StringRef text : lackingOne->formulas) {
    auto parsed = parseFormula(text.split(" => ").first);
    if (!parsed || !parsed->first.target)
      continue;
    ExprPtr value = parsed->first.value;
    std::string after;
    if (value->kind == Expr::Kind::Call && value->name == "sqrt" && value->args.size() == 1)
      after = " then sqrt", value = value->args[0];
    if (value->kind != Expr::Kind::Reduce || value->args.size() != 2)
      continue;
    Formula inner;
    inner.target = make(Expr::Kind::Index, "r", {value->args[0]});
    inner.value = value->args[1];
    std::optional<std::string> words = wordsOfFormula(inner, library);
    if (!words)
      continue;
    if (*words == "square subtract") // step by step, so that "mean, then root" takes no step of it
      words = "subtract then square";
    std::string result;
    for (size_t at = 0; at < tokens.size(); ++at)
      if (at == heavy.first())
        result += *words + " then " + value->name + " ";
      else if (!llvm::is_contained(heavy.span.at, at))
        result += (tokens[at].raw == "two" ? "a" : tokens[at].raw) + " "; // no sum of two
    return result + after;
  }
  return std::nullopt;
}
