//===- GenerateInvocation.cpp - optiml-gen's command line -----------------===//
#include "GenerateInvocation.h"
#include "optiml/LanguageModels/JsonAnswer.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include <nlohmann/json.hpp>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

namespace optiml {
extern const char *const generateHelpText;
}

static std::string optionLine(const Option &option) {
  std::string name = "--" + option.name, text;
  switch (option.kind) {
  case Option::Kind::Type:
  case Option::Kind::Choice: text = llvm::join(option.values, ", "); break;
  case Option::Kind::Size:
    text = "a size from " + std::to_string(option.least) + " to " + std::to_string(option.most) +
           (option.powerOfTwo ? ", a power of two" : "");
    break;
  case Option::Kind::Constant: text = "a number"; break;
  }
  if (!option.aliases.empty())
    text += " (" + llvm::join(option.aliases, ", ") + ")";
  text += option.required ? "; must be given" : option.initial.empty() ? "" : "; default " + option.initial;
  return "  " + name + std::string(name.size() < 20 ? 20 - name.size() : 1, ' ') + text + "\n";
}

std::string optiml::generateHelp(StringRef operation, const Library &library) {
  const Operation *op = library.findPublic(operation);
  if (!op)
    return generateHelpText;
  std::string result = op->name + ": " + op->title + "\n" + op->formula + (op->formula.empty() ? "\n" : "\n\n");
  for (const Option &option : optionsOf(*op, library))
    result += optionLine(option);
  bool before = op->fusesBefore || op->isStage, after = op->fusesAfter || op->isStage;
  return result + "\nIt takes " +
         (before && after ? "stages before and after it"
          : before        ? "stages before it"
          : after         ? "stages after it"
                          : "no stages") +
         ".\n";
}

namespace {

class Parser {
public:
  Parser(const Library &library, GenerateInvocation &into) : library(library), into(into) {}

  llvm::Error run(llvm::ArrayRef<char *> given);

private:
  llvm::Error flag(StringRef arg, llvm::ArrayRef<std::string> &rest);
  llvm::Expected<bool> limit(StringRef arg);
  bool mode(StringRef arg);
  llvm::Error stage(StringRef text, std::vector<StageRequest> &stages);
  llvm::Error option(StringRef arg);
  llvm::Error readRequestFile(StringRef path);
  llvm::Error finish();

  const Library &library;
  GenerateInvocation &into;
  std::vector<std::string> positional;
  std::string requestFile;
  bool wantsHelp = false;
};

} // namespace

/// "scale,factor=0.5"
llvm::Error Parser::stage(StringRef text, std::vector<StageRequest> &stages) {
  llvm::SmallVector<StringRef, 4> parts;
  text.split(parts, ',');
  StageRequest stage{parts[0].str(), {}};
  for (StringRef part : llvm::ArrayRef(parts).drop_front()) {
    auto [name, value] = part.split('=');
    if (name.empty() || value.empty())
      return makeError("--before and --after: '{0}': want NAME=VALUE behind the stage", part);
    stage.options[name.str()] = value.str();
  }
  stages.push_back(std::move(stage));
  return llvm::Error::success();
}

bool Parser::mode(StringRef arg) {
  using Mode = GenerateInvocation::Mode;
  const std::pair<StringRef, Mode> modes[] = {{"--explain", Mode::Explain},
                                              {"--candidates", Mode::Candidates},
                                              {"--list", Mode::List},
                                              {"--list=markdown", Mode::List},
                                              {"--schema", Mode::Schema}};
  for (auto [name, value] : modes)
    if (arg == name) {
      into.mode = value;
      into.markdown |= arg.ends_with("=markdown");
      return true;
    }
  return false;
}

/// --repairs and --time.
llvm::Expected<bool> Parser::limit(StringRef arg) {
  if (arg.consume_front("--repairs=")) {
    if (arg.getAsInteger(10, into.repairs) || into.repairs > 100)
      return makeError("--repairs={0}: want a number from 0 to 100", arg);
    return true;
  }
  if (arg.consume_front("--time=")) {
    if (arg.getAsDouble(into.seconds) || !(into.seconds > 0) || !(into.seconds <= 3600))
      return makeError("--time={0}: want a number of seconds, at most an hour", arg);
    return true;
  }
  return false;
}

/// Anything else with a value is an option of the operation.
llvm::Error Parser::option(StringRef arg) {
  auto [name, value] = arg.drop_front(2).split('=');
  if (!arg.starts_with("--") || name.empty() || !arg.contains('='))
    return makeError("unknown option {0}; --help shows them", arg);
  into.request.options[name.str()] = value.str();
  return llvm::Error::success();
}

llvm::Error Parser::flag(StringRef arg, llvm::ArrayRef<std::string> &rest) {
  if (mode(arg))
    return llvm::Error::success();
  llvm::Expected<bool> isLimit = limit(arg);
  if (!isLimit || *isLimit)
    return isLimit.takeError();
  if (arg == "--help" || arg == "-h")
    wantsHelp = true;
  else if (arg == "-o") {
    if (rest.empty())
      return makeError("-o needs a file");
    into.output = rest.front();
    rest = rest.drop_front();
  } else if (arg == "--optimize" || arg.starts_with("--optimize=")) {
    into.optimize = true;
    into.budget = arg.split('=').second.str();
  } else if (arg == "--no-nvcc")
    into.nvcc = false;
  else if (arg == "--ungated")
    into.gated = false;
  else if (arg.consume_front("--formula="))
    into.request.formula = arg.str();
  else if (arg.consume_front("--request="))
    requestFile = arg.str();
  else if (arg.consume_front("--before="))
    return stage(arg, into.request.before);
  else if (arg.consume_front("--after="))
    return stage(arg, into.request.after);
  else if (arg.starts_with("-") && arg.size() > 1 && !llvm::isDigit(arg[1]))
    return option(arg);
  else
    positional.push_back(arg.str());
  return llvm::Error::success();
}

llvm::Error Parser::readRequestFile(StringRef path) {
  llvm::ErrorOr<std::unique_ptr<llvm::MemoryBuffer>> file = llvm::MemoryBuffer::getFileOrSTDIN(path);
  if (!file)
    return makeError("{0}: {1}", path, file.getError().message());
  llvm::Expected<nlohmann::json> json = parseJsonWithin((*file)->getBuffer());
  if (!json)
    return makeError("{0}: {1}", path, llvm::toString(json.takeError()));
  llvm::Expected<Request> request = readRequest(*json);
  if (!request)
    return makeError("{0}: {1}", path, llvm::toString(request.takeError()));
  into.request = std::move(*request);
  return llvm::Error::success();
}

/// Which of the doors it is.
llvm::Error Parser::finish() {
  bool isNamed = positional.size() == 1 && library.findPublic(positional[0]);
  if (wantsHelp) {
    into.mode = GenerateInvocation::Mode::Help;
    into.helpFor = isNamed ? positional[0] : "";
    return llvm::Error::success();
  }
  unsigned doors = !positional.empty() + !requestFile.empty() + !into.request.formula.empty();
  bool wantsNone = into.mode == GenerateInvocation::Mode::List || into.mode == GenerateInvocation::Mode::Schema;
  if (doors != !wantsNone)
    return makeError("want one of: an operation, --formula, --request, or plain words; --help shows them");
  if (into.mode == GenerateInvocation::Mode::Candidates && positional.empty())
    return makeError("--candidates needs a request in plain words");
  if (!requestFile.empty()) {
    if (!into.request.options.empty() || !into.request.before.empty() || !into.request.after.empty())
      return makeError("--request takes its options from the file");
    return readRequestFile(requestFile);
  }
  if (isNamed && into.mode != GenerateInvocation::Mode::Candidates) {
    into.request.operation = positional[0];
  } else if (!positional.empty()) {
    into.words = llvm::join(positional, " ");
    if (!into.request.options.empty() || !into.request.before.empty() || !into.request.after.empty())
      return makeError(
          "'{0}' is no operation of the library, so that it has no option --{1}; --list shows what there is",
          into.words, into.request.options.empty() ? "before or --after" : into.request.options.begin()->first);
  }
  return llvm::Error::success();
}

llvm::Error Parser::run(llvm::ArrayRef<char *> given) {
  std::vector<std::string> argv;
  std::string error;
  into.own.search = true; // so that the environment's settings count
  if (!parseOwnFlags({given.begin(), given.end()}, processEnvironment(), into.own, argv, error))
    return makeError(error);
  if (into.own.isMemoryCommand())
    return makeError("--optiml-memory=import, export and stats are optiml-clang's");
  for (StringRef flag : given) // a model's key is gone from the environment by then
    if (flag.starts_with("--optiml-") && !flag.starts_with("--optiml-llm"))
      into.searchFlags.push_back(flag.str());
  for (llvm::ArrayRef<std::string> rest = argv; !rest.empty();) {
    StringRef arg = rest.front();
    rest = rest.drop_front();
    if (llvm::Error wrong = flag(arg, rest))
      return wrong;
  }
  if (into.optimize && into.output.empty())
    return makeError("--optimize needs -o FILE");
  if (!into.gated && !into.own.llm.models.empty())
    return makeError("--ungated is for the library's programs: what a model writes is not shown before it passed");
  return finish();
}

llvm::Expected<GenerateInvocation> optiml::parseGenerateInvocation(llvm::ArrayRef<char *> argv,
                                                                   const Library &library) {
  GenerateInvocation result;
  if (llvm::Error error = Parser(library, result).run(argv))
    return std::move(error);
  return result;
}
