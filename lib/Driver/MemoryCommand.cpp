//===- MemoryCommand.cpp - --optiml-memory=import, export and stats -------===//
//
// The file is JSON: {"format": "optiml-memory", "version": 1, "memories": […]} (docs/formats.md). Files come from other
// people: size and count are bounded, everything is checked, and nothing is taken from a file that has a mistake.
//
//===----------------------------------------------------------------------===//
#include "MemoryUse.h"
#include "optiml/Core/JsonFields.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include <map>
#include <set>

using namespace optiml;
using nlohmann::json;

static constexpr uint64_t maxFileBytes = 64 << 20;
static constexpr size_t maxMemories = 4096;
static constexpr int maxNesting = 16;

/// Parsed without exceptions, and not deeper than a memory is: the parser's stack is bounded.
static llvm::Expected<json> readJson(const std::string &path) {
  uint64_t size = 0;
  if (std::error_code error = llvm::sys::fs::file_size(path, size))
    return makeError("{0}: {1}", path, error.message());
  if (size > maxFileBytes)
    return makeError("{0}: larger than {1} MiB; a memory is not", path, maxFileBytes >> 20);
  auto text = readFile(path);
  if (!text)
    return text.takeError();
  bool tooDeep = false;
  auto watch = [&](int depth, json::parse_event_t, json &) {
    tooDeep |= depth > maxNesting;
    return !tooDeep;
  };
  json value = json::parse(*text, watch, /*allow_exceptions=*/false);
  if (value.is_discarded() || tooDeep)
    return makeError("{0}: no JSON, or too deeply nested; want a file that --optiml-memory=export:FILE wrote", path);
  return value;
}

static llvm::Expected<std::vector<KernelMemory>> readMemories(const std::string &path) {
  auto value = readJson(path);
  if (!value)
    return value.takeError();
  JsonFields in(*value, "the file");
  std::string format;
  unsigned version = 0;
  in.text("format", format);
  in.number("version", version);
  if (in.ok() && (format != "optiml-memory" || version != 1))
    in.fail("the file's format is '" + format.substr(0, 40) + "' version " + std::to_string(version) +
            "; this OptiML reads 'optiml-memory' version 1");
  const json &list = in.array("memories");
  if (list.size() > maxMemories)
    in.fail("the file holds more than " + std::to_string(maxMemories) + " memories");
  if (llvm::Error error = in.take())
    return makeError("{0}: {1}", path, llvm::toString(std::move(error)));
  std::vector<KernelMemory> memories;
  for (size_t i = 0; i < list.size(); ++i) {
    auto memory = kernelMemoryFromJson(list[i]);
    if (!memory)
      return makeError("{0}: memory {1}: {2}; nothing was imported", path, i + 1, llvm::toString(memory.takeError()));
    memories.push_back(std::move(*memory));
  }
  return memories;
}

static llvm::Error importFrom(const std::string &path, Store &store) {
  auto memories = readMemories(path);
  if (!memories)
    return memories.takeError();
  for (const KernelMemory &memory : *memories)
    if (llvm::Error error = store.addMemory(memory))
      return error;
  llvm::outs() << "imported what was learnt on " << memories->size() << " kernels from " << path << " into "
               << store.path() << "\n";
  return llvm::Error::success();
}

static llvm::Error exportTo(const std::string &path, Store &store) {
  auto memories = store.memories(maxMemories);
  if (!memories)
    return memories.takeError();
  json list = json::array();
  for (const KernelMemory &memory : *memories)
    list.push_back(toJson(memory));
  json file = {{"format", "optiml-memory"}, {"version", 1}, {"memories", list}};
  if (llvm::Error error = writeFileAtomically(path, file.dump(1) + "\n"))
    return error;
  llvm::outs() << "exported what was learnt on " << memories->size() << " kernels to " << path << "\n";
  return llvm::Error::success();
}

static llvm::Error describe(Store &store) {
  auto memories = store.memories(maxMemories);
  if (!memories)
    return memories.takeError();
  struct Sum {
    double weight = 0, gain = 0, rejected = 0;
    std::set<const KernelMemory *> kernels;
  };
  std::map<std::string, Sum> transforms;
  size_t lessons = 0, lines = 0;
  for (const KernelMemory &memory : *memories) {
    lessons += memory.lessons.size();
    lines += memory.lines.size();
    for (const Lesson &lesson : memory.lessons) {
      Sum &sum = transforms[lesson.transform];
      sum.weight += lesson.weight;
      sum.rejected += lesson.rejected;
      sum.gain += lesson.gain * (lesson.weight - lesson.rejected);
      sum.kernels.insert(&memory);
    }
  }
  llvm::outs() << "memory of " << store.path() << ": " << memories->size() << " kernels, " << lessons << " lessons, "
               << lines << " recipes\n";
  if (transforms.empty())
    return llvm::Error::success();
  llvm::outs() << "  transform                     kernels  evaluations  mean speed-up  rejected\n";
  for (const auto &[name, sum] : transforms) {
    double ran = sum.weight - sum.rejected;
    llvm::outs() << llvm::formatv("  {0,-30}{1,7}{2,13:f1}{3,15:f2}{4,10:f1}\n", name, sum.kernels.size(), sum.weight,
                                  ran > 0 ? std::exp2(sum.gain / ran) : 1.0, sum.rejected);
  }
  return llvm::Error::success();
}

int optiml::runMemoryCommand(const OwnFlags &flags) {
  auto failed = [](llvm::Error error) {
    llvm::errs() << "optiml-clang: error: --optiml-memory: " << llvm::toString(std::move(error)) << "\n";
    return 1;
  };
  if (flags.store == "none")
    return failed(makeError("there is no memory without a store; leave out --optiml-store=none"));
  auto store = Store::open(storeFolderOf(flags) + "/store.db");
  if (!store)
    return failed(store.takeError());
  llvm::Error error = flags.memory == MemoryUse::Import   ? importFrom(flags.memoryFile, **store)
                      : flags.memory == MemoryUse::Export ? exportTo(flags.memoryFile, **store)
                                                          : describe(**store);
  return error ? failed(std::move(error)) : 0;
}
