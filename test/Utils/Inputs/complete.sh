# usage: complete.sh FILE: what bash completes with the functions in FILE.
source "$1"
try() {
  COMP_LINE=$*
  COMP_POINT=${#COMP_LINE}
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  COMPREPLY=()
  if [[ $1 == optiml ]]; then _optiml; else _optiml_clang; fi
  echo "$* -> ${COMPREPLY[*]}"
}
try optiml-clang --optiml-stra
try optiml-clang --optiml-strategy=be
try optiml-clang -Rpass-m
try optiml-clang -O-se
try optiml diag
try optiml clang --optiml-backend=c
