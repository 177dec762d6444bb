//===- Flags.cpp - OptiML's own command-line flags ------------------------===//
//
// One table row a flag: its names, its value, its default and the function that sets it.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/Flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <regex>

using namespace optiml;

namespace {

using Setter = bool (*)(std::string_view value, OwnFlags &flags, std::string &error);

struct Row {
  FlagInfo info;
  Setter set;
};

template <typename T> bool parseNumber(std::string_view text, T &value) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status == std::errc() && end == text.data() + text.size() && !text.empty();
}

bool parseSwitch(std::string_view text, bool &value, std::string &error) {
  if (text == "1" || text == "on" || text == "yes" || text == "true")
    value = true;
  else if (text.empty() || text == "0" || text == "off" || text == "no" || text == "false")
    value = false;
  else {
    error = "want on or off";
    return false;
  }
  return true;
}

bool nonEmpty(std::string_view text, std::string &into, std::string &error) {
  into = text;
  if (text.empty())
    error = "want a value";
  return !text.empty();
}

bool parseMemory(std::string_view value, OwnFlags &flags, std::string &error) {
  std::string_view word = value.substr(0, value.find(':'));
  flags.memoryFile = value.substr(std::min(value.size(), word.size() + 1));
  bool named = !flags.memoryFile.empty();
  if (value == "on")
    flags.memory = MemoryUse::On;
  else if (value == "off")
    flags.memory = MemoryUse::Off;
  else if (value == "stats")
    flags.memory = MemoryUse::Stats;
  else if (word == "import" && named)
    flags.memory = MemoryUse::Import;
  else if (word == "export" && named)
    flags.memory = MemoryUse::Export;
  else
    error = "want on, off, import:FILE, export:FILE or stats";
  return error.empty();
}

// Sorted by name. Setters say what they want; the caller adds the flag and the value.
const Row rows[] = {
    {{"--optiml-args", "OPTIML_ARGS", "'ARGS'", "none",
      "arguments of the program when it is run to observe its kernels"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       flags.args = value;
       return splitCommandLine(value, flags.programArgs, error);
     }},
    {{"--optiml-backend", "OPTIML_BACKEND", "auto|gpu|cpu", "auto",
      "where variants run: a GPU, or the CPU emulator with predicted times; auto takes a GPU where there is one"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       if (value == "auto")
         flags.backend = BackendChoice::Auto;
       else if (value == "gpu")
         flags.backend = BackendChoice::Gpu;
       else if (value == "cpu")
         flags.backend = BackendChoice::Cpu;
       else
         error = "want auto, gpu or cpu";
       return error.empty();
     }},
    {{"--optiml-cache", "OPTIML_CACHE", "warm|cold", "warm",
      "how a launch that is timed on a GPU finds the L2 cache: as restoring its inputs left it, or empty"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       flags.coldCache = value == "cold";
       if (value != "warm" && value != "cold")
         error = "want warm or cold";
       return error.empty();
     }},
    {{"--optiml-emit", "OPTIML_EMIT", "FILE.cu", "not written", "write the rewritten source to FILE.cu"},
     [](std::string_view value, OwnFlags &flags, std::string &error) { return nonEmpty(value, flags.emit, error); }},
    {{"--optiml-fp", "OPTIML_FP", "strict|reassoc|fast[:ERROR]|tf32[:ERROR]", "reassoc",
      "what may change in floating point: nothing, the order of sums, or approximate functions and single precision too, up to "
      "a relative ERROR (4.9e-4); tf32: inputs of products rounded for tensor cores too (2e-3)"},
     [](std::string_view value, OwnFlags &flags, std::string &error) { return FloatRule::parse(value, flags.fp, error); }},
    {{"--optiml-help", "OPTIML_HELP", "", "off", "print this table"},
     [](std::string_view value, OwnFlags &flags, std::string &error) { return parseSwitch(value, flags.help, error); }},
    {{"--optiml-jobs", "OPTIML_JOBS", "N", "the number of cores", "variants evaluated at the same time"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       if (!parseNumber(value, flags.jobs) || flags.jobs == 0 || flags.jobs > 1024)
         error = "want a number from 1 to 1024";
       return error.empty();
     }},
    {{"--optiml-kernel", "OPTIML_KERNEL", "REGEX", "all kernels",
      "search only kernels whose name has a match of REGEX"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       flags.kernel = value;
       try {
         std::regex checked(flags.kernel, std::regex::extended);
       } catch (const std::regex_error &) {
         error = "want a POSIX extended regular expression";
       }
       return error.empty();
     }},
    {{"--optiml-llm", "OPTIML_LLM", "URL|exec:CMD|replay:FILE", "none",
      "a language model: an OpenAI-compatible endpoint, Anthropic's (anthropic:URL where the URL does not tell), a local "
      "command, or a transcript; may be given several times"},
     [](std::string_view value, OwnFlags &flags, std::string &error) { return addModel(value, flags.llm, error); }},
    {{"--optiml-llm-asm", "OPTIML_LLM_ASM", "on|off", "off",
      "whether kernels that a language model writes may hold inline assembly"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return parseSwitch(value, flags.llmAssembly, error);
     }},
    {{"--optiml-llm-budget", "OPTIML_LLM_BUDGET", "LIMITS", "50,500k",
      "what all models together may use: calls (20), tokens (200k), money (1.50usd), or several of them (20,200k,1.50usd)"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return setModelBudget(value, flags.llm, error);
     }},
    {{"--optiml-llm-judge", "OPTIML_LLM_JUDGE", "on|off", "on",
      "whether a language model diagnoses the bottleneck beside the rules"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return parseSwitch(value, flags.llmJudge, error);
     }},
    {{"--optiml-llm-kernels", "OPTIML_LLM_KERNELS", "on|off", "on",
      "whether language models write whole kernels"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return parseSwitch(value, flags.llmKernels, error);
     }},
    {{"--optiml-llm-key-env", "OPTIML_LLM_KEY_ENV", "NAME", "OPENAI_API_KEY or ANTHROPIC_API_KEY at these hosts, else none",
      "the environment variable that holds an endpoint's key; none: no key; once for each endpoint"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return addKeyVariable(value, flags.llm, error);
     }},
    {{"--optiml-llm-mixture", "OPTIML_LLM_MIXTURE", "on|off", "on",
      "whether several strategists ask, each with instructions of its own, or one"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return parseSwitch(value, flags.llmMixture, error);
     }},
    {{"--optiml-llm-model", "OPTIML_LLM_MODEL", "NAME", "the endpoint's",
      "the model's name at its endpoint; may be given several times"},
     [](std::string_view value, OwnFlags &flags, std::string &error) { return addModelName(value, flags.llm, error); }},
    {{"--optiml-llm-prices", "OPTIML_LLM_PRICES", "FILE", "a built-in table",
      "what models cost, in US dollars for a million tokens"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return nonEmpty(value, flags.llm.prices, error);
     }},
    {{"--optiml-llm-timeout", "OPTIML_LLM_TIMEOUT", "SECONDS", "120",
      "how long one question to a model may take, with all its retries"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return setModelTimeout(value, flags.llm, error);
     }},
    {{"--optiml-llm-transcript", "OPTIML_LLM_TRANSCRIPT", "FILE", "in the store",
      "where every question and answer is written; none: nowhere"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return nonEmpty(value, flags.llm.transcript, error);
     }},
    {{"--optiml-margin", "OPTIML_MARGIN", "FACTOR", "1.3",
      "how much faster a variant must be predicted to replace the original; what is measured needs no margin"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       if (!parseNumber(value, flags.margin) || !(flags.margin >= 1) || !std::isfinite(flags.margin))
         error = "want a number of at least 1, such as 1.3";
       return error.empty();
     }},
    {{"--optiml-memory", "OPTIML_MEMORY", "on|off|import:FILE|export:FILE|stats", "on",
      "whether what earlier searches learnt on similar kernels guides this one; or, without a source file: take in such "
      "knowledge from FILE, write it to FILE, or describe it"},
     [](std::string_view value, OwnFlags &flags, std::string &error) { return parseMemory(value, flags, error); }},
    {{"--optiml-profiler", "OPTIML_PROFILER", "cupti|ncu|none", "cupti",
      "what reads a GPU's hardware counters: CUPTI in the worker, Nsight Compute, or nothing"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       flags.profiler = value;
       if (value != "cupti" && value != "ncu" && value != "none")
         error = "want cupti, ncu or none";
       return error.empty();
     }},
    {{"--optiml-proposer", "OPTIML_PROPOSER", "expert|model|both", "both where a language model is given",
      "who proposes what to try: the built-in expert policy, language models, or both in one prior"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       flags.proposer = value;
       if (value != "expert" && value != "model" && value != "both")
         error = "want expert, model or both";
       return error.empty();
     }},
    {{"--optiml-seed", "OPTIML_SEED", "N", "1", "the same seed and budget in evaluations repeat a search exactly (on the emulator: measured times vary)"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       if (!parseNumber(value, flags.seed))
         error = "want a non-negative integer";
       return error.empty();
     }},
    {{"--optiml-store", "OPTIML_STORE", "FOLDER", "$XDG_CACHE_HOME/optiml or ~/.cache/optiml",
      "where evaluations, recipes and trajectories are kept"},
     [](std::string_view value, OwnFlags &flags, std::string &error) { return nonEmpty(value, flags.store, error); }},
    {{"--optiml-strategy", "OPTIML_STRATEGY", "mcts|random|greedy|beam", "mcts", "how the search chooses what to try"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       flags.strategy = value;
       if (value != "mcts" && value != "random" && value != "greedy" && value != "beam")
         error = "want mcts, random, greedy or beam";
       return error.empty();
     }},
    {{"--optiml-strict", "OPTIML_STRICT", "", "off",
      "fail when the search cannot run, instead of compiling as nvcc would with a warning"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return parseSwitch(value, flags.strict, error);
     }},
    {{"--optiml-time", "OPTIML_TIME", "SECONDS", "300",
      "how long the program may run when it is run to observe its kernels"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       if (!parseNumber(value, flags.time) || !(flags.time > 0) || !std::isfinite(flags.time))
         error = "want a number of seconds, such as 300";
       return error.empty();
     }},
    {{"--optiml-verbose", "OPTIML_VERBOSE", "", "off", "tell what is being done"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       return parseSwitch(value, flags.verbose, error);
     }},
    {{"-O-search", "OPTIML_SEARCH", "[BUDGET]", "200,120s",
      "search for faster kernels; BUDGET is a number of evaluations (200), a time (90s, 5m, 2h), or both (200,90s)"},
     [](std::string_view value, OwnFlags &flags, std::string &error) {
       flags.search = true;
       return parseBudget(value, flags.budget, error);
     }},
};
constexpr std::string_view searchFlag = "-O-search";
constexpr std::string_view prefix = "--optiml-";

bool isSwitch(const Row &row) { return row.info.value[0] == '\0'; }

const Row *findRow(std::string_view name) {
  for (const Row &row : rows)
    if (name == row.info.name)
      return &row;
  return nullptr;
}

/// nvcc options whose value is the next argument: that value is never one of ours.
bool takesNextArgument(std::string_view argument) {
  static constexpr std::string_view options[] = {"-D",
                                                 "-I",
                                                 "-L",
                                                 "-MF",
                                                 "-MQ",
                                                 "-MT",
                                                 "-U",
                                                 "-Xarchive",
                                                 "-Xcompiler",
                                                 "-Xcudafe",
                                                 "-Xfatbin",
                                                 "-Xlinker",
                                                 "-Xnvlink",
                                                 "-Xptxas",
                                                 "-arch",
                                                 "-ccbin",
                                                 "-code",
                                                 "-gencode",
                                                 "-include",
                                                 "-isystem",
                                                 "-l",
                                                 "-o",
                                                 "-odir",
                                                 "-optf",
                                                 "-std",
                                                 "-x",
                                                 "--compiler-bindir",
                                                 "--compiler-options",
                                                 "--define-macro",
                                                 "--generate-code",
                                                 "--gpu-architecture",
                                                 "--gpu-code",
                                                 "--include-path",
                                                 "--library",
                                                 "--library-path",
                                                 "--linker-options",
                                                 "--nvlink-options",
                                                 "--options-file",
                                                 "--output-directory",
                                                 "--output-file",
                                                 "--pre-include",
                                                 "--ptxas-options",
                                                 "--std",
                                                 "--system-include",
                                                 "--undefine-macro",
                                                 "--x"};
  return std::find(std::begin(options), std::end(options), argument) != std::end(options);
}

/// Levenshtein's distance.
size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t above = row[j];
      row[j] = std::min({above + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])});
      diagonal = above;
    }
  }
  return row[b.size()];
}

std::string unknownFlag(std::string_view name) {
  const Row *nearest = &*std::min_element(std::begin(rows), std::end(rows), [&](const Row &a, const Row &b) {
    return editDistance(name, a.info.name) < editDistance(name, b.info.name);
  });
  return "unknown flag '" + std::string(name) + "'; the nearest is '" + nearest->info.name +
         "' (optiml-clang --optiml-help lists all)";
}

/// One flag of the command line: `argument` begins with one of our prefixes.
bool parseFlag(const std::string &argument, OwnFlags &flags, std::vector<const Row *> &given, std::string &error) {
  size_t equals = argument.find('=');
  std::string name = argument.substr(0, equals);
  const Row *row = findRow(name);
  if (!row) {
    error = unknownFlag(name);
    return false;
  }
  given.push_back(row);
  std::string value;
  if (equals != std::string::npos) {
    value = argument.substr(equals + 1);
  } else if (isSwitch(*row)) {
    value = "on";
  } else if (name == searchFlag) {
    flags.search = true;
    flags.budget = SearchBudget();
    return true;
  } else {
    error = "'" + name + "' needs a value: " + name + "=" + row->info.value;
    return false;
  }
  if (row->set(value, flags, error))
    return true;
  error = "'" + argument + "': " + error;
  return false;
}

/// $OPTIML_SEARCH: on or off (or nothing), or a budget.
bool parseSearchVariable(const std::string &value, OwnFlags &flags, std::string &error) {
  bool on = false;
  std::string ignored;
  if (parseSwitch(value, on, ignored)) {
    flags.search = on;
    return true;
  }
  flags.search = true;
  if (parseBudget(value, flags.budget, error))
    return true;
  error = "$OPTIML_SEARCH='" + value + "': " + error + ", or on, or off";
  return false;
}

} // namespace

std::span<const FlagInfo> optiml::ownFlagTable() {
  static const std::vector<FlagInfo> table = [] {
    std::vector<FlagInfo> infos;
    for (const Row &row : rows)
      infos.push_back(row.info);
    return infos;
  }();
  return table;
}

EnvLookup optiml::processEnvironment() {
  return [](const std::string &name) -> std::optional<std::string> {
    const char *value = std::getenv(name.c_str());
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

bool optiml::parseOwnFlags(const std::vector<std::string> &argv, const EnvLookup &env, OwnFlags &flags,
                           std::vector<std::string> &rest, std::string &error) {
  std::vector<const Row *> given;
  for (size_t i = 0; i < argv.size(); ++i) {
    const std::string &argument = argv[i];
    if (argument.starts_with(prefix) || argument.starts_with(searchFlag)) {
      if (!parseFlag(argument, flags, given, error))
        return false;
      continue;
    }
    rest.push_back(argument);
    if (takesNextArgument(argument) && i + 1 < argv.size())
      rest.push_back(argv[++i]);
  }

  auto wasGiven = [&](const Row &row) { return std::find(given.begin(), given.end(), &row) != given.end(); };
  bool memoryCommand = flags.isMemoryCommand();
  if (memoryCommand && (flags.search || !rest.empty())) {
    error = "--optiml-memory=import:FILE, export:FILE and stats compile nothing: give them without " +
            (rest.empty() ? std::string(searchFlag) : "'" + rest.front() + "'");
    return false;
  }
  std::optional<std::string> search = env("OPTIML_SEARCH");
  if (search && !flags.search && !memoryCommand && !parseSearchVariable(*search, flags, error))
    return false;
  if (!flags.search && !flags.help && !memoryCommand)
    return true;
  for (const Row &row : rows) {
    if (wasGiven(row) || row.info.name == searchFlag)
      continue;
    std::optional<std::string> value = env(row.info.env);
    if (!value || (value->empty() && !isSwitch(row)))
      continue;
    if (!row.set(*value, flags, error)) {
      error = "$" + std::string(row.info.env) + "='" + *value + "': " + error;
      return false;
    }
  }
  if (flags.isMemoryCommand() && !memoryCommand) {
    error = "$OPTIML_MEMORY: want on or off; the rest is for the command line";
    return false;
  }
  return true;
}

std::string optiml::ownFlagsHelp() {
  std::string text = "optiml-clang ARGS is nvcc ARGS. Its own flags:\n\n";
  for (const Row &row : rows) {
    std::string head = row.info.name;
    if (row.info.name == searchFlag)
      head += "[=BUDGET]";
    else if (!isSwitch(row))
      head += "=" + std::string(row.info.value);
    text += "  " + head + "\n      " + row.info.meaning + "\n      $" + row.info.env +
            ", default: " + row.info.fallback + "\n";
  }
  text +=
      "\nThe command line wins over the environment. nvcc is taken from $OPTIML_NVCC, $CUDA_PATH/bin, PATH, or\n"
      "/usr/local/cuda/bin. `optiml-clang /path/to/nvcc ARGS` works too, as CMAKE_CUDA_COMPILER_LAUNCHER needs it.\n"
      "In programs built by a search, OPTIML_DISABLE=all (or a kernel's name) restores the original kernels.\n";
  return text;
}
