# Unpacks the tarball, uses it, moves it, and uses it again.
tar -xzf /packages/freestone-*-linux-gnu.tar.gz -C /opt
prefix=$(echo /opt/freestone-*)
try_it() {
    lib=$prefix/lib
    include=$prefix/include
    examples=$prefix/share/doc/freestone/examples
    rpath=-Wl,-rpath,$lib
    export PATH="$prefix/bin:/usr/sbin:/usr/bin:/sbin:/bin" PKG_CONFIG_PATH="$lib/pkgconfig"
    . /use.sh
}
find "$prefix" | sort > /root/before
try_it
find "$prefix" | sort > /root/after
cmp /root/before /root/after
mv "$prefix" "/srv/moved elsewhere"
mv "/srv/moved elsewhere" /srv/moved
prefix=/srv/moved
rm -rf /root/work
echo "-- moved"
try_it > /root/moved.log 2>&1 || { cat /root/moved.log; exit 1; }
