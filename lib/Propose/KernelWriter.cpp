//===- KernelWriter.cpp - a model writes a whole new kernel ---------------===//
#include "optiml/Propose/KernelWriter.h"
#include "PromptTexts.h"
#include "optiml/Propose/Answers.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"

using namespace optiml;
using nlohmann::json;

/// As plain ASCII: signs beyond it stand in comments, where they do not matter.
static std::string plainText(llvm::StringRef text) {
  std::string result;
  for (char c : text)
    if (c != '\r')
      result += (unsigned char)c < 0x80 ? c : '_';
  return result;
}

llvm::Expected<KernelText> optiml::readKernelText(llvm::StringRef text, const std::string &kernel) {
  auto object = findAnswer(text, "body");
  if (!object)
    return object.takeError();
  (*object)["kernel"] = kernel;
  auto read = kernelTextFromJson(*object);
  if (!read)
    return read;
  read->body = plainText(read->body);
  read->helpers = plainText(read->helpers);
  return read;
}

std::string optiml::kernelTextRules(const KernelFacts &kernel, bool allowAssembly) {
  std::string rules = promptText("write-rules.txt");
  auto fillIn = [&](llvm::StringRef name, llvm::StringRef value) {
    rules.replace(rules.find(name), name.size(), value);
  };
  fillIn("$TWIN", kernel.twin);
  fillIn("$ASSEMBLY", allowAssembly ? "" : "inline assembly, ");
  return "# What you write\nThe body of\n" +
         quoted("signature", "__global__ void " + kernel.twin + "(" + kernel.parameters + ")") + rules;
}

ChatRequest KernelWriter::writeRequest(const KernelFacts &facts, const std::string &plan,
                                       const History &history) const {
  Prompt prompt;
  if (const SearchState *root = history.rootState())
    addSituation(prompt, this->facts, *root);
  if (const SearchState *best = history.bestState())
    for (const KernelRewrite &rewrite : best->variant->rewrites)
      if (rewrite.original == facts.name)
        prompt.add(2, "# The fastest version of it so far\n" + quoted("current", rewrite.twinText));
  history.addTo(prompt);
  if (!plan.empty())
    prompt.add(0, "# Plan\n" + plan + "\n");
  prompt.add(0, kernelTextRules(facts, settings.allowAssembly));
  prompt.add(0, promptText("write-answer.txt"));
  return chatRequest("kernel/write", promptText("write-role.txt"), prompt,
                     {settings.promptTokens, settings.answerTokens}, answerSchema("kernel-text.json"));
}

static ChatRequest planRequest(const SearchFacts &facts, const History &history, const KernelWriterSettings &settings) {
  Prompt prompt;
  if (const SearchState *root = history.rootState())
    addSituation(prompt, facts, *root);
  history.addTo(prompt);
  prompt.add(0, promptText("plan-answer.txt"));
  return chatRequest("kernel/plan", promptText("plan-role.txt"), prompt, {settings.promptTokens, settings.answerTokens},
                     answerSchema("kernel-plan.json"));
}

void KernelWriter::settle(const std::string &outcome) {
  if (report)
    report({{"event", "kernel-text-outcome"}, {"text", name}, {"outcome", outcome}});
  kernel.clear();
  name.clear();
  failure.clear();
}

llvm::Expected<std::vector<Recipe>> KernelWriter::submit(llvm::Expected<ChatReply> reply, const std::string &purpose) {
  if (!reply) {
    settle("no answer");
    return reply.takeError();
  }
  lastAnswer = reply->text;
  auto text = readKernelText(reply->text, kernel);
  if (!text) {
    // The next call of next() asks for a repair of the answer's form.
    failure = "the answer cannot be read: " + llvm::toString(text.takeError());
    name = "unreadable";
    return std::vector<Recipe>();
  }
  json shown = toJson(*text);
  name = texts->add(std::move(*text));
  failure.clear();
  if (report)
    report({{"event", "kernel-text"}, {"purpose", purpose}, {"name", name}, {"text", std::move(shown)}});
  return std::vector<Recipe>{{Action{replaceBody, kernel, {{"text", name}}}}};
}

bool KernelWriter::isDue(const History &history) const {
  if (!kernel.empty())
    return !failure.empty();
  return started < settings.texts && history.evaluations() >= nextAt && !facts.kernels.empty();
}

llvm::Expected<std::vector<Recipe>>
KernelWriter::next(const History &history, llvm::function_ref<llvm::Expected<ChatReply>(const ChatRequest &)> ask) {
  while (!kernel.empty() && !failure.empty()) { // a text that failed
    if (repairsLeft == 0) {
      settle("given up: " + failure);
      break;
    }
    --repairsLeft;
    ++counts.repairs;
    ChatRequest repair = request;
    repair.purpose = "kernel/repair";
    // An answer that is far longer than was asked for is not sent back.
    repair.messages.push_back({ChatMessage::Role::Assistant, lastAnswer.substr(0, size_t(settings.answerTokens) * 6)});
    repair.messages.push_back({ChatMessage::Role::User,
                               "It was refused: " + failure + "\nAnswer with the whole JSON object again, mended.\n"});
    auto recipes = submit(ask(repair), repair.purpose);
    if (!recipes || !recipes->empty())
      return recipes;
  }
  if (!isDue(history))
    return std::vector<Recipe>();
  ++started;
  nextAt = history.evaluations() + settings.evaluations;
  const KernelFacts *chosen = &facts.kernels.front();
  std::string plan;
  auto planned = ask(planRequest(facts, history, settings));
  if (!planned)
    return planned.takeError();
  if (auto answer = findAnswer(planned->text, "plan")) {
    if (const json &text = (*answer)["plan"]; text.is_string())
      plan = oneLine(text.get<std::string>(), 4000);
    if (answer->contains("kernel") && (*answer)["kernel"].is_string())
      if (const KernelFacts *named = facts.find((*answer)["kernel"].get<std::string>()))
        chosen = named;
  } else {
    llvm::consumeError(answer.takeError());
  }
  kernel = chosen->name;
  repairsLeft = settings.repairs;
  ++counts.texts;
  request = writeRequest(*chosen, plan, history);
  auto recipes = submit(ask(request), request.purpose);
  if (recipes && recipes->empty())
    return next(history, ask); // mends the form; the number of repairs bounds this
  return recipes;
}

bool KernelWriter::isPending(const Recipe &recipe) const {
  return !name.empty() && recipe.size() == 1 && recipe[0] == Action{replaceBody, kernel, {{"text", name}}};
}

void KernelWriter::observe(const Recipe &recipe, const Measurement &m) {
  if (!isPending(recipe))
    return;
  bool good = m.verdict == Verdict::Correct && m.guardrails.empty(); // a prediction compares nothing
  counts.passed += good;
  if (m.verdict == Verdict::Correct || m.verdict == Verdict::Predicted)
    settle(verdictName(m.verdict));
  else
    failure = std::string(verdictName(m.verdict)) + ": " + oneLine(withoutFolders(m.why), 2000);
}

void KernelWriter::refused(const Recipe &recipe, const std::string &why) {
  if (isPending(recipe) && failure.empty()) // the first reason is the one that tells something
    failure = oneLine(withoutFolders(why), 2000);
}
