//===- LaunchSequence.cpp - launches and loops, for a block ---------------===//
//
// Arguments are known by their text. What a loop changes has another value in each turn, so that its text says nothing
// by itself: a number that the loop counts, any other number, or one of two buffers that change places. These are
// guesses of what the loop does; whether they are right is tested when the launches have been made.
//
//===----------------------------------------------------------------------===//
#include "LaunchSequence.h"
#include "optiml/Analysis/TreeQueries.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"

using namespace optiml;

namespace {

class Sequence {
public:
  Sequence(const LaunchRun &run, size_t first, size_t count, const Program &host,
           const std::vector<KernelState> &kernels, bool anyArgument)
      : run(run), first(first), count(count), host(host), kernels(kernels), anyArgument(anyArgument) {
    for (const LaunchRun::Loop &loop : run.loops)
      if (loop.first >= first && loop.first < first + count)
        loops.push_back(&loop);
  }

  llvm::Expected<std::vector<SequenceLaunch>> make() {
    for (const LaunchRun::Loop *loop : loops)
      if (llvm::Error e = findSwap(*loop))
        return std::move(e);
    std::vector<SequenceLaunch> result;
    for (size_t at = first; at < first + count; ++at) {
      auto launch = launchAt(at);
      if (!launch)
        return launch.takeError();
      result.push_back(std::move(*launch));
    }
    return result;
  }

private:
  const LaunchRun &run;
  const size_t first, count;
  const Program &host;
  const std::vector<KernelState> &kernels;
  const bool anyArgument;                     ///< a pointer may lead to another place in each turn
  std::vector<const LaunchRun::Loop *> loops; ///< within the sequence
  std::map<const LaunchRun::Loop *, std::vector<std::string>> swapped; ///< two buffers that change places

  const LaunchSite &site(size_t at) const { return host.launches()[run.sites[at]]; }
  const Param &param(size_t at, size_t j) const { return kernels[at - first].original->params[j]; }

  /// The loop that the launch stands in; null: none.
  const LaunchRun::Loop *loopAround(size_t at) const {
    auto it = llvm::find_if(loops, [&](const auto *loop) { return loop->holds(at); });
    return it == loops.end() ? nullptr : *it;
  }
  static bool changes(const LaunchRun::Loop &loop, const std::set<std::string> &names) {
    return llvm::any_of(names, [&](const std::string &name) { return loop.changed.count(name) != 0; });
  }
  /// A variable that the loop changes, and that keeps its value until the next turn.
  static bool isKept(const LaunchRun::Loop &loop, const std::string &text) {
    auto it = loop.changed.find(text);
    return it != loop.changed.end() && it->second != LaunchRun::Loop::Change::OfTurn;
  }
  /// What the variable is before a loop that changes it.
  std::string before(const std::string &name) const {
    auto it = run.copies.find(name);
    return it == run.copies.end() ? name : it->second;
  }

  llvm::Error findSwap(const LaunchRun::Loop &loop) {
    std::vector<std::string> &names = swapped[&loop];
    for (size_t at = loop.first; at < loop.first + loop.count; ++at)
      for (size_t j = 0; j < run.mentioned[at].size() && j < site(at).arguments.size(); ++j) {
        const std::string &text = site(at).arguments[j];
        if (!param(at, j).type.isPointer() || !changes(loop, run.mentioned[at][j]))
          continue;
        if (!isKept(loop, text)) {
          if (anyArgument || param(at, j).type.pointee->isConst)
            continue;
          return notApplicable("'{0}' leads to another place in each turn", text);
        }
        if (!llvm::is_contained(names, text))
          names.push_back(text);
      }
    if (!names.empty() && names.size() != 2)
      return notApplicable("'{0}' changes from turn to turn, and not with one other buffer", names.front());
    return llvm::Error::success();
  }

  /// Of two buffers that change places: the one that the name stands for first, and the other.
  LaunchArgument swap(ArgumentKind kind, const LaunchRun::Loop &loop, const std::string &name) const {
    const std::vector<std::string> &names = swapped.at(&loop);
    return {kind, before(name), before(names[0] == name ? names[1] : names[0]),
            unsigned(llvm::find(loops, &loop) - loops.begin())};
  }

  llvm::Expected<LaunchArgument> argument(size_t at, size_t j) const {
    using Kind = ArgumentKind;
    const std::string &text = site(at).arguments[j];
    const std::set<std::string> &names = run.mentioned[at][j];
    const Param &own = param(at, j);
    if (const LaunchRun::Loop *loop = loopAround(at); loop && changes(*loop, names)) {
      if (own.type.isPointer() && isKept(*loop, text))
        return swap(Kind::Swapped, *loop, text);
      if (own.type.isPointer())
        return LaunchArgument{Kind::Counts, text, "", 0};
      const bool hasPointers = llvm::any_of(
          own.fields, [](const Param::Field &field) { return field.type.isPointer() && !isArray(field.type); });
      if (hasPointers || !own.type.bytes)
        return notApplicable("'{0}' of {1} differs from turn to turn", own.name, site(at).kernel);
      using Change = LaunchRun::Loop::Change;
      auto it = loop->changed.find(text);
      switch (it == loop->changed.end() || own.type.cls != Type::Class::Int ? Change::Other : it->second) {
      case Change::Steps: return LaunchArgument{Kind::Counts, text, "", 0};
      case Change::Doubles: return LaunchArgument{Kind::Doubles, text, "", 0};
      case Change::Halves: return LaunchArgument{Kind::Halves, text, "", 0};
      case Change::OfTurn:
      case Change::Other: break;
      }
      return LaunchArgument{Kind::Listed, text, "", 0};
    }
    std::string behind; // its value is not that of the same text elsewhere
    for (size_t i = 0; i < loops.size(); ++i)
      if (loops[i]->first + loops[i]->count <= at && changes(*loops[i], names)) {
        if (llvm::is_contained(swapped.at(loops[i]), text))
          return swap(Kind::AfterSwaps, *loops[i], text);
        behind = " behind loop " + std::to_string(i);
      }
    const bool isCopy = own.type.isPointer() && behind.empty();
    return LaunchArgument{Kind::Same, (isCopy ? before(text) : text) + behind, "", 0};
  }

  llvm::Expected<SequenceLaunch> launchAt(size_t at) const {
    SequenceLaunch launch;
    launch.tree = kernels[at - first].original.get();
    launch.block = site(at).block;
    if (site(at).arguments.size() != launch.tree->params.size() ||
        run.mentioned[at].size() != launch.tree->params.size())
      return notApplicable("its launch relies on default arguments");
    for (const auto &[name, last] : run.lastUses)
      if (last < site(first + count - 1).end)
        launch.dead.insert(name);
    for (const auto &[name, use] : run.firstUses)
      if (use >= site(first).begin)
        launch.fresh.insert(name);
    if (const LaunchRun::Loop *loop = loopAround(at)) {
      launch.loop = unsigned(llvm::find(loops, loop) - loops.begin());
      launch.always = loop->always[at - loop->first];
    }
    for (size_t j = 0; j < site(at).arguments.size(); ++j) {
      auto made = argument(at, j);
      if (!made)
        return made.takeError();
      launch.arguments.push_back(std::move(*made));
    }
    return launch;
  }
};

} // namespace

llvm::Expected<std::vector<SequenceLaunch>> optiml::launchSequence(const LaunchRun &run, size_t first, size_t count,
                                                                   const Program &host,
                                                                   const std::vector<KernelState> &kernels,
                                                                   bool anyArgument) {
  return Sequence(run, first, count, host, kernels, anyArgument).make();
}
