//===- RecipeFile.cpp - recipes that are kept beside the source -----------===//
#include "RecipeFile.h"
#include "optiml/Core/Hash.h"
#include "optiml/Core/JsonFields.h"
#include "optiml/Core/KernelText.h"
#include "optiml/Support/TempDir.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include <cmath>
#include <filesystem>

using namespace optiml;
using nlohmann::json;

static constexpr const char *format = "optiml recipes";
static constexpr unsigned version = 1;

static json bytesToJson(const std::vector<std::string> &values) {
  json all = json::array();
  for (const std::string &bytes : values)
    all.push_back(llvm::toHex(bytes, /*LowerCase=*/true));
  return all;
}

/// To four digits.
static double rounded(double v) { return !std::isfinite(v) ? 0 : std::stod(llvm::formatv("{0:e3}", v).str()); }

/// In an order for people.
static nlohmann::ordered_json recordOf(const KernelRecipe &r) {
  nlohmann::ordered_json record = {{"file", r.file},
                                   {"kernel", r.kernel},
                                   {"symbol", r.symbol},
                                   {"arch", r.arch},
                                   {"fp", r.fp},
                                   {"recipe", recipeText(r.recipe)},
                                   {"grid", r.hints.grid},
                                   {"block", r.hints.block},
                                   {"arguments", bytesToJson(r.hints.arguments)},
                                   {"heaviest", bytesToJson(r.hints.heaviest)},
                                   {"leastThreads", r.leastThreads},
                                   {"outcome", r.outcome},
                                   {"flags", r.flags},
                                   {"gpu", r.gpu},
                                   {"speedup", std::round(1000 * r.speedup) / 1000},
                                   {"measured", r.isMeasured},
                                   {"before", rounded(r.before)},
                                   {"after", rounded(r.after)},
                                   {"interval", {rounded(r.low), rounded(r.high)}},
                                   {"toolkit", r.toolkit},
                                   {"date", r.date},
                                   {"version", r.version}};
  if (!r.threads.isAll())
    record["threads"] = r.threads.str();
  if (!r.texts.empty()) {
    record["texts"] = r.texts;
    record["exercised"] = r.exercised;
  }
  if (!r.instantiatedIn.empty())
    record["instantiatedIn"] = r.instantiatedIn;
  if (!r.launchedIn.empty())
    record["launchedIn"] = r.launchedIn;
  return record;
}

static llvm::Expected<KernelRecipe> recipeOf(const json &value) {
  KernelRecipe r;
  JsonFields in(value, "a recipe");
  in.text("file", r.file);
  in.text("kernel", r.kernel);
  in.text("symbol", r.symbol);
  in.number("arch", r.arch);
  in.text("fp", r.fp);
  std::string recipe;
  in.text("recipe", recipe);
  auto extents = [&](const char *name, std::array<int64_t, 3> &into) {
    const json &list = in.array(name);
    for (size_t i = 0; i < 3; ++i)
      if (list.size() != 3 || !list[i].is_number_integer())
        in.fail(std::string("a recipe's '") + name + "' must hold three integers");
      else
        into[i] = list[i].get<int64_t>();
  };
  extents("grid", r.hints.grid);
  extents("block", r.hints.block);
  auto bytes = [&](const char *name, std::vector<std::string> &into) {
    for (const json &entry : in.array(name)) {
      std::string decoded;
      if (!entry.is_string() || !llvm::tryGetFromHex(entry.get<std::string>(), decoded))
        in.fail(std::string("a recipe's '") + name + "' must hold hexadecimal digits");
      into.push_back(std::move(decoded));
    }
  };
  bytes("arguments", r.hints.arguments);
  bytes("heaviest", r.hints.heaviest);
  in.number("leastThreads", r.leastThreads);
  if (value.contains("threads")) {
    std::string threads;
    in.text("threads", threads);
    if (auto range = ThreadRange::parse(threads))
      r.threads = *range;
    else
      in.fail("a recipe's 'threads' must be a range such as \"1024-65536\"");
  }
  if (value.contains("texts")) {
    r.texts = value["texts"];
    in.text("exercised", r.exercised);
    if (llvm::Error e = KernelTexts().addAll(r.texts))
      in.fail("a recipe's 'texts': " + llvm::toString(std::move(e)));
  }
  in.text("outcome", r.outcome);
  in.text("flags", r.flags);
  in.text("gpu", r.gpu);
  in.number("speedup", r.speedup);
  in.boolean("measured", r.isMeasured);
  in.text("version", r.version);
  if (value.contains("before")) { // records of older versions lack these
    in.number("before", r.before);
    in.number("after", r.after);
    in.text("toolkit", r.toolkit);
    in.text("date", r.date);
    const json &interval = in.array("interval");
    if (interval.size() == 2 && interval[0].is_number() && interval[1].is_number())
      std::tie(r.low, r.high) = std::pair(interval[0].get<double>(), interval[1].get<double>());
    else
      in.fail("a recipe's 'interval' must hold two numbers");
  }
  for (auto [name, into] : {std::pair("instantiatedIn", &r.instantiatedIn), {"launchedIn", &r.launchedIn}})
    if (value.contains(name))
      in.texts(name, *into);
  if (llvm::Error e = in.take())
    return std::move(e);
  if (llvm::Error e = parseRecipe(recipe).moveInto(r.recipe))
    return std::move(e);
  return r;
}

llvm::Expected<RecipeFile> RecipeFile::read(const std::string &path) {
  if (!llvm::sys::fs::exists(path))
    return parse(path, "");
  auto text = readFile(path);
  if (!text)
    return text.takeError();
  return parse(path, *text);
}

llvm::Expected<RecipeFile> RecipeFile::parse(const std::string &path, llvm::StringRef text) {
  RecipeFile file;
  file.path = path;
  unsigned number = 0;
  auto fail = [&](const std::string &why) { return makeError("{0}:{1}: {2}", path, number, why); };
  for (llvm::StringRef rest = text; !rest.empty();) {
    auto [line, after] = rest.split('\n');
    rest = after;
    ++number;
    if (line.trim().empty())
      continue;
    json value = json::parse(line.str(), nullptr, /*allow_exceptions=*/false);
    if (number == 1) {
      if (!value.is_object() || value.value("format", json()) != format)
        return fail("this is no file of recipes: its first line is not {\"format\": \"optiml recipes\", …}");
      if (value.value("version", json()) != version)
        return fail("the file is of another version of OptiML; make it again");
      continue;
    }
    auto recipe = recipeOf(value);
    if (!recipe)
      return fail(llvm::toString(recipe.takeError()));
    file.recipes.push_back(std::move(*recipe));
  }
  return file;
}

static auto placeOf(const KernelRecipe &r) { return std::tie(r.file, r.symbol, r.arch, r.fp, r.threads); }

bool RecipeFile::holds(const KernelRecipe &recipe) const {
  auto text = [](KernelRecipe r) {
    r.instantiatedIn.clear();
    r.launchedIn.clear();
    return recordOf(r).dump();
  };
  const std::string wanted = text(recipe);
  return llvm::any_of(recipes, [&](const KernelRecipe &r) { return text(r) == wanted; });
}

void RecipeFile::add(KernelRecipe recipe) {
  // What is known of a kernel's files outlives its recipes.
  std::set<std::string> others;
  auto isOfOther = [&](const KernelRecipe &r) {
    return r.file != recipe.file && llvm::is_contained(r.instantiatedIn, recipe.file);
  };
  for (const KernelRecipe &r : recipes)
    if (r.symbol == recipe.symbol && (r.file == recipe.file || isOfOther(r))) {
      others.insert(r.instantiatedIn.begin(), r.instantiatedIn.end());
      others.insert(r.file);
      recipe.launchedIn = r.launchedIn;
    }
  others.erase(recipe.file);
  recipe.instantiatedIn.assign(others.begin(), others.end());
  llvm::erase_if(recipes, [&](const KernelRecipe &r) {
    return r.symbol == recipe.symbol && r.arch == recipe.arch && r.fp == recipe.fp &&
           (r.file == recipe.file || isOfOther(r)) && r.threads.overlaps(recipe.threads);
  });
  recipes.push_back(std::move(recipe));
}

llvm::Error RecipeFile::write() const {
  std::vector<KernelRecipe> sorted = recipes;
  llvm::stable_sort(sorted, [](const auto &a, const auto &b) { return placeOf(a) < placeOf(b); });
  std::string text = json{{"format", format}, {"version", version}}.dump() + "\n";
  for (const KernelRecipe &r : sorted)
    text += recordOf(r).dump() + "\n";
  if (llvm::sys::fs::exists(path)) { // builds may look at its time
    auto now = readFile(path);
    if (!now)
      llvm::consumeError(now.takeError());
    else if (*now == text)
      return llvm::Error::success();
  }
  return writeFileAtomically(path, text);
}

std::string RecipeFile::nameOf(const std::string &source) const {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path folder = fs::weakly_canonical(fs::absolute(path, error), error).parent_path();
  fs::path relative = fs::weakly_canonical(fs::absolute(source, error), error).lexically_relative(folder);
  return relative.empty() ? source : relative.generic_string();
}

std::vector<const KernelRecipe *> RecipeFile::of(const std::string &source) const {
  std::vector<const KernelRecipe *> found;
  const std::string name = nameOf(source);
  for (const KernelRecipe &r : recipes)
    if (r.file == name || llvm::is_contained(r.instantiatedIn, name))
      found.push_back(&r);
  return found;
}

std::set<std::string> RecipeFile::launchedBy(const std::string &source) const {
  std::set<std::string> found;
  const std::string name = nameOf(source);
  for (const KernelRecipe &r : recipes)
    if (llvm::is_contained(r.launchedIn, name))
      found.insert(r.symbol);
  return found;
}

std::string RecipeFile::fingerprintOf(const std::string &source) const {
  std::string all;
  for (const KernelRecipe *r : of(source))
    all += recordOf(*r).dump() + "\n";
  for (const std::string &symbol : launchedBy(source))
    all += symbol + "\n";
  return contentHash(all);
}
