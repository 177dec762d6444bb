//===- Openings.cpp - playing the opening book ----------------------------===//
//
// A line of the book is general ("stage every operand, tile 8 if there is such a value"). It is resolved step by step
// against what is legal after the steps before it.
//
//===----------------------------------------------------------------------===//
#include "Session.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/GlobPattern.h"
#include <algorithm>
#include <numeric>
#include <set>

using namespace optiml;
using namespace optiml::search;
using llvm::StringRef;

namespace {

/// Follows one line on one kernel; the `next` of a Walk.
class LinePlayer {
public:
  LinePlayer(OpeningLine line, std::string kernel) : line(std::move(line)), kernel(std::move(kernel)) {}

  std::optional<Action> operator()(const SearchState &at, bool refused) {
    if (!refused)
      noteTaken();
    for (; step < line.steps.size(); nextStep()) {
      const OpeningStep &wanted = line.steps[step];
      if (taken && !wanted.everySite)
        continue;
      if (std::optional<Action> action = resolve(wanted, at)) {
        tried.insert(action->str());
        last = action;
        return action;
      }
      if (wanted.required && !taken) {
        *dropped = true;
        return std::nullopt;
      }
    }
    return std::nullopt;
  }

  std::shared_ptr<bool> dropped = std::make_shared<bool>(false); ///< a required step did not apply

private:
  void noteTaken() {
    if (!last)
      return;
    taken = true;
    doneSites.insert(last->site);
    last.reset();
  }

  void nextStep() {
    ++step;
    taken = false;
    doneSites.clear();
    last.reset();
  }

  static bool agrees(const Params &value, const Params &wanted) {
    return std::all_of(wanted.begin(), wanted.end(), [&](const auto &entry) {
      auto it = value.find(entry.first);
      return it != value.end() && it->second == entry.second;
    });
  }

  /// "/k:a+b" has two parts after the loop, which "*" alone matches, too.
  static bool sameShape(StringRef a, StringRef b) {
    return llvm::all_of(StringRef("/:+"), [&](char c) { return a.count(c) == b.count(c); });
  }

  /// The first matching action that was not tried in this step: preferred values first, then the site's own order.
  /// Where the step describes its site, one of the same shape goes before all others.
  std::optional<Action> resolve(const OpeningStep &wanted, const SearchState &at) const {
    if (wanted.siteGlob != "*")
      if (std::optional<Action> action = resolve(wanted, at, /*anyShape=*/false))
        return action;
    return resolve(wanted, at, /*anyShape=*/true);
  }

  std::optional<Action> resolve(const OpeningStep &wanted, const SearchState &at, bool anyShape) const {
    auto glob = llvm::GlobPattern::create(wanted.siteGlob);
    if (!glob) {
      llvm::consumeError(glob.takeError());
      return std::nullopt;
    }
    for (const ActionTemplate &legal : at.legal) {
      StringRef owner = siteKernel(legal.site);
      if (legal.transform != wanted.transform || owner != kernel || doneSites.count(legal.site) ||
          !glob->match(StringRef(legal.site).drop_front(owner.size())) ||
          !(anyShape || sameShape(wanted.siteGlob, StringRef(legal.site).drop_front(owner.size()))))
        continue;
      unsigned attempts = 0;
      auto untried = [&](const Params &params) -> std::optional<Action> {
        Action action{legal.transform, legal.site, params};
        attempts += tried.count(action.str());
        return tried.count(action.str()) ? std::nullopt : std::optional(action);
      };
      for (const Params &preferred : wanted.preferences)
        for (const Params &value : legal.values)
          if (agrees(value, preferred))
            if (std::optional<Action> action = untried(value))
              return action;
      if (wanted.onlyPreferred)
        continue;
      for (const Params &value : legal.values)
        if (attempts < 4) // a site that refused its best values is left
          if (std::optional<Action> action = untried(value))
            return action;
    }
    return std::nullopt;
  }

  OpeningLine line;
  std::string kernel;
  size_t step = 0;
  bool taken = false;
  std::optional<Action> last;
  std::set<std::string> tried, doneSites;
};

/// Of the time, what walking the lines may take before one of them is evaluated.
constexpr double walkingShare = 0.1;
/// Lines that should be this much slower than the best, as a log2, are not worth an evaluation.
constexpr double hopeless = 2;

/// A line that was walked and waits to be evaluated.
struct Waiting {
  Node *end;
  Path path;
  size_t kernel;
};

/// A combination is played again when it should take so much less time than the last one; and a kernel whose line saves
/// less of the whole is no part of it.
constexpr double worthACombination = 0.95, worthAPart = 0.98;

/// The best line of every kernel, one after the other. It is played as soon as each kernel had its turn, for beside one
/// kernel's much faster line those of the others are hardly seen, and where times are predicted they are not even
/// verified.
class Combination {
public:
  Combination(Session &session, size_t kernels) : session(session), best(kernels), proven(kernels), tried(kernels) {}

  bool hasTried(size_t kernel) const { return tried[kernel]; }

  /// The end of a line on `kernel` was evaluated.
  void add(size_t kernel, Node *end) {
    tried[kernel] = true;
    if (end->isConfirmed() && secondsOf(end) < secondsOf(proven[kernel]))
      proven[kernel] = end;
    bool fits = end->measured && !end->failed && end->measured->guardrails.empty();
    if (fits && secondsOf(end) < (best[kernel] ? secondsOf(best[kernel]) : worthAPart * secondsOf(nullptr)))
      best[kernel] = end;
  }

  void playIfBetter() {
    if (secondsTogether() < worthACombination * played)
      play(best);
  }

  /// What is best in the end; where it is wrong, what is proven to be right one by one.
  void finish() {
    if (secondsTogether() < played)
      play(best);
    if (!end || !end->isConfirmed())
      play(proven);
  }

private:
  double secondsOf(const Node *node) const { return (node ? node : session.root)->measured->time.seconds; }

  double secondsTogether() const {
    double seconds = secondsOf(nullptr);
    for (const Node *node : best)
      seconds -= secondsOf(nullptr) - secondsOf(node);
    return seconds;
  }

  void play(const std::vector<Node *> &lines) {
    Recipe together;
    unsigned parts = 0;
    for (const Node *node : lines)
      if (node) {
        together.insert(together.end(), node->recipe.begin(), node->recipe.end());
        ++parts;
      }
    if (parts < 2 || together == recipe || session.stopReason())
      return;
    recipe = together;
    played = secondsTogether();
    size_t at = 0;
    auto next = [together, at](const SearchState &, bool) mutable -> std::optional<Action> {
      return at < together.size() ? std::optional(together[at++]) : std::nullopt;
    };
    std::vector<Walk> walks;
    walks.push_back({session.root, next, {}});
    session.walkAll(walks);
    if (walks[0].steps.empty())
      return;
    Path path = session.enter(walks[0], end);
    session.evaluate({end});
    session.backUp(path, end);
  }

  Session &session;
  std::vector<Node *> best, proven; ///< by kernel; null: the original
  std::vector<bool> tried;
  Recipe recipe; ///< the last one played, and where it led
  Node *end = nullptr;
  double played = HUGE_VAL;
};

/// Takes out of `waiting` up to `most` of those that promise most, the best first; none that is hopeless.
std::vector<Waiting> takePromising(const Outlook &outlook, std::vector<Waiting> &waiting, size_t most) {
  std::vector<Recipe> recipes;
  for (const Waiting &line : waiting)
    recipes.push_back(line.end->recipe);
  std::vector<double> losses = outlook.expectedLosses(recipes);
  std::vector<size_t> order(waiting.size());
  std::iota(order.begin(), order.end(), 0);
  stableSort(order, [&](size_t a, size_t b) { return losses[a] < losses[b]; });
  std::vector<Waiting> taken, rest;
  for (size_t i : order)
    if (taken.size() < most && losses[i] < hopeless)
      taken.push_back(std::move(waiting[i]));
  for (Waiting &line : waiting)
    if (line.end && llvm::none_of(taken, [&](const Waiting &other) { return other.end == line.end; }))
      rest.push_back(std::move(line));
  waiting = std::move(rest);
  return taken;
}

/// Walks the lines that there is time for, and evaluates their ends from the most promising on: one after the other at
/// first, for every answer tells something of the others. Returns the first line that was not walked.
size_t playRanked(Session &session, std::vector<Walk> &walks, const std::vector<std::shared_ptr<bool>> &dropped,
                  const std::vector<size_t> &kernelOf, Combination &combination) {
  size_t walked = 0, batch = session.settings.batch;
  std::vector<Waiting> waiting;
  double until = session.settings.seconds > 0 ? session.elapsed() + walkingShare * session.settings.seconds : HUGE_VAL;
  while (walked < walks.size() && session.elapsed() < until && !session.stopReason()) {
    size_t last = std::min(walks.size(), walked + batch);
    std::vector<Walk> next(walks.begin() + long(walked), walks.begin() + long(last));
    session.walkAll(next);
    for (const Walk &walk : next) {
      size_t line = walked++;
      if (walk.steps.empty() || *dropped[line])
        continue;
      Node *end = nullptr;
      Path path = session.enter(walk, end);
      if (llvm::none_of(waiting, [&](const Waiting &other) { return other.end == end; }))
        waiting.push_back({end, std::move(path), kernelOf[line]});
    }
  }
  for (size_t together = 1; !waiting.empty() && !session.stopReason(); together = std::min(2 * together, batch)) {
    std::vector<Waiting> taken = takePromising(*session.settings.outlook, waiting, together);
    if (taken.empty())
      break;
    std::vector<Node *> nodes;
    for (const Waiting &line : taken)
      nodes.push_back(line.end);
    session.evaluate(nodes);
    for (const Waiting &line : taken) {
      session.backUp(line.path, line.end);
      combination.add(line.kernel, line.end);
    }
    if (llvm::all_of(waiting, [&](const Waiting &line) { return combination.hasTried(line.kernel); }))
      combination.playIfBetter();
  }
  return walked;
}

/// Walks, enters, evaluates and backs up in batches.
void play(Session &session, std::vector<Walk> walks, const std::vector<std::shared_ptr<bool>> &dropped,
          const std::vector<size_t> &kernelOf, Combination &combination) {
  size_t ranked = 0;
  if (session.settings.outlook && !session.settings.outlook->expectedLosses({{}}).empty())
    ranked = playRanked(session, walks, dropped, kernelOf, combination);
  for (size_t first = ranked; first < walks.size() && !session.stopReason(); first += session.settings.batch) {
    size_t last = std::min(walks.size(), first + session.settings.batch);
    std::vector<Walk> batch(walks.begin() + first, walks.begin() + last);
    session.walkAll(batch);
    std::vector<Waiting> lines;
    std::vector<Node *> nodes;
    for (size_t i = 0; i < batch.size(); ++i) {
      if (batch[i].steps.empty() || *dropped[first + i])
        continue;
      Waiting &line = lines.emplace_back();
      line.kernel = kernelOf[first + i];
      line.path = session.enter(batch[i], line.end);
      nodes.push_back(line.end);
    }
    session.evaluate(nodes);
    for (const Waiting &line : lines) {
      session.backUp(line.path, line.end);
      combination.add(line.kernel, line.end);
    }
    bool allTried =
        std::all_of(kernelOf.begin() + long(last), kernelOf.end(), [&](size_t k) { return combination.hasTried(k); });
    if (allTried)
      combination.playIfBetter();
  }
}

} // namespace

void optiml::search::playOpenings(Session &session) {
  std::vector<std::string> kernels;
  for (const ActionTemplate &legal : session.root->state.legal) {
    std::string kernel = siteKernel(legal.site).str();
    if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end())
      kernels.push_back(kernel);
  }
  std::vector<Walk> walks;
  std::vector<std::shared_ptr<bool>> dropped;
  std::vector<size_t> kernelOf;
  session.root->state.measurement = &*session.root->measured;
  for (const OpeningLine &line : session.book().openingBook(session.root->state))
    for (size_t k = 0; k < kernels.size(); ++k) {
      if (!line.kernel.empty() && line.kernel != kernels[k])
        continue;
      LinePlayer player(line, kernels[k]);
      dropped.push_back(player.dropped);
      walks.push_back({session.root, std::move(player), {}});
      kernelOf.push_back(k);
    }
  Combination combination(session, kernels.size());
  play(session, std::move(walks), dropped, kernelOf, combination);
  combination.finish();
}
