//===- Diagnosis.cpp - what can be said before a search -------------------===//
#include "Diagnosis.h"
#include "SearchStory.h"
#include "SearchSummary.h"
#include "optiml/Propose/ExpertPolicy.h"
#include "optiml/Report/Limits.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <regex>

using namespace optiml;
using nlohmann::json;

llvm::Expected<std::unique_ptr<KernelSpace>> optiml::spaceFromText(const Program &device, const std::string &kernel) {
  std::regex filter(kernel.empty() ? ".*" : kernel, std::regex::extended);
  return KernelSpace::create(
      device, [&](const KernelDecl &decl) { return std::regex_search(decl.name, filter); },
      [&](const KernelDecl &decl) {
        LaunchHints hints;
        for (const LaunchSite &site : device.launches())
          if (site.symbol == decl.symbol)
            hints.block = site.block;
        return hints;
      });
}

json optiml::diagnosisOf(KernelSpace &space, const Program &device, const Measurement *baseline) {
  json kernels = json::array(), first = json::array();
  auto root = space.root();
  if (!root) {
    llvm::consumeError(root.takeError());
    return {{"kernels", kernels}, {"tryFirst", first}};
  }
  const json missed = missedIn(space, {});
  for (const std::string &name : space.kernelNames()) {
    const KernelDecl *decl = device.findKernel(name);
    json legal = json::object(), refused = json::array();
    for (const ActionTemplate &action : root->legal)
      if (siteKernel(action.site) == name)
        legal[action.transform] = legal.value(action.transform, 0) + 1;
    for (const json &one : missed)
      if (one["kernel"] == name)
        refused.push_back(one);
    kernels.push_back({{"name", name}, {"line", decl ? decl->line : 0}, {"legal", legal}, {"missed", refused}});
  }
  root->measurement = baseline;
  constexpr unsigned looked = 60, most = 6;
  std::set<std::pair<std::string, std::string>> known; // with one value each
  if (auto proposals = ExpertPolicy().propose(*root, looked))
    for (const Proposal &proposal : *proposals) {
      if (known.size() < most && known.emplace(proposal.action.transform, proposal.action.site).second)
        first.push_back({{"action", proposal.action.str()}, {"reason", proposal.reason}});
    }
  else
    llvm::consumeError(proposals.takeError());
  json left = json::array();
  for (const KernelSpace::Skipped &skipped : space.skipped())
    left.push_back({{"kernel", skipped.kernel}, {"why", skipped.reason}});
  return {{"kernels", kernels}, {"tryFirst", first}, {"leftAsTheyAre", left}};
}

std::string optiml::sitesText(KernelSpace &space, const Program &device) {
  auto root = space.root();
  if (!root)
    return llvm::toString(root.takeError()) + "\n";
  std::string text;
  for (const std::string &name : space.kernelNames()) {
    const KernelDecl *decl = device.findKernel(name);
    text += llvm::formatv("kernel {0}, line {1}\n", name, decl ? decl->line : 0);
    for (const ActionTemplate &action : root->legal)
      if (siteKernel(action.site) == name)
        text +=
            llvm::formatv("  {0}[{1}]{2}\n", action.transform, action.site,
                          action.values.size() > 1 ? llvm::formatv(": {0} values", action.values.size()).str() : "");
    if (std::string why = space.obstacles(name); !why.empty())
      text += llvm::formatv("  it may only be tuned: {0}\n", why);
  }
  for (const KernelSpace::Skipped &skipped : space.skipped())
    text += llvm::formatv("kernel {0} stays as it is: {1}\n", skipped.kernel, skipped.reason);
  return text;
}

static std::string entry(const std::string &name, llvm::StringRef text) {
  constexpr unsigned indent = 14;
  return llvm::formatv("  {0,-12}{1}\n", name, wrapped(text, indent));
}

static std::string kernelText(const json &kernel) {
  std::string text = llvm::formatv("\nkernel {0}, line {1}\n", kernel.value("name", ""), kernel.value("line", 0));
  if (kernel.contains("share"))
    text +=
        entry("share", llvm::formatv("{0:f0} % of the time of all kernels", 100 * kernel.value("share", 0.0)).str());
  for (const json &launch : kernel.value("launches", json::array()))
    text += entry("launch", launch.get<std::string>());
  std::string legal;
  for (const auto &[transform, sites] : kernel["legal"].items())
    legal +=
        (legal.empty() ? "" : ", ") + transform + (sites > 1 ? llvm::formatv(" ({0})", sites.get<int>()).str() : "");
  text += entry("legal", legal.empty() ? "nothing" : legal);
  for (const json &missed : kernel["missed"])
    text += entry("not legal", missed.value("transform", "") + ": " + missed.value("why", ""));
  return text;
}

std::string optiml::diagnosisText(const json &diagnosis) {
  const std::string file = diagnosis.value("file", "");
  std::string text = file + "\n";
  if (diagnosis.contains("missing"))
    text += entry("missing", diagnosis.value("missing", ""));
  if (diagnosis.contains("seconds")) {
    text += entry("time", timeText(diagnosis.value("seconds", 0.0)) + " in all kernels, " +
                              diagnosis.value("times", "") + " " + diagnosis.value("gpu", ""));
    text += entry("limited by", limitName(diagnosis.value("bottleneck", "")));
    if (diagnosis.contains("roofline"))
      text += entry(
          "roofline",
          llvm::formatv("{0:f0} % of the least possible time's speed", 100 * diagnosis.value("roofline", 0.0)).str());
  }
  for (const json &kernel : diagnosis["kernels"])
    text += kernelText(kernel);
  for (const json &kernel : diagnosis.value("leftAsTheyAre", json::array()))
    text +=
        llvm::formatv("\nkernel {0}\n", kernel.value("kernel", "")).str() + entry("not read", kernel.value("why", ""));
  if (!diagnosis["tryFirst"].empty())
    text += "\na search would try first\n";
  for (const json &proposal : diagnosis["tryFirst"])
    text += "  " + wrapped(proposal.value("action", "") + ": " + proposal.value("reason", ""), 4) + "\n";
  return text + "\nnext: optiml-clang -O-search " + file + "\n";
}
