//===- Dispatcher.cpp - what stands in place of a launch ------------------===//
#include "Texts.h"
#include "optiml/Core/KernelName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <set>

using namespace optiml;

std::string optiml::nameThere(const KernelRewrite &rewrite) {
  const std::string name = withoutNameless(rewrite.original);
  const std::string own = unqualified(name).str();
  bool hidden = llvm::any_of(rewrite.originalParameters, [&](const Parameter &p) { return p.name == own; });
  return rewrite.besideOriginal && !hidden ? own : "::" + name;
}

/// What a dispatcher calls its own values, out of the way of everything that it names: the kernels, their parameters
/// and types.
static std::map<std::string, std::string> launchNames(const KernelRewrite &rewrite) {
  std::set<std::string> taken;
  std::string named = declarations(rewrite.originalParameters) + " " + rewrite.original + " ", word;
  for (const LaunchStep &step : rewrite.plan.steps)
    named += step.kernel + " ";
  for (const ScratchBuffer &scratch : rewrite.plan.scratch)
    named += scratch.elementType + " " + scratch.name + " ";
  for (char c : named) {
    if (llvm::isAlnum(c) || c == '_') {
      word += c;
      continue;
    }
    taken.insert(word);
    word.clear();
  }
  std::map<std::string, std::string> result;
  for (const char *name : {"grid", "block", "shared", "stream", "path", "room", "kernel", "fits"}) {
    std::string use = name;
    while (taken.count(use))
      use = "launch_" + use;
    result[name] = use;
  }
  return result;
}

std::string optiml::dispatcherSignature(const KernelRewrite &rewrite, const std::string &name) {
  std::map<std::string, std::string> names = launchNames(rewrite);
  return "static void " + name + "(dim3 " + names["grid"] + ", dim3 " + names["block"] + ", size_t " + names["shared"] +
         ", cudaStream_t " + names["stream"] +
         (rewrite.originalParameters.empty() ? "" : ",\n    " + declarations(rewrite.originalParameters)) + ")";
}

/// "a, n"
static std::string argumentList(const KernelRewrite &rewrite) {
  std::string text;
  for (const Parameter &parameter : rewrite.originalParameters)
    text += (text.empty() ? "" : ", ") + parameter.name;
  return text;
}

namespace {
/// The statements of a function that launches what a plan says.
struct LaunchParts {
  std::map<std::string, std::string> names; ///< of its own values
  std::vector<std::pair<std::string, std::string>> tests;
  std::string allocations, room, steps, frees; ///< room: whether the allocations succeeded; empty: there are none
};
} // namespace

/// What an expression over the launch calls the launch's values.
static std::string renamed(const std::map<std::string, std::string> &names, const std::string &n) {
  size_t dot = n.find('.');
  auto it = names.find(n.substr(0, dot));
  if (it != names.end() && (dot != std::string::npos || n == "shared"))
    return it->second + (dot == std::string::npos ? "" : n.substr(dot));
  return n;
}

static LaunchParts launchParts(const KernelRewrite &rewrite) {
  LaunchParts parts;
  parts.names = launchNames(rewrite);
  std::map<std::string, std::string> &names = parts.names;
  auto rename = [&](const std::string &n) { return renamed(names, n); };
  for (const Condition &condition : rewrite.conditions)
    parts.tests.emplace_back(condition.expression.cxx(rename), condition.why);
  for (const ScratchBuffer &scratch : rewrite.plan.scratch) {
    std::string bytes = "(" + scratch.elements.cxx(rename) + ") * sizeof(" + scratch.elementType + ")";
    parts.allocations += "    " + scratch.elementType + " *" + scratch.name + " = nullptr;\n";
    parts.room += (parts.room.empty() ? "" : "\n        && ") + ("cudaMallocAsync((void **)&" + scratch.name) + ", " +
                  bytes + ", " + names["stream"] + ") == cudaSuccess";
    if (scratch.zeroed)
      parts.steps += "    cudaMemsetAsync(" + scratch.name + ", 0, " + bytes + ", " + names["stream"] + ");\n";
    parts.frees +=
        "    if (" + scratch.name + ")\n      cudaFreeAsync(" + scratch.name + ", " + names["stream"] + ");\n";
  }
  for (const LaunchStep &step : rewrite.plan.steps) {
    auto dim = [&](const std::array<IntExpr, 3> &e, const char *own) {
      bool same = e[0].str() == std::string(own) + ".x" && e[1].str() == std::string(own) + ".y" &&
                  e[2].str() == std::string(own) + ".z";
      if (same)
        return names[own];
      return "dim3(unsigned(" + e[0].cxx(rename) + "), unsigned(" + e[1].cxx(rename) + "), unsigned(" +
             e[2].cxx(rename) + "))";
    };
    parts.steps += "    " + step.kernel + "<<<" + dim(step.grid, "grid") + ",\n        " + dim(step.block, "block") +
                   ", " + step.sharedBytes.cxx(rename) + ", " + names["stream"] + ">>>(" +
                   llvm::join(step.arguments, ", ") + ");\n";
  }
  return parts;
}

/// The original, launched as it was.
static std::string originalLaunch(const KernelRewrite &rewrite, std::map<std::string, std::string> names) {
  return nameThere(rewrite) + "<<<" + names["grid"] + ", " + names["block"] + ", " + names["shared"] + ", " +
         names["stream"] + ">>>(" + argumentList(rewrite) + ");\n";
}

std::string optiml::dispatcherText(const KernelRewrite &rewrite, const std::string &name, const std::string &helper,
                                   const std::string &summary, bool followsAttributes) {
  LaunchParts parts = launchParts(rewrite);
  std::map<std::string, std::string> &names = parts.names;
  std::string text;
  text += "// OptiML: launches " + rewrite.twin + " in place of " + rewrite.original + " where that is right" +
          (summary.empty() ? "" : " (" + summary + ")") + ".\n";
  text += dispatcherSignature(rewrite, name) + " {\n";
  const std::string &path = names["path"];
  std::string shown; // of template arguments, "'\"'" may be one
  llvm::raw_string_ostream(shown).write_escaped(rewrite.original);
  text += "  static " + helper + " " + path + "(\"" + shown + "\");\n";
  std::string most = rewrite.originalMaxThreads < 1024 ? ", " + std::to_string(rewrite.originalMaxThreads) : "";
  text += "  if (" + path + ".enabled(" + names["grid"] + ", " + names["block"] + most + ")\n";
  for (const auto &[test, why] : parts.tests) // one a line, each with its reason
    text += "      && (" + test + ") // " + why + "\n";
  if (rewrite.arch && !rewrite.plan.steps.empty())
    text += "      && " + path + ".compiledFor((const void *)" + rewrite.plan.steps[0].kernel + ", " +
            std::to_string(rewrite.arch) + ") // found on this architecture\n";
  if (followsAttributes)
    for (const LaunchStep &step : rewrite.plan.steps)
      text += "      && " + helper + "::follow(" + step.kernel + ", " + nameThere(rewrite) + ", " + names["shared"] +
              ", " + step.sharedBytes.cxx([&](const std::string &n) { return renamed(names, n); }) +
              ") // its attributes are the original's\n";
  text += "  ) {\n";
  if (parts.room.empty()) {
    text += "    " + path + ".count(true);\n" + parts.steps + "    return;\n";
  } else { // without memory for what lies between two steps the original runs
    const std::string &flag = names["room"];
    text += parts.allocations + "    bool " + flag + " = " + parts.room + ";\n    if (" + flag + ") {\n      " + path +
            ".count(true);\n" + parts.steps + "    }\n" + parts.frees + "    if (" + flag +
            ")\n      return;\n    (void)cudaGetLastError();\n";
  }
  return text + "  }\n  " + path + ".count(false);\n  " + originalLaunch(rewrite, names) + "}\n";
}

std::string optiml::plainLauncherText(const KernelRewrite &rewrite, const std::string &name, bool accepted) {
  LaunchParts parts = launchParts(rewrite);
  std::map<std::string, std::string> &names = parts.names;
  std::string text = dispatcherSignature(rewrite, name) + " {\n";
  if (!accepted && !parts.tests.empty()) {
    text += std::string("#ifndef ") + acceptMacro + "\n  const bool " + names["fits"] + " =\n";
    for (size_t i = 0; i < parts.tests.size(); ++i)
      text += "      (" + parts.tests[i].first + ")" + (i + 1 < parts.tests.size() ? " && // " : "; // ") +
              parts.tests[i].second + "\n";
    text += "  if (!" + names["fits"] + ") {\n    " + originalLaunch(rewrite, names) + "    return;\n  }\n#endif\n";
  }
  if (parts.room.empty()) {
    std::string steps;
    for (llvm::StringRef rest = parts.steps; !rest.empty(); rest = rest.split('\n').second)
      steps += rest.split('\n').first.drop_front(2).str() + "\n";
    return text + steps + "}\n";
  }
  const std::string &flag = names["room"];
  return text + parts.allocations + "    const bool " + flag + " = " + parts.room + ";\n    if (" + flag + ") {\n" +
         parts.steps + "    }\n" + parts.frees + "    if (!" + flag + ") {\n      (void)cudaGetLastError();\n      " +
         originalLaunch(rewrite, names) + "    }\n}\n";
}

/// The class of a chooser, by the type of kernel.
static std::string choiceName(const std::string &chooser) { return chooser + "_for"; }

std::string optiml::chooserText(const std::string &name) {
  return "\n\n// OptiML: launches within templates choose by the instantiation of the kernel.\n"
         "namespace {\ntemplate <typename Kernel> struct " +
         choiceName(name) + ";\ntemplate <typename... Parameters> struct " + choiceName(name) +
         "<void (*)(Parameters...)> {\n"
         "  void (*kernel)(Parameters...);\n"
         "  void operator()(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, Parameters... arguments) const "
         "{\n    kernel<<<grid, block, shared, stream>>>(arguments...);\n  }\n};\n"
         "template <typename Kernel> " +
         choiceName(name) + "<Kernel> " + name + "(Kernel kernel) { return {kernel}; }\n} // namespace\n";
}

std::string optiml::choiceText(const std::string &name, llvm::ArrayRef<Dispatcher> dispatchers) {
  const KernelRewrite &first = *dispatchers.front().first;
  std::map<std::string, std::string> names = launchNames(first);
  std::string launch = names["grid"] + ", " + names["block"] + ", " + names["shared"] + ", " + names["stream"],
              kernel = names["kernel"], arguments = argumentList(first),
              parameters = declarations(first.originalParameters);
  std::string text = "\nnamespace {\ntemplate <> struct " + choiceName(name) + "<void (*)(" + parameters +
                     ")> {\n  void (*" + kernel + ")(" + parameters + ");\n  void operator()(dim3 " + names["grid"] +
                     ", dim3 " + names["block"] + ", size_t " + names["shared"] + ", cudaStream_t " + names["stream"] +
                     (parameters.empty() ? "" : ", " + parameters) + ") const {\n";
  for (const auto &[rewrite, dispatcher] : dispatchers)
    text += "    if (" + kernel + " == " + nameThere(*rewrite) + ")\n      return " + dispatcher + "(" + launch +
            (arguments.empty() ? "" : ", " + arguments) + ");\n";
  return text + "    " + kernel + "<<<" + launch + ">>>(" + arguments + ");\n  }\n};\n} // namespace\n";
}
