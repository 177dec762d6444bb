//===- HttpTarget.cpp - where a URL of --optiml-llm leads -----------------===//
#include "Endpoint.h"
#include "optiml/Support/Error.h"

using namespace optiml;

static bool isLoopback(llvm::StringRef host) {
  return host == "localhost" || host == "[::1]" || host.starts_with("127.") || host.ends_with(".localhost");
}

/// `http://h`, `http://h/v1` and `http://h/v1/chat/completions` all name the same.
static std::string requestPath(llvm::StringRef path, HttpProtocol protocol) {
  llvm::StringRef last = protocol == HttpProtocol::Anthropic ? "/messages" : "/chat/completions";
  path = path.rtrim('/');
  if (path.ends_with(last))
    return path.str();
  return (path.empty() ? "/v1" : path.str()) + last.str();
}

llvm::Expected<HttpTarget> optiml::parseHttpTarget(llvm::StringRef text) {
  HttpTarget target;
  bool anthropic = text.consume_front("anthropic:");
  llvm::StringRef rest = text;
  target.encrypted = rest.consume_front("https://");
  if (!target.encrypted && !rest.consume_front("http://"))
    return makeError("a model's URL wants http:// or https://");
  size_t slash = rest.find('/');
  llvm::StringRef host = rest.substr(0, slash), path = slash == llvm::StringRef::npos ? "" : rest.substr(slash);
  if (rest.find_first_of("@?#") != llvm::StringRef::npos)
    return makeError("a model's URL holds no user, query or fragment: secrets belong in an environment variable "
                     "(--optiml-llm-key-env)");
  if (host.empty() || rest.find_first_of(" \t\r\n\"'\\") != llvm::StringRef::npos)
    return makeError("'{0}' is no URL of a model", text);
  target.host = host.lower();
  // Without the port; an IPv6 address is in brackets.
  llvm::StringRef bare = host.contains(']') ? host.substr(0, host.find(']') + 1) : host.split(':').first;
  target.loopback = isLoopback(bare);
  llvm::StringRef trimmed = path.rtrim('/');
  if (anthropic || bare == "api.anthropic.com" || trimmed.ends_with("/messages"))
    target.protocol = HttpProtocol::Anthropic;
  target.url = (target.encrypted ? "https://" : "http://") + target.host + requestPath(path, target.protocol);
  return target;
}
