#!/usr/bin/busybox sh
# The guest's first process: mounts, modules, the network, then commands from outside or a shell on the terminal.
# /etc/start.sh comes with each start. It has settings (MODE: commands, saved or shell; MARK), and the function first, with what
# else is to be done first.
/usr/bin/busybox --install -s /usr/bin 2>/dev/null
export PATH=/usr/sbin:/usr/bin HOME=/root
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
ln -s /proc/mounts /etc/mtab
hostname guest
while read -r module; do insmod "/modules/$module.ko"; done < /modules/order
. /etc/start.sh
# It waits for the drives that it finds. A guest that is saved has none yet.
[ "$MODE" = saved ] || insmod /modules/nvme.ko
ip link set lo up
if [ -e /sys/class/net/eth0 ]; then
    # QEMU's user network: it reaches this machine's loopback at 10.0.2.2.
    ip addr add 10.0.2.15/24 dev eth0
    ip link set eth0 up
    ip route add default via 10.0.2.2
fi
cd /root
first

if [ "$MODE" = shell ]; then
    export TERM=vt102 PS1='guest:\w# '
    setsid cttyhack /usr/bin/bash --norc
    poweroff -f
fi

# Commands come over a port, each as a line with its number and its length, then its text. Its output goes back at once,
# and after it a line with MARK, the number and the exit status.
for name in /sys/class/virtio-ports/*/name; do
    [ "$(cat "$name")" = commands ] && port=/dev/$(basename "$(dirname "$name")")
done
exec 3<>"$port"
echo "$MARK 0 0" >&3
while read -r number length <&3; do
    head -c "$length" <&3 >/run/command
    /usr/bin/bash /run/command </dev/null >&3 2>&1 3>&-
    echo "$MARK $number $?" >&3
done
poweroff -f
