//===- Dispatcher.cpp - what stands in place of a launch ------------------===//
#include "Texts.h"
#include "optiml/Core/KernelName.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace optiml;

std::string optiml::nameThere(const KernelRewrite &rewrite) {
  std::string own = unqualified(rewrite.original).str();
  bool hidden = llvm::any_of(rewrite.originalParameters, [&](const Parameter &p) { return p.name == own; });
  if (rewrite.besideOriginal && !hidden)
    return own;
  std::string name = "::" + rewrite.original;
  static const std::string anonymous = "(anonymous namespace)::";
  for (size_t at; (at = name.find(anonymous)) != std::string::npos;)
    name.erase(at, anonymous.size());
  return name;
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
  for (const char *name : {"grid", "block", "shared", "stream", "path", "room", "kernel"}) {
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

std::string optiml::dispatcherText(const KernelRewrite &rewrite, const std::string &name, const std::string &helper,
                                   const std::string &summary, bool followsAttributes) {
  std::map<std::string, std::string> names = launchNames(rewrite);
  auto rename = [&](const std::string &n) -> std::string {
    size_t dot = n.find('.');
    auto it = names.find(n.substr(0, dot));
    if (it != names.end() && (dot != std::string::npos || n == "shared"))
      return it->second + (dot == std::string::npos ? "" : n.substr(dot));
    return n;
  };
  std::string allocations, room, steps, frees, tests;
  // One condition a line, each with its reason.
  for (const Condition &condition : rewrite.conditions)
    tests += "      && (" + condition.expression.cxx(rename) + ") // " + condition.why + "\n";
  for (const ScratchBuffer &scratch : rewrite.plan.scratch) {
    std::string bytes = "(" + scratch.elements.cxx(rename) + ") * sizeof(" + scratch.elementType + ")";
    allocations += "    " + scratch.elementType + " *" + scratch.name + " = nullptr;\n";
    room += (room.empty() ? "" : "\n        && ") + ("cudaMallocAsync((void **)&" + scratch.name) + ", " + bytes +
            ", " + names["stream"] + ") == cudaSuccess";
    if (scratch.zeroed)
      steps += "    cudaMemsetAsync(" + scratch.name + ", 0, " + bytes + ", " + names["stream"] + ");\n";
    frees += "    if (" + scratch.name + ")\n      cudaFreeAsync(" + scratch.name + ", " + names["stream"] + ");\n";
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
    steps += "    " + step.kernel + "<<<" + dim(step.grid, "grid") + ",\n        " + dim(step.block, "block") + ", " +
             step.sharedBytes.cxx(rename) + ", " + names["stream"] + ">>>(" + llvm::join(step.arguments, ", ") + ");\n";
  }
  std::string text;
  text += "// OptiML: launches " + rewrite.twin + " in place of " + rewrite.original + " where that is right" +
          (summary.empty() ? "" : " (" + summary + ")") + ".\n";
  text += dispatcherSignature(rewrite, name) + " {\n";
  const std::string &path = names["path"];
  text += "  static " + helper + " " + path + "(\"" + rewrite.original + "\");\n";
  std::string most = rewrite.originalMaxThreads < 1024 ? ", " + std::to_string(rewrite.originalMaxThreads) : "";
  text += "  if (" + path + ".enabled(" + names["grid"] + ", " + names["block"] + most + ")\n" + tests;
  if (rewrite.arch && !rewrite.plan.steps.empty())
    text += "      && " + path + ".compiledFor((const void *)" + rewrite.plan.steps[0].kernel + ", " +
            std::to_string(rewrite.arch) + ") // found on this architecture\n";
  if (followsAttributes)
    for (const LaunchStep &step : rewrite.plan.steps)
      text += "      && " + helper + "::follow(" + step.kernel + ", " + nameThere(rewrite) + ", " + names["shared"] +
              ", " + step.sharedBytes.cxx(rename) + ") // its attributes are the original's\n";
  text += "  ) {\n";
  if (room.empty()) {
    text += "    " + path + ".count(true);\n" + steps + "    return;\n";
  } else { // without memory for what lies between two steps the original runs
    const std::string &flag = names["room"];
    text += allocations + "    bool " + flag + " = " + room + ";\n    if (" + flag + ") {\n      " + path +
            ".count(true);\n" + steps + "    }\n" + frees + "    if (" + flag +
            ")\n      return;\n    (void)cudaGetLastError();\n";
  }
  text += "  }\n  " + path + ".count(false);\n";
  text += "  " + nameThere(rewrite) + "<<<" + names["grid"] + ", " + names["block"] + ", " + names["shared"] + ", " +
          names["stream"] + ">>>(" + argumentList(rewrite) + ");\n}\n";
  return text;
}

std::string optiml::chooserText(const std::string &name, llvm::ArrayRef<Dispatcher> dispatchers) {
  std::string text =
      "\n\n// OptiML: launches within templates choose by the instantiation of the kernel.\n"
      "namespace {\ntemplate <typename... Parameters> struct " +
      name +
      "_any {\n"
      "  void (*kernel)(Parameters...);\n"
      "  void operator()(dim3 grid, dim3 block, size_t shared, cudaStream_t stream, Parameters... arguments) const {\n"
      "    kernel<<<grid, block, shared, stream>>>(arguments...);\n  }\n};\n"
      "template <typename... Parameters> " +
      name + "_any<Parameters...> " + name + "(void (*kernel)(Parameters...)) { return {kernel}; }\n";
  std::vector<std::vector<Parameter>> done;
  for (const auto &[rewrite, unused] : dispatchers) {
    if (llvm::is_contained(done, rewrite->originalParameters))
      continue;
    done.push_back(rewrite->originalParameters);
    std::map<std::string, std::string> names = launchNames(*rewrite);
    std::string type = name + "_" + std::to_string(done.size()), kernel = names["kernel"];
    std::string launch = names["grid"] + ", " + names["block"] + ", " + names["shared"] + ", " + names["stream"],
                arguments = argumentList(*rewrite), parameters = declarations(rewrite->originalParameters);
    std::string pointer = "void (*" + kernel + ")(" + parameters + ")";
    text += "struct " + type + " {\n  " + pointer + ";\n  void operator()(dim3 " + names["grid"] + ", dim3 " +
            names["block"] + ", size_t " + names["shared"] + ", cudaStream_t " + names["stream"] +
            (parameters.empty() ? "" : ", " + parameters) + ") const {\n";
    for (const auto &[other, dispatcher] : dispatchers)
      if (other->originalParameters == rewrite->originalParameters)
        text += "    if (" + kernel + " == " + nameThere(*other) + ")\n      return " + dispatcher + "(" + launch +
                (arguments.empty() ? "" : ", " + arguments) + ");\n";
    text += "    " + kernel + "<<<" + launch + ">>>(" + arguments + ");\n  }\n};\n";
    text += "inline " + type + " " + name + "(" + pointer + ") { return {" + kernel + "}; }\n";
  }
  return text + "} // namespace\n";
}
