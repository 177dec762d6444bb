//===- Search.cpp - looking for the best recipe ---------------------------===//
#include "optiml/Search/Search.h"
#include "Openings.h"
#include "llvm/Support/FormatVariadic.h"

using namespace optiml;
using namespace optiml::search;

SearchObserver::~SearchObserver() = default;

static constexpr std::pair<Strategy, const char *> strategyNames[] = {
    {Strategy::Mcts, "mcts"}, {Strategy::Random, "random"}, {Strategy::Greedy, "greedy"}, {Strategy::Beam, "beam"}};

const char *optiml::strategyName(Strategy strategy) {
  for (const auto &[value, name] : strategyNames)
    if (value == strategy)
      return name;
  return "unknown";
}

std::optional<Strategy> optiml::strategyFromName(llvm::StringRef text) {
  for (const auto &[value, name] : strategyNames)
    if (text == name)
      return value;
  return std::nullopt;
}

const char *optiml::stopReasonText(StopReason reason) {
  switch (reason) {
  case StopReason::Evaluations: return "the budget of evaluations is spent";
  case StopReason::Seconds: return "the budget of time is spent";
  case StopReason::Cancelled: return "cancelled";
  case StopReason::Exhausted: return "nothing is left to try";
  case StopReason::Roofline: return "the best is close to what the hardware allows";
  }
  return "unknown";
}

std::string SearchSettings::str() const {
  return llvm::formatv("strategy={0} evaluations={1} seconds={2} seed={3} batch={4} screen={5} within={6} depth={7} "
                       "exploration={8} rollout={9} opening={10} margin={11} roofline={12} simpler={13} beam={14}",
                       strategyName(strategy), evaluations, seconds, seed, batch, screen, verifyWithin, maxDepth,
                       exploration, rolloutChance, openingBook, margin, roofline, simplerWithin, beamWidth)
      .str();
}

static std::unique_ptr<Searcher> makeSearcher(Session &session) {
  switch (session.settings.strategy) {
  case Strategy::Random: return makeRandom(session);
  case Strategy::Greedy: return makeGreedy(session);
  case Strategy::Beam: return makeBeam(session);
  case Strategy::Mcts: break;
  }
  return makeMcts(session);
}

/// Whether the best is as near to the floor as it is worth going.
static bool atRoofline(Session &session) {
  const Measurement &best = *session.best->measured;
  auto share = best.counters.find("roofline");
  if (session.settings.roofline <= 0 || share == best.counters.end() || !(share->second >= session.settings.roofline))
    return false;
  session.notes.push_back(
      llvm::formatv("already at {0} % of the roofline", unsigned(std::min(share->second, 1.0) * 100)).str());
  return true;
}

static StopReason searchUntilStopped(Session &session, Openings &openings) {
  if (atRoofline(session))
    return StopReason::Roofline;
  session.tryAll(session.settings.first);
  if (session.settings.openingBook)
    openings.play();
  std::unique_ptr<Searcher> searcher = makeSearcher(session);
  while (true) {
    if (std::optional<StopReason> reason = session.stopReason()) {
      if (*reason == StopReason::Evaluations && session.takeAnswer())
        continue;
      return *reason;
    }
    if (atRoofline(session))
      return StopReason::Roofline;
    session.tryRecipes();
    session.reconsiderBest();
    if (session.settings.openingBook)
      openings.playOn();
    if (searcher->step(session.room()) || session.stopReason() || session.awaitOne() || session.takeAnswer())
      continue;
    return StopReason::Exhausted;
  }
}

llvm::Expected<SearchResult> optiml::runSearch(ActionSpace &space, Proposer &proposer, Evaluator &evaluator,
                                               const SearchSettings &given, EvaluationCache *memory,
                                               SearchObserver *observer) {
  SearchSettings settings = given;
  settings.batch = std::max(1u, settings.batch);
  settings.jobs = std::max(1u, settings.jobs);
  Session session(space, proposer, evaluator, settings, memory, observer);
  if (llvm::Error error = session.begin())
    return std::move(error);
  Openings openings(session);
  StopReason reason = searchUntilStopped(session, openings);
  session.awaitAll(); // lines may still be under way
  session.preferSimpler();
  return session.finish(reason);
}
