//===- Emit.cpp - the optimized program as CUDA source --------------------===//
#include "optiml/Driver/Emit.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace optiml;

namespace {
/// Text to insert or to put in place of a range of the original.
struct Edit {
  unsigned begin, end;
  std::string text;
};

constexpr llvm::StringLiteral lineMark = " // OptiML";

class Emitter {
public:
  Emitter(const Variant &variant, const Program &host, const std::string &fileName,
          const std::map<std::string, std::string> &summaries)
      : variant(variant), host(host), fileName(fileName), summaries(summaries) {}
  llvm::Expected<EmittedProgram> run();

private:
  const Variant &variant;
  const Program &host;
  const std::string &fileName;
  const std::map<std::string, std::string> &summaries;
  std::vector<Edit> edits;
  EmittedProgram result;
  std::string helper;

  std::string freshIdentifier(const std::string &wish) const {
    std::string name = wish;
    for (unsigned i = 2; variant.original.find(name) != std::string::npos; ++i)
      name = wish + std::to_string(i);
    return name;
  }
  static unsigned parameterCount(const KernelRewrite &rewrite) {
    return rewrite.plan.steps.empty() ? 0 : unsigned(parameterNames(rewrite).size());
  }
  static std::vector<std::string> parameterNames(const KernelRewrite &rewrite);
  std::string signature(const KernelRewrite &rewrite, const std::string &name, const std::map<std::string, std::string> &names) const;
  std::string dispatcher(const KernelRewrite &rewrite, const std::string &name);
  std::string support() const;
  std::string lineDirective(unsigned offset) const;
  unsigned afterIncludes() const;
  std::string recipeOf(const KernelRewrite &rewrite) const;
  static std::map<std::string, std::string> launchNames(const KernelRewrite &rewrite);
};
} // namespace

/// Names in "const float *a, int n": the last identifier of each item outside of brackets.
std::vector<std::string> Emitter::parameterNames(const KernelRewrite &rewrite) {
  std::vector<std::string> names;
  int depth = 0;
  std::string item;
  auto finish = [&] {
    llvm::StringRef text = llvm::StringRef(item).rtrim();
    size_t start = text.size();
    while (start > 0 && (llvm::isAlnum(text[start - 1]) || text[start - 1] == '_'))
      --start;
    if (!text.empty())
      names.push_back(text.substr(start).str());
    item.clear();
  };
  for (char c : rewrite.originalParameters) {
    depth += c == '<' || c == '(' || c == '[' ? 1 : c == '>' || c == ')' || c == ']' ? -1 : 0;
    if (c == ',' && depth == 0)
      finish();
    else
      item += c;
  }
  finish();
  return names;
}

/// What the dispatcher calls the launch's own values, out of the way of the kernel's parameters.
std::map<std::string, std::string> Emitter::launchNames(const KernelRewrite &rewrite) {
  std::map<std::string, std::string> result;
  std::vector<std::string> taken = parameterNames(rewrite);
  for (const char *name : {"grid", "block", "shared", "stream"}) {
    std::string use = name;
    while (llvm::is_contained(taken, use))
      use = "launch_" + use;
    result[name] = use;
  }
  return result;
}

std::string Emitter::signature(const KernelRewrite &rewrite, const std::string &name,
                               const std::map<std::string, std::string> &names) const {
  return "static void " + name + "(dim3 " + names.at("grid") + ", dim3 " + names.at("block") + ", size_t " +
         names.at("shared") + ", cudaStream_t " + names.at("stream") +
         (rewrite.originalParameters.empty() ? "" : ",\n    " + rewrite.originalParameters) + ")";
}

/// "ns::scale<float>" -> "scale<float>": how it is called beside its definition.
static std::string unqualified(const std::string &name) {
  size_t scope = 0;
  int depth = 0;
  for (size_t i = 0; i + 1 < name.size(); ++i) {
    depth += name[i] == '<' ? 1 : name[i] == '>' ? -1 : 0;
    if (depth == 0 && name[i] == ':' && name[i + 1] == ':')
      scope = i + 2;
  }
  return name.substr(scope);
}

std::string Emitter::dispatcher(const KernelRewrite &rewrite, const std::string &name) {
  std::map<std::string, std::string> names = launchNames(rewrite);
  auto rename = [&](const std::string &n) -> std::string {
    size_t dot = n.find('.');
    auto it = names.find(n.substr(0, dot));
    if (it != names.end() && (dot != std::string::npos || n == "shared"))
      return it->second + (dot == std::string::npos ? "" : n.substr(dot));
    return n;
  };
  std::string arguments, steps, frees, tests;
  for (const std::string &parameter : parameterNames(rewrite))
    arguments += (arguments.empty() ? "" : ", ") + parameter;
  // One condition a line, each with its reason.
  for (const Condition &condition : rewrite.conditions)
    tests += "      && (" + condition.expression.cxx(rename) + ") // " + condition.why + "\n";
  for (const ScratchBuffer &scratch : rewrite.plan.scratch) {
    std::string bytes = "(" + scratch.elements.cxx(rename) + ") * sizeof(" + scratch.elementType + ")";
    steps += "    " + scratch.elementType + " *" + scratch.name + " = nullptr;\n    cudaMallocAsync((void **)&" +
             scratch.name + ", " + bytes + ", " + names["stream"] + ");\n";
    if (scratch.zeroed)
      steps += "    cudaMemsetAsync(" + scratch.name + ", 0, " + bytes + ", " + names["stream"] + ");\n";
    frees += "    cudaFreeAsync(" + scratch.name + ", " + names["stream"] + ");\n";
  }
  for (const LaunchStep &step : rewrite.plan.steps) {
    auto dim = [&](const std::array<IntExpr, 3> &e, const char *own) {
      bool same = e[0].str() == std::string(own) + ".x" && e[1].str() == std::string(own) + ".y" && e[2].str() == std::string(own) + ".z";
      if (same)
        return names[own];
      return "dim3(unsigned(" + e[0].cxx(rename) + "), unsigned(" + e[1].cxx(rename) + "), unsigned(" + e[2].cxx(rename) + "))";
    };
    std::string list;
    for (const std::string &argument : step.arguments)
      list += (list.empty() ? "" : ", ") + argument;
    steps += "    " + step.kernel + "<<<" + dim(step.grid, "grid") + ",\n        " + dim(step.block, "block") + ", " +
             step.sharedBytes.cxx(rename) + ", " + names["stream"] + ">>>(" + list + ");\n";
  }
  auto summary = summaries.find(rewrite.original);
  std::string text;
  text += "// OptiML: launches " + rewrite.twin + " in place of " + rewrite.original + " where that is right" +
          (summary == summaries.end() ? "" : " (" + summary->second + ")") + ".\n";
  text += signature(rewrite, name, names) + " {\n";
  text += "  static " + helper + " path(\"" + rewrite.original + "\");\n";
  text += "  if (path.enabled()\n" + tests;
  text += "  ) {\n    path.count(true);\n" + steps + frees + "    return;\n  }\n  path.count(false);\n";
  // The original, named as at global or namespace scope beside its definition.
  text += "  " + unqualified(rewrite.original) + "<<<" + names["grid"] + ", " + names["block"] + ", " + names["shared"] + ", " + names["stream"] +
          ">>>(" + arguments + ");\n}\n";
  return text;
}

/// Where the support class goes: after the last #include of the file's head, outside of conditional sections.
unsigned Emitter::afterIncludes() const {
  llvm::StringRef text = variant.original;
  unsigned point = 0, depth = 0, offset = 0;
  bool comment = false;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    unsigned next = offset + unsigned(line.size()) + 1;
    llvm::StringRef trimmed = line.trim();
    if (comment) {
      comment = !trimmed.contains("*/");
    } else if (trimmed.starts_with("/*")) {
      comment = !trimmed.contains("*/");
    } else if (trimmed.consume_front("#")) {
      trimmed = trimmed.ltrim();
      if (trimmed.starts_with("if"))
        ++depth;
      else if (trimmed.starts_with("endif"))
        depth -= depth > 0;
      else if (trimmed.starts_with("include") && depth == 0)
        point = next;
    } else if (!trimmed.empty() && !trimmed.starts_with("//")) {
      break; // the first declaration
    }
    text = rest;
    offset = next;
  }
  return std::min<unsigned>(point, unsigned(variant.original.size()));
}

std::string Emitter::support() const {
  return R"(
// Written by OptiML: whether an optimized kernel may run, and how often it did.
// OPTIML_DISABLE=<kernel>|all restores the original; OPTIML_TRACE=1 prints the counts at exit.
#include <cstdio>
#include <cstdlib>
#include <cstring>
namespace {
class )" + helper + R"( {
public:
  explicit )" + helper + R"((const char *kernel) : kernel(kernel) {
    const char *disabled = std::getenv("OPTIML_DISABLE");
    allowed = !disabled || (std::strcmp(disabled, "all") != 0 && std::strcmp(disabled, kernel) != 0);
    const char *trace = std::getenv("OPTIML_TRACE");
    tracing = trace && *trace && std::strcmp(trace, "0") != 0;
  }
  ~)" + helper + R"(() {
    if (tracing)
      std::fprintf(stderr, "OptiML: %s: %llu optimized, %llu original launches\n", kernel, optimized, original);
  }
  bool enabled() const { return allowed; }
  void count(bool fast) { ++(fast ? optimized : original); }

private:
  const char *kernel;
  bool allowed, tracing;
  unsigned long long optimized = 0, original = 0;
};
} // namespace
)";
}

/// What follows is the user's own text from `offset` on, as compilers and __LINE__ shall call it.
std::string Emitter::lineDirective(unsigned offset) const {
  std::string quoted;
  for (char c : fileName)
    quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  auto line = 1 + llvm::StringRef(variant.original).take_front(offset).count('\n');
  return "#line " + std::to_string(line) + " \"" + quoted + "\"" + lineMark.str() + "\n";
}

std::string optiml::withoutLineDirectives(const std::string &emitted) {
  std::string result;
  llvm::StringRef rest = emitted;
  while (!rest.empty()) {
    auto [line, next] = rest.split('\n');
    if (!line.starts_with("#line ") || !line.ends_with(lineMark))
      result += rest.take_front(rest.size() - next.size()).str();
    rest = next;
  }
  return result;
}

llvm::Expected<EmittedProgram> Emitter::run() {
  helper = freshIdentifier("OptimlPath");
  const std::string &text = variant.original;
  std::string file = variant.path;
  for (const KernelRewrite &rewrite : variant.rewrites) {
    std::string name = freshIdentifier(rewrite.twin + "_launch");
    unsigned count = parameterCount(rewrite);
    unsigned firstSite = unsigned(text.size());
    unsigned sites = 0;
    for (const LaunchSite &site : host.launches()) {
      if (site.symbol != rewrite.originalSymbol && !(site.symbol.empty() && site.kernel == rewrite.original))
        continue;
      auto keep = [&](const std::string &why) {
        result.remarks.push_back(llvm::formatv("{0}:{1}: this launch of {2} keeps the original kernel: {3}", file,
                                               site.line, rewrite.original, why));
      };
      if (site.inMacro) {
        keep("it is written by a macro");
        continue;
      }
      if (site.inTemplate) {
        keep("it stands in a template");
        continue;
      }
      if (site.arguments.size() != count) {
        keep("it relies on default arguments");
        continue;
      }
      // ns::kernel<…><<<…>>> calls ns::dispatcher
      std::string qualifier = site.callee.substr(0, site.callee.size() - unqualified(site.callee).size());
      std::string call = qualifier + name + "(" + site.config[0] + ", " + site.config[1] + ", " +
                         (site.config.size() > 2 ? site.config[2] : "0") + ", " +
                         (site.config.size() > 3 ? site.config[3] : "0");
      for (const std::string &argument : site.arguments)
        call += ", " + argument;
      edits.push_back({site.begin, site.end, call + ")"});
      firstSite = std::min(firstSite, site.topLevelBegin);
      ++sites;
    }
    if (!sites)
      continue;
    result.dispatched += sites;
    if (firstSite < rewrite.insertAt)
      edits.push_back({firstSite, firstSite, signature(rewrite, name, launchNames(rewrite)) + ";\n\n"});
    edits.push_back({rewrite.insertAt, rewrite.insertAt,
                     "\n\n// OptiML: " + rewrite.original + ", rewritten by " + recipeOf(rewrite) + "\n" +
                         rewrite.twinText + "\n" + dispatcher(rewrite, name)});
  }
  if (result.dispatched) {
    unsigned head = afterIncludes();
    edits.push_back({head, head, support()});
  }
  std::stable_sort(edits.begin(), edits.end(), [](const Edit &a, const Edit &b) { return a.begin < b.begin; });
  unsigned at = 0;
  result.text = lineDirective(0);
  for (const Edit &edit : edits) {
    if (edit.begin < at)
      return makeError("{0}: two launches overlap in the source and cannot both be rewritten", file);
    result.text += text.substr(at, edit.begin - at) + edit.text;
    at = edit.end;
    if (edit.begin == edit.end)
      result.text += (edit.text.ends_with("\n") ? "" : "\n") + lineDirective(at);
  }
  result.text += text.substr(at);
  return std::move(result);
}

/// The actions of the recipe that concern this kernel.
std::string Emitter::recipeOf(const KernelRewrite &rewrite) const {
  std::string text;
  for (const Action &action : variant.recipe)
    if (siteKernel(action.site) == rewrite.original)
      text += (text.empty() ? "" : "; ") + action.str();
  return text;
}

llvm::Expected<EmittedProgram> optiml::emitProgram(const Variant &variant, const Program &host,
                                                   const std::string &fileName,
                                                   const std::map<std::string, std::string> &summaries) {
  return Emitter(variant, host, fileName, summaries).run();
}
