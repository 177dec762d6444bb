//===- FuseText.cpp - CUDA for fused launches -----------------------------===//
#include "Texts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

using namespace optiml;

static std::string launchOriginal(const FuseTextNames::Part &part, const std::string &object) {
  std::string list;
  for (const Parameter &parameter : part.parameters)
    list += (list.empty() ? "" : ", ") + object + parameter.name;
  return part.callee + "<<<" + object + "launchGrid, " + object + "launchBlock, " + object + "launchShared, " + object +
         "launchStream>>>(" + list + ");\n";
}

std::string FuseTextNames::kernels() const {
  std::string list;
  for (size_t i = 0; i < parts.size(); ++i)
    list += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i].kernel;
  return list;
}

std::string optiml::sameValue(const Parameter &parameter, const std::string &a, const std::string &b) {
  auto bytes = [](const std::string &x, const std::string &y) {
    return "std::memcmp(&" + x + ", &" + y + ", sizeof(" + y + ")) == 0";
  };
  if (parameter.kind == Parameter::Kind::Float ||
      (parameter.kind == Parameter::Kind::Other && parameter.members.empty()))
    return bytes(a, b);
  if (parameter.members.empty())
    return a + " == " + b;
  std::string all; // padding is nobody's
  for (const std::string &member : parameter.members)
    all += (all.empty() ? "(" : " && ") + bytes(a + "." + member, b + "." + member);
  return all + ")";
}

std::string optiml::launchClass(const FuseTextNames &names, size_t i, bool waits) {
  const FuseTextNames::Part &part = names.parts[i];
  std::string type = names.launchType(i);
  std::string text = "\nstruct " + type + " { // a launch of " + part.kernel + " that has been put off\n";
  text += "  dim3 launchGrid, launchBlock;\n  size_t launchShared;\n  cudaStream_t launchStream;\n";
  for (const Parameter &parameter : part.parameters)
    text += "  " + parameter.declaration + ";\n";
  if (waits)
    text += "  bool launchWaiting = " + names.helper + "::valid(launchGrid, launchBlock, " +
            std::to_string(part.maxThreads) + ");\n";
  text += "  " + type + "(dim3 launchGrid, dim3 launchBlock, size_t launchShared, cudaStream_t launchStream" +
          (part.parameters.empty() ? "" : ",\n      " + declarations(part.parameters)) + ")\n";
  text += "      : launchGrid(launchGrid), launchBlock(launchBlock), launchShared(launchShared), "
          "launchStream(launchStream)";
  for (const Parameter &parameter : part.parameters)
    text += ", " + parameter.name + "(" + parameter.name + ")";
  // An error is told where the launch stands.
  text += waits ? " {\n    if (!launchWaiting)\n      " + launchOriginal(part, "") + "  }\n" : " {}\n";
  return text + "  static void run(const " + type + " &launch) {\n    " +
         (waits ? "if (launch.launchWaiting)\n      " : "") + launchOriginal(part, "launch.") + "  }\n};\n";
}

/// "launch2"
static std::string object(size_t part) { return "launch" + std::to_string(part); }

/// The part's argument, or, one further, how many blocks it has.
static std::string argumentOf(const FuseTextNames::Part &part, const std::string &launch, size_t number) {
  return number < part.parameters.size() ? launch + "." + part.parameters[number].name
                                         : "int(" + launch + ".launchGrid.x)";
}

std::string optiml::fuseText(const FusedKernel &fused, const FuseTextNames &names) {
  std::string parameters, tests, arguments, originals;
  for (size_t i = 0; i < names.parts.size(); ++i) {
    parameters += (i ? ", const " : "const ") + names.launchType(i) + " &" + object(i);
    originals += "  " + names.launchType(i) + "::run(" + object(i) + ");\n";
  }
  const bool alike = fused.launches.empty();
  const std::string base = object(fused.geometry);
  for (size_t i = 0; i < names.parts.size(); ++i) {
    tests += "      && " + object(i) + ".launchShared == 0" +
             (i + 1 < names.parts.size() ? " && " + object(i) + ".launchWaiting" : "");
    if (i) {
      for (const char *extent : {"Grid", "Block"})
        for (const char *axis : {"x", "y", "z"})
          if (alike)
            tests += (*axis == 'x' ? "\n      && " : " && ") + object(0) + ".launch" + extent + "." + axis +
                     " == " + object(i) + ".launch" + extent + "." + axis;
      tests += "\n      && " + object(0) + ".launchStream == " + object(i) + ".launchStream";
    }
    tests += !i ? "\n" : alike ? " // launched alike\n" : " // in one stream\n";
  }
  // Where each of the fused kernel's parameters comes from.
  auto member = [&](size_t i, size_t j) { return argumentOf(names.parts[i], object(i), j); };
  std::map<std::string, std::string> sources;
  for (const auto &[name, from] : fused.sources)
    sources[name] = member(from.first, from.second);
  auto renameAt = [&](const std::string &launch, const std::string &name) -> std::string {
    if (auto it = sources.find(name); it != sources.end())
      return it->second;
    llvm::StringRef text = name;
    if (text.consume_front("grid."))
      return launch + ".launchGrid." + text.str();
    if (text.consume_front("block."))
      return launch + ".launchBlock." + text.str();
    auto [base, member] = text.split('.');
    if (auto it = sources.find(base.str()); it != sources.end())
      return it->second + "." + member.str();
    return name;
  };
  // Others that a parameter stands for must be equal.
  for (size_t i = 0; i < fused.names.size(); ++i)
    for (size_t j = 0; j < fused.names[i].size(); ++j) {
      const std::string source = renameAt(base, fused.names[i][j]);
      if (source == member(i, j))
        continue;
      auto param = llvm::find_if(fused.parameters, [&](const Parameter &p) { return p.name == fused.names[i][j]; });
      const bool isField = param == fused.parameters.end(); // a pointer in a record
      tests += "      && " + (isField ? member(i, j) + " == " + source : sameValue(*param, member(i, j), source)) +
               " // the same argument\n";
    }
  auto test = [&](const Condition &condition, const std::string &launch) {
    std::string text = "      && (" +
                       condition.expression.cxx([&](const std::string &name) { return renameAt(launch, name); }) +
                       ") // " + condition.why + "\n";
    if (tests.find(text) == std::string::npos)
      tests += text;
  };
  for (size_t i = 0; i < fused.launches.size(); ++i)
    for (const Condition &condition : fused.launches[i])
      test(condition, object(i));
  for (const Condition &condition : fused.conditions)
    test(condition, base);
  for (const Parameter &param : fused.parameters)
    arguments += (arguments.empty() ? "" : ", ") + sources.at(param.name);

  std::string text =
      "// OptiML: launches of " + names.kernels() + " that follow one another, as one kernel\n" + fused.text;
  for (size_t i = 0; i < names.parts.size(); ++i)
    text += launchClass(names, i, /*waits=*/i + 1 < names.parts.size());
  text += "\nstatic void " + names.launcher() + "(" + parameters + ") {\n";
  text += "  static " + names.helper + " launchPath(\"" + names.name + "\");\n  if (launchPath.enabled()\n" + tests +
          "  ) {\n";
  text += "    launchPath.count(true);\n    " + names.name + "<<<" + base + ".launchGrid, " + base +
          ".launchBlock, 0, " + base + ".launchStream>>>(" + arguments + ");\n    return;\n  }\n";
  return text + "  launchPath.count(false);\n" + originals + "}\n";
}
