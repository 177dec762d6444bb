//===- ComposeSteps.cpp - steps that make one formula ----------------------===//
#include "ComposeSteps.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml::gen;

static ExprPtr make(Expr::Kind kind, std::string name, std::vector<ExprPtr> args = {}, double value = 0) {
  return std::make_shared<Expr>(Expr{kind, std::move(name), value, std::move(args)});
}
static ExprPtr number(double value) { return make(Expr::Kind::Number, "", {}, value); }
static ExprPtr call(std::string name, std::vector<ExprPtr> args) {
  return make(Expr::Kind::Call, std::move(name), std::move(args));
}
static ExprPtr element(const std::string &array, const std::string &index) {
  return make(Expr::Kind::Index, array, {make(Expr::Kind::Name, index)});
}

/// `name` of all values; every use has an index of its own.
static ExprPtr reduce(const std::string &name, const Values &values) {
  static thread_local unsigned count = 0;
  std::string index = "j" + std::to_string(++count % 1000);
  return make(Expr::Kind::Reduce, name, {make(Expr::Kind::Name, index), values.at(index)});
}

static ExprPtr function(const std::string &name, ExprPtr of) {
  if (name == "1/")
    return call("/", {number(1), of});
  if (name == "square")
    return call("*", {of, of});
  if (name == "cube")
    return call("*", {call("*", {of, of}), of});
  return call(name, {of});
}

Step optiml::gen::applying(const std::string &name) {
  Step step;
  step.apply = [name](const Values &values) {
    return Values{[=](const std::string &index) { return function(name, values.at(index)); }, values.isNumber};
  };
  return step;
}

Step optiml::gen::folding(const std::string &fold) {
  Step step;
  step.folds = true;
  step.fold = fold;
  step.apply = [fold](const Values &values) {
    auto squares = [](const Values &of) {
      return Values{[=](const std::string &index) { return function("square", of.at(index)); }, false};
    };
    ExprPtr value;
    if (fold == "norm" || fold == "rms")
      value = call("sqrt", {reduce(fold == "norm" ? "sum" : "mean", squares(values))});
    else if (fold == "var" || fold == "std") {
      ExprPtr mean = reduce("mean", values);
      value = reduce("mean",
                     squares({[=](const std::string &index) { return call("-", {values.at(index), mean}); }, false}));
      value = fold == "std" ? call("sqrt", {value}) : value;
    } else
      value = reduce(fold, values);
    return Values{[=](const std::string &) { return value; }, true};
  };
  return step;
}

Step optiml::gen::withNumber(char sign, double value) {
  Step step;
  step.apply = [=](const Values &values) {
    return Values{
        [=](const std::string &index) { return call(std::string(1, sign), {values.at(index), number(value)}); },
        values.isNumber};
  };
  return step;
}

Step optiml::gen::withArray(char sign) {
  Step step;
  step.hasSecond = true;
  step.apply = [=](const Values &values) {
    return Values{
        [=](const std::string &index) { return call(std::string(1, sign), {values.at(index), element("y", index)}); },
        false};
  };
  return step;
}

Step optiml::gen::withAggregate(char sign, std::vector<Step> steps) {
  Step step;
  step.aggregates = llvm::any_of(steps, [](const Step &inner) { return inner.folds; });
  step.apply = [=](const Values &values) {
    Values other = values;
    for (const Step &inner : steps)
      other = inner.apply(other);
    return Values{
        [=](const std::string &index) { return call(std::string(1, sign), {values.at(index), other.at(index)}); },
        values.isNumber};
  };
  return step;
}

Step optiml::gen::together(char sign, std::vector<Step> first, std::vector<Step> second) {
  Step step;
  step.folds = step.aggregates = true;
  step.apply = [=](const Values &values) {
    Values a = values, b = values;
    for (const Step &inner : first)
      a = inner.apply(a);
    for (const Step &inner : second)
      b = inner.apply(b);
    return Values{[=](const std::string &index) { return call(std::string(1, sign), {a.at(index), b.at(index)}); },
                  a.isNumber && b.isNumber};
  };
  return step;
}

/// Steps [first, last) as one formula of an array x.
static Formula formulaOf(const std::vector<Step> &steps, size_t first, size_t last) {
  Values values{[](const std::string &index) { return element("x", index); }, false};
  for (size_t i = first; i < last; ++i)
    values = steps[i].apply(values);
  Formula result;
  result.target = values.isNumber ? make(Expr::Kind::Name, "s") : element("r", "i");
  result.value = values.at("i");
  return result;
}

std::optional<std::string> optiml::gen::meaningOf(const Composition &composition, const Library &library) {
  const std::vector<Step> &steps = composition.steps;
  auto isPlain = [](const Step &step) { return !step.folds && !step.aggregates; };
  size_t folds = llvm::count_if(steps, [](const Step &step) { return step.folds; });
  bool aggregates = llvm::any_of(steps, [](const Step &step) { return step.aggregates; });
  bool hasSecond = llvm::any_of(steps, [](const Step &step) { return step.hasSecond; });
  if (steps.size() < 2 && !aggregates)
    return std::nullopt;
  if ((!folds && !aggregates) || (composition.inputs == 2) != hasSecond)
    return std::nullopt; // element-wise chains are read elsewhere
  // "divide every element of a matrix by the sum of all": of the whole matrix, which is no row
  if (composition.isOfMatrix && composition.axis.empty() && aggregates && !folds)
    return "formula";
  std::string axis = composition.axis.empty() ? "" : " of each " + composition.axis;
  auto chain = [&](size_t first, size_t last) -> std::optional<std::string> {
    std::string text;
    for (size_t i = first; i < last; ++i) {
      std::optional<std::string> one = wordsOfFormula(formulaOf(steps, i, i + 1), library);
      if (!one)
        return std::nullopt;
      text += (text.empty() ? "" : " then ") + *one;
    }
    return text;
  };
  for (size_t size = steps.size(); size > 0 && folds < 2; --size)
    for (size_t first = 0; first + size <= steps.size(); ++first) {
      auto all = llvm::ArrayRef(steps);
      if (!llvm::all_of(all.take_front(first), isPlain) || !llvm::all_of(all.drop_front(first + size), isPlain))
        continue;
      // What is made of two arrays by its name alone has no axis: "the mean squared difference of each column".
      if (!axis.empty() && size > 1 &&
          llvm::any_of(all.slice(first, size), [](const Step &step) { return step.hasSecond; }))
        continue;
      std::optional<std::string> core = wordsOfFormula(formulaOf(steps, first, first + size), library);
      if (!core)
        continue;
      if (llvm::StringRef whole = *core; !axis.empty() && whole.consume_back(" of all elements"))
        core = whole.str();
      std::optional<std::string> before = chain(0, first), after = chain(first + size, steps.size());
      bool isWhole = axis.empty() && folds && after && !after->empty(); // "sum then square" is no sum of squares
      if (before && after)
        return *before + (before->empty() ? "" : " then ") + *core + (isWhole ? " of all elements" : axis) +
               (after->empty() ? "" : " then ") + *after;
    }
  return "formula";
}

std::string optiml::gen::descriptionsInWords(llvm::StringRef request, const Library &library,
                                             const Vocabulary &vocabulary) {
  auto read = [&](llvm::StringRef text) {
    std::string running = runningInWords(compositionsInWords(text, library, vocabulary), vocabulary);
    return piecesInWords(running, library, vocabulary);
  };
  std::string whole = read(request);
  auto [label, rest] = request.split(": ");
  bool isNothing =
      llvm::StringRef(whole).starts_with("formula"); // "lengths: square, …", where the label counted as a step
  if ((whole != request && !isNothing) || rest.empty())
    return whole;
  // "full-wave rectification: negative samples are replaced by their absolute value"; a label with numbers says more.
  std::string description = read(rest);
  bool isName = label.find_first_of("0123456789") == llvm::StringRef::npos;
  return description == rest || !isName ? whole : description;
}
