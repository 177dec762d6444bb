//===- Reader.h - one request being read ------------------------*- C++ -*-===//
//
// Words are marked as used when something has been made of them; what is left over at the end must be harmless, or the
// request is refused. Understand.cpp chooses the operations, ReadModifiers.cpp their properties, ReadShapes.cpp and
// ReadNumbers.cpp sizes and constants, and CheckWords.cpp looks at the rest.
//
//===----------------------------------------------------------------------===//
#ifndef OPTIML_LIB_GENERATE_READER_H
#define OPTIML_LIB_GENERATE_READER_H

#include "Asides.h"
#include "ComposeSteps.h"
#include "Formula.h"
#include "Recall.h"
#include "optiml/Generate/Request.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <set>

namespace optiml::gen {

using llvm::StringRef;

struct Match {
  const Operation *op = nullptr;
  Span span;
  double score = 0;
  size_t first() const { return span.at.front(); }
};

struct Modifier {
  std::string name;
  Span span;
  bool soft = false; ///< means something only to an operation that offers it
};

/// A few bits for a word: a text that lacks some of a phrase's has not all of its words.
inline uint64_t bitsOf(StringRef word) {
  return word.empty() ? 0
                      : uint64_t(1) << ((size_t(word[0]) * 37 + size_t(word.back()) * 11 +
                                         size_t(word[word.size() / 2]) * 5 + word.size()) %
                                        64);
}

/// The words of a phrase, which most requests have not all of.
struct Phrase : std::vector<std::string> {
  Phrase(std::vector<std::string> words = {}) : std::vector<std::string>(std::move(words)) {}
  /// When the words are settled.
  void settle() {
    for (const std::string &word : *this)
      bits |= word == "#" ? 0 : bitsOf(word);
  }
  uint64_t bits = 0;
};
using Phrases = std::vector<Phrase>;

/// Word statistics of the library.
class Index {
public:
  Index(const Library &library, const Vocabulary &vocabulary) {
    for (const Operation &op : library.operations()) {
      if (op.isFamily || op.isSnippet)
        continue;
      ++count;
      auto know = [&](const std::vector<std::string> &phrases) {
        for (const std::string &phrase : phrases)
          for (const std::string &word : vocabulary.words(phrase))
            sizeWords.insert(word);
      };
      auto nameValues = [&](const std::vector<std::string> &phrases) {
        for (const std::string &phrase : phrases)
          valueWords.insert(vocabulary.words(phrase).back());
      };
      for (const Size &size : op.sizes)
        know(size.words), nameValues(size.words);
      for (const Real &real : op.reals)
        know(real.words), nameValues(real.words);
      for (const ShapeRule &rule : op.shapes)
        know(rule.words);
      know(op.notWith);
      know(op.needs);
      Document &document = documents[&op];
      for (const Size &size : op.sizes)
        for (const std::string &text : size.words)
          document.sizeNames.push_back(vocabulary.words(text));
      for (const std::string &phrase : op.notWith)
        document.notWith.push_back(vocabulary.words(phrase));
      for (const std::string &phrase : op.needs)
        document.needs.push_back(vocabulary.words(phrase));
      for (const std::vector<std::string> &way : op.means) {
        document.means.emplace_back();
        for (const std::string &step : way)
          document.means.back().emplace_back(toPhrases(vocabulary.phrases(step)));
        for (const Phrases &step : document.means.back())
          for (const std::vector<std::string> &phrase : step)
            document.described.insert(phrase.begin(), phrase.end());
      }
      for (const std::string &phrase : op.says) {
        document.phrases.push_back(vocabulary.words(phrase));
        // "matrix multiplication" is as well a "matrix product".
        std::vector<std::string> product = document.phrases.back();
        if (llvm::is_contained(product, "matrix") && llvm::is_contained(product, "multiply")) {
          llvm::replace(product, std::string("multiply"), std::string("product"));
          document.phrases.insert(document.phrases.end() - 1, product);
        }
        if (document.phrases.back().size() > 2) // "sum of the squares", "sum of squares"
          llvm::erase_if(document.phrases.back(),
                         [](const std::string &word) { return word == "of" || word == "the" || word == "an"; });
        for (const std::string &word : document.phrases.back()) {
          document.terms[word] += 2;
          nameWords.insert(word);
        }
      }
      allPhrases.insert(document.phrases.begin(), document.phrases.end());
      for (Phrases *phrases : {&document.phrases, &document.notWith, &document.needs})
        for (Phrase &phrase : *phrases)
          phrase.settle();
      for (const std::string &word : vocabulary.words(op.title + " " + op.about))
        if (vocabulary.isTelling(word) && vocabulary.isFiller(word))
          document.described.insert(word);
        else if (!vocabulary.isFiller(word))
          ++document.terms[word];
      for (auto &[word, times] : document.terms) {
        ++frequency[word];
        document.length += times;
      }
      total += document.length;
    }
  }

  double idf(const std::string &word) const {
    auto it = frequency.find(word);
    double df = it == frequency.end() ? 0 : it->second;
    return std::log(1 + (count - df + 0.5) / (df + 0.5));
  }
  /// Okapi BM25 with its usual constants.
  double bm25(const Operation *op, const std::vector<Token> &tokens) const {
    const Document &document = documents.at(op);
    double score = 0, average = total / std::max(1.0, count);
    for (const Token &token : tokens) {
      auto it = document.terms.find(token.text);
      if (it != document.terms.end())
        score += idf(token.text) * it->second * 2.2 / (it->second + 1.2 * (0.25 + 0.75 * document.length / average));
    }
    return score;
  }
  const Phrases &phrases(const Operation *op) const { return documents.at(op).phrases; }
  const Phrases &notWith(const Operation *op) const { return documents.at(op).notWith; }
  const std::vector<std::vector<std::string>> &sizeNames(const Operation *op) const { return documents.at(op).sizeNames; }
  const Phrases &needs(const Operation *op) const { return documents.at(op).needs; }
  const std::vector<std::vector<Phrases>> &means(const Operation *op) const { return documents.at(op).means; }
  bool mentions(const Operation *op, const std::string &word) const {
    const Document &document = documents.at(op);
    return document.terms.count(word) || document.described.count(word);
  }
  bool isKnown(const std::string &word) const { return frequency.count(word) || sizeWords.count(word); }
  /// Whether sizes or constants are named by it.
  bool namesValue(const std::string &word) const { return valueWords.count(word) != 0; }
  /// Whether it is a phrase that means an operation.
  bool isName(const std::vector<std::string> &phrase) const { return allPhrases.count(phrase) != 0; }
  const std::set<std::string> &allNames() const { return nameWords; }
  /// Whether the word is part of a phrase that means an operation.
  bool names(const std::string &word) const { return nameWords.count(word) != 0; }

private:
  static Phrases toPhrases(const std::vector<std::vector<std::string>> &all) {
    Phrases result(all.begin(), all.end());
    for (Phrase &phrase : result)
      phrase.settle();
    return result;
  }
  struct Document {
    Phrases phrases, notWith, needs;
    std::vector<std::vector<std::string>> sizeNames;
    std::vector<std::vector<Phrases>> means; ///< ways to describe it, each in steps, each of alternatives
    std::map<std::string, double> terms;
    std::set<std::string> described; ///< words that say little, but are accounted for
    double length = 0;
  };
  std::map<const Operation *, Document> documents;
  std::map<std::string, double> frequency;
  std::set<std::vector<std::string>> allPhrases;
  std::set<std::string> nameWords, sizeWords, valueWords;
  double count = 0, total = 0;
};

/// That of the embedded library is made once.
inline std::shared_ptr<const Index> indexOf(const Library &library, const Vocabulary &vocabulary) {
  auto make = [&] { return std::make_shared<const Index>(library, vocabulary); };
  if (&library != &Library::builtin() || &vocabulary != &Vocabulary::builtin())
    return make();
  static const std::shared_ptr<const Index> builtin = make();
  return builtin;
}

class Reader {
public:
  /// `recalled`: the operation that it must be (Recall.h); null where its phrases tell. `isNamed`: these were found,
  /// too. `without`: an operation that it cannot be.
  Reader(StringRef request, const std::vector<Token> &tokens, const Library &library, const Vocabulary &vocabulary,
         const Operation *recalled = nullptr, bool isNamed = false, const Operation *without = nullptr)
      : library(library), vocabulary(vocabulary), ownIndex(indexOf(library, vocabulary)), index(*ownIndex),
        tokens(tokens), used(tokens.size(), false), showsIntegers(examplesAreIntegers(request)), recalled(recalled),
        isNamed(isNamed), without(without) {
    correctSpelling();
  }
  /// The words of a request, with formulas and descriptions in the names of what they mean.
  static std::vector<Token> tokensOf(StringRef request, const Library &library, const Vocabulary &vocabulary) {
    std::string text = matrixProductsInWords(descriptionsInWords(
        everydayInWords(abbreviationsInWords(withoutExamples(request)), vocabulary), library, vocabulary));
    return vocabulary.tokenize(formulasInWords(spokenFormulas(text, library), library));
  }

  llvm::Expected<Understood> read();
  std::vector<const Operation *> nearest(size_t count) const;
  /// After read() failed: what to try instead, where such requests are known.
  const Operation *recall() const;
  /// After read() failed: the operation whose constant nobody gave, or that has no such axis; or null.
  const Operation *lacking() const { return lackingOne; }
  /// After read() failed for want of an axis: the request with the operation's parts for its name, which may have one.
  std::optional<std::string> byParts() const;
  bool recognized(const Operation *op) const {
    return heavy.op == op || llvm::any_of(result.before, [&](const Stage &stage) { return stage.operation == op; });
  }

private:
  llvm::Error useRecalled();
  bool isKnownFor(const std::string &word) const;
  void correctSpelling();
  std::vector<std::string> takeApart(StringRef word) const;
  bool isKnown(const std::string &word) const;
  llvm::Error findType();
  bool describesNext(const Match &match, const Match &next) const;
  bool joinsOperands(const Span &span) const;
  void findModifiers();
  void dropInnerModifiers();
  bool appliedAgain(const Span &a, const Span &b) const;
  std::optional<Span> matchInAnyOrder(size_t start, const std::vector<std::string> &phrase, bool isWide = false) const;
  std::optional<Span> matchSteps(const std::vector<Phrases> &steps) const;
  bool isExcluded(const Span &span) const;
  unsigned depthAt(size_t where) const;
  bool isAside(const Span &span) const;
  bool explainsAgain(size_t first, size_t again) const;
  bool namesData(const Match &match) const;
  bool isDataName(const Operation &op, const Span &span) const;
  const Operation *otherMeaning(size_t at) const;
  bool countsSize(size_t at) const;
  bool isLabel(size_t at) const;
  bool isManner(size_t at) const;
  bool compares(size_t at) const;
  bool isNamedNumber(int64_t value) const;
  bool isUnit(size_t at) const;
  bool describesData(size_t at) const;
  bool hasEquationLeft() const;
  bool isSizeName(const Operation &op, const Span &span) const;
  unsigned countInputs() const;
  size_t countOperands() const;
  bool countsOperands(size_t at) const;
  std::vector<bool> wordsOfStages() const;
  std::vector<Match> allMatches() const;
  double offers(const Operation &op) const;
  std::optional<size_t> countsRows(size_t at) const;
  bool isNamedByNumber(const Modifier &axis) const;
  bool isFormOfAnother(const Match &match, const std::vector<Match> &matches) const;
  bool isStep(const Match &stage) const;
  bool isOfAnother(const Match &match) const;
  llvm::Error chooseOperations();
  void shortenAround(std::vector<Match> &parts);
  llvm::Error orderStages(std::vector<Match> parts);
  llvm::Error applyModifiers();
  llvm::Error assignNumbers();
  llvm::Error readFixedFilter();
  void joinRowsAndColumns();
  void joinExtents();
  void readLeadingFilter();
  void readCompared();
  void readAsked();
  bool readLeadingDimensions(size_t at);
  bool readFilterBesideInput(const std::vector<size_t> &open);
  std::string titleOfAll() const;
  bool readEnlarged(const std::vector<size_t> &open);
  bool readShapesAndResult(const std::vector<size_t> &open);
  llvm::Error assignShapes();
  bool assignBeside(size_t at);
  void assignEquals(size_t at, double value);
  void assignMissing();
  void readSingleStep();
  void readSingleImage();
  void readSingleRow();
  bool isChosen(const ShapeRule &rule);
  void assignPositional();
  void assignWords();
  llvm::Error chooseType();
  bool setNumber(const std::string &name, double value, size_t at);
  llvm::Error checkSizes();
  llvm::Error checkWords();
  llvm::Error checkAsked();
  llvm::Error checkStrangeWords() const;
  llvm::Error checkStages() const;
  llvm::Error checkLimits(const std::set<size_t> &accounted) const;
  std::set<size_t> accountedFor() const;
  bool isMentioned(const std::string &word) const;
  llvm::Error refuse(const std::string &why) const;
  void use(const Span &span) {
    for (size_t at : span.at)
      used[at] = true;
  }
  struct Named {
    std::string name;
    const std::vector<std::string> *words;
    double *target = nullptr; ///< of a real
  };
  std::vector<Named> numbersWanted();

  const Library &library;
  const Vocabulary &vocabulary;
  std::shared_ptr<const Index> ownIndex;
  const Index &index;
  std::vector<Token> tokens;
  std::vector<bool> used;
  bool showsIntegers; ///< in its examples
  const Operation *recalled;
  bool isNamed;            ///< the recalled operation was recognized by its name, too
  const Operation *without, *lackingOne = nullptr;
  bool byAxis = false;     ///< it lacks the axis that is asked for
  bool isFinal = false;    ///< the refusal has a reason that another operation would have, too
  std::set<size_t> typeAt; ///< words that name a type
  std::string type, otherType; ///< the other one may be that of indices
  std::vector<Modifier> modifiers;
  Match heavy;
  std::vector<Span> stageSpans;
  Understood result;
  std::map<std::string, bool> given; ///< sizes and reals that the request names
};

/// Whether an operation comes in this form, always or by choice.
bool choiceOffers(const Operation &op, const std::string &modifier);

/// Sets the dimensions of `rule` from the shape tokens `at`; false when they contradict each other.
bool readShapes(const ShapeRule &rule, const std::vector<Token> &tokens, const std::vector<size_t> &at,
                std::map<std::string, int64_t> &out);

/// Words that say nothing by themselves.
bool isGrammar(StringRef word);

inline bool overlaps(const Span &a, const Span &b) {
  return llvm::any_of(a.at, [&](size_t at) { return llvm::is_contained(b.at, at); });
}

} // namespace optiml::gen

#endif
