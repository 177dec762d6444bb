//===- FlagsTest.cpp - optiml-clang's own flags ---------------------------===//
#include "optiml/Driver/Flags.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <map>

using namespace optiml;
using Words = std::vector<std::string>;

namespace {

struct Parsed {
  bool good;
  OwnFlags flags;
  Words rest;
  std::string error;
};

Parsed parse(const Words &argv, const std::map<std::string, std::string> &env = {}) {
  Parsed result;
  auto lookup = [&](const std::string &name) -> std::optional<std::string> {
    auto it = env.find(name);
    return it == env.end() ? std::nullopt : std::optional<std::string>(it->second);
  };
  result.good = parseOwnFlags(argv, lookup, result.flags, result.rest, result.error);
  return result;
}

TEST(Flags, NoneLeavesEverythingToNvcc) {
  Words argv = {"-c", "x.cu", "-o", "x.o", "-O3", "-lineinfo"};
  Parsed p = parse(argv);
  EXPECT_TRUE(p.good);
  EXPECT_FALSE(p.flags.search);
  EXPECT_EQ(p.rest, argv);
}

TEST(Flags, OwnFlagsAreTakenOutWhereverTheyStand) {
  Parsed p = parse({"--optiml-seed=7", "x.cu", "-O-search=40", "-o", "app", "--optiml-strict"});
  ASSERT_TRUE(p.good) << p.error;
  EXPECT_EQ(p.rest, (Words{"x.cu", "-o", "app"}));
  EXPECT_TRUE(p.flags.search);
  EXPECT_EQ(p.flags.seed, 7u);
  EXPECT_TRUE(p.flags.strict);
}

TEST(Flags, ValuesOfNvccOptionsAreNoFlags) {
  Words argv = {"-Xcompiler", "--optiml-x", "-o", "-O-search", "x.cu"};
  Parsed p = parse(argv);
  EXPECT_TRUE(p.good) << p.error;
  EXPECT_FALSE(p.flags.search);
  EXPECT_EQ(p.rest, argv);
}

TEST(Flags, MemoryIsASwitchOrACommandOfItsOwn) {
  EXPECT_EQ(parse({"-O-search", "x.cu"}).flags.memory, MemoryUse::On);
  EXPECT_EQ(parse({"-O-search", "--optiml-memory=off", "x.cu"}).flags.memory, MemoryUse::Off);
  Parsed p = parse({"--optiml-memory=import:a:b.json"}, {{"OPTIML_STORE", "there"}, {"OPTIML_SEARCH", "1"}});
  ASSERT_TRUE(p.good) << p.error;
  EXPECT_TRUE(p.flags.isMemoryCommand());
  EXPECT_EQ(p.flags.memoryFile, "a:b.json");
  EXPECT_EQ(p.flags.store, "there");
  EXPECT_FALSE(p.flags.search);
  for (const char *bad :
       {"--optiml-memory=import", "--optiml-memory=export:", "--optiml-memory=stats:x", "--optiml-memory=1"})
    EXPECT_FALSE(parse({bad}).good) << bad;
  EXPECT_FALSE(parse({"--optiml-memory=stats", "x.cu"}).good);
  EXPECT_FALSE(parse({"--optiml-memory=stats", "-O-search"}).good);
  EXPECT_FALSE(parse({"-O-search", "x.cu"}, {{"OPTIML_MEMORY", "stats"}}).good);
}

TEST(Flags, BudgetDefaultsToBothLimits) {
  Parsed p = parse({"-O-search"});
  EXPECT_EQ(p.flags.budget.evaluations, 200u);
  EXPECT_EQ(p.flags.budget.seconds, 120);
}

TEST(Flags, BudgetForms) {
  SearchBudget budget;
  std::string error;
  EXPECT_TRUE(parseBudget("50", budget, error));
  EXPECT_EQ(budget.evaluations, 50u);
  EXPECT_EQ(budget.seconds, 0); // no limit
  EXPECT_TRUE(parseBudget("1.5m", budget, error));
  EXPECT_EQ(budget.evaluations, 0u);
  EXPECT_EQ(budget.seconds, 90);
  EXPECT_TRUE(parseBudget("90s,200", budget, error));
  EXPECT_EQ(budget.evaluations, 200u);
  EXPECT_EQ(budget.seconds, 90);
}

TEST(Flags, BadBudgetsSayWhatIsWanted) {
  for (const char *bad :
       {"", "0", "-3", "0s", "s", "10x", "1,2", "1s,2s", "200,", ",", "nan s", "infs", "1e3", "5 s"}) {
    Parsed p = parse({"-O-search=" + std::string(bad)});
    EXPECT_FALSE(p.good) << bad;
    EXPECT_NE(p.error.find("want a number of evaluations (200), a time (90s, 5m, 2h), or both (200,90s)"),
              std::string::npos)
        << p.error;
  }
}

TEST(Flags, EveryFlagSetsItsField) {
  Parsed p = parse({"-O-search", "--optiml-backend=cpu", "--optiml-args=64 'two words'", "--optiml-emit=out.cu",
                    "--optiml-store=/tmp/s", "--optiml-jobs=3", "--optiml-fp=strict", "--optiml-verbose",
                    "--optiml-kernel=^sg", "--optiml-strategy=random", "--optiml-margin=1.1"});
  ASSERT_TRUE(p.good) << p.error;
  EXPECT_EQ(p.flags.backend, BackendChoice::Cpu);
  EXPECT_EQ(p.flags.programArgs, (Words{"64", "two words"}));
  EXPECT_EQ(p.flags.emit, "out.cu");
  EXPECT_EQ(p.flags.store, "/tmp/s");
  EXPECT_EQ(p.flags.jobs, 3u);
  EXPECT_TRUE(p.flags.fp.isStrict());
  EXPECT_TRUE(p.flags.verbose);
  EXPECT_EQ(p.flags.kernel, "^sg");
  EXPECT_EQ(p.flags.strategy, "random");
  EXPECT_EQ(p.flags.margin, 1.1);
}

TEST(Flags, ModelFlagsAddUpOnTheCommandLine) {
  Parsed p = parse({"-O-search", "--optiml-llm=exec:one", "--optiml-llm=https://two.example.com",
                    "--optiml-llm-model=a", "--optiml-llm-key-env=KEY", "--optiml-llm-budget=3,9k",
                    "--optiml-llm-timeout=5", "--optiml-llm-prices=p.json", "--optiml-llm-transcript=t.jsonl"},
                   {{"OPTIML_LLM", "exec:three"}});
  ASSERT_TRUE(p.good) << p.error;
  EXPECT_EQ(p.flags.llm.models, (Words{"exec:one", "https://two.example.com"}));
  EXPECT_EQ(p.flags.llm.names, Words{"a"});
  EXPECT_EQ(p.flags.llm.keyVariables, Words{"KEY"});
  EXPECT_EQ(p.flags.llm.budget.tokens, 9000u);
  EXPECT_EQ(p.flags.llm.timeout, 5);
  EXPECT_EQ(parse({"-O-search"}, {{"OPTIML_LLM", "exec:three"}}).flags.llm.models, Words{"exec:three"});
}

TEST(Flags, WrongValuesNameTheFlag) {
  for (const char *bad :
       {"--optiml-backend=tpu",     "--optiml-fp=",           "--optiml-fp=fast:",      "--optiml-fp=fast:1",
        "--optiml-fp=fast:-1e-3",   "--optiml-fp=fast:1e-3x", "--optiml-fp=tf32:",      "--optiml-fp=tf16",
        "--optiml-jobs=0",          "--optiml-jobs=many",     "--optiml-seed=-1",       "--optiml-margin=0.5",
        "--optiml-margin=nan",      "--optiml-kernel=(",      "--optiml-strategy=luck", "--optiml-llm=gpt",
        "--optiml-llm-budget=much", "--optiml-emit=",         "--optiml-args='open",    "--optiml-strict=maybe"}) {
    Parsed p = parse({bad});
    EXPECT_FALSE(p.good) << bad;
    EXPECT_TRUE(p.error.starts_with("'" + std::string(bad) + "': ")) << p.error;
  }
}

TEST(Flags, AccuracyHasABudget) {
  EXPECT_EQ(parse({}).flags.fp.str(), "reassoc");
  EXPECT_EQ(parse({"--optiml-fp=fast"}).flags.fp.str(), "fast");
  FloatRule rule = parse({"--optiml-fp=fast:2.5e-5"}).flags.fp;
  EXPECT_TRUE(rule.isFast());
  EXPECT_EQ(rule.error, 2.5e-5);
  EXPECT_EQ(rule.str(), "fast:2.5e-05");
  EXPECT_FALSE(rule.allowsTensorCores());
  rule = parse({"--optiml-fp=tf32"}).flags.fp;
  EXPECT_TRUE(rule.isFast());
  EXPECT_TRUE(rule.allowsTensorCores());
  EXPECT_EQ(rule.error, 1.0 / 512);
  EXPECT_EQ(rule.str(), "tf32");
  EXPECT_EQ(parse({"--optiml-fp=tf32:1e-3"}).flags.fp.str(), "tf32:0.001");
}

TEST(Flags, MissingValue) {
  EXPECT_EQ(parse({"--optiml-backend", "cpu"}).error,
            "'--optiml-backend' needs a value: --optiml-backend=auto|gpu|cpu");
}

TEST(Flags, UnknownFlagNamesTheNearest) {
  EXPECT_EQ(parse({"--optiml-verbos"}).error,
            "unknown flag '--optiml-verbos'; the nearest is '--optiml-verbose' (optiml-clang --optiml-help lists all)");
  EXPECT_NE(parse({"--optiml-beckend=cpu"}).error.find("'--optiml-backend'"), std::string::npos);
  EXPECT_NE(parse({"-O-search200"}).error.find("'-O-search'"), std::string::npos);
}

TEST(Flags, EnvironmentSetsWhatTheCommandLineLeaves) {
  Parsed p = parse({"x.cu", "--optiml-seed=3"}, {{"OPTIML_SEARCH", "20,5s"},
                                                 {"OPTIML_SEED", "9"},
                                                 {"OPTIML_JOBS", "2"},
                                                 {"OPTIML_VERBOSE", "1"},
                                                 {"OPTIML_ARGS", ""}});
  ASSERT_TRUE(p.good) << p.error;
  EXPECT_TRUE(p.flags.search);
  EXPECT_EQ(p.flags.budget.evaluations, 20u);
  EXPECT_EQ(p.flags.seed, 3u);
  EXPECT_EQ(p.flags.jobs, 2u);
  EXPECT_TRUE(p.flags.verbose);
}

TEST(Flags, SearchVariableSwitches) {
  EXPECT_TRUE(parse({}, {{"OPTIML_SEARCH", "1"}}).flags.search);
  EXPECT_EQ(parse({}, {{"OPTIML_SEARCH", "1"}}).flags.budget.evaluations, 200u);
  EXPECT_FALSE(parse({}, {{"OPTIML_SEARCH", "0"}}).flags.search);
  EXPECT_FALSE(parse({}, {{"OPTIML_SEARCH", ""}}).flags.search);
  EXPECT_EQ(parse({}, {{"OPTIML_SEARCH", "soon"}}).error.substr(0, 23), "$OPTIML_SEARCH='soon': ");
}

TEST(Flags, StaleVariableCannotBreakAnOrdinaryCompilation) {
  EXPECT_TRUE(parse({"-c", "x.cu"}, {{"OPTIML_BACKEND", "nonsense"}}).good);
  EXPECT_EQ(parse({"-O-search"}, {{"OPTIML_BACKEND", "nonsense"}}).error,
            "$OPTIML_BACKEND='nonsense': want auto, gpu or cpu");
}

TEST(Flags, SplitsLikeAShell) {
  Words words;
  std::string error;
  EXPECT_TRUE(splitCommandLine(R"(  a 'b c' "d \" e" f\ g '' h"i"j )", words, error));
  EXPECT_EQ(words, (Words{"a", "b c", "d \" e", "f g", "", "hij"}));
  EXPECT_TRUE(splitCommandLine("", words, error));
  EXPECT_TRUE(words.empty());
  EXPECT_FALSE(splitCommandLine("a \"b", words, error));
}

TEST(Flags, TableIsSortedCompleteAndHelped) {
  auto table = ownFlagTable();
  EXPECT_TRUE(std::is_sorted(table.begin(), table.end(),
                             [](const FlagInfo &a, const FlagInfo &b) { return std::string_view(a.name) < b.name; }));
  std::string help = ownFlagsHelp();
  for (const FlagInfo &info : table) {
    EXPECT_NE(help.find(info.name), std::string::npos);
    EXPECT_NE(help.find(info.env), std::string::npos);
    EXPECT_TRUE(std::string_view(info.env).starts_with("OPTIML_"));
  }
}

} // namespace
