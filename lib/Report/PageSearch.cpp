//===- PageSearch.cpp - the search: progress, transforms, tree, failures --===//
#include "PageParts.h"
#include "Plot.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <map>
#include <set>

using namespace optiml;
using namespace optiml::report;
using nlohmann::json;

namespace {
/// An evaluation, as the sections here see it.
struct Tried {
  size_t number = 0;
  std::string recipe, verdict, why;
  std::vector<std::string> actions;
  double speedup = 0, elapsed = 0;
  bool improved = false;
  /// Not a failure: it was verified, or predicted.
  bool stands() const { return verdict == "correct" || verdict == "predicted"; }
};

struct Node {
  std::string action;
  int tried = -1;
  std::vector<Node> children; ///< in the order in which they were met
  double best = 0;
};
} // namespace

static std::vector<std::string> actionsOf(llvm::StringRef recipe) {
  std::vector<std::string> actions(1);
  int depth = 0;
  for (char c : recipe) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (c == ';' && depth == 0)
      actions.emplace_back();
    else
      actions.back() += c;
  }
  if (actions.back().empty())
    actions.pop_back();
  return actions;
}

static std::vector<Tried> triedIn(const SearchLog &log) {
  std::vector<Tried> all;
  for (size_t i = 0; i < log.list("/evaluations").size(); ++i) {
    const std::string at = "/evaluations/" + std::to_string(i);
    Tried one{i, log.text(at + "/recipe"), log.text(at + "/verdict"), log.text(at + "/why")};
    one.actions = actionsOf(one.recipe);
    constexpr size_t longest = 64; // actions that a search takes
    if (one.actions.size() > longest)
      one.actions.clear();
    one.speedup = log.number(at + "/speedup");
    one.elapsed = log.number(at + "/elapsed");
    one.improved = log.at(at + "/improved") == true;
    all.push_back(std::move(one));
  }
  return all;
}

static std::string progressPlot(const std::vector<Tried> &all, bool bySeconds) {
  Plot plot;
  plot.title = bySeconds ? "Best so far over seconds" : "Best so far over evaluations";
  plot.xLabel = bySeconds ? "seconds" : "evaluations";
  plot.yLabel = "times as fast as the original";
  PlotLine line{{}, "", "best"};
  double best = 1;
  for (const Tried &one : all) {
    const double x = bySeconds ? one.elapsed : double(one.number);
    if (one.stands() && one.speedup > 0)
      plot.points.push_back({x, one.speedup, "",
                             (one.recipe.empty() ? "the original" : one.recipe) + ": " + ratio(one.speedup),
                             one.improved ? "winner" : "other"});
    line.points.emplace_back(x, best);
    if (one.improved)
      best = one.speedup;
    line.points.emplace_back(x, best);
  }
  plot.lines.push_back(std::move(line));
  return "<figure>" + plot.svg() + "</figure>\n";
}

/// How each transform did: also what it added where the recipe without it was tried, too.
static std::string transformTable(const std::vector<Tried> &all) {
  struct Use {
    unsigned count = 0;
    double best = 0, added = 0;
  };
  std::map<std::string, Use> uses;
  std::map<std::string, double> speedups;
  for (const Tried &one : all)
    if (one.stands())
      speedups.emplace(one.recipe, one.speedup);
  for (const Tried &one : all) {
    if (!one.stands())
      continue;
    std::set<std::string> names;
    for (const std::string &action : one.actions)
      names.insert(action.substr(0, action.find('[')));
    for (const std::string &name : names) {
      Use &use = uses[name];
      ++use.count;
      use.best = std::max(use.best, one.speedup);
    }
    if (one.actions.empty())
      continue;
    const std::string &last = one.actions.back();
    const std::string without = one.recipe.substr(0, one.recipe.size() - last.size() - (one.actions.size() > 1));
    if (auto known = speedups.find(without); known != speedups.end() && known->second > 0) {
      Use &use = uses[last.substr(0, last.find('['))];
      use.added = std::max(use.added, one.speedup / known->second);
    }
  }
  std::vector<std::pair<std::string, Use>> ranked(uses.begin(), uses.end());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto &a, const auto &b) { return a.second.best > b.second.best; });
  std::string rows;
  for (const auto &[name, use] : ranked)
    rows += row({"<code>" + escaped(name) + "</code>", transformPage(name).title, std::to_string(use.count),
                 ratio(use.best), use.added > 0 ? ratio(use.added) : "–"});
  return table({"Transform", "", "In variants", "Best with it", "Most that it added as the last step"}, rows);
}

static void insert(Node &root, const Tried &one) {
  Node *node = &root;
  node->best = std::max(node->best, one.stands() ? one.speedup : 0);
  for (const std::string &action : one.actions) {
    auto child = llvm::find_if(node->children, [&](const Node &c) { return c.action == action; });
    node = child == node->children.end() ? &node->children.emplace_back(Node{action}) : &*child;
    node->best = std::max(node->best, one.stands() ? one.speedup : 0);
  }
  if (node->tried < 0 || one.verdict == "correct")
    node->tried = int(one.number);
}

static std::string nodeText(const SearchLog &log, const Node &node) {
  std::string text = "<code>" + escaped(node.action) + "</code>";
  if (node.tried < 0)
    return text;
  const std::string at = "/evaluations/" + std::to_string(node.tried), verdict = log.text(at + "/verdict");
  text += " <span class=\"" + escaped(verdict) + "\">";
  if (verdict == "correct" || verdict == "predicted")
    text += shown(log, at + "/speedup", ratio) + " times, " + (verdict == "correct" ? "verified" : "predicted only") +
            (log.text(at + "/key") == log.text("/result/best/key") ? " <b>the winner</b>" : "");
  else
    text += escaped(verdict) + ": " + escaped(llvm::StringRef(log.text(at + "/why")).split('\n').first.take_front(160));
  return text + "</span>";
}

static std::string treeOf(const SearchLog &log, const Node &node, double best) {
  const std::string text = nodeText(log, node);
  if (node.children.empty())
    return "<div class=\"leaf\" tabindex=\"0\">" + text + "</div>\n";
  std::string inner;
  for (const Node &child : node.children)
    inner += treeOf(log, child, best);
  return details(text, inner, node.best >= best);
}

static std::string failures(const SearchLog &log, const std::vector<Tried> &all) {
  std::map<std::pair<std::string, std::string>, unsigned> reasons;
  for (const Tried &one : all)
    if (!one.stands())
      ++reasons[{one.verdict, llvm::StringRef(one.why).split('\n').first.take_front(240).str()}];
  for (const json &refused : log.list("/refused"))
    ++reasons[{"does not apply", llvm::StringRef(refused.value("why", "")).split('\n').first.take_front(240).str()}];
  if (reasons.empty())
    return "<p>Nothing that was tried failed.</p>\n";
  std::vector<std::pair<unsigned, std::pair<std::string, std::string>>> ranked;
  for (const auto &[reason, count] : reasons)
    ranked.push_back({count, reason});
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) { return a.first > b.first; });
  std::string rows;
  for (const auto &[count, reason] : ranked)
    rows += row({std::to_string(count), escaped(reason.first), escaped(reason.second)});
  return table({"Times", "What", "Why"}, rows);
}

std::string report::searchPart(const SearchLog &log) {
  const std::vector<Tried> all = triedIn(log);
  Node root;
  for (const Tried &one : all)
    insert(root, one);
  std::string tree;
  for (const Node &child : root.children)
    tree += treeOf(log, child, root.best);
  return progressPlot(all, false) + progressPlot(all, true) + "<h3>Transforms</h3>\n" + transformTable(all) +
         "<h3>The tree</h3>\n<p>Recipes, action by action, with the gain as it was when they were evaluated; the "
         "winner was measured again at the end. Arrow keys walk, Enter opens and closes.</p>\n<div "
         "class=\"tree\">\n" +
         tree + "</div>\n<h3>What failed</h3>\n" + failures(log, all);
}
