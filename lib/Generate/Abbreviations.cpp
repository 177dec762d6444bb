//===- Abbreviations.cpp - names in capitals, in full ---------------------===//
#include "Asides.h"
#include "llvm/ADT/StringExtras.h"
#include <map>

using namespace optiml;
using namespace optiml::gen;
using llvm::StringRef;

/// "LN over 512x768" is layer normalization, "ln of x" a logarithm; "a LoG filter" is no logarithm.
std::string optiml::gen::abbreviationsInWords(StringRef text) {
  static const std::map<StringRef, StringRef> names = {
      {"LN", "layer normalization"}, {"GN", "group normalization"},    {"GAP", "global average pooling"},
      {"GMP", "global max pooling"}, {"FC", "fully connected layer"},  {"MHSA", "multi-head self attention"},
      {"OHE", "one-hot encoding"},   {"LoG", "Laplacian of Gaussian"}, {"DoG", "difference of Gaussians"},
      {"GoL", "game of life"},       {"KLD", "KL divergence"},         {"MVM", "matrix-vector product"}};
  std::string result;
  while (!text.empty()) {
    size_t end = std::min(text.find_if_not(llvm::isAlnum), text.size());
    StringRef word = text.take_front(std::max<size_t>(end, 1));
    auto name = names.find(word);
    result += name == names.end() ? word : name->second;
    text = text.drop_front(word.size());
  }
  return result;
}
