//===- NoHttp.cpp - a build without libcurl -------------------------------===//
#include "Endpoint.h"
#include "optiml/Support/Error.h"

using namespace optiml;

llvm::Expected<std::unique_ptr<Endpoint>> optiml::makeHttpEndpoint(HttpTarget target) {
  return makeError(
      "{0}: this build of OptiML has no HTTP (CMake's OPTIML_HTTP is off, as in the static bundle); exec:COMMAND "
      "and replay:FILE work",
      target.host);
}
