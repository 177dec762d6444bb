//===- ReadShapes.cpp - shapes of a request -------------------------------===//
#include "Reader.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using namespace optiml::gen;

bool optiml::gen::readShapes(const ShapeRule &rule, const std::vector<Token> &tokens, const std::vector<size_t> &at,
                             std::map<std::string, int64_t> &out) {
  if (rule.shapes.size() != at.size())
    return false;
  for (size_t s = 0; s < at.size(); ++s) {
    const std::vector<double> &values = tokens[at[s]].values;
    if (values.size() != rule.shapes[s].size())
      return false;
    for (size_t d = 0; d < values.size(); ++d) {
      if (values[d] != std::floor(values[d]))
        return false;
      llvm::SmallVector<StringRef, 4> names;
      StringRef(rule.shapes[s][d]).split(names, '=');
      for (StringRef name : names) {
        auto [it, isNew] = out.insert({name.str(), int64_t(values[d])});
        if (!isNew && it->second != int64_t(values[d]))
          return false;
      }
    }
  }
  return true;
}

/// Whether the choices are those under which the shape is read so.
bool Reader::isChosen(const ShapeRule &rule) {
  llvm::SmallVector<StringRef, 2> conditions;
  StringRef(rule.when).split(conditions, ' ', -1, /*KeepEmpty=*/false);
  return llvm::all_of(conditions, [&](StringRef condition) {
    auto [choice, value] = condition.split('=');
    return result.choices[choice.str()] == value;
  });
}

/// "gaussian blur 5x5" tells the size of the filter; an operation whose filter is fixed has one size only.
llvm::Error Reader::readFixedFilter() {
  auto hasSize = [&](StringRef name) {
    return llvm::any_of(heavy.op->sizes, [&](const Size &s) { return s.name == name; });
  };
  if (llvm::is_contained(heavy.op->always, "global") && llvm::none_of(tokens, [](const Token &token) {
        return token.values == std::vector<double>{1, 1};
      }))
    return llvm::Error::success();
  if (!hasSize("height") || !hasSize("width") || hasSize("window") || hasSize("kh") || hasSize("filter"))
    return llvm::Error::success();
  for (size_t at = 0; at < tokens.size(); ++at) {
    const std::vector<double> &values = tokens[at].values;
    if (used[at] || values.size() != 2 || values[0] != values[1] || values[0] > 11 || int(values[0]) % 2 == 0)
      continue;
    static const std::set<StringRef> grids = {"grid",    "board", "image", "matrix",     "field",   "cell",
                                              "domain",  "map",   "torus", "array",      "picture", "world",
                                              "feature", "maps",  "input", "activation", "tensor",  "plane"};
    if (at + 1 < tokens.size() && (grids.count(tokens[at + 1].raw) || grids.count(tokens[at + 1].text)))
      continue; // "a 9x9 board"
    bool isWhole = values[0] == 1 && llvm::is_contained(heavy.op->always, "global"); // "adaptive pooling to 1x1"
    if (!isWhole && (values[0] != 3 || !StringRef(heavy.op->title).contains("3 x 3")))
      return refuse("a filter of " + tokens[at].raw + " is not offered for " + heavy.op->name);
    used[at] = true;
  }
  return llvm::Error::success();
}

/// "avgpool 3x3, batch 4, 28x28", "5x5x5 convolution": a small shape right beside the name is the window's.
void Reader::readLeadingFilter() {
  if (heavy.span.at.empty())
    return;
  size_t shapes = llvm::count_if(tokens, [](const Token &token) { return token.isShape(); });
  for (size_t at : {heavy.span.at.back() + 1, heavy.first() ? heavy.first() - 1 : tokens.size()}) {
    if (at >= tokens.size() || used[at] || tokens[at].values.size() < 2 ||
        *llvm::max_element(tokens[at].values) > (shapes < 2 ? 7 : 15))
      continue;
    for (const ShapeRule &rule : heavy.op->shapes) {
      std::map<std::string, int64_t> values;
      if (rule.words.empty() || !llvm::is_contained(rule.words, "window") || !readShapes(rule, tokens, {at}, values))
        continue;
      for (const auto &[name, value] : values)
        setNumber(name, double(value), at);
      used[at] = true;
      return;
    }
  }
}

/// A tensor whose last dimension is worked on is a matrix of all that stands before it: "layer norm of (32, 128, 768)".
bool Reader::readLeadingDimensions(size_t at) {
  bool byRow = llvm::is_contained(heavy.op->always, "row") ||
               llvm::any_of(result.choices, [](const auto &choice) { return choice.second == "row"; });
  const std::vector<double> &values = tokens[at].values;
  for (const ShapeRule &rule : heavy.op->shapes) // "[1, 8, 32, 32, 32]" for channels and a volume
    if (rule.words.empty() && rule.when.empty() && rule.shapes.size() == 1 && rule.shapes[0].size() > 3 &&
        values.size() == rule.shapes[0].size() + 1 && llvm::all_of(heavy.op->shapes, [&](const ShapeRule &other) {
          return other.shapes[0].size() <= rule.shapes[0].size();
        })) {
      bool fits = setNumber(rule.shapes[0][0], values[0] * values[1], at);
      for (size_t d = 1; d < rule.shapes[0].size(); ++d)
        fits &= setNumber(rule.shapes[0][d], values[d + 1], at);
      return fits;
    }
  if (!byRow || values.size() < 3)
    return false;
  for (const ShapeRule &rule : heavy.op->shapes)
    if (rule.words.empty() && rule.shapes.size() == 1 && rule.shapes[0].size() == 2) {
      double rows = 1;
      for (double v : llvm::ArrayRef(values).drop_back())
        rows *= v;
      return setNumber(rule.shapes[0][0], rows, at) && setNumber(rule.shapes[0][1], values.back(), at);
    }
  return false;
}

/// "C(1000,800) = A(1000,600) * B(600,800)": one shape more than there are inputs is the result's, which these give.
bool Reader::readShapesAndResult(const std::vector<size_t> &open) {
  for (size_t result : {size_t(0), open.size() - 1})
    for (const ShapeRule &rule : heavy.op->shapes) {
      std::vector<size_t> inputs = open;
      inputs.erase(inputs.begin() + result);
      std::map<std::string, int64_t> values;
      bool isGiven = rule.words.empty() && isChosen(rule) && readShapes(rule, tokens, inputs, values) &&
                     llvm::all_of(tokens[open[result]].values, [&](double extent) {
                       return llvm::any_of(values, [&](const auto &value) { return double(value.second) == extent; });
                     });
      if (!isGiven)
        continue;
      for (const auto &[name, value] : values)
        setNumber(name, double(value), inputs[0]);
      for (size_t at : open)
        used[at] = true;
      return true;
    }
  return false;
}

/// "2x2 maxpool on 3x224x224": of two shapes the small one is the filter's.
bool Reader::readFilterBesideInput(const std::vector<size_t> &open) {
  auto extent = [&](size_t at) { return *llvm::max_element(tokens[at].values); };
  size_t small = extent(open[0]) < extent(open[1]) ? open[0] : open[1], large = small == open[0] ? open[1] : open[0];
  if (extent(small) > 15)
    return false;
  for (const ShapeRule &filter : heavy.op->shapes)
    for (const ShapeRule &input : heavy.op->shapes) {
      std::map<std::string, int64_t> values;
      if (filter.words.empty() || !input.words.empty() || !isChosen(input) ||
          !readShapes(filter, tokens, {small}, values) || !readShapes(input, tokens, {large}, values))
        continue;
      for (const auto &[name, value] : values)
        setNumber(name, double(value), small);
      used[large] = true;
      return true;
    }
  return false;
}

/// Of the operation and its stages.
std::string Reader::titleOfAll() const {
  std::string text = heavy.op->title;
  for (const auto *stages : {&result.before, &result.after})
    for (const Stage &stage : *stages)
      text += " " + stage.operation->title;
  return text;
}

/// "from 64x64 to 256x256": by how much what is enlarged grows.
bool Reader::readEnlarged(const std::vector<size_t> &open) {
  bool isEnlarged = llvm::any_of(heavy.op->sizes, [](const Size &size) { return size.name == "factor"; });
  if (!isEnlarged || open.size() != 2 || given["factor"])
    return false;
  const std::vector<double> &from = tokens[open[0]].values, &to = tokens[open[1]].values;
  double factor = to.back() / from.back();
  bool isWhole = factor > 1 && factor == std::floor(factor) && from.size() > 1 && to.size() == 2 &&
                 to[0] == factor * from[from.size() - 2];
  for (const ShapeRule &rule : heavy.op->shapes) {
    std::map<std::string, int64_t> values;
    if (!isWhole || !readShapes(rule, tokens, {open[0]}, values))
      continue;
    for (const auto &[name, value] : values)
      setNumber(name, double(value), open[0]);
    return setNumber("factor", factor, open[1]);
  }
  return false;
}

llvm::Error Reader::assignShapes() {
  if (llvm::Error error = readFixedFilter())
    return error;
  auto beside = [&](size_t at, const std::vector<std::string> &words) {
    for (const std::string &text : words) {
      std::vector<std::string> phrase = vocabulary.words(text);
      for (size_t begin = at > 4 ? at - 4 : 0; begin <= std::min(at + 2, tokens.size() - 1); ++begin)
        if (begin != at)
          if (std::optional<Span> span =
                  matchPhrase(tokens, begin, phrase, 0, std::vector<bool>(tokens.size(), false))) {
            bool cut = false; // "a 5x5 kernel", "kernel size of 5x5"; not "a 5x5 kernel on a 64x48 image"
            static const std::set<std::string> between = {"size", "of", "=", "is", "shape", "a"};
            for (size_t i = begin > at ? at + 1 : span->at.back() + 1; i < std::max(at, begin); ++i)
              cut |= begin > at
                         ? tokens[i].raw == "," || !tokens[i].values.empty() || vocabulary.isFiller(tokens[i].text)
                         : !between.count(tokens[i].raw);
            // "pooling of a 32x32 image" tells what is pooled.
            cut |= begin < at && at > 1 && tokens[at - 1].raw == "a" && tokens[at - 2].raw == "of";
            if (!cut)
              return true;
          }
    }
    return false;
  };
  std::string twice; // a size that is said to be two things
  auto take = [&](const std::vector<size_t> &at, const std::map<std::string, int64_t> &values) {
    for (const auto &[name, value] : values) {
      bool isOther = llvm::any_of(values, [&](const auto &other) { return other.second == result.sizes[name]; });
      if (given[name] && result.sizes.count(name) && !isOther)
        twice = name;
      setNumber(name, double(value), at[0]);
    }
    for (size_t i : at)
      used[i] = true;
  };
  std::vector<size_t> open;
  for (size_t at = 0; at < tokens.size(); ++at) {
    if (!tokens[at].isShape() || used[at])
      continue;
    bool taken = false;
    // "the sign (-1, 0, 1)": what its title says
    auto isInTitle = [&](double value) {
      return llvm::is_contained(vocabulary.words(titleOfAll()), shortestNumber(value));
    };
    if (llvm::any_of(tokens[at].values, [](double value) { return value < 1; }) &&
        llvm::all_of(tokens[at].values, isInTitle)) {
      used[at] = true;
      continue;
    }
    for (const ShapeRule &rule : heavy.op->shapes) {
      std::map<std::string, int64_t> values;
      // "convolve a 100x100 image with a 7x7 kernel": the smaller one
      auto isFilter = [&](size_t other) {
        return other != at && tokens[other].values.size() == tokens[at].values.size() && tokens[at].isShape() &&
               tokens[other].values[0] < tokens[at].values[0] && beside(other, rule.words);
      };
      bool isSmaller = false;
      for (size_t other = 0; other < tokens.size(); ++other)
        isSmaller |= isFilter(other);
      if (!taken && !rule.words.empty() && !isSmaller && beside(at, rule.words) &&
          readShapes(rule, tokens, {at}, values)) {
        take({at}, values);
        taken = true;
      }
    }
    // "clamp to [0, 6]"
    std::vector<Named> reals;
    for (const Named &wanted : numbersWanted())
      if (wanted.target && !given[wanted.name])
        reals.push_back(wanted);
    if (!taken && tokens[at].values.size() == 2 && reals.size() == 2 && tokens[at].values[0] < tokens[at].values[1] &&
        (tokens[at].text == "interval" || (tokens[at].values[0] <= 1 && tokens[at].values[1] < 1024))) {
      setNumber(reals[0].name, tokens[at].values[0], at);
      setNumber(reals[1].name, tokens[at].values[1], at);
      taken = true;
    }
    // "squash into (0, 1)" of what needs no limits
    static const std::set<StringRef> into = {"into", "to", "in", "between", "range", "interval"};
    if (!taken && tokens[at].text == "interval" && heavy.op->says.empty() && reals.empty() && at > 0 &&
        into.count(tokens[at - 1].raw))
      used[at] = taken = true;
    if (!taken && tokens[at].text == "interval" &&
        StringRef(heavy.op->title)
            .contains("[" + shortestNumber(tokens[at].values[0]) + ", " + shortestNumber(tokens[at].values[1]) + "]"))
      used[at] = taken = true; // "scaled to [0, 1]"
    if (!taken && !open.empty() && tokens[at].values == tokens[open.back()].values && heavy.op->shapes.size() &&
        llvm::none_of(heavy.op->shapes, [&](const ShapeRule &r) { return r.words.empty() && r.shapes.size() > 1; })) {
      used[at] = true; // the same shape again: "two 64x64 images"
      continue;
    }
    if (!taken)
      open.push_back(at);
  }
  if (open.empty())
    return twice.empty() ? llvm::Error::success() : refuse("it gives two values for " + twice);
  // "3x3, padding 1, 64x64 input": the small one is the filter's wherever it stands.
  if (open.size() == 2 && tokens[open[0]].values[0] < tokens[open[1]].values[0] && readFilterBesideInput(open))
    return llvm::Error::success();
  for (const ShapeRule &rule : heavy.op->shapes) {
    std::map<std::string, int64_t> values;
    bool isLast = &rule == &heavy.op->shapes.back();
    auto contradicts = [&](const auto &value) {
      return given[value.first] && llvm::none_of(values, [&](const auto &other) {
               return other.second == result.sizes[value.first];
             });
    };
    if (rule.words.empty() && isChosen(rule) && readShapes(rule, tokens, open, values) &&
        (isLast || llvm::none_of(values, contradicts))) {
      take(open, values);
      if (!twice.empty())
        return refuse("it gives two values for " + twice);
      return llvm::Error::success();
    }
  }
  if (open.size() == 2 && readFilterBesideInput(open))
    return llvm::Error::success();
  if (open.size() == 1 && readLeadingDimensions(open[0]))
    return llvm::Error::success();
  if (readEnlarged(open) || (open.size() > 1 && readShapesAndResult(open)))
    return llvm::Error::success();
  // An operation on a plain sequence takes a matrix's elements one after the other.
  if (open.size() == 1 && !heavy.op->sizes.empty() && heavy.op->sizes[0].name == "n" &&
      llvm::none_of(heavy.op->shapes,
                    [](const ShapeRule &rule) { return rule.words.empty() && rule.shapes[0].size() > 1; })) {
    double product = 1;
    for (double v : tokens[open[0]].values)
      product *= v;
    if (setNumber("n", product, open[0]))
      return llvm::Error::success();
  }
  return refuse("the shape " + tokens[open[0]].raw + " does not fit " + heavy.op->name);
}
