#!/bin/sh
# Runs fio's own tests of zoned block devices (t/zbd) in a Linux guest, on a drive with zones.
#
#     cli/tests/live/guests/zbd.sh [-s FIO | -d VERSION] [-n NANDSCAPE] [-m MEMORY] [-p PAGES] [TEST...]
#
# FIO is a folder with fio's sources, of which t/zbd is used. Without it, curl fetches them: of VERSION from Debian, which has 3.33, or of
# the version that is the guest's from GitHub. Of 3.33, tests 33, 34, 37, 46, 48, 54, 55, 57 and 58 fail with the guest's later fio.
# NANDSCAPE is the program, MEMORY that of the guest. PAGES of 16 KiB are in a zone: 960, or 240 for a quarter of the data. TEST is the
# number of a test; without any, all run. Ends with status 0 if no test fails.
#
# Left out: what needs SCSI, null_blk or zones that are written anywhere, which the tests skip themselves; other transports than vfio-user.
set -eu

version=3.39
sources=
debian=
program=nandscape
memory=3GiB
pages=960
while getopts s:d:n:m:p: option; do
    case $option in
        s) sources=$OPTARG ;;
        d) debian=$OPTARG ;;
        n) program=$OPTARG ;;
        m) memory=$OPTARG ;;
        p) pages=$OPTARG ;;
        *) exit 2 ;;
    esac
done
shift $((OPTIND - 1))

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ -n "$debian" ]; then
    cache=${XDG_CACHE_HOME:-$HOME/.cache}/nandscape
    archive=$cache/fio_$debian.orig.tar.gz
    mkdir -p "$cache" "$folder/fio"
    if [ ! -e "$archive" ]; then
        curl -fsSL --retry 3 -o "$folder/archive" "http://deb.debian.org/debian/pool/main/f/fio/fio_$debian.orig.tar.gz"
        mv "$folder/archive" "$archive"
    fi
    if [ "$debian" = 3.33 ]; then
        echo "d2410e13e0f379d061d077cc5ae325835bb7c6186aa7bafc1df954cbc9b014fc  $archive" | sha256sum --check --quiet
    fi
    tar -xzf "$archive" -C "$folder/fio" --strip-components 1
    sources=$folder/fio
fi
for file in functions test-zbd-support; do
    if [ -n "$sources" ]; then
        cp "$sources/t/zbd/$file" "$folder/$file"
    else
        curl -fsSL -o "$folder/$file" "https://raw.githubusercontent.com/axboe/fio/fio-$version/t/zbd/$file"
    fi
done
# The guest's grep is busybox's, which has no -P.
sed -i "s/grep -Po \"\${grep_str}\"/sed -n 's,.*cap \\\\(0x[0-9a-f]*\\\\).*,\\\\1,p'/" "$folder/functions"

# Nor does its timeout know -v.
sed -i 's/timeout -v -s KILL 180s/timeout -s KILL 180/' "$folder/test-zbd-support"

# What runs in the guest. The tests choose an I/O scheduler, which a drive with several paths has none of. Without sg_inq they
# take it that reads beyond write pointers fail; one that knows nothing tells them what holds for NVMe.
cat >"$folder/start" <<'END'
ln -s /proc/self/fd /dev/fd
ln -s /usr/bin/fio /root/fio/fio
printf '#!/usr/bin/bash\nexit 1\n' > /usr/bin/sg_inq
chmod +x /usr/bin/sg_inq
for module in nvme_tcp nvme_fabrics nvme nvme_core; do rmmod $module; done
insmod /modules/nvme_core.ko multipath=0
insmod /modules/nvme.ko
timeout 120 sh -c 'until [ -e /dev/nvme0n1 ]; do sleep 0.1; done' || exit 1
bash /root/fio/t/zbd/test-zbd-support "$@" /dev/nvme0n1 && exit 0
for log in /root/fio/t/zbd/*.log.*; do
    [ "$(tail -n 1 "$log")" = FAIL ] && echo "$log:" && tail -n 40 "$log"
done
exit 1
END

words=
for number; do words="$words -t $number"; done
# 136 zones of 16 MiB that take 15 MiB each, or of 4 MiB, of which 32 can be open: tests ask for 130, and for 16. One has 1 GiB under way.
"$program" guest --memory "$memory" --set capacity=$((pages * 32 / 15))MiB --set ftl.kind=zone --set lba_size=4KiB --set buffer.mode=capacitor \
    --set geometry.channels=2 --set geometry.dies_per_channel=2 --set geometry.planes_per_die=1 --set geometry.pages_per_block="$pages" \
    --set ftl.zone.mapping=dies --set ftl.zone.width=1 --set ftl.zone.max_active=32 --set ftl.zone.max_open=32 \
    --file "$folder/functions:/root/fio/t/zbd/functions" --file "$folder/test-zbd-support:/root/fio/t/zbd/test-zbd-support" \
    --file "$folder/start:/root/start" --run "bash /root/start $words" -- --no-delay
