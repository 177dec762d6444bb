//===- HttpProtocol.h - requests and answers of endpoints -------*- C++ -*-===//
//
// What OpenAI-compatible servers and Anthropic's want and say, as JSON; no network in here.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_LANGUAGEMODELS_HTTPPROTOCOL_H
#define OPTIML_LIB_LANGUAGEMODELS_HTTPPROTOCOL_H

#include "Endpoint.h"

namespace optiml {

/// What a server has been found not to take. Learnt from its answers of 400, kept for the run.
struct ServerLimits {
  bool noSchema = false; ///< then the schema stands in the prompt
  bool noTemperature = false;
  bool completionTokensName = false; ///< wants `max_completion_tokens` for `max_tokens`
};

nlohmann::json httpBody(const HttpTarget &target, const ChatRequest &request, const ServerLimits &limits);

/// The answer in a body of status 200.
llvm::Expected<ChatReply> readHttpAnswer(HttpProtocol protocol, llvm::StringRef body);

/// What a server's error says, in one bounded line.
std::string httpErrorText(llvm::StringRef body);

/// Whether a request that was refused with 400 can be put in another way: changes `limits`.
bool adaptTo(llvm::StringRef body, const ChatRequest &request, ServerLimits &limits);

} // namespace optiml

#endif
