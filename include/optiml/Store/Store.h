//===- Store.h - evaluations and searches that outlive a run ----*- C++ -*-===//
//
// One SQLite file. It holds every evaluation (so that nothing is evaluated twice), the outcome of every search (so that
// the same search again is instant), and what searches learnt (so that the next one on a similar kernel is faster).
// Each record is one transaction: killed at any point, the file holds exactly the records that were finished. Several
// processes may use one file.
//
// Every error names the file. A store is a convenience: callers go on without one.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_STORE_STORE_H
#define OPTIML_STORE_STORE_H

#include "optiml/Core/Interfaces.h"
#include "optiml/Core/Lesson.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

struct sqlite3;

namespace optiml {

/// What an evaluation depends on besides the variant. Equal contexts may share measurements.
struct StoreContext {
  std::string sourceText;
  std::vector<std::string> options; ///< of the compile command, those that reach the kernels, in order
  std::string gpu;                  ///< GpuSpec name, or the name of the measured card
  std::string workloadHash;
  std::string fpMode;  ///< FloatRule::str
  std::string backend; ///< "model" or "gpu": predictions and timings do not mix
  std::string version; ///< of OptiML
  std::string hash() const;
};

struct StoredEvaluation {
  std::string variantKey;
  Fidelity fidelity = Fidelity::Verified;
  Recipe recipe;
  Measurement measurement;
  int64_t time = 0; ///< seconds since 1970
};

struct StoredSearch {
  Recipe recipe;           ///< of the best variant; empty: the original stayed
  std::string emittedText; ///< what was handed to nvcc
  nlohmann::json summary;  ///< as the driver wrote it
  int64_t time = 0;        ///< seconds since 1970
};

class Store {
public:
  /// $XDG_CACHE_HOME/optiml/store.db, ~/.cache/optiml/store.db, or empty when neither variable is set.
  static std::string defaultPath();

  /// Opens or creates the file, and the folders it lies in.
  static llvm::Expected<std::unique_ptr<Store>> open(const std::string &path);
  ~Store();
  Store(const Store &) = delete;

  const std::string &path() const { return file; }
  /// What is worth knowing of its file system; empty: nothing.
  const std::string &note() const { return fileSystemNote; }

  llvm::Error addEvaluation(const std::string &context, const StoredEvaluation &evaluation);
  llvm::Expected<std::optional<StoredEvaluation>> findEvaluation(const std::string &context,
                                                                 const std::string &variantKey, Fidelity fidelity);
  /// Every evaluation of a context, oldest first.
  llvm::Expected<std::vector<StoredEvaluation>> evaluations(const std::string &context);

  /// Every context with evaluations, in the order of its first.
  llvm::Expected<std::vector<std::string>> contexts();

  /// `key` is a hash of the context and the search's settings.
  llvm::Error addSearch(const std::string &key, const std::string &context, const StoredSearch &search);
  llvm::Expected<std::optional<StoredSearch>> findSearch(const std::string &key);

  /// Joins what is known of the same kernel from the same source.
  llvm::Error addMemory(const KernelMemory &memory);
  /// The newest `most`, in an order that depends on their content alone.
  llvm::Expected<std::vector<KernelMemory>> memories(size_t most = 4096);

private:
  class Statement;
  Store(std::string file, sqlite3 *database) : file(std::move(file)), database(database) {}
  static llvm::Expected<std::unique_ptr<Store>> connect(const std::string &path);
  llvm::Error useLog();
  llvm::Error useJournal();
  llvm::Error prepareSchema();
  llvm::Error run(const char *sql);
  llvm::Expected<std::optional<KernelMemory>> findMemory(const std::string &source, const std::string &kernel);
  llvm::Error failure(const char *doing) const;

  std::string file, fileSystemNote;
  sqlite3 *database;
  std::mutex mutex;
};

/// The store as a search sees it: one context. The first failure is reported to `warn` and the store is left alone from
/// then on.
class StoredEvaluations : public EvaluationCache {
public:
  StoredEvaluations(Store &store, std::string context, std::function<void(const std::string &)> warn)
      : store(&store), context(std::move(context)), warn(std::move(warn)) {}
  std::optional<Measurement> recall(const std::string &variantKey, Fidelity fidelity) override;
  void remember(const std::string &variantKey, Fidelity fidelity, const Recipe &recipe,
                const Measurement &measurement) override;

private:
  void giveUp(llvm::Error error);
  Store *store;
  std::string context;
  std::function<void(const std::string &)> warn;
};

} // namespace optiml

#endif
