//===- Exec.cpp - a local command as a model ------------------------------===//
#include "Endpoint.h"
#include "optiml/LanguageModels/JsonAnswer.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/Subprocess.h"
#include "llvm/Support/Allocator.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/StringSaver.h"

using namespace optiml;
using nlohmann::json;

namespace {

constexpr size_t longestAnswer = 4 << 20;

class ExecEndpoint : public Endpoint {
public:
  ExecEndpoint(std::vector<std::string> argv, std::string model) : argv(std::move(argv)), model(std::move(model)) {}
  std::string name() const override { return (model.empty() ? "" : model + " by ") + program(); }
  std::string place() const override { return "the command " + program(); }
  std::string priceName() const override { return model; }
  llvm::Expected<ChatReply> ask(const ChatRequest &request, Exchange &exchange) override;

private:
  std::string program() const { return "exec:" + argv.front(); } // arguments may be private
  std::vector<std::string> argv;
  std::string model;
};

std::string lastLine(llvm::StringRef text) {
  text = text.trim();
  return text.substr(text.rfind('\n') + 1).take_back(300).str(); // npos + 1 is the beginning
}

llvm::Expected<ChatReply> readAnswer(const std::string &output, const Exchange &exchange) {
  llvm::Expected<json> answer = parseJsonWithin(output, {longestAnswer, 32});
  if (!answer)
    return makeError("its answer cannot be read: {0}", llvm::toString(answer.takeError()));
  if (std::string error = textOf(*answer, "error"); !error.empty())
    return makeError("it says: {0}", llvm::StringRef(withoutKeys(exchange, error)).take_front(300));
  if (!answer->is_object() || !answer->contains("text") || !(*answer)["text"].is_string())
    return makeError("its answer has no string 'text' (docs/formats.md describes what is wanted)");
  ChatReply reply;
  reply.text = textOf(*answer, "text");
  reply.stop = textOf(*answer, "stop", "end");
  reply.promptTokens = countOf(*answer, "promptTokens");
  reply.completionTokens = countOf(*answer, "completionTokens");
  return reply;
}

llvm::Expected<ChatReply> ExecEndpoint::ask(const ChatRequest &request, Exchange &exchange) {
  json message = requestToJson(request);
  message["version"] = 1;
  message["purpose"] = request.purpose;
  message["model"] = model;
  ProcessOptions options;
  options.input = message.dump() + "\n";
  options.limits.seconds = exchange.seconds;
  options.limits.outputBytes = longestAnswer + 1;
  options.cancel = exchange.cancel;
  llvm::Expected<ProcessResult> child = runProcess(argv, options);
  if (!child)
    return child.takeError();
  exchange.perhapsBilled = !child->ok();
  if (!child->ok())
    return makeError("{0}{1}", child->describe(),
                     child->err.empty() ? "" : ": " + lastLine(withoutKeys(exchange, child->err)));
  return readAnswer(child->out, exchange);
}

} // namespace

llvm::Expected<std::unique_ptr<Endpoint>> optiml::makeExecEndpoint(llvm::StringRef command, const std::string &model) {
  llvm::BumpPtrAllocator allocator;
  llvm::StringSaver saver(allocator);
  llvm::SmallVector<const char *> words;
  llvm::cl::TokenizeGNUCommandLine(command, saver, words);
  std::vector<std::string> argv(words.begin(), words.end());
  if (argv.empty())
    return makeError("exec: names no command");
  std::string path = findOnPath(argv.front());
  if (path.empty())
    return makeError("exec:{0}: there is no such program", argv.front());
  return std::make_unique<ExecEndpoint>(std::move(argv), model);
}
