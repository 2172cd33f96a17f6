# What tools/pack packs starts without the libraries that the build linked, from wherever it was moved to.
source "$(dirname "$0")/lib.sh"
expect 0 "$SOURCE/tools/pack" first --build "$BINARY"
mv first "moved to"
folder=$work/"moved to"
runtime='linux-vdso|/(ld-linux[^/]*|lib(c|m|dl|rt|pthread|resolv|gcc_s|stdc\+\+))\.so'
find "$folder/bin" "$folder/libexec" -type f -perm -u+x | while read -r program; do
  LD_LIBRARY_PATH=$folder/lib/packed ldd "$program" >out.txt 2>err.txt || continue # linked statically
  outside=$(grep -vE "$runtime" out.txt | grep -vF "$folder/lib/packed/" || true)
  [ -z "$outside" ] || fail "$program loads what was not packed: $outside"
done
expect 0 env -i PATH=/usr/bin:/bin HOME="$work" "$folder/kbeam" problems
says "batched_qr"
expect 2 "$SOURCE/tools/pack" second --build nowhere
says "build it first"
