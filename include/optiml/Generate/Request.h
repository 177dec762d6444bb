//===- Request.h - what is to be written, said formally ---------*- C++ -*-===//
//
// A request names an operation of the library with its options, or gives a formula for element-wise work, and lists the
// stages before and after it. Command lines, JSON files, language models and plain words all end here; resolve() then
// checks it against the library. docs/formats.md describes the JSON form.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_GENERATE_REQUEST_H
#define OPTIML_GENERATE_REQUEST_H

#include "optiml/Generate/Operation.h"
#include <memory>
#include <nlohmann/json_fwd.hpp>

namespace optiml::gen {

/// Option to value, as a person writes it: {"rows", "4096"}, {"n", "1e6"}, {"type", "half"}.
using Options = std::map<std::string, std::string>;

struct StageRequest {
  std::string stage;
  Options options;
};

struct Request {
  std::string operation; ///< an operation or a stage of the library; empty: there is a formula
  std::string formula; ///< "out = alpha * x + y": names with a value among the options are constants, others are arrays
  Options options;
  std::vector<StageRequest> before, after;
};

/// Reads the JSON form. The error names the field.
llvm::Expected<Request> readRequest(const nlohmann::json &value);
nlohmann::json toJson(const Request &request);
/// JSON schema (draft 2020-12) of all requests that the library takes.
nlohmann::json requestSchema(const Library &library);
/// "optiml-gen softmax --rows=4096 --type=float", quoted for a shell.
std::string commandLine(const Request &request);

/// What may be said of an operation.
struct Option {
  enum class Kind { Type, Size, Constant, Choice } kind = Kind::Type;
  std::string name;
  std::vector<std::string> values; ///< Type, Choice: what it may be
  std::string initial;             ///< the default; empty: it must be given, or follows from another option
  int64_t least = 1, most = 1 << 30;
  bool powerOfTwo = false, required = false;
  std::vector<std::string> aliases;
};
/// In the order in which help shows them. Those of a stage that stands alone include the sizes of the array.
std::vector<Option> optionsOf(const Operation &operation, const Library &library);

/// One element-wise stage with its constants.
struct Stage {
  const Operation *operation = nullptr;
  std::map<std::string, double> reals;
};

/// A request with everything settled: which templates are filled in with what.
struct ProgramSpec {
  const Operation *operation = nullptr; ///< the operation, or the element-wise map that carries the stages
  std::string type;                     ///< "float", "long long", …
  std::map<std::string, int64_t> sizes; ///< all of the operation's
  std::map<std::string, double> reals;
  std::map<std::string, std::string> choices; ///< choice to value
  std::vector<Stage> before, after;
  std::shared_ptr<const Operation> formula; ///< owns the stage that a formula became; null: none
  Request request;                          ///< what it was made of
};

/// Checks the request against the library and fills in defaults. The error says what is wrong and what is offered.
llvm::Expected<ProgramSpec> resolve(const Request &request, const Library &library);

/// The library's spelling of a type ("fp16" is "half", "int64" is "long long"); empty when it is none.
std::string typeNamed(llvm::StringRef word);

} // namespace optiml::gen

#endif
