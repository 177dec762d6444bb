//===- SearchKey.cpp - what a search depends on ---------------------------===//
#include "ProposerChain.h"
#include "SearchRun.h"
#include "optiml/Core/Hash.h"
#include "optiml/Evaluate/Predict/Ptxas.h"
#include "optiml/Store/Store.h"
#include "optiml/Support/TempDir.h"

using namespace optiml;

const char *const optiml::searchVersion = OPTIML_VERSION;

/// What of the models decides a search's outcome, as far as that can be told.
static std::string proposerKey(const OwnFlags &flags, const ModelSession *models) {
  if (!models || models->models().empty() || !modelsPropose(flags))
    return "";
  std::string key = "|" + flags.proposer + "|" + modelPolicySettings(flags).str();
  for (const LanguageModel *model : models->models())
    key += "|" + model->name();
  return key;
}

SearchKey optiml::searchKeyOf(const OwnFlags &flags, const CompileOptions &options, const Program &device,
                              const Backend &backend, const ModelSession *models) {
  StoreContext context;
  context.sourceText = device.text();
  context.options = options.frontendFlags;
  context.options.push_back(options.archName);
  llvm::append_range(context.options, cubinFlags(options.nvccArgs));
  for (const std::string &header : device.headers())
    if (auto content = readFile(header))
      context.options.push_back(header + ":" + contentHash(*content));
    else
      llvm::consumeError(content.takeError());
  context.gpu = backend.gpuName();
  std::string args;
  for (const std::string &a : flags.programArgs)
    args += a + '\0';
  for (const std::string &folder : flags.workloads)
    if (auto recorded = readFile(folder + "/workload.json"))
      args += *recorded;
    else
      llvm::consumeError(recorded.takeError()); // which the search says
  context.workloadHash = contentHash(args);
  context.fpMode = flags.fp.str();
  context.backend =
      backend.storeName() + (flags.coldCache ? " cold" : "") + " " + (backend.measures() ? flags.profiler : "");
  context.version = searchVersion;
  SearchKey key;
  key.context = context.hash();
  key.search = contentHash(key.context + "|" + flags.kernel + "|" + flags.threads.str() + "|" + flags.recipe + "|" +
                           flags.strategy + "|" + std::to_string(flags.budget.evaluations) + "|" +
                           std::to_string(flags.budget.seconds) + "|" + std::to_string(flags.seed) + "|" +
                           std::to_string(flags.margin) + (flags.memory == MemoryUse::Off ? "|without memory" : "") +
                           proposerKey(flags, models));
  return key;
}
