//===- Openings.cpp - what is tried before the tree grows -----------------===//
#include "Openings.h"
#include "LinePlayer.h"
#include "optiml/Core/Interfaces.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <set>

using namespace optiml;
using namespace optiml::search;

/// Of the time, what walking the lines may take before one of them is evaluated.
static constexpr double walkingShare = 0.1;
/// Evaluated together, where it begins with one: every answer tells something of the others.
static constexpr size_t mostTogether = 4;
/// Lines of one idea on one kernel (a block for each row, a warp for each row) that come before those of others.
static constexpr unsigned linesOfAnIdea = 3;
/// Evaluated at a time, of what is tried in place of variants that could not be tested.
static constexpr size_t mostMended = 8;
/// Of the lines that promised too little, played beside each batch of the search: what was seen elsewhere may mislead.
static constexpr size_t leftTogether = 1;

struct Openings::Waiting {
  Node *end = nullptr;
  Path path;
  size_t kernel = 0;
  Prospect prospect;
};

Openings::Openings(Session &session)
    : session(session), kernels(session.kernels()), combination(session, kernels), varied(kernels.size()) {
  for (size_t k = 0; k < kernels.size(); ++k)
    exactly.push_back(std::make_shared<std::atomic<bool>>(false));
}
Openings::~Openings() = default;

/// The transform that the line is about, or its name.
static std::string ideaOf(const OpeningLine &line) {
  auto step = llvm::find_if(llvm::reverse(line.steps), [](const OpeningStep &s) { return s.required; });
  return step == line.steps.rend() ? line.name : step->transform;
}

void Openings::play() {
  session.root->state.measurement = &*session.root->measured;
  session.expand(*session.root); // language models are asked before all else
  unsigned rank = 0;
  for (const OpeningLine &line : session.book().openingBook(session.root->state)) {
    for (size_t k = 0; k < kernels.size(); ++k) {
      if (!line.kernel.empty() && line.kernel != kernels[k])
        continue;
      LinePlayer player(line, kernels[k], exactly[k]);
      auto dropped = player.dropped;
      lines.push_back({{session.root, std::move(player), {}}, std::move(dropped), k, rank, ideaOf(line)});
    }
    for (const OpeningStep &step : line.steps)
      if (step.inexact && !step.required)
        inexact.insert(step.transform);
    ++rank;
  }
  if (session.settings.outlook && session.settings.outlook->knowsAnything()) {
    walkLines();
    tune();
    playRanked();
  }
  playInTurn();
  mend();
  combination.finish();
}

/// What was wrong with a step that rounds otherwise, without that. Where it is right then, all lines on the kernel go
/// without.
std::vector<Job> Openings::triedExactly() {
  std::vector<Job> jobs;
  for (const Node *node : session.takeWrong()) {
    Recipe rest;
    std::set<std::string> rounded;
    for (const Action &action : node->recipe)
      if (inexact.count(action.transform))
        rounded.insert(siteKernel(action.site).str());
      else
        rest.push_back(action);
    if (rounded.size() != 1 || rest.empty())
      continue;
    const size_t kernel = size_t(llvm::find(kernels, *rounded.begin()) - kernels.begin());
    if (kernel < kernels.size())
      jobs.push_back({replayOf(session, std::move(rest)), {}, nullptr, [this, kernel](Node *end) {
                        if (!end || !end->measured || end->failed)
                          return;
                        *exactly[kernel] = true;
                        combination.add(kernel, end);
                      }});
  }
  return jobs;
}

/// What is as good as anything on a kernel but for a launch that it slows down, for the larger launches only.
std::vector<Job> Openings::forLargeLaunches() {
  std::vector<Job> jobs;
  for (const Node *node : session.takeGuarded())
    for (const std::string &kernel : combination.slowedBy(*node))
      for (const ActionTemplate &legal : node->state.legal.of("large-launches"))
        if (siteKernel(legal.site) == kernel && jobs.size() < mostMended) {
          Recipe recipe = node->recipe;
          recipe.push_back({legal.transform, legal.site, legal.values.front()});
          jobs.push_back({replayOf(session, std::move(recipe))});
        }
  return jobs;
}

std::vector<Job> Openings::mended() {
  std::vector<Job> jobs = triedExactly();
  llvm::append_range(jobs, forLargeLaunches());
  return jobs;
}

void Openings::mend() {
  if (std::vector<Job> jobs = mended(); !jobs.empty())
    run(std::move(jobs));
}

/// Evaluates these, what is tried again, and the combination that waits.
void Openings::run(std::vector<Job> jobs) {
  llvm::append_range(jobs, mended());
  if (std::optional<Job> together = combination.take())
    jobs.push_back(std::move(*together));
  session.run(std::move(jobs));
}

void Openings::evaluate(std::vector<Waiting> batch) {
  std::vector<Job> jobs;
  for (Waiting &line : batch)
    jobs.push_back({{line.end, nullptr, {}}, std::move(line.path), nullptr, [this, kernel = line.kernel](Node *end) {
                      if (end)
                        combination.add(kernel, end);
                    }});
  run(std::move(jobs));
}

/// The first lines of every idea go before more of the same, and all in the order of the book.
std::vector<Openings::Line> Openings::nextLines() {
  std::vector<Line> next, rest;
  size_t most = session.isFlowing() ? session.room() : session.settings.batch;
  for (Line &line : lines) {
    bool fits = next.size() < most && played[{line.kernel, line.idea}] < linesOfAnIdea;
    played[{line.kernel, line.idea}] += fits;
    (fits ? next : rest).push_back(std::move(line));
  }
  if (next.empty()) {
    auto last = rest.begin() + long(std::min(rest.size(), most));
    next.assign(std::make_move_iterator(rest.begin()), std::make_move_iterator(last));
    rest.erase(rest.begin(), last);
    for (const Line &line : next)
      ++played[{line.kernel, line.idea}];
  }
  lines = std::move(rest);
  return next;
}

/// In batches, or in flow.
void Openings::playInTurn() {
  while (!lines.empty() && !session.stopReason()) {
    std::vector<Job> jobs;
    for (Line &line : nextLines())
      jobs.push_back({std::move(line.walk),
                      {},
                      [dropped = line.dropped](const Walk &walk) { return !walk.steps.empty() && !*dropped; },
                      [this, kernel = line.kernel, idea = line.idea](Node *end) {
                        if (end)
                          combination.add(kernel, end);
                        else
                          --played[{kernel, idea}];
                      }});
    run(std::move(jobs));
    if (llvm::all_of(lines, [&](const Line &line) { return combination.hasTried(line.kernel); }))
      combination.playIfBetter();
  }
}

/// Enters the walk's end, which waits from now on, but not twice, and not when it is known.
void Openings::wait(const Walk &walk, size_t kernel, unsigned rank, const Recipe *basis) {
  if (walk.steps.empty()) // what is replayed may not apply
    return;
  Waiting line;
  line.path = session.enter(walk, line.end);
  if (line.end->measured || line.end->failed ||
      llvm::any_of(waiting, [&](const Waiting &other) { return other.end == line.end; }))
    return;
  line.kernel = kernel;
  line.prospect = {line.end->recipe, basis ? *basis : line.end->recipe, rank};
  waiting.push_back(std::move(line));
}

/// Walks the lines that there is time for.
void Openings::walkLines() {
  double until = session.settings.seconds > 0 ? session.elapsed() + walkingShare * session.settings.seconds : HUGE_VAL;
  while (!lines.empty() && session.elapsed() < until && !session.stopReason()) {
    std::vector<Line> next = nextLines();
    std::vector<Walk> walks;
    for (const Line &line : next)
      walks.push_back(line.walk);
    session.walkAll(walks);
    for (size_t i = 0; i < next.size(); ++i) {
      if (*next[i].dropped)
        --played[{next[i].kernel, next[i].idea}];
      else
        wait(walks[i], next[i].kernel, next[i].rank);
    }
  }
}

/// Beside each line the same with details that did better elsewhere.
void Openings::tune() {
  std::vector<Waiting> bases;
  std::vector<Walk> walks;
  for (const Waiting &line : waiting)
    if (Recipe tuned = session.settings.outlook->tuned(line.end->state); tuned != line.end->state.variant->recipe) {
      bases.push_back(line);
      walks.push_back(replayOf(session, std::move(tuned)));
    }
  session.walkAll(walks);
  for (size_t i = 0; i < walks.size(); ++i)
    wait(walks[i], bases[i].kernel, bases[i].prospect.rank, &bases[i].prospect.recipe);
}

/// The node's recipe with other details waits from now on.
void Openings::vary(Node &node, size_t kernel) {
  std::vector<Walk> walks;
  for (Recipe &recipe : session.settings.outlook->variations(node.state))
    walks.push_back(replayOf(session, std::move(recipe)));
  session.walkAll(walks);
  for (const Walk &walk : walks)
    wait(walk, kernel, 0, &node.recipe);
  varied[kernel] = &node;
}

/// Evaluates up to `most` of those that wait. False: none is worth it.
bool Openings::evaluatePromising(size_t most) {
  std::vector<Prospect> prospects;
  for (const Waiting &line : waiting)
    prospects.push_back(line.prospect);
  std::vector<Waiting> chosen, rest;
  std::vector<bool> taken(waiting.size());
  for (size_t i : session.settings.outlook->choose(prospects, most)) {
    chosen.push_back(std::move(waiting[i]));
    taken[i] = true;
  }
  for (size_t i = 0; i < waiting.size(); ++i)
    if (!taken[i])
      rest.push_back(std::move(waiting[i]));
  waiting = std::move(rest);
  if (chosen.empty())
    return false;
  evaluate(std::move(chosen));
  return true;
}

void Openings::playRanked() {
  const size_t most = std::max<size_t>(mostTogether, 2 * session.settings.firstTogether);
  for (size_t together = session.settings.firstTogether; !waiting.empty() && !session.stopReason();
       together = std::min(2 * together, most)) {
    if (!evaluatePromising(together))
      break;
    for (size_t k = 0; k < kernels.size(); ++k)
      if (Node *best = combination.bestOn(k); best && best != varied[k])
        vary(*best, k);
    if (llvm::all_of(waiting, [&](const Waiting &line) { return combination.hasTried(line.kernel); }))
      combination.playIfBetter();
  }
}

/// The recipe without all actions of one transform on a kernel of which no comparison reached all code: a loop's
/// remainder, a path for what is aligned. One recipe for each such transform.
static std::vector<Recipe> withoutOneTransform(const Node &node) {
  std::set<std::string> missed;
  for (const KernelRewrite &rewrite : node.state.variant->rewrites)
    if (llvm::is_contained(node.measured->missedKernels, rewrite.twin))
      missed.insert(rewrite.original);
  std::vector<Recipe> result;
  std::set<std::pair<std::string, std::string>> dropped;
  for (const Action &action : node.recipe) {
    const std::string kernel = siteKernel(action.site).str();
    if (!missed.count(kernel) || !dropped.insert({kernel, action.transform}).second)
      continue;
    Recipe rest;
    llvm::copy_if(node.recipe, std::back_inserter(rest), [&](const Action &other) {
      return other.transform != action.transform || siteKernel(other.site) != kernel;
    });
    if (!rest.empty())
      result.push_back(std::move(rest));
  }
  return result;
}

void Openings::mendUntested() {
  std::vector<Walk> walks;
  for (const Node *node : session.takeUntested())
    for (Recipe &recipe : withoutOneTransform(*node))
      walks.push_back(replayOf(session, std::move(recipe)));
  if (walks.size() > mostMended) // the last ones are the fastest, as a rule
    walks.erase(walks.begin(), walks.end() - long(mostMended));
  session.walkAll(walks);
  std::vector<Job> jobs;
  for (const Walk &walk : walks) {
    if (walk.steps.empty())
      continue;
    Node *end = nullptr;
    Path path = session.enter(walk, end);
    if (!end->measured && !end->failed)
      jobs.push_back({{end, nullptr, {}}, std::move(path)});
  }
  if (!jobs.empty())
    run(std::move(jobs));
}

void Openings::playOn() {
  mendUntested();
  mend();
  if (session.isFlowing() || !session.settings.launches.empty()) { // answers came meanwhile
    combination.playIfBetter();
    run({});
  }
  if (!session.settings.outlook || !session.settings.outlook->knowsAnything())
    return;
  varyBest();
  playLeft();
}

/// In the order of the book.
void Openings::playLeft() {
  llvm::erase_if(waiting, [](const Waiting &line) { return line.end->measured || line.end->failed; });
  llvm::stable_sort(waiting, [](const Waiting &a, const Waiting &b) {
    auto varied = [](const Waiting &line) { return line.prospect.basis != line.prospect.recipe; };
    return std::pair(varied(a), a.prospect.rank) < std::pair(varied(b), b.prospect.rank);
  });
  size_t most = std::min<size_t>({waiting.size(), leftTogether, session.allowance(leftTogether)});
  if (most == 0)
    return;
  std::vector<Waiting> first(std::make_move_iterator(waiting.begin()),
                             std::make_move_iterator(waiting.begin() + long(most)));
  waiting.erase(waiting.begin(), waiting.begin() + long(most));
  evaluate(std::move(first));
  combination.playIfBetter();
}

void Openings::varyBest() {
  Node *best = session.best;
  if (best == session.root)
    return;
  auto kernel = llvm::find(kernels, siteKernel(best->recipe.front().site));
  if (kernel == kernels.end() || varied[size_t(kernel - kernels.begin())] == best)
    return;
  vary(*best, size_t(kernel - kernels.begin()));
  evaluatePromising(session.allowance(mostTogether));
}
