//===- Jobs.cpp - walks through the graph, and what is at their ends ------===//
#include "Flow.h"

using namespace optiml;
using namespace optiml::search;

void Session::takeSteps(Walk &walk, SearchState state, size_t depth) const {
  bool refused = false;
  while (walk.next && walk.steps.size() + depth < mostActions && !outOfTime()) {
    std::optional<Action> action = walk.next(state, refused);
    if (!action)
      break;
    auto after = space.apply(state, *action);
    refused = !after;
    if (!after) {
      llvm::consumeError(after.takeError());
      continue;
    }
    state = *after;
    walk.steps.emplace_back(std::move(*action), std::move(*after));
  }
}

void Session::walkAll(std::vector<Walk> &walks) {
  parallelFor(walks.size(), [&](size_t i) { takeSteps(walks[i], walks[i].from->state, walks[i].from->recipe.size()); });
}

Path Session::enter(const Walk &walk, Node *&end) {
  Path path;
  end = walk.from;
  for (const auto &[action, state] : walk.steps) {
    if (!end->expanded && !end->state.legal.offers(action))
      break;
    SiteEdge *site = nullptr;
    ValueEdge *value = end->expanded ? Graph::find(*end, action, &site) : Graph::findOrAdd(*end, action, site);
    if (!value)
      break;
    Recipe recipe = end->recipe;
    recipe.push_back(action);
    bool known;
    Node *child = graph.intern(state, std::move(recipe), known);
    ++statistics.applied;
    statistics.transpositions += known && value->child != child;
    value->child = child;
    path.push_back({end, site, value});
    end = child;
  }
  return path;
}

void Session::backUp(const Path &path, Node *end) {
  ++end->visits;
  std::optional<double> value = end->best;
  for (auto step = path.rbegin(); step != path.rend(); ++step) {
    ++step->node->visits;
    ++step->site->visits;
    ++step->value->visits;
    if (value && (!step->node->best || *step->node->best < *value))
      step->node->best = value;
  }
}

void Session::run(std::vector<Job> jobs) {
  if (flow) {
    for (Job &job : jobs)
      flow->add(std::move(job));
    return flow->settle(flow->capacity() - 1);
  }
  std::vector<Walk> walks;
  for (const Job &job : jobs)
    walks.push_back(job.walk);
  walkAll(walks);
  std::vector<Node *> ends(jobs.size()), wanted;
  std::vector<Path> walked(jobs.size());
  for (size_t i = 0; i < jobs.size(); ++i)
    if (!jobs[i].isWanted || jobs[i].isWanted(walks[i])) {
      walked[i] = enter(walks[i], ends[i]);
      wanted.push_back(ends[i]);
    }
  evaluate(wanted);
  for (size_t i = 0; i < jobs.size(); ++i)
    finishJob(jobs[i], ends[i], walked[i]);
}

void Session::finishJob(const Job &job, Node *end, const Path &walked) {
  if (end) {
    Path path = job.path;
    path.insert(path.end(), walked.begin(), walked.end());
    backUp(path, end);
  }
  if (job.done)
    job.done(end);
}

unsigned Session::room() {
  if (!flow)
    return allowance(settings.batch);
  do
    flow->settle(flow->capacity() - 1);
  while (!allowance(1) && awaitOne()); // what is under way may not count in the end
  return allowance(unsigned(flow->capacity() - flow->size()));
}

bool Session::awaitOne() {
  if (!flow || !flow->size())
    return false;
  flow->settle(flow->size() - 1);
  return true;
}

void Session::awaitAll() {
  if (flow)
    flow->settle(0);
}
