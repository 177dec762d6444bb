//===- Workspace.cpp - what an agent has done with a program --------------===//
#include "Workspace.h"
#include "optiml/Core/Hash.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>

using namespace optiml;
using namespace optiml::agent;
using nlohmann::json;

static constexpr size_t longestAnswer = 4000; // in the log

static std::string textOf(const json &value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

static const char *backendName(BackendChoice backend) {
  return backend == BackendChoice::Gpu ? "gpu" : backend == BackendChoice::Cpu ? "cpu" : "auto";
}

llvm::Expected<std::unique_ptr<Workspace>> Workspace::create(const std::string &folder, WorkbenchRequest request,
                                                             const std::string &source, unsigned evaluations) {
  std::unique_ptr<Workspace> made(new Workspace);
  for (unsigned tries = 0; made->folder.empty() && tries < 20; ++tries) {
    made->name = llvm::utohexstr(llvm::sys::Process::GetRandomNumber(), /*LowerCase=*/true, 8);
    const std::string own = folder + "/" + made->name;
    if (llvm::sys::fs::create_directories(folder) || llvm::sys::fs::create_directory(own, /*IgnoreExisting=*/false))
      continue;
    made->folder = own;
  }
  if (made->folder.empty())
    return makeError("cannot create a folder in '{0}'", folder);
  made->opened = std::move(request);
  made->sourceHash = contentHash(source);
  made->evaluations = evaluations;
  if (llvm::Error e = made->save())
    return std::move(e);
  return made;
}

/// Lines of JSON; a last one that was cut off is left out.
static std::vector<json> linesOf(const std::string &file) {
  std::vector<json> lines;
  auto text = llvm::MemoryBuffer::getFile(file);
  if (!text)
    return lines;
  llvm::SmallVector<llvm::StringRef> parts;
  (*text)->getBuffer().split(parts, '\n', -1, /*KeepEmpty=*/false);
  for (llvm::StringRef part : parts)
    if (json line = json::parse(part.str(), nullptr, false); line.is_object())
      lines.push_back(std::move(line));
  return lines;
}

// Somebody may have changed the files by hand: members of another type count as missing.
static std::string wordOf(const json &object, const char *key) {
  auto found = object.find(key);
  return object.is_object() && found != object.end() && found->is_string() ? found->get<std::string>() : "";
}
static double numberOf(const json &object, const char *key) {
  auto found = object.find(key);
  return object.is_object() && found != object.end() && found->is_number() ? std::max(0.0, found->get<double>()) : 0;
}

llvm::Expected<std::unique_ptr<Workspace>> Workspace::resume(const std::string &folder, const std::string &id) {
  if (id.empty() || id.size() > 32 || !llvm::all_of(id, [](char c) { return llvm::isHexDigit(c); }))
    return makeError("'{0}' is no id of a workspace", id.substr(0, 40));
  std::unique_ptr<Workspace> found(new Workspace);
  found->name = id;
  found->folder = folder + "/" + id;
  auto text = readFile(found->folder + "/workspace.json");
  if (!text)
    return makeError("there is no workspace {0}", id);
  const json about = json::parse(*text, nullptr, false);
  auto word = [&](const char *key) { return wordOf(about, key); };
  auto number = [&](const char *key) { return unsigned(numberOf(about, key)); };
  if (word("format") != "optiml-workspace")
    return makeError("'{0}/workspace.json' is no description of a workspace", found->folder);
  WorkbenchRequest &request = found->opened;
  request.path = word("source");
  request.programArguments = word("programArguments");
  request.kernel = word("kernel");
  for (const json &flag : about.value("nvccFlags", json::array()))
    if (flag.is_string())
      request.nvccFlags.push_back(flag.get<std::string>());
  request.backend = word("backend") == "gpu"   ? BackendChoice::Gpu
                    : word("backend") == "cpu" ? BackendChoice::Cpu
                                               : BackendChoice::Auto;
  found->sourceHash = word("sourceHash");
  found->evaluations = number("evaluations");
  found->used = number("used");
  found->submissions = number("submissions");
  found->kernelTexts = about.value("texts", json::object());
  auto source = readFile(request.path);
  if (!source)
    return source.takeError();
  if (contentHash(*source) != found->sourceHash)
    return makeError("'{0}' is not what it was when workspace {1} was opened; open the file anew", request.path, id);
  for (const json &line : linesOf(found->folder + "/attempts.jsonl"))
    found->done.push_back(
        {wordOf(line, "recipe"), wordOf(line, "verdict"), wordOf(line, "why"), numberOf(line, "speedup")});
  return found;
}

llvm::Error Workspace::save() const {
  const json about = {{"format", "optiml-workspace"},  {"version", 1},
                      {"source", opened.path},         {"sourceHash", sourceHash},
                      {"nvccFlags", opened.nvccFlags}, {"programArguments", opened.programArguments},
                      {"kernel", opened.kernel},       {"backend", backendName(opened.backend)},
                      {"evaluations", evaluations},    {"used", used},
                      {"submissions", submissions},    {"texts", kernelTexts}};
  return writeFileAtomically(folder + "/workspace.json", about.dump(1) + "\n");
}

void Workspace::append(const std::string &file, const json &line) const {
  std::error_code problem;
  llvm::raw_fd_ostream out(folder + "/" + file, problem, llvm::sys::fs::CD_OpenAlways, llvm::sys::fs::FA_Write,
                           llvm::sys::fs::OF_Append);
  if (!problem)
    out << textOf(line) << "\n";
  out.clear_error(); // the work is worth more than its log
}

json Workspace::texts() const {
  std::lock_guard lock(mutex);
  return kernelTexts;
}
std::vector<Attempt> Workspace::attempts() const {
  std::lock_guard lock(mutex);
  return done;
}
unsigned Workspace::left() const {
  std::lock_guard lock(mutex);
  return evaluations - std::min(evaluations, used);
}

unsigned Workspace::take(unsigned wanted) {
  std::lock_guard lock(mutex);
  const unsigned taken = std::min(wanted, evaluations - std::min(evaluations, used));
  used += taken;
  llvm::consumeError(save());
  return taken;
}

void Workspace::giveBack(unsigned unused) {
  std::lock_guard lock(mutex);
  used -= std::min(used, unused);
  llvm::consumeError(save());
}

void Workspace::add(const Attempt &attempt) {
  std::lock_guard lock(mutex);
  done.push_back(attempt);
  append(
      "attempts.jsonl",
      {{"recipe", attempt.recipe}, {"verdict", attempt.verdict}, {"why", attempt.why}, {"speedup", attempt.speedup}});
}

void Workspace::addText(const std::string &textName, const KernelText &text) {
  std::lock_guard lock(mutex);
  kernelTexts[textName] = toJson(text);
  llvm::consumeError(save());
}

void Workspace::log(const std::string &tool, const json &arguments, const json &answer, bool isError) {
  std::string said = textOf(answer);
  if (said.size() > longestAnswer)
    said = said.substr(0, longestAnswer) + " [...]";
  const auto now =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
  std::lock_guard lock(mutex);
  append("calls.jsonl",
         {{"time", now.count()}, {"tool", tool}, {"arguments", arguments}, {"isError", isError}, {"answer", said}});
}

llvm::Expected<std::string> Workspace::submit(const std::map<std::string, std::string> &files) {
  std::lock_guard lock(mutex);
  const std::string own = folder + "/submission-" + std::to_string(++submissions);
  if (std::error_code e = llvm::sys::fs::create_directory(own))
    return makeError("{0}: {1}", own, e.message());
  for (const auto &[file, text] : files)
    if (llvm::Error e = writeFileAtomically(own + "/" + file, text))
      return std::move(e);
  llvm::consumeError(save());
  return own;
}
