//===- KernelSpace.cpp - the legal actions of a program -------------------===//
#include "optiml/ActionSpace/KernelSpace.h"
#include "optiml/ActionSpace/Registry.h"
#include "optiml/Analysis/Bounds.h"
#include "optiml/Analysis/Read.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Core/KernelName.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>
#include <cstring>
#include <set>

using namespace optiml;

/// An identifier for the twin of `kernel`, which neither the text nor another twin has: "scale<float>" ->
/// "scale_float_optiml". `taken` gets it.
static std::string twinName(const std::string &kernel, const std::string &text, std::set<std::string> &taken) {
  const std::string base = identifierOf(kernel);
  std::string name = base + "_optiml";
  for (unsigned i = 2; text.find(name) != std::string::npos || !taken.insert(name).second; ++i)
    name = base + "_optiml" + std::to_string(i);
  return name;
}

/// Where the twin goes. After the kernel's definition and what its template's arguments name; where that is no place,
/// and for a kernel from a header, before the first function that launches it.
static unsigned insertionPoint(const Program &program, const KernelDecl &kernel) {
  if (kernel.placeOffset)
    return kernel.placeOffset;
  unsigned point = 0;
  for (const std::vector<LaunchSite> *sites : {&program.launches(), &program.addressLaunches()})
    for (const LaunchSite &site : *sites)
      if (site.symbol == kernel.symbol && (point == 0 || site.topLevelBegin < point))
        point = site.topLevelBegin;
  return point ? point : unsigned(program.text().size());
}

/// The file's own indentation: the white space before the first indented line.
static std::string indentOf(const std::string &text) {
  for (size_t i = 0; (i = text.find('\n', i)) != std::string::npos;) {
    size_t start = ++i;
    while (i < text.size() && (text[i] == ' ' || text[i] == '\t'))
      ++i;
    if (i > start && i < text.size() && text[i] != '\n' && text[i] != '*' && text[i] != '/')
      return text[start] == '\t' ? "\t" : std::string(std::min<size_t>(i - start, 4), ' ');
  }
  return "  ";
}

/// The integer in `bytes`, as a value of `type`.
static std::optional<int64_t> integerIn(llvm::StringRef bytes, const Type &type) {
  if (type.cls != Type::Class::Int || type.bytes != bytes.size() || type.bytes > 8)
    return std::nullopt;
  uint64_t value = 0;
  for (size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | uint8_t(bytes[i]);
  unsigned shift = 64 - 8 * type.bytes;
  return type.isSigned ? int64_t(value << shift) >> shift : int64_t(value);
}

/// Each parameter, and each field of one, with the bytes of its value among the raw `values` of a launch's arguments.
static void
eachArgument(const Kernel &kernel, llvm::ArrayRef<std::string> values,
             llvm::function_ref<void(const std::string &name, llvm::StringRef bytes, const Type &type)> take) {
  if (values.size() != kernel.params.size())
    return;
  for (size_t i = 0; i < kernel.params.size(); ++i) {
    const Param &param = kernel.params[i];
    llvm::StringRef bytes = values[i];
    take(param.name, bytes, param.type);
    if (bytes.size() == param.type.bytes)
      for (const Param::Field &field : param.fields)
        take(param.name + "." + field.name, bytes.substr(field.offset, field.type.bytes), field.type);
  }
}

/// Names what is known of the arguments: integers on which all launches agree, those of the heaviest launch, and how
/// far its pointers reach.
static void nameArguments(LaunchHints &hints, const Kernel &kernel) {
  eachArgument(kernel, hints.arguments, [&](const std::string &name, llvm::StringRef bytes, const Type &type) {
    if (auto value = integerIn(bytes, type))
      hints.scalars.emplace(name, *value);
  });
  eachArgument(kernel, hints.heaviest, [&](const std::string &name, llvm::StringRef bytes, const Type &type) {
    if (auto integer = integerIn(bytes, type))
      hints.ofHeaviest.emplace(name, *integer);
    uint64_t value = 0;
    if (!type.isPointer() || bytes.size() != sizeof value)
      return;
    memcpy(&value, bytes.data(), sizeof value);
    for (const auto &[begin, size] : hints.buffers)
      if (value >= begin && value - begin < size) {
        hints.reach.emplace(name, int64_t(size - (value - begin)));
        if (value == begin)
          hints.whole.insert(name);
      }
  });
}

/// Parameters whose names mean something else in conditions and plans get others. The first that cannot, or "".
static std::string renameMisleading(Kernel &kernel) {
  for (Param &param : kernel.params) {
    const bool misleads = (param.name == "shared" && param.type.isInt()) ||
                          ((param.name == "grid" || param.name == "block") && !param.fields.empty());
    if (!misleads)
      continue;
    if (opaqueMentions(*kernel.body, {param.name}))
      return param.name;
    std::set<std::string> taken = allNames(kernel);
    const std::string name = freshName(taken, param.name);
    substitute(*kernel.body, {{param.name, var(name, param.type)}});
    param.name = name;
  }
  return "";
}

/// Notes the least values with which unsigned differences of parameters and constants do not wrap around: "i < n - 1"
/// is then an ordinary bound. So it is with differences of several parameters. Not where a captured launch has less.
static void noteDifferences(Kernel &kernel, const LaunchHints &known) {
  std::set<std::string> changed = changedParameters(kernel);
  std::map<std::string, std::string> found;
  std::optional<KernelModel> model; // most kernels have no such difference
  walkExprs(*kernel.body, [&](const ExprRef &e) {
    if (!isBinary(e, "-") || e->type.cls != Type::Class::Int || e->type.isSigned || e->type.bytes < 4)
      return;
    auto by = constantValue(e->args[1]);
    ExprRef from = e->args[0];
    while (from->kind == ExprKind::Cast && from->type.isInt() && from->args[0]->type.isInt())
      from = from->args[0];
    const ExprRef &root = from->kind == ExprKind::Member ? from->args[0] : from;
    bool isParam =
        root->kind == ExprKind::Var && !changed.count(root->text) &&
        llvm::any_of(kernel.params, [&](const Param &p) { return p.name == root->text && !p.type.isPointer(); });
    auto value = known.scalars.find(str(from));
    if (isParam && by && *by > 0 && *by <= INT32_MAX && from->type.cls == Type::Class::Int &&
        (value == known.scalars.end() || value->second >= *by)) {
      kernel.least[str(from)] = std::max(kernel.least[str(from)], *by);
      return;
    }
    if (by)
      return;
    if (!model)
      model.emplace(kernel, std::array<int64_t, 3>{0, 0, 0});
    const Poly difference = model->poly(e->args[0]) - model->poly(e->args[1]);
    auto text = model->stable(difference) ? planText(*model, difference) : std::nullopt;
    if (text && known.evaluate(IntExpr::of(*text + " >= 0")).value_or(1))
      found.emplace(difference.str(), *text + " >= 0");
  });
  kernel.notNegative = std::move(found);
}

/// A thread's number in its block, as cooperative groups tell it, is its index along x where blocks are rows of
/// threads, as in the captured launches. True: so it is taken.
static bool takeRanksAlongX(Kernel &kernel, const LaunchHints &known) {
  if (!known.block[0] || known.block[1] != 1 || known.block[2] != 1)
    return false;
  bool found = false;
  rewriteExprs(*kernel.body, [&](const ExprRef &e) -> ExprRef {
    if (!isBinary(e, "+") || !equal(e, rankInBlock(e->type)))
      return nullptr;
    found = true;
    return e->args[1];
  });
  return found;
}

llvm::Expected<std::unique_ptr<KernelSpace>>
KernelSpace::create(const Program &program, const std::function<bool(const KernelDecl &)> &wanted,
                    const std::function<LaunchHints(const KernelDecl &)> &hints) {
  std::unique_ptr<KernelSpace> space(new KernelSpace);
  space->path = program.path();
  space->text = program.text();
  space->setsAttributes = setsKernelAttributes(program);
  std::set<std::string> twins;
  const bool someAreOn = llvm::any_of(program.kernels(), [](const KernelDecl &k) { return k.directive.isOn; });
  for (const KernelDecl &decl : program.kernels()) {
    if (!wanted(decl))
      continue;
    if (decl.directive.isOff || (someAreOn && !decl.directive.isOn)) {
      space->skippedKernels.push_back(
          {decl.name, decl.directive.isOff ? "its source says 'optiml off'" : "its source says 'optiml on' of others"});
      continue;
    }
    if (space->kernels.count(decl.name)) {
      space->skippedKernels.push_back({decl.name, "a kernel of the same name, with other parameters, is rewritten"});
      continue;
    }
    auto tree = readKernel(program, decl);
    if (!tree) {
      space->skippedKernels.push_back({decl.name, llvm::toString(tree.takeError())});
      continue;
    }
    if (std::string name = renameMisleading(**tree); !name.empty()) {
      space->skippedKernels.push_back({decl.name, "its parameter '" + name + "' has the name of a part of the launch"});
      continue;
    }
    LaunchHints known = hints(decl);
    nameArguments(known, **tree);
    noteDifferences(**tree, known);
    const bool alongX = takeRanksAlongX(**tree, known);
    KernelState state = originalState(*tree, decl.name, decl.symbol, twinName(decl.name, program.text(), twins), known);
    for (const auto &[parameter, least] : (*tree)->least)
      state.require(parameter + " >= " + std::to_string(least), "unsigned differences do not wrap around");
    for (const auto &[difference, condition] : (*tree)->notNegative)
      state.require(condition, "unsigned differences do not wrap around");
    if (alongX)
      for (const char *axis : {"block.y == 1", "block.z == 1"})
        state.require(axis, "a thread's number is its index along x");
    state.rewrite.insertAt = insertionPoint(program, decl);
    state.rewrite.besideOriginal = decl.placeOffset != 0;
    state.rewrite.enter = decl.enter;
    state.rewrite.leave = decl.leave;
    space->kernels.emplace(decl.name, std::move(state));
  }
  return space;
}

/// CUDA's `__shared__` is a macro that comes to `__attribute__((shared))`: a user's macro `shared` would replace that.
static std::string keepShared(std::string text, const Kernel &kernel) {
  if (!kernel.macros.count("shared") || text.find("__shared__") == std::string::npos)
    return text;
  return "#pragma push_macro(\"shared\")\n#undef shared\n" + text + "\n#pragma pop_macro(\"shared\")\n";
}

void KernelSpace::finish(TreeVariant &variant) {
  std::string indent = indentOf(variant.original);
  for (KernelRewrite &rewrite : variant.rewrites) {
    const KernelState &state = variant.kernels.at(rewrite.original);
    if (state.tree)
      rewrite.twinText = keepShared(
          state.helpers + (state.verbatim.empty() ? print(*state.tree, indent) : state.verbatim), *state.tree);
  }
  auto order = llvm::to_vector(llvm::make_pointer_range(std::as_const(variant.rewrites)));
  std::stable_sort(order.begin(), order.end(), [](auto *a, auto *b) { return a->insertAt < b->insertAt; });
  variant.text.clear();
  size_t at = 0;
  for (const KernelRewrite *rewrite : order) {
    variant.text += variant.original.substr(at, rewrite->insertAt - at);
    variant.text += "\n\n" + rewrite->placed(rewrite->twinText);
    at = rewrite->insertAt;
  }
  variant.text += variant.original.substr(at);
}

/// It launches blocks of one thread, whatever the original launch has.
static bool hasSingleThreads(const KernelRewrite &rewrite) {
  auto large = [](const std::string &name) {
    return name.starts_with("block.") ? std::optional<int64_t>(64) : std::nullopt;
  };
  return llvm::any_of(rewrite.plan.steps, [&](const LaunchStep &step) {
    return llvm::all_of(step.block, [&](const IntExpr &extent) { return extent.evaluate(large) == 1; });
  });
}

SearchState KernelSpace::makeState(std::shared_ptr<TreeVariant> variant, const LegalActions *before,
                                   const std::string &changed) const {
  SearchState state;
  for (const auto &[name, kernel] : variant->kernels) {
    if (before && name != changed) {
      state.legal.shareFrom(*before, name);
      continue;
    }
    auto own = std::make_shared<const KernelState>(kernel);
    for (const Transform *transform : kernel.tree ? allTransforms() : std::vector<const Transform *>())
      state.legal.defer(name, transform->name().str(), [own, transform] { return transform->sites(*own); });
  }
  state.isSketch = llvm::any_of(variant->rewrites, hasSingleThreads);
  state.key = variant->key();
  state.variant = std::move(variant);
  return state;
}

llvm::Expected<SearchState> KernelSpace::root() {
  auto variant = std::make_shared<TreeVariant>();
  variant->path = path;
  variant->original = variant->text = text;
  variant->kernels = kernels;
  return makeState(variant);
}

/// That the shared arrays of a new kernel and what the launch asks for fit into a block together. Where the program
/// raises a kernel's limit, the dispatcher asks CUDA itself.
void KernelSpace::requireRoom(KernelState &state) const {
  static constexpr llvm::StringLiteral why = "the kernel's and the launch's own shared memory fit";
  if (!state.tree || setsAttributes)
    return;
  std::erase_if(state.rewrite.conditions, [](const Condition &c) { return c.why == why; });
  int64_t bytes = sharedBytes(*state.tree);
  bool passes = llvm::any_of(state.rewrite.plan.steps, [](const LaunchStep &s) { return s.sharedBytes.str() != "0"; });
  if (passes && bytes > sharedBytes(*state.original))
    state.require("shared + " + std::to_string(bytes) + " <= " + std::to_string(state.hints.maxSharedBytes), why.str());
}

llvm::Expected<SearchState> KernelSpace::apply(const SearchState &state, const Action &action) {
  const Transform *transform = findTransform(action.transform);
  bool isText = action.transform == replaceBody && textRules.texts;
  if (!transform && !isText)
    return makeError("there is no transform '{0}'", action.transform);
  const auto &from = static_cast<const TreeVariant &>(*state.variant);
  // The kernel is the longest name that the site starts with.
  const std::string *kernel = nullptr;
  for (const auto &[name, value] : from.kernels) {
    llvm::StringRef rest = action.site;
    if (rest.consume_front(name) && (rest.empty() || rest[0] == '/' || rest[0] == ':') &&
        (!kernel || name.size() > kernel->size()))
      kernel = &name;
  }
  if (!kernel)
    return makeError("there is no kernel for the site '{0}'", action.site);
  const KernelState &before = from.kernels.at(*kernel);
  if (!isText && !before.tree)
    return notApplicable("the new text of {0} cannot be read as a tree", *kernel);
  auto next = isText ? replaceKernelBody(before, action)
                     : transform->apply(before, llvm::StringRef(action.site).drop_front(kernel->size()), action.params);
  if (!next)
    return next.takeError();
  if (!isText) {
    next->verbatim.clear();
    auto tree = next->tree->clone();
    normalize(*tree); // as it is read back
    next->tree = std::move(tree);
  }
  requireRoom(*next);
  if (checkRewrite && !isText) // the author of a text is told when it has run nowhere
    if (llvm::Error e = checkRewrite(next->rewrite))
      return std::move(e);
  auto variant = std::make_shared<TreeVariant>(from);
  variant->kernels.at(*kernel) = *next;
  variant->recipe.push_back(action);
  std::erase_if(variant->rewrites, [&](const KernelRewrite &r) { return r.original == *kernel; });
  variant->rewrites.push_back(next->rewrite);
  finish(*variant);
  return makeState(variant, &state.legal, *kernel);
}

llvm::Expected<SearchState> KernelSpace::applyAll(const Recipe &recipe) {
  auto state = root();
  if (!state)
    return state;
  for (const Action &action : recipe) {
    auto next = apply(*state, action);
    if (!next)
      return makeError("{0}: {1}", action.str(), llvm::toString(next.takeError()));
    state = std::move(next);
  }
  return state;
}
