//===- optiml-pages - manual pages and completions, from the flag table ---===//
//
//   optiml-pages man            the manual page of optiml-clang
//   optiml-pages man-of NAME    that of optiml-NAME, around its --help on standard input
//   optiml-pages bash|zsh|fish  completions of optiml-clang, and of optiml NAME
//
// Runs in the build; nobody else needs it.
//
//===----------------------------------------------------------------------===//
#include "optiml/Driver/Flags.h"
#include <cstdio>
#include <functional>
#include <iostream>
#include <iterator>
#include <map>
#include <string>

using namespace optiml;

namespace {

struct Command {
  const char *name, *what;
};
constexpr Command commands[] = {
#define COMMAND(name, what) {name, what},
#include "../optiml/Commands.def"
};

std::string replaced(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

/// For troff: a hyphen that is one, and no control characters at the beginnings of lines.
std::string troff(const std::string &text) {
  std::string result = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  result = replaced(replaced(result, "\n.", "\n\\&."), "\n'", "\n\\&'");
  return result.starts_with('.') || result.starts_with('\'') ? "\\&" + result : result;
}

bool takesValue(const FlagInfo &flag) { return flag.value[0] != '\0'; }
bool mayStandAlone(const FlagInfo &flag) { return flag.value[0] == '\0' || flag.value[0] == '['; }

/// "auto gpu cpu" of "auto|gpu|cpu"; empty where the value is no choice of words.
std::string choices(const FlagInfo &flag) {
  std::string value = flag.value;
  if (value.starts_with('[') && value.ends_with(']'))
    value = value.substr(1, value.size() - 2);
  if (value.find('|') == std::string::npos || value.find_first_of("[:ABCDEFGHIJKLMNOPQRSTUVWXYZ'") != std::string::npos)
    return "";
  return replaced(value, "|", " ");
}

std::string head(const std::string &name, const std::string &what) {
  return ".TH " + name + " 1 \"\" \"OptiML\" \"OptiML\"\n.SH NAME\n" + troff(name) + " \\- " + troff(what) + "\n";
}

std::string clangPage() {
  std::string page = head("optiml-clang", commands[0].what) +
                     ".SH SYNOPSIS\n.B optiml\\-clang\n[\\-O\\-search[=BUDGET]] [options of OptiML] arguments of nvcc\n"
                     ".SH DESCRIPTION\nWithout \\-O\\-search this is nvcc. With it, OptiML looks for faster kernels, "
                     "checks that they compute the same, and hands the best program to nvcc.\n.SH OPTIONS\n"
                     "Each one is also an environment variable; the command line wins.\n";
  for (const FlagInfo &flag : ownFlagTable()) {
    std::string value = flag.value;
    value = value.empty() ? "" : value[0] == '[' ? "[=" + value.substr(1) : "=" + value;
    page += ".TP\n.B " + troff(flag.name + value) + "\n" + troff(flag.meaning) + ". Default: " + troff(flag.fallback) +
            ". Environment: " + flag.env + ".\n";
  }
  return page + ".SH SEE ALSO\n.BR optiml (1)\n";
}

std::string pageOf(const std::string &name) {
  std::string what = "a program of OptiML";
  for (const Command &command : commands)
    if (name == command.name)
      what = command.what;
  const std::string help{std::istreambuf_iterator<char>(std::cin), {}};
  return head("optiml-" + name, what) + ".SH HELP\n.nf\n" + troff(help) + ".fi\n.SH SEE ALSO\n.BR optiml (1)\n";
}

std::string frontPage() {
  std::string page =
      head("optiml", "the front of OptiML's programs") + ".SH SYNOPSIS\n.B optiml\nNAME [arguments]\n.SH COMMANDS\n";
  for (const Command &command : commands)
    page += ".TP\n.BR " + troff(command.name) + "\n" + troff(command.what) + "\n";
  return page;
}

std::string names() {
  std::string result;
  for (const Command &command : commands)
    result += (result.empty() ? "" : " ") + std::string(command.name);
  return result;
}

std::string bash() {
  std::string flags, values;
  for (const FlagInfo &flag : ownFlagTable()) {
    flags += std::string(flags.empty() ? "" : " ") + flag.name + (mayStandAlone(flag) ? "" : "=");
    if (const std::string words = choices(flag); !words.empty())
      values += "    " + std::string(flag.name) + ") COMPREPLY=($(compgen -W \"" + words + "\" -- \"$value\")) ;;\n";
  }
  return R"(# Completions of optiml-clang and optiml, for bash.
_optiml_clang() {
  local line=${COMP_LINE:0:COMP_POINT}
  local word=${line##*[[:space:]]} value
  if [[ $word == *=* ]]; then
    value=${word#*=}
    case ${word%%=*} in
)" + values +
         R"(    *) COMPREPLY=($(compgen -f -- "$value")) ;;
    esac
  elif [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W ")" +
         flags + R"(" -- "$word"))
    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace 2>/dev/null
  fi
}
_optiml() {
  if [[ $COMP_CWORD == 1 ]]; then
    COMPREPLY=($(compgen -W "help )" +
         names() + R"(" -- "${COMP_WORDS[1]}"))
  elif [[ ${COMP_WORDS[1]} == clang ]]; then
    _optiml_clang
  fi
}
complete -o default -F _optiml_clang optiml-clang
complete -o default -F _optiml optiml
)";
}

/// In single quotes, and without what ends a description.
std::string zshText(const std::string &text) {
  return replaced(replaced(replaced(text, "'", "'\\''"), "[", "\\["), "]", "\\]");
}

std::string zsh() {
  std::string specs;
  for (const FlagInfo &flag : ownFlagTable()) {
    const std::string words = choices(flag);
    const std::string value = !takesValue(flag) ? "" : words.empty() ? ":value:_files" : ":value:(" + words + ")";
    specs += "    '" + std::string(flag.name) + (takesValue(flag) ? "=" : "") + "[" + zshText(flag.meaning) + "]" +
             (flag.value[0] == '[' ? ":" : "") + value + "' \\\n";
  }
  return R"(#compdef optiml-clang optiml
# Completions of optiml-clang and optiml, for zsh.
_optiml_clang_flags() {
  _arguments \
)" + specs +
         R"(    '*:file:_files'
}
if [[ $service == optiml ]]; then
  if (( CURRENT == 2 )); then
    compadd help )" +
         names() + R"(
  elif [[ $words[2] == clang ]]; then
    shift words
    (( CURRENT-- ))
    _optiml_clang_flags
  else
    _files
  fi
else
  _optiml_clang_flags
fi
)";
}

std::string fish() {
  std::string text = "# Completions of optiml-clang and optiml, for fish.\n";
  for (const FlagInfo &flag : ownFlagTable()) {
    const std::string name = flag.name, words = choices(flag);
    const bool isLong = name.starts_with("--");
    text += "complete -c optiml-clang " + std::string(isLong ? "-l " : "-o ") + name.substr(isLong ? 2 : 1) +
            (mayStandAlone(flag) ? "" : " -r") + (words.empty() ? "" : " -f -a '" + words + "'") + " -d '" +
            replaced(flag.meaning, "'", "\\'") + "'\n";
  }
  for (const Command &command : commands)
    text += "complete -c optiml -n __fish_use_subcommand -f -a " + std::string(command.name) + " -d '" +
            replaced(command.what, "'", "\\'") + "'\n";
  return text;
}

} // namespace

int main(int argc, char **argv) {
  const std::map<std::string, std::function<std::string()>> kinds = {
      {"man", clangPage}, {"front", frontPage}, {"bash", bash},
      {"zsh", zsh},       {"fish", fish},       {"man-of", [&] { return pageOf(argc > 2 ? argv[2] : ""); }}};
  auto kind = kinds.find(argc > 1 ? argv[1] : "");
  if (kind == kinds.end()) {
    std::fputs("usage: optiml-pages man|front|man-of NAME|bash|zsh|fish\n", stderr);
    return 2;
  }
  std::cout << kind->second();
  return std::cout.flush() ? 0 : 1;
}
