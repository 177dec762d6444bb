//===- OpenRequest.cpp - what an agent may open ---------------------------===//
#include "OpenRequest.h"
#include "optiml/Support/Error.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"

using namespace optiml;
using namespace optiml::agent;

llvm::Expected<std::string> optiml::agent::pathBelow(const std::string &path, const std::string &root) {
  llvm::SmallString<256> absolute(path), real, realRoot;
  llvm::sys::path::make_absolute(root, absolute);
  if (llvm::sys::fs::real_path(absolute, real) || llvm::sys::fs::real_path(root, realRoot))
    return makeError("'{0}' is not there", path);
  if (realRoot != "/")
    realRoot += "/";
  if (!real.starts_with(realRoot) && (real.str() + "/").str() != realRoot.str())
    return makeError("'{0}' lies outside of '{1}', the server's root", path, root);
  return real.str().str();
}

static llvm::Error checkFlag(llvm::StringRef flag, const std::string &root) {
  if (flag.consume_front("-I")) {
    auto folder = pathBelow(flag.str(), root);
    return folder ? llvm::Error::success() : folder.takeError();
  }
  static const char *const allowed[] = {"^-arch=(sm|compute)_[0-9]+[af]?$",
                                        "^-std=c\\+\\+[0-9]+$",
                                        "^-D[A-Za-z_][A-Za-z0-9_]*(=[A-Za-z0-9_.+-]*)?$",
                                        "^-O[0-3]$",
                                        "^--?use_fast_math$",
                                        "^-lineinfo$",
                                        "^--?maxrregcount=[0-9]+$",
                                        "^-l[A-Za-z0-9_]+$",
                                        "^--?extended-lambda$",
                                        "^--?expt-relaxed-constexpr$"};
  for (const char *pattern : allowed)
    if (llvm::Regex(pattern).match(flag))
      return llvm::Error::success();
  return makeError(
      "flag '{0}' is not among those that may be given: -IFOLDER, -DNAME=VALUE, -std=, -arch=, -O0 to -O3, "
      "-lNAME, --use_fast_math, -lineinfo, --maxrregcount=, --extended-lambda, --expt-relaxed-constexpr",
      flag.substr(0, 100));
}

llvm::Error optiml::agent::checkRequest(const WorkbenchRequest &request, const std::string &root) {
  if (auto path = pathBelow(request.path, root); !path)
    return path.takeError();
  if (!llvm::StringRef(request.path).ends_with(".cu"))
    return makeError("'{0}' is no .cu file", request.path);
  for (const std::string &flag : request.nvccFlags)
    if (llvm::Error e = checkFlag(flag, root))
      return e;
  std::string problem;
  if (!request.kernel.empty() && !llvm::Regex(request.kernel).isValid(problem))
    return makeError("kernel: '{0}' is no regular expression: {1}", request.kernel, problem);
  return llvm::Error::success();
}

llvm::Expected<WorkbenchRequest> optiml::agent::readRequest(const nlohmann::json &arguments, const std::string &root,
                                                            BackendChoice backend) {
  WorkbenchRequest request;
  request.backend = backend;
  request.path = arguments.value("source", std::string());
  if (request.path.empty())
    return makeError("open wants a source, or a workspace");
  auto path = pathBelow(request.path, root);
  if (!path)
    return path.takeError();
  request.path = *path;
  request.programArguments = arguments.value("arguments", std::string());
  request.kernel = arguments.value("kernel", std::string());
  request.nvccFlags = arguments.value("flags", std::vector<std::string>());
  for (std::string &flag : request.nvccFlags) // relative to the root, not to wherever the server runs
    if (llvm::StringRef folder = flag; folder.consume_front("-I") && !llvm::sys::path::is_absolute(folder))
      flag = "-I" + root + "/" + folder.str();
  if (llvm::Error e = checkRequest(request, root))
    return std::move(e);
  return request;
}
