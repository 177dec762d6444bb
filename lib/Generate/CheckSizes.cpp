//===- CheckSizes.cpp - what sizes mean together, and whether they fit ----===//
#include "Reader.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace optiml;
using namespace optiml::gen;

/// "one step of", "an explicit time step", where no number tells how many.
void Reader::readSingleStep() {
  static const std::set<StringRef> single = {"step", "iteration", "sweep", "generation", "timestep", "update"};
  static const std::set<StringRef> many = {"steps", "iterations", "sweeps", "generations", "timesteps", "updates"};
  auto says = [&](const std::set<StringRef> &words) {
    return llvm::any_of(tokens, [&](const Token &token) { return words.count(token.raw); });
  };
  for (const Size &size : heavy.op->sizes)
    if (size.name == "steps" && !given[size.name] && says(single) && !says(many))
      result.sizes[size.name] = 1;
}

/// "the variance of a million doubles": one row.
void Reader::readSingleRow() {
  auto axis = result.choices.find("axis");
  auto says = [&](std::initializer_list<StringRef> words) {
    return llvm::any_of(tokens, [&](const Token &token) { return llvm::is_contained(words, StringRef(token.raw)); });
  };
  bool isVector = says({"vector", "array", "list"}) && !says({"each", "every", "per", "row", "rows"});
  if (axis == result.choices.end() && isVector && !given["rows"] && result.sizes.count("rows") &&
      llvm::is_contained(heavy.op->always, "row"))
    result.sizes["rows"] = 1; // "the top 10 of a vector"
  // "standardize 1M floats": all of them together
  bool saysRows = says({"each", "every", "per", "batch", "batches", "dim", "axis", "along", "rowwise", "last", "independent"}) ||
                  llvm::any_of(tokens, [](const Token &token) { return token.isShape() || token.text == "matrix" || token.text == "row" || token.text == "column"; });
  bool isWhole = axis != result.choices.end() && axis->second == "row" && heavy.op->group == "Row- and column-wise" && !saysRows;
  for (size_t at = 0; isWhole && at < tokens.size(); ++at) {
    bool ofElements = at + 1 < tokens.size() && (typeAt.count(at + 1) || tokens[at + 1].text == "element");
    bool ofArray = at > 1 && tokens[at - 1].raw == "of" && says({"array", "vector"});
    if (!tokens[at].isNumber() || tokens[at].values[0] < 2 || (!ofElements && !ofArray))
      continue;
    int64_t &rows = result.sizes["rows"], &cols = result.sizes["cols"];
    auto value = int64_t(tokens[at].values[0]);
    bool wasSquared = given["rows"] && given["cols"] && rows == value && cols == value; // "1M" as 1024 x 1024
    if (wasSquared && std::to_string(value) != tokens[at].raw)
      value *= value;
    if (given["cols"] && (value == cols || value == rows * cols))
      cols = value, rows = 1;
  }
  if (axis == result.choices.end() || axis->second != "all")
    return;
  bool isBatch = false; // "batch 256", "for 64 rows"
  for (size_t at = 0; at < tokens.size(); ++at)
    isBatch |= tokens[at].text == "batch" ||
               (tokens[at].text == "row" && at > 1 && tokens[at - 1].isNumber() && tokens[at - 2].raw == "for");
  if (isBatch && given["rows"])
    axis->second = "row"; // "the largest of 10 logits, batch 256"
  else if (given["cols"] && !given["rows"])
    result.sizes["rows"] = 1;
}

/// "a 1024x1024 image" is one, of one channel.
void Reader::readSingleImage() {
  auto has = [&](const char *name) { return result.sizes.count(name) != 0; };
  if (has("channels") && !given["channels"] && llvm::any_of(tokens, [](const Token &t) { return t.raw == "rgb"; }))
    result.sizes["channels"] = 3, given["channels"] = true;
  if (!has("channels") || !given["height"] || !given["width"])
    return;
  if (!given["batch"] && !given["channels"])
    result.sizes["channels"] = 1;
  if (has("batch") && !given["batch"])
    result.sizes["batch"] = 1;
}

llvm::Error Reader::checkSizes() {
  readSingleStep();
  readSingleImage();
  readSingleRow();
  // "a matrix product, N = 256": all dimensions, where "256" alone would be all of them.
  bool saysOrder = false;
  for (size_t at = 0; at + 1 < tokens.size(); ++at)
    saysOrder |= tokens[at].raw == "n" && tokens[at + 1].raw == "=";
  for (const ShapeRule &rule : heavy.op->shapes) {
    if (!rule.words.empty() || rule.shapes.size() != 1 || rule.shapes[0].size() != 1 || (!given["n"] && !saysOrder))
      continue;
    llvm::SmallVector<StringRef, 4> names;
    StringRef(rule.shapes[0][0]).split(names, '=');
    const StringRef *only = llvm::find_if(names, [&](StringRef name) { return given[name.str()]; });
    if ((llvm::is_contained(names, "n") || saysOrder) &&
        llvm::count_if(names, [&](StringRef name) { return given[name.str()]; }) == 1)
      for (StringRef name : names)
        result.sizes[name.str()] = result.sizes[only->str()];
  }
  for (const Size &size : heavy.op->sizes) {
    int64_t &value = result.sizes[size.name];
    // "2 million nonzeros" of a matrix whose rows nobody counted.
    if (int64_t total = size.total.empty() ? 0 : result.sizes[size.total];
        given[size.name] && !given[size.total] && total > 0 && value >= total / 4 && value % size.value == 0) {
      result.sizes[size.total] = value / size.value;
      value = size.value;
      given[size.total] = true;
    }
    // "10000 nodes and 50000 edges" are 5 edges each.
    if (int64_t total = size.total.empty() ? 0 : result.sizes[size.total];
        total > 0 && given[size.name] && value >= total) {
      // "100000 vertices, 1M edges" are a million.
      constexpr int64_t mega = 1 << 20;
      if (value % total && value % mega == 0 && value / mega * 1000000 % total == 0)
        value = value / mega * 1000000;
      if (value % total)
        return refuse(heavy.op->name + " takes a number of " + size.words[0] + "s that is a multiple of " + size.total +
                      " (the same number each), not " + std::to_string(value));
      value /= total;
    }
  }
  for (const Size &size : heavy.op->sizes)
    if (!size.sameAs.empty() && !given[size.name] && given[size.sameAs])
      result.sizes[size.name] = result.sizes[size.sameAs];
  for (const Size &size : heavy.op->sizes) {
    int64_t value = result.sizes[size.name];
    if (value < size.least || value > size.most)
      return refuse(heavy.op->name + " takes " + size.name + " from " + std::to_string(size.least) + " to " +
                    std::to_string(size.most) + ", not " + std::to_string(value));
    if (size.powerOfTwo && (value & (value - 1)))
      return refuse(heavy.op->name + " wants a power of two for " + size.name + ", not " + std::to_string(value));
  }
  double elements = 1;
  for (const Buffer &buffer : heavy.op->buffers) {
    elements = 1;
    llvm::SmallVector<StringRef, 4> factors;
    StringRef(buffer.count).split(factors, '*');
    for (StringRef factor : factors) {
      auto it = result.sizes.find(factor.trim().str());
      if (it != result.sizes.end())
        elements *= double(it->second);
    }
    if (elements > 4e9)
      return refuse("an array of " + llvm::formatv("{0:f0}", elements).str() + " elements is more than it can index");
  }
  return llvm::Error::success();
}
