//===- CubinSymbols.cpp - what a cubin defines ----------------------------===//
#include "optiml/Gpu/CubinSymbols.h"
#include <cstring>
#include <elf.h>
#include <string_view>

using namespace optiml::gpu;

namespace {

// Of NVIDIA's ELF: in a symbol's st_other, and the types of relocations that are four bytes wide (any other: eight).
constexpr unsigned char otherManaged = 0x04, otherEntry = 0x10;
constexpr uint32_t relocation32 = 1, relocationGeneric32 = 3;

/// The file, every access checked.
class Elf {
public:
  Elf(const void *image, size_t bytes) : image(static_cast<const char *>(image)), bytes(bytes) {}

  bool read();
  const std::vector<Elf64_Shdr> &all() const { return sections; }
  const Elf64_Shdr *section(size_t index) const { return index < sections.size() ? &sections[index] : nullptr; }
  std::string_view nameOf(const Elf64_Shdr &s) const { return text(sections[names], s.sh_name); }
  std::string_view text(const Elf64_Shdr &strings, uint64_t offset) const;
  /// The i-th T of a section's content.
  template <typename T> bool entry(const Elf64_Shdr &s, uint64_t i, T &into) const {
    return i < s.sh_size / sizeof(T) && copy(s.sh_offset + i * sizeof(T), into);
  }
  bool holds(uint64_t offset, uint64_t size) const { return size <= bytes && offset <= bytes - size; }
  const char *at(uint64_t offset) const { return image + offset; }

private:
  template <typename T> bool copy(uint64_t offset, T &into) const {
    if (!holds(offset, sizeof(T)))
      return false;
    memcpy(&into, image + offset, sizeof(T));
    return true;
  }

  const char *image;
  size_t bytes;
  Elf64_Ehdr header{};
  size_t names = 0; ///< section with the sections' names
  std::vector<Elf64_Shdr> sections;
};

bool Elf::read() {
  if (!image || !copy(0, header) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_shentsize != sizeof(Elf64_Shdr))
    return false;
  // With very many sections (one a kernel and more) their number stands in the first one.
  Elf64_Shdr first;
  if (!copy(header.e_shoff, first))
    return false;
  uint64_t count = header.e_shnum ? header.e_shnum : first.sh_size;
  names = header.e_shstrndx == SHN_XINDEX ? first.sh_link : header.e_shstrndx;
  if (count > bytes / sizeof(Elf64_Shdr) || !holds(header.e_shoff, count * sizeof(Elf64_Shdr)) || names >= count)
    return false;
  sections.resize(count);
  memcpy(sections.data(), image + header.e_shoff, count * sizeof(Elf64_Shdr));
  return true;
}

std::string_view Elf::text(const Elf64_Shdr &strings, uint64_t offset) const {
  if (strings.sh_type != SHT_STRTAB || offset >= strings.sh_size || !holds(strings.sh_offset, strings.sh_size))
    return "";
  const char *begin = image + strings.sh_offset + offset;
  return {begin, strnlen(begin, strings.sh_size - offset)};
}

bool madeByCompiler(std::string_view name) {
  return name.empty() || name[0] == '$' || name[0] == '.' || name.substr(0, 4) == "__nv" ||
         name.find('$') != std::string_view::npos;
}

/// Where the loader writes into the sections that hold variables.
struct Relocation {
  size_t section;
  uint64_t offset;
  uint32_t bytes;
};

std::vector<Relocation> relocationsOf(const Elf &elf) {
  std::vector<Relocation> result;
  for (const Elf64_Shdr &s : elf.all()) {
    if (s.sh_type != SHT_RELA && s.sh_type != SHT_REL)
      continue;
    const Elf64_Shdr *target = elf.section(s.sh_info);
    if (!target || (elf.nameOf(*target) != ".nv.global.init" && elf.nameOf(*target) != ".nv.constant3"))
      continue;
    Elf64_Rela rela;
    Elf64_Rel rel;
    for (uint64_t i = 0;; ++i) {
      if (s.sh_type == SHT_RELA ? !elf.entry(s, i, rela) : !elf.entry(s, i, rel))
        break;
      uint64_t offset = s.sh_type == SHT_RELA ? rela.r_offset : rel.r_offset;
      uint32_t type = uint32_t(ELF64_R_TYPE(s.sh_type == SHT_RELA ? rela.r_info : rel.r_info));
      result.push_back({s.sh_info, offset, type == relocation32 || type == relocationGeneric32 ? 4u : 8u});
    }
  }
  return result;
}

} // namespace

bool CubinVariable::isInitial(const void *content) const {
  const char *p = static_cast<const char *>(content);
  if (relocated.empty() && !initial.empty())
    return memcmp(p, initial.data(), bytes) == 0;
  std::vector<bool> ignored(relocated.empty() ? 0 : bytes);
  for (auto [offset, size] : relocated)
    for (uint64_t i = offset; i < offset + size && i < bytes; ++i)
      ignored[i] = true;
  for (uint64_t i = 0; i < bytes; ++i)
    if (p[i] != (initial.empty() ? 0 : initial[i]) && (ignored.empty() || !ignored[i]))
      return false;
  return true;
}

bool optiml::gpu::readCubin(const void *image, size_t bytes, CubinSymbols &into) {
  into = CubinSymbols();
  Elf elf(image, bytes);
  if (!elf.read())
    return false;
  std::vector<Relocation> relocations = relocationsOf(elf);
  for (const Elf64_Shdr &table : elf.all()) {
    const Elf64_Shdr *strings = elf.section(table.sh_link);
    if (table.sh_type != SHT_SYMTAB || !strings)
      continue;
    Elf64_Sym symbol;
    for (uint64_t i = 0; elf.entry(table, i, symbol); ++i) {
      bool placed = symbol.st_shndx != SHN_UNDEF && symbol.st_shndx < SHN_LORESERVE;
      const Elf64_Shdr *home = placed ? elf.section(symbol.st_shndx) : nullptr;
      std::string_view name = elf.text(*strings, symbol.st_name);
      if (!home || madeByCompiler(name))
        continue;
      unsigned type = ELF64_ST_TYPE(symbol.st_info);
      if (type == STT_FUNC && symbol.st_other & otherEntry)
        into.kernels.emplace_back(name);
      std::string_view where = elf.nameOf(*home);
      bool constant = where == ".nv.constant3";
      if (type != STT_OBJECT || !symbol.st_size || (!constant && where != ".nv.global" && where != ".nv.global.init"))
        continue;
      if (symbol.st_value > home->sh_size || symbol.st_size > home->sh_size - symbol.st_value ||
          (home->sh_type != SHT_NOBITS && !elf.holds(home->sh_offset, home->sh_size)))
        continue;
      CubinVariable v;
      v.name = name;
      v.bytes = symbol.st_size;
      v.constant = constant;
      v.managed = symbol.st_other & otherManaged;
      if (home->sh_type != SHT_NOBITS)
        v.initial.assign(elf.at(home->sh_offset + symbol.st_value), symbol.st_size);
      for (const Relocation &r : relocations)
        if (r.section == symbol.st_shndx && r.offset >= symbol.st_value && r.offset - symbol.st_value < v.bytes)
          v.relocated.emplace_back(r.offset - symbol.st_value, r.bytes);
      if (v.initial.find_first_not_of('\0') == std::string::npos)
        v.initial.clear();
      into.variables.push_back(std::move(v));
    }
  }
  return true;
}
