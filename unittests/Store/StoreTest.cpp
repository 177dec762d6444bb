//===- StoreTest.cpp - the SQLite store -----------------------------------===//
#include "optiml/Store/Store.h"
#include "optiml/Support/TempDir.h"
#include "gtest/gtest.h"
#include <csignal>
#include <fstream>
#include <functional>
#include <set>
#include <sqlite3.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace optiml;

namespace {

class StoreTest : public ::testing::Test {
protected:
  StoreTest() : dir(llvm::cantFail(TempDir::create("optiml-store-test"))) {}
  std::string file(const std::string &name = "store.db") const { return dir.file(name); }
  std::unique_ptr<Store> open() const { return llvm::cantFail(Store::open(file())); }
  static std::string messageOf(const std::string &path) {
    auto store = Store::open(path);
    return store ? std::string("opened") : llvm::toString(store.takeError());
  }
  static StoredEvaluation evaluation(const std::string &key, double seconds) {
    StoredEvaluation e;
    e.variantKey = key;
    e.recipe = llvm::cantFail(parseRecipe("coarsen[sgemm]{x=8};unroll[sgemm/k]{factor=4}"));
    e.measurement.verdict = Verdict::Correct;
    e.measurement.time.seconds = seconds;
    e.measurement.why = std::string("odd bytes \xff\n\"quoted\"");
    return e;
  }
  TempDir dir;
};

bool contains(const std::string &text, const std::string &part) { return text.find(part) != std::string::npos; }

} // namespace

TEST_F(StoreTest, KeepsEvaluationsAcrossRuns) {
  {
    auto store = open();
    ASSERT_FALSE(bool(store->addEvaluation("context", evaluation("a", 1))));
    ASSERT_FALSE(bool(store->addEvaluation("context", evaluation("b", 2))));
    ASSERT_FALSE(bool(store->addEvaluation("other", evaluation("a", 3))));
  }
  auto store = open();
  auto found = llvm::cantFail(store->findEvaluation("context", "a", Fidelity::Verified));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->measurement.time.seconds, 1);
  EXPECT_EQ(recipeText(found->recipe), "coarsen[sgemm]{x=8};unroll[sgemm/k]{factor=4}");
  EXPECT_FALSE(llvm::cantFail(store->findEvaluation("context", "a", Fidelity::Model)));
  EXPECT_FALSE(llvm::cantFail(store->findEvaluation("context", "c", Fidelity::Verified)));
  auto all = llvm::cantFail(store->evaluations("context"));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].variantKey, "b");
}

TEST_F(StoreTest, KeepsSearches) {
  auto store = open();
  StoredSearch search{{}, "__global__ void f();\n", {{"speedup", 5.5}}, 0};
  ASSERT_FALSE(bool(store->addSearch("key", "context", search)));
  search.emittedText = "second";
  ASSERT_FALSE(bool(store->addSearch("key", "context", search)));
  auto found = llvm::cantFail(store->findSearch("key"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->emittedText, "second");
  EXPECT_EQ(found->summary["speedup"], 5.5);
  EXPECT_GT(found->time, 0);
  EXPECT_FALSE(llvm::cantFail(store->findSearch("another")));
}

TEST_F(StoreTest, EveryPartOfTheContextCounts) {
  StoreContext base{"text", {"-O3"}, "H200", "w", "reassoc", "model", "0.1"};
  std::set<std::string> hashes{base.hash()};
  for (auto change : std::initializer_list<void (*)(StoreContext &)>{
           [](StoreContext &c) { c.sourceText += " "; }, [](StoreContext &c) { c.options.push_back("-DX"); },
           [](StoreContext &c) { c.options.clear(); }, [](StoreContext &c) { c.gpu = "A100"; },
           [](StoreContext &c) { c.workloadHash = "v"; }, [](StoreContext &c) { c.fpMode = "fast"; },
           [](StoreContext &c) { c.backend = "gpu"; }, [](StoreContext &c) { c.version = "0.2"; }}) {
    StoreContext changed = base;
    change(changed);
    hashes.insert(changed.hash());
  }
  EXPECT_EQ(hashes.size(), 9u);
}

TEST_F(StoreTest, CorruptFileIsNamed) {
  std::ofstream(file()) << std::string(8192, 'x');
  std::string message = messageOf(file());
  EXPECT_TRUE(contains(message, file()) && contains(message, "damaged")) << message;
  // Nothing was done to it.
  EXPECT_EQ(std::ifstream(file()).get(), 'x');
}

TEST_F(StoreTest, DamageInTheMiddleIsAnErrorNotAnAnswer) {
  {
    auto store = open();
    for (int i = 0; i < 200; ++i)
      ASSERT_FALSE(bool(store->addEvaluation("context", evaluation("key" + std::to_string(i), i))));
  }
  {
    std::fstream bytes(file(), std::ios::in | std::ios::out | std::ios::binary);
    bytes.seekp(3 * 4096);
    bytes << std::string(20 * 4096, '\xa5');
  }
  auto store = Store::open(file());
  if (!store) {
    EXPECT_TRUE(contains(llvm::toString(store.takeError()), file()));
    return;
  }
  unsigned errors = 0;
  for (int i = 0; i < 200; ++i) {
    auto found = (*store)->findEvaluation("context", "key" + std::to_string(i), Fidelity::Verified);
    if (!found) {
      ++errors;
      EXPECT_TRUE(contains(llvm::toString(found.takeError()), file()));
    } else if (*found) {
      EXPECT_EQ((*found)->measurement.time.seconds, i);
    }
  }
  EXPECT_GT(errors, 0u);
}

TEST_F(StoreTest, ForeignAndNewerFilesAreLeftAlone) {
  sqlite3 *database;
  ASSERT_EQ(sqlite3_open(file("foreign.db").c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "CREATE TABLE t(x);", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  EXPECT_TRUE(contains(messageOf(file("foreign.db")), "no OptiML store"));

  open();
  ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "PRAGMA user_version=99;", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  EXPECT_TRUE(contains(messageOf(file()), "newer OptiML")) << messageOf(file());
}

TEST_F(StoreTest, UnwritablePlacesAreNamed) {
  std::ofstream(file("plain")) << "x";
  std::string below = file("plain") + "/store.db";
  EXPECT_TRUE(contains(messageOf(below), below));
  EXPECT_TRUE(contains(messageOf(dir.path()), dir.path()));
  EXPECT_TRUE(contains(messageOf(""), "XDG_CACHE_HOME"));
  if (geteuid() == 0)
    GTEST_SKIP() << "the superuser can write everywhere";
  ASSERT_EQ(mkdir(file("closed").c_str(), 0500), 0);
  EXPECT_TRUE(contains(messageOf(file("closed/store.db")), "closed/store.db"));
}

TEST_F(StoreTest, AReadOnlyFileIsRefused) {
  open();
  if (geteuid() == 0)
    GTEST_SKIP() << "the superuser can write everywhere";
  ASSERT_EQ(chmod(file().c_str(), 0400), 0);
  EXPECT_TRUE(contains(messageOf(file()), "read-only"));
}

/// Runs `child` in a forked process and returns its wait status; `after` runs here meanwhile.
static int inChild(const std::function<void()> &child, const std::function<void(pid_t)> &after = nullptr) {
  pid_t pid = fork();
  if (pid == 0) {
    child();
    _exit(0);
  }
  if (after)
    after(pid);
  int status = 0;
  waitpid(pid, &status, 0);
  return status;
}

TEST_F(StoreTest, AFullDiskLosesNothing) {
  ASSERT_FALSE(bool(open()->addEvaluation("context", evaluation("first", 1))));
  // A limit on file size fails as a full disk does: a write comes back short.
  int status = inChild([&] {
    signal(SIGXFSZ, SIG_IGN);
    auto store = open();
    rlimit limit{100000, 100000};
    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 1000; ++i)
      if (llvm::Error error = store->addEvaluation("context", evaluation("key" + std::to_string(i), i)))
        _exit(contains(llvm::toString(std::move(error)), file()) ? 7 : 8);
  });
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_TRUE(llvm::cantFail(open()->findEvaluation("context", "first", Fidelity::Verified)));
}

TEST_F(StoreTest, KilledInTheMiddleKeepsWhatWasFinished) {
  for (int round = 0; round < 4; ++round) {
    int acknowledged[2];
    ASSERT_EQ(pipe(acknowledged), 0);
    std::string context = "round" + std::to_string(round);
    int last = -1;
    inChild(
        [&] {
          auto store = open();
          for (int i = 0;; ++i) {
            llvm::cantFail(store->addEvaluation(context, evaluation("key" + std::to_string(i), i)));
            if (write(acknowledged[1], &i, sizeof i) != sizeof i)
              _exit(1);
          }
        },
        [&](pid_t pid) {
          // Kill it at an arbitrary moment after it has stored some.
          for (int i = 0; i < 20 + 13 * round; ++i)
            ASSERT_EQ(read(acknowledged[0], &last, sizeof last), ssize_t(sizeof last));
          usleep(137 * round);
          kill(pid, SIGKILL);
        });
    close(acknowledged[1]);
    while (read(acknowledged[0], &last, sizeof last) == sizeof last)
      ;
    close(acknowledged[0]);
    auto store = open();
    auto kept = llvm::cantFail(store->evaluations(context));
    EXPECT_GE(int(kept.size()), last + 1);
    EXPECT_LE(int(kept.size()), last + 2);
  }
}

TEST_F(StoreTest, KilledWhileItIsCreatedLeavesAUsableFile) {
  for (int round = 0; round < 8; ++round) {
    std::string path = file("new" + std::to_string(round) + ".db");
    inChild([&] { llvm::cantFail(Store::open(path)); },
            [&](pid_t pid) {
              usleep(400 * round);
              kill(pid, SIGKILL);
            });
    EXPECT_EQ(messageOf(path), "opened");
  }
}

TEST_F(StoreTest, TwoProcessesShareOneFile) {
  auto fill = [&](const std::string &context) {
    auto store = open();
    for (int i = 0; i < 50; ++i)
      llvm::cantFail(store->addEvaluation(context, evaluation("key" + std::to_string(i), i)));
  };
  int status = inChild([&] { fill("child"); }, [&](pid_t) { fill("parent"); });
  EXPECT_EQ(status, 0);
  auto store = open();
  EXPECT_EQ(llvm::cantFail(store->evaluations("child")).size(), 50u);
  EXPECT_EQ(llvm::cantFail(store->evaluations("parent")).size(), 50u);
}

TEST_F(StoreTest, MemoryGivesUpOnceAndSaysSo) {
  auto store = open();
  std::vector<std::string> warnings;
  StoredEvaluations memory(*store, "context", [&](const std::string &message) { warnings.push_back(message); });
  memory.remember("a", Fidelity::Verified, {}, evaluation("a", 4).measurement);
  ASSERT_TRUE(memory.recall("a", Fidelity::Verified));
  EXPECT_FALSE(memory.recall("b", Fidelity::Verified));
  sqlite3 *database;
  ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
  sqlite3_exec(database, "DROP TABLE evaluations;", nullptr, nullptr, nullptr);
  sqlite3_close(database);
  EXPECT_FALSE(memory.recall("a", Fidelity::Verified));
  memory.remember("a", Fidelity::Verified, {}, Measurement());
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_TRUE(contains(warnings[0], file()) && contains(warnings[0], "going on without"));
}

static KernelMemory memoryOf(const std::string &source, double weight) {
  KernelMemory memory;
  memory.source = source;
  memory.features.tokens = {"axes 1"};
  memory.lessons = {{"l1", "unroll", "/*", {{"factor", "4"}}, weight, 0.5, 0, {}}};
  return memory;
}

TEST_F(StoreTest, KeepsWhatSearchesLearntAndCountsASourceOnce) {
  {
    auto store = open();
    ASSERT_FALSE(bool(store->addMemory(memoryOf("b", 2))));
    ASSERT_FALSE(bool(store->addMemory(memoryOf("a", 1))));
    ASSERT_FALSE(bool(store->addMemory(memoryOf("a", 3))));
    ASSERT_FALSE(bool(store->addMemory(memoryOf("a", 2))));
  }
  auto memories = llvm::cantFail(open()->memories());
  ASSERT_EQ(memories.size(), 2u);
  EXPECT_EQ(memories[0].source, "a");
  ASSERT_EQ(memories[0].lessons.size(), 1u);
  EXPECT_EQ(memories[0].lessons[0].weight, 3);
  EXPECT_EQ(llvm::cantFail(open()->memories(1)).size(), 1u);
}

TEST_F(StoreTest, AStoreOfTheFirstVersionGainsAMemoryAndLosesNothing) {
  {
    auto store = open();
    ASSERT_FALSE(bool(store->addEvaluation("context", evaluation("a", 1))));
    ASSERT_FALSE(bool(store->addSearch("key", "context", {{}, "text", {{"speedup", 2}}, 0})));
  }
  sqlite3 *database = nullptr;
  ASSERT_EQ(sqlite3_open(file().c_str(), &database), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(database, "DROP TABLE memory; PRAGMA user_version=1;", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(database);
  auto store = open();
  EXPECT_TRUE(llvm::cantFail(store->findEvaluation("context", "a", Fidelity::Verified)));
  EXPECT_TRUE(llvm::cantFail(store->findSearch("key")));
  ASSERT_FALSE(bool(store->addMemory(memoryOf("a", 1))));
  EXPECT_EQ(llvm::cantFail(store->memories()).size(), 1u);
}

// A file system on which memory cannot be shared among processes, as it is on some networks: SQLite learns of it when
// it first writes.
static sqlite3_vfs *usualFiles = nullptr;
static sqlite3_io_methods withoutSharedMemory;

static int openWithoutSharedMemory(sqlite3_vfs *, const char *name, sqlite3_file *file, int flags, int *given) {
  const int status = usualFiles->xOpen(usualFiles, name, file, flags, given);
  if (status == SQLITE_OK && file->pMethods && (flags & SQLITE_OPEN_MAIN_DB)) {
    withoutSharedMemory = *file->pMethods;
    withoutSharedMemory.xShmMap = [](sqlite3_file *, int, int, int, void volatile **) { return SQLITE_IOERR_SHMMAP; };
    file->pMethods = &withoutSharedMemory;
  }
  return status;
}

TEST_F(StoreTest, WhereMemoryCannotBeSharedItUsesARollbackJournal) {
  {
    EXPECT_EQ(open()->note(), "");
  } // a write-ahead log is there already
  usualFiles = sqlite3_vfs_find(nullptr);
  sqlite3_vfs other = *usualFiles;
  other.zName = "without-shared-memory";
  other.xOpen = openWithoutSharedMemory;
  ASSERT_EQ(sqlite3_vfs_register(&other, 1), SQLITE_OK);
  for (const std::string &path : {file("new.db"), file()}) {
    auto store = Store::open(path);
    ASSERT_TRUE(bool(store)) << llvm::toString(store.takeError());
    EXPECT_TRUE(contains((*store)->note(), "rollback journal")) << path;
    ASSERT_FALSE(bool((*store)->addEvaluation("context", evaluation("a", 1))));
    EXPECT_TRUE(llvm::cantFail((*store)->findEvaluation("context", "a", Fidelity::Verified)));
  }
  sqlite3_vfs_unregister(&other);
  EXPECT_TRUE(llvm::cantFail(open()->findEvaluation("context", "a", Fidelity::Verified)));
}
