//===- Session.cpp - what every search strategy shares --------------------===//
#include "Session.h"
#include "Flow.h"
#include "optiml/Support/Error.h"
#include <algorithm>
#include <thread>

using namespace optiml;
using namespace optiml::search;

// Variants of a batch that are verified beside each other; no matter of the number of jobs, so that a search repeats.
static constexpr size_t verifiedTogether = 2;
// Of the time, what predictions may take before anything is verified.
static constexpr double unverifiedShare = 0.5;

Session::Session(ActionSpace &space, Proposer &proposer, Evaluator &evaluator, const SearchSettings &settings,
                 EvaluationCache *memory, SearchObserver *observer)
    : settings(settings), space(space), proposer(proposer), evaluator(evaluator), memory(memory), observer(observer),
      random(settings.seed) {
  if (settings.flows)
    flow = std::make_unique<Flow>(*this);
}

Session::~Session() = default;

double Session::elapsed() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::vector<std::string> Session::kernels() const {
  std::vector<std::string> result;
  for (const ActionTemplate &legal : root->state.legal)
    if (std::string kernel = siteKernel(legal.site).str(); !llvm::is_contained(result, kernel))
      result.push_back(std::move(kernel));
  return result;
}

bool Session::outOfTime() const {
  return (settings.cancel && settings.cancel->load()) || (settings.seconds > 0 && elapsed() >= settings.seconds);
}

std::optional<StopReason> Session::stopReason() const {
  if (settings.cancel && settings.cancel->load())
    return StopReason::Cancelled;
  if (settings.seconds > 0 && elapsed() >= settings.seconds)
    return StopReason::Seconds;
  if (settings.evaluations && statistics.evaluations >= evaluationLimit())
    return StopReason::Evaluations;
  return {};
}

unsigned Session::evaluationLimit() const {
  if (!settings.evaluations || !proposer.awaitsAnswers())
    return settings.evaluations;
  return settings.evaluations - std::max(1u, settings.evaluations / 4);
}

bool Session::takeAnswer() {
  if (!proposer.awaitsAnswers())
    return false;
  proposer.takeAnswer(settings.seconds > 0 ? settings.seconds - elapsed() : HUGE_VAL, settings.cancel);
  return true;
}

unsigned Session::allowance(unsigned wanted) const {
  if (!settings.evaluations)
    return wanted;
  const unsigned limit = evaluationLimit(), issued = statistics.evaluations + unsigned(flow ? flow->size() : 0);
  return std::min(wanted, limit - std::min(limit, issued));
}

void Session::parallelFor(size_t count, const std::function<void(size_t)> &body, double until) {
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i; (i = next.fetch_add(1)) < count;)
      if (!outOfTime() && (i == 0 || elapsed() < until))
        body(i);
  };
  // A batch lasts seconds; starting threads for it costs nothing.
  std::vector<std::thread> helpers;
  for (size_t i = 1; i < std::min<size_t>(settings.jobs, count); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread &helper : helpers)
    helper.join();
}

llvm::Error Session::begin() {
  auto state = space.root();
  if (!state)
    return state.takeError();
  bool known;
  root = graph.intern(std::move(*state), {}, known);
  mostActions = settings.maxDepth * std::max<size_t>(1, kernels().size());
  findActions(root->state.legal);
  root->measured.reset();
  std::optional<Measurement> measurement = memory ? memory->recall(root->state.key, Fidelity::Verified) : std::nullopt;
  bool recalled = measurement.has_value();
  if (!measurement) {
    if (observer)
      observer->started({}, Fidelity::Verified);
    measurement = evaluator.evaluate(*root->state.variant, Fidelity::Verified);
  }
  if (!measurement->isUsable())
    return makeError("the original program cannot be evaluated: {0}",
                     measurement->why.empty() ? verdictName(measurement->verdict) : measurement->why.c_str());
  if (memory && !recalled)
    memory->remember(root->state.key, Fidelity::Verified, {}, *measurement);
  best = root;
  lowest = highest = measurement->reward;
  fold(*root, std::move(*measurement), recalled);
  if (settings.seconds > 0)
    evaluator.beginNothingAfter(start + std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                                            std::chrono::duration<double>(settings.seconds)));
  return llvm::Error::success();
}

std::vector<Proposal> Session::proposalsFor(Node &node) {
  if (node.state.legal.empty())
    return {};
  size_t count = 0;
  for (const ActionTemplate &legal : node.state.legal)
    count += legal.values.size();
  node.state.measurement = node.measured ? &*node.measured : node.modelled ? &*node.modelled : nullptr;
  auto answer = proposer.propose(node.state, unsigned(count));
  if (answer)
    return std::move(*answer);
  notes.push_back("no proposals for '" + recipeText(node.recipe) + "': " + llvm::toString(answer.takeError()));
  return {};
}

void Session::findActions(const LegalActions &legal) {
  parallelFor(legal.parts(), [&](size_t i) { legal.find(i); });
}

void Session::expand(Node &node) {
  if (node.expanded)
    return;
  findActions(node.state.legal);
  Graph::expand(node, proposalsFor(node));
}

void Session::reconsiderBest() {
  const bool hasNews = proposer.answersTaken() != answersSeen, isNew = best != considered;
  answersSeen = proposer.answersTaken();
  considered = best;
  if (hasNews && root->expanded)
    Graph::setPriors(*root, proposalsFor(*root));
  if ((hasNews || isNew) && best->expanded && best != root)
    Graph::setPriors(*best, proposalsFor(*best));
}

void Session::tellRefused(const Recipe &recipe, const std::string &why) {
  proposer.refused(recipe, why);
  if (observer)
    observer->refused(recipe, why);
}

/// The end of the recipe's way through the graph, which may take edges that no state lists; null where it does not
/// apply.
Node *Session::follow(const Recipe &recipe, Path &path) {
  Node *node = root;
  for (size_t i = 0; i < recipe.size(); ++i) {
    expand(*node);
    SiteEdge *site = nullptr;
    ValueEdge *value = Graph::findOrAdd(*node, recipe[i], site);
    if (!value->child) {
      std::vector<Application> application = {{node, recipe[i]}};
      applyAll(application);
      value->child = application[0].to;
      value->dead = application[0].refused || value->child == node;
    }
    if (!value->child || value->dead)
      return nullptr;
    path.push_back({node, site, value});
    node = value->child;
  }
  return node;
}

void Session::tryRecipes() {
  while (!stopReason()) {
    std::vector<Recipe> wanted = proposer.recipes();
    if (wanted.empty())
      return;
    tryAll(wanted);
  }
}

void Session::tryAll(const std::vector<Recipe> &recipes) {
  for (const Recipe &recipe : recipes) {
    // What is known already is told again: the proposer waits for it.
    Path path;
    Node *end = follow(recipe, path);
    if (!end) {
      proposer.refused(recipe, "it does not apply");
      continue;
    }
    if (end->measured)
      proposer.observe(end->state, *end->measured);
    else if (end->failed)
      proposer.refused(recipe, end->modelled ? end->modelled->why : "it failed before");
    evaluate({end});
    backUp(path, end);
  }
}

void Session::applyAll(std::vector<Application> &applications) {
  std::vector<std::optional<SearchState>> states(applications.size());
  std::vector<std::string> reasons(applications.size());
  parallelFor(applications.size(), [&](size_t i) {
    auto state = space.apply(applications[i].from->state, applications[i].action);
    if (state)
      states[i] = std::move(*state);
    else
      reasons[i] = llvm::toString(state.takeError());
  });
  for (size_t i = 0; i < applications.size(); ++i) {
    Application &application = applications[i];
    Recipe recipe = application.from->recipe;
    recipe.push_back(application.action);
    if (states[i]) {
      ++statistics.applied;
      bool known;
      application.to = graph.intern(std::move(*states[i]), std::move(recipe), known);
      statistics.transpositions += known;
    } else if (!reasons[i].empty()) {
      ++statistics.notApplicable;
      application.refused = true;
      tellRefused(recipe, reasons[i]);
    }
  }
}

bool Session::better(const Node &a, const Node &b) const { return a.measured->time.seconds < b.measured->time.seconds; }

void Session::foldModel(Node &node, Measurement measurement) {
  ++statistics.modelled;
  if (!measurement.isUsable()) {
    node.failed = node.exhausted = true;
    tellRefused(node.recipe, measurement.why.empty() ? verdictName(measurement.verdict) : measurement.why);
  }
  node.modelled = std::move(measurement);
}

void Session::fold(Node &node, Measurement measurement, bool recalled) {
  bool usable = measurement.isUsable();
  if (!usable)
    node.failed = node.exhausted = true;
  node.measured = std::move(measurement);
  node.state.measurement = &*node.measured;
  if (node.measured->verdict == Verdict::WrongResult)
    wrong.push_back(&node);
  if (&node != root) {
    ++statistics.evaluations;
    statistics.recalled += recalled;
    ++(!usable ? statistics.failed : node.measured->correct() ? statistics.correct : statistics.predicted);
  }
  if (usable && !node.measured->guardrails.empty() && better(node, *root))
    guarded.push_back(&node);
  if (usable) {
    double reward = node.measured->reward;
    node.best = std::max(node.best.value_or(reward), reward);
    lowest = std::min(lowest, reward);
    highest = std::max(highest, reward);
  }
  bool improved = &node != root && node.isConfirmed() && better(node, *best);
  if (improved)
    best = &node;
  proposer.observe(node.state, *node.measured);
  if (evaluated && usable)
    evaluated(node);
  if (observer)
    observer->evaluated({&node == root ? 0 : statistics.evaluations, node.recipe, node.state.key, *node.measured,
                         recalled, improved, elapsed()});
}

std::optional<Measurement> Session::measure(const SearchState &state, const Recipe &recipe, Fidelity fidelity,
                                            bool &recalled) {
  std::unique_lock lock(callbackMutex);
  if (std::optional<Measurement> known = memory ? memory->recall(state.key, fidelity) : std::nullopt) {
    recalled = true;
    return known;
  }
  if (observer)
    observer->started(recipe, fidelity);
  lock.unlock();
  Measurement measurement = evaluator.evaluate(*state.variant, fidelity);
  // A failure while being cancelled, or for lack of time, says nothing about the variant.
  if (!measurement.isUsable() && outOfTime())
    return std::nullopt;
  lock.lock();
  if (memory) // at once: a search that is killed loses nothing
    memory->remember(state.key, fidelity, recipe, measurement);
  return measurement;
}

void Session::evaluateAt(const std::vector<Node *> &nodes, Fidelity fidelity,
                         llvm::function_ref<void(Node &, Measurement, bool recalled)> done, double until) {
  std::vector<std::optional<Measurement>> results(nodes.size());
  std::unique_ptr<bool[]> recalled(new bool[nodes.size()]());
  parallelFor(
      nodes.size(), [&](size_t i) { results[i] = measure(nodes[i]->state, nodes[i]->recipe, fidelity, recalled[i]); },
      until);
  for (size_t i = 0; i < nodes.size(); ++i)
    if (results[i])
      done(*nodes[i], std::move(*results[i]), recalled[i]);
  takeBack();
}

void Session::takeBack() {
  for (auto &[key, measurement] : evaluator.withdrawn()) {
    Node *node = graph.find(key);
    if (!node || node == root || node->failed)
      continue;
    tellRefused(node->recipe, std::string(verdictName(measurement.verdict)) + ": " + measurement.why);
    node->failed = node->exhausted = true;
    if (!measurement.missedKernels.empty() && better(*node, *root))
      untested.push_back(node);
    if (measurement.verdict == Verdict::WrongResult)
      wrong.push_back(node);
    node->measured = std::move(measurement);
    node->best.reset();
    --statistics.correct;
    ++statistics.failed;
  }
  if (!best || !best->failed)
    return;
  best = root;
  for (Node &node : graph.all())
    if (node.isConfirmed() && better(node, *best))
      best = &node;
}

template <typename Wanted> static std::vector<Node *> distinct(const std::vector<Node *> &nodes, Wanted wanted) {
  std::vector<Node *> result;
  for (Node *node : nodes)
    if (wanted(*node) && std::find(result.begin(), result.end(), node) == result.end())
      result.push_back(node);
  return result;
}

void Session::model(const std::vector<Node *> &nodes, double until) {
  evaluateAt(
      distinct(nodes, [](const Node &n) { return !n.failed && !n.measured && !n.modelled; }), Fidelity::Model,
      [&](Node &node, Measurement measurement, bool) { foldModel(node, std::move(measurement)); }, until);
}

void Session::standIn(Node &node) {
  static constexpr double hopeless = 1000;
  node.measured = *root->measured;
  node.measured->verdict = Verdict::Predicted; // it can be no winner
  node.measured->time.seconds *= hopeless;
  node.state.measurement = &*node.measured;
}

void Session::evaluate(const std::vector<Node *> &nodes) {
  for (Node *node : nodes)
    if (node->state.isSketch && !node->failed && !node->measured)
      standIn(*node);
  std::vector<Node *> todo = distinct(nodes, [](const Node &n) { return !n.failed && !n.measured; });
  if (settings.evaluations)
    todo.resize(allowance(unsigned(todo.size())));
  if (settings.verifyWithin <= 0)
    return evaluateAt(todo, Fidelity::Verified, [&](Node &node, Measurement measurement, bool recalled) {
      fold(node, std::move(measurement), recalled);
    });
  // Predictions alone are worth nothing: while none was verified, half of the time is kept for that.
  model(todo, settings.seconds > 0 && best == root ? unverifiedShare * settings.seconds : HUGE_VAL);
  std::erase_if(todo, [](const Node *node) { return !node->modelled; }); // there was no time
  double fastest = best->measured->time.seconds;
  Verifications verified = verifyPromising(todo, fastest);
  for (Node *node : todo) {
    auto own = verified.find(node);
    if (own != verified.end())
      fold(*node, std::move(own->second.first), own->second.second);
    else if (!isPromising(*node, fastest)) // else there was no time
      fold(*node, *node->modelled, /*recalled=*/false);
  }
}

bool Session::isPromising(const Node &node, double seconds) const {
  const Measurement &m = *node.modelled;
  return m.isUsable() && m.guardrails.empty() && m.time.seconds < settings.verifyWithin * seconds;
}

/// What is predicted to be fastest first: once that is correct, the others are not worth the proof.
Session::Verifications Session::verifyPromising(std::vector<Node *> nodes, double &fastest) {
  Verifications verified;
  std::erase_if(nodes, [&](const Node *node) { return !isPromising(*node, fastest); });
  stableSort(nodes, [](const Node *a, const Node *b) { return a->modelled->time.seconds < b->modelled->time.seconds; });
  for (size_t first = 0; first < nodes.size(); first += verifiedTogether) {
    std::vector<Node *> next(nodes.begin() + long(first),
                             nodes.begin() + long(std::min(nodes.size(), first + verifiedTogether)));
    std::erase_if(next, [&](const Node *node) { return !isPromising(*node, fastest); });
    evaluateAt(next, Fidelity::Verified, [&](Node &node, Measurement m, bool recalled) {
      if (m.isUsable() && m.correct() && m.guardrails.empty())
        fastest = std::min(fastest, m.time.seconds);
      verified[&node] = {std::move(m), recalled};
    });
  }
  return verified;
}

void Session::preferSimpler() {
  if (best == root)
    return;
  // What is only tested comes after what is proven.
  auto simplicity = [](const Node &node) { return std::pair(node.state.variant->testedOnly(), node.recipe.size()); };
  double limit = settings.simplerWithin * best->measured->time.seconds;
  std::vector<Node *> simpler;
  for (Node &node : graph.all())
    if (&node != root && node.measured && node.measured->isUsable() && !node.failed &&
        node.measured->guardrails.empty() && node.measured->time.seconds <= limit &&
        simplicity(node) < simplicity(*best))
      simpler.push_back(&node);
  stableSort(simpler, [&](const Node *a, const Node *b) {
    return simplicity(*a) != simplicity(*b) ? simplicity(*a) < simplicity(*b) : better(*a, *b);
  });
  for (Node *node : simpler) {
    if (!node->isConfirmed()) {
      if (settings.cancel && settings.cancel->load())
        return;
      node->measured.reset();
      evaluateAt({node}, Fidelity::Verified, [](Node &n, Measurement m, bool) { n.measured = std::move(m); });
      if (!node->measured || !node->isConfirmed()) {
        node->failed = true;
        continue;
      }
    }
    best = node;
    return;
  }
}

static Candidate candidateOf(const Node &node) {
  return {node.state.variant, node.recipe, node.state.key, *node.measured};
}

SearchResult Session::finish(StopReason stop) {
  SearchResult result;
  result.stop = stop;
  result.baseline = candidateOf(*root);
  std::vector<const Node *> ranked;
  for (const Node &node : graph.all())
    if (&node != root && node.isConfirmed())
      ranked.push_back(&node);
  stableSort(ranked, [&](const Node *a, const Node *b) { return better(*a, *b); });
  for (const Node *node : ranked)
    if (result.top.size() < settings.top)
      result.top.push_back(candidateOf(*node));
  Candidate winner = candidateOf(*best);
  result.improved = best != root && winner.speedup() >= settings.margin;
  result.best = result.improved ? winner : result.baseline;
  if (best != root && !result.improved)
    notes.push_back(
        llvm::formatv("the best variant is {0:f2} times as fast as the original, short of the margin {1:f2}",
                      winner.speedup(), settings.margin)
            .str());
  double fastest = result.best.measurement.time.seconds;
  bool late = stop == StopReason::Seconds || stop == StopReason::Cancelled;
  for (const Node &node : graph.all())
    if (late && !node.measured && !node.failed && node.modelled && node.modelled->isUsable() &&
        node.modelled->guardrails.empty() && node.modelled->time.seconds > 0 && node.modelled->time.seconds < fastest) {
      fastest = node.modelled->time.seconds;
      result.unproven = root->measured->time.seconds / fastest;
    }
  statistics.variants = unsigned(graph.size());
  statistics.seconds = elapsed();
  result.statistics = statistics;
  result.notes = notes;
  return result;
}
