//===- AuthorPrompts.cpp - what models are asked to write -----------------===//
#include "AuthorPrompts.h"
#include "EmbeddedFile.h"
#include "optiml/Propose/Answers.h"
#include "optiml/Propose/Prompt.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/StringExtras.h"
#include <set>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;
using nlohmann::json;

static json schema(const char *file) { return json::parse(resource(file)); }

static ChatRequest question(const char *purpose, const std::string &role, const Prompt &prompt,
                            const AuthorOptions &options) {
  return chatRequest(purpose, role, prompt, {options.promptTokens, options.answerTokens});
}

ChatRequest optiml::gen::taskQuestion(const AuthorOptions &options) {
  Prompt prompt;
  prompt.add(0, "# What somebody asks for\n" + quoted("request", options.request));
  prompt.add(0, resource("task.txt"));
  ChatRequest request = question("generate/task", resource("task-role.txt"), prompt, options);
  request.schema = schema("task.json");
  return request;
}

/// "softmax(rows, cols, axis=row|column; float double half): softmax of every row", a line each.
static std::string listed(const Library &library) {
  std::string result;
  for (const Operation &op : library.operations()) {
    if (!op.isPublic())
      continue;
    std::string options;
    for (const Option &option : optionsOf(op, library)) {
      if (option.kind == Option::Kind::Type || (op.isStage && option.kind != Option::Kind::Constant))
        continue;
      options += (options.empty() ? "" : ", ") + option.name;
      if (option.kind == Option::Kind::Choice)
        options += "=" + llvm::join(option.values, "|");
      options += option.required ? "!" : "";
    }
    result +=
        op.name + (op.isStage ? "*" : "") + "(" + options + "; " + llvm::join(op.types, " ") + "): " + op.title + "\n";
  }
  return result;
}

ChatRequest optiml::gen::requestQuestion(const AuthorOptions &options, const Library &library) {
  Prompt prompt;
  prompt.add(0, "# What somebody asks for\n" + quoted("request", options.request));
  prompt.add(0, resource("library.txt") + quoted("library", listed(library)));
  prompt.add(0, resource("request.txt"));
  ChatRequest request = question("generate/request", resource("request-role.txt"), prompt, options);
  request.schema = schema("request.json");
  return request;
}

llvm::Expected<ModelRequest> optiml::gen::readModelRequest(StringRef answer) {
  llvm::Expected<json> object = findAnswer(answer, "request");
  if (!object)
    return object.takeError();
  ModelRequest result;
  if ((*object)["request"].is_null()) {
    json why = object->value("none", json());
    result.none = why.is_string() ? oneLine(why.get<std::string>()) : "the model gives no reason";
    return result;
  }
  if (llvm::Error error = readRequest((*object)["request"]).moveInto(result.request))
    return error;
  return result;
}

static void addTask(Prompt &prompt, const ProgramTask &task, const AuthorOptions &options) {
  prompt.add(0, "# What somebody asks for\n" + quoted("request", options.request));
  prompt.add(0, "# What is to be computed\n" + quoted("definition", task.definition));
  std::string sizes;
  for (const ProgramTask::Argument &a : task.arguments)
    sizes += llvm::formatv("- {0}, default {1} (tried with {2} and {3})\n", a.name, a.asked, a.small, a.other).str();
  prompt.add(0, "# Arguments of the program, in this order\n" + (sizes.empty() ? "none\n" : sizes));
}

ChatRequest optiml::gen::planQuestion(const ProgramTask &task, const AuthorOptions &options) {
  Prompt prompt;
  addTask(prompt, task, options);
  prompt.add(0, resource("plan.txt"));
  return question("generate/plan", resource("plan-role.txt"), prompt, options);
}

static std::string filledIn(std::string text, StringRef name, const std::string &value) {
  if (size_t at = text.find(name); at != std::string::npos)
    text.replace(at, name.size(), value);
  return text;
}

static std::string rules(const ProgramTask &task) {
  std::string launch = task.signature.empty() ? "" : filledIn(resource("launch.txt"), "$SIGNATURE", task.signature);
  return filledIn(resource("rules.txt"), "$LAUNCH", launch);
}

ChatRequest optiml::gen::programQuestion(const ProgramTask &task, const AuthorOptions &options, StringRef example,
                                         StringRef plan) {
  Prompt prompt;
  addTask(prompt, task, options);
  if (!example.empty())
    prompt.add(1, "# A program in the wanted form for something similar\n" + quoted("example", example));
  if (!plan.empty())
    prompt.add(1, "# A plan for it\n" + quoted("plan", plan));
  prompt.add(0, rules(task));
  prompt.add(0, "# Answer\n{\"program\": \"the whole file\"}\n");
  const char *purpose = !plan.empty()      ? "generate/write-planned"
                        : !example.empty() ? "generate/write-example"
                                           : "generate/write";
  ChatRequest request = question(purpose, resource("writer-role.txt"), prompt, options);
  request.schema = schema("program.json");
  return request;
}

ChatRequest optiml::gen::repairQuestion(ChatRequest asked, StringRef answer, StringRef why) {
  asked.purpose = "generate/repair";
  asked.messages.resize(2); // the question, without earlier attempts
  // An answer that is far too long is not sent back.
  asked.messages.push_back({ChatMessage::Role::Assistant, answer.take_front(maxAnswerBytes / 4).str()});
  asked.messages.push_back({ChatMessage::Role::User,
                            "It was refused: " + why.str() + "\nAnswer with the whole JSON object again, mended.\n"});
  return asked;
}

static std::string whole(const json &value, int64_t most, int64_t &into) {
  if (!value.is_number_integer() || value.get<int64_t>() < 1 || value.get<int64_t>() > most)
    return "want a whole number from 1 to " + std::to_string(most);
  into = value.get<int64_t>();
  return "";
}

llvm::Expected<ProgramTask> optiml::gen::readTask(StringRef answer) {
  constexpr size_t mostSizes = 6, mostBytes = 8000;
  constexpr int64_t mostSmall = 1 << 16, mostAsked = (int64_t(1) << 31) - 1;
  llvm::Expected<json> object = findAnswer(answer, "definition");
  if (!object)
    return object.takeError();
  ProgramTask task;
  const json &definition = (*object)["definition"], sizes = object->value("sizes", json::array());
  if (!definition.is_string() || definition.get<std::string>().empty() || !sizes.is_array() || sizes.size() > mostSizes)
    return makeError("want \"definition\", a text, and \"sizes\", a list of at most {0}", mostSizes);
  task.definition = definition.get<std::string>().substr(0, mostBytes);
  std::set<std::string> names;
  for (const json &size : sizes) {
    ProgramTask::Argument argument;
    if (!size.is_object() || !size.value("name", json()).is_string())
      return makeError("a size is an object with \"name\", \"default\", \"small\" and \"other\"");
    argument.name = oneLine(size["name"].get<std::string>(), 40);
    for (auto [field, most, into] :
         {std::tuple("default", mostAsked, &argument.asked), std::tuple("small", mostSmall, &argument.small),
          std::tuple("other", mostSmall, &argument.other)})
      if (std::string wrong = whole(size.value(field, json()), most, *into); !wrong.empty())
        return makeError("the size {0}: \"{1}\": {2}", argument.name, field, wrong);
    if (!names.insert(argument.name).second)
      return makeError("there are two sizes {0}", argument.name);
    task.arguments.push_back(argument);
  }
  return task;
}

llvm::Expected<std::string> optiml::gen::readProgram(StringRef answer) {
  llvm::Expected<json> object = findAnswer(answer, "program");
  if (object && (*object)["program"].is_string())
    return (*object)["program"].get<std::string>();
  std::string why = object ? "\"program\" is no text" : llvm::toString(object.takeError());
  constexpr StringRef fence = "```";
  size_t begin = answer.size() <= maxAnswerBytes ? answer.find(fence) : StringRef::npos;
  if (begin == StringRef::npos)
    return makeError(why);
  StringRef inside = answer.drop_front(begin + fence.size());
  inside = inside.drop_front(std::min(inside.size(), inside.find('\n')));
  size_t end = inside.find(fence);
  if (end == StringRef::npos || !inside.contains("__global__"))
    return makeError(why);
  return inside.take_front(end).ltrim('\n').str();
}
