# A problem folder outside the tree works with an installed kbeam; a scaffolded problem runs at once.
source "$(dirname "$0")/lib.sh"
cmake --install "$BINARY" --prefix "$work/prefix" >install.txt
installed=$work/prefix/bin/kbeam
mkdir elsewhere && cd elsewhere
"$installed" new-problem my_sum >new.txt || fail "$(cat new.txt)"
expect 2 "$installed" new-problem my_sum
expect 2 "$installed" new-problem 'not a name'
# Whether six tries beat the baseline is a matter of speed and not asked here.
"$installed" run ./my_sum --budget 300s --evaluations 6 --json >out.txt 2>err.txt || [ $? -eq 1 ] || fail "$(cat err.txt)"
holds 'r["problem"] == "my_sum" and r["evaluations"] == 6'
sed -i 's/^name = .*/nmae = "my_sum"/; s/role = "output"/role = "outptu"/' my_sum/problem.toml
expect 2 "$installed" run ./my_sum
says 'problem.toml:[0-9]+:[0-9]+: .*nmae'
says 'problem.toml:[0-9]+:[0-9]+: .*outptu'
