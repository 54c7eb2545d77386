#!/bin/sh
# Kills the game while it saves, again and again: kill_game.sh GAME KILLS. Each start must find a sound world.
set -eu
game=$1
kills=$2
dir=$(mktemp -d "${TMPDIR:-/tmp}/cg-game-XXXXXX")
trap 'rm -rf "$dir"' EXIT
i=0
while [ "$i" -lt "$kills" ]; do
    i=$((i + 1))
    "$game" "$dir/world" --seconds 60 >"$dir/out" 2>&1 &
    pid=$!
    sleep "$((1 + i % 2)).$((i * 37 % 90 + 10))"
    kill -9 "$pid"
    wait "$pid" 2>/dev/null || true
    cat "$dir/out"
    if grep -q "contradicts itself" "$dir/out"; then exit 1; fi
    if [ "$i" -gt 1 ] && ! grep -q "found its world" "$dir/out"; then
        echo "start $i did not find the world of start $((i - 1))"
        exit 1
    fi
done
"$game" "$dir/world" --seconds 2 | tee "$dir/out"
grep -q "found its world" "$dir/out"
grep -q " ends at tick " "$dir/out"
echo "$kills kills, and the world was found each time"
