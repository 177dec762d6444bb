//===- SearchSpace.cpp - what a search may rewrite ------------------------===//
#include "SearchRun.h"
#include "SourceRecipes.h"
#include "optiml/Evaluate/Verify/SomeLaunch.h"
#include "optiml/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <regex>

using namespace optiml;

std::map<std::string, LaunchHints> optiml::launchHints(const SearchTask &task, const Workload &launched) {
  std::map<std::string, LaunchHints> hints;
  std::map<std::string, double> heaviest;
  for (const LaunchImage &launch : launched.launches) {
    std::vector<std::string> &arguments = hints[launch.kernel].arguments;
    bool first = arguments.empty();
    arguments.resize(launch.arguments.size());
    for (size_t i = 0; i < arguments.size(); ++i) {
      const ArgumentImage &argument = launch.arguments[i];
      if (first && !argument.isPointer)
        arguments[i] = argument.bytes;
      else if (arguments[i] != argument.bytes)
        arguments[i].clear();
    }
    double threads = launch.weight * double(threadsOf(launch));
    if (threads <= heaviest[launch.kernel])
      continue;
    heaviest[launch.kernel] = threads;
    LaunchHints &h = hints[launch.kernel];
    h.heaviest.clear();
    for (const ArgumentImage &argument : launch.arguments)
      h.heaviest.push_back(argument.bytes);
    h.buffers.clear();
    for (const BufferImage &buffer : launch.buffers)
      h.buffers.emplace_back(buffer.address, buffer.bytes);
    for (unsigned i = 0; i < 3; ++i) {
      h.grid[i] = launch.grid[i];
      h.block[i] = launch.block[i];
    }
    setRules(h, task.flags.fp, task.options);
  }
  for (const auto &[kernel, arguments] : launched.differing) // from launches, too, that others stand for
    for (unsigned i : arguments)
      if (auto known = hints.find(kernel); known != hints.end() && i < known->second.arguments.size())
        known->second.arguments[i].clear();
  return hints;
}

llvm::Expected<std::unique_ptr<KernelSpace>> optiml::createSearchSpace(const SearchTask &task, const Program &device,
                                                                       const Workload &launched) {
  const std::map<std::string, LaunchHints> hints = launchHints(task, launched);
  const std::string &wanted = task.flags.kernel;
  std::regex filter(wanted.empty() ? ".*" : wanted, std::regex::extended); // checked when the flag was read
  auto space = KernelSpace::create(
      device, [&](const KernelDecl &decl) { return hints.count(decl.symbol) && std::regex_search(decl.name, filter); },
      [&](const KernelDecl &decl) { return hints.at(decl.symbol); });
  if (!space)
    return space.takeError();
  for (const KernelSpace::Skipped &skipped : (*space)->skipped())
    llvm::errs() << "optiml-clang: note: kernel " << skipped.kernel << " is left as it is: " << skipped.reason << "\n";
  if ((*space)->empty())
    return makeError("{0}: no kernel that the program launches can be rewritten", task.options.inputs.front());
  (*space)->check([&launched](const KernelRewrite &rewrite) { return requireSomeLaunch(rewrite, launched); });
  return space;
}
