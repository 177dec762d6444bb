//===- Retrieve.cpp - ranking operations for plain words ------------------===//
//
// The score of an operation is the sum of BM25 over the words and over words beside each other, where later ones count
// less. It is multiplied by how much of the request the operation covers, how well one of its short texts agrees with
// the request (F1 of the terms' weights), whether its whole name is said, how well numbers, shapes and axes fit, and
// whether people ask for it often. The constants were chosen on 3,000 requests that are not in the test's list; the
// result hardly depends on them.
//
//===----------------------------------------------------------------------===//
#include "optiml/Generate/Retrieve.h"
#include "ReadWords.h"
#include "TextIndex.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <nlohmann/json.hpp>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

namespace {

constexpr double base = 0.15;       ///< what an operation keeps that covers nothing, or agrees in nothing
constexpr double laterWords = 0.2;  ///< by how much less the last word counts than the first
constexpr double pairRank = 0.7;    ///< what BM25 of two words beside each other counts
constexpr double wholeName = 1.0;   ///< its name is said in full: times the share of the request that this is
constexpr double isCommon = 1.25;   ///< people ask for it often
constexpr double otherNumber = 0.8; ///< for each number or shape that it has no use for, and each that it lacks
constexpr double otherAxis = 0.7;   ///< it works by rows or columns, and the request names none
constexpr double noAxis = 0.6;      ///< the request names rows or columns, and it has none
constexpr double clearly = 1.5;     ///< the first is clearly first where it has so many times the second's score
constexpr double wellNamed = 0.6;   ///< what of a short text must be said for an operation beside a stage
constexpr double surelyNamed = 0.8; ///< what of a short text must be said for an operation that is written

struct QueryWord {
  std::string word;
  Term term;
  double weight = 0, position = 1;
  std::map<size_t, double> rank; ///< BM25 by operation
  std::map<size_t, double> pair; ///< of it and the word before it, beside each other
};

struct Scored {
  size_t operation = 0;
  double score = 0;
  double agreement = 0; ///< F1 of the short text that agrees best with the request
  size_t phrase = 0;    ///< that text
  double said = 0;      ///< the largest part of one of its short texts that was said
  bool isNamed = false; ///< its whole name was
};

class Retriever {
public:
  Retriever(const Library &library, TextIndex &index) : library(library), index(index) {}
  llvm::Expected<Retrieval> run(StringRef words, size_t count);

private:
  llvm::Error readQuery(StringRef words);
  llvm::Error addWord(StringRef word, std::set<Term> &seen);
  std::vector<Scored> rankAll(llvm::ArrayRef<QueryWord> query) const;
  std::optional<Scored> scoreOf(size_t operation, llvm::ArrayRef<QueryWord> query, double total) const;
  void bindAll();
  double fit(size_t operation) const;
  void preferHeavy(std::vector<Scored> &ranked) const;
  Match matchOf(const Scored &scored) const;
  llvm::Expected<Match> matchOf(const FormulaMatch &formula);
  bool namesAnother(const Match &match) const;
  std::string doubtAbout(const Retrieval &retrieval, llvm::ArrayRef<Scored> ranked) const;
  std::vector<std::string> notInOneText(const Scored &scored) const;

  const IndexedOperation &indexed(const Scored &scored) const { return index.operations()[scored.operation]; }
  bool isStage(const Scored &scored) const { return indexed(scored).operation->isStage; }

  const Library &library;
  TextIndex &index;
  Reading reading;
  std::vector<QueryWord> query;
  std::vector<Match> bound; ///< by operation: the options, and the numbers that are left over
  std::set<Term> axisTerms;
  bool namesAxis = false;
  std::vector<std::string> guessed; ///< words that no text has, read as others
};

} // namespace

llvm::Error Retriever::addWord(StringRef word, std::set<Term> &seen) {
  llvm::Expected<std::vector<Term>> terms = index.terms(word);
  if (!terms)
    return terms.takeError();
  for (const Term &term : *terms) {
    if (!seen.insert(term).second)
      continue;
    llvm::Expected<std::map<size_t, double>> rank = index.rank(word);
    if (!rank)
      return rank.takeError();
    query.push_back({word.str(), term, index.weight(term), 1, std::move(*rank), {}});
    if (query.size() > 1)
      if (llvm::Error error = index.rank((query[query.size() - 2].word + " " + word).str()).moveInto(query.back().pair))
        return error;
    namesAxis |= axisTerms.count(term) != 0;
  }
  return llvm::Error::success();
}

llvm::Error Retriever::readQuery(StringRef words) {
  words =
      words.take_front(std::min(words.find("Example"), words.find("example:"))); // its numbers are none of the request
  reading = readWords(words);
  llvm::Expected<std::vector<Term>> axes = index.terms("rows columns");
  if (!axes)
    return axes.takeError();
  axisTerms.insert(axes->begin(), axes->end());
  std::set<Term> seen;
  std::string separated = llvm::join(reading.words(), " ");
  llvm::SmallVector<StringRef, 32> all;
  std::string withRuns = separated + " " + letterRuns(words);
  if (StringRef(separated).contains("how many") || StringRef(separated).contains("number of"))
    withRuns += " count";
  StringRef(withRuns).split(all, ' ', -1, /*KeepEmpty=*/false);
  for (StringRef word : all) {
    if (word.size() < 2 && !llvm::isDigit(word[0]))
      continue;
    size_t at = words.find_insensitive(word);
    llvm::Expected<std::vector<std::string>> meant =
        index.knownWordsFor(at == StringRef::npos ? word : words.substr(at, word.size()));
    if (!meant)
      return meant.takeError();
    if (!meant->empty())
      guessed.push_back(word.str());
    else
      meant->push_back(word.str());
    for (const std::string &known : *meant)
      if (llvm::Error error = addWord(known, seen))
        return error;
  }
  for (size_t i = 0; i < query.size(); ++i)
    query[i].position = 1 - laterWords * double(i) / double(query.size()), query[i].weight *= query[i].position;
  return llvm::Error::success();
}

void Retriever::bindAll() {
  for (const IndexedOperation &op : index.operations()) {
    Match match;
    match.operation = op.operation;
    match.request.operation = op.operation->name;
    match.leftOver = bindOptions(reading, *op.operation, library, match.request.options);
    for (const std::string &option : op.operation->required)
      if (!match.request.options.count(option))
        match.missing.push_back(option);
    bound.push_back(std::move(match));
  }
}

/// How well the numbers, shapes and axes of the request fit.
double Retriever::fit(size_t operation) const {
  const IndexedOperation &op = index.operations()[operation];
  double result = std::pow(otherNumber, double(bound[operation].leftOver.size() + bound[operation].missing.size()));
  bool hasAxis = llvm::any_of(axisTerms, [&](const Term &t) { return op.terms.count(t) || op.options.count(t); });
  if (namesAxis && !hasAxis)
    result *= noAxis;
  if (!namesAxis && StringRef(op.operation->name).ends_with("-by-axis"))
    result *= otherAxis;
  return result;
}

std::optional<Scored> Retriever::scoreOf(size_t operation, llvm::ArrayRef<QueryWord> words, double total) const {
  const IndexedOperation &op = index.operations()[operation];
  double rank = 0, covered = 0;
  std::set<Term> said;
  for (const QueryWord &word : words) {
    said.insert(word.term);
    auto at = word.rank.find(operation), pair = word.pair.find(operation);
    if (at != word.rank.end())
      rank += at->second * word.position;
    if (pair != word.pair.end())
      rank += pairRank * pair->second * word.position;
    if (at != word.rank.end() || op.options.count(word.term))
      covered += word.weight;
  }
  if (rank == 0)
    return std::nullopt;
  Scored result{operation};
  for (size_t i = 0; i < op.phrases.size(); ++i) {
    double whole = 0, part = 0;
    for (const Term &term : op.phrases[i])
      whole += index.weight(term);
    for (const QueryWord &word : words)
      part += op.phrases[i].count(word.term) ? word.weight : 0;
    if (part == 0)
      continue;
    double precision = part / whole, recall = part / total, both = 2 * precision * recall / (precision + recall);
    if (!llvm::all_of(op.phrases[i], [&](const Term &term) { return index.isWeak(term); }))
      result.said = std::max(result.said, precision);
    if (both > result.agreement)
      result.agreement = both, result.phrase = i;
  }
  result.isNamed = llvm::any_of(op.name, [&](const Term &term) { return !index.isWeak(term); }) &&
                   llvm::all_of(op.name, [&](const Term &term) { return said.count(term) != 0; });
  double ofName = llvm::sum_of(llvm::map_range(op.name, [&](const Term &term) { return index.weight(term); }), 0.0);
  result.score = rank * (base + covered / total) * (base + result.agreement) * fit(operation) *
                 (result.isNamed ? 1 + wholeName * ofName / total : 1) * (op.operation->isCommon ? isCommon : 1);
  return result;
}

std::vector<Scored> Retriever::rankAll(llvm::ArrayRef<QueryWord> words) const {
  double total = llvm::sum_of(llvm::map_range(words, [](const QueryWord &word) { return word.weight; }), 0.0);
  std::vector<Scored> result;
  for (size_t i = 0; i < index.operations().size(); ++i)
    if (std::optional<Scored> scored = scoreOf(i, words, total))
      result.push_back(*scored);
  llvm::sort(result, [](const Scored &a, const Scored &b) {
    return a.score != b.score ? a.score > b.score : a.operation < b.operation;
  });
  return result;
}

/// "row sums of GELU(x)": where a stage comes first and what is left names an operation well, the operation is meant,
/// and the stage goes with it.
void Retriever::preferHeavy(std::vector<Scored> &ranked) const {
  if (ranked.empty() || !isStage(ranked.front()))
    return;
  const IndexedOperation &stage = indexed(ranked.front());
  std::set<Term> said = stage.phrases[ranked.front().phrase];
  said.insert(stage.name.begin(), stage.name.end());
  for (const Scored &scored : ranked)
    if (isStage(scored) && scored.isNamed)
      said.insert(indexed(scored).name.begin(), indexed(scored).name.end());
  std::vector<QueryWord> rest;
  llvm::copy_if(query, std::back_inserter(rest), [&](const QueryWord &word) { return !said.count(word.term); });
  for (const Scored &scored : rankAll(rest))
    if (!isStage(scored) && scored.said >= wellNamed) {
      auto at = llvm::find_if(ranked, [&](const Scored &s) { return s.operation == scored.operation; });
      std::rotate(ranked.begin(), at, at + 1);
      ranked.front().score = std::max(ranked.front().score, ranked[1].score);
      return;
    }
}

Match Retriever::matchOf(const Scored &scored) const {
  const IndexedOperation &op = indexed(scored);
  Match match = bound[scored.operation];
  match.score = scored.score;
  for (const QueryWord &word : query)
    if (!op.terms.count(word.term) && !op.options.count(word.term))
      match.leftOver.push_back(word.word);
  return match;
}

/// Nothing but words for data may stand behind a formula.
llvm::Expected<Match> Retriever::matchOf(const FormulaMatch &formula) {
  Match match;
  match.operation = library.find(formula.request.operation);
  match.request = formula.request;
  Reading rest = readWords(formula.rest);
  match.leftOver = bindOptions(rest, *match.operation, library, match.request.options);
  for (const std::string &word : rest.words()) {
    llvm::Expected<std::vector<Term>> terms = index.terms(word);
    if (!terms)
      return terms.takeError();
    if (!terms->empty() && !index.isWeak(terms->front()) && word.size() > 1)
      match.leftOver.push_back(word);
  }
  return match;
}

/// "y = a*x where x is sparse": what stands behind a formula is a word of some operation's name.
bool Retriever::namesAnother(const Match &match) const {
  return llvm::any_of(query, [&](const QueryWord &word) {
    return llvm::is_contained(match.leftOver, word.word) &&
           llvm::any_of(index.operations(), [&](const IndexedOperation &op) {
             return op.operation != match.operation && op.name.count(word.term);
           });
  });
}

/// The words that are neither in the name, nor in an option, nor in the text that agrees best: an operation that is
/// written must be meant by one text of its own, not by pieces of many.
std::vector<std::string> Retriever::notInOneText(const Scored &scored) const {
  const IndexedOperation &op = indexed(scored);
  std::vector<std::string> result;
  for (const QueryWord &word : query)
    if (!index.isWeak(word.term) && !op.name.count(word.term) && !op.options.count(word.term) &&
        !op.phrases[scored.phrase].count(word.term))
      result.push_back(word.word);
  return result;
}

std::string Retriever::doubtAbout(const Retrieval &retrieval, llvm::ArrayRef<Scored> ranked) const {
  const std::vector<Match> &matches = retrieval.matches;
  const Match &first = matches.front();
  if (!first.leftOver.empty())
    return "what is not accounted for: " + llvm::join(first.leftOver, ", ");
  if (!guessed.empty())
    return "what was guessed at: " + llvm::join(guessed, ", ");
  if (!first.missing.empty())
    return first.operation->name + " needs a value for " + llvm::join(first.missing, ", ");
  if (matches.size() > 1 && first.score < clearly * matches[1].score)
    return "it is not clear which operation is meant";
  if (!ranked.empty() && indexed(ranked.front()).operation == first.operation) {
    const Scored &scored = ranked.front();
    if (std::vector<std::string> words = notInOneText(scored); !words.empty())
      return "what may mean something else: " + llvm::join(words, ", ");
    if (!scored.isNamed && scored.said < surelyNamed)
      return "it is not clear that this operation is meant";
  }
  for (const std::string &word : reading.words())
    if (StringRef(word).ends_with("*"))
      return "what is not accounted for: " + word;
  llvm::Expected<ProgramSpec> spec = resolve(first.request, library);
  return spec ? "" : llvm::toString(spec.takeError());
}

llvm::Expected<Retrieval> Retriever::run(StringRef words, size_t count) {
  if (llvm::Error error = readQuery(words))
    return std::move(error);
  bindAll();
  Retrieval result;
  if (std::optional<FormulaMatch> formula = matchFormula(words, library)) {
    llvm::Expected<Match> match = matchOf(*formula);
    if (!match)
      return match.takeError();
    if (!namesAnother(*match))
      result.matches.push_back(std::move(*match));
  }
  std::vector<Scored> ranked = rankAll(query);
  preferHeavy(ranked);
  for (const Scored &scored : ranked)
    if (result.matches.size() < count &&
        (result.matches.empty() || result.matches[0].operation != indexed(scored).operation))
      result.matches.push_back(matchOf(scored));
  if (result.matches.empty())
    return makeError("none of these words is known; --list shows what there is");
  if (result.matches[0].score == 0) // a formula's meaning is computed, not ranked
    result.matches[0].score = result.matches.size() > 1 ? 2 * result.matches[1].score : 1;
  for (const Scored &scored : ranked)
    if (isStage(scored) && scored.isNamed && indexed(scored).operation != result.matches[0].operation)
      result.stages.push_back(indexed(scored).operation->name);
  result.doubt = doubtAbout(result, ranked);
  return result;
}

llvm::Expected<Retrieval> optiml::gen::retrieve(StringRef words, const Library &library, size_t count) {
  llvm::Expected<std::unique_ptr<TextIndex>> index = TextIndex::create(library);
  if (!index)
    return index.takeError();
  return Retriever(library, **index).run(words, count);
}

nlohmann::json optiml::gen::toJson(const Retrieval &retrieval) {
  nlohmann::json candidates = nlohmann::json::array();
  for (const Match &match : retrieval.matches) {
    Request request = match.request;
    for (const std::string &name : match.missing)
      request.options[name] = "?";
    candidates.push_back({{"operation", match.operation->name},
                          {"score", std::round(match.score * 100) / 100},
                          {"command", commandLine(request)}});
  }
  const Match &first = retrieval.matches.front();
  return {{"candidates", candidates},
          {"understood",
           {{"request", toJson(first.request)},
            {"leftOver", first.leftOver},
            {"missing", first.missing},
            {"doubt", retrieval.doubt}}}};
}
