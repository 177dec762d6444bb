//===- ReplaceBody.cpp - new text in place of a kernel --------------------===//
//
// Not a transform: nothing is proven. The text is checked (KernelTextCheck.h), restricted to the launches that were
// exercised, and read as a tree where that is possible, so that transforms go on from there.
//
//===----------------------------------------------------------------------===//
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/Analysis/Read.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Frontend/KernelTextCheck.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace optiml;

/// What Clang calls the text in its messages.
static constexpr const char *textName = "new kernel";
static constexpr size_t maxExpressionBytes = 200;

std::vector<std::string> KernelSpace::kernelNames() const {
  std::vector<std::string> names;
  for (const auto &[name, state] : kernels)
    names.push_back(name);
  return names;
}

const KernelState *KernelSpace::kernel(const std::string &name) const {
  auto it = kernels.find(name);
  return it == kernels.end() ? nullptr : &it->second;
}

void KernelSpace::setExercised(const std::string &kernel, const std::string &condition) {
  if (auto it = kernels.find(kernel); it != kernels.end())
    it->second.hints.exercised = condition;
}

/// The names that the launch of a kernel may depend on.
static std::set<std::string> launchNames(const KernelState &state) {
  std::set<std::string> names = {"grid.x", "grid.y", "grid.z", "block.x", "block.y", "block.z", "shared"};
  for (const Param &param : state.original->params)
    if (param.type.isInt())
      names.insert(param.name);
  return names;
}

static llvm::Expected<IntExpr> launchExpression(const std::string &text, const std::set<std::string> &names,
                                                const char *what) {
  if (text.size() > maxExpressionBytes)
    return notApplicable("the {0} is longer than {1} bytes", what, maxExpressionBytes);
  auto parsed = IntExpr::parse(text);
  if (!parsed)
    return notApplicable("the {0} '{1}': {2}", what, text, llvm::toString(parsed.takeError()));
  // It becomes a part of larger expressions, which must not be nested too deeply either.
  std::string canonical = parsed->str(), room(100, '('), closed(100, ')');
  if (auto larger = IntExpr::parse(room + canonical + closed); !larger || canonical.size() > 2 * maxExpressionBytes) {
    llvm::consumeError(larger.takeError());
    return notApplicable("the {0} is nested too deeply", what);
  }
  for (const std::string &name : parsed->names())
    if (!names.count(name))
      return notApplicable("the {0} '{1}' uses '{2}', which is neither grid.x and the like nor an integer argument",
                           what, text, name);
  return parsed;
}

/// Sets the one step of the plan, with conditions that keep it within every device's limits.
static llvm::Error setLaunch(KernelState &state, const KernelText &text) {
  std::set<std::string> names = launchNames(state);
  LaunchStep &step = state.rewrite.plan.steps.at(0);
  for (unsigned axis = 0; axis < 3; ++axis) {
    auto grid = launchExpression(text.grid[axis], names, "grid");
    if (!grid)
      return grid.takeError();
    auto block = launchExpression(text.block[axis], names, "block");
    if (!block)
      return block.takeError();
    step.grid[axis] = *grid;
    step.block[axis] = *block;
  }
  auto shared = launchExpression(text.shared, names, "shared memory");
  if (!shared)
    return shared.takeError();
  step.sharedBytes = *shared;
  // The dispatcher evaluates all this for launches that were never seen: no division by zero there.
  auto allExpressions = llvm::concat<const IntExpr>(step.grid, step.block, llvm::ArrayRef<IntExpr>(step.sharedBytes));
  for (const IntExpr &e : allExpressions)
    for (const IntExpr &divisor : e.divisors())
      state.require("(" + divisor.str() + ") > 0", "nothing is divided by zero");
  auto within = [&](const IntExpr &e, const std::string &least, const std::string &most, const char *why) {
    std::string value = "(" + e.str() + ")";
    if (!e.names().empty())
      state.require(value + " >= " + least + " && " + value + " <= " + most, why);
    else if (auto n = e.evaluate([](const std::string &) { return std::nullopt; });
             !n || *n < std::stoll(least) || *n > std::stoll(most))
      return false;
    return true;
  };
  IntExpr threads =
      IntExpr::of("(" + step.block[0].str() + ") * (" + step.block[1].str() + ") * (" + step.block[2].str() + ")");
  if (!within(threads, "1", "1024", "a block has at most 1024 threads"))
    return notApplicable("the block has {0} threads; it must have from 1 to 1024", threads.str());
  const char *most[] = {"2147483647", "65535", "65535"}, *mostThreads[] = {"1024", "1024", "64"};
  for (unsigned axis = 0; axis < 3; ++axis) {
    if (!within(step.grid[axis], "1", most[axis], "the grid is within the device's limits"))
      return notApplicable("the grid '{0}' is outside of the device's limits", step.grid[axis].str());
    if (!within(step.block[axis], "1", mostThreads[axis], "the block is within the device's limits"))
      return notApplicable("the block '{0}' is outside of the device's limits", step.block[axis].str());
  }
  if (!within(step.sharedBytes, "0", std::to_string(state.hints.maxSharedBytes),
              "dynamic shared memory without asking for more"))
    return notApplicable("the dynamic shared memory '{0}' must be from 0 to {1} bytes", step.sharedBytes.str(),
                         state.hints.maxSharedBytes);
  return llvm::Error::success();
}

/// "__launch_bounds__(256) " where the block is constant.
static std::string launchBounds(const LaunchStep &step) {
  int64_t threads = 1;
  for (const IntExpr &extent : step.block) {
    auto value = extent.evaluate([](const std::string &) { return std::nullopt; });
    if (!value)
      return "";
    threads *= *value;
  }
  return "__launch_bounds__(" + std::to_string(threads) + ") ";
}

/// The text as lines that end in a newline, or nothing.
static std::string lines(llvm::StringRef text) {
  return text.trim().empty() ? "" : text.trim("\r\n").rtrim().str() + "\n";
}

llvm::Expected<KernelState> KernelSpace::replaceKernelBody(const KernelState &before, const Action &action) const {
  auto param = action.params.find("text");
  std::optional<KernelText> text = param == action.params.end() ? std::nullopt : textRules.texts->find(param->second);
  if (!text)
    return makeError("there is no kernel text '{0}'", param == action.params.end() ? "" : param->second);
  if (text->kernel != before.rewrite.original)
    return notApplicable("the text is for kernel '{0}'", text->kernel);
  if (!before.tree || !before.helpers.empty() || !before.verbatim.empty() || before.rewrite.testedOnly)
    return notApplicable("the kernel's text was replaced already");
  const KernelState &original = kernels.at(before.rewrite.original);
  if (print(*before.tree) != print(*original.tree))
    return notApplicable("new text replaces the original, not what became of it");
  for (const auto &[part, what] :
       {std::pair<const std::string &, const char *>{text->helpers, "helpers"}, {text->body, "body"}})
    if (llvm::Error e = checkKernelTokens(part, what, textRules.allowAssembly))
      return notApplicable("{0}", llvm::toString(std::move(e)));

  KernelState state = original;
  state.rewrite.testedOnly = true;
  if (llvm::Error e = setLaunch(state, *text))
    return std::move(e);
  if (!state.hints.exercised.empty())
    state.require(state.hints.exercised, onlyTested);
  std::string parameters = declarations(parametersOf(*original.tree));
  state.helpers = lines(text->helpers);
  if (!state.helpers.empty())
    state.helpers += "\n";
  state.verbatim = "__global__ void " + launchBounds(state.rewrite.plan.steps[0]) + state.rewrite.twin + "(" +
                   parameters + ") {\n" + lines(text->body) + "}\n";

  // In its place, with lines of its own for messages.
  const KernelRewrite &rewrite = state.rewrite;
  std::string head = this->text.substr(0, rewrite.insertAt) + "\n" + rewrite.enter + "#line 1 \"" + textName + "\"\n";
  KernelTextPlace place;
  place.begin = unsigned(head.size());
  place.kernelBegin = place.begin + unsigned(state.helpers.size());
  place.end = place.kernelBegin + unsigned(state.verbatim.size()) - 1;
  place.twin = rewrite.twin;
  place.symbol = rewrite.originalSymbol;
  place.allowAssembly = textRules.allowAssembly;
  auto program =
      textRules.parse(head + state.helpers + state.verbatim + rewrite.leave + this->text.substr(rewrite.insertAt));
  if (!program)
    return notApplicable("{0}", llvm::toString(program.takeError()));
  auto made = checkKernelDeclarations(**program, place);
  if (!made)
    return notApplicable("{0}", llvm::toString(made.takeError()));
  auto tree = readKernel(**program, **made);
  state.tree = nullptr;
  if (tree)
    state.tree = *tree;
  else
    llvm::consumeError(tree.takeError());
  return state;
}
