//===- Request.cpp - checking a request against the library ---------------===//
#include "optiml/Generate/Request.h"
#include "Formula.h"
#include "Template.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Numbers.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <optional>
#include <set>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

std::string optiml::gen::typeNamed(StringRef word) {
  static const std::vector<std::vector<StringRef>> types = {{"float", "fp32", "f32", "float32", "single"},
                                                            {"double", "fp64", "f64", "float64"},
                                                            {"half", "fp16", "f16", "float16"},
                                                            {"bfloat16", "bf16"},
                                                            {"int", "int32", "i32", "integer"},
                                                            {"unsigned", "uint32", "u32", "uint"},
                                                            {"long long", "int64", "i64", "long", "long-long"},
                                                            {"int8", "i8"},
                                                            {"unsigned char", "uint8", "u8", "unsigned-char"}};
  for (const std::vector<StringRef> &names : types)
    if (llvm::is_contained(names, word.lower()))
      return names.front().str();
  return "";
}

static bool isFloatingType(StringRef type) { return type == "float" || type == "double" || shortFloat(type); }

//===----------------------------------------------------------------------===//
// Options
//===----------------------------------------------------------------------===//

static void addOptions(const Operation &op, std::vector<Option> &result) {
  auto add = [&](Option option, const auto &from) {
    option.required = llvm::is_contained(op.required, from.name);
    option.aliases = from.aliases;
    if (option.required)
      option.initial.clear();
    result.push_back(std::move(option));
  };
  for (const Size &size : op.sizes) {
    Option option{Option::Kind::Size, size.name, {}, std::to_string(size.value)};
    option.least = size.least, option.most = size.most, option.powerOfTwo = size.powerOfTwo;
    add(std::move(option), size);
  }
  for (const Real &real : op.reals)
    add({Option::Kind::Constant, real.name, {}, shortestNumber(real.value)}, real);
  for (const Choice &choice : op.choices)
    result.push_back({Option::Kind::Choice, choice.name, choice.values, choice.values.front()});
}

std::vector<Option> optiml::gen::optionsOf(const Operation &op, const Library &library) {
  std::vector<Option> result = {{Option::Kind::Type, "type", op.types, op.types.front()}};
  addOptions(op, result);
  if (!op.isStage)
    return result;
  // Alone it is a map over an array or over a matrix.
  if (!op.hasColumnOperand())
    addOptions(*library.find("map"), result);
  addOptions(*library.find("map2d"), result);
  return result;
}

namespace {

/// Takes the options one after the other, so that what is left over is unknown.
class OptionReader {
public:
  OptionReader(const Options &given, std::string owner) : left(given), owner(std::move(owner)) {}

  std::optional<std::string> take(const std::string &name) {
    auto at = left.find(name);
    if (at == left.end())
      return std::nullopt;
    std::string value = at->second;
    left.erase(at);
    return value;
  }
  llvm::Error finish(llvm::ArrayRef<Option> known) const {
    if (left.empty())
      return llvm::Error::success();
    std::string names = llvm::join(llvm::map_range(known, [](const Option &option) { return option.name; }), ", ");
    return makeError("{0} has no option '{1}'; it has {2}", owner, left.begin()->first, names.empty() ? "none" : names);
  }
  const Options &remaining() const { return left; }

private:
  Options left;
  std::string owner;
};

/// Settles one request. Every step returns the first thing that is wrong.
class Resolver {
public:
  Resolver(const Request &request, const Library &library) : library(library) { spec.request = request; }

  llvm::Expected<ProgramSpec> run() {
    llvm::Expected<const Operation *> named = findOperation();
    if (!named)
      return named.takeError();
    OptionReader options(spec.request.options, name());
    for (auto step : {&Resolver::chooseType, &Resolver::chooseStages, &Resolver::readSizes, &Resolver::readReals,
                      &Resolver::readChoices, &Resolver::checkRequirements})
      if (llvm::Error error = (this->*step)(**named, options))
        return std::move(error);
    if (llvm::Error error = options.finish(optionsOf(**named, library)))
      return std::move(error);
    return std::move(spec);
  }

private:
  std::string name() const { return spec.formula ? "the formula" : spec.request.operation; }

  llvm::Expected<const Operation *> findOperation();
  llvm::Error makeFormulaStage();
  llvm::Error chooseType(const Operation &op, OptionReader &options);
  llvm::Error checkFormulaType();
  llvm::Error chooseStages(const Operation &op, OptionReader &options);
  llvm::Error readSizes(const Operation &op, OptionReader &options);
  llvm::Error readReals(const Operation &op, OptionReader &options);
  llvm::Error readChoices(const Operation &op, OptionReader &options);
  llvm::Error checkRequirements(const Operation &op, OptionReader &options);
  llvm::Error readConstants(const Operation &of, OptionReader &options, std::map<std::string, double> &into);
  llvm::Error addStages(const std::vector<StageRequest> &requests, std::vector<Stage> &into);

  const Library &library;
  ProgramSpec spec;
};

} // namespace

llvm::Expected<const Operation *> Resolver::findOperation() {
  if (spec.request.operation.empty() == spec.request.formula.empty())
    return makeError("a request has either an operation or a formula");
  if (!spec.request.formula.empty()) {
    if (llvm::Error error = makeFormulaStage())
      return std::move(error);
    return spec.formula.get();
  }
  if (const Operation *op = library.findPublic(spec.request.operation))
    return op;
  return makeError("the library has no operation '{0}'; --list shows what it has", spec.request.operation);
}

/// The formula as a stage: its first array is the value, others are operands, names with a value are constants.
llvm::Error Resolver::makeFormulaStage() {
  llvm::Expected<Formula> formula = parseFormula(spec.request.formula);
  if (!formula)
    return makeError("formula '{0}': {1}", spec.request.formula, llvm::toString(formula.takeError()));
  auto stage = std::make_shared<Operation>();
  stage->name = "formula";
  stage->title = spec.request.formula;
  stage->isStage = true;
  stage->types = {"float", "double", "half", "bfloat16", "int", "unsigned", "long long"};
  std::map<std::string, std::string> renamed;
  std::string value; // the first array
  for (const std::string &name : namesIn(**formula)) {
    renamed[name] = name;
    if (spec.request.options.count(name)) {
      stage->reals.push_back({name, 0, {}});
      stage->required.push_back(name);
    } else if (value.empty()) {
      value = name;
      renamed[name] = "v";
    } else {
      stage->operands.push_back({name, "same"});
    }
  }
  if (value.empty())
    return makeError("formula '{0}': it reads no array (names without a value are arrays)", spec.request.formula);
  if (renamed.count("v") && value != "v")
    return makeError("formula '{0}': 'v' is the name of the first array only", spec.request.formula);
  stage->expression = asTemplate(**formula, renamed);
  spec.formula = std::move(stage);
  return llvm::Error::success();
}

llvm::Error Resolver::chooseType(const Operation &op, OptionReader &options) {
  std::string said = options.take("type").value_or(op.types.front());
  spec.type = typeNamed(said);
  if (spec.type.empty() || !llvm::is_contained(op.types, spec.type))
    return makeError("{0} is not offered for {1}; its types are {2}", name(), said, llvm::join(op.types, ", "));
  return spec.formula ? checkFormulaType() : llvm::Error::success();
}

/// Integers have no sine, and floating-point numbers no remainder operator.
llvm::Error Resolver::checkFormulaType() {
  StringRef rest = spec.formula->expression;
  if (isFloatingType(spec.type))
    return rest.contains("%") ? makeError("the operator % needs integers; use fmod(x, y)") : llvm::Error::success();
  while (rest.contains("${")) {
    rest = rest.split("${").second;
    StringRef inner = rest.split('}').first;
    if (isMathFunction(inner) && inner != "abs" && inner != "max" && inner != "min")
      return makeError("the function {0} needs a floating-point type", inner);
  }
  return llvm::Error::success();
}

llvm::Error Resolver::readConstants(const Operation &of, OptionReader &options, std::map<std::string, double> &into) {
  for (const Real &real : of.reals) {
    std::optional<std::string> said = options.take(real.name);
    if (!said && llvm::is_contained(of.required, real.name))
      return makeError("{0} needs --{1}", of.name, real.name);
    std::optional<double> value = said                        ? parseNumber(*said)
                                  : isFloatingType(spec.type) ? real.value
                                                              : std::round(real.value);
    if (!value)
      return makeError("--{0}={1}: want a number", real.name, *said);
    if (!isFloatingType(spec.type) && *value != std::floor(*value))
      return makeError("--{0}={1}: want a whole number, as the type is {2}", real.name, shortestNumber(*value),
                       spec.type);
    into[real.name] = *value;
  }
  return llvm::Error::success();
}

llvm::Error Resolver::addStages(const std::vector<StageRequest> &requests, std::vector<Stage> &into) {
  for (const StageRequest &request : requests) {
    const Operation *stage = library.findPublic(request.stage);
    if (!stage || !stage->isStage)
      return makeError("'{0}' is no stage; a stage is an element-wise operation", request.stage);
    if (!llvm::is_contained(stage->types, spec.type))
      return makeError("the stage {0} is not offered for {1}", stage->name, spec.type);
    if (stage->hasColumnOperand() && spec.operation->columnIndex.empty())
      return makeError("{0} has no columns for the stage {1}", name(), stage->name);
    OptionReader options(request.options, request.stage);
    Stage &added = into.emplace_back();
    added.operation = stage;
    if (llvm::Error error = readConstants(*stage, options, added.reals))
      return error;
    std::vector<Option> known;
    addOptions(*stage, known);
    if (llvm::Error error = options.finish(known))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error Resolver::chooseStages(const Operation &op, OptionReader &options) {
  const Request &request = spec.request;
  if (!op.isStage) {
    spec.operation = &op;
    if (!request.before.empty() && !op.fusesBefore)
      return makeError("{0} takes no stages before it", op.name);
    if (!request.after.empty() && !op.fusesAfter)
      return makeError("{0} takes no stages after it", op.name);
    if (llvm::Error error = addStages(request.before, spec.before))
      return error;
    return addStages(request.after, spec.after);
  }
  bool hasColumns = op.hasColumnOperand() || options.remaining().count("rows") || options.remaining().count("cols");
  for (const std::vector<StageRequest> *stages : {&request.before, &request.after})
    for (const StageRequest &stage : *stages)
      if (const Operation *known = library.findPublic(stage.stage))
        hasColumns |= known->hasColumnOperand();
  spec.operation = library.find(hasColumns ? "map2d" : "map");
  // All stages of a map stand before its store.
  if (llvm::Error error = addStages(request.before, spec.before))
    return error;
  Stage &own = spec.before.emplace_back();
  own.operation = &op;
  if (llvm::Error error = readConstants(op, options, own.reals))
    return error;
  return addStages(request.after, spec.before);
}

llvm::Error Resolver::readSizes(const Operation &, OptionReader &options) {
  std::set<std::string> said;
  for (const Size &size : spec.operation->sizes) {
    std::optional<std::string> text = options.take(size.name);
    std::optional<double> value = text ? parseNumber(*text) : double(size.value);
    if (text)
      said.insert(size.name);
    else if (llvm::is_contained(spec.operation->required, size.name))
      return makeError("{0} needs --{1}", name(), size.name);
    else if (said.count(size.sameAs))
      value = double(spec.sizes.at(size.sameAs));
    if (!value || *value != std::floor(*value) || *value < double(size.least) || *value > double(size.most))
      return makeError("--{0}={1}: want a whole number from {2} to {3}", size.name, text.value_or(""), size.least,
                       size.most);
    int64_t whole = int64_t(*value);
    if (size.powerOfTwo && (whole & (whole - 1)))
      return makeError("--{0}={1}: want a power of two", size.name, whole);
    spec.sizes[size.name] = whole;
  }
  return llvm::Error::success();
}

llvm::Error Resolver::readReals(const Operation &op, OptionReader &options) {
  return op.isStage ? llvm::Error::success() : readConstants(op, options, spec.reals);
}

llvm::Error Resolver::readChoices(const Operation &, OptionReader &options) {
  for (const Choice &choice : spec.operation->choices) {
    std::string said = options.take(choice.name).value_or(choice.values.front());
    if (!llvm::is_contained(choice.values, said))
      return makeError("--{0}={1}: want {2}", choice.name, said, llvm::join(choice.values, ", "));
    spec.choices[choice.name] = said;
  }
  return llvm::Error::success();
}

llvm::Error Resolver::checkRequirements(const Operation &, OptionReader &) {
  std::map<std::string, double> values(spec.sizes.begin(), spec.sizes.end());
  for (const auto &[condition, message] : spec.operation->requirements) {
    llvm::Expected<Formula> formula = parseFormula(condition);
    if (!formula)
      return makeError("operation {0}: '{1}': {2}", spec.operation->name, condition,
                       llvm::toString(formula.takeError()));
    if (evaluate(**formula, values) == 0)
      return makeError("{0}: {1}", name(), message);
  }
  return llvm::Error::success();
}

llvm::Expected<ProgramSpec> optiml::gen::resolve(const Request &request, const Library &library) {
  return Resolver(request, library).run();
}
