# Installs the Debian packages, uses them and removes them.
dpkg --install /packages/*.deb > /root/dpkg.log 2>&1 || { cat /root/dpkg.log; exit 1; }
dpkg --audit
dpkg --verify libfreestone0 libfreestone-dev freestone freestone-doc
prefix=
lib=/usr/lib
include=/usr/include
examples=/usr/share/doc/freestone-doc/examples
rpath=
. /use.sh
test -s /usr/share/man/man1/freestone-run.1.gz
test -s /usr/share/bash-completion/completions/freestone
dpkg --purge freestone-doc freestone libfreestone-dev libfreestone0 > /root/dpkg.log 2>&1 || { cat /root/dpkg.log; exit 1; }
left=$(find / -xdev \( -path /packages -o -path /proc -o -path /root \) -prune -o -iname '*freestone*' -print)
if [ -n "$left" ]; then echo "left behind: $left" >&2; exit 1; fi
echo "-- removed, and nothing is left"
