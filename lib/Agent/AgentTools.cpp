//===- AgentTools.cpp - the tools of optiml-mcp ---------------------------===//
#include "optiml/Agent/AgentTools.h"
#include "Answers.h"
#include "Jobs.h"
#include "OpenRequest.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/Path.h"

using namespace optiml;
using namespace optiml::agent;
using nlohmann::json;

namespace optiml {
extern const char *const agentSkillText, *const agentToolsText; // SKILL.md and tools.json
}

std::string AgentTools::instructions() { return agentSkillText; }

namespace {

/// What is open: jobs keep it while they run.
struct Open {
  std::shared_ptr<Job> opening; ///< ends what is under way when it is cancelled, as the server ends
  std::unique_ptr<Workspace> workspace;
  std::unique_ptr<Workbench> bench;
};

} // namespace

struct AgentTools::Impl {
  AgentSettings settings;
  Toolchain toolchain;
  std::mutex mutex; ///< of what follows
  std::shared_ptr<Open> current;
  Jobs jobs; ///< the last member: jobs end before what they use

  Impl(AgentSettings settings, Toolchain toolchain) : settings(std::move(settings)), toolchain(std::move(toolchain)) {}

  std::shared_ptr<Open> open() {
    std::lock_guard lock(mutex);
    return current;
  }
  /// Runs something on what is open, as a job; its answer is logged in the workspace.
  ToolAnswer work(const std::string &tool, const json &arguments, ToolCall &call,
                  std::function<ToolAnswer(Open &, Job &)> body);

  ToolAnswer openProgram(const json &arguments, ToolCall &call);
  ToolAnswer history(const json &arguments);
  ToolAnswer begin(std::unique_ptr<Workspace> workspace, Job &job);
  ToolAnswer program(Open &in, const json &arguments);
  ToolAnswer listActions(Open &in, const json &arguments);
  ToolAnswer explain(Open &in, const json &arguments);
  ToolAnswer show(Open &in, const json &arguments);
  ToolAnswer compile(Open &in, const json &arguments, Job &job);
  ToolAnswer profile(Open &in, const json &arguments, Job &job);
  ToolAnswer tryRecipe(Open &in, const json &arguments, Job &job);
  ToolAnswer tryKernel(Open &in, const json &arguments, Job &job);
  ToolAnswer tryProgram(Open &in, const json &arguments, Job &job);
  ToolAnswer evaluate(Open &in, const Recipe &recipe, Job &job);
  ToolAnswer tune(Open &in, const json &arguments, Job &job);
  ToolAnswer submit(Open &in, const json &arguments, Job &job);
};

AgentTools::AgentTools(AgentSettings settings, Toolchain toolchain)
    : impl(std::make_unique<Impl>(std::move(settings), std::move(toolchain))) {}
AgentTools::~AgentTools() = default;

static std::string textIn(const json &arguments, const char *name) {
  return arguments.contains(name) ? arguments.at(name).get<std::string>() : "";
}
static llvm::Expected<Recipe> recipeIn(const json &arguments) {
  const std::string text = textIn(arguments, "recipe");
  return text.empty() ? Recipe() : parseRecipe(text);
}
static ToolAnswer budgetSpent() { return refusal("the budget of evaluations is spent"); }
static llvm::Expected<SearchState> stateIn(Open &in, const json &arguments) {
  auto recipe = recipeIn(arguments);
  return recipe ? in.bench->apply(*recipe) : llvm::Expected<SearchState>(recipe.takeError());
}
static ToolAnswer refusalOf(llvm::Error why) { return refusal(llvm::toString(std::move(why))); }

ToolAnswer AgentTools::Impl::work(const std::string &tool, const json &arguments, ToolCall &call,
                                  std::function<ToolAnswer(Open &, Job &)> body) {
  std::shared_ptr<Open> in = open();
  if (!in)
    return refusal("no program is open; call open, and wait for it where it answers with a handle");
  return jobs.run(tool, settings.callSeconds, call, [in, tool, arguments, body = std::move(body)](Job &job) {
    ToolAnswer answer = body(*in, job);
    in->workspace->log(tool, arguments, answer.content, answer.isError);
    return answer;
  });
}

ToolAnswer AgentTools::Impl::openProgram(const json &arguments, ToolCall &call) {
  std::unique_ptr<Workspace> workspace;
  if (const std::string id = textIn(arguments, "workspace"); !id.empty()) {
    if (llvm::Error e = Workspace::resume(settings.workspaces, id).moveInto(workspace))
      return refusalOf(std::move(e));
    // The root may be another one than when it was made.
    if (llvm::Error e = checkRequest(workspace->request(), settings.root))
      return refusalOf(std::move(e));
  } else {
    auto request = readRequest(arguments, settings.root, settings.backend);
    if (!request)
      return refusalOf(request.takeError());
    auto source = readFile(request->path);
    if (!source)
      return refusalOf(source.takeError());
    if (llvm::Error e =
            Workspace::create(settings.workspaces, *request, *source, settings.evaluations).moveInto(workspace))
      return refusalOf(std::move(e));
  }
  if (jobs.running())
    return refusal("a job is under way; wait for it or cancel it before another program is opened");
  auto shared = std::make_shared<std::unique_ptr<Workspace>>(std::move(workspace));
  return jobs.run("open", settings.callSeconds, call,
                  [this, shared](Job &job) { return begin(std::move(*shared), job); });
}

ToolAnswer AgentTools::Impl::begin(std::unique_ptr<Workspace> workspace, Job &job) {
  job.tell("opening", {{"workspace", workspace->id()}});
  auto bench = Workbench::open(workspace->request(), toolchain, &job.cancelled(),
                               [&](const std::string &stage) { job.tell(stage); });
  if (!bench)
    return refusalOf(bench.takeError());
  const json texts = workspace->texts();
  for (const auto &[name, text] : texts.items())
    if (auto read = kernelTextFromJson(text))
      (*bench)->addText(std::move(*read));
    else
      llvm::consumeError(read.takeError());
  auto opened = std::make_shared<Open>(Open{job.shared_from_this(), std::move(workspace), std::move(*bench)});
  json answer = {{"workspace", opened->workspace->id()},
                 {"evaluationsLeft", opened->workspace->left()},
                 {"original", answerOf(opened->bench->baseline(), opened->bench->baseline())}};
  const json about = opened->bench->about();
  answer["kernels"] = json::array();
  for (const json &kernel : about.at("kernels"))
    answer["kernels"].push_back(kernel.at("name"));
  {
    std::lock_guard lock(mutex);
    current = opened;
  }
  opened->workspace->log("open", json::object(), answer, false);
  return {answer, false};
}

ToolAnswer AgentTools::Impl::program(Open &in, const json &arguments) {
  const std::string part = textIn(arguments, "part");
  const uint64_t offset = arguments.value("offset", uint64_t(0));
  if (part == "source")
    return {pageOf(in.bench->source(), offset), false};
  if (!part.empty() && part != "kernels")
    return refusal("part is \"kernels\" or \"source\"");
  return {in.bench->about(), false};
}

ToolAnswer AgentTools::Impl::listActions(Open &in, const json &arguments) {
  auto state = stateIn(in, arguments);
  return state ? ToolAnswer{actionsOf(*state, textIn(arguments, "filter")), false} : refusalOf(state.takeError());
}

ToolAnswer AgentTools::Impl::explain(Open &in, const json &arguments) {
  auto recipe = recipeIn(arguments);
  auto action = Action::parse(textIn(arguments, "action"));
  if (!recipe || !action)
    return refusalOf(llvm::joinErrors(recipe.takeError(), action.takeError()));
  recipe->push_back(*action);
  auto state = in.bench->apply(*recipe);
  if (!state)
    return {{{"legal", false}, {"why", llvm::toString(state.takeError())}}, false};
  json answer = {{"legal", true}, {"kernels", rewritesOf(*state->variant)}};
  for (json &kernel : answer["kernels"])
    kernel.erase("text");
  return {answer, false};
}

ToolAnswer AgentTools::Impl::show(Open &in, const json &arguments) {
  auto state = stateIn(in, arguments);
  if (!state)
    return refusalOf(state.takeError());
  if (arguments.value("whole", false))
    return {pageOf(state->variant->text, arguments.value("offset", uint64_t(0))), false};
  return {{{"kernels", rewritesOf(*state->variant)}}, false};
}

ToolAnswer AgentTools::Impl::compile(Open &in, const json &arguments, Job &job) {
  const std::string kind = textIn(arguments, "code");
  if (!kind.empty() && kind != "ptx" && kind != "sass")
    return refusal("code is \"ptx\" or \"sass\"");
  auto state = stateIn(in, arguments);
  if (!state)
    return refusalOf(state.takeError());
  job.tell("compiling");
  auto code = in.bench->compile(*state->variant, kind);
  if (!code)
    return refusalOf(code.takeError());
  json answer = {{"kernels", code->kernels}};
  if (!kind.empty())
    answer.update(pageOf(code->text, arguments.value("offset", uint64_t(0))));
  return {answer, false};
}

ToolAnswer AgentTools::Impl::evaluate(Open &in, const Recipe &recipe, Job &job) {
  job.tell("checking");
  auto state = in.bench->apply(recipe);
  if (!state)
    return refusalOf(state.takeError());
  if (!in.workspace->take(1))
    return budgetSpent();
  job.tell("compiling, verifying, timing", {{"stagesPassed", {"legal"}}});
  const Measurement measured = in.bench->evaluate(*state->variant);
  const Measurement &original = in.bench->baseline();
  in.workspace->add(attemptOf(recipe, measured, original));
  json answer = answerOf(measured, original);
  if (measured.correct())
    for (const std::string &kernel : in.bench->textsThatDidNotRun(*state->variant, measured))
      answer["warnings"].push_back("no launch that is timed runs the new text of " + kernel +
                                   "; show tells its conditions");
  answer["recipe"] = recipeText(recipe);
  answer["evaluationsLeft"] = in.workspace->left();
  return {answer, !measured.correct() && measured.verdict != Verdict::Predicted};
}

ToolAnswer AgentTools::Impl::tryRecipe(Open &in, const json &arguments, Job &job) {
  auto recipe = recipeIn(arguments);
  if (!recipe)
    return refusalOf(recipe.takeError());
  return recipe->empty() ? refusal("the recipe is empty: that is the original") : evaluate(in, *recipe, job);
}

ToolAnswer AgentTools::Impl::tryKernel(Open &in, const json &arguments, Job &job) {
  auto recipe = recipeIn(arguments);
  if (!recipe)
    return refusalOf(recipe.takeError());
  KernelText text;
  text.kernel = textIn(arguments, "kernel");
  text.body = textIn(arguments, "body");
  text.helpers = textIn(arguments, "helpers");
  for (auto [name, axes] : {std::pair("grid", &text.grid), {"block", &text.block}})
    if (arguments.contains(name)) {
      if (arguments.at(name).size() != 3)
        return refusal(std::string(name) + " has three expressions, for x, y and z");
      for (size_t i = 0; i < 3; ++i)
        (*axes)[i] = arguments.at(name)[i].get<std::string>();
    }
  if (arguments.contains("shared"))
    text.shared = textIn(arguments, "shared");
  const std::string name = in.bench->addText(text);
  in.workspace->addText(name, text);
  // A text stands in place of the original: what the recipe does to this kernel is for another one.
  std::erase_if(*recipe, [&](const Action &action) { return siteKernel(action.site) == text.kernel; });
  recipe->push_back({replaceBody, text.kernel, {{"text", name}}});
  return evaluate(in, *recipe, job);
}

ToolAnswer AgentTools::Impl::tryProgram(Open &in, const json &arguments, Job &job) {
  std::string changed = textIn(arguments, "text");
  if (const std::string file = textIn(arguments, "file"); !file.empty()) {
    if (!changed.empty())
      return refusal("either text or file, not both");
    auto path = pathBelow(file, settings.root);
    auto read = path ? readFile(*path) : llvm::Expected<std::string>(path.takeError());
    if (!read)
      return refusalOf(read.takeError());
    changed = *read;
  }
  if (!in.workspace->take(1))
    return budgetSpent();
  auto answer = in.bench->compareProgram(changed, arguments.value("seconds", 30.0), &job.cancelled(),
                                         [&](const std::string &stage) { job.tell(stage); });
  if (!answer)
    return refusalOf(answer.takeError());
  const double speedup = answer->after > 0 ? answer->before / answer->after : 0;
  in.workspace->add({"a changed program", verdictName(answer->report.verdict), answer->report.why, speedup});
  return {answerOf(answer->report, speedup), !answer->report.correct()};
}

ToolAnswer AgentTools::Impl::profile(Open &in, const json &arguments, Job &job) {
  auto state = stateIn(in, arguments);
  if (!state)
    return refusalOf(state.takeError());
  if (state->variant->rewrites.empty())
    return {profileOf(in.bench->baseline(), in.bench->baseline()), false};
  if (!in.workspace->take(1))
    return budgetSpent();
  job.tell("compiling, verifying, timing, reading counters");
  const Measurement measured = in.bench->examine(*state->variant);
  return {profileOf(measured, in.bench->baseline()), !measured.correct()};
}

namespace {
/// Tells a job how its search goes, and the workspace of every evaluation.
class TuneObserver : public SearchObserver {
public:
  TuneObserver(Open &in, Job &job) : in(in), job(job) {}
  void evaluated(const EvaluationRecord &record) override {
    if (!record.number)
      return;
    const Attempt attempt = attemptOf(record.recipe, record.measurement, in.bench->baseline());
    in.workspace->add(attempt);
    if (attempt.speedup > best) {
      best = attempt.speedup;
      recipe = attempt.recipe;
    }
    job.tell("evaluation " + std::to_string(record.number),
             {{"evaluations", record.number}, {"bestSoFar", {{"recipe", recipe}, {"speedup", best}}}});
  }

private:
  Open &in;
  Job &job;
  double best = 1;
  std::string recipe;
};
} // namespace

ToolAnswer AgentTools::Impl::tune(Open &in, const json &arguments, Job &job) {
  auto recipe = recipeIn(arguments);
  auto state = recipe ? in.bench->apply(*recipe) : llvm::Expected<SearchState>(recipe.takeError());
  if (!state)
    return refusalOf(state.takeError());
  const unsigned wanted = arguments.value("evaluations", 30u);
  const unsigned taken = in.workspace->take(wanted);
  if (!taken)
    return budgetSpent();
  TuneObserver observer(in, job);
  auto result = in.bench->tune(*recipe, {taken, arguments.value("seconds", 300.0), &job.cancelled()}, &observer);
  if (!result) {
    in.workspace->giveBack(taken);
    return refusalOf(result.takeError());
  }
  in.workspace->giveBack(taken - std::min(taken, result->statistics.evaluations));
  json top = json::array();
  for (const Candidate &candidate : result->top)
    if (top.size() < 5)
      top.push_back({{"recipe", recipeText(candidate.recipe)}, {"speedup", candidate.speedup()}});
  json answer = {{"evaluations", result->statistics.evaluations},
                 {"ended", stopReasonText(result->stop)},
                 {"improved", result->improved},
                 {"best", answerOf(result->best.measurement, in.bench->baseline())},
                 {"fastest", top},
                 {"evaluationsLeft", in.workspace->left()}};
  answer["best"]["recipe"] = recipeText(result->best.recipe);
  if (!result->notes.empty())
    answer["notes"] = result->notes;
  return {answer, false};
}

ToolAnswer AgentTools::Impl::submit(Open &in, const json &arguments, Job &job) {
  auto recipe = recipeIn(arguments);
  if (!recipe)
    return refusalOf(recipe.takeError());
  if (recipe->empty())
    return refusal("the recipe is empty: that is the original");
  job.tell("verifying all that a search verifies of its winner");
  auto outcome = in.bench->conclude(*recipe);
  if (!outcome)
    return refusalOf(outcome.takeError());
  const json own = {{"recipe", recipeText(*recipe)}, {"texts", in.bench->textsOf(*recipe)}};
  const std::string file = llvm::sys::path::filename(in.workspace->request().path).str();
  auto folder = in.workspace->submit(
      {{file, outcome->text},
       {"recipe.json", own.dump(1) + "\n"},
       {"report.json", outcome->summary.dump(1, ' ', false, json::error_handler_t::replace) + "\n"}});
  if (!folder)
    return refusalOf(folder.takeError());
  json answer = {{"program", *folder + "/" + file},
                 {"recipeFile", *folder + "/recipe.json"},
                 {"report", *folder + "/report.json"}};
  for (const char *key : {"speedup", "speedupLow", "speedupHigh", "programSpeedup", "verified", "programVerified"})
    if (outcome->summary.contains(key))
      answer[key] = outcome->summary[key];
  return {answer, false};
}

ToolAnswer AgentTools::Impl::history(const json &arguments) {
  auto in = open();
  if (!in)
    return refusal("no program is open");
  return {historyOf(*in->workspace, size_t(std::clamp(arguments.value("last", 20), 0, 500))), false};
}

std::vector<Tool> AgentTools::tools() {
  Impl *own = impl.get();
  auto quick = [own](const char *name, ToolAnswer (Impl::*body)(Open &, const json &)) {
    return [own, name, body](const json &arguments, ToolCall &call) {
      return own->work(name, arguments, call,
                       [own, body, arguments](Open &in, Job &) { return (own->*body)(in, arguments); });
    };
  };
  auto slow = [own](const char *name, ToolAnswer (Impl::*body)(Open &, const json &, Job &)) {
    return [own, name, body](const json &arguments, ToolCall &call) {
      return own->work(name, arguments, call,
                       [own, body, arguments](Open &in, Job &job) { return (own->*body)(in, arguments, job); });
    };
  };
  const std::map<std::string, std::function<ToolAnswer(const json &, ToolCall &)>> runs = {
      {"open", [own](const json &arguments, ToolCall &call) { return own->openProgram(arguments, call); }},
      {"program", quick("program", &Impl::program)},
      {"list_actions", quick("list_actions", &Impl::listActions)},
      {"explain", quick("explain", &Impl::explain)},
      {"show", quick("show", &Impl::show)},
      {"compile", slow("compile", &Impl::compile)},
      {"try_recipe", slow("try_recipe", &Impl::tryRecipe)},
      {"try_kernel", slow("try_kernel", &Impl::tryKernel)},
      {"try_program", slow("try_program", &Impl::tryProgram)},
      {"profile", slow("profile", &Impl::profile)},
      {"tune", slow("tune", &Impl::tune)},
      {"history", [own](const json &arguments, ToolCall &) { return own->history(arguments); }},
      {"submit", slow("submit", &Impl::submit)},
      {"wait",
       [own](const json &arguments, ToolCall &call) {
         return own->jobs.wait(textIn(arguments, "handle"), arguments.value("seconds", own->settings.callSeconds),
                               call);
       }},
      {"cancel", [own](const json &arguments, ToolCall &) { return own->jobs.cancel(textIn(arguments, "handle")); }}};
  std::vector<Tool> tools;
  for (json &tool : json::parse(agentToolsText)) {
    const std::string name = tool["name"];
    if (name == "wait")
      tool["inputSchema"]["properties"]["seconds"]["maximum"] = own->settings.callSeconds;
    tools.push_back({name, tool["title"], tool["description"], tool["inputSchema"], runs.at(name)});
  }
  return tools;
}

std::vector<Resource> AgentTools::resources() {
  Impl *own = impl.get();
  return {{"optiml://skill", "skill", "How to work with these tools", "text/markdown", [] { return instructions(); }},
          {"optiml://source", "source", "The program that is open", "text/x-cuda", [own] {
             auto in = own->open();
             return in ? in->bench->source() : std::string();
           }}};
}
