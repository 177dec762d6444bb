//===- VocabularyFile.cpp - words.txt -------------------------------------===//
#include "optiml/Generate/Words.h"
#include "optiml/Support/Error.h"
#include "llvm/ADT/SmallVector.h"

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

/// A BLAS or LAPACK routine in its precisions; the complex ones are not offered.
void Vocabulary::addBlas(const std::string &routine) {
  for (auto [letter, type] : {std::pair("s", "float"), std::pair("d", "double"), std::pair("h", "half")}) {
    synonyms[letter + routine] = canonical(routine);
    implied[letter + routine] = type;
    spelled.insert(letter + routine);
  }
  for (const char *letter : {"c", "z"})
    foreign.insert(letter + routine);
}

std::vector<std::vector<std::string>> Vocabulary::phrases(StringRef pattern) const {
  auto [before, rest] = pattern.split('<');
  auto [name, after] = rest.split('>');
  auto set = sets.find(name.str());
  if (set == sets.end())
    return {words(pattern)};
  std::vector<std::vector<std::string>> result;
  for (const std::string &word : set->second)
    for (std::vector<std::string> &phrase : phrases((before + word + after).str()))
      if (!llvm::is_contained(result, phrase))
        result.push_back(std::move(phrase));
  return result;
}

llvm::Expected<Vocabulary> Vocabulary::parse(StringRef text) {
  Vocabulary result;
  llvm::SmallVector<StringRef, 0> lines;
  text.split(lines, '\n');
  // Synonyms first: what stands in phrases is brought to their form.
  std::map<std::string, std::string> stems; // of synonyms: "run" is one of its own, though "running" has the same stem
  for (int pass = 0; pass < 2; ++pass) {
    if (pass == 1)
      result.synonyms.insert(stems.begin(), stems.end());
    for (size_t i = 0; i < lines.size(); ++i) {
      auto [head, tail] = lines[i].split(':');
      auto [kind, name] = head.split(' ');
      kind = kind.trim(), name = name.trim();
      if (head.trim().empty() || head.starts_with("#"))
        continue;
      if (kind != "synonym" && kind != "modifier" && kind != "type" && kind != "filler" && kind != "unknown" &&
          kind != "hint" && kind != "idle" && kind != "implies" && kind != "qualifier" && kind != "blas" &&
          kind != "telling" && kind != "data" && kind != "set")
        return makeError("words.txt:{0}: unknown kind '{1}'", i + 1, kind);
      if ((pass == 0) != (kind == "synonym" || kind == "blas"))
        continue;
      llvm::SmallVector<StringRef, 0> parts;
      tail.split(parts, ',');
      for (StringRef part : parts) {
        std::string word = part.trim().str();
        if (word.empty())
          continue;
        llvm::SmallVector<StringRef, 4> written;
        StringRef(word).split(written, ' ', -1, false);
        for (StringRef one : written)
          result.spelled.insert(one.str());
        if (kind == "blas")
          result.addBlas(word);
        else if (kind == "set" && name == "action")
          result.actions.insert(stem(word));
        else if (kind == "set")
          result.sets[name.str()].push_back(word);
        else if (kind == "data")
          result.data.insert(word);
        else if (kind == "qualifier")
          result.qualifiers.insert(word);
        else if (kind == "unknown" && StringRef(word).contains(' '))
          result.foreignPhrases.push_back(result.words(word));
        else if (kind == "synonym") {
          result.synonyms[word] = name.str();
          stems.try_emplace(stem(word), name.str());
        } else if (kind == "modifier")
          result.modifiers[name.str()].push_back(result.words(word));
        else if (kind == "type")
          result.types[name.str()].push_back(result.words(word));
        else if (kind == "implies")
          result.implied[word] = name.str();
        else if (kind == "idle")
          result.idle.push_back(result.words(word));
        else if (kind == "hint")
          result.hints[name.str()].push_back(result.words(word));
        else
          (kind == "filler"    ? result.fillers
           : kind == "telling" ? result.telling
                               : result.foreign)
              .insert(result.canonical(word));
      }
    }
  }
  return result;
}
