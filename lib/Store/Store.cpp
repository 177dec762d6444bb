//===- Store.cpp - evaluations and searches in one SQLite file ------------===//
#include "optiml/Store/Store.h"
#include "optiml/Core/Hash.h"
#include "optiml/Support/Error.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <sqlite3.h>
#include <thread>

using namespace optiml;
using nlohmann::json;

namespace optiml {
extern const char *const schemaOfVersion1; ///< schema-1.sql
extern const char *const addedInVersion2;  ///< schema-2.sql
} // namespace optiml

/// Marks the file as ours ("OpML" in ASCII), see sqlite.org/pragma.html#pragma_application_id.
static constexpr int applicationId = 0x4f704d4c;
/// Of the tables in schema-*.sql. Raise it with every change, and teach prepareSchema() the way from the one before.
static constexpr int schemaVersion = 2;

std::string StoreContext::hash() const {
  std::vector<std::string> parts{sourceText, gpu, workloadHash, fpMode, backend, version};
  parts.insert(parts.end(), options.begin(), options.end());
  return contentHash(parts);
}

/// One prepared statement; values are bound in order, columns read by number.
class Store::Statement {
public:
  Statement(sqlite3 *database, const char *sql) { status = sqlite3_prepare_v2(database, sql, -1, &statement, nullptr); }
  ~Statement() { sqlite3_finalize(statement); }
  Statement(const Statement &) = delete;

  Statement &bind(const std::string &value) {
    if (status == SQLITE_OK)
      status = sqlite3_bind_text64(statement, ++bound, value.data(), value.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
    return *this;
  }
  Statement &bind(int64_t value) {
    if (status == SQLITE_OK)
      status = sqlite3_bind_int64(statement, ++bound, value);
    return *this;
  }
  /// True when there is a row; look at ok() when not.
  bool step() {
    if (status == SQLITE_OK || status == SQLITE_ROW)
      status = sqlite3_step(statement);
    return status == SQLITE_ROW;
  }
  bool ok() const { return status == SQLITE_OK || status == SQLITE_ROW || status == SQLITE_DONE; }
  std::string text(int column) const {
    const unsigned char *data = sqlite3_column_text(statement, column);
    return data ? std::string(reinterpret_cast<const char *>(data), sqlite3_column_bytes(statement, column)) : "";
  }
  int64_t integer(int column) const { return sqlite3_column_int64(statement, column); }

private:
  sqlite3_stmt *statement = nullptr;
  int status, bound = 0;
};

static constexpr const char *remedy = "choose another with --optiml-store=FOLDER, or --optiml-store=none";

llvm::Error Store::failure(const char *doing) const {
  int code = sqlite3_errcode(database);
  std::string why = sqlite3_errmsg(database);
  if (int error = sqlite3_system_errno(database); error && (code == SQLITE_CANTOPEN || code == SQLITE_IOERR))
    why += " (" + std::generic_category().message(error) + ")";
  if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
    return makeError("cannot {0} the store '{1}': it is damaged or no OptiML store ({2}); move it away, or {3}", doing,
                     file, why, remedy);
  return makeError("cannot {0} the store '{1}': {2}; {3}", doing, file, why, remedy);
}

std::string Store::defaultPath() {
  std::string folder = userCacheFolder();
  return folder.empty() ? folder : folder + "/store.db";
}

llvm::Expected<std::unique_ptr<Store>> Store::open(const std::string &path) {
  if (path.empty())
    return makeError("no place for the store: neither XDG_CACHE_HOME nor HOME is set; {0}", remedy);
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (!folder.empty())
    if (std::error_code error = llvm::sys::fs::create_directories(folder))
      return makeError("cannot create the folder of the store '{0}': {1}; {2}", path, error.message(), remedy);
  auto store = connect(path);
  if (!store)
    return store;
  if (llvm::Error error = (*store)->useLog()) {
    const int code = sqlite3_errcode((*store)->database);
    if (code != SQLITE_IOERR && code != SQLITE_CANTOPEN && code != SQLITE_PROTOCOL)
      return std::move(error);
    store = connect(path);
    if (!store || llvm::errorToBool((*store)->useJournal())) {
      llvm::consumeError(store.takeError());
      return std::move(error);
    }
    llvm::consumeError(std::move(error));
  }
  if (llvm::Error error = (*store)->prepareSchema())
    return std::move(error);
  return store;
}

llvm::Expected<std::unique_ptr<Store>> Store::connect(const std::string &path) {
  sqlite3 *database = nullptr;
  int status = sqlite3_open_v2(path.c_str(), &database,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX, nullptr);
  std::unique_ptr<Store> store(new Store(path, database));
  if (!database)
    return makeError("cannot open the store '{0}': out of memory", path);
  if (status != SQLITE_OK)
    return store->failure("open");
  sqlite3_busy_timeout(database, 10000);
  if (sqlite3_db_readonly(database, "main") == 1)
    return makeError("cannot write the store '{0}': the file is read-only; {1}", path, remedy);
  return store;
}

Store::~Store() { sqlite3_close(database); }

llvm::Error Store::run(const char *sql) {
  return sqlite3_exec(database, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? llvm::Error::success()
                                                                             : failure("write");
}

static int64_t pragma(sqlite3 *database, const char *sql) {
  int64_t value = -1;
  sqlite3_exec(
      database, sql,
      [](void *into, int, char **values, char **) {
        *static_cast<int64_t *>(into) = values[0] ? strtoll(values[0], nullptr, 10) : -1;
        return 0;
      },
      &value, nullptr);
  return value;
}

/// The write-ahead log needs memory that processes share, which only a write tells: some network file systems refuse
/// it then.
llvm::Error Store::useLog() {
  constexpr unsigned attempts = 400; // of 25 ms; another process may be doing the same, for which SQLite does not wait
  for (unsigned i = 1; sqlite3_exec(database, "PRAGMA journal_mode=WAL;", nullptr, nullptr, nullptr) == SQLITE_BUSY;
       ++i) {
    if (i == attempts)
      return failure("write");
    std::this_thread::sleep_for(std::chrono::milliseconds(25));
  }
  if (sqlite3_errcode(database) != SQLITE_OK)
    return failure("write");
  if (llvm::Error error = run("PRAGMA synchronous=NORMAL; BEGIN IMMEDIATE;"))
    return error;
  const std::string same = std::to_string(std::max<int64_t>(0, pragma(database, "PRAGMA user_version;")));
  return run(("PRAGMA user_version=" + same + "; COMMIT;").c_str());
}

/// A rollback journal is as safe, and slower. A connection that is alone needs no shared memory to leave the log.
llvm::Error Store::useJournal() {
  fileSystemNote =
      "its file system cannot share memory among processes, so it uses a rollback journal, which is slower";
  return run("PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=DELETE; PRAGMA locking_mode=NORMAL; "
             "SELECT count(*) FROM sqlite_master;");
}

llvm::Error Store::prepareSchema() {
  // IMMEDIATE: two first runs at once must not both create the tables.
  if (llvm::Error error = run("BEGIN IMMEDIATE;"))
    return error;
  int64_t id = pragma(database, "PRAGMA application_id;"), version = pragma(database, "PRAGMA user_version;");
  int64_t objects = pragma(database, "SELECT count(*) FROM sqlite_master;");
  auto refuse = [&](llvm::Error error) {
    llvm::consumeError(run("ROLLBACK;"));
    return error;
  };
  if (objects < 0)
    return refuse(failure("read"));
  if (objects > 0 && id != applicationId)
    return refuse(makeError("'{0}' is an SQLite file, but no OptiML store; {1}", file, remedy));
  if (version > schemaVersion)
    return refuse(makeError("the store '{0}' was written by a newer OptiML (format {1}, this one knows {2}); {3}", file,
                            version, schemaVersion, remedy));
  if (objects == 0 || version < schemaVersion) {
    std::string create = objects == 0 ? schemaOfVersion1 : "";
    create += std::string(addedInVersion2) + "PRAGMA application_id=" + std::to_string(applicationId) +
              "; PRAGMA user_version=" + std::to_string(schemaVersion) + ";";
    if (llvm::Error error = run(create.c_str()))
      return refuse(std::move(error));
  }
  return run("COMMIT;");
}

/// Text that is no JSON reads as a discarded value, which every reader refuses.
static json parseStored(const std::string &text) { return json::parse(text, nullptr, /*allow_exceptions=*/false); }

static std::string dumpStored(const json &value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

llvm::Error Store::addEvaluation(const std::string &context, const StoredEvaluation &evaluation) {
  std::lock_guard lock(mutex);
  Statement insert(database, "INSERT OR REPLACE INTO evaluations VALUES(?,?,?,?,?,?)");
  insert.bind(context).bind(evaluation.variantKey).bind(int64_t(evaluation.fidelity));
  insert.bind(dumpStored(toJson(evaluation.recipe))).bind(dumpStored(toJson(evaluation.measurement)));
  insert.bind(evaluation.time ? evaluation.time : int64_t(time(nullptr))).step();
  return insert.ok() ? llvm::Error::success() : failure("write");
}

static llvm::Expected<StoredEvaluation> readEvaluation(const std::string &file, std::string variant, int64_t fidelity,
                                                       const std::string &recipeText,
                                                       const std::string &measurementText, int64_t time) {
  auto recipe = recipeFromJson(parseStored(recipeText));
  if (!recipe)
    return makeError("the store '{0}' holds a damaged recipe: {1}", file, llvm::toString(recipe.takeError()));
  auto measurement = measurementFromJson(parseStored(measurementText));
  if (!measurement)
    return makeError("the store '{0}' holds a damaged evaluation: {1}", file, llvm::toString(measurement.takeError()));
  return StoredEvaluation{std::move(variant), Fidelity(fidelity), std::move(*recipe), std::move(*measurement), time};
}

llvm::Expected<std::optional<StoredEvaluation>>
Store::findEvaluation(const std::string &context, const std::string &variantKey, Fidelity fidelity) {
  std::lock_guard lock(mutex);
  Statement select(database,
                   "SELECT recipe, measurement, time FROM evaluations WHERE context=? AND variant=? AND fidelity=?");
  select.bind(context).bind(variantKey).bind(int64_t(fidelity));
  if (!select.step()) {
    if (!select.ok())
      return failure("read");
    return std::nullopt;
  }
  auto found = readEvaluation(file, variantKey, int64_t(fidelity), select.text(0), select.text(1), select.integer(2));
  if (!found)
    return found.takeError();
  return std::optional(std::move(*found));
}

llvm::Expected<std::vector<StoredEvaluation>> Store::evaluations(const std::string &context) {
  std::lock_guard lock(mutex);
  Statement select(database, "SELECT variant, fidelity, recipe, measurement, time FROM evaluations WHERE context=? "
                             "ORDER BY time, rowid");
  select.bind(context);
  std::vector<StoredEvaluation> result;
  while (select.step()) {
    auto found =
        readEvaluation(file, select.text(0), select.integer(1), select.text(2), select.text(3), select.integer(4));
    if (!found)
      return found.takeError();
    result.push_back(std::move(*found));
  }
  if (!select.ok())
    return failure("read");
  return result;
}

llvm::Expected<std::vector<std::string>> Store::contexts() {
  std::lock_guard lock(mutex);
  Statement select(database, "SELECT context FROM evaluations GROUP BY context ORDER BY min(time), min(rowid)");
  std::vector<std::string> result;
  while (select.step())
    result.push_back(select.text(0));
  if (!select.ok())
    return failure("read");
  return result;
}

llvm::Error Store::addSearch(const std::string &key, const std::string &context, const StoredSearch &search) {
  std::lock_guard lock(mutex);
  Statement insert(database, "INSERT OR REPLACE INTO searches VALUES(?,?,?,?,?,?)");
  insert.bind(key).bind(context).bind(dumpStored(toJson(search.recipe))).bind(search.emittedText);
  insert.bind(dumpStored(search.summary)).bind(search.time ? search.time : int64_t(time(nullptr))).step();
  return insert.ok() ? llvm::Error::success() : failure("write");
}

llvm::Expected<std::optional<StoredSearch>> Store::findSearch(const std::string &key) {
  std::lock_guard lock(mutex);
  Statement select(database, "SELECT recipe, emitted, summary, time FROM searches WHERE key=?");
  select.bind(key);
  if (!select.step()) {
    if (!select.ok())
      return failure("read");
    return std::nullopt;
  }
  auto recipe = recipeFromJson(parseStored(select.text(0)));
  if (!recipe)
    return makeError("the store '{0}' holds a damaged search: {1}", file, llvm::toString(recipe.takeError()));
  json summary = parseStored(select.text(2));
  if (summary.is_discarded())
    return makeError("the store '{0}' holds a damaged search summary", file);
  return std::optional(StoredSearch{std::move(*recipe), select.text(1), std::move(summary), select.integer(3)});
}

llvm::Expected<std::optional<KernelMemory>> Store::findMemory(const std::string &source, const std::string &kernel) {
  Statement select(database, "SELECT memory FROM memory WHERE source=? AND kernel=?");
  select.bind(source).bind(kernel);
  if (!select.step()) {
    if (!select.ok())
      return failure("read");
    return std::nullopt;
  }
  auto memory = kernelMemoryFromJson(parseStored(select.text(0)));
  if (!memory) { // a damaged one is replaced
    llvm::consumeError(memory.takeError());
    return std::nullopt;
  }
  return std::optional(std::move(*memory));
}

llvm::Error Store::addMemory(const KernelMemory &memory) {
  std::lock_guard lock(mutex);
  if (llvm::Error error = run("BEGIN IMMEDIATE;"))
    return error;
  std::string kernel = memory.features.key();
  auto known = findMemory(memory.source, kernel);
  llvm::Error error = known ? llvm::Error::success() : known.takeError();
  if (!error) {
    KernelMemory joined = *known ? merged(**known, memory) : memory;
    Statement insert(database, "INSERT OR REPLACE INTO memory VALUES(?,?,?,?)");
    insert.bind(joined.source).bind(kernel).bind(dumpStored(toJson(joined))).bind(joined.time).step();
    if (!insert.ok())
      error = failure("write");
  }
  if (!error)
    return run("COMMIT;");
  llvm::consumeError(run("ROLLBACK;"));
  return error;
}

llvm::Expected<std::vector<KernelMemory>> Store::memories(size_t most) {
  std::lock_guard lock(mutex);
  Statement select(database, "SELECT memory FROM (SELECT * FROM memory ORDER BY time DESC, source, kernel LIMIT ?) "
                             "ORDER BY source, kernel");
  select.bind(int64_t(most));
  std::vector<KernelMemory> result;
  while (select.step()) {
    auto memory = kernelMemoryFromJson(parseStored(select.text(0)));
    if (!memory)
      return makeError("the store '{0}' holds a damaged memory: {1}", file, llvm::toString(memory.takeError()));
    result.push_back(std::move(*memory));
  }
  if (!select.ok())
    return failure("read");
  return result;
}

void StoredEvaluations::giveUp(llvm::Error error) {
  std::string message = llvm::toString(std::move(error));
  store = nullptr;
  if (warn)
    warn(message + "; going on without the store");
}

std::optional<Measurement> StoredEvaluations::recall(const std::string &variantKey, Fidelity fidelity) {
  if (!store)
    return {};
  auto found = store->findEvaluation(context, variantKey, fidelity);
  if (!found) {
    giveUp(found.takeError());
    return {};
  }
  return *found ? std::optional((*found)->measurement) : std::nullopt;
}

void StoredEvaluations::remember(const std::string &variantKey, Fidelity fidelity, const Recipe &recipe,
                                 const Measurement &measurement) {
  if (!store)
    return;
  if (llvm::Error error = store->addEvaluation(context, {variantKey, fidelity, recipe, measurement, 0}))
    giveUp(std::move(error));
}
