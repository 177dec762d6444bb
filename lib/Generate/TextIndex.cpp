//===- TextIndex.cpp - the library's texts in a full-text index -----------===//
#include "TextIndex.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <sqlite3.h>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

namespace optiml::gen {
extern const char *const functionWordList; ///< English function words, and words for the program itself
extern const char *const weakWordList;     ///< words for data of any kind: nearly every request has them
} // namespace optiml::gen

struct TextIndex::Database {
  sqlite3 *handle = nullptr;
  ~Database() { sqlite3_close(handle); }

  llvm::Error error() const { return makeError("SQLite: {0}", sqlite3_errmsg(handle)); }

  llvm::Error run(const char *sql) {
    return sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) == SQLITE_OK ? llvm::Error::success() : error();
  }

  /// Binds the texts, and calls `row` for every row.
  template <typename Row> llvm::Error query(const char *sql, llvm::ArrayRef<std::string> texts, Row row) {
    sqlite3_stmt *statement = nullptr;
    if (sqlite3_prepare_v2(handle, sql, -1, &statement, nullptr) != SQLITE_OK)
      return error();
    for (size_t i = 0; i < texts.size(); ++i)
      sqlite3_bind_text(statement, int(i) + 1, texts[i].data(), int(texts[i].size()), SQLITE_STATIC);
    int status;
    while ((status = sqlite3_step(statement)) == SQLITE_ROW)
      row(statement);
    sqlite3_finalize(statement);
    return status == SQLITE_DONE ? llvm::Error::success() : error();
  }
};

static std::string textOf(sqlite3_stmt *statement, int column) {
  return reinterpret_cast<const char *>(sqlite3_column_text(statement, column));
}

TextIndex::TextIndex() : database(std::make_unique<Database>()) {}
TextIndex::~TextIndex() = default;

llvm::Expected<std::unique_ptr<TextIndex>> TextIndex::create(const Library &library) {
  std::unique_ptr<TextIndex> index(new TextIndex);
  if (sqlite3_open(":memory:", &index->database->handle) != SQLITE_OK)
    return index->database->error();
  if (llvm::Error error = index->fill(library))
    return std::move(error);
  return index;
}

std::string optiml::gen::letterRuns(StringRef text) {
  std::string result, run;
  auto endRun = [&] {
    if (run.size() > 1)
      result += run + " ";
    run.clear();
  };
  while (!text.empty()) {
    StringRef word = text.take_while([](char c) { return llvm::isAlnum(c); });
    if (word.size() == 1 && llvm::isAlpha(word[0]))
      run += llvm::toLower(word[0]);
    else if (!word.empty() || StringRef("=+-,;:/").contains(text[0]))
      endRun();
    text = text.drop_front(std::max<size_t>(word.size(), 1));
  }
  endRun();
  return result;
}

static std::string optionWords(const Operation &op, const Library &library) {
  std::string result;
  for (const Option &option : optionsOf(op, library))
    if (option.kind != Option::Kind::Type)
      result += option.name + " " + llvm::join(option.aliases, " ") + " " + llvm::join(option.values, " ") + " ";
  return result;
}

llvm::Expected<std::vector<Term>> TextIndex::terms(StringRef text) {
  std::vector<Term> result;
  if (llvm::Error error = database->run("delete from words"))
    return std::move(error);
  if (llvm::Error error = database->query("insert into words(rowid, text) values (1, ?)", {text.str()}, [](auto *) {}))
    return std::move(error);
  if (llvm::Error error = database->query("select term from wordTerms order by offset", {}, [&](sqlite3_stmt *row) {
        if (Term term = textOf(row, 0); !functionWords.count(term))
          result.push_back(term);
      }))
    return std::move(error);
  return result;
}

llvm::Error TextIndex::insert(const char *sql, StringRef text) {
  return database->query(sql, {text.str()}, [](auto *) {});
}

/// Every text of every operation as a row of `texts`, and all of them as one row of `operations`.
llvm::Error TextIndex::insertTexts(const Library &library) {
  for (const Operation &op : library.operations()) {
    if (!op.isPublic())
      continue;
    indexed.emplace_back().operation = &op;
    std::string name = op.name;
    std::replace(name.begin(), name.end(), '-', ' ');
    std::vector<std::pair<Kind, std::string>> own = {
        {Kind::Name, name},
        {Kind::Short, op.title},
        {Kind::Short, letterRuns(op.title)},
        {Kind::Long, letterRuns(op.about + "; " + llvm::join(op.phrases, "; "))},
        {Kind::Long, op.about},
        {Kind::Options, optionWords(op, library)}};
    for (const std::string &phrase : op.phrases)
      own.push_back({Kind::Short, phrase});
    std::string all;
    for (const auto &[kind, text] : own) {
      places.push_back({indexed.size() - 1, kind});
      if (kind != Kind::Options)
        all += text + ". " + letterRuns(text);
      llvm::SmallVector<StringRef, 32> words;
      llvm::SplitString(text, words, " \t\n,;:.()-/");
      for (StringRef word : words)
        vocabulary.insert(word.lower());
      if (llvm::Error error = insert("insert into texts(text) values (?)", text))
        return error;
    }
    if (llvm::Error error = insert("insert into operations(text) values (?)", all))
      return error;
  }
  return llvm::Error::success();
}

llvm::Error TextIndex::fill(const Library &library) {
  if (llvm::Error error = database->run("create virtual table operations using fts5(text, tokenize='porter unicode61');"
                                        "create virtual table texts using fts5(text, tokenize='porter unicode61');"
                                        "create virtual table words using fts5(text, tokenize='porter unicode61');"
                                        "create virtual table textTerms using fts5vocab(texts, instance);"
                                        "create virtual table wordTerms using fts5vocab(words, instance); begin"))
    return error;
  for (auto [list, into] : {std::pair(functionWordList, &functionWords), std::pair(weakWordList, &weakWords)}) {
    llvm::Expected<std::vector<Term>> stemmed = terms(list);
    if (!stemmed)
      return stemmed.takeError();
    into->insert(stemmed->begin(), stemmed->end());
  }
  if (llvm::Error error = insertTexts(library))
    return error;
  std::vector<std::set<Term>> byText(places.size());
  if (llvm::Error error = database->query("select doc, term from textTerms", {}, [&](sqlite3_stmt *row) {
        if (Term term = textOf(row, 1); !functionWords.count(term))
          byText[size_t(sqlite3_column_int64(row, 0)) - 1].insert(std::move(term));
      }))
    return error;
  for (size_t i = 0; i < places.size(); ++i) {
    auto [operation, kind] = places[i];
    IndexedOperation &into = indexed[operation];
    if (kind == Kind::Options) {
      into.options = std::move(byText[i]);
      continue;
    }
    into.terms.insert(byText[i].begin(), byText[i].end());
    // "maximum-of" is not named by "maximum".
    if (kind == Kind::Name && (byText[i].size() > 1 || !StringRef(into.operation->name).contains('-')))
      into.name = byText[i];
    std::erase_if(byText[i], [](const Term &term) { return term.size() == 1; });
    if (kind != Kind::Long && !byText[i].empty())
      into.phrases.push_back(std::move(byText[i]));
  }
  for (const IndexedOperation &op : indexed)
    for (const Term &term : op.terms)
      ++frequency[term];
  return llvm::Error::success();
}

llvm::Expected<std::map<size_t, double>> TextIndex::rank(StringRef word) {
  std::map<size_t, double> result;
  llvm::Error error = database->query("select rowid, bm25(operations) from operations where operations match ?",
                                      {"\"" + word.str() + "\""}, [&](sqlite3_stmt *row) {
                                        size_t operation = size_t(sqlite3_column_int64(row, 0)) - 1;
                                        result[operation] = -sqlite3_column_double(row, 1);
                                      });
  if (error)
    return std::move(error);
  return result;
}

/// "ConvTranspose2d" in words: "Conv", "Transpose", "2d".
static std::vector<std::string> partsOf(StringRef word) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < word.size(); ++i) {
    bool begins = i && ((llvm::isUpper(word[i]) && llvm::isLower(word[i - 1])) ||
                        (llvm::isDigit(word[i]) && llvm::isAlpha(word[i - 1])));
    if (begins)
      parts.emplace_back();
    parts.back() += word[i];
  }
  return parts;
}

llvm::Expected<std::vector<std::string>> TextIndex::knownWordsFor(StringRef word) {
  auto isKnown = [&](StringRef text) -> llvm::Expected<bool> {
    llvm::Expected<std::vector<Term>> found = terms(text);
    if (!found)
      return found.takeError();
    return found->empty() || llvm::all_of(*found, [&](const Term &term) { return frequency.count(term) != 0; });
  };
  std::vector<std::string> result;
  llvm::Expected<bool> known = isKnown(word);
  if (!known || *known)
    return known ? llvm::Expected<std::vector<std::string>>(std::move(result)) : known.takeError();
  std::vector<std::string> parts = partsOf(word);
  for (const std::string &part : parts) {
    if (known = isKnown(part); !known)
      return known.takeError();
    if (*known)
      result.push_back(part);
  }
  if (parts.size() > 1)
    return result;
  // One letter in five may be wrong.
  constexpr size_t lettersForOne = 5;
  std::string lower = word.lower();
  unsigned least = unsigned(lower.size() / lettersForOne);
  for (const std::string &other : vocabulary) {
    unsigned distance = StringRef(other).edit_distance(lower, /*AllowReplacements=*/true, least);
    if (other.front() != lower.front() || distance > least)
      continue;
    if (distance < least)
      result.clear();
    result.push_back(other), least = distance;
  }
  std::set<Term> meant;
  for (const std::string &other : result) {
    llvm::Expected<std::vector<Term>> own = terms(other);
    if (!own)
      return own.takeError();
    meant.insert(own->begin(), own->end());
  }
  result.resize(meant.size() == 1 ? 1 : 0);
  return result;
}

bool TextIndex::isWeak(const Term &term) const { return weakWords.count(term) != 0; }

double TextIndex::weight(const Term &term) const {
  auto known = frequency.find(term);
  double in = known == frequency.end() ? 0 : known->second, all = double(indexed.size());
  return std::log(1 + (all - in + 0.5) / (in + 0.5)) * (isWeak(term) ? weakWeight : 1);
}
