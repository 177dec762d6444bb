//===- Flags.cpp - OptiML's own command-line flags ------------------------===//
//
// The flags are rows of Flags.def; here is what their values mean, budgets (`200,90s`) and command lines in one text.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/Flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <regex>
#include <type_traits>

using namespace optiml;

namespace {

using Setter = bool (*)(std::string_view value, std::string_view choices, OwnFlags &flags, std::string &error);

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

constexpr double leastPositive = std::numeric_limits<double>::denorm_min();

/// A finite number within limits; `wanted` says which.
template <typename T>
bool setNumber(std::string_view text, T &into, const char *wanted, std::string &error,
               std::type_identity_t<T> least = 0, std::type_identity_t<T> most = std::numeric_limits<T>::max()) {
  if (!parseNumber(text, into) || !(into >= least) || !(into <= most))
    error = std::string("want ") + wanted;
  return error.empty();
}

/// One of "a|b|c": as text, or as its number.
template <typename T> bool choose(std::string_view value, std::string_view choices, T &into, std::string &error) {
  std::string wanted = "want ";
  for (unsigned index = 0;; ++index) {
    size_t bar = choices.find('|');
    std::string_view choice = choices.substr(0, bar);
    if (value == choice) {
      if constexpr (std::is_same_v<T, std::string>)
        into = value;
      else
        into = T(index);
      return true;
    }
    wanted += choice;
    if (bar == std::string_view::npos)
      break;
    choices.remove_prefix(bar + 1);
    wanted += choices.find('|') == std::string_view::npos ? " or " : ", ";
  }
  error = wanted;
  return false;
}

bool setMemory(std::string_view value, OwnFlags &flags, std::string &error) {
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

bool setArguments(std::string_view value, OwnFlags &flags, std::string &error) {
  flags.args = value;
  return splitCommandLine(value, flags.programArgs, error);
}

/// "FOLDER:FOLDER"
bool setWorkloads(std::string_view value, std::vector<std::string> &folders, std::string &error) {
  folders.clear();
  for (size_t begin = 0, end; begin <= value.size(); begin = end + 1) {
    end = std::min(value.find(':', begin), value.size());
    folders.emplace_back(value.substr(begin, end - begin));
    if (folders.back().empty())
      error = "want folders with a workload.json";
  }
  return error.empty();
}

bool setThreads(std::string_view value, ThreadRange &threads, std::string &error) {
  if (auto range = ThreadRange::parse(value))
    threads = *range;
  else
    error = "want LEAST-MOST or LEAST-, such as 1024-65536";
  return error.empty();
}

bool setPattern(std::string_view value, std::string &pattern, std::string &error) {
  pattern = value;
  try {
    std::regex checked(pattern, std::regex::extended);
  } catch (const std::regex_error &) {
    error = "want a POSIX extended regular expression, such as optiml";
  }
  return error.empty();
}

bool setKernel(std::string_view value, OwnFlags &flags, std::string &error) {
  return setPattern(value, flags.kernel, error);
}

bool setSearch(std::string_view value, OwnFlags &flags, std::string &error) {
  flags.search = true;
  flags.budget = SearchBudget();
  return value.empty() || parseBudget(value, flags.budget, error);
}

/// clang's format of -fsave-optimization-record.
bool setRecord(std::string_view value, OwnFlags &flags, std::string &error) {
  flags.report.record = value.empty() ? "yaml" : value;
  if (flags.report.record != "yaml" && flags.report.record != "bitstream")
    error = "want yaml or bitstream";
  return error.empty();
}

// Setters say what they want; the caller adds the flag and the value.
const Row rows[] = {
#define OWN_FLAG(name, env, form, fallback, meaning, setter)                                                           \
  {{name, env, form, fallback, meaning},                                                                               \
   [](std::string_view value, [[maybe_unused]] std::string_view choices, OwnFlags &flags, std::string &error) {        \
     return setter;                                                                                                    \
   }},
#include "Flags.def"
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
  enum { Flag, Value, Joined };
  struct Shape {
    std::string_view name;
    int shape;
  };
  static constexpr Shape options[] = {
#define NVCC_FLAG(name, shape, meaning) {name, shape},
#include "optiml/Support/NvccFlags.def"
  };
  if (argument.size() < 2 || argument[0] != '-')
    return false;
  const std::string_view name = argument.substr(argument[1] == '-' ? 2 : 1);
  auto option = std::lower_bound(std::begin(options), std::end(options), name,
                                 [](const Shape &a, std::string_view n) { return a.name < n; });
  return option != std::end(options) && option->name == name && option->shape != Flag;
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
    if (value.empty() && row->info.value[0] == '[') // not the same as no value
      value = "=";
  } else if (isSwitch(*row)) {
    value = "on";
  } else if (row->info.value[0] == '[') {
    return row->set(value, row->info.value, flags, error);
  } else {
    error = "'" + name + "' needs a value: " + name + "=" + row->info.value;
    return false;
  }
  if (row->set(value, row->info.value, flags, error))
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

bool optiml::parseBudget(std::string_view text, SearchBudget &budget, std::string &error) {
  budget = {0, 0};
  bool haveCount = false, haveTime = false;
  for (std::string_view left = text; error.empty();) {
    size_t comma = left.find(',');
    std::string_view part = left.substr(0, comma);
    double unit = part.empty() ? 0 : part.back() == 's' ? 1 : part.back() == 'm' ? 60 : part.back() == 'h' ? 3600 : 0;
    if (unit > 0) {
      double value = 0;
      part.remove_suffix(1);
      if (haveTime || !parseNumber(part, value) || !(value > 0) || !std::isfinite(value))
        break;
      budget.seconds = value * unit;
      haveTime = true;
    } else {
      if (haveCount || !parseNumber(part, budget.evaluations) || budget.evaluations == 0)
        break;
      haveCount = true;
    }
    if (comma == std::string_view::npos)
      return true;
    left.remove_prefix(comma + 1);
  }
  error = "want a number of evaluations (200), a time (90s, 5m, 2h), or both (200,90s)";
  return false;
}

bool optiml::splitCommandLine(std::string_view text, std::vector<std::string> &words, std::string &error) {
  words.clear();
  std::string word;
  bool inWord = false;
  char quote = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool escapes =
        c == '\\' && quote != '\'' && i + 1 < text.size() && (!quote || text[i + 1] == '"' || text[i + 1] == '\\');
    if (escapes) {
      word += text[++i];
      inWord = true;
    } else if (quote) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      inWord = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (inWord)
        words.push_back(std::move(word));
      word.clear();
      inWord = false;
    } else {
      word += c;
      inWord = true;
    }
  }
  if (quote) {
    error = std::string("the quote ") + quote + " is not closed";
    return false;
  }
  if (inWord)
    words.push_back(std::move(word));
  return true;
}

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
    if (argument.starts_with(prefix) || argument.starts_with(searchFlag) ||
        findRow(argument.substr(0, argument.find('=')))) {
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
  const bool applies = !flags.recipes.empty() || !env("OPTIML_RECIPES").value_or("").empty();
  if (!flags.search && !flags.help && !memoryCommand && !applies)
    return true;
  for (const Row &row : rows) {
    if (wasGiven(row) || row.info.name == searchFlag)
      continue;
    std::optional<std::string> value = env(row.info.env);
    if (!value || (value->empty() && !isSwitch(row)))
      continue;
    if (!row.set(*value, row.info.value, flags, error)) {
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
