//===- Entries.cpp - launches by address, and of other files' kernels -----===//
#include "Emitter.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Demangle/Demangle.h"

using namespace optiml;

std::string optiml::entryName(const std::string &symbol) {
  return std::string("optiml_launch") + (llvm::StringRef(symbol).starts_with("_") ? "" : "_") + symbol;
}

/// A kernel that several files define, as an inline one, has an entry in each of them: one is linked.
static constexpr llvm::StringLiteral linkage = "extern \"C\" __attribute__((weak, visibility(\"hidden\"))) ";

std::string optiml::entrySignature(const std::string &name, bool exported) {
  return (exported ? linkage.str() : "static ") + "cudaError_t " + name +
         "(const void *launch_kernel, dim3 launch_grid, dim3 launch_block,\n    void **launch_arguments, size_t "
         "launch_shared, cudaStream_t launch_stream)";
}

/// The declaration of a pointer to the parameter, without its name; empty where that cannot be told from the text.
static std::string pointerTo(const Parameter &parameter) {
  llvm::StringRef text = parameter.declaration;
  auto isWord = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (size_t at = text.rfind(parameter.name); at != llvm::StringRef::npos && !parameter.name.empty();
       at = at ? text.take_front(at + parameter.name.size() - 1).rfind(parameter.name) : llvm::StringRef::npos) {
    llvm::StringRef before = text.take_front(at), after = text.drop_front(at + parameter.name.size());
    if ((!before.empty() && isWord(before.back())) || (!after.empty() && isWord(after.front())))
      continue;
    if (after.ltrim().starts_with("["))
      return "";
    return (before + "*" + after).str();
  }
  return "";
}

std::string optiml::entryText(const KernelRewrite &rewrite, const std::string &name, const std::string &dispatcher,
                              bool exported) {
  std::string values;
  for (size_t i = 0; i < rewrite.originalParameters.size(); ++i) {
    std::string type = pointerTo(rewrite.originalParameters[i]);
    if (type.empty())
      return "";
    values += ",\n      *(" + type + ")launch_arguments[" + std::to_string(i) + "]";
  }
  return "\n// OptiML: " +
         std::string(exported ? "what launches of " + rewrite.original + " in other files call.\n"
                              : "launches " + rewrite.original + " by its address.\n") +
         entrySignature(name, exported) +
         " {\n  // An error before this launch is not its own.\n"
         "  if (launch_kernel != (const void *)static_cast<void (*)(" +
         declarations(rewrite.originalParameters) + ")>(" + nameThere(rewrite) +
         ") || cudaPeekAtLastError() != cudaSuccess)\n"
         "    return cudaLaunchKernel(launch_kernel, launch_grid, launch_block, launch_arguments, launch_shared, "
         "launch_stream);\n  " +
         dispatcher + "(launch_grid, launch_block, launch_shared, launch_stream" + values +
         ");\n  return cudaPeekAtLastError();\n}\n";
}

std::string optiml::farLaunchSupport(const std::string &name, const std::set<std::string> &symbols) {
  std::string declarations;
  for (const std::string &symbol : symbols)
    declarations += entrySignature(entryName(symbol), /*exported=*/true) + ";\n";
  return filledText("far.txt", {{"DECLARATIONS", declarations}, {"NAME", name}});
}

/// Declares what stands beside the new kernel before the first of its calls, where these come first: in the kernel's
/// namespace, if that is where the call stands, else at global scope.
void Emitter::declareBefore(llvm::ArrayRef<const LaunchSite *> calls, const KernelRewrite &rewrite,
                            const std::string &signature) {
  unsigned within = rewrite.insertAt, outside = rewrite.insertAt;
  for (const LaunchSite *site : calls) {
    const bool isWithin = site->topLevelBegin != site->outermostBegin && scopeOf(site->callee).empty();
    unsigned &first = isWithin ? within : outside;
    first = std::min(first, isWithin ? site->topLevelBegin : site->outermostBegin);
  }
  std::string open, close;
  llvm::SmallVector<llvm::StringRef> names;
  llvm::StringRef scope = rewrite.besideOriginal ? scopeOf(rewrite.original) : llvm::StringRef();
  scope.split(names, "::", -1, /*KeepEmpty=*/false);
  for (llvm::StringRef name : names) {
    open += "namespace " + (name.starts_with("(") ? "" : name.str() + " ") + "{\n";
    close += "}\n";
  }
  if (within < rewrite.insertAt)
    edits.push_back({within, within, shielded(signature + ";\n\n")});
  if (outside < rewrite.insertAt)
    edits.push_back({outside, outside, shielded(open + signature + ";\n" + close + "\n")});
}

void Emitter::tellTaken(const std::string &symbol, const std::string &kernel) {
  if (llvm::StringRef(variant.original).contains("// Written by OptiML:"))
    return; // told when that was; now there are uses of ours
  for (const auto &[taken, line] : host.takenAddresses())
    if (taken == symbol)
      tell(llvm::formatv("{0}:{1}: the address of {2} is taken here; launches through it keep the original kernel",
                         variant.path, line, kernel));
}

/// A call of the function `entry` (entrySignature) in place of a launch by the kernel's address.
std::string Emitter::entryCall(const LaunchSite &site, const std::string &entry) {
  if (!site.byConfiguration)
    return entry + "((const void *)" + site.callee + ", " + site.configAt(0) + ", " + site.configAt(1) + ", " +
           site.arguments[0] + ", " + site.configAt(2) + ", " + site.configAt(3) + ")";
  if (configured.empty())
    configured = freshIdentifier("optimlConfigured");
  std::string operands = (site.passesValues ? "" : "(const void *)") + site.callee;
  for (const std::string &argument : site.arguments)
    operands += ", " + argument;
  return configured + "(" + entry + ", " + site.config[0] + ", " + operands + ")";
}

/// Why a launch cannot go through an entry; empty: it can.
static std::string whyNoEntry(const LaunchSite &site) {
  if (site.inMacro)
    return "it is written by a macro";
  if (!site.namesOne)
    return "its name alone does not tell which kernel it is";
  return site.inTemplate ? "it stands in a template" : ""; // each instantiation may launch another kernel
}

/// Launches by the kernel's address, and the function that they and other files call; empty where there are none.
std::string Emitter::emitEntry(const KernelRewrite &rewrite, const std::string &dispatcher) {
  const bool exported = launchedElsewhere.count(rewrite.originalSymbol);
  const std::string name =
      exported ? entryName(rewrite.originalSymbol) : freshIdentifier(rewrite.twin + "_launch_address");
  if (llvm::StringRef(variant.original).contains(name + "(")) // of another architecture, whose dispatcher calls ours
    return "";
  const std::string text = entryText(rewrite, name, dispatcher, exported);
  std::vector<const LaunchSite *> calls;
  std::set<unsigned> replaced;
  for (const LaunchSite &site : host.addressLaunches()) {
    if (site.symbol != rewrite.originalSymbol || replaced.count(site.begin))
      continue;
    std::string why = whyNoEntry(site);
    if (why.empty() && text.empty())
      why = "a parameter is an array";
    if (!why.empty()) {
      keeps(site, rewrite.original, why);
      continue;
    }
    replaced.insert(site.begin);
    edits.push_back({site.begin, site.end, entryCall(site, qualifierOf(rewrite, site) + name)});
    calls.push_back(&site);
  }
  if (replaced.empty() && !exported)
    return "";
  declareBefore(calls, rewrite, entrySignature(name, exported));
  result.dispatched += unsigned(replaced.size());
  result.entries += exported && !text.empty();
  return text;
}

/// Launches of kernels that other files define.
void Emitter::emitFarLaunches() {
  const std::string name = freshIdentifier("optimlFar");
  std::set<std::string> used;
  std::set<unsigned> replaced;
  auto isFar = [&](const LaunchSite &site) {
    return far.count(site.symbol) && !host.findKernel(site.symbol) && !replaced.count(site.begin);
  };
  auto replace = [&](const LaunchSite &site, const std::string &call) {
    replaced.insert(site.begin);
    used.insert(site.symbol);
    edits.push_back({site.begin, site.end, call});
    ++result.dispatched;
  };
  for (const LaunchSite &site : host.launches()) {
    if (!isFar(site))
      continue;
    if (std::string why = whyNoEntry(site); !why.empty())
      keeps(site, site.kernel, why);
    else if (site.arguments.size() != site.parameters)
      keeps(site, site.kernel, "it relies on default arguments");
    else
      replace(site, name + "(" + entryName(site.symbol) + ", " + site.callee + ", " + site.configAt(0) + ", " +
                        site.configAt(1) + ", " + site.configAt(2) + ", " + site.configAt(3) + ")(" +
                        llvm::join(site.arguments, ", ") + ")");
  }
  for (const LaunchSite &site : host.addressLaunches()) {
    if (!isFar(site))
      continue;
    if (std::string why = whyNoEntry(site); !why.empty())
      keeps(site, site.kernel, why);
    else if (site.byConfiguration)
      replace(site, entryCall(site, entryName(site.symbol)));
    else
      replace(site, name + "(" + entryName(site.symbol) + ", (const void *)" + site.callee + ", " + site.configAt(0) +
                        ", " + site.configAt(1) + ", " + site.arguments[0] + ", " + site.configAt(2) + ", " +
                        site.configAt(3) + ")");
  }
  for (const std::string &symbol : far)
    if (!host.findKernel(symbol))
      tellTaken(symbol, titleOf(llvm::demangle(symbol)).str());
  if (unsigned head = afterIncludes(); !used.empty())
    edits.insert(edits.begin(), {head, head, shielded(farLaunchSupport(name, used))});
}
