#!/bin/sh
# The number of positive values, plus geometric noise on both sides, once for each draw.
# Run: sh noisy_count.sh EPSILON DRAWS SEED < users.jsonl
count=$(jq -s 'flatten | map(select(. > 0)) | length')
seq "$2" | awk -v epsilon="$1" -v seed="$3" -v count="$count" '
    function geometric() { return int(-log(1 - rand()) / epsilon) }
    BEGIN { srand(seed % 2147483647) } # awk reads only 31 bits
    { print count + geometric() - geometric() }'
