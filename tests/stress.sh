#!/bin/sh
# Run a pytest command three times in random order while two busy loops take the processor away.
# Printed seeds repeat an order: pytest -p randomly --randomly-seed=N.
busy() { while :; do :; done; }
busy & first=$!
busy & second=$!
trap 'kill $first $second 2>/dev/null' EXIT
for run in 1 2 3; do
  seed=$(date +%s)
  echo "run $run of 3, order of seed $seed"
  "$@" -p randomly --randomly-seed="$seed" || exit 1
done
