//===- CompileLog.cpp - the compilations of a build -----------------------===//
#include "optiml/Driver/CompileLog.h"
#include "optiml/Driver/Launcher.h"
#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sys/stat.h>
#include <unistd.h>

using namespace optiml;

static std::string quoted(const std::string &text) {
  std::string result = "\"";
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      snprintf(code, sizeof code, "\\u%04x", unsigned(c));
      result += code;
      continue;
    }
    if (c == '"' || c == '\\')
      result += '\\';
    result += c;
  }
  return result + "\"";
}

/// Names of CUDA sources, and of C++ ones where -x says that they are CUDA.
static std::vector<std::string> sourcesAmong(const std::vector<std::string> &arguments) {
  std::vector<std::string> sources;
  bool isCuda = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string &a = arguments[i];
    isCuda |= a == "-xcu" || a == "-x=cu" || a == "--x=cu" ||
              ((a == "-x" || a == "--x") && i + 1 < arguments.size() && arguments[i + 1] == "cu");
    if (a.starts_with("-"))
      continue;
    const bool isCpp = a.ends_with(".cpp") || a.ends_with(".cc") || a.ends_with(".cxx") || a.ends_with(".c");
    if (a.ends_with(".cu") || (isCuda && isCpp))
      sources.push_back(a);
  }
  return sources;
}

bool optiml::logCompile(const std::string &folder, const std::vector<std::string> &arguments, std::string &error) {
  char here[PATH_MAX] = "";
  auto fail = [&](const std::string &path) {
    error = path + ": " + std::strerror(errno);
    return false;
  };
  const bool makesObject = !onlyPreprocesses(arguments) && !hasFlag(arguments, {"-M", "--generate-dependencies", "-MM",
                                                                                "--generate-nonsystem-dependencies"});
  const std::vector<std::string> sources = sourcesAmong(arguments);
  if (!makesObject || sources.empty())
    return true;
  if (!getcwd(here, sizeof here))
    return fail("the current folder");
  std::string line, entries;
  for (const std::string &a : arguments)
    line += ", " + quoted(a);
  for (const std::string &source : sources)
    entries += (entries.empty() ? "[" : ",\n ") + ("{\"directory\": " + quoted(here)) +
               ", \"file\": " + quoted(source) + ", \"arguments\": [\"nvcc\"" + line + "]}";
  entries += "]\n";
  uint64_t hash = 0xcbf29ce484222325; // FNV-1a
  for (char c : entries)
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  char name[24];
  snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash));
  if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST)
    return fail(folder);
  const std::string path = folder + "/" + name + compileLogEnd, temporary = path + "." + std::to_string(getpid());
  FILE *file = fopen(temporary.c_str(), "w");
  if (!file)
    return fail(temporary);
  const bool isWhole = fwrite(entries.data(), 1, entries.size(), file) == entries.size();
  if (fclose(file) != 0 || !isWhole || rename(temporary.c_str(), path.c_str()) != 0) {
    fail(path);
    unlink(temporary.c_str());
    return false;
  }
  return true;
}
